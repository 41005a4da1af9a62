//! What a port uses for its handshakes at the moment.
//!
//! Owns the exchange of it: handshakes that begin after a reload see the new certificates, connections that are open go on
//! with those they had, but for those whose other end has shown one that is revoked by then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::files::{Expiry, Loaded, Port, TlsFault, TlsFiles, sentence, since_1970};
use super::handshakes::Handshakes;
use super::node_verifier::NodeVerifier;
use super::revoked::{Lists, Shown, ShownCertificate};
use super::{provider, revoked};
use crate::file_version::FileVersion;

/// Once a certificate holds for less, the node is worried.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 24 * 3_600);

/// What a handshake needs.
struct Current {
    accept: Arc<ServerConfig>,
    /// For peers only.
    dial: Option<Arc<ClientConfig>>,
    expiries: Vec<Expiry>,
    /// Judges certificates that were shown; where there are lists of revoked ones.
    revocation: Option<Arc<dyn ClientCertVerifier>>,
    /// Of revoked certificates.
    lists: Lists,
}

/// TLS of one port.
pub struct PortTls {
    files: TlsFiles,
    current: ArcSwap<Current>,
    /// Who has shown a certificate that may be revoked.
    shown: Shown,
    /// Where hands are shaken with those who come.
    handshakes: Handshakes,
    /// Of the files that were loaded last.
    versions: Mutex<Vec<Option<FileVersion>>>,
    failures: AtomicU64,
    /// Why the files that are there now were not taken.
    fault: Mutex<Option<String>>,
}

impl PortTls {
    /// Reads the files; every fault is told.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, Vec<TlsFault>> {
        // Before the content, so that a change in between is seen at the next look.
        let versions = files.paths().map(FileVersion::of).collect();
        let current = Current::of(files.load()?, files.port).map_err(|detail| {
            let [field, ..] = files.port.fields();
            vec![TlsFault { field, detail }]
        })?;
        Ok(Arc::new(Self {
            current: ArcSwap::from_pointee(current),
            shown: Shown::default(),
            handshakes: Handshakes::new(files.port),
            versions: Mutex::new(versions),
            failures: AtomicU64::new(0),
            fault: Mutex::default(),
            files,
        }))
    }

    /// Shakes hands on a connection that was accepted, away from the threads of this one; what its other end has shown is watched from
    /// then on. Dropping the future gives the connection up.
    pub async fn accept<S>(self: &Arc<Self>, stream: S) -> io::Result<(TlsStream<S>, Option<ShownCertificate>)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let port = Arc::clone(self);
        let shaking = async move {
            let accept = Arc::clone(&port.current.load().accept);
            let stream = TlsAcceptor::from(accept).accept(stream).await?;
            let shown = port.watch(stream.get_ref().1.peer_certificates());
            Ok((stream, shown))
        };
        self.handshakes.run(shaking).await?
    }

    /// Watches a connection whose other end has shown these certificates; `None` where none can be revoked.
    pub fn watch(&self, chain: Option<&[CertificateDer<'_>]>) -> Option<ShownCertificate> {
        let chain = chain.filter(|chain| !chain.is_empty())?;
        self.current.load().revocation.as_ref()?;
        let judge = || {
            let current = self.current.load();
            Arc::clone(current.revocation.as_ref().expect("a port keeps its lists"))
        };
        Some(self.shown.add(chain, &judge))
    }

    /// Ends the connections whose certificate is revoked by now; how many.
    fn end_revoked(&self) -> usize {
        self.current.load().revocation.as_ref().map_or(0, |verifier| self.shown.end_revoked(&**verifier))
    }

    /// For a connection to a peer.
    pub fn dialler(&self) -> Arc<ClientConfig> {
        Arc::clone(self.current.load().dial.as_ref().expect("peers are dialled with the TLS of peers"))
    }

    /// Takes the files anew if they have changed; `None` if they have not, else how many connections ended since their certificates are
    /// revoked. An error tells why the old ones stay, once for each reason. Certificates do not wait for lists: where only those cannot be
    /// taken, the rest is, and the next look tells of them.
    pub fn reload(&self) -> Result<Option<usize>, String> {
        let mut now: Vec<Option<FileVersion>> = self.files.paths().map(FileVersion::of).collect();
        let before = self.versions.lock().clone();
        if before == now {
            *self.fault.lock() = None;
            return Ok(None);
        }
        // They are last.
        let lists_at = now.len() - usize::from(self.files.crl.is_some());
        let kept = self.current.load_full();
        let loaded = self.files.load_beside(&kept.lists).map_err(|faults| sentence(&faults));
        let taken = loaded.and_then(|mut loaded| {
            let lists_fault = loaded.lists_fault.take();
            Ok((Current::of(loaded, self.files.port)?, lists_fault))
        });
        let reason = match taken {
            Err(reason) => reason,
            Ok((_, Some(fault))) if before[..lists_at] == now[..lists_at] => sentence(&[fault]),
            Ok((current, lists_fault)) => {
                self.current.store(Arc::new(current));
                if lists_fault.is_some() {
                    now.truncate(lists_at);
                    now.extend_from_slice(&before[lists_at..]);
                }
                *self.versions.lock() = now;
                *self.fault.lock() = None;
                return Ok(Some(self.end_revoked()));
            }
        };
        let mut fault = self.fault.lock();
        // Looked at again each time: a file may be readable by then, a certificate's time may have come.
        if fault.as_ref() == Some(&reason) {
            return Ok(None);
        }
        self.failures.fetch_add(1, Relaxed);
        *fault = Some(reason.clone());
        Err(reason)
    }

    /// Which port it is.
    pub fn port(&self) -> Port {
        self.files.port
    }

    /// How often changed files were not taken.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// What metrics call each certificate, and the seconds until it expires; less than zero once it has.
    pub fn seconds_left(&self) -> Vec<(&'static str, f64)> {
        let now = since_1970().as_secs_f64();
        self.current.load().expiries.iter().map(|expiry| (expiry.label, expiry.at.as_secs_f64() - now)).collect()
    }

    /// What an operator should know.
    pub fn warnings(&self) -> Vec<String> {
        let now = since_1970();
        let soon = |expiry: &&Expiry| expiry.at < now + WARN_BEFORE;
        let current = self.current.load();
        let fault =
            self.fault.lock().clone().map(|why| format!("new TLS files were not taken, the old ones stay: {why}"));
        current.expiries.iter().filter(soon).map(|expiry| expiring(expiry, now)).chain(fault).collect()
    }
}

fn expiring(expiry: &Expiry, now: Duration) -> String {
    let field = expiry.field;
    match expiry.at.checked_sub(now) {
        None if field.ends_with("crl") => format!(
            "a list of revoked certificates in {field} is too old; it still holds until there is a new one: put one there"
        ),
        None => format!("a certificate in {field} has expired; put a new one there"),
        Some(left) => {
            let hours = left.as_secs() / 3_600;
            let what = if field.ends_with("crl") { "list of revoked certificates" } else { "certificate" };
            format!("a {what} in {field} expires in {} days and {} hours; put a new one there", hours / 24, hours % 24)
        }
    }
}

impl Current {
    fn of(loaded: Loaded, port: Port) -> Result<Self, String> {
        let Loaded { identity, roots, lists, lists_fault: _, expiries } = loaded;
        let mut revocation = None;
        let identity = Arc::new(SingleCertAndKey::from(identity));
        let builder = ServerConfig::builder_with_provider(Arc::clone(provider()));
        let builder = match port {
            Port::Clients => builder.with_safe_default_protocol_versions(),
            // Both ends are of this program.
            Port::Peers(_) => builder.with_protocol_versions(&[&TLS13]),
        };
        let builder = builder.map_err(|error| error.to_string())?;
        let builder = match &roots {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                // Who has a token needs no certificate.
                let verifier = revoked::verifier(roots, &lists.lists, port == Port::Clients)?;
                revocation = (!lists.lists.is_empty()).then(|| Arc::clone(&verifier));
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut accept = builder.with_cert_resolver(Arc::clone(&identity) as _);
        if roots.is_some() {
            // A session that is resumed is not judged again: a certificate that has expired or whose CA is gone could go on
            // for a day.
            accept.session_storage = Arc::new(NoServerSessionStorage {});
            accept.send_tls13_tickets = 0;
        }
        let dial = match (port, roots) {
            (Port::Clients, _) | (_, None) => {
                accept.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                None
            }
            (Port::Peers(_), Some(roots)) => {
                accept.alpn_protocols = vec![PEER_PROTOCOL.to_vec()];
                Some(Arc::new(dialler(identity, roots, revocation.clone())?))
            }
        };
        Ok(Self { accept: Arc::new(accept), dial, expiries, revocation, lists })
    }
}

/// The name of the peer protocol in a handshake (ALPN): a client that was led to the wrong port hears of it.
const PEER_PROTOCOL: &[u8] = b"quorate-peer";

fn dialler(
    identity: Arc<SingleCertAndKey>,
    roots: Arc<rustls::RootCertStore>,
    revocation: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider()));
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|error| error.to_string())?;
    let verifier = Arc::new(NodeVerifier { roots, revocation });
    let mut dial =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_client_cert_resolver(identity as _);
    dial.resumption = rustls::client::Resumption::disabled();
    dial.alpn_protocols = vec![PEER_PROTOCOL.to_vec()];
    Ok(dial)
}
