//! A node that was away comes back: from the log while the others still have it, else by a snapshot.

use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Settings, eventually, sooner_than};

use crate::forms::Forms;

/// How long a single write may take while a node catches up. A write through that node waits for its share of the processors.
const STALL_MAX: Duration = Duration::from_secs(1);

pub async fn a_node_that_missed_purged_entries_comes_back_by_snapshot_while_writes_go_on() {
    let settings = Settings::default().alone().flag("--snapshot-every-entries", 100).flag("--keep-log-entries", 20);
    let mut cluster = Cluster::start_with(settings).await;
    let away = cluster.follower().await;
    let had = cluster.status(away).await.unwrap().last_log_index;
    cluster.kill(away).await;
    let forms = Forms::decide(&cluster).await;

    let writes = writes_missed();
    let load = Load::start(&cluster, 64, "purged");
    load.wait_for_more_within(writes, Duration::from_secs(10) + Duration::from_millis(2) * writes as u32).await;
    let leader = cluster.leader().await;
    let purged = eventually("the leader purges what the node lacks", PATIENCE, async || {
        let status = cluster.status(leader).await?;
        if status.purged_index > had { Ok(status.purged_index) } else { Err(format!("{}", status.purged_index)) }
    })
    .await;
    println!(
        "node {away} had entries up to {had}, {} writes later the leader has none up to {purged}",
        load.acknowledged()
    );

    let before = load.longest();
    load.reset_longest();
    cluster.start_node(away);
    catch_up(&mut cluster, away).await;
    load.wait_for_more(1_000).await;
    let longest = load.longest();
    let history = load.finish().await.history;
    let status = cluster.status(away).await.unwrap();
    assert!(status.purged_index > had, "its log must begin after {had}, where the snapshot ended: {status:?}");
    println!("the longest write while node {away} came back took {longest:?}, and {before:?} before");
    assert!(
        longest < STALL_MAX,
        "a write stalled for {longest:?} while node {away} came back, and for {before:?} before"
    );
    assert_durable(&cluster, away, &history).await;
    // What it got with the snapshot is also what was decided before: as the leader it has nothing else to go by.
    cluster.hand_leadership_to(away).await;
    forms.assert_replayed(&cluster, away).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_killed_while_it_gets_a_snapshot_still_comes_back() {
    let settings = Settings::default().flag("--snapshot-every-entries", 50).flag("--keep-log-entries", 10);
    let mut cluster = Cluster::start_with(settings).await;
    let away = cluster.follower().await;
    cluster.kill(away).await;
    let load = Load::start(&cluster, 32, "torn");
    load.wait_for_more(2_000).await;
    for _ in 0..5 {
        cluster.start_node(away);
        // Somewhere between its first breath and its recovery; wherever that is, the next start must cope.
        let _ = sooner_than(Duration::from_millis(150), async || cluster.is_ready(away).await).await;
        cluster.kill(away).await;
    }
    cluster.start_node(away);
    catch_up(&mut cluster, away).await;
    let history = load.finish().await.history;
    assert_durable(&cluster, away, &history).await;
    cluster.assert_agreement().await;
}

/// Writes that pass the node by: the 100,000 take QUORATE_TEST_WRITES=100000.
fn writes_missed() -> u64 {
    match std::env::var("QUORATE_TEST_WRITES") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("QUORATE_TEST_WRITES is `{text}`; give a number")),
        Err(_) => 8_000,
    }
}

/// Waits until a node has applied everything that was committed when it came back.
async fn catch_up(cluster: &mut Cluster, id: u64) {
    let leader = *cluster.live_but(id).first().expect("others are live");
    let goal = eventually("a live node says what is committed", PATIENCE, async || {
        Ok(cluster.status(leader).await?.committed_index)
    })
    .await;
    eventually(&format!("node {id} has applied {goal}"), PATIENCE, async || {
        let applied = cluster.status(id).await?.applied_index;
        if applied >= goal { Ok(()) } else { Err(format!("it applied {applied}")) }
    })
    .await;
    cluster.wait_ready(id).await;
}
