//! Barriers and latches: all go on together, also where nodes die meanwhile, and nothing counts twice.

use std::time::Duration;

use cluster_harness::{Caller, Cluster, PATIENCE, Request, eventually};
use quorate_client::api::{BarrierAnswer, BarrierState, ErrorCode, LatchAnswer};
use serde_json::json;

const PARTIES: u64 = 3;

async fn enter(caller: &mut Caller, session: &str, wait_ms: u64) -> BarrierAnswer {
    let body = json!({"session": session, "parties": PARTIES, "wait_ms": wait_ms});
    caller.post("/v1/barriers/b/enter", &body).await.expect_success().json()
}

async fn leave(caller: &mut Caller, session: &str, wait_ms: u64) -> BarrierAnswer {
    let body = json!({"session": session, "wait_ms": wait_ms});
    caller.post("/v1/barriers/b/leave", &body).await.expect_success().json()
}

async fn show(caller: &mut Caller) -> BarrierAnswer {
    caller.insist(&Request::get("/v1/barriers/b")).await.expect_success().json()
}

/// Fault: the leader is killed while parties wait at all nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_opens_for_all_at_one_revision_and_can_be_used_again() {
    let mut cluster = Cluster::start().await;
    let mut first = cluster.caller(1);
    let mut sessions = Vec::new();
    for n in 0..PARTIES {
        sessions.push(first.session(120_000, &format!("p{n}")).await);
    }
    for generation in 0..2 {
        let mut waiting = tokio::task::JoinSet::new();
        for n in 0..PARTIES - 1 {
            let (mut caller, session) = (cluster.caller(1 + n), sessions[n as usize].clone());
            waiting.spawn(async move {
                loop {
                    let answer = enter(&mut caller, &session, 5_000).await;
                    if answer.state == BarrierState::Open {
                        return answer;
                    }
                }
            });
        }
        eventually("all but one are in it", PATIENCE, async || {
            let shown = show(&mut first).await;
            if u64::from(shown.entered) == PARTIES - 1 { Ok(()) } else { Err(format!("{shown:?}")) }
        })
        .await;
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        cluster.leader().await;
        assert_eq!(show(&mut first).await.state, BarrierState::Waiting, "one is missing");
        let last = enter(&mut first, &sessions[2], 0).await;
        assert_eq!((last.state, u64::from(last.entered)), (BarrierState::Open, PARTIES));
        let opened = last.opened_revision.expect("open");
        while let Some(answer) = waiting.join_next().await {
            assert_eq!(answer.expect("told").opened_revision, Some(opened), "generation {generation}");
        }
        cluster.bring_up(leader).await;
        let late = first.session(120_000, &format!("late{generation}")).await;
        let body = json!({"session": late, "parties": PARTIES});
        assert_eq!(first.post("/v1/barriers/b/enter", &body).await.problem().code, ErrorCode::Locked);

        let gone = leave(&mut first, &sessions[0], 0).await;
        assert_eq!((gone.state, u64::from(gone.entered)), (BarrierState::Open, PARTIES - 1));
        let mut other = cluster.caller(2);
        let (second, third) = (sessions[1].clone(), sessions[2].clone());
        let (waited, ()) = tokio::join!(leave(&mut other, &second, 20_000), async {
            eventually("one is left", PATIENCE, async || {
                let shown = show(&mut first).await;
                if shown.entered == 1 { Ok(()) } else { Err(format!("{shown:?}")) }
            })
            .await;
            leave(&mut first, &third, 0).await;
        });
        assert_eq!((waited.state, waited.entered), (BarrierState::Empty, 0), "who waits is told that all have left");
    }
    // Another number of parties is refused while it is in use; the end of a session is as good as leaving.
    let brief = first.session(3_000, "brief").await;
    enter(&mut first, &brief, 0).await;
    let body = json!({"session": sessions[0], "parties": 5});
    assert_eq!(first.post("/v1/barriers/b/enter", &body).await.problem().code, ErrorCode::DifferentSettings);
    eventually("the session has left", PATIENCE, async || match show(&mut first).await.state {
        BarrierState::Empty => Ok(()),
        state => Err(format!("{state:?}")),
    })
    .await;
    cluster.assert_agreement().await;
}

/// Fault: the leader is killed between two counts, while others wait at all nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_latch_opens_after_its_counts_and_none_counts_twice() {
    let mut cluster = Cluster::start().await;
    let mut first = cluster.caller(1);
    let put = |count: u64| Request::new("PUT", "/v1/latches/t").json(json!({"count": count}).to_string());
    let made: LatchAnswer = first.insist(&put(3)).await.expect_success().json();
    assert_eq!((made.left, made.open), (3, false));
    let same: LatchAnswer = first.insist(&put(3)).await.expect_success().json();
    assert_eq!(same.left, 3);
    assert_eq!(first.insist(&put(4)).await.problem().code, ErrorCode::DifferentSettings);
    let mut waiting = tokio::task::JoinSet::new();
    for id in cluster.ids() {
        let mut caller = cluster.caller(id);
        waiting.spawn(async move {
            loop {
                let answer = caller.insist(&Request::get("/v1/latches/t?wait_ms=5000")).await.expect_success();
                let answer: LatchAnswer = answer.json();
                if answer.open {
                    return answer.opened_revision;
                }
            }
        });
    }
    for n in 0..3 {
        let body = json!({"request_id": format!("count-{n}")});
        let counted: LatchAnswer = first.post("/v1/latches/t/count_down", &body).await.expect_success().json();
        assert_eq!(counted.left, 2 - n);
        if n == 1 {
            let leader = cluster.leader().await;
            cluster.kill(leader).await;
            let again: LatchAnswer = first.post("/v1/latches/t/count_down", &body).await.expect_success().json();
            assert!(again.replayed && again.left == 1, "counted once: {again:?}");
            cluster.bring_up(leader).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(waiting.try_join_next().is_none(), "somebody went on too early");
        }
    }
    let mut opened = Vec::new();
    while let Some(done) = waiting.join_next().await {
        opened.push(done.expect("told").expect("open"));
    }
    assert!(opened.len() == 3 && opened.iter().all(|revision| *revision == opened[0]), "{opened:?}");
    let delete = Request::new("DELETE", "/v1/latches/t");
    first.insist(&delete).await.expect_success();
    assert_eq!(first.insist(&delete).await.problem().code, ErrorCode::NotFound);
    cluster.assert_agreement().await;
}
