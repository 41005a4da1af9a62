//! How long writes wait when the leader goes.

use std::net::SocketAddr;
use std::time::Duration;

use cluster_harness::network::Rule;
use cluster_harness::stats::{DEBUG_BUILD, in_millis, median};
use cluster_harness::{Cluster, Connection, PATIENCE, Request, Settings, eventually};
use tokio::time::Instant;

/// Odd, so that the median is one of them.
const ROUNDS: usize = 5;
const KILL_MEDIAN_MAX: Duration = Duration::from_millis(1_000);
const STOP_MEDIAN_MAX: Duration = Duration::from_millis(150);
/// What a node says that stands for election before silence makes it.
const STANDING: &str = "nothing came since: standing for election";

pub async fn a_killed_leader_is_replaced_within_a_second() {
    let mut cluster = Cluster::start_with(Settings::default().alone()).await;
    let mut gaps = Vec::new();
    for round in 0..ROUNDS {
        let (leader, survivor) = leader_and_survivor(&mut cluster, round).await;
        // Connected before, as a client is.
        let writer = Writer::open(survivor, round).await;
        let begin = Instant::now();
        cluster.kill(leader).await;
        writer.acknowledged_after(begin).await;
        gaps.push(begin.elapsed());
        cluster.bring_up(leader).await;
    }
    report("leader killed to next acknowledged write", &gaps);
    assert!(median(&gaps) < KILL_MEDIAN_MAX, "median {:?}: {}", median(&gaps), in_millis(&gaps));
    cluster.assert_agreement().await;
}

/// Its connections end with the process. Silence alone would take the longer of the two times that are set here.
pub async fn a_leader_whose_process_ends_is_replaced_once_its_lease_is_over() {
    let silence = Duration::from_millis(3_000);
    let settings = Settings::default().alone().flag("--election-min-ms", 3_000).flag("--election-max-ms", 3_500);
    let mut cluster = Cluster::start_with(settings).await;
    let (leader, survivor) = leader_and_survivor(&mut cluster, 0).await;
    let writer = Writer::open(survivor, 0).await;
    let begin = Instant::now();
    cluster.kill(leader).await;
    writer.acknowledged_after(begin).await;
    let gap = begin.elapsed();
    let said = cluster.live().into_iter().filter(|id| cluster.log_text(*id).contains(STANDING)).count();
    assert!(said > 0 && gap < silence - Duration::from_millis(500), "{said} nodes stood early, a write took {gap:?}");
}

/// The follower that lost its leader stands, and the others, who hear it, refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_breaks_elects_nobody() {
    let settings = Settings::default().flag("--election-min-ms", 2_000).flag("--election-max-ms", 2_600);
    let mut cluster = Cluster::start_with(settings.proxied()).await;
    let leader = cluster.leader().await;
    let term = cluster.status(leader).await.expect("it answers").term;
    let cut_off = cluster.live_but(leader)[0];
    cluster.network().rule_both(leader, cut_off, Rule::Reset);
    eventually("the follower has lost its leader", PATIENCE, async || {
        let log = cluster.log_text(cut_off);
        if log.contains(STANDING) { Ok(()) } else { Err(log) }
    })
    .await;
    let address = cluster.client_address(leader);
    Request::put("still", "1").send(address).await.expect("an answer").expect_success();
    cluster.network().heal();
    cluster.assert_agreement().await;
    let after = cluster.status(leader).await.expect("it answers");
    assert_eq!((after.term, after.leader_id), (term, Some(leader)));
}

pub async fn a_leader_that_is_stopped_hands_over_without_a_pause() {
    let mut cluster = Cluster::start_with(Settings::default().alone()).await;
    let mut gaps = Vec::new();
    for round in 0..ROUNDS {
        let (leader, survivor) = leader_and_survivor(&mut cluster, round).await;
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let gap = tokio::spawn(async move { longest_gap(Writer::open(survivor, round).await, stopped).await });
        cluster.stop(leader).await;
        stop.send(true).expect("the writer listens until told to stop");
        gaps.push(gap.await.unwrap());
        cluster.bring_up(leader).await;
    }
    report("longest time without an acknowledged write while the leader stops", &gaps);
    assert!(median(&gaps) < STOP_MEDIAN_MAX, "median {:?}: {}", median(&gaps), in_millis(&gaps));
    cluster.assert_agreement().await;
}

/// The node that goes in this round, and where the one is that is written through meanwhile.
async fn leader_and_survivor(cluster: &mut Cluster, round: usize) -> (u64, SocketAddr) {
    cluster.assert_agreement().await;
    let leader = cluster.leader().await;
    (leader, cluster.client_address(cluster.live_but(leader)[round % 2]))
}

fn report(what: &str, gaps: &[Duration]) {
    let build = if DEBUG_BUILD { " (debug build)" } else { "" };
    println!("{what}{build}: median {:.1} ms of {}", median(gaps).as_secs_f64() * 1e3, in_millis(gaps));
}

/// The longest time between two acknowledged writes from now until `stopped`, and one write beyond.
async fn longest_gap(mut writer: Writer, stopped: tokio::sync::watch::Receiver<bool>) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    loop {
        let done = *stopped.borrow();
        writer = writer.acknowledged_after(last).await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
        if done {
            return longest;
        }
    }
}

/// Sends one write after the other through one node.
struct Writer {
    node: SocketAddr,
    connection: Connection,
    round: usize,
    sent: u64,
}

impl Writer {
    async fn open(node: SocketAddr, round: usize) -> Self {
        Self { node, connection: Connection::open(node).await.unwrap(), round, sent: 0 }
    }

    /// Sends the same write until it is acknowledged, under one request id.
    async fn acknowledged_after(mut self, begin: Instant) -> Self {
        self.sent += 1;
        let id = format!("failover-{}-{}-{}", self.round, self.node.port(), self.sent);
        let request = Request::put("failover", self.sent.to_string()).request_id(&id);
        loop {
            assert!(begin.elapsed() < Duration::from_secs(10), "no write was acknowledged for 10 s");
            match self.connection.exchange(&request).await {
                Ok(answer) if answer.is_success() => return self,
                Ok(answer) => assert_eq!(answer.status / 100, 5, "{}", answer.text()),
                Err(_) => self.connection = Connection::open(self.node).await.expect("a survivor takes connections"),
            }
        }
    }
}
