//! The bytes of a connection between nodes: plain, or TLS with a certificate on each side.
//!
//! Owns the handshake of TLS and what it says of the other node. Never falls back to plain: a node that has certificates talks to
//! nobody without.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quorate_node_core::net::{ReadHalf, Stream, WriteHalf};
use quorate_node_core::tls::{self, PortTls, ShownCertificate};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_rustls::{TlsConnector, TlsStream};
use tokio_util::either::Either;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// What is read from a peer.
pub(super) enum PeerRead {
    Plain(ReadHalf),
    Tls(tokio::io::ReadHalf<TlsStream<Stream>>, Option<Revocable>),
}

/// Ends the reading once the other end's certificate is revoked; and with that the connection.
pub(super) struct Revocable {
    revoked: Pin<Box<WaitForCancellationFutureOwned>>,
    _shown: ShownCertificate,
}

/// What is written to a peer. TLS keeps bytes back until it is flushed.
pub(super) type PeerWrite = Either<WriteHalf, tokio::io::WriteHalf<TlsStream<Stream>>>;

/// Both ways to a peer, and what its certificate says.
pub(super) struct PeerStream {
    pub read: PeerRead,
    pub write: PeerWrite,
    pub shown: Shown,
}

/// What a peer showed of itself before it said anything.
pub(super) enum Shown {
    /// Nothing: the connection is plain.
    Nothing,
    /// A certificate of our CA.
    Certificate(CertificateDer<'static>),
}

impl Shown {
    /// Whether a peer that says that it is this node may be.
    pub fn judge(&self, node: u64) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::Certificate(certificate) if tls::is_of_node(certificate, node) => Ok(()),
            Self::Certificate(certificate) => {
                let shown = tls::name_of(certificate).ok().flatten().unwrap_or_else(|| "nobody".into());
                let name = tls::name_of_node(node);
                Err(format!(
                    "it says that it is node {node} and shows the certificate of {shown}: that of node {node} has the DNS name {name}"
                ))
            }
        }
    }
}

/// Takes a connection to a node that is known or not.
pub(super) async fn dialled(stream: Stream, to: Option<u64>, tls: Option<&Arc<PortTls>>) -> Result<PeerStream, String> {
    let Some(tls) = tls else { return Ok(plain(stream)) };
    let name = match to {
        Some(id) => ServerName::try_from(tls::name_of_node(id)).expect("the name of a node is a DNS name"),
        None => tls::any_node(),
    };
    let connecting = TlsConnector::from(tls.dialler()).connect(name, stream).await;
    let stream = connecting.map(TlsStream::from).map_err(|error| {
        let hint = "both nodes need --peer-tls-cert, --peer-tls-key and --peer-tls-ca";
        format!("the TLS handshake failed: {}; {hint}", tls::failure(&error))
    })?;
    let shown = tls.watch(stream.get_ref().1.peer_certificates());
    secured(stream, shown)
}

/// Takes a connection that was accepted.
pub(super) async fn accepted(mut stream: Stream, tls: Option<&Arc<PortTls>>) -> Result<PeerStream, String> {
    let mut first = [0u8; 3];
    let count = stream.peek(&mut first).await.map_err(|error| error.to_string())?;
    let is_tls = tls::may_be_tls(&first[..count]);
    match tls {
        None if is_tls => {
            Err("it speaks TLS, and this node does not: give this node --peer-tls-cert, --peer-tls-key and \
                               --peer-tls-ca too"
                .into())
        }
        None => Ok(plain(stream)),
        Some(_) if !is_tls => {
            Err("it does not speak TLS, and this node speaks nothing else with peers: give that node \
                                   --peer-tls-cert, --peer-tls-key and --peer-tls-ca too"
                .into())
        }
        Some(tls) => {
            let accepted = tls.accept(stream).await;
            let (stream, shown) =
                accepted.map_err(|error| format!("the TLS handshake failed: {}", tls::failure(&error)))?;
            secured(stream.into(), shown)
        }
    }
}

fn plain(stream: Stream) -> PeerStream {
    let (read, write) = stream.into_split();
    PeerStream { read: PeerRead::Plain(read), write: Either::Left(write), shown: Shown::Nothing }
}

fn secured(stream: TlsStream<Stream>, shown: Option<ShownCertificate>) -> Result<PeerStream, String> {
    let certificates = stream.get_ref().1.peer_certificates();
    let certificate = certificates.and_then(<[_]>::first).ok_or("it showed no certificate")?.clone();
    let (read, write) = tokio::io::split(stream);
    let revocable =
        shown.map(|shown| Revocable { revoked: Box::pin(shown.revoked().clone().cancelled_owned()), _shown: shown });
    Ok(PeerStream {
        read: PeerRead::Tls(read, revocable),
        write: Either::Right(write),
        shown: Shown::Certificate(certificate),
    })
}

impl AsyncRead for PeerRead {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(half) => Pin::new(half).poll_read(cx, buf),
            // A node that was killed says no farewell. Frames have a length, so that one which was cut is noticed all the same.
            Self::Tls(half, revocable) => {
                if let Some(revocable) = revocable
                    && revocable.revoked.as_mut().poll(cx).is_ready()
                {
                    return Poll::Ready(Err(io::Error::other("the certificate of the other end was revoked")));
                }
                match ready!(Pin::new(half).poll_read(cx, buf)) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                    read => Poll::Ready(read),
                }
            }
        }
    }
}
