//! By which names this node is asked.
//!
//! Owns which names are a node's own: where nobody has to say who they are, a request has to name this node by one of them. A web page
//! can have its own name lead to an address of the reader's machine or network (DNS rebinding); its browser then lets it ask there, and
//! says so in `Host`. Never refuses a request: `pages` does.

use std::collections::BTreeSet;
use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

use crate::connection::origin::Origin;
use crate::net::PeerAddress;

/// Stands for every name.
const ANY: &str = "*";

/// The names by which a node may be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    /// In lower case and without a port; one that begins with a dot stands for all names that end so. `None`: by any.
    names: Option<BTreeSet<String>>,
}

impl AllowedHosts {
    /// By any name.
    pub const ALL: Self = Self { names: None };

    /// By these and, whatever they are, by names of loopback and by addresses. `*` among them is for any name.
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        let names: BTreeSet<_> =
            names.into_iter().map(|name| written(&name)).filter(|name| !is_address(name)).collect();
        if names.iter().any(|name| name == ANY) { Self::ALL } else { Self { names: Some(names) } }
    }

    /// The names, where there are not all.
    pub fn names(&self) -> Option<&BTreeSet<String>> {
        self.names.as_ref()
    }

    /// The name that a request over the network asks by and that is none of these. Who says none is no browser, nor is who says one that
    /// no address of a page can have: clients of etcd that know several nodes name all of them, as in `#initially=[10.0.0.1:2379]`.
    pub fn stranger<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap, from: &Origin) -> Option<&'a str> {
        let names = self.names.as_ref()?;
        if matches!(from.address, PeerAddress::Local { .. }) {
            return None;
        }
        said(uri, headers).find(|said| !said.starts_with('#') && !is_own(said, names))
    }
}

/// The names that a request asks by, with their ports. Bytes that are no text are no name.
pub fn said<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
    let in_header = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    uri.authority().map(|authority| authority.as_str()).into_iter().chain(in_header)
}

fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn is_own(said: &str, names: &BTreeSet<String>) -> bool {
    let host = host_of(said);
    let host = written(host);
    let is_loopback = host == "localhost" || host.ends_with(".localhost");
    is_address(&host)
        || is_loopback
        || names.iter().any(|name| match name.strip_prefix('.') {
            Some(domain) => host.strip_suffix(domain).is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
            None => *name == host,
        })
}

/// The host of `host:port`, in brackets where it is an address of IPv6.
pub fn host_of(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && (host.ends_with(']') || !host.contains(':')) =>
        {
            host
        }
        _ => text,
    }
}

/// A name as it is compared: names are the same in any case, and with the dot of the root or without.
fn written(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(&name);
    name.strip_suffix('.').unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::door::Door;

    fn judged(hosts: &AllowedHosts, host: Option<&str>, address: PeerAddress) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().expect("a header"));
        }
        let origin = Origin { address, certificate: None, door: Door::Clients };
        hosts.stranger(&Uri::from_static("/v1/kv/k"), &headers, &origin).is_none()
    }

    const NETWORK: PeerAddress =
        PeerAddress::Network(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1));

    #[test]
    fn a_node_is_asked_by_addresses_names_of_loopback_and_its_own_names_alone() {
        let hosts = AllowedHosts::of(["node-1.example.org".into(), ".internal".into(), "*.svc.cluster.local".into()]);
        for own in [
            "127.0.0.1:7100",
            "127.0.0.1",
            "[::1]:7100",
            "[::1]",
            "10.0.0.7:80",
            "localhost:7100",
            "LOCALHOST",
            "app.localhost",
            "localhost.",
            "node-1.example.org:7100",
            "Node-1.Example.Org.",
            "db.internal:7100",
            "q.default.svc.cluster.local",
        ] {
            assert!(judged(&hosts, Some(own), NETWORK), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:7100",
            "node-1.example.org.evil.example",
            "xnode-1.example.org",
            "internal",
            ".internal",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "",
            "example.org",
            "1",
            "127.0.0.1:7100:7100",
        ] {
            assert!(!judged(&hosts, Some(foreign), NETWORK), "{foreign}");
        }
        assert!(judged(&hosts, None, NETWORK), "no browser");
        assert!(judged(&hosts, Some("#initially=[10.0.0.1:2379;10.0.0.2:2379]"), NETWORK), "clientv3 of etcd");
        assert!(
            judged(&hosts, Some("evil.example"), PeerAddress::Local { uid: 7 }),
            "no web page asks over a Unix socket"
        );
    }

    #[test]
    fn every_name_is_fine_where_that_is_asked_for() {
        for hosts in [AllowedHosts::of(["*".into()]), AllowedHosts::ALL, AllowedHosts::default()] {
            assert!(judged(&hosts, Some("evil.example"), NETWORK));
        }
        assert!(!judged(&AllowedHosts::of([]), Some("evil.example"), NETWORK));
    }

    #[test]
    fn over_http_2_the_authority_is_what_counts() {
        let hosts = AllowedHosts::of([]);
        let origin = Origin { address: NETWORK, certificate: None, door: Door::Clients };
        let stranger = |uri: &'static str| {
            let (uri, headers) = (Uri::from_static(uri), HeaderMap::new());
            hosts.stranger(&uri, &headers, &origin).map(str::to_owned)
        };
        assert_eq!(stranger("http://127.0.0.1:7100/v1/kv/k"), None);
        assert_eq!(stranger("http://evil.example/v1/kv/k").as_deref(), Some("evil.example"));
    }
}
