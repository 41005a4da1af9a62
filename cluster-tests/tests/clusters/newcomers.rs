//! Who is let into a cluster, and who never again: removed nodes, nodes that lost their disk, invitations.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster_harness::{Cluster, PATIENCE, Settings, eventually, write_secret};
use quorate_client::Client;
use quorate_client::api::{ErrorCode, MemberRole};
use quorate_machine::types::{Action, Change, Command, ContentKind, Key, Value, WriteOp};
use quorate_machine::{codec, command_codec, level};
use quorate_node::EXIT_REMOVED;
use quorate_node_core::net::Tcp;
use quorate_node_replica::peer::counters::ChannelKind;
use quorate_node_replica::peer::frame::FrameReader;
use quorate_node_replica::peer::handshake::{PROTOCOL, hello_frame, read_welcome};
use quorate_node_replica::peer::members::MemberQuestion;
use quorate_node_replica::peer::message::{Forwarded, PeerRequest, PeerResponse};
use quorate_node_replica::peer::{CallError, Levels, LocalPeer, PeerNet, PeerTimings};
use quorate_store::identity::{self, Identity};
use quorate_store::raft::wire::MemberRecord;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::members::wait_for_voters;
use crate::tls::{Pki, install, place, with_tls_between_nodes};

fn client(cluster: &Cluster) -> Client {
    cluster.client_without(None)
}

async fn wait_said(cluster: &Cluster, id: u64, sentence: &str) {
    eventually(&format!("node {id} says `{sentence}`"), PATIENCE, async || {
        let log = cluster.log_text(id);
        if log.contains(sentence) { Ok(()) } else { Err(log) }
    })
    .await;
}

/// Whoever has the identity of a node, and speaks to others in its name.
struct Impostor {
    local: LocalPeer,
    net: PeerNet,
}

impl Impostor {
    /// With what stands in its data directory.
    fn of(data_dir: &Path, id: u64) -> Self {
        let identity = identity::open(data_dir, id, 0).expect("it is there");
        Self::with(identity)
    }

    fn with(identity: Identity) -> Self {
        let incarnation = identity.incarnation;
        let member = MemberRecord { peer_addr: "127.0.0.1:1".into(), client_addr: String::new(), incarnation };
        let local = LocalPeer {
            identity: Arc::new(arc_swap::ArcSwap::from_pointee(identity)),
            member,
            protocol: PROTOCOL,
            format_version: codec::FORMAT_VERSION,
            levels: Levels { known: level::KNOWN, reached: Arc::new(|| level::KNOWN) },
            trusts_state: Arc::new(|| true),
        };
        let net = PeerNet::over(Arc::new(Tcp), local.clone(), PeerTimings::new(60, 180, 250), None);
        Self { local, net }
    }

    async fn ask(&self, cluster: &Cluster, to: u64, question: PeerRequest) -> Result<PeerResponse, CallError> {
        let by = Instant::now() + Duration::from_secs(5);
        self.net.call(&cluster.peer_address(to).to_string(), Some(to), question, by).await
    }

    /// Why a node refuses a channel.
    async fn refusal(&self, cluster: &Cluster, to: u64, channel: ChannelKind) -> Option<String> {
        let stream = TcpStream::connect(cluster.peer_address(to)).await.expect("it listens");
        let (read, mut write) = stream.into_split();
        let hello = hello_frame(&self.local.hello(channel, Some(to))).into_bytes();
        write.write_all(&hello).await.expect("it reads");
        let mut reader = FrameReader::new(read, 4_096);
        let frame = reader.next().await.expect("a frame").expect("an answer");
        read_welcome(&frame).expect("a welcome").refusal.map(|refusal| refusal.reason)
    }
}

fn put(key: &str) -> PeerRequest {
    let op = WriteOp {
        change: Change::Put(Value { kind: ContentKind::Bytes, data: b"forged".to_vec() }),
        ..WriteOp::removal(Key::new(key).expect("a key"), false)
    };
    let command = command_codec::encode_command(&Command::unnamed(Action::Write(op))).to_vec();
    PeerRequest::Forward { commands: vec![Forwarded { command, within_ms: 2_000 }], is_urgent: false }
}

/// What answers at the address of a peer may be anything: a port that another program took, a proxy, a machine that is not set up yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_waits_for_a_peer_in_whose_place_a_stranger_answers() {
    let mut cluster = Cluster::new(Settings::default());
    let place = TcpListener::bind(cluster.peer_address(3)).await.expect("the port is free");
    let stranger = tokio::spawn(async move {
        // One after the other, and then nobody: each is closed by the node, which hears its own words.
        while let Ok((mut stream, _)) = place.accept().await {
            let (mut read, mut write) = stream.split();
            drop(tokio::io::copy(&mut read, &mut write).await);
        }
    });
    cluster.start_node(1);
    cluster.start_node(2);
    for id in [1, 2] {
        wait_said(&cluster, id, "no node answers at the address of a peer").await;
    }
    stranger.abort();
    drop(stranger.await);
    cluster.start_node(3);
    cluster.wait_all_ready().await;
    wait_for_voters(&cluster, &[1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_node_is_nobody_on_any_lane_and_on_connections_that_were_open() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let gone = cluster.follower().await;
    let left: Vec<u64> = (1..=3).filter(|id| *id != gone).collect();
    let impostor = Impostor::of(&cluster.data_dir(gone), gone);
    let forwarded = impostor.ask(&cluster, leader, put("forged/before")).await;
    assert!(matches!(forwarded, Ok(PeerResponse::Forwarded { .. })), "it is a member yet: {forwarded:?}");
    assert_eq!(impostor.refusal(&cluster, leader, ChannelKind::Control).await, None);

    client(&cluster).members().remove(gone).force(true).await.expect("two are left");
    let (end, log) = cluster.wait_end(gone, PATIENCE).await;
    assert_eq!(end.code(), Some(EXIT_REMOVED), "{log}");
    for node in &left {
        for question in [put("forged/after"), PeerRequest::ReadIndex, PeerRequest::Members(MemberQuestion::List)] {
            match impostor.ask(&cluster, *node, question.clone()).await {
                Err(CallError::Refused(refusal)) => assert!(refusal.reason.contains("was removed"), "{refusal}"),
                other => panic!("{question:?} was answered by node {node}: {other:?}"),
            }
        }
        for channel in [ChannelKind::Control, ChannelKind::Append, ChannelKind::Snapshot] {
            let refusal = impostor.refusal(&cluster, *node, channel).await;
            assert!(refusal.as_ref().is_some_and(|why| why.contains("was removed")), "{channel:?}: {refusal:?}");
        }
    }
    // What tells it that it was removed it still hears, from whoever knows the leader.
    let asked = impostor.ask(&cluster, leader, PeerRequest::Members(MemberQuestion::AmI)).await;
    assert_eq!(asked.expect("an answer"), PeerResponse::Membership { is_member: false });
    let read = client(&cluster).get("forged/after").await.expect("a read");
    assert!(read.is_none(), "nothing was written in its name");

    // After a restart only the state knows it.
    let restarted = left.iter().copied().find(|id| *id != leader).expect("a follower");
    cluster.kill(restarted).await;
    cluster.start_node(restarted);
    cluster.wait_ready(restarted).await;
    let refusal = impostor.refusal(&cluster, restarted, ChannelKind::Append).await;
    assert!(refusal.is_some_and(|why| why.contains("was removed")));
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_disk_comes_back_under_its_id_by_an_invitation_alone() {
    let mut cluster = Cluster::start().await;
    let lost = cluster.follower().await;
    let secret = tempfile::tempdir().expect("a directory");
    let file = secret.path().join("join.token");
    cluster.kill(lost).await;
    client(&cluster).members().remove(lost).force(true).await.expect("two are left");
    cluster.wipe(lost);
    cluster.set_flag(lost, "--join-token-file", file.display());
    cluster.start_node(lost);
    wait_said(&cluster, lost, &format!("node {lost} was removed from this cluster: give this machine")).await;

    // One that is for anybody does not let in who was removed.
    let anybody = client(&cluster).members().invite().await.expect("an invitation");
    write_secret(&file, &anybody.token.0);
    wait_said(&cluster, lost, "only an invitation that names the id lets it in").await;
    let listed = client(&cluster).members().invitations().await.expect("a list").invitations;
    assert_eq!((listed.len(), listed[0].used_by), (1, None), "{listed:?}");
    client(&cluster).members().revoke_invitation(&anybody.id).await.expect("it is there");
    let again = client(&cluster).members().revoke_invitation(&anybody.id).await.expect_err("it is gone");
    assert_eq!(again.code(), Some(ErrorCode::NotFound));

    let named = client(&cluster).members().invite().node(lost).await.expect("an invitation");
    write_secret(&file, &named.token.0);
    cluster.wait_ready(lost).await;
    wait_for_voters(&cluster, &[1, 2, 3]).await;
    eventually("what was used is gone", PATIENCE, async || {
        let left = client(&cluster).members().invitations().await.map_err(|error| error.to_string())?.invitations;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_lost_its_disk_leaves_no_dead_member_behind() {
    let mut cluster = Cluster::start().await;
    let standby = cluster.new_id();
    cluster.add_standby(standby);
    cluster.set_flag(standby, "--spare-node-ids", "104,204");
    cluster.bring_up(standby).await;
    for next in [104, 204] {
        cluster.kill(standby).await;
        cluster.wipe(standby);
        cluster.start_node(standby);
        eventually(&format!("node {next} is the standby, and no other"), PATIENCE, async || {
            let answer = client(&cluster).members().list().await.map_err(|error| error.to_string())?;
            let learners = answer.members.iter().filter(|member| member.role != MemberRole::Voter);
            let learners: Vec<u64> = learners.map(|member| member.id).collect();
            if learners == [next] { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
    }
    wait_for_voters(&cluster, &[1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_its_id_where_something_else_is_wrong_with_it() {
    let mut cluster = Cluster::start().await;
    let home = tempfile::tempdir().unwrap();
    let newcomer = cluster.new_id();
    cluster.add_node(newcomer);
    cluster.set_flag(newcomer, "--spare-node-ids", "104,204");
    // A directory cannot be read as a file.
    cluster.set_flag(newcomer, "--join-token-file", home.path().display());
    cluster.start_node(newcomer);
    let (status, log) = cluster.wait_end(newcomer, PATIENCE).await;
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("join_token_file") && !log.contains("going on under the next"), "{log}");
    let marker = identity::read(&cluster.data_dir(newcomer)).unwrap().unwrap();
    assert_eq!(marker.node_id, newcomer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nodes_use_tls_a_newcomer_needs_an_invitation_of_its_own() {
    let (mut cluster, dir, pki) = with_tls_between_nodes().await;
    let token = dir.path().join("join.token");
    for id in [4, 5] {
        cluster.add_node(id);
        set_certificates(&mut cluster, dir.path(), &pki, id);
        cluster.set_flag(id, "--join-token-file", token.display());
    }
    cluster.start_node(4);
    wait_said(&cluster, 4, "takes in nobody without an invitation").await;
    write_secret(&token, "not a token");
    wait_said(&cluster, 4, "is no invitation: it has the form").await;
    let invitation = client(&cluster).members().invite().await.expect("an invitation");
    write_secret(&token, format!("{}\n", invitation.token.0));
    cluster.wait_ready(4).await;
    wait_for_voters(&cluster, &[1, 2, 3, 4]).await;
    // It is used up.
    cluster.start_node(5);
    wait_said(&cluster, 5, "there is no such invitation; it may have been used or revoked").await;
    wait_for_voters(&cluster, &[1, 2, 3, 4]).await;
    // Members need none to come back.
    std::fs::remove_file(&token).expect("it is there");
    cluster.kill(4).await;
    cluster.start_node(4);
    cluster.wait_ready(4).await;
}

fn set_certificates(cluster: &mut Cluster, dir: &Path, pki: &Pki, id: u64) {
    pki.issue(id);
    install(dir, id, pki, &[pki]);
    for (flag, file) in [("--peer-tls-cert", "cert"), ("--peer-tls-key", "key"), ("--peer-tls-ca", "ca")] {
        cluster.set_flag(id, flag, place(dir, id, file).display());
    }
}
