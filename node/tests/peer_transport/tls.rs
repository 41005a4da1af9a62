//! Nodes with certificates: who believes whom, and what is said where one does not.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use openraft::RaftNetworkFactory;
use openraft::errors::RPCError;
use openraft::network::NetVote;
use openraft::raft::VoteRequest;
use quorate_node_core::tls::{Authority, Lifetime, Port, PortTls, Subject, TlsFiles};
use quorate_node_replica::peer::handshake::Refusal;
use quorate_node_replica::peer::members::MemberQuestion;
use quorate_node_replica::peer::message::{PeerRequest, PeerResponse};
use quorate_node_replica::peer::{CallError, MembershipStatus, PeerTimings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::calls::{count_of, outcomes};
use crate::support::{Node, Setup, leader_vote, node, option, soon};

fn files(authority: &Authority, id: u64, lifetime: Lifetime) -> TlsFiles {
    let hosts = vec!["127.0.0.1".to_owned()];
    let issued = authority.issue(&Subject::Node { id, hosts }, lifetime).unwrap();
    TlsFiles { port: Port::Peers(id), cert: issued.cert, key: issued.key, ca: Some(authority.cert()), crl: None }
}

/// A CA, in a directory of its own.
fn authority() -> (TempDir, Authority) {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::create(dir.path(), Lifetime::days(1)).unwrap();
    (dir, authority)
}

/// A node that has the certificate of node `as_node`.
async fn secured(authority: &Authority, id: u64, as_node: u64) -> Node {
    start(id, PortTls::open(files(authority, as_node, Lifetime::days(1))).unwrap()).await
}

async fn start(id: u64, tls: Arc<PortTls>) -> Node {
    let node = Setup { tls: Some(tls), ..Setup::new(id) }.start().await;
    let answer = |request| match request {
        PeerRequest::Forward { .. } => outcomes(request),
        _ => PeerResponse::Done,
    };
    node.service.on_request(move |_, request| async move { answer(request) }.boxed());
    node
}

/// Why a question does not come through. It must not have been acted on, and is worth another try.
async fn failure(from: &Node, to: &Node, expect: Option<u64>) -> String {
    match from.net.call(&to.addr, expect, PeerRequest::Hello, soon()).await {
        Err(CallError::NotSent(reason)) => reason,
        other => panic!("not an insecure peer: {other:?}"),
    }
}

#[tokio::test]
async fn nodes_of_one_ca_talk_and_large_questions_come_through_whole() {
    let (_dir, authority) = authority();
    let (one, two) = (secured(&authority, 1, 1).await, secured(&authority, 2, 2).await);
    assert_eq!(count_of(&one, &two, 3, 1_500_000).await, 3);
    assert_eq!(count_of(&two, &one, 800, 300).await, 800);
    let unknown = one.net.call(&two.addr, None, PeerRequest::Hello, soon()).await;
    assert!(unknown.is_ok(), "a node whose number is not known is reached: {unknown:?}");
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused_by_both_sides() {
    let ((_dir, ours), (_other, theirs)) = (authority(), authority());
    let (one, two) = (secured(&ours, 1, 1).await, secured(&theirs, 2, 2).await);
    for (from, to, id) in [(&one, &two, 2), (&two, &one, 1)] {
        let reason = failure(from, to, Some(id)).await;
        assert!(reason.contains("CA that is not known here") && reason.contains("--peer-tls-ca"), "{reason}");
    }
}

#[tokio::test]
async fn a_node_is_only_who_its_certificate_says() {
    let (_dir, authority) = authority();
    let (one, liar) = (secured(&authority, 1, 1).await, secured(&authority, 2, 9).await);
    let reason = failure(&one, &liar, Some(2)).await;
    assert!(reason.contains("of somebody else") && reason.contains("node-9.quorate"), "{reason}");
    let reason = failure(&one, &liar, None).await;
    assert!(reason.contains("says that it is node 2") && reason.contains("node-9.quorate"), "{reason}");
    // The side that is asked finds out by itself.
    let refused = liar.net.call(&one.addr, Some(1), PeerRequest::Hello, soon()).await;
    let Err(CallError::Refused(Refusal { reason, .. })) = refused else { panic!("not refused: {refused:?}") };
    assert!(reason.contains("says that it is node 2"), "{reason}");
}

#[tokio::test]
async fn a_client_certificate_of_the_same_ca_makes_no_node() {
    let (_dir, authority) = authority();
    let client = authority.issue(&Subject::Client("app".into()), Lifetime::days(1)).unwrap();
    let ca = Some(authority.cert());
    let faults = PortTls::open(TlsFiles { port: Port::Peers(2), cert: client.cert, key: client.key, ca, crl: None });
    let Err(faults) = faults else { panic!("a node cannot use it") };
    assert!(faults[0].detail.contains("is not for node 2"), "{faults:?}");
    for name in ["node-2.quorate", "NODE-2.QUORATE", "", "a/b", ".."] {
        assert!(authority.issue(&Subject::Client(name.into()), Lifetime::days(1)).is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let (_dir, authority) = authority();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let until = Duration::from_secs(now.as_secs() + 3);
    let lifetime = Lifetime { from: now - Duration::from_secs(60), until };
    let (one, old) = (
        secured(&authority, 1, 1).await,
        start(2, PortTls::open(files(&authority, 2, lifetime)).expect("it holds for some seconds")).await,
    );
    tokio::time::sleep((until + Duration::from_secs(1)).saturating_sub(now)).await;
    let reason = failure(&one, &old, Some(2)).await;
    assert!(reason.contains("has expired"), "{reason}");
    let reason = failure(&old, &one, Some(1)).await;
    assert!(reason.contains("says that our certificate has expired"), "{reason}");
    let Err(faults) = PortTls::open(files(&authority, 3, Lifetime { from: until, until })) else {
        panic!("it is over")
    };
    assert!(faults[0].detail.contains("has expired"), "{faults:?}");
}

#[tokio::test]
async fn nodes_with_and_without_tls_do_not_talk() {
    let (_dir, authority) = authority();
    let timings = PeerTimings { handshake: Duration::from_millis(500), ..Setup::new(1).timings };
    let (plain, secured) = (Setup { timings, ..Setup::new(1) }.start().await, secured(&authority, 2, 2).await);
    let reason = failure(&secured, &plain, Some(1)).await;
    assert!(reason.contains("TLS handshake failed") && reason.contains("both nodes need --peer-tls-cert"), "{reason}");
    let reason = failure(&plain, &secured, Some(2)).await;
    assert!(!reason.is_empty());
    let refused = |node: &Node| node.net.counters().channels.iter().map(|(_, channel)| channel.refused).sum::<u64>();
    assert_eq!((refused(&plain), refused(&secured)), (1, 1), "each has noticed");
    // Plain nodes still talk.
    let other = node(3).await;
    assert!(plain.net.call(&other.addr, Some(3), PeerRequest::Hello, soon()).await.is_ok());
}

#[tokio::test]
async fn noise_instead_of_a_handshake_costs_nobody_anything() {
    let (_dir, authority) = authority();
    let (one, two) = (secured(&authority, 1, 1).await, secured(&authority, 2, 2).await);
    for noise in [&b"\x16\x03\x01\xff\xff"[..], &[0x16; 600], &[0; 64], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(&two.addr).await.unwrap();
        stream.write_all(noise).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        // A reset is an end as well.
        drop(stream.read_to_end(&mut rest).await);
    }
    assert_eq!(count_of(&one, &two, 5, 100).await, 5);
}

#[tokio::test]
async fn whoever_shows_no_certificate_gets_no_word_in() {
    let (_dir, authority) = authority();
    let two = secured(&authority, 2, 2).await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.cert()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"quorate-peer".to_vec()];
    let stream = TcpStream::connect(&two.addr).await.unwrap();
    let name = ServerName::try_from("node-2.quorate").unwrap();
    // The handshake is over for us before the node judges what we have shown.
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let ended = stream.read(&mut [0; 16]).await.expect_err("it is told why");
    assert!(ended.to_string().contains("CertificateRequired"), "{ended}");
}

#[tokio::test]
async fn new_certificates_are_taken_whole_or_not_at_all() {
    let (_dir, authority) = authority();
    let (first, second) = (files(&authority, 2, Lifetime::days(1)), files(&authority, 4, Lifetime::days(1)));
    let tls = PortTls::open(first.clone()).unwrap();
    assert_eq!(tls.reload(), Ok(None), "nothing has changed");
    let kept = std::fs::read(&first.key).unwrap();
    std::fs::copy(&second.key, &first.key).unwrap();
    let reason = tls.reload().expect_err("the key of another certificate");
    assert!(reason.contains("peer_tls_key") && reason.contains("is not the key of"), "{reason}");
    assert_eq!(tls.reload(), Ok(None), "each version of the files is tried once");
    assert_eq!(tls.failures(), 1);
    assert!(tls.warnings().iter().any(|warning| warning.contains("were not taken")), "{:?}", tls.warnings());
    let (one, two) = (secured(&authority, 1, 1).await, start(2, Arc::clone(&tls)).await);
    assert_eq!(count_of(&one, &two, 1, 1).await, 1, "the old certificate is in use");
    std::fs::write(&first.key, kept).unwrap();
    assert_eq!(tls.reload(), Ok(Some(0)));
    assert!(tls.warnings().iter().all(|warning| !warning.contains("were not taken")));
    // One day is left, which is little.
    assert!(tls.warnings().iter().any(|warning| warning.contains("peer_tls_cert expires in")), "{:?}", tls.warnings());
    let left = tls.seconds_left();
    let labels: Vec<_> = left.iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, ["peer", "peer_ca"]);
    assert!(left.iter().all(|(_, seconds)| (1.0..=86_400.0).contains(seconds)), "{left:?}");
}

#[tokio::test]
async fn a_node_whose_certificate_is_revoked_is_cut_off_in_both_directions() {
    let (_dir, authority) = authority();
    let crl = authority.revoke(None, Lifetime::days(1)).unwrap();
    let open = |id| {
        let files = TlsFiles { crl: Some(crl.clone()), ..files(&authority, id, Lifetime::days(1)) };
        (files.cert.clone(), PortTls::open(files).unwrap())
    };
    let ((_, tls), (cert, their_tls)) = (open(1), open(2));
    let (one, two) = (start(1, Arc::clone(&tls)).await, start(2, their_tls).await);
    assert_eq!(one.net.call(&two.addr, Some(2), PeerRequest::Hello, soon()).await, Ok(PeerResponse::Done));
    assert_eq!(two.net.call(&one.addr, Some(1), PeerRequest::Hello, soon()).await, Ok(PeerResponse::Done));
    authority.revoke(Some(&cert), Lifetime::days(1)).unwrap();
    assert_eq!(tls.reload(), Ok(Some(2)), "the one that came and the one that was made");
    for (from, to, id) in [(&one, &two, 2), (&two, &one, 1)] {
        let told = async {
            loop {
                match from.net.call(&to.addr, Some(id), PeerRequest::Hello, soon()).await {
                    Err(CallError::NotSent(reason)) if reason.contains("revoked") => return,
                    Ok(answer) => panic!("it was answered: {answer:?}"),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(5), told).await.expect("it is told that a certificate is revoked");
    }
}

/// Why a question is refused.
async fn refusal(from: &Node, to: &Node, question: PeerRequest) -> String {
    match from.net.call(&to.addr, Some(to.id), question, soon()).await {
        Err(CallError::Refused(refusal)) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_node_that_nobody_knows_asks_only_to_become_a_member() {
    let (_dir, authority) = authority();
    let (one, two) = (secured(&authority, 1, 1).await, secured(&authority, 2, 2).await);
    two.service.statuses.send_modify(|all| {
        all.insert(1, MembershipStatus::Unknown);
    });
    let mut raft = one.net.clone().new_client(2, &two.member()).await;
    let answer = raft.vote(VoteRequest::new(leader_vote(), None), option()).await;
    assert!(matches!(answer, Err(RPCError::Unreachable(_))), "{answer:?}");
    for question in [PeerRequest::Digests, PeerRequest::ReadIndex, PeerRequest::BeginRepair] {
        let reason = refusal(&one, &two, question).await;
        assert!(reason.contains("no member of this cluster"), "{reason}");
    }
    let member = (&one.member()).into();
    let join = PeerRequest::Join { node_id: 1, member, as_standby: false, invitation: None };
    for question in [PeerRequest::Hello, join, PeerRequest::Members(MemberQuestion::AmI)] {
        assert_eq!(one.net.call(&two.addr, Some(2), question, soon()).await, Ok(PeerResponse::Done));
    }

    // It became one while this node was away: others say so. What only a leader answers, it does not.
    two.service.confirmed.lock().push(1);
    tokio::time::sleep(quorate_node_replica::peer::limits::REFUSED_FLOOR).await;
    assert!(raft.vote(VoteRequest::new(leader_vote(), None), option()).await.unwrap().vote_granted);
    let digest = async {
        while one.net.call(&two.addr, Some(2), PeerRequest::Digests, soon()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), digest).await.expect("others are asked again");
    let reason = refusal(&one, &two, PeerRequest::ReadIndex).await;
    assert!(reason.contains("no member of this cluster"), "{reason}");
}
