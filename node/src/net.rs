//! The connections of a node: TCP, or what a simulation puts in its place.
//!
//! Owns the two kinds and what can be done with either. Never reads or writes by itself, and knows no protocol.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_util::either::Either;

/// Connections that the system accepts for us while we are busy: after a fail-over all clients come at once, and one
/// that finds the queue full waits a second before it tries again.
const BACKLOG: u32 = 4_096;

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
        socket.bind(addr)?;
        Ok(Listener::Tcp(socket.listen(BACKLOG)?))
    }

    fn connect(&self, addr: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let addr = addr.to_owned();
        Box::pin(async move { TcpStream::connect(addr).await.map(Stream::Tcp) })
    }
}

/// A connection that is no socket of this machine.
pub trait Simulated: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Shows what would be read, and leaves it there. 0 is the end.
    fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>>;
}

/// Takes connections.
pub enum Listener {
    /// From sockets.
    Tcp(TcpListener),
    /// From whoever has the other end.
    Simulated(mpsc::UnboundedReceiver<(Stream, SocketAddr)>),
}

impl Listener {
    /// The next connection, and who it is from.
    pub async fn accept(&mut self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, from)| (Stream::Tcp(stream), from)),
            Self::Simulated(arrivals) => match arrivals.recv().await {
                Some(arrival) => Ok(arrival),
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
    /// A socket.
    Tcp(TcpStream),
    /// Anything else.
    Simulated(Box<dyn Simulated>),
}

impl Stream {
    /// What is written goes out at once.
    pub fn set_nodelay(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Notices a peer that vanished without a word, though nobody writes.
    pub fn set_keepalive(&self) -> io::Result<()> {
        let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
        match self {
            Self::Tcp(stream) => SockRef::from(stream).set_tcp_keepalive(&keepalive),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// Shows what would be read, and leaves it there. 0 is the end.
    pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(buf).await,
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
            // Known only once everything was read; a deadline comes first.
            Self::Simulated(_) => false,
        }
    }

    /// Writes what fits at once, if anything does.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
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
            Self::Simulated(stream) => {
                let (read, write) = tokio::io::split(stream);
                (Either::Right(read), Either::Right(write))
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
pub type ReadHalf = Either<OwnedReadHalf, tokio::io::ReadHalf<Box<dyn Simulated>>>;

/// What goes out.
pub type WriteHalf = Either<OwnedWriteHalf, tokio::io::WriteHalf<Box<dyn Simulated>>>;

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_read(cx, buf),
            Self::Simulated(inner) => Pin::new(inner).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_write(cx, buf),
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
            Self::Simulated(inner) => Pin::new(inner).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(inner) => inner.is_write_vectored(),
            Self::Simulated(inner) => inner.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_flush(cx),
            Self::Simulated(inner) => Pin::new(inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(inner) => Pin::new(inner).poll_shutdown(cx),
            Self::Simulated(inner) => Pin::new(inner).poll_shutdown(cx),
        }
    }
}
