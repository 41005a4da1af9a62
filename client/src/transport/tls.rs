//! TLS of the client: whose certificates it believes, and which it shows.
//!
//! Owns the reading of those files and the words for a handshake that failed. Believes only CAs that were named: no roots of the
//! system, and never a node without a certificate.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::call::error::{Error, FailureKind};
use crate::call::reason::Reason;

/// The environment variable that names the file of [`crate::ClientBuilder::ca_file`].
pub const CA_ENV: &str = "QUORATE_CA";
/// The environment variable that names the certificate of [`crate::ClientBuilder::identity_files`].
pub const CERT_ENV: &str = "QUORATE_CERT";
/// The environment variable that names the key of [`crate::ClientBuilder::identity_files`].
pub const KEY_ENV: &str = "QUORATE_KEY";

/// PEM text: in a file, which may change, or as it was given.
#[derive(Clone)]
pub(crate) enum Pem {
    File(PathBuf),
    Given(Arc<[u8]>),
}

impl fmt::Debug for Pem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(out),
            Self::Given(_) => out.write_str("Given"),
        }
    }
}

impl Pem {
    fn read(&self) -> Result<Cow<'_, [u8]>, Error> {
        match self {
            Self::File(path) => match std::fs::read(path) {
                Ok(text) => Ok(text.into()),
                Err(error) => Err(self.bad(&format!("cannot be read: {error}"))),
            },
            Self::Given(text) => Ok(Cow::Borrowed(text)),
        }
    }

    fn bad(&self, what: &str) -> Error {
        Error::Invalid(match self {
            Self::File(path) => format!("{}: {what}", path.display()),
            Self::Given(_) => format!("PEM text that was given: {what}"),
        })
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let text = self.read()?;
        let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|error| self.bad(&why(&error)))?;
        if found.is_empty() { Err(self.bad("has no certificate in it (PEM)")) } else { Ok(found) }
    }

    fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Given(_) => None,
        }
    }
}

/// Where the certificates are.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsSources {
    pub ca: Option<Pem>,
    /// Certificate and key.
    pub identity: Option<(Pem, Pem)>,
}

impl TlsSources {
    /// Those that stand in files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let identity = self.identity.iter().flat_map(|(cert, key)| [cert, key]);
        self.ca.iter().chain(identity).filter_map(Pem::file)
    }

    /// What a handshake needs; `None` where no CA is named.
    pub fn load(&self) -> Result<Option<Arc<ClientConfig>>, Error> {
        let Some(ca) = &self.ca else {
            return match &self.identity {
                None => Ok(None),
                Some((cert, _)) => Err(cert
                    .bad("a certificate is only shown to nodes that have one: name the CA of theirs too (--ca FILE)")),
            };
        };
        let mut roots = RootCertStore::empty();
        for authority in ca.certificates()? {
            roots.add(authority).map_err(|error| ca.bad(&format!("cannot be a CA: {error}")))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider knows the usual versions").with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = cert.certificates()?;
                let secret = PrivateKeyDer::from_pem_slice(&key.read()?).map_err(|error| key.bad(&why(&error)))?;
                builder.with_client_auth_cert(chain, secret).map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => key.bad(&format!("is not the key of {cert:?}")),
                    error => key.bad(&error.to_string()),
                })?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }
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

/// A connection to a node without TLS: over the network, or by a socket of this machine.
pub(crate) type Plain = Either<TcpStream, UnixStream>;

/// A connection to a node: plain, or with TLS in a box, for which a plain one does not pay.
pub(crate) type Wire = Either<Plain, Box<TlsStream<TcpStream>>>;
