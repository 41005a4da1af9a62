//! Questions on the app channel.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use quorate_node_replica::peer::CallError;
use quorate_node_replica::peer::counters::ChannelKind;
use quorate_node_replica::peer::message::{Forwarded, PeerRequest, PeerResponse, ProposalOutcome};
use tokio::sync::{Notify, Semaphore, watch};

use crate::support::{Node, bound, node, soon};

fn forward(count: usize, bytes: usize) -> PeerRequest {
    let command = Forwarded { command: vec![1; bytes], within_ms: 1_000 };
    PeerRequest::Forward { commands: vec![command; count], is_urgent: false }
}

pub fn outcomes(request: PeerRequest) -> PeerResponse {
    let PeerRequest::Forward { commands, .. } = request else { panic!("{request:?} was not asked") };
    PeerResponse::Forwarded { outcomes: vec![ProposalOutcome::NotProposed; commands.len()] }
}

pub async fn count_of(from: &Node, to: &Node, count: usize, bytes: usize) -> usize {
    match from.net.call(&to.addr, Some(to.id), forward(count, bytes), soon()).await {
        Ok(PeerResponse::Forwarded { outcomes }) => outcomes.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn questions_share_a_connection_and_are_answered_in_any_order() {
    const CALLS: usize = 200;
    let (one, two) = (node(1).await, node(2).await);
    // Question n waits for its turn, and the turns are given out backwards once all are here.
    let turn = Arc::new(watch::Sender::new(usize::MAX));
    let arrived = Arc::new(Semaphore::new(0));
    let (turns, here) = (Arc::clone(&turn), Arc::clone(&arrived));
    two.service.on_request(move |_, request| {
        let (turns, here) = (Arc::clone(&turns), Arc::clone(&here));
        async move {
            let PeerRequest::Forward { commands, .. } = &request else { panic!("{request:?} was not asked") };
            let mine = commands.len();
            here.add_permits(1);
            turns.subscribe().wait_for(|turn| *turn == mine).await.unwrap();
            turns.send_replace(mine - 1);
            outcomes(request)
        }
        .boxed()
    });
    let asking = join_all((1..=CALLS).map(|n| count_of(&one, &two, n, 1)));
    let opening = async {
        arrived.acquire_many(CALLS as u32).await.unwrap().forget();
        turn.send_replace(CALLS);
    };
    let (counts, ()) = tokio::join!(asking, opening);
    assert_eq!(counts, (1..=CALLS).collect::<Vec<_>>());
    assert_eq!(one.net.counters().channels[ChannelKind::App.code() as usize].1.connects, 1);
}

#[tokio::test]
async fn large_questions_come_through_whole() {
    let (one, two) = (node(1).await, node(2).await);
    two.service.on_request(|_, request| async move { outcomes(request) }.boxed());
    assert_eq!(count_of(&one, &two, 800, 300).await, 800);
    assert_eq!(count_of(&one, &two, 3, 1_500_000).await, 3);
    let huge = one.net.call(&two.addr, Some(2), forward(9, 1_000_000), soon()).await;
    assert!(matches!(huge, Err(CallError::Refused(_))), "{huge:?}");
    assert_eq!(count_of(&one, &two, 1, 1).await, 1);
}

#[tokio::test]
async fn a_late_answer_is_lost_and_the_connection_lives_on() {
    let (one, two) = (node(1).await, node(2).await);
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    two.service.on_request(move |_, request| {
        let held = Arc::clone(&held);
        async move {
            if request == PeerRequest::ReadIndex {
                held.notified().await;
            }
            PeerResponse::Done
        }
        .boxed()
    });
    let deadline = Instant::now() + Duration::from_millis(50);
    let late = one.net.call(&two.addr, Some(2), PeerRequest::ReadIndex, deadline).await;
    assert!(matches!(late, Err(CallError::Lost(_))), "{late:?}");
    release.notify_one();
    assert_eq!(one.net.call(&two.addr, Some(2), PeerRequest::Digests, soon()).await, Ok(PeerResponse::Done));
    assert_eq!(one.net.counters().channels[ChannelKind::App.code() as usize].1.connects, 1);
}

#[tokio::test]
async fn a_peer_that_dies_loses_what_was_sent_and_nothing_is_sent_to_a_dead_one() {
    let (one, two) = (node(1).await, node(2).await);
    let arrived = Arc::new(Notify::new());
    let here = Arc::clone(&arrived);
    two.service.on_request(move |_, _| {
        let here = Arc::clone(&here);
        async move {
            here.notify_one();
            std::future::pending().await
        }
        .boxed()
    });
    let addr = two.addr.clone();
    let asking = one.net.call(&addr, Some(2), PeerRequest::ReadIndex, soon());
    let dying = async {
        arrived.notified().await;
        two.stop().await;
    };
    let (answer, ()) = tokio::join!(asking, dying);
    assert!(matches!(answer, Err(CallError::Lost(_))), "{answer:?}");
    tokio::time::sleep(quorate_node_replica::peer::limits::REDIAL_FLOOR).await;
    let dead = one.net.call(&addr, Some(2), PeerRequest::ReadIndex, soon()).await;
    assert!(matches!(dead, Err(CallError::NotSent(_))), "{dead:?}");
    // The failure is told again at once, without another attempt.
    let again = one.net.call(&addr, Some(2), PeerRequest::ReadIndex, soon()).await;
    assert_eq!(again, dead);
    assert_eq!(one.net.counters().channels[ChannelKind::App.code() as usize].1.connect_failures, 1);
}

#[tokio::test]
async fn a_peer_that_went_silent_is_given_up_before_the_deadline() {
    let mut setup = crate::support::Setup::new(1);
    setup.timings.election_min_ms = 50;
    let one = setup.start().await;
    let two = node(2).await;
    // A way that swallows everything once the handshake is through.
    let (listener, addr) = bound().await;
    let target = two.addr.clone();
    let way = tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = tokio::net::TcpStream::connect(target).await.unwrap();
        let (mut near_read, mut near_write) = near.into_split();
        let (mut far_read, mut far_write) = far.into_split();
        let out = tokio::spawn(async move { tokio::io::copy(&mut near_read, &mut far_write).await });
        let mut welcome = vec![0; 4_096];
        let read = tokio::io::AsyncReadExt::read(&mut far_read, &mut welcome).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut near_write, &welcome[..read]).await.unwrap();
        drop(out.await);
        drop((near_write, far_read));
    });
    let begun = Instant::now();
    let answer = one.net.call(&addr, Some(2), PeerRequest::Digests, soon()).await;
    assert!(matches!(&answer, Err(CallError::Lost(reason)) if reason.contains("silent")), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    way.await.unwrap();
}
