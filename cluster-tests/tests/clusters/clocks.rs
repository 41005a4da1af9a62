//! Sessions, TTLs and locks while the wall clocks of the nodes jump about: they count cluster time, so nothing ends early and
//! nothing lives on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cluster_tests::seed::seeded;
use cluster_tests::{Cluster, Host, PATIENCE, Request, Settings, eventually};
use rand::RngExt;
use serde_json::Value;
use tokio::task::JoinHandle;

/// Long enough to be told from what a machine does when it is busy.
const TTL: Duration = Duration::from_millis(2_000);
/// What is over must be gone so much later: a failover, or a machine that is busy.
const LATE_MAX: Duration = Duration::from_secs(15);
const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_ends_by_a_wall_clock() {
    let (mut cluster, jumping) = cluster_with_jumping_clocks().await;
    for round in 0..ROUNDS {
        let leader = cluster.leader().await;
        let survivor = cluster.client_address(cluster.live_but(leader)[0]);
        let ttl = TTL.as_millis();
        let session = post(survivor, "/v1/sessions", format!("{{\"ttl_ms\":{ttl}}}")).await;
        let session = session["session"].as_str().expect("the id of a session").to_owned();
        let (held, own, lock) = (format!("held-{round}"), format!("own-{round}"), format!("lock-{round}"));
        expect(survivor, Request::put(&format!("{held}?session={session}"), "1")).await;
        let body = format!("{{\"session\":\"{session}\"}}");
        post(survivor, &format!("/v1/locks/{lock}/acquire"), body).await;
        let begin = Instant::now();
        expect(survivor, Request::put(&format!("{own}?ttl_ms={ttl}"), "1")).await;
        // Also a renewal counts from when it was sent, at the earliest.
        let renewed = Instant::now();
        post(survivor, &format!("/v1/sessions/{session}/renew"), "{}".into()).await;
        if round == 1 {
            cluster.kill(leader).await;
        }
        let look = async |what: &str, since: Instant| loop {
            let (asked, is_there) = (since.elapsed(), is_there(survivor, what).await);
            if !is_there {
                // The answer may be older than this moment, and never is younger than the question.
                assert!(since.elapsed() >= TTL, "{what} was gone {:?} after it began", since.elapsed());
                println!("round {round}: {what} was gone between {asked:?} and {:?}", since.elapsed());
                return;
            }
            assert!(asked < TTL + LATE_MAX, "{what} is still there after {asked:?}");
        };
        tokio::join!(look(&held, renewed), look(&own, begin));
        eventually("the lock is free", LATE_MAX, async || {
            let answer =
                Request::get(format!("/v1/locks/{lock}")).send(survivor).await.map_err(|why| why.to_string())?;
            let lock: Value = answer.json();
            if lock["holder_count"] == 0 { Ok(()) } else { Err(lock.to_string()) }
        })
        .await;
        if round == 1 {
            cluster.bring_up(leader).await;
        }
    }
    jumping.abort();
    cluster.assert_agreement().await;
}

/// Three nodes, each with a wall clock that jumps by up to an hour either way five times a second.
async fn cluster_with_jumping_clocks() -> (Cluster, JoinHandle<()>) {
    let cluster = Cluster::start_with(Settings::default().hosted()).await;
    let hosts: Vec<Host> = cluster.ids().into_iter().map(|id| cluster.host(id).clone()).collect();
    let mut random = seeded();
    let jumping = tokio::spawn(async move {
        loop {
            for host in &hosts {
                host.shift_wall_clock(random.random_range(-3_600..=3_600));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    (cluster, jumping)
}

/// Asks until somebody answers: there is no leader for a moment.
async fn is_there(node: SocketAddr, key: &str) -> bool {
    eventually("an answer", PATIENCE, async || {
        let answer = Request::get(format!("/v1/kv/{key}")).send(node).await.map_err(|why| why.to_string())?;
        match answer.status {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(answer.text()),
        }
    })
    .await
}

async fn expect(node: SocketAddr, request: Request) {
    request.send(node).await.expect("a survivor answers").expect_success();
}

async fn post(node: SocketAddr, target: &str, body: String) -> Value {
    let answer = Request::post(target, body).send(node).await.expect("a survivor answers");
    answer.expect_success().json()
}
