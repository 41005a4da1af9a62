//! The files that TLS is configured by, and their content.
//!
//! Owns the reading and the checks: what is there fits together, holds at the moment, and is for this node. Never keeps
//! anything: each reading is a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};

use super::certificate::not_after;
use super::node_verifier::{is_of_node, name_of_node};
use super::words::unreadable;
use super::{provider, reason, revoked};
use crate::file_mode::refuse_open_secret;

/// Which port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// That of clients.
    Clients,
    /// That of peers, and the connections to those of other nodes. The id is this node's.
    Peers(u64),
}

impl Port {
    /// The settings, as they are called in a configuration file: certificate, key, CA.
    pub fn fields(self) -> [&'static str; 3] {
        match self {
            Self::Clients => ["tls_cert", "tls_key", "tls_client_ca"],
            Self::Peers(_) => ["peer_tls_cert", "peer_tls_key", "peer_tls_ca"],
        }
    }

    /// The setting of the lists of revoked certificates.
    pub fn crl_field(self) -> &'static str {
        match self {
            Self::Clients => "tls_client_crl",
            Self::Peers(_) => "peer_tls_crl",
        }
    }

    /// What metrics call the certificate, the CA and the lists.
    fn labels(self) -> [&'static str; 3] {
        match self {
            Self::Clients => ["client_port", "client_ca", "client_crl"],
            Self::Peers(_) => ["peer", "peer_ca", "peer_crl"],
        }
    }
}

/// What was configured for a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Which one.
    pub port: Port,
    /// The certificate, PEM, and behind it those between it and the CA.
    pub cert: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Whose certificates are believed, PEM. `None`: nobody is asked for one. Always there for peers.
    pub ca: Option<PathBuf>,
    /// The lists of what those CAs have revoked, PEM. `None`: nothing counts as revoked.
    pub crl: Option<PathBuf>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    /// The setting that names the file, as it is called in a configuration file.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub detail: String,
}

/// All faults as one sentence.
pub fn sentence(faults: &[TlsFault]) -> String {
    let all: Vec<_> = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.detail)).collect();
    all.join("; ")
}

/// The end of a certificate's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// What metrics call the certificate.
    pub label: &'static str,
    /// The setting that names its file.
    pub field: &'static str,
    /// Since 1970.
    pub at: Duration,
}

/// The content of the files, checked.
pub struct Loaded {
    pub identity: CertifiedKey,
    pub roots: Option<Arc<RootCertStore>>,
    pub lists: revoked::Lists,
    /// Why the lists of the file were not taken, and those that were given stay.
    pub lists_fault: Option<TlsFault>,
    pub expiries: Vec<Expiry>,
}

/// Chain, key, and path and certificates of the CA where there is one.
type Content<'f> =
    (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, Option<(&'f Path, Vec<CertificateDer<'static>>)>);

fn fault(field: &'static str, path: &Path, what: String) -> TlsFault {
    TlsFault { field, detail: format!("{}: {what}", path.display()) }
}

/// The wall clock, since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl TlsFiles {
    /// All files, in the order of [`Port::fields`], and behind them that of the lists.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.cert, &self.key].into_iter().chain(&self.ca).chain(&self.crl).map(PathBuf::as_path)
    }

    /// Reads and checks all of them; every fault is told, not only the first.
    pub fn check(&self) -> Result<(), Vec<TlsFault>> {
        self.load().map(|_| ())
    }

    pub(super) fn load(&self) -> Result<Loaded, Vec<TlsFault>> {
        self.load_or_keep(None)
    }

    /// The same while these lists are in use: they stay where those in the file cannot be taken and they are of the CAs that are there now.
    /// Certificates do not wait for lists.
    pub(super) fn load_beside(&self, kept: &revoked::Lists) -> Result<Loaded, Vec<TlsFault>> {
        self.load_or_keep(Some(kept))
    }

    fn load_or_keep(&self, kept: Option<&revoked::Lists>) -> Result<Loaded, Vec<TlsFault>> {
        let [cert_field, key_field, ca_field] = self.port.fields();
        let [own_label, ca_label, crl_label] = self.port.labels();
        let cert_fault = |what| vec![fault(cert_field, &self.cert, what)];
        let (chain, key, authorities) = self.read()?;
        let at = earliest(&chain).map_err(cert_fault)?;
        let mut expiries = vec![Expiry { label: own_label, field: cert_field, at }];
        let (mut roots, mut lists, mut lists_fault) = (None, revoked::Lists::default(), None);
        if let Some((path, authorities)) = authorities {
            let ca_fault = |what| vec![fault(ca_field, path, what)];
            let at = earliest(&authorities).map_err(ca_fault)?;
            expiries.push(Expiry { label: ca_label, field: ca_field, at });
            if let Some(path) = &self.crl {
                let field = self.port.crl_field();
                let read = revoked::read(path, &authorities, since_1970());
                let read = read.and_then(|read| kept.map_or(Ok(()), |kept| read.succeed(kept)).map(|()| read));
                let read = read.map_err(|what| fault(field, path, what));
                lists = match (read, kept.filter(|kept| kept.cover(&authorities).is_ok())) {
                    (Ok(read), _) => read,
                    (Err(fault), Some(kept)) => {
                        lists_fault = Some(fault);
                        kept.clone()
                    }
                    (Err(fault), None) => return Err(vec![fault]),
                };
                expiries.extend(lists.until.map(|at| Expiry { label: crl_label, field, at }));
            }
            roots = Some(Arc::new(root_store(authorities).map_err(ca_fault)?));
        }
        let identity = CertifiedKey::from_der(chain, key, provider())
            .map_err(|error| vec![fault(key_field, &self.key, self.misfit(&error))])?;
        self.judge_own(&identity.cert, roots.as_ref(), &lists.lists).map_err(cert_fault)?;
        Ok(Loaded { identity, roots, lists, lists_fault, expiries })
    }

    /// The content of all files, of the CA's with its path; every fault is told.
    fn read(&self) -> Result<Content<'_>, Vec<TlsFault>> {
        let [cert_field, key_field, ca_field] = self.port.fields();
        let chain = certificates(&self.cert).map_err(|what| fault(cert_field, &self.cert, what));
        let key = private_key(&self.key).map_err(|what| fault(key_field, &self.key, what));
        let of_ca = |path| match certificates(path) {
            Ok(authorities) => Ok((path, authorities)),
            Err(what) => Err(fault(ca_field, path, what)),
        };
        match (chain, key, self.ca.as_deref().map(of_ca).transpose()) {
            (Ok(chain), Ok(key), Ok(authorities)) => Ok((chain, key, authorities)),
            (chain, key, authorities) => {
                Err([chain.err(), key.err(), authorities.err()].into_iter().flatten().collect())
            }
        }
    }

    /// Why key and certificate make no pair.
    fn misfit(&self, error: &rustls::Error) -> String {
        let cert = self.cert.display();
        match error {
            rustls::Error::InconsistentKeys(_) => {
                format!("is not the key of the certificate {cert}; name the two that were made together")
            }
            error => format!("cannot be used with the certificate {cert}: {}", reason(error)),
        }
    }

    /// Whether others would believe our certificate, as far as we can tell.
    fn judge_own(
        &self,
        chain: &[CertificateDer<'static>],
        roots: Option<&Arc<RootCertStore>>,
        crls: &[CertificateRevocationListDer<'static>],
    ) -> Result<(), String> {
        let own = &chain[0];
        if not_after(own)? <= since_1970() {
            return Err("has expired; put a new certificate there".into());
        }
        let (Port::Peers(id), Some(roots)) = (self.port, roots) else { return Ok(()) };
        let parsed = ParsedCertificate::try_from(own).map_err(|error| reason(&error))?;
        if !is_of_node(own, id) {
            let name = name_of_node(id);
            return Err(format!(
                "is not for node {id}: the certificate of a node has its DNS name, here {name}; \
                 `quorate-node pki node DIR --id {id} --host HOST` makes one to try"
            ));
        }
        let (now, algorithms) = (UnixTime::now(), provider().signature_verification_algorithms.all);
        let as_server = verify_server_cert_signed_by_trust_anchor(&parsed, roots, &chain[1..], now, algorithms);
        let verifier = revoked::verifier(roots, crls, false)?;
        let as_client = verifier.verify_client_cert(own, &chain[1..], now);
        as_server.and(as_client.map(|_| ())).map_err(|error| {
            format!("would not be believed by the other nodes: {}; use a certificate of the CA in peer_tls_ca that is for servers and for clients", reason(&error))
        })
    }
}

/// For connections to whoever shows a certificate of the CA in this file.
///
/// # Errors
/// What is wrong with the file.
pub fn client_config(ca: &Path) -> Result<ClientConfig, String> {
    let roots = root_store(certificates(ca)?)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider())).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |error: rustls::pki_types::pem::Error| unreadable(&error);
    let found: Vec<_> = CertificateDer::pem_file_iter(path).map_err(bad)?.collect::<Result<_, _>>().map_err(bad)?;
    match found.is_empty() {
        true => Err("has no certificate in it; it should begin with -----BEGIN CERTIFICATE-----".into()),
        false => Ok(found),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => {
            "has no private key in it that can be read; it should be PEM, and not encrypted".into()
        }
        error => unreadable(&error),
    })?;
    refuse_open_secret(path)?;
    Ok(key)
}

fn root_store(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| format!("has a certificate that cannot be a CA's: {}", reason(&error)))?;
    }
    Ok(roots)
}

fn earliest(certificates: &[CertificateDer<'static>]) -> Result<Duration, String> {
    let ends = certificates.iter().map(not_after).collect::<Result<Vec<_>, _>>()?;
    Ok(ends.into_iter().min().expect("there is a certificate at least"))
}
