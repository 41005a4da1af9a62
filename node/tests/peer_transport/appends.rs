//! Append streams, votes and transfers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use openraft::RaftNetworkFactory;
use openraft::errors::RPCError;
use openraft::network::{NetStreamAppend, NetTransferLeader, NetVote};
use openraft::raft::{StreamAppendError, StreamAppendResult, TransferLeaderError, TransferLeaderRequest, VoteRequest};
use quorate_node_replica::peer::RaftRpc;
use quorate_node_replica::peer::counters::ChannelKind;
use quorate_node_replica::peer::gate::{Gate, Halt};
use quorate_node_replica::peer::raft_client::RaftClient;
use quorate_store::raft::TypeConfig;
use quorate_store::raft::wire::VoteRecord;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::support::{Node, Request, Setup, last_of, leader_vote, log_id, node, option, request};

async fn append_client(from: &Node, to: &Node) -> RaftClient {
    from.net.clone().new_client(to.id, &to.member()).await
}

/// What a stream of one request comes to.
async fn append(client: &mut RaftClient, only: Request) -> Vec<StreamAppendResult<TypeConfig>> {
    let answers = client.stream_append(stream::iter([only]), option()).await.unwrap();
    answers.map(|answer| answer.unwrap()).collect().await
}

fn connects(node: &Node, channel: ChannelKind) -> u64 {
    node.net.counters().channels[channel.code() as usize].1.connects
}

/// One-entry requests from `first` on, and how many of them were taken.
fn endless(first: u64, bytes: usize) -> (impl Stream<Item = Request> + Send + Unpin + 'static, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&taken);
    let requests = stream::iter(first..).map(move |index| {
        counter.fetch_add(1, SeqCst);
        request(index, index + 1, bytes)
    });
    (requests, taken)
}

#[tokio::test]
async fn answers_come_in_order_and_the_stream_ends_with_its_input() {
    let (one, two) = (node(1).await, node(2).await);
    let mut client = append_client(&one, &two).await;
    let requests: Vec<Request> = (10..510).map(|index| request(index, index + 1, 300)).collect();
    let answers = client.stream_append(stream::iter(requests.clone()), option()).await.unwrap();
    let matching: Vec<_> = answers.map(|answer| answer.unwrap().unwrap()).collect().await;
    assert!(matching.is_sorted(), "{matching:?}");
    assert_eq!(matching.last(), Some(&Some(log_id(509))));
    let parts = |request: &Request| (request.prev_log_id, request.entries.clone(), request.leader_commit);
    let seen: Vec<_> = two.raft.seen.borrow().iter().map(parts).collect();
    assert_eq!(seen, requests.iter().map(parts).collect::<Vec<_>>());
    assert_eq!((connects(&one, ChannelKind::Append), connects(&one, ChannelKind::Control)), (1, 0));
}

#[tokio::test]
async fn no_more_requests_are_taken_than_the_window_holds() {
    let (one, two) = (node(1).await, node(2).await);
    two.close_gate();
    let mut client = append_client(&one, &two).await;
    let (requests, taken) = endless(10, 10);
    let mut answers = client.stream_append(requests, option()).await.unwrap();
    assert!(timeout(Duration::from_millis(200), answers.next()).await.is_err(), "answered through a closed gate");
    assert_eq!(taken.load(SeqCst), 64);
    two.raft.gate.add_permits(1);
    assert_eq!(answers.next().await.unwrap().unwrap(), Ok(Some(log_id(10))));
    assert!(timeout(Duration::from_millis(100), answers.next()).await.is_err(), "answered through a closed gate");
    assert_eq!(taken.load(SeqCst), 65);
}

#[tokio::test]
async fn no_more_bytes_are_taken_than_the_window_holds() {
    let (one, two) = (node(1).await, node(2).await);
    two.close_gate();
    let mut client = append_client(&one, &two).await;
    let (requests, taken) = endless(10, 1_000_000);
    let mut answers = client.stream_append(requests, option()).await.unwrap();
    assert!(timeout(Duration::from_millis(300), answers.next()).await.is_err(), "answered through a closed gate");
    assert_eq!(taken.load(SeqCst), 9);
}

#[tokio::test]
async fn a_heartbeat_ends_as_soon_as_it_is_answered_and_never_waits_for_entries() {
    let (one, two) = (node(1).await, node(2).await);
    let mut bulk = append_client(&one, &two).await;
    let (requests, _) = endless(10, 1_000_000);
    two.close_gate();
    let mut stuck = bulk.stream_append(requests, option()).await.unwrap();
    assert!(timeout(Duration::from_millis(100), stuck.next()).await.is_err());

    let mut client = one.net.clone().new_heartbeat_client(2, &two.member()).await;
    // More than a connection may have open streams: those that ended must not count.
    for _ in 0..20 {
        let before = two.raft.seen.borrow().len();
        let heartbeat = stream::once(std::future::ready(request(10, 10, 0)));
        let mut answers = client.stream_append(heartbeat, option()).await.unwrap();
        let opening = async {
            let mut seen = two.raft.seen.subscribe();
            seen.wait_for(|seen| seen.len() > before).await.unwrap();
            // The stuck stream waits at the gate as well and may take a permit: two are enough for both.
            two.raft.gate.add_permits(2);
        };
        let beat = async { tokio::join!(answers.next(), opening) };
        let (answer, ()) = timeout(Duration::from_secs(2), beat).await.expect("the heartbeat was not answered");
        assert_eq!(answer.unwrap().unwrap(), Ok(Some(log_id(9))));
        let end = timeout(Duration::from_secs(5), answers.next()).await;
        assert!(matches!(end, Ok(None)), "{end:?}");
    }
    assert_eq!(connects(&one, ChannelKind::Control), 1);
}

#[tokio::test]
async fn a_conflict_ends_the_stream_but_not_the_connection() {
    let (one, two) = (node(1).await, node(2).await);
    *two.raft.conflict_after.lock() = Some(14);
    let mut client = append_client(&one, &two).await;
    let (requests, _) = endless(10, 10);
    let answers = client.stream_append(requests, option()).await.unwrap();
    let mut answers: Vec<_> = answers.map(|answer| answer.unwrap()).collect().await;
    assert_eq!(answers.pop(), Some(Err(StreamAppendError::Conflict(log_id(14)))));
    assert_eq!(answers.pop(), Some(Ok(Some(log_id(14)))));

    *two.raft.conflict_after.lock() = None;
    assert_eq!(append(&mut client, request(10, 12, 5)).await, [Ok(Some(log_id(11)))]);
    assert_eq!(connects(&one, ChannelKind::Append), 1);
}

#[tokio::test]
async fn a_dropped_stream_is_cancelled_at_the_peer() {
    let (one, two) = (node(1).await, node(2).await);
    two.close_gate();
    let mut client = append_client(&one, &two).await;
    let (requests, _) = endless(10, 10);
    let mut answers = client.stream_append(requests, option()).await.unwrap();
    let mut seen = two.raft.seen.subscribe();
    tokio::select! {
        answer = answers.next() => panic!("{answer:?} through a closed gate"),
        seen = seen.wait_for(|seen| !seen.is_empty()) => drop(seen.unwrap()),
    }
    drop(answers);
    let mut over = two.raft.streams_over.subscribe();
    let waiting = over.wait_for(|count| *count == 1);
    timeout(Duration::from_secs(5), waiting).await.expect("the peer's stream goes on").unwrap();

    two.raft.gate.add_permits(100);
    assert_eq!(append(&mut client, request(20, 21, 5)).await, [Ok(Some(log_id(20)))]);
    assert_eq!(connects(&one, ChannelKind::Append), 1);
}

#[tokio::test]
async fn an_unanswered_request_fails_the_stream_and_its_answer_reaches_no_later_one() {
    let mut setup = Setup::new(1);
    (setup.timings.heartbeat_ms, setup.timings.election_min_ms) = (25, 1_000);
    let deadline = setup.timings.append_deadline();
    assert!(deadline < Duration::from_millis(1_000));
    let (one, two) = (setup.start().await, node(2).await);
    two.close_gate();
    let mut client = append_client(&one, &two).await;
    let begun = Instant::now();
    let mut answers = client.stream_append(endless(10, 10).0, option()).await.unwrap();
    let answer = answers.next().await;
    assert!(matches!(answer, Some(Err(RPCError::Timeout(_)))), "{answer:?}");
    assert!(begun.elapsed() >= deadline, "{:?}", begun.elapsed());
    assert!(answers.next().await.is_none());
    drop(answers);

    two.raft.gate.add_permits(1_000);
    assert_eq!(append(&mut client, request(900, 901, 5)).await, [Ok(Some(log_id(900)))]);
    assert_eq!(connects(&one, ChannelKind::Append), 2);
}

#[tokio::test]
async fn a_long_request_travels_in_pieces_that_each_stand_for_themselves() {
    let (one, two) = (node(1).await, node(2).await);
    let mut client = append_client(&one, &two).await;
    let long = request(10, 40, 300_000);
    let answers = client.stream_append(stream::iter([long.clone()]), option()).await.unwrap();
    let matching: Vec<_> = answers.map(|answer| answer.unwrap().unwrap()).collect().await;
    assert_eq!(matching.last(), Some(&Some(log_id(39))));
    let pieces = two.raft.seen.borrow().clone();
    assert!(pieces.len() >= 8, "{} pieces", pieces.len());
    let mut prev = long.prev_log_id;
    for piece in &pieces {
        assert_eq!(piece.prev_log_id, prev);
        prev = last_of(piece);
    }
    let entries: Vec<_> = pieces.into_iter().flat_map(|piece| piece.entries).collect();
    assert_eq!(entries, long.entries);
}

#[tokio::test]
async fn a_broken_connection_is_a_network_error_and_a_dead_peer_unreachable() {
    let (one, two) = (node(1).await, node(2).await);
    two.close_gate();
    let mut client = append_client(&one, &two).await;
    let mut answers = client.stream_append(endless(10, 10).0, option()).await.unwrap();
    let mut seen = two.raft.seen.subscribe();
    let dying = async {
        seen.wait_for(|seen| !seen.is_empty()).await.unwrap();
        two.stop().await;
    };
    let (answer, ()) = tokio::join!(answers.next(), dying);
    assert!(matches!(answer, Some(Err(RPCError::Network(_)))), "{answer:?}");
    assert!(answers.next().await.is_none());
    drop(answers);
    tokio::time::sleep(quorate_node_replica::peer::limits::REDIAL_FLOOR).await;
    let dead = client.stream_append(endless(10, 10).0, option()).await.err();
    assert!(matches!(dead, Some(RPCError::Unreachable(_))), "{dead:?}");
}

/// openraft sleeps out its backoff where the input is asked for the next request. A client that fails before it asks
/// makes openraft try a dead peer again without any pause.
#[tokio::test]
async fn a_dead_peer_is_only_reported_after_a_request_was_taken() {
    let (one, two) = (node(1).await, node(2).await);
    let mut client = append_client(&one, &two).await;
    two.stop().await;
    let (hand_out, waiting) = tokio::sync::oneshot::channel();
    let input = Box::pin(stream::once(async { waiting.await.expect("a request is handed out") }));
    let mut opening = client.stream_append(input, option());
    assert!(timeout(Duration::from_millis(100), &mut opening).await.is_err(), "failed without asking for a request");
    hand_out.send(request(10, 11, 10)).expect("the stream waits for a request");
    let dead = opening.await.err();
    assert!(matches!(dead, Some(RPCError::Unreachable(_))), "{dead:?}");
}

#[tokio::test]
async fn a_peer_without_raft_and_this_node_itself_are_unreachable() {
    let one = node(1).await;
    let bare = Setup { with_raft: false, ..Setup::new(2) }.start().await;
    let mut client = append_client(&one, &bare).await;
    let vote = client.vote(VoteRequest::new(leader_vote(), None), option()).await;
    assert!(matches!(vote, Err(RPCError::Unreachable(_))), "{vote:?}");
    let mut answers = client.stream_append(endless(10, 10).0, option()).await.unwrap();
    let answer = answers.next().await;
    assert!(matches!(answer, Some(Err(RPCError::Unreachable(_)))), "{answer:?}");
    assert!(answers.next().await.is_none());

    let mut itself = append_client(&one, &one).await;
    let vote = itself.vote(VoteRequest::new(leader_vote(), None), option()).await;
    assert!(matches!(vote, Err(RPCError::Unreachable(_))), "{vote:?}");
}

#[tokio::test]
async fn votes_and_transfers_are_carried_out_by_the_peer() {
    let (one, two) = (node(1).await, node(2).await);
    let mut client = append_client(&one, &two).await;
    let mut ask = VoteRequest::new(leader_vote(), Some(log_id(8)));
    ask.leadership_transfer = true;
    let granted = client.vote(ask.clone(), option()).await.unwrap();
    assert!(granted.vote_granted);
    assert_eq!((granted.vote, granted.last_log_id), (leader_vote(), Some(log_id(8))));
    // The fake denies pre-votes; openraft's default would grant them without asking.
    assert!(!client.pre_vote(ask, option()).await.unwrap().vote_granted);
    let ask = TransferLeaderRequest::new(leader_vote(), 2, Some(log_id(5)));
    let answer = client.transfer_leader(ask, option()).await.unwrap();
    assert_eq!(answer, Err(TransferLeaderError::LogNotFlushed { expected: Some(log_id(5)), actual: None }));
    assert_eq!(connects(&one, ChannelKind::Control), 1);
}

#[tokio::test]
async fn a_process_that_just_began_votes_only_for_whom_its_leader_hands_over_to() {
    let two = node(2).await;
    let cautious = |votes_from| Gate { raft: two.raft.clone(), halt: Halt::default(), votes_from };
    let (long, now) = (std::time::Instant::now() + Duration::from_secs(3_600), std::time::Instant::now());
    let mut ask = VoteRequest::new(VoteRecord { term: 4, node: 1, committed: false }.into(), Some(log_id(8)));
    let (vote, pre_vote) = (cautious(long).vote(ask.clone()).await, cautious(long).pre_vote(ask.clone()).await);
    for refusal in [vote.unwrap(), pre_vote.unwrap()] {
        assert!(!refusal.vote_granted && !refusal.is_granted_to(&ask.vote), "{refusal:?}");
        assert_eq!(refusal.vote, leader_vote(), "its own vote stays");
    }
    assert!(cautious(now).vote(ask.clone()).await.unwrap().vote_granted, "once the lease is over");
    ask.leadership_transfer = true;
    assert!(cautious(long).vote(ask).await.unwrap().vote_granted, "the leader asked for it");
}

#[tokio::test]
async fn news_of_a_commit_travels_with_the_next_entries_or_soon_alone() {
    let (one, two) = (node(1).await, node(2).await);
    let mut client = append_client(&one, &two).await;
    let (sender, receiver) = mpsc::unbounded_channel();
    let input =
        stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) }).boxed();
    sender.send(request(10, 11, 5)).unwrap();
    let mut answers = client.stream_append(input, option()).await.unwrap();
    assert_eq!(answers.next().await.unwrap().unwrap(), Ok(Some(log_id(10))));

    sender.send(request(11, 11, 0)).unwrap();
    sender.send(request(11, 12, 5)).unwrap();
    assert_eq!(answers.next().await.unwrap().unwrap(), Ok(Some(log_id(11))));
    let lengths = || two.raft.seen.borrow().iter().map(|request| request.entries.len()).collect::<Vec<_>>();
    assert_eq!(lengths(), [1, 1], "the request without entries was sent although another followed at once");

    sender.send(request(12, 12, 0)).unwrap();
    let alone = timeout(Duration::from_secs(2), answers.next()).await.expect("the news was held back for good");
    assert_eq!(alone.unwrap().unwrap(), Ok(Some(log_id(11))));
    assert_eq!(lengths(), [1, 1, 0]);

    sender.send(request(12, 12, 0)).unwrap();
    drop(sender);
    assert_eq!(answers.next().await.unwrap().unwrap(), Ok(Some(log_id(11))));
    assert!(answers.next().await.is_none());
    assert_eq!(lengths(), [1, 1, 0, 0], "news at the end of a stream is news all the same");
}
