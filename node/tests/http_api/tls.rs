//! The client port with TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_node::tls::{Authority, Issued, Lifetime, Port, PortTls, Subject, TlsFiles};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::raw::{PATIENCE, Server, api_settings, serve_settings};

struct Secured {
    server: Server,
    authority: Authority,
    dir: tempfile::TempDir,
}

async fn secured(asks_for_certificates: bool) -> Secured {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::create(dir.path(), Lifetime::days(1)).expect("a CA");
    let subject = Subject::Node { id: 1, hosts: vec!["127.0.0.1".into()] };
    let issued = authority.issue(&subject, Lifetime::days(1)).expect("a certificate");
    let ca = asks_for_certificates.then(|| authority.cert());
    let files = TlsFiles { port: Port::Clients, cert: issued.cert, key: issued.key, ca };
    let mut settings = serve_settings();
    settings.header_timeout = Duration::from_millis(500);
    settings.tls = Some(PortTls::open(files).expect("good files"));
    let server = Server::start_with(api_settings(), settings).await;
    Secured { server, authority, dir }
}

/// A connection that believes this CA, shows this certificate, and offers this protocol.
async fn connect(
    server: &Server,
    ca: &Path,
    identity: Option<&Issued>,
    protocol: Option<&[u8]>,
) -> io::Result<TlsStream<TcpStream>> {
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
    let stream = TcpStream::connect(server.addr).await?;
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
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
    for first in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"] {
        let begun = Instant::now();
        let mut raw = server.connect().await;
        raw.send(first).await;
        raw.closed().await;
        assert!(begun.elapsed() >= Duration::from_millis(400), "{first:?} ended after {:?}", begun.elapsed());
        assert!(begun.elapsed() < PATIENCE, "{first:?}");
    }
    // After the handshake the head is waited for, and no longer.
    let mut silent = connect(&server, &authority.cert(), None, None).await.expect("a handshake");
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("it is ended");
    assert!(ended.is_err() || rest.is_empty(), "nothing was asked: {rest:?}");
}

#[tokio::test]
async fn client_certificates_are_believed_if_they_are_of_the_ca_and_nobody_needs_one() {
    let Secured { server, authority, dir: _dir } = secured(true).await;
    let foreign_dir = tempfile::tempdir().expect("a directory");
    let foreign = Authority::create(foreign_dir.path(), Lifetime::days(1)).expect("a CA");
    let app = Subject::Client("app".into());
    let known = authority.issue(&app, Lifetime::days(1)).expect("a certificate");
    let strange = foreign.issue(&app, Lifetime::days(1)).expect("a certificate");
    for identity in [None, Some(&known)] {
        let stream = connect(&server, &authority.cert(), identity, None).await.expect("a handshake");
        assert_eq!(exchange(stream).await.expect("an answer"), 200);
    }
    let refused = match connect(&server, &authority.cert(), Some(&strange), None).await {
        Ok(stream) => exchange(stream).await.is_err(),
        Err(_) => true,
    };
    assert!(refused, "a certificate of another CA");
    assert!(connect(&server, &foreign.cert(), None, None).await.is_err(), "the client does not know the CA");
}
