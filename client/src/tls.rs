//! TLS of the client: whose certificates it believes, and which it shows.
//!
//! Owns the reading of those files and the words for a handshake that failed. Believes only CAs that were named: no roots of the
//! system, and never a node without a certificate.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::error::{Error, FailureKind};
use crate::reason::Reason;

/// The environment variable that names the file of [`crate::ClientBuilder::ca_file`].
pub const CA_ENV: &str = "QUORATE_CA";
/// The environment variable that names the certificate of [`crate::ClientBuilder::identity_files`].
pub const CERT_ENV: &str = "QUORATE_CERT";
/// The environment variable that names the key of [`crate::ClientBuilder::identity_files`].
pub const KEY_ENV: &str = "QUORATE_KEY";

/// Where the certificates are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub ca: Option<PathBuf>,
    /// Certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// What a handshake needs; `None` where no CA is named.
    pub fn load(&self) -> Result<Option<Arc<ClientConfig>>, Error> {
        let Some(ca) = &self.ca else {
            return match &self.identity {
                None => Ok(None),
                Some((cert, _)) => Err(bad(
                    cert,
                    "a certificate is only shown to nodes that have one: name the CA of theirs too (--ca FILE)",
                )),
            };
        };
        let mut roots = RootCertStore::empty();
        for authority in certificates(ca)? {
            roots.add(authority).map_err(|error| bad(ca, &format!("cannot be a CA: {error}")))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider knows the usual versions").with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = certificates(cert)?;
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, &why(&error)))?;
                builder.with_client_auth_cert(chain, secret).map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => bad(key, &format!("is not the key of {}", cert.display())),
                    error => bad(key, &error.to_string()),
                })?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }
}

fn bad(path: &Path, what: &str) -> Error {
    Error::Invalid(format!("{}: {what}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refused = |error| bad(path, &why(&error));
    let found =
        CertificateDer::pem_file_iter(path).map_err(refused)?.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    if found.is_empty() { Err(bad(path, "has no certificate in it (PEM)")) } else { Ok(found) }
}

fn why(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => format!("cannot be read: {error}"),
        rustls::pki_types::pem::Error::NoItemsFound => {
            "has no private key in it that can be read (PEM, not encrypted)".into()
        }
        error => format!("is not PEM: {error}"),
    }
}

/// What a handshake that failed means. What is wrong with certificates stays so; all else may pass.
pub(crate) fn failed(error: io::Error) -> FailureKind {
    match of_tls(&error).map(words) {
        Some(words) => FailureKind::Tls(Reason::explained(words, error)),
        None => FailureKind::Connect(error),
    }
}

/// Why a node refused the certificate of this client, if that is what ended an exchange: it judges it when the handshake is over
/// for us, and reads nothing that was sent before.
pub(crate) fn refusal(error: &(dyn StdError + 'static)) -> Option<String> {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateUnknown, DecryptError,
        UnknownCA, UnsupportedCertificate,
    };
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(of_tls);
        if let Some(
            inner @ rustls::Error::AlertReceived(
                AccessDenied
                | BadCertificate
                | CertificateExpired
                | CertificateRequired
                | CertificateUnknown
                | DecryptError
                | UnknownCA
                | UnsupportedCertificate,
            ),
        ) = inner
        {
            return Some(words(inner));
        }
        next = error.source();
    }
    None
}

fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => certificate(error),
        rustls::Error::InvalidMessage(_) => {
            "the node does not speak TLS on this port; say http:// if it is meant to be plain".into()
        }
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::UnknownCA => "the node does not know the CA of this client's certificate".into(),
            AlertDescription::CertificateExpired => "this client's certificate has expired".into(),
            AlertDescription::CertificateRequired => {
                "the node wants a certificate: give one with its key (--cert, --key)".into()
            }
            AlertDescription::NoApplicationProtocol => {
                "the node speaks another protocol on this port; is it that of peers?".into()
            }
            alert => format!("the node refuses the handshake: {alert:?}"),
        },
        error => error.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError::{Expired, ExpiredContext, UnknownIssuer};
    match error {
        Expired | ExpiredContext { .. } => "the node's certificate has expired".into(),
        UnknownIssuer => "the node's certificate is not of the CA that is believed here (--ca)".into(),
        error => format!("the node's certificate is refused: {error}"),
    }
}

/// A connection to a node: plain, or with TLS in a box, for which a plain one does not pay.
pub(crate) type Wire = Either<TcpStream, Box<TlsStream<TcpStream>>>;
