//! Timed tasks while wall clocks are wrong: a majority decides which time it is. `histories` has clocks that jump.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use serde_json::Value;

/// What is over must be gone so much later: a failover, or a machine that is busy.
const LATE_MAX: Duration = Duration::from_secs(15);

async fn expect(node: SocketAddr, request: Request) {
    request.send(node).await.expect("a survivor answers").expect_success();
}

async fn post(node: SocketAddr, target: &str, body: String) -> Value {
    let answer = Request::post(target, body).send(node).await.expect("a survivor answers");
    answer.expect_success().json()
}

const DAY_SECONDS: i64 = 86_400;
const NANOS_PER_MS: i128 = 1_000_000;
/// A task may come so much earlier than it was promised: milliseconds are rounded, and questions take time.
const EARLY_MAX: Duration = Duration::from_millis(100);

/// The wall clock of one machine is a day ahead or behind, of the leader or of another node: nothing timed moves, and it is told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wrong_wall_clock_moves_no_timed_task() {
    let mut cluster = Cluster::start_with(Settings::default().hosted()).await;
    cluster.wait_all_ready().await;
    let leader = cluster.leader().await;
    let follower = cluster.live_but(leader)[0];
    for (round, (victim, days)) in [(leader, 1), (follower, 1), (leader, -1), (follower, -1)].into_iter().enumerate() {
        let node = cluster.client_address(follower);
        cluster.host(victim).shift_wall_clock(days * DAY_SECONDS);
        let queue = format!("q{round}");
        post(node, &format!("/v1/tasks/{queue}"), far_task()).await;
        comes_on_time(node, &queue, "while it is wrong").await;
        for id in cluster.ids() {
            eventually("every node tells which clock is wrong", PATIENCE, async || {
                let status = cluster.status(id).await?;
                let wanted = format!("the wall clock of node {victim} is 86");
                if status.warnings.iter().any(|warning| warning.contains(&wanted)) {
                    Ok(())
                } else {
                    Err(format!("{:?}", status.warnings))
                }
            })
            .await;
        }
        comes_on_time(node, &queue, "once it is known").await;
        is_the_right_time(node).await;
        cluster.host(victim).shift_wall_clock(0);
        comes_on_time(node, &queue, "once it is right again").await;
        eventually("nobody tells of it any more", PATIENCE, async || {
            let status = cluster.status(leader).await?;
            if status.warnings.is_empty() { Ok(()) } else { Err(format!("{:?}", status.warnings)) }
        })
        .await;
    }
    cluster.assert_agreement().await;
}

/// The clocks of all are a day ahead for a moment: a majority decides, and it is walked back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_a_majority_had_is_walked_back_with_it() {
    let mut cluster = Cluster::start_with(Settings::default().hosted()).await;
    cluster.wait_all_ready().await;
    let node = cluster.client_address(1);
    let shift = |cluster: &Cluster, days: i64| {
        cluster.ids().into_iter().for_each(|id| cluster.host(id).shift_wall_clock(days * DAY_SECONDS));
    };
    shift(&cluster, 1);
    eventually("the cluster goes with them", PATIENCE, async || {
        expect(node, Request::put("k", "1")).await;
        let ahead = i128::from(audited(node).await) - i128::from(wall_ms());
        if ahead > 80_000_000 { Ok(()) } else { Err(format!("{ahead} ms ahead")) }
    })
    .await;
    shift(&cluster, 0);
    eventually("it is walked back", PATIENCE, async || {
        expect(node, Request::put("k", "1")).await;
        let ahead = i128::from(audited(node).await) - i128::from(wall_ms());
        if ahead.abs() < 5_000 { Ok(()) } else { Err(format!("{ahead} ms ahead")) }
    })
    .await;
    post(node, "/v1/tasks/q", far_task()).await;
    comes_on_time(node, "q", "after that").await;
    // Whoever leads next begins where the cluster was, and not where it once was.
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    let node = cluster.client_address(cluster.live_but(leader)[0]);
    comes_on_time(node, "q", "under another leader").await;
    cluster.bring_up(leader).await;
    cluster.assert_agreement().await;
}

/// This machine's time, Unix milliseconds.
pub fn wall_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("a time")
}

/// One that is due in ten hours.
fn far_task() -> String {
    serde_json::json!({"id": "far", "execute_at": wall_ms() + 36_000_000, "payload": 1}).to_string()
}

/// Schedules a task, and sees that it comes when it was promised, and no other does.
async fn comes_on_time(node: SocketAddr, queue: &str, when: &str) {
    const DELAY: Duration = Duration::from_millis(700);
    let begin = Instant::now();
    let task = serde_json::json!({"delay_ms": DELAY.as_millis() as u64, "payload": when}).to_string();
    let scheduled = post_at_last(node, &format!("/v1/tasks/{queue}"), task).await;
    loop {
        let claim = r#"{"limit":10,"lease_ms":60000}"#.to_owned();
        let answer = post_at_last(node, &format!("/v1/tasks/{queue}/claim"), claim).await;
        let found = answer["tasks"].as_array().expect("a list").clone();
        if let [task] = &found[..] {
            assert_eq!(task["id"], scheduled["id"], "{when}: {task}");
            let took = begin.elapsed();
            assert!(took + EARLY_MAX >= DELAY, "{when}: after {took:?}");
            return;
        }
        assert!(found.is_empty(), "{when}: {found:?}");
        assert!(begin.elapsed() < DELAY + LATE_MAX, "{when}: it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asks until somebody leads.
async fn post_at_last(node: SocketAddr, target: &str, body: String) -> Value {
    eventually("an answer", PATIENCE, async || {
        let answer = Request::post(target, body.clone()).send(node).await.map_err(|why| why.to_string())?;
        if (200..300).contains(&answer.status) { Ok(answer.json()) } else { Err(answer.text()) }
    })
    .await
}

/// The audit trail's time of the last change of `k`, Unix milliseconds.
async fn audited(node: SocketAddr) -> u64 {
    let answer = Request::get("/v1/audit?key=k&limit=1000").send(node).await.expect("an answer");
    let trail: Value = answer.expect_success().json();
    let lines = trail["lines"].as_array().expect("lines");
    let time = lines.last().and_then(|line| line["time"].as_str()).and_then(quorate_machine::document::time::parse);
    u64::try_from(time.expect("RFC 3339") / NANOS_PER_MS).expect("after 1970")
}

/// A write is at the right time in the audit trail.
async fn is_the_right_time(node: SocketAddr) {
    expect(node, Request::put("k", "1")).await;
    let (at, now) = (audited(node).await, wall_ms());
    assert!(at.abs_diff(now) < 2_000, "{at} at {now}");
}
