//! The handshake of TLS with a client.
//!
//! Owns what a client's certificate makes it: its name. Never decides what somebody of that name may do.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;

use crate::connection::handshake_queue::HandshakeQueue;
use crate::connection::mismatch;
use crate::connection::monitor::Watched;
use crate::connection::origin::Origin;
use crate::metrics::ConnectionEnd;
use crate::tls::{self, PortTls, ShownCertificate};

/// What a handshake needs to know.
pub struct Handshake {
    /// Of the port.
    pub tls: Arc<PortTls>,
    /// Where it waits for its turn.
    pub queue: HandshakeQueue,
    /// By when it has to be over: as a head, since until then nobody has asked for anything.
    pub deadline: Instant,
    /// Gets the name in the client's certificate.
    pub origin: Origin,
}

impl Handshake {
    /// Shakes hands on a socket, in its turn; where that fails, it has said why. Also gives what the client's certificate is watched by.
    pub async fn shake(
        &mut self,
        stream: Watched,
    ) -> Result<(TlsStream<Watched>, Option<ShownCertificate>), ConnectionEnd> {
        let peer = self.origin.address;
        let accepting = async {
            let turn = self.queue.take(peer.into()).await;
            tokio::select! {
                biased;
                shaken = self.tls.accept(stream) => Some(shaken),
                () = turn.has_to_go() => None,
            }
        };
        let (stream, shown) = match timeout_at(self.deadline, accepting).await {
            Err(_) => return Err(ConnectionEnd::SlowHead),
            Ok(None) => return Err(ConnectionEnd::PushedOut),
            Ok(Some(Ok(shaken))) => shaken,
            Ok(Some(Err(error))) => {
                mismatch::say_handshake_failed(peer, &tls::failure(&error));
                return Err(ConnectionEnd::Handshake);
            }
        };
        if let Some([certificate, ..]) = stream.get_ref().1.peer_certificates() {
            match tls::name_of(certificate) {
                Ok(name) => self.origin.certificate = name.map(Into::into),
                Err(reason) => {
                    mismatch::say_handshake_failed(peer, &reason);
                    return Err(ConnectionEnd::Handshake);
                }
            }
        }
        Ok((stream, shown))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsConnector;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::connection::door::Door;
    use crate::connection::monitor::ConnectionMonitor;
    use crate::net::PeerAddress;
    use crate::tls::{Authority, Lifetime, Port, Subject, TlsFiles};

    /// The name that a handshake gives to a client with the certificate of this subject.
    async fn name_given_to(subject: Option<Subject>) -> Option<Arc<str>> {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::create(dir.path(), Lifetime::days(1)).expect("a CA");
        let issue = |subject: &Subject| authority.issue(subject, Lifetime::days(1)).expect("a certificate");
        let node = issue(&Subject::Node { id: 7, hosts: vec!["localhost".into()] });
        let ca = Some(authority.cert());
        let tls = PortTls::open(TlsFiles { port: Port::Clients, cert: node.cert, key: node.key, ca, crl: None });
        let tls = tls.expect("good files");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("it listens");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.cert()).expect("PEM")).expect("a CA");
        let builder = ClientConfig::builder_with_provider(Arc::clone(tls::provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        let config = match subject.map(|subject| issue(&subject)) {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_file(own.cert).expect("PEM")];
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(own.key).expect("PEM"))
                    .expect("a pair")
            }
        };
        let client = tokio::spawn(async move {
            let name = ServerName::try_from("localhost").expect("a name");
            TlsConnector::from(Arc::new(config)).connect(name, stream).await
        });
        let (accepted, address) = listener.accept().await.expect("a connection");
        let monitor = ConnectionMonitor::new(CancellationToken::new(), Duration::from_secs(1), Weak::new());
        let deadline = Instant::now() + Duration::from_secs(10);
        let address = PeerAddress::Network(address);
        let origin = Origin { address, certificate: None, door: Door::Clients };
        let mut handshake = Handshake { tls, queue: HandshakeQueue::default(), deadline, origin };
        let shaken = handshake.shake(Watched::new(accepted, monitor)).await;
        assert!(shaken.is_ok() && client.await.expect("no panic").is_ok());
        handshake.origin.certificate
    }

    #[tokio::test]
    async fn a_client_is_who_its_certificate_says() {
        assert_eq!(name_given_to(None).await, None);
        assert_eq!(name_given_to(Some(Subject::Client("app".into()))).await.as_deref(), Some("app"));
        let node = Subject::Node { id: 3, hosts: vec!["10.0.0.3".into(), "n3.example".into()] };
        assert_eq!(
            name_given_to(Some(node)).await.as_deref(),
            Some("node-3.quorate"),
            "the first DNS name comes first"
        );
    }
}
