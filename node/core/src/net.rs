//! The connections of a node: TCP, a Unix socket, or what a simulation puts in their place.
//!
//! Owns the kinds and what can be done with each. Never reads or writes by itself, and knows no protocol.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use rustix::net::RecvFlags;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream, tcp, unix};
use tokio::sync::mpsc;
use tokio_util::either::Either;

use crate::limits;
use crate::unix_socket::UnixSocket;

/// Where a node's connections come from.
pub trait Network: Send + Sync {
    /// Takes connections at this address.
    fn listen(&self, addr: SocketAddr) -> io::Result<Listener>;
    /// Connects to `host:port`.
    fn connect(&self, addr: &str) -> BoxFuture<'static, io::Result<Stream>>;
}

/// The network of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

impl Network for Tcp {
    fn listen(&self, addr: SocketAddr) -> io::Result<Listener> {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        keep_little_unsent(&socket)?;
        socket.bind(addr)?;
        Ok(Listener::Tcp(socket.listen(limits::BACKLOG)?))
    }

    fn connect(&self, addr: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let addr = addr.to_owned();
        Box::pin(async move { TcpStream::connect(addr).await.and_then(not_to_itself).map(Stream::Tcp) })
    }
}

/// Refuses a connection that is its own other end. The system makes one where nobody listens at a port of this machine that it also gives
/// to outgoing connections, and happens to give to this one: whoever speaks there hears itself.
fn not_to_itself(stream: TcpStream) -> io::Result<TcpStream> {
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there: it connected to itself"));
    }
    Ok(stream)
}

/// The system keeps no more of what it cannot send than [`limits::UNSENT_BYTES`], on each connection that this socket takes. By itself it
/// keeps up to 4 MB: a thousand clients that read nothing would take gigabytes of the machine that no bound of ours counts, and the time
/// to copy them there.
fn keep_little_unsent(socket: &TcpSocket) -> io::Result<()> {
    let most = limits::UNSENT_BYTES;
    // SAFETY: the descriptor is open, and the value is of the size that is said and lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const most).cast(),
            size_of_val(&most) as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress {
    /// The network, or a simulation of one.
    Network(SocketAddr),
    /// A process on this machine.
    Local {
        /// The user that it ran as when it connected.
        uid: u32,
    },
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(out),
            Self::Local { uid } => write!(out, "unix:uid={uid}"),
        }
    }
}

/// A connection that is no socket of this machine.
pub trait Simulated: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Shows what would be read, and leaves it there. 0 is the end.
    fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>>;
}

/// Stands for `no socket` among their numbers.
pub const NO_SOCKET: RawFd = -1;

/// Tells whether the other side of this socket has ended its half, though nobody read what it sent before. Never true without a socket.
pub fn has_hung_up(socket: RawFd) -> bool {
    let mut look = libc::pollfd { fd: socket, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the pointer is to one entry, which lives until the call returns. The system passes over negative numbers.
    unsafe { libc::poll(&raw mut look, 1, 0) > 0 }
}

/// Takes connections.
pub enum Listener {
    /// From sockets.
    Tcp(TcpListener),
    /// From processes of this machine.
    Unix(UnixSocket),
    /// From whoever has the other end.
    Simulated(mpsc::UnboundedReceiver<(Stream, SocketAddr)>),
}

impl Listener {
    /// The next connection, and who it is from.
    pub async fn accept(&mut self) -> io::Result<(Stream, PeerAddress)> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().await.map(|(stream, from)| (Stream::Tcp(stream), PeerAddress::Network(from)))
            }
            Self::Unix(socket) => {
                let (stream, uid) = socket.accept().await?;
                Ok((Stream::Unix(stream), PeerAddress::Local { uid }))
            }
            Self::Simulated(arrivals) => match arrivals.recv().await {
                Some((stream, from)) => Ok((stream, PeerAddress::Network(from))),
                None => std::future::pending().await,
            },
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

/// A connection.
pub enum Stream {
    /// A socket of the network.
    Tcp(TcpStream),
    /// A socket of this machine.
    Unix(UnixStream),
    /// Anything else.
    Simulated(Box<dyn Simulated>),
}

impl Stream {
    /// The same connection, of which the runtime that this is called in hears from now on, whichever heard of it before.
    pub fn moved_here(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
            Self::Simulated(stream) => Self::Simulated(stream),
        })
    }

    /// What is written goes out at once.
    pub fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) | Self::Simulated(_) => Ok(()),
        }
    }

    /// Notices a peer that vanished without a word, though nobody writes.
    pub fn set_keepalive(&self) -> io::Result<()> {
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
        match self {
            Self::Tcp(stream) => SockRef::from(stream).set_tcp_keepalive(&keepalive),
            // The system tells of the end of a process.
            Self::Unix(_) | Self::Simulated(_) => Ok(()),
        }
    }

    /// Shows what would be read, and leaves it there. 0 is the end.
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(buf).await,
            Self::Unix(stream) => {
                let peek = || Ok(rustix::net::recv(&*stream, &mut *buf, RecvFlags::PEEK)?);
                stream.async_io(Interest::READABLE, peek).await.map(|(count, _)| count)
            }
            Self::Simulated(stream) => {
                let mut buf = ReadBuf::new(buf);
                std::future::poll_fn(|cx| stream.poll_peek(cx, &mut buf)).await
            }
        }
    }

    /// Whether the other side has ended its half, where bytes of it are left that nobody took: they keep a socket readable, so this
    /// does not wait.
    pub async fn has_ended(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.ready(Interest::READABLE).await.is_ok_and(|ready| ready.is_read_closed()),
            Self::Unix(stream) => stream.ready(Interest::READABLE).await.is_ok_and(|ready| ready.is_read_closed()),
            // Known only once everything was read; a deadline comes first.
            Self::Simulated(_) => false,
        }
    }

    /// The number of its socket; [`NO_SOCKET`] where it has none.
    pub fn socket(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Simulated(_) => NO_SOCKET,
        }
    }

    /// Writes what fits at once, if anything does.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Simulated(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Both directions, each for itself.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Self::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (Either::Left(read), Either::Left(write))
            }
            Self::Unix(stream) => {
                let (read, write) = stream.into_split();
                (Either::Right(Either::Left(read)), Either::Right(Either::Left(write)))
            }
            Self::Simulated(stream) => {
                let (read, write) = tokio::io::split(stream);
                (Either::Right(Either::Right(read)), Either::Right(Either::Right(write)))
            }
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

/// What comes in.
pub type ReadHalf = Either<tcp::OwnedReadHalf, Either<unix::OwnedReadHalf, tokio::io::ReadHalf<Box<dyn Simulated>>>>;

/// What goes out.
pub type WriteHalf =
    Either<tcp::OwnedWriteHalf, Either<unix::OwnedWriteHalf, tokio::io::WriteHalf<Box<dyn Simulated>>>>;

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_read(cx, buf),
            Self::Unix(inner) => Pin::new(inner).poll_read(cx, buf),
            Self::Simulated(inner) => Pin::new(inner).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_write(cx, buf),
            Self::Unix(inner) => Pin::new(inner).poll_write(cx, buf),
            Self::Simulated(inner) => Pin::new(inner).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_write_vectored(cx, bufs),
            Self::Unix(inner) => Pin::new(inner).poll_write_vectored(cx, bufs),
            Self::Simulated(inner) => Pin::new(inner).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(inner) => inner.is_write_vectored(),
            Self::Unix(inner) => inner.is_write_vectored(),
            Self::Simulated(inner) => inner.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_flush(cx),
            Self::Unix(inner) => Pin::new(inner).poll_flush(cx),
            Self::Simulated(inner) => Pin::new(inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_shutdown(cx),
            Self::Unix(inner) => Pin::new(inner).poll_shutdown(cx),
            Self::Simulated(inner) => Pin::new(inner).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_connection_to_itself_is_refused() {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let own = socket.local_addr().expect("bound");
        let stream = socket.connect(own).await.expect("the system connects a socket to itself");
        let error = not_to_itself(stream).expect_err("it is its own other end");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let other = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
        assert!(not_to_itself(other).is_ok());
    }

    #[tokio::test]
    async fn an_end_is_seen_behind_bytes_that_nobody_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let mut other = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
        let stream = Stream::Tcp(listener.accept().await.expect("a connection").0);
        other.write_all(b"x").await.expect("there is room");
        assert!(!has_hung_up(stream.socket()) && !has_hung_up(NO_SOCKET));
        drop(other);
        let seen = async {
            while !has_hung_up(stream.socket()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), seen)
            .await
            .expect("the other side is gone, and that is not seen");
    }

    #[tokio::test]
    async fn the_system_keeps_little_of_what_nobody_reads() {
        let mut listener = Tcp.listen("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let Listener::Tcp(socket) = &listener else { panic!("it is a socket") };
        let _silent = TcpStream::connect(socket.local_addr().expect("bound")).await.expect("it listens");
        let (Stream::Tcp(stream), _) = listener.accept().await.expect("a connection") else { panic!("it is a socket") };
        let (data, mut taken) = (vec![7; 64 * 1024], 0);
        // There is room again as long as the other side's system takes what is on its way.
        while tokio::time::timeout(Duration::from_millis(500), stream.writable()).await.is_ok() && taken < 16 << 20 {
            taken += stream.try_write(&data).unwrap_or(0);
        }
        assert!(taken < 1 << 20, "{taken} bytes");
    }
}
