//! The client port with TLS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::auth::authenticator::AuthSettings;
use quorate_node_core::tls::{Authority, Issued, Lifetime, Port, PortTls, Subject, TlsFiles};
use quorate_node_port::ServeSettings;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::raw::{PATIENCE, Server, api_settings, serve_settings};

struct Secured {
    server: Server,
    authority: Authority,
    dir: tempfile::TempDir,
}

/// The node that all of these tests ask.
fn node() -> Subject {
    Subject::Node { id: 1, hosts: vec!["127.0.0.1".into()] }
}

/// A CA in a directory of its own, and the certificate that it gave the node.
fn pki() -> (tempfile::TempDir, Authority, Issued) {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::create(dir.path(), Lifetime::days(1)).expect("a CA");
    let own = authority.issue(&node(), Lifetime::days(1)).expect("a certificate");
    (dir, authority, own)
}

fn issue(authority: &Authority, client: &str) -> Issued {
    authority.issue(&Subject::Client(client.into()), Lifetime::days(1)).expect("a certificate")
}

/// A list of all that was revoked, this one too.
fn revoke(authority: &Authority, revoked: Option<&Issued>) -> PathBuf {
    authority.revoke(revoked.map(|issued| issued.cert.as_path()), Lifetime::days(1)).expect("a list")
}

/// A list whose time is over.
fn outdate(authority: &Authority) -> PathBuf {
    let past = Lifetime { from: Duration::from_secs(1_000_000_000), until: Duration::from_secs(1_000_000_001) };
    authority.revoke(None, past).expect("a list")
}

async fn secured(asks_for_certificates: bool) -> Secured {
    secured_with(asks_for_certificates, api_settings()).await
}

async fn secured_with(asks_for_certificates: bool, api: ApiSettings) -> Secured {
    let (dir, authority, issued) = pki();
    let ca = asks_for_certificates.then(|| authority.cert());
    let files = TlsFiles { port: Port::Clients, cert: issued.cert, key: issued.key, ca, crl: None };
    let mut settings = serve_settings();
    settings.header_timeout = Duration::from_millis(500);
    settings.connections_max = 2_000;
    settings.tls = Some(PortTls::open(files).expect("good files"));
    let server = Server::start_with(api, settings).await;
    Secured { server, authority, dir }
}

/// A connection that believes this CA, shows this certificate, and offers this protocol.
async fn connect(
    server: &Server,
    ca: &Path,
    identity: Option<&Issued>,
    protocol: Option<&[u8]>,
) -> io::Result<TlsStream<TcpStream>> {
    let config = Arc::new(client(ca, identity, protocol));
    let stream = TcpStream::connect(server.addr).await?;
    shake(config, stream).await
}

async fn shake(config: Arc<ClientConfig>, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    TlsConnector::from(config).connect(name, stream).await
}

fn client(ca: &Path, identity: Option<&Issued>, protocol: Option<&[u8]>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).expect("PEM")).expect("a CA");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let builder = builder.with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Issued { cert, key }) => {
            let chain = vec![CertificateDer::from_pem_file(cert).expect("PEM")];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).expect("PEM")).expect("a pair")
        }
    };
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    config
}

fn request(path: &str) -> http::Request<Empty<bytes::Bytes>> {
    http::Request::builder().uri(path).header("host", "t").body(Empty::new()).expect("a request")
}

/// One HTTP/1.1 exchange; an error where the connection ended instead.
async fn exchange(stream: TlsStream<TcpStream>) -> Result<u16, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request("/livez")).await?.status().as_u16())
}

#[tokio::test]
async fn both_protocols_are_served_as_the_handshake_says() {
    let Secured { server, authority, dir: _dir } = secured(false).await;
    for protocol in [None, Some(&b"http/1.1"[..])] {
        let stream = connect(&server, &authority.cert(), None, protocol).await.expect("a handshake");
        assert_eq!(exchange(stream).await.expect("an answer"), 200);
    }
    let stream = connect(&server, &authority.cert(), None, Some(b"h2")).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    for _ in 0..3 {
        let answer = sender.send_request(request("https://t/livez")).await.expect("an answer");
        assert_eq!(answer.status(), 200);
    }
    let other = connect(&server, &authority.cert(), None, Some(b"quorate-peer")).await;
    assert!(other.is_err(), "a node of another cluster took this port for that of peers");
}

#[tokio::test]
async fn plain_http_is_told_to_say_https() {
    let Secured { server, dir: _dir, .. } = secured(false).await;
    for (method, body) in [("GET", &b""[..]), ("PUT", &[b'x'; 200_000])] {
        let answer = server.ask(method, "/v1/kv/k", &[], body).await;
        assert_eq!(answer.status, 400);
        let problem: quorate_api::Problem = serde_json::from_slice(&answer.body).expect("a problem document");
        assert!(problem.detail.contains("say https://"), "{problem:?}");
        assert_eq!((problem.status, problem.code.status()), (400, 400));
    }
}

#[tokio::test]
async fn a_handshake_has_the_time_of_a_head_and_a_place_among_the_connections() {
    let Secured { server, authority, dir: _dir } = secured(false).await;
    let (server, begun) = (&server, Instant::now());
    let ended = [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"].map(|first| async move {
        let mut raw = server.connect().await;
        raw.send(first).await;
        raw.closed().await;
        assert!(begun.elapsed() >= Duration::from_millis(400), "{first:?} ended after {:?}", begun.elapsed());
        assert!(begun.elapsed() < PATIENCE, "{first:?}");
    });
    // After the handshake the head is waited for, and no longer.
    let silent = async {
        let mut silent = connect(server, &authority.cert(), None, None).await.expect("a handshake");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("it is ended");
        assert!(ended.is_err() || rest.is_empty(), "nothing was asked: {rest:?}");
    };
    tokio::join!(futures::future::join_all(ended), silent);
}

#[tokio::test]
async fn client_certificates_are_believed_if_they_are_of_the_ca_and_nobody_needs_one() {
    let Secured { server, authority, dir: _dir } = secured(true).await;
    let (_foreign_dir, foreign, _) = pki();
    let (known, strange) = (issue(&authority, "app"), issue(&foreign, "app"));
    for identity in [None, Some(&known)] {
        let stream = connect(&server, &authority.cert(), identity, None).await.expect("a handshake");
        assert_eq!(exchange(stream).await.expect("an answer"), 200);
    }
    assert!(is_refused(&server, &authority, &strange).await, "a certificate of another CA");
    assert!(connect(&server, &foreign.cert(), None, None).await.is_err(), "the client does not know the CA");
}

/// What a `POST` of this content type, and with these other headers, is answered.
async fn posted(stream: TlsStream<TcpStream>, path: &str, kind: &str, lines: &str, body: &str) -> String {
    let (mut stream, length) = (stream, body.len());
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {kind}\r\n{lines}");
    let request = format!("{head}Content-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = Vec::new();
    // The end of a connection may come without that of TLS.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer");
    assert!(read.is_ok() || !answer.is_empty(), "{read:?}");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn no_page_of_another_origin_acts_by_the_certificate_of_its_reader() {
    let auth = AuthSettings::Guarded { root: None, jwt: None };
    let cors_origins = vec!["https://app.example.org".to_owned()];
    let Secured { server, authority, dir: _dir } =
        secured_with(true, ApiSettings { auth, cors_origins, ..api_settings() }).await;
    let root = issue(&authority, "root");
    let as_root = || async { connect(&server, &authority.cert(), Some(&root), None).await.expect("a handshake") };
    let op = r#"{"op":"upsert","key":"k","value":1}"#;
    let put = r#"{"key":"aw==","value":"MQ=="}"#;
    let message = "\0\0\0\0\u{6}\n\u{1}k\u{12}\u{1}1";
    let ways = [
        ("/v1/ops", "application/json", op, "HTTP/1.1 20"),
        ("/v3/kv/put", "application/json", put, "HTTP/1.1 200"),
        ("/etcdserverpb.KV/Put", "application/grpc", message, "HTTP/1.1 200"),
    ];
    for (path, kind, body, done) in ways {
        let stranger = connect(&server, &authority.cert(), None, None).await.expect("a handshake");
        posted(stranger, path, kind, "", body).await;
        assert_eq!(server.backend.commands(), [], "{path}: nobody says who they are");
        let written = posted(as_root().await, path, kind, "", body).await;
        assert!(written.starts_with(done) && server.backend.asked() == 1, "{path}: {written}");
        server.backend.forget_commands();
        let site = "Sec-Fetch-Site: cross-site\r\n";
        for origin in ["https://evil.example", "https://app.example.org", "null"] {
            for kind in [kind, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
                let lines = format!("Origin: {origin}\r\n{site}");
                let refused = posted(as_root().await, path, kind, &lines, body).await;
                let is_denied = refused.starts_with("HTTP/1.1 403") || refused.contains("grpc-status: 7");
                assert!(is_denied && server.backend.commands().is_empty(), "{path} {origin} {kind}: {refused}");
            }
        }
    }
    let own = "Origin: https://127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n";
    let written = posted(as_root().await, "/v1/ops", "application/json", own, op).await;
    assert!(written.starts_with("HTTP/1.1 20"), "the console acts by it: {written}");
}

/// Asks once, on a connection that stays open.
async fn is_served(stream: &mut TlsStream<TcpStream>) -> bool {
    let asked = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
    let mut bytes = [0u8; 2_048];
    let answered = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.expect("an answer or the end");
    asked.is_ok() && answered.is_ok_and(|count| bytes[..count].starts_with(b"HTTP/1.1 200"))
}

/// Whether nothing is served to who shows this certificate. Over TLS 1.3 a client is through before it is judged.
async fn is_refused(server: &Server, authority: &Authority, identity: &Issued) -> bool {
    match connect(server, &authority.cert(), Some(identity), None).await {
        Err(_) => true,
        Ok(mut stream) => !is_served(&mut stream).await,
    }
}

#[tokio::test]
async fn a_revoked_certificate_is_refused_and_ends_the_connections_that_are_open() {
    let (_dir, authority, own) = pki();
    let (app, other) = (issue(&authority, "app"), issue(&authority, "other"));
    let crl = Some(revoke(&authority, None));
    let ca = Some(authority.cert());
    let files = TlsFiles { port: Port::Clients, cert: own.cert, key: own.key, ca, crl };
    let tls = PortTls::open(files).expect("good files");
    let settings = ServeSettings { tls: Some(Arc::clone(&tls)), ..serve_settings() };
    let server = Server::start_with(api_settings(), settings).await;
    let mut open = connect(&server, &authority.cert(), Some(&app), None).await.expect("a handshake");
    let mut stays = connect(&server, &authority.cert(), Some(&other), None).await.expect("a handshake");
    let mut nameless = connect(&server, &authority.cert(), None, None).await.expect("a handshake");
    assert!(is_served(&mut open).await && is_served(&mut stays).await && is_served(&mut nameless).await);

    revoke(&authority, Some(&app));
    assert_eq!(tls.reload(), Ok(Some(1)), "one connection is ended");
    assert!(!is_served(&mut open).await, "it was open, and its certificate is revoked");
    assert!(is_served(&mut stays).await && is_served(&mut nameless).await, "others go on");
    assert!(is_refused(&server, &authority, &app).await, "no handshake with it any more");

    // A list whose time is over is not taken, and the last one holds on.
    outdate(&authority);
    let reason = tls.reload().expect_err("it is too old");
    assert!(reason.contains("tls_client_crl") && reason.contains("whose time is over"), "{reason}");
    assert!(tls.warnings().iter().any(|warning| warning.contains("were not taken")), "{:?}", tls.warnings());
    assert!(is_refused(&server, &authority, &app).await, "the last list holds on");
    // It keeps all that was revoked before.
    revoke(&authority, Some(&other));
    assert_eq!(tls.reload(), Ok(Some(1)));
    assert!(!is_served(&mut stays).await && is_served(&mut nameless).await);
}

#[tokio::test]
async fn a_list_of_before_is_not_taken_again() {
    let (_dir, authority, own) = pki();
    let app = issue(&authority, "app");
    let path = revoke(&authority, None);
    let empty = std::fs::read(&path).expect("a list");
    let (ca, crl) = (Some(authority.cert()), Some(path.clone()));
    let files = TlsFiles { port: Port::Clients, cert: own.cert, key: own.key, ca, crl };
    let tls = PortTls::open(files).expect("good files");
    revoke(&authority, Some(&app));
    let full = std::fs::read(&path).expect("a list");
    assert_eq!(tls.reload(), Ok(Some(0)));
    std::fs::write(&path, &empty).expect("written");
    let reason = tls.reload().expect_err("it is of before");
    assert!(reason.contains("tls_client_crl") && reason.contains("older than the one in use"), "{reason}");
    assert_eq!(tls.reload(), Ok(None), "it is told once");
    assert!(tls.warnings().iter().any(|warning| warning.contains("older than")), "{:?}", tls.warnings());
    std::fs::write(&path, [&empty[..], &full].concat()).expect("written");
    assert_eq!(tls.reload(), Ok(None), "nor is it beside the newer one");
    assert!(tls.warnings().iter().any(|warning| warning.contains("older than")), "{:?}", tls.warnings());
    std::fs::write(&path, &full).expect("written");
    // Nothing to take, where it was put back within one tick of the file's clock.
    assert!(matches!(tls.reload(), Ok(Some(0) | None)));
    assert!(tls.warnings().iter().all(|warning| !warning.contains("older than")), "{:?}", tls.warnings());
    revoke(&authority, None);
    assert_eq!(tls.reload(), Ok(Some(0)), "the next one is taken");
}

#[tokio::test]
async fn certificates_do_not_wait_for_a_list_whose_time_is_over() {
    let (_dir, authority, own) = pki();
    let app = issue(&authority, "app");
    revoke(&authority, Some(&app));
    let crl = Some(revoke(&authority, None));
    let ca = Some(authority.cert());
    let files = TlsFiles { port: Port::Clients, cert: own.cert.clone(), key: own.key.clone(), ca, crl };
    let tls = PortTls::open(files).expect("good files");
    let settings = ServeSettings { tls: Some(Arc::clone(&tls)), ..serve_settings() };
    let server = Server::start_with(api_settings(), settings).await;
    outdate(&authority);
    // In the place of the one before.
    for path in [&own.cert, &own.key] {
        std::fs::remove_file(path).expect("it is there");
    }
    let next = authority.issue(&node(), Lifetime::days(100)).expect("a certificate");
    assert_eq!((&next.cert, &next.key), (&own.cert, &own.key));
    assert_eq!(tls.reload(), Ok(Some(0)), "the certificate is taken");
    let left =
        |tls: &PortTls| tls.seconds_left().iter().find(|(label, _)| *label == "client_port").map(|(_, left)| *left);
    assert!(left(&tls).expect("it is there") > 50.0 * 24.0 * 3_600.0, "{:?}", tls.seconds_left());
    let reason = tls.reload().expect_err("the list is too old");
    assert!(reason.contains("tls_client_crl") && reason.contains("whose time is over"), "{reason}");
    assert_eq!(tls.reload(), Ok(None), "it is told once");
    assert!(tls.warnings().iter().any(|warning| warning.contains("whose time is over")), "{:?}", tls.warnings());
    assert!(is_refused(&server, &authority, &app).await, "the last list holds on");
    revoke(&authority, None);
    assert_eq!(tls.reload(), Ok(Some(0)));
    assert!(!tls.warnings().iter().any(|warning| warning.contains("whose time is over")), "{:?}", tls.warnings());
}

#[test]
fn lists_that_do_not_fit_are_refused_by_name() {
    let ((dir, authority, own), (_other_dir, other, _)) = (pki(), pki());
    let files = TlsFiles { port: Port::Clients, cert: own.cert, key: own.key, ca: Some(authority.cert()), crl: None };
    let fault = |crl: PathBuf| {
        let faults = TlsFiles { crl: Some(crl), ..files.clone() }.check().expect_err("it does not fit");
        assert_eq!((faults.len(), faults[0].field), (1, "tls_client_crl"), "{faults:?}");
        faults[0].detail.clone()
    };
    assert!(fault(dir.path().join("none")).contains("cannot be read"));
    assert!(fault(authority.cert()).contains("has no list in it"));
    assert!(fault(revoke(&other, None)).contains("has no list of the CA"));
    assert!(fault(outdate(&authority)).contains("whose time is over"));
    assert_eq!(TlsFiles { crl: Some(revoke(&authority, None)), ..files }.check(), Ok(()));
}

/// Strangers who ask for handshakes and leave them half done, again and again, until told to stop; how many there were.
async fn half_done_handshakes(from: std::net::Ipv4Addr, to: std::net::SocketAddr, stop: CancellationToken) -> usize {
    // What a client says first, up to the middle.
    let mut count = 0;
    let mut open = Vec::new();
    while !stop.is_cancelled() {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of loopback");
        if let Ok(mut stream) = socket.connect(to).await {
            let _cut = stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
            open.push(stream);
            count += 1;
        }
        if open.len() > 400 {
            open.drain(..100);
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_of_one_address_that_go_nowhere_keep_nobody_waiting() {
    let Secured { server, authority, dir: _dir } = secured(false).await;
    let stop = CancellationToken::new();
    let flood = tokio::spawn(half_done_handshakes([127, 0, 0, 9].into(), server.addr, stop.clone()));
    let mut took = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        let stream = connect(&server, &authority.cert(), None, None).await.expect("a handshake");
        assert_eq!(exchange(stream).await.expect("an answer"), 200);
        took.push(begun.elapsed());
    }
    stop.cancel();
    println!("{} half handshakes; the whole ones took {took:?}", flood.await.expect("no panic"));
    took.sort();
    // If connections were kept waiting, all ten would have been. One alone may have met a moment in which others had the processors.
    assert!(took[8] < Duration::from_millis(400), "{took:?}: the time of a head is 500 ms");
}

/// Shakes hands from this address and goes, again and again, until told to stop.
async fn whole_handshakes(
    config: Arc<ClientConfig>,
    (from, to): (Ipv4Addr, SocketAddr),
    done: Arc<AtomicUsize>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of loopback");
        let Ok(stream) = socket.connect(to).await else { continue };
        if shake(Arc::clone(&config), stream).await.is_ok() {
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_handshakes_by_the_hundred_keep_nobody_waiting_who_is_through() {
    const STRANGERS: usize = 200;
    const ENOUGH: usize = 500;
    let Secured { server, authority, dir: _dir } = secured(false).await;
    let mut honest = connect(&server, &authority.cert(), None, None).await.expect("a handshake");
    let mut config = client(&authority.cert(), None, None);
    // Each of them costs the node a signature.
    config.resumption = rustls::client::Resumption::disabled();
    let (config, done, stop) = (Arc::new(config), Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let way = (Ipv4Addr::new(127, 0, 0, 9), server.addr);
    let strangers: Vec<_> =
        (0..STRANGERS).map(|_| whole_handshakes(Arc::clone(&config), way, Arc::clone(&done), stop.clone())).collect();
    // A thread of their own: what the strangers do themselves is not to be seen.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(futures::future::join_all(strangers));
    });
    let _stops = stop.drop_guard();
    let (mut took, until) = (Vec::new(), Instant::now() + PATIENCE);
    while done.load(Ordering::Relaxed) < ENOUGH || took.len() < 100 {
        assert!(Instant::now() < until, "{done:?} handshakes in {PATIENCE:?}");
        let begun = Instant::now();
        assert!(is_served(&mut honest).await, "who is through is served");
        took.push(begun.elapsed());
    }
    took.sort();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{done:?} handshakes; {} requests beside them took {median:?}, {longest:?} at most", took.len());
    assert!(median < Duration::from_millis(50) && longest < Duration::from_secs(2), "{median:?}, {longest:?}");
}
