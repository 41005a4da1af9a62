//! The settings of a client.
//!
//! Owns what holds without a setting, what the environment sets, and how endpoints are written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Client, Inner};
use crate::call::endpoints::{Endpoint, Endpoints, Reads};
use crate::call::error::Error;
use crate::client::registry::Renewals;
use crate::client::retry::RetryPolicy;
use crate::transport::credentials::Credentials;
use crate::transport::tls::{CA_ENV, CERT_ENV, KEY_ENV, Pem, TlsSources};
use crate::transport::token::{TOKEN_ENV, TOKEN_FILE_ENV, TokenSource};
use crate::transport::{Protocol, Transport};

/// The nodes of the local cluster that `scripts/cluster up` starts.
pub const DEFAULT_ENDPOINTS: &str = "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103";
/// The environment variable that names the endpoints.
pub const ENDPOINTS_ENV: &str = "QUORATE_ENDPOINTS";

/// Deadline of a call that sets none.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// How long one node may take before another is asked: some elections, but a good part of the deadline is left.
const ATTEMPT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3);
/// Time limits, retries and targets of calls.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub timeout: Duration,
    pub attempt_timeout: Duration,
    pub retry: RetryPolicy,
    pub reads: Reads,
}

/// Settings of a [`Client`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use quorate_client::{Client, RetryPolicy};
///
/// // Nothing is sent yet: nodes are asked when the first call is made.
/// let client = Client::builder()
///     .endpoints("10.0.0.1:7100,10.0.0.2:7100,10.0.0.3:7100")
///     .timeout(Duration::from_secs(5))
///     .attempt_timeout(Duration::from_secs(1))
///     .retry(RetryPolicy::default().attempts_max(10))
///     .build()?;
/// assert_eq!(client.endpoints().len(), 3);
///
/// // An endpoint that is none is found here, not by the first call.
/// assert!(Client::builder().endpoints("10.0.0.1").build().is_err());
/// # Ok::<(), quorate_client::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    endpoints: String,
    protocol: Protocol,
    tls: TlsSources,
    token: TokenSource,
    discovers: bool,
    pub(super) settings: Settings,
}

impl ClientBuilder {
    /// The nodes: `host:port`, separated by commas; one is enough, all of them are better. `unix:/path` is the socket of a node on
    /// this machine (its `--client-socket`), which is plain in any case. `https://` may stand before each of the others, or
    /// `http://`; without either it is TLS where a CA is named, else plain.
    pub fn endpoints(mut self, endpoints: impl Into<String>) -> Self {
        self.endpoints = endpoints.into();
        self
    }

    /// PEM file with the CAs whose certificates of nodes are believed; there are no others. A certificate has to be for the host
    /// of the endpoint. When the file changes it is read again, within a second, and new connections go by what it says then; the same
    /// holds for [`Self::identity_files`] and [`Self::token_file`]. A file that cannot be read changes nothing.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(Pem::File(path.into()));
        self
    }

    /// [`Self::ca_file`] as PEM text.
    pub fn ca_pem(mut self, text: impl AsRef<[u8]>) -> Self {
        self.tls.ca = Some(Pem::Given(text.as_ref().into()));
        self
    }

    /// PEM files with the certificate that nodes are shown, and its private key: the client is then who the certificate says.
    pub fn identity_files(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.identity = Some((Pem::File(cert.into()), Pem::File(key.into())));
        self
    }

    /// [`Self::identity_files`] as PEM text.
    pub fn identity_pem(mut self, cert: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.tls.identity = Some((Pem::Given(cert.as_ref().into()), Pem::Given(key.as_ref().into())));
        self
    }

    /// The token that says who asks, where nodes want to know. Over a plain connection everybody on the way can read it.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = TokenSource::Given(token.into());
        self
    }

    /// File with that token, in one line. Read again when it changes.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = TokenSource::File(path.into());
        self
    }

    /// Deadline of each call, retries included. Default 10 s. A write is tried for 5 minutes at most, even with a longer deadline:
    /// nodes remember its request id for 15.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How long one node may take before another is asked, within the deadline. Default 3 s.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// When to try again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Chooses the nodes that are asked by reads.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.settings.reads = reads;
        self
    }

    /// How operations go to the nodes.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Whether members that no endpoint names are found out and asked while an endpoint does not answer, so that a client outlives
    /// the nodes that it was given. Default true. The endpoints stay in any case. A member is used once it has answered at the address
    /// that it advertises and has said that it is this member of this cluster; so an address that only the cluster's own network knows
    /// does no harm. A token is never sent in clear to an address that was not given.
    pub fn discover_members(mut self, discovers: bool) -> Self {
        self.discovers = discovers;
        self
    }

    /// Checks the endpoints, and reads the files of TLS and of the token. Connects to nothing yet.
    pub fn build(self) -> Result<Client, Error> {
        let addresses = parse_endpoints(&self.endpoints, self.tls.ca.is_some())?;
        let transport = Transport::new(&addresses, self.protocol, Credentials::read(&self.tls, &self.token)?)?;
        let mut endpoints = Endpoints::new(addresses.len(), rand::random::<u16>().into());
        // Nobody sees the bytes of a local socket; members found through one alone are asked in clear unless a CA is named.
        let goes_out_in_clear = |endpoint: &Endpoint| !endpoint.is_tls && endpoint.socket().is_none();
        let is_clear = !transport.is_tls() || addresses.iter().any(goes_out_in_clear);
        if self.discovers && !(is_clear && transport.credentials().has_token()) {
            endpoints.discover(Instant::now());
        }
        let given = addresses.into_iter().map(|endpoint| endpoint.address).collect();
        let (endpoints, renewals, builder) = (Mutex::new(endpoints), Renewals::default(), self);
        Ok(Client { inner: Arc::new(Inner { transport, endpoints, given, builder, renewals }) })
    }
}

impl Client {
    /// A client with default settings.
    pub fn new(endpoints: impl Into<String>) -> Result<Self, Error> {
        Self::builder().endpoints(endpoints).build()
    }

    /// A client of the nodes in `QUORATE_ENDPOINTS`, else of the local cluster; over TLS where `QUORATE_CA` names a CA, with the
    /// certificate in `QUORATE_CERT` and its key in `QUORATE_KEY` where they are there.
    pub fn from_env() -> Result<Self, Error> {
        let endpoints = std::env::var(ENDPOINTS_ENV).unwrap_or_else(|_| DEFAULT_ENDPOINTS.to_owned());
        let mut builder = Self::builder().endpoints(endpoints);
        if let Some(ca) = std::env::var_os(CA_ENV) {
            builder = builder.ca_file(ca);
        }
        if let Some(file) = std::env::var_os(TOKEN_FILE_ENV) {
            builder = builder.token_file(file);
        } else if let Ok(token) = std::env::var(TOKEN_ENV) {
            builder = builder.token(token);
        }
        match (std::env::var_os(CERT_ENV), std::env::var_os(KEY_ENV)) {
            (None, None) => {}
            (Some(cert), Some(key)) => builder = builder.identity_files(cert, key),
            _ => return Err(Error::Invalid(format!("{CERT_ENV} and {KEY_ENV} belong together; give both or none"))),
        }
        builder.build()
    }

    /// Settings to change before building. Without endpoints: the local cluster.
    pub fn builder() -> ClientBuilder {
        let settings = Settings {
            timeout: TIMEOUT_DEFAULT,
            attempt_timeout: ATTEMPT_TIMEOUT_DEFAULT,
            retry: RetryPolicy::default(),
            reads: Reads::default(),
        };
        let (endpoints, protocol) = (DEFAULT_ENDPOINTS.into(), Protocol::default());
        let (tls, token) = (TlsSources::default(), TokenSource::default());
        ClientBuilder { endpoints, protocol, tls, token, discovers: true, settings }
    }
}

/// Splits the list. `prefers_tls` is for those that do not say.
fn parse_endpoints(list: &str, prefers_tls: bool) -> Result<Vec<Endpoint>, Error> {
    let mut addresses: Vec<Endpoint> = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let endpoint = parse_endpoint(item, prefers_tls);
        if !addresses.iter().any(|known| known.address == endpoint.address) {
            addresses.push(endpoint);
        }
    }
    if addresses.is_empty() {
        return Err(Error::Invalid("no endpoint is given; expected host:port,host:port,…".into()));
    }
    Ok(addresses)
}

fn parse_endpoint(item: &str, prefers_tls: bool) -> Endpoint {
    if let Some(path) = item.strip_prefix("unix://").or_else(|| item.strip_prefix("unix:"))
        && path.starts_with('/')
    {
        return Endpoint { address: format!("unix:{path}"), is_tls: false };
    }
    let (is_tls, rest) = match (item.strip_prefix("https://"), item.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (prefers_tls, item),
    };
    Endpoint { address: rest.trim_end_matches('/').to_owned(), is_tls }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_split_trimmed_and_deduplicated() {
        for prefers_tls in [false, true] {
            let parsed = parse_endpoints(" a:1, http://b:2/ ,,a:1,https://c:3", prefers_tls).expect("valid");
            let parsed: Vec<_> = parsed.iter().map(|endpoint| (endpoint.address.as_str(), endpoint.is_tls)).collect();
            assert_eq!(parsed, [("a:1", prefers_tls), ("b:2", false), ("c:3", true)]);
        }
    }

    #[test]
    fn a_unix_socket_is_plain_and_needs_a_path_from_the_root() {
        let parsed = parse_endpoints("unix:/run/q,unix:///run/q,unix:7100", true).expect("valid");
        let parsed: Vec<_> = parsed.iter().map(|endpoint| (endpoint.address.as_str(), endpoint.is_tls)).collect();
        assert_eq!(parsed, [("unix:/run/q", false), ("unix:7100", true)]);
        assert!(Client::new("unix:run/q").is_err());
    }

    #[test]
    fn members_found_through_a_socket_are_not_asked_in_clear_with_a_token() {
        let client =
            |endpoints: &str, token| Client::builder().endpoints(endpoints).token(token).build().expect("valid");
        let discovers = |client: Client| client.inner.endpoints.lock().discovers();
        assert!(!discovers(client("unix:/run/q", "secret")));
        assert!(discovers(Client::new("unix:/run/q").expect("valid")));
    }

    #[test]
    fn endpoints_without_port_or_with_tls_but_no_ca_are_refused() {
        for bad in ["", " , ", "localhost", "https://a:1", "a:1,b", "user@a:1", "a b:1"] {
            assert!(Client::new(bad).is_err(), "{bad:?}");
        }
        let error = Client::new("https://a:1").expect_err("no CA").to_string();
        assert!(error.contains("--ca FILE"), "{error}");
        let error = Client::builder().ca_file("/no/such/ca.pem").build().expect_err("no file").to_string();
        assert!(error.contains("/no/such/ca.pem"), "{error}");
        let error = Client::builder().identity_files("c", "k").build().expect_err("no CA").to_string();
        assert!(error.contains("--ca"), "{error}");
    }

    #[test]
    fn a_client_shows_no_token() {
        let client = Client::builder().endpoints("10.0.0.1:7100").token("qt_0123456789abcdef_example").build();
        let shown = format!("{:?}", client.expect("a client"));
        assert!(shown.contains("10.0.0.1:7100") && !shown.contains("qt_"), "{shown}");
    }
}
