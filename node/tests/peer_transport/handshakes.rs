//! Who may talk to whom.

use std::time::Duration;

use bytes::{BufMut, Bytes};
use futures::FutureExt;
use openraft::RaftNetworkFactory;
use openraft::errors::RPCError;
use openraft::network::NetVote;
use openraft::raft::VoteRequest;
use quorate_machine::versions::Versions;
use quorate_node_replica::peer::counters::ChannelKind;
use quorate_node_replica::peer::frame::{Frame, FrameBuilder, FrameKind, FrameReader};
use quorate_node_replica::peer::handshake::{PROTOCOL_VERSION, Refusal, read_welcome};
use quorate_node_replica::peer::limits::ADDRESS_GREETINGS_MAX;
use quorate_node_replica::peer::message::{PeerRequest, PeerResponse};
use quorate_node_replica::peer::{CallError, MembershipStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::support::{CLUSTER, Node, Setup, bound, incarnation, leader_vote, node, option, soon};

const DIGEST: PeerRequest = PeerRequest::Digests;

async fn refusal(from: &Node, to: &Node, expect: Option<u64>, request: PeerRequest) -> String {
    match from.net.call(&to.addr, expect, request, soon()).await {
        Err(CallError::Refused(refusal)) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Until the server hangs up. A reset counts: the server closed with bytes of ours unread.
async fn read_to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reading = timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes));
    drop(reading.await.expect("the server did not hang up"));
    bytes
}

/// What a node answers to a first frame like this.
async fn refusal_of(hello: FrameBuilder, to: &Node) -> Refusal {
    let mut stream = TcpStream::connect(&to.addr).await.unwrap();
    stream.write_all(&hello.finish().into_bytes()).await.unwrap();
    let bytes = read_to_the_end(&mut stream).await;
    let frame = FrameReader::new(&bytes[..], 4_096).next().await.unwrap().unwrap();
    read_welcome(&frame).unwrap().refusal.unwrap()
}

#[tokio::test]
async fn nodes_of_different_clusters_refuse_each_other_in_a_sentence() {
    let one = node(1).await;
    let foreign = Setup { cluster: Some(0xf0), ..Setup::new(2) }.start().await;
    let reason = refusal(&one, &foreign, None, PeerRequest::Hello).await;
    assert!(reason.contains("belongs to cluster") && reason.contains(&format!("{:032x}", 0xf0)), "{reason}");
    assert_eq!(foreign.net.counters().channels[ChannelKind::App.code() as usize].1.refused, 1);
}

#[tokio::test]
async fn another_node_than_the_expected_one_is_refused() {
    let (one, two) = (node(1).await, node(2).await);
    let reason = refusal(&one, &two, Some(3), DIGEST).await;
    assert!(reason.contains("this is node 2, not node 3"), "{reason}");
}

#[tokio::test]
async fn a_node_whose_disk_was_replaced_is_refused_by_the_side_that_knew_it() {
    let (one, two) = (node(1).await, node(2).await);
    two.service.known.lock().insert(1, 5);
    let reason = refusal(&one, &two, Some(2), DIGEST).await;
    assert!(reason.contains("whose disk was replaced"), "{reason}");
    two.service.known.lock().insert(1, incarnation(1));
    one.service.known.lock().insert(2, 6);
    tokio::time::sleep(quorate_node_replica::peer::limits::REFUSED_FLOOR).await;
    let reason = refusal(&one, &two, Some(2), DIGEST).await;
    assert!(reason.contains("node 2 is known by disk"), "{reason}");
    // It may have been taken in with it while this node was away, which is to be found out.
    let hello = one.net.call(&two.addr, None, PeerRequest::Hello, soon()).await;
    assert!(hello.is_ok(), "{hello:?}");
}

#[tokio::test]
async fn raft_does_not_reach_a_member_on_another_disk() {
    let (mut one, two) = (node(1).await, node(2).await);
    let mut member = two.member();
    member.incarnation += 1;
    let mut client = one.net.new_client(2, &member).await;
    let vote = VoteRequest::new(leader_vote(), None);
    let answer = client.vote(vote, option()).await;
    assert!(matches!(answer, Err(RPCError::Unreachable(_))), "{answer:?}");
}

#[tokio::test]
async fn another_format_is_refused() {
    let one = node(1).await;
    let newer = Setup { format_version: 9, ..Setup::new(2) }.start().await;
    let reason = refusal(&one, &newer, None, DIGEST).await;
    assert!(reason.contains("writes format"), "{reason}");
}

#[tokio::test]
async fn a_node_that_does_not_know_what_the_cluster_agreed_to_is_refused_by_either_side() {
    let one = Setup { levels: (2, 2), ..Setup::new(1) }.start().await;
    let older = Setup { levels: (1, 1), ..Setup::new(2) }.start().await;
    for (from, to) in [(&one, &older), (&older, &one)] {
        let reason = refusal(from, to, None, DIGEST).await;
        assert!(reason.contains("node 2 knows feature levels up to 1") && reason.contains("newer"), "{reason}");
    }
    // A newer binary is welcome as long as the cluster has not gone on.
    let newer = Setup { levels: (3, 2), ..Setup::new(3) }.start().await;
    assert_eq!(one.net.call(&newer.addr, None, DIGEST, soon()).await, Ok(PeerResponse::Done));
}

#[tokio::test]
async fn a_node_does_not_connect_to_itself() {
    let one = node(1).await;
    let by_number = refusal(&one, &one, Some(1), DIGEST).await;
    assert!(by_number.contains("itself"), "{by_number}");
    let by_address = refusal(&one, &one, None, DIGEST).await;
    assert!(by_address.contains("itself"), "{by_address}");
}

#[tokio::test]
async fn before_adoption_only_the_questions_that_lead_to_it_are_answered() {
    let one = node(1).await;
    let fresh = Setup { cluster: None, ..Setup::new(2) }.start().await;
    let adopt = PeerRequest::Adopt { cluster_id: CLUSTER.unwrap() };
    assert_eq!(one.net.call(&fresh.addr, Some(2), adopt, soon()).await, Ok(PeerResponse::Done));
    let reason = refusal(&one, &fresh, Some(2), DIGEST).await;
    assert!(reason.contains("not of one cluster yet"), "{reason}");

    fresh.adopt();
    assert_eq!(one.net.call(&fresh.addr, Some(2), DIGEST, soon()).await, Ok(PeerResponse::Done));
}

#[tokio::test]
async fn raft_is_refused_before_adoption_and_a_node_adopted_meanwhile_connects_anew() {
    let one = node(1).await;
    let mut fresh = Setup { cluster: None, ..Setup::new(2) }.start().await;
    let vote = || VoteRequest::new(leader_vote(), None);
    let mut client = fresh.net.new_client(1, &one.member()).await;
    let answer = client.vote(vote(), option()).await;
    assert!(matches!(answer, Err(RPCError::Unreachable(_))), "{answer:?}");
    assert_eq!(fresh.net.call(&one.addr, Some(1), PeerRequest::Hello, soon()).await, Ok(PeerResponse::Done));

    fresh.adopt();
    assert_eq!(fresh.net.call(&one.addr, Some(1), DIGEST, soon()).await, Ok(PeerResponse::Done));
    tokio::time::sleep(quorate_node_replica::peer::limits::REFUSED_FLOOR).await;
    assert!(client.vote(vote(), option()).await.unwrap().vote_granted);
}

#[tokio::test]
async fn another_protocol_version_is_answered_with_a_sentence() {
    let two = node(2).await;
    let mut hello = FrameBuilder::new(FrameKind::Hello, 0, 0);
    hello.tail().put_slice(b"QRTp\x63\x00 whatever that version says");
    let refusal = refusal_of(hello, &two).await;
    assert!(refusal.reason.contains("protocol 99"), "{refusal}");
    let newer = Frame { kind: FrameKind::Welcome, id: 0, body: Bytes::from_static(b"QRTp\x63\x00") };
    assert!(read_welcome(&newer).unwrap_err().to_string().contains("protocol 99"));
}

/// A build of later, which knows a protocol that no build knows so far.
fn newer(id: u64) -> Setup {
    Setup { protocol: Versions::new(1, 2, 2), ..Setup::new(id) }
}

/// The protocol that each question to a node comes in.
fn protocols(to: &Node) -> UnboundedReceiver<u16> {
    let (sender, spoken) = unbounded_channel();
    to.service.on_request(move |from, _| {
        sender.send(from.protocol).expect("the test waits");
        async { PeerResponse::Done }.boxed()
    });
    spoken
}

#[tokio::test]
async fn a_node_and_one_of_the_build_before_talk_in_the_protocol_of_that() {
    let (new, old) = (newer(1).start().await, node(2).await);
    for (from, to) in [(&new, &old), (&old, &new), (&new, &old)] {
        let mut spoken = protocols(to);
        assert_eq!(from.net.call(&to.addr, Some(to.id), DIGEST, soon()).await, Ok(PeerResponse::Done));
        assert_eq!(spoken.recv().await, Some(1));
    }
    // One connection serves all calls. A hello that cannot be read names no channel, so its refusal counts for none.
    let (_, app) = &old.net.counters().channels[ChannelKind::App.code() as usize];
    assert_eq!((app.refused, app.accepted), (0, 1), "{app:?}");
}

#[tokio::test]
async fn two_of_this_build_talk_in_its_newest_protocol() {
    let (one, two) = (node(1).await, node(2).await);
    let mut spoken = protocols(&two);
    assert_eq!(one.net.call(&two.addr, Some(2), DIGEST, soon()).await, Ok(PeerResponse::Done));
    assert_eq!(spoken.recv().await, Some(PROTOCOL_VERSION));
}

#[tokio::test]
async fn garbage_and_oversized_frames_end_the_connection() {
    let two = node(2).await;
    for bytes in [b"GET / HTTP/1.1\r\nHost: quorate\r\n\r\n".to_vec(), vec![0xff; 64], vec![0; 64]] {
        let mut stream = TcpStream::connect(&two.addr).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(read_to_the_end(&mut stream).await, b"");
    }
}

#[tokio::test]
async fn a_hello_that_promises_more_than_it_holds_allocates_nothing() {
    let two = node(2).await;
    let mut hello = FrameBuilder::new(FrameKind::Hello, 0, 0);
    // Format, channel, no cluster, node 1, disk 1, then an address that claims to be 2^50 bytes long.
    hello.tail().put_slice(b"QRTp");
    hello.tail().put_u16_le(PROTOCOL_VERSION);
    hello.tail().put_u8(quorate_machine::codec::FORMAT_VERSION);
    hello.tail().put_slice(b"\x01\x02\x00\x01\x01\xfd");
    hello.tail().put_u64_le(1 << 50);
    let refusal = refusal_of(hello, &two).await;
    assert!(refusal.reason.contains("handshake:") && refusal.reason.contains("LimitExceeded"), "{refusal}");
}

#[tokio::test]
async fn a_silent_connection_is_closed_at_the_handshake_deadline() {
    let mut setup = Setup::new(2);
    setup.timings.handshake = Duration::from_millis(50);
    let two = setup.start().await;
    let mut stream = TcpStream::connect(&two.addr).await.unwrap();
    assert_eq!(read_to_the_end(&mut stream).await, b"");
}

/// Sends back what it is sent.
async fn echo() -> String {
    let (listener, addr) = bound().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                drop(tokio::io::copy(&mut read, &mut write).await);
            });
        }
    });
    addr
}

/// Says this to whoever comes, and hangs up.
async fn says(banner: &'static str) -> String {
    let (listener, addr) = bound().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(banner.as_bytes()).await);
            // What is unread when it closes would reset the connection before the banner arrives.
            drop(timeout(Duration::from_millis(500), stream.read(&mut [0; 4_096])).await);
        }
    });
    addr
}

/// A refusal ends a node that waits for its peers, so no stranger may be taken for one.
#[tokio::test]
async fn whoever_is_no_node_refuses_nobody() {
    let one = node(1).await;
    for (addr, why) in [
        (echo().await, "does not speak Quorate's peer protocol"),
        (says("HTTP/1.1 400 Bad Request\r\n\r\n").await, "speaks HTTP"),
        (says("SSH-2.0-OpenSSH_9.6\r\n").await, "speaks SSH"),
        (says("220 mail.example.org ESMTP\r\n").await, "a frame of"),
        (says("hi").await, "ended within a frame"),
        (says("").await, "closed during the handshake"),
        // A port that was free a moment ago another program may have.
        ("127.0.0.1:1".into(), "failed"),
    ] {
        match one.net.call(&addr, None, PeerRequest::Hello, soon()).await {
            Err(CallError::NotSent(reason)) => assert!(reason.contains(why), "{why}: {reason}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_is_no_quorate_node_is_refused_and_a_silent_one_given_up() {
    let mut setup = Setup::new(1);
    setup.timings.handshake = Duration::from_millis(100);
    let one = setup.start().await;
    let (listener, addr) = bound().await;
    let accepting = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        first.write_all(b"220 mail.example.org ESMTP ready when you are\r\n").await.unwrap();
        let silent = listener.accept().await.unwrap();
        (first, silent, listener)
    });
    for _ in 0..2 {
        let answer = one.net.call(&addr, None, DIGEST, soon()).await;
        assert!(matches!(answer, Err(CallError::NotSent(_))), "{answer:?}");
        tokio::time::sleep(quorate_node_replica::peer::limits::REDIAL_FLOOR).await;
    }
    drop(accepting.await.unwrap());
}

#[tokio::test]
async fn an_inbound_control_connection_ends_backoff_towards_the_peer() {
    let (mut one, two) = (node(1).await, node(2).await);
    let mut client = one.net.new_client(2, &two.member()).await;
    client.vote(VoteRequest::new(leader_vote(), None), option()).await.unwrap();
    let mut connected = two.raft.connected.subscribe();
    let waiting = connected.wait_for(|nodes| nodes == &[1]);
    timeout(Duration::from_secs(5), waiting).await.expect("Raft was not told").unwrap();
}

/// How many of these are open yet.
async fn still_open(crowd: &[TcpStream]) -> usize {
    let mut open = 0;
    for stream in crowd {
        let mut byte = [0u8; 1];
        match stream.try_read(&mut byte) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => open += 1,
            _ => {}
        }
    }
    open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_says_nothing_keeps_no_peer_out_and_pushes_itself_out() {
    let (one, two) = (node(1).await, node(2).await);
    let mut crowd = Vec::new();
    for _ in 0..3 * ADDRESS_GREETINGS_MAX {
        let stream = TcpStream::connect(&two.addr).await.unwrap();
        crowd.push(stream);
    }
    let begun = std::time::Instant::now();
    assert_eq!(one.net.call(&two.addr, Some(2), DIGEST, soon()).await, Ok(PeerResponse::Done));
    let took = begun.elapsed();
    println!("a peer was through after {took:?}");
    assert!(took < Duration::from_millis(1_000), "it waited for the crowd: {took:?}");
    let pushed_out = async {
        while still_open(&crowd).await > ADDRESS_GREETINGS_MAX {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(1), pushed_out).await.expect("all of the crowd stays");
    // Who has shaken hands is not counted with it any more.
    crowd.clear();
    for _ in 0..2 * ADDRESS_GREETINGS_MAX {
        crowd.push(TcpStream::connect(&two.addr).await.unwrap());
    }
    let refused = two.net.counters().channels[ChannelKind::App.code() as usize].1.refused;
    assert_eq!(one.net.call(&two.addr, Some(2), DIGEST, soon()).await, Ok(PeerResponse::Done));
    assert_eq!(one.net.counters().channels[ChannelKind::App.code() as usize].1.connects, 1, "its connection stayed");
    assert_eq!(two.net.counters().channels[ChannelKind::App.code() as usize].1.refused, refused);
}

#[tokio::test]
async fn a_removal_ends_connections_that_are_open() {
    let (one, two) = (node(1).await, node(2).await);
    let mut raft = one.net.clone().new_client(2, &two.member()).await;
    assert!(raft.vote(VoteRequest::new(leader_vote(), None), option()).await.unwrap().vote_granted);
    assert_eq!(one.net.call(&two.addr, Some(2), DIGEST, soon()).await, Ok(PeerResponse::Done));
    two.service.statuses.send_modify(|all| {
        all.insert(1, MembershipStatus::Removed);
    });
    let told = async {
        loop {
            match one.net.call(&two.addr, Some(2), DIGEST, soon()).await {
                Err(CallError::Refused(refusal)) => return refusal.reason,
                Ok(answer) => panic!("it was answered: {answer:?}"),
                // The connection that was open has ended, and no other is there yet.
                Err(CallError::Lost(_) | CallError::NotSent(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let reason = timeout(Duration::from_secs(5), told).await.expect("it is told why");
    assert!(reason.contains("was removed from this cluster"), "{reason}");
    let refused = async {
        while raft.vote(VoteRequest::new(leader_vote(), None), option()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(5), refused).await.expect("it still votes");
}
