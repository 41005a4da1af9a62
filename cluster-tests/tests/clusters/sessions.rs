//! Sessions: what hangs on one stays as long as it is renewed, goes in one revision when it is not, and never early.

use std::time::{Duration, Instant};

use cluster_harness::{Caller, Cluster, PATIENCE, Request, eventually};
use quorate_client::api::{
    BarrierAnswer, ErrorCode, ListAnswer, LockAnswer, RenewAnswer, Renewal, RenewedAnswer, SessionEnded, SessionView,
};
use serde_json::json;

const FAILOVERS: usize = 3;
const TTL_MS: u64 = 3_000;
const STEADY_TTL_MS: u64 = 2_000;

async fn list(caller: &mut Caller, query: &str) -> ListAnswer {
    caller.insist(&Request::get(format!("/v1/kv?{query}"))).await.expect_success().json()
}

/// Hangs three entries, a lock and a place in a barrier on a session. Gives the revision after that.
async fn hang(caller: &mut Caller, session: &str) -> u64 {
    for key in ["svc/a", "svc/b", "svc/c"] {
        let put = Request::new("PUT", format!("/v1/kv/{key}?session={session}")).json("1").request_id(key);
        caller.insist(&put).await.expect_success();
    }
    let body = json!({"session": session, "request_id": "lock"});
    caller.post("/v1/locks/held/acquire", &body).await.expect_success();
    let body = json!({"session": session, "parties": 2, "request_id": "enter"});
    let entered: BarrierAnswer = caller.post("/v1/barriers/gate/enter", &body).await.expect_success().json();
    entered.revision
}

/// Fault: leaders are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_outlives_failovers_and_ends_once_its_time_of_leadership_is_over() {
    let mut cluster = Cluster::start().await;
    let mut caller = cluster.caller(1);
    let session = caller.session(TTL_MS, "worker").await;
    let attached = hang(&mut caller, &session).await;
    let leader = cluster.leader().await;
    let clock_before = cluster.status(leader).await.expect("the leader answers").cluster_clock_ms;
    let renewed_after = Instant::now();
    let renewed: RenewedAnswer =
        caller.post(&format!("/v1/sessions/{session}/renew"), &json!({})).await.expect_success().json();
    assert_eq!(renewed.expires_in_ms, TTL_MS);
    // It was renewed for the last time at a clock that was not before this one.
    let ends_at = clock_before + TTL_MS;

    for failover in 0..FAILOVERS {
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        let rest = list(&mut caller, "prefix=svc/&keys_only").await;
        let elapsed = renewed_after.elapsed();
        let has_ended = rest.count == 0;
        assert!(!has_ended || elapsed >= Duration::from_millis(TTL_MS), "gone after {elapsed:?}, failover {failover}");
        cluster.bring_up(leader).await;
    }
    let gone = eventually("the session has ended", PATIENCE, async || {
        let page = list(&mut caller, "prefix=svc/&keys_only").await;
        if page.count == 0 { Ok(page.revision) } else { Err(format!("{} entries are left", page.count)) }
    })
    .await;
    let (took, leader) = (renewed_after.elapsed(), cluster.leader().await);
    let clock = cluster.status(leader).await.expect("the leader answers").cluster_clock_ms;
    println!("{TTL_MS} ms lasted {took:?} over {FAILOVERS} failovers; the clock went from {clock_before} to {clock}");
    assert!(took >= Duration::from_millis(TTL_MS), "early, after {took:?}");
    assert!(clock >= ends_at, "early, at {clock} of the cluster clock and not at {ends_at}");

    // Everything went in one revision.
    let mut counts = Vec::new();
    for revision in attached..=gone {
        counts.push(list(&mut caller, &format!("prefix=svc/&keys_only&revision={revision}")).await.count);
    }
    let end = counts.iter().position(|count| *count == 0).expect("gone");
    assert!(
        counts[..end].iter().all(|count| *count == 3) && counts[end..].iter().all(|count| *count == 0),
        "{counts:?}"
    );
    let lock: LockAnswer = caller.insist(&Request::get("/v1/locks/held")).await.expect_success().json();
    assert_eq!((lock.holder_count, lock.holders.len()), (0, 0));
    let gate: BarrierAnswer = caller.insist(&Request::get("/v1/barriers/gate")).await.expect_success().json();
    assert_eq!(gate.entered, 0);
    let dead = caller.post(&format!("/v1/sessions/{session}/renew"), &json!({})).await.problem();
    assert_eq!(dead.code, ErrorCode::SessionExpired);
    let put = Request::new("PUT", format!("/v1/kv/svc/d?session={session}")).json("1");
    assert_eq!(caller.insist(&put).await.problem().code, ErrorCode::SessionExpired);
    assert_eq!(list(&mut caller, "prefix=svc/&keys_only").await.count, 0, "nothing is written for the dead");
    cluster.assert_agreement().await;
}

/// Faults: followers stand still for longer than it lives, and leaders are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_renewed_lives_through_anything_and_ends_when_told() {
    let mut cluster = Cluster::start().await;
    let mut caller = cluster.caller(1);
    let session = caller.session(STEADY_TTL_MS, "steady").await;
    hang(&mut caller, &session).await;
    let renewer = tokio::spawn({
        let (mut caller, session) = (caller.clone(), session.clone());
        async move {
            loop {
                let answer = caller.post("/v1/sessions/renew", &json!({"sessions": [session]})).await;
                let answer: RenewAnswer = answer.expect_success().json();
                assert!(matches!(answer.sessions[..], [Renewal::Renewed(_)]), "{answer:?}");
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
    });
    // While the leader is alone nothing can be renewed, so this time does not count.
    let leader = cluster.leader().await;
    let followers: Vec<_> = cluster.ids().into_iter().filter(|id| *id != leader).collect();
    followers.iter().for_each(|id| cluster.pause(*id));
    tokio::time::sleep(Duration::from_millis(2 * STEADY_TTL_MS)).await;
    followers.iter().for_each(|id| cluster.resume(*id));
    // The next writes bring the leader's clock, as a rule that of the same leader.
    for key in ["after/1", "after/2"] {
        caller.insist(&Request::put(key, "1").request_id(key)).await.expect_success();
    }
    for _ in 0..2 {
        let leader = cluster.leader().await;
        cluster.kill(leader).await;
        cluster.leader().await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        cluster.bring_up(leader).await;
    }
    assert!(!renewer.is_finished(), "it was told to have expired: {:?}", renewer.await);
    let view: SessionView =
        caller.insist(&Request::get(format!("/v1/sessions/{session}"))).await.expect_success().json();
    let holds = view.holds.expect("what hangs on it");
    assert_eq!((holds.count, holds.keys.len(), holds.locks.len(), &*view.owner), (5, 3, 1, "steady"));
    renewer.abort();

    // Told to end it ends once, however often the request is sent, also over the death of the leader.
    let end = Request::new("DELETE", format!("/v1/sessions/{session}")).request_id("end");
    let first: SessionEnded = caller.insist(&end).await.expect_success().json();
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    let again: SessionEnded = caller.insist(&end).await.expect_success().json();
    assert_eq!(again, SessionEnded { replayed: true, ..first.clone() });
    assert_eq!(first.count, 5);
    cluster.bring_up(leader).await;
    cluster.assert_agreement().await;
}
