//! Where the keys of whoever signs tokens come from: a file, or a resource on the web.
//!
//! Owns one look at it, with bounds on time and size. Never keeps anything: what was known stays known where a look fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use quorate_threads::watchdog;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::gateway::auth::jwt::keys::KeySet;
use crate::tls;

/// Longest set of keys that is read.
const SET_BYTES_MAX: usize = 256 * 1024;
/// How long a look may take.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// How often a file is looked at.
const FILE_EVERY: Duration = Duration::from_secs(2);
/// How often a resource is asked for.
const URL_EVERY: Duration = Duration::from_secs(300);
/// How often it is while no key is known.
const URL_EVERY_AT_FIRST: Duration = Duration::from_secs(5);

/// Where the keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Url {
        /// `https://…`, or `http://…` on this machine.
        uri: Uri,
        /// The CA whose certificate it shows; for `https` alone.
        ca: Option<PathBuf>,
    },
}

impl fmt::Display for JwksSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url { uri, .. } => uri.fmt(f),
        }
    }
}

/// Why the keys could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file or the network.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The certificates.
    #[error("{0}")]
    Tls(String),
    /// What came is no HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It answered something else.
    #[error("it was answered with status {0}")]
    Status(StatusCode),
    /// It took too long.
    #[error("it was not answered within {} s", LOOK_MAX.as_secs())]
    Late,
    /// What came are no keys.
    #[error("what came {0}")]
    Keys(String),
}

impl JwksSource {
    /// What is there now.
    pub async fn keys(&self) -> Result<KeySet, SourceError> {
        let look = async {
            match self {
                Self::File(path) => Ok(Bytes::from(read(path).await?)),
                Self::Url { uri, ca } => fetch(uri, ca.as_deref()).await,
            }
        };
        let text = tokio::time::timeout(LOOK_MAX, look).await.map_err(|_late| SourceError::Late)??;
        KeySet::read(&text).map_err(SourceError::Keys)
    }

    /// How long until the next look.
    pub fn every(&self, is_without_keys: bool) -> Duration {
        match self {
            Self::File(_) => FILE_EVERY,
            Self::Url { .. } if is_without_keys => URL_EVERY_AT_FIRST,
            Self::Url { .. } => URL_EVERY,
        }
    }
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let length = tokio::fs::metadata(path).await?.len();
    if length > SET_BYTES_MAX as u64 {
        return Err(io::Error::other(format!("it has {length} bytes; at most {SET_BYTES_MAX}")));
    }
    tokio::fs::read(path).await
}

async fn fetch(uri: &Uri, ca: Option<&Path>) -> Result<Bytes, SourceError> {
    let host = uri.host().ok_or_else(|| io::Error::other("the address has no host"))?;
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let Some(ca) = ca else {
        let stream = TcpStream::connect((name, uri.port_u16().unwrap_or(80))).await?;
        return ask(stream, uri, host).await;
    };
    let stream = TcpStream::connect((name, uri.port_u16().unwrap_or(443))).await?;
    let config = tls::client_config(ca).map_err(SourceError::Tls)?;
    let name = ServerName::try_from(name.to_owned()).map_err(|error| SourceError::Tls(error.to_string()))?;
    ask(TlsConnector::from(Arc::new(config)).connect(name, stream).await?, uri, host).await
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: &Uri,
    host: &str,
) -> Result<Bytes, SourceError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = watchdog::spawn(connection);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let host = uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let request = Request::get(target)
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let text = Limited::new(answer.into_body(), SET_BYTES_MAX).collect().await;
    driver.abort();
    if status != StatusCode::OK {
        return Err(SourceError::Status(status));
    }
    let text = text.map_err(|error| SourceError::Keys(format!("did not come whole: {error}")))?;
    Ok(text.to_bytes())
}
