//! Whether a request may go on, by its head alone: what keeps the web pages of other origins out, whichever protocol they try.
//!
//! Owns the first steps of the way in, in this order: the name that the node was asked by, the page that asks, the content type. Every
//! protocol has them judged before a byte of a body is read and before the request takes anything of this node, and writes a refusal in
//! its own form. Never looks at who asks.
//!
//! A page may have its reader's browser send a `GET`, and a `POST` with a content type that forms have, to any address, without asking
//! there first whether it may. The browser adds the certificate of its user by itself. It also says which page asks (`Origin`,
//! `Sec-Fetch-Site`), and no page can keep it from that.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use quorate_api::{Applied, ErrorCode};

use crate::connection::origin::Origin;
use crate::gateway::api::ApiSettings;
use crate::gateway::failure::Failure;
use crate::gateway::hosts::{self, AllowedHosts};
use crate::gateway::text::quoted;

/// Stands for every origin.
pub const ANY: &str = "*";

/// How far the page that asks is from this node. Browsers say it where the address is of loopback, or is asked over TLS.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The protocol of a request, and for HTTP whether its route is open to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The HTTP API where it tells what anybody may know: no read of that is refused, by whatever name load balancers ask for it.
    Open,
    /// The HTTP API.
    Api,
    /// etcd's protocol.
    Grpc,
    /// The same as JSON.
    Gateway,
}

/// What is known of a request before its body.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes; over HTTP/2 with the name that it asks by.
    pub uri: &'a Uri,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The far end of its connection.
    pub from: &'a Origin,
}

/// What the configuration of a node lets in.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    /// The names by which it may be asked.
    pub hosts: &'a AllowedHosts,
    /// The origins whose pages may ask, [`ANY`] for every one.
    pub origins: &'a [String],
}

/// Why a request may not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name that it asks by, quoted, is none of this node.
    #[error(
        "this node does not know itself by the name {0} of the header Host, and asks nobody who they are, so that a web page could have \
         led you here: ask by an address, or start the node with that name in --allowed-hosts, or with --auth required"
    )]
    Host(String),
    /// A page from there asks, and its origin is not configured.
    #[error(
        "a web page of {0} may not ask this node: name its origin in --cors-origins, or, where a proxy stands before the console, let it \
         keep the header Host"
    )]
    Origin(String),
    /// A page of another origin asks by the certificate of whoever looks at it.
    #[error(
        "a web page of another origin asks by the certificate that its browser added, which says nothing of the page: it has to send a \
         token of its own"
    )]
    Certificate,
    /// A page asks where none may.
    #[error("web pages may not ask here; see /v1 and --cors-origins")]
    Page,
    /// A page sends what a form could.
    #[error("a request from a web page (it has an `Origin`) must say `Content-Type: application/json`")]
    Form,
    /// A call over gRPC does not say that it is one, as forms cannot.
    #[error("a call over gRPC must say `content-type: application/grpc`")]
    NotGrpc,
}

/// Judges a request by its head.
pub fn judge(head: &Head<'_>, way: Way, allowed: Allowed<'_>) -> Result<(), Refusal> {
    if way == Way::Open && matches!(*head.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if let Some(name) = allowed.hosts.stranger(head.uri, head.headers, head.from) {
        return Err(Refusal::Host(quoted(name)));
    }
    match (way, head.is_of_page()) {
        (Way::Open | Way::Api, true) => judge_page(head, allowed),
        // The console does not speak etcd's protocol, and neither does any other page.
        (Way::Grpc | Way::Gateway, true) => Err(Refusal::Page),
        (Way::Grpc, false) if !is_grpc(head.headers) => Err(Refusal::NotGrpc),
        (_, false) => Ok(()),
    }
}

fn judge_page(head: &Head<'_>, allowed: Allowed<'_>) -> Result<(), Refusal> {
    // Nobody but its reader sees an address that a page leads to.
    if !head.is_of_own_page() && !head.opens_address() {
        judge_foreign_page(head, allowed)?;
    }
    if *head.method == Method::POST && !needs_leave(head.headers) { Err(Refusal::Form) } else { Ok(()) }
}

fn judge_foreign_page(head: &Head<'_>, allowed: Allowed<'_>) -> Result<(), Refusal> {
    if !allowed.has_origin_of(head) {
        return Err(Refusal::Origin(head.shown_origin()));
    }
    let is_borrowed = head.from.certificate.is_some() && !head.headers.contains_key(header::AUTHORIZATION);
    // A preflight does nothing yet.
    if is_borrowed && *head.method != Method::OPTIONS { Err(Refusal::Certificate) } else { Ok(()) }
}

impl Head<'_> {
    /// Whether a page asks.
    fn is_of_page(&self) -> bool {
        self.headers.contains_key(header::ORIGIN) || self.headers.contains_key(SEC_FETCH_SITE)
    }

    /// Whether that page came from this node, or somebody gave the address to the browser.
    fn is_of_own_page(&self) -> bool {
        match self.headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
            // Proxies may change `Host`, and the browser knows better.
            Some(b"same-origin") => true,
            // Programs within the browser ask so, too, and have an origin.
            Some(b"none") | None => self.headers.get_all(header::ORIGIN).iter().all(|origin| self.is_own(origin)),
            // A page that came over plain HTTP by the name of a node with TLS is among them.
            Some(_) => false,
        }
    }

    /// Whether the node was asked by the name that stands in an origin.
    fn is_own(&self, origin: &HeaderValue) -> bool {
        let parts = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        parts.is_some_and(|(_, name)| hosts::said(self.uri, self.headers).any(|said| said.eq_ignore_ascii_case(name)))
    }

    /// Whether a browser opens an address in a window, where the page that led there sees nothing of it. It names no origin then.
    fn opens_address(&self) -> bool {
        let says = |name: HeaderName, value: &str| self.headers.get(name).is_some_and(|said| said == value);
        let is_window = !self.headers.contains_key(SEC_FETCH_DEST) || says(SEC_FETCH_DEST, "document");
        let is_opened = says(SEC_FETCH_MODE, "navigate") && is_window;
        *self.method == Method::GET && is_opened && !self.headers.contains_key(header::ORIGIN)
    }

    /// Where a page comes from, for people.
    fn shown_origin(&self) -> String {
        self.headers.get(header::ORIGIN).map_or_else(|| "another origin".to_owned(), quoted)
    }
}

impl<'a> Allowed<'a> {
    /// As a node is configured.
    pub fn of(settings: &'a ApiSettings) -> Self {
        Self { hosts: &settings.hosts, origins: &settings.cors_origins }
    }

    /// Whether pages of every origin may ask.
    pub fn has_all_origins(&self) -> bool {
        self.origins.iter().any(|known| known == ANY)
    }

    /// Whether pages of this origin may.
    pub fn has_origin(&self, origin: &HeaderValue) -> bool {
        self.has_all_origins() || self.origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
    }

    /// Whether the page that asks may. A browser that names no origin does not let the page see the answer: then it may where all may.
    fn has_origin_of(&self, head: &Head<'_>) -> bool {
        let mut origins = head.headers.get_all(header::ORIGIN).iter().peekable();
        match origins.peek() {
            Some(_) => origins.all(|origin| self.has_origin(origin)),
            None => self.has_all_origins(),
        }
    }
}

/// Whether a browser asks for leave before it sends this content type: forms have `text/plain`, `multipart/form-data` and
/// `application/x-www-form-urlencoded`, and what has no type at all needs no leave either.
fn needs_leave(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("application/") && kind != "application/x-www-form-urlencoded"
}

fn is_grpc(headers: &HeaderMap) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let begins_so =
        |kind: &HeaderValue| kind.as_bytes().get(..GRPC.len()).is_some_and(|is| is.eq_ignore_ascii_case(GRPC));
    headers.get(header::CONTENT_TYPE).is_some_and(begins_so)
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (code, pointer, fault) = match refusal {
            Refusal::Host(_) => (ErrorCode::PermissionDenied, "header:Host", "not a name of this node"),
            Refusal::Origin(_) | Refusal::Certificate | Refusal::Page => {
                (ErrorCode::PermissionDenied, "header:Origin", "no page of that may ask this")
            }
            Refusal::Form | Refusal::NotGrpc => {
                (ErrorCode::UnsupportedMediaType, "header:Content-Type", "not supported here")
            }
        };
        Self::new(code, Applied::No, refusal.to_string()).at(pointer, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::door::Door;
    use crate::net::PeerAddress;

    /// The origin of a page that may ask where one may.
    const APP: &str = "https://app.example.org";
    static METHODS: [Method; 7] =
        [Method::GET, Method::HEAD, Method::PUT, Method::PATCH, Method::POST, Method::DELETE, Method::OPTIONS];
    /// What a page may send to any address without asking.
    const FORMS: [&str; 5] = [
        "",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-URLencoded ; charset=utf-8",
        "multipart/form-data; boundary=x",
    ];

    const ALL: &str = "GET HEAD PUT PATCH POST DELETE OPTIONS";
    const ALL_BUT_POST: &str = "GET HEAD PUT PATCH DELETE OPTIONS";
    const READS: &str = "GET HEAD";
    const NONE: &str = "";

    /// Who asks, in headers.
    const PROGRAM: &[&str] = &["host: 127.0.0.1:7100"];
    const OWN: &[&[&str]] = &[
        &["host: 127.0.0.1:7100", "origin: http://127.0.0.1:7100"],
        &["host: Node-1.example.org", "origin: https://node-1.example.org"],
        // Behind a proxy that has its own name for the node.
        &["host: 10.0.0.1:7100", "origin: https://console.example.org", "sec-fetch-site: same-origin"],
        &["host: 127.0.0.1:7100", "sec-fetch-site: same-origin"],
        &["host: 127.0.0.1:7100", "sec-fetch-site: none"],
    ];
    const FOREIGN: &[&[&str]] = &[
        &["host: 127.0.0.1:7100", "origin: https://evil.example"],
        &["host: 127.0.0.1:7100", "origin: https://evil.example", "sec-fetch-site: cross-site"],
        &["host: 127.0.0.1:7100", "origin: http://127.0.0.1:3000", "sec-fetch-site: same-site"],
        &["host: 127.0.0.1:7100", "origin: http://127.0.0.1:7100", "sec-fetch-site: cross-site"],
        &["host: 127.0.0.1:7100", "origin: http://127.0.0.1:7100", "origin: https://evil.example"],
        &["host: 127.0.0.1:7100", "origin: https://app.example.org", "origin: https://evil.example"],
        &["host: 127.0.0.1:7100", "origin: https://app.example.org.evil.example"],
        &["host: 127.0.0.1:7100", "origin: null"],
        // A form in a page, and a frame.
        &["host: 127.0.0.1:7100", "origin: null", "sec-fetch-site: cross-site", "sec-fetch-mode: navigate"],
        &["host: 127.0.0.1:7100", "sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: iframe"],
        &["host: 127.0.0.1:7100", "sec-fetch-site: cross-site", "sec-fetch-mode: no-cors", "sec-fetch-dest: image"],
        &["host: 127.0.0.1:7100", "sec-fetch-site: same-site"],
        &["host: 127.0.0.1:7100", "origin: chrome-extension://abc", "sec-fetch-site: none"],
    ];
    const LINK: &[&str] =
        &["host: 127.0.0.1:7100", "sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: document"];
    const PAGE: &[&str] = &["host: 127.0.0.1:7100", "origin: https://app.example.org", "sec-fetch-site: cross-site"];

    fn from(certificate: bool) -> Origin {
        let address = PeerAddress::Network(([127, 0, 0, 1], 1).into());
        Origin { address, certificate: certificate.then(|| "root".into()), door: Door::Clients }
    }

    /// What is said of a request with these headers, on a node that [`APP`] may ask, or every page.
    fn judged(method: &Method, way: Way, lines: &[&str], certificate: bool, open: bool) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header");
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        let hosts = AllowedHosts::of(["node-1.example.org".into()]);
        let origins = [if open { ANY } else { APP }.to_owned()];
        let (uri, from) = (Uri::from_static("/v1/ops"), from(certificate));
        let head = Head { method, uri: &uri, headers: &headers, from: &from };
        judge(&head, way, Allowed { hosts: &hosts, origins: &origins })
    }

    /// The methods that pass with this content type.
    fn passing(way: Way, lines: &[&str], kind: &str, certificate: bool) -> String {
        let kind = format!("content-type: {kind}");
        let lines: Vec<_> = lines.iter().copied().chain((!kind.ends_with(": ")).then_some(kind.as_str())).collect();
        let passes = METHODS.iter().filter(|method| judged(method, way, &lines, certificate, false).is_ok());
        passes.map(Method::as_str).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(way: Way, lines: &[&str], certificate: bool, with_leave: &str, as_form: &str) {
        let asked_for = match way {
            Way::Grpc => ["application/grpc", "application/grpc+proto", "Application/gRPC;x=y"],
            _ => ["application/json", "application/x-ndjson", "Application/JSON; charset=utf-8"],
        };
        for (kinds, expected) in [(&asked_for[..], with_leave), (&FORMS[..], as_form)] {
            for kind in kinds {
                let passes = passing(way, lines, kind, certificate);
                assert_eq!(passes, expected, "{way:?}, {kind:?}, certificate {certificate}: {lines:?}");
            }
        }
    }

    #[test]
    fn programs_may_do_everything_and_say_over_grpc_what_they_speak() {
        for certificate in [false, true] {
            check(Way::Open, PROGRAM, certificate, ALL, ALL);
            check(Way::Api, PROGRAM, certificate, ALL, ALL);
            // `curl -d` says that it sends a form.
            check(Way::Gateway, PROGRAM, certificate, ALL, ALL);
            check(Way::Grpc, PROGRAM, certificate, ALL, NONE);
            assert_eq!(passing(Way::Grpc, PROGRAM, "application/json", certificate), NONE);
        }
        let of_node = ["host: 127.0.0.1:7100", "sec-fetch-mode: cors"];
        check(Way::Api, &of_node, false, ALL, ALL);
    }

    #[test]
    fn pages_of_this_node_use_the_api_alone_and_send_no_forms() {
        for lines in OWN {
            for certificate in [false, true] {
                check(Way::Open, lines, certificate, ALL, ALL_BUT_POST);
                check(Way::Api, lines, certificate, ALL, ALL_BUT_POST);
                check(Way::Grpc, lines, certificate, NONE, NONE);
                check(Way::Gateway, lines, certificate, NONE, NONE);
            }
        }
    }

    #[test]
    fn pages_of_other_origins_see_what_anybody_may_know_and_do_nothing() {
        for lines in FOREIGN {
            for certificate in [false, true] {
                check(Way::Open, lines, certificate, READS, READS);
                check(Way::Api, lines, certificate, NONE, NONE);
                check(Way::Grpc, lines, certificate, NONE, NONE);
                check(Way::Gateway, lines, certificate, NONE, NONE);
            }
        }
        // Whatever else they bring.
        let with_token = [FOREIGN[0], &["authorization: Bearer x"]].concat();
        check(Way::Api, &with_token, false, NONE, NONE);
    }

    #[test]
    fn a_link_is_followed() {
        check(Way::Api, LINK, true, "GET", "GET");
        check(Way::Grpc, LINK, true, NONE, NONE);
        check(Way::Gateway, LINK, true, NONE, NONE);
    }

    #[test]
    fn pages_that_are_let_in_use_the_api_alone_and_no_certificate_of_their_readers() {
        check(Way::Open, PAGE, false, ALL, ALL_BUT_POST);
        check(Way::Api, PAGE, false, ALL, ALL_BUT_POST);
        check(Way::Open, PAGE, true, "GET HEAD OPTIONS", "GET HEAD OPTIONS");
        check(Way::Api, PAGE, true, "OPTIONS", "OPTIONS");
        let with_token = [PAGE, &["authorization: Bearer x"]].concat();
        check(Way::Api, &with_token, true, ALL, ALL_BUT_POST);
        for certificate in [false, true] {
            check(Way::Grpc, &with_token, certificate, NONE, NONE);
            check(Way::Gateway, &with_token, certificate, NONE, NONE);
        }
    }

    #[test]
    fn every_page_may_ask_where_that_is_configured() {
        for lines in FOREIGN {
            let lines = [*lines, &["content-type: application/json"]].concat();
            for method in &METHODS {
                assert_eq!(judged(method, Way::Api, &lines, false, true), Ok(()), "{method} {lines:?}");
                let borrowed = judged(method, Way::Api, &lines, true, true);
                assert_eq!(borrowed.is_ok(), *method == Method::OPTIONS, "{method} {lines:?}: {borrowed:?}");
                assert_eq!(judged(method, Way::Gateway, &lines, false, true), Err(Refusal::Page), "{method} {lines:?}");
            }
        }
    }

    #[test]
    fn the_name_is_judged_before_the_page_and_the_page_before_what_it_sends() {
        let rebound = ["host: evil.example:7100", "origin: http://evil.example:7100", "sec-fetch-site: same-origin"];
        for way in [Way::Api, Way::Grpc, Way::Gateway] {
            let refused = judged(&Method::POST, way, &rebound, false, false);
            assert_eq!(refused, Err(Refusal::Host("`evil.example:7100`".into())), "{way:?}");
        }
        assert_eq!(judged(&Method::GET, Way::Open, &rebound, false, false), Ok(()));
        let refused = |way, lines, certificate| judged(&Method::POST, way, lines, certificate, false);
        let foreign = Refusal::Origin("`https://evil.example`".into());
        assert_eq!(refused(Way::Api, FOREIGN[0], true), Err(foreign));
        assert_eq!(refused(Way::Api, PAGE, true), Err(Refusal::Certificate));
        assert_eq!(refused(Way::Api, PAGE, false), Err(Refusal::Form));
        assert_eq!(refused(Way::Grpc, FOREIGN[0], true), Err(Refusal::Page));
        assert_eq!(refused(Way::Grpc, PROGRAM, true), Err(Refusal::NotGrpc));
    }
}
