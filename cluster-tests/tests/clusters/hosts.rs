//! One node, or a cluster, on disks that fail: what each fault does to a node that serves, and that nothing acknowledged is lost.

use std::time::{Duration, Instant};

use cluster_harness::cluster::PATIENCE;
use cluster_harness::drive::disk_faults::{EXIT_NO_ROOM, EXIT_STORAGE};
use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Failures, Request, Settings, eventually};

/// Room that is less than a node keeps free by its defaults.
const LITTLE_ROOM: u64 = 160 << 20;

async fn hosted(ids: std::ops::RangeInclusive<u64>) -> Cluster {
    Cluster::start_with(Settings::with_ids(ids).hosted()).await
}

/// The library that hurts disks and clocks has to be asked at all.
async fn assert_goes_through_the_library(cluster: &Cluster) {
    let before = cluster.host(1).counts();
    for number in 0..10 {
        Request::put(&format!("k{number}"), "1").send(cluster.client_address(1)).await.unwrap().expect_success();
    }
    let after = cluster.host(1).counts();
    assert!(after.syncs >= before.syncs + 10, "each write of a lone client is a sync: {before:?}, {after:?}");
    assert!(after.writes >= before.writes + 10, "and a write to the log: {before:?}, {after:?}");
    assert!(after.clock_looks > before.clock_looks, "batches are stamped: {before:?}, {after:?}");
    assert_eq!((after.failed, after.refused, after.shortened), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_sync_of_the_log_that_fails_ends_the_node_and_loses_nothing() {
    let mut cluster = hosted(1..=1).await;
    assert_goes_through_the_library(&cluster).await;
    let load = Load::start(&cluster, 8, "eio");
    load.wait_for_more(100).await;
    cluster.host(1).fail_syncs(Failures::All);
    let (end, log) = cluster.wait_end(1, PATIENCE).await;
    assert_eq!(end.code(), Some(EXIT_STORAGE), "{log}");
    assert!(log.contains("the log cannot be written"), "{log}");
    cluster.host(1).heal();
    cluster.bring_up(1).await;
    let history = load.finish().await.history;
    assert_durable(&cluster, 1, &history).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_sync_of_the_state_that_fails_ends_the_node_and_loses_nothing() {
    // The state is synced when a snapshot is taken.
    let settings = Settings::with_ids(1..=1).hosted().flag("--snapshot-every-entries", 100);
    let mut cluster = Cluster::start_with(settings).await;
    let load = Load::start(&cluster, 8, "eio");
    load.wait_for_more(100).await;
    cluster.host(1).spare_log();
    cluster.host(1).fail_syncs(Failures::All);
    let (end, log) = cluster.wait_end(1, PATIENCE).await;
    assert_eq!(end.code(), Some(EXIT_STORAGE), "{log}");
    assert!(log.contains("raft has stopped") && !log.contains("the log cannot be written"), "{log}");
    cluster.host(1).heal();
    cluster.bring_up(1).await;
    let history = load.finish().await.history;
    assert_durable(&cluster, 1, &history).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_disk_makes_writes_slow_and_nothing_else() {
    // Longer than followers wait for a leader, and that is longer than a busy machine stands still.
    const DELAY: Duration = Duration::from_millis(1_600);
    let settings = Settings::default().hosted().flag("--election-min-ms", 1_000).flag("--election-max-ms", 1_500);
    let mut cluster = Cluster::start_with(settings).await;
    let leader = cluster.leader().await;
    let status = async || eventually("the status", PATIENCE, async || cluster.status(leader).await).await;
    let term = status().await.term;
    cluster.ids().into_iter().for_each(|id| cluster.host(id).slow_disk(DELAY, Duration::ZERO, Duration::ZERO));
    for number in 0..3 {
        let begun = Instant::now();
        Request::put(&format!("k{number}"), "1").send(cluster.client_address(leader)).await.unwrap().expect_success();
        assert!(begun.elapsed() >= DELAY, "a write that waited for no sync, after {:?}", begun.elapsed());
        Request::get(format!("/v1/kv/k{number}")).send(cluster.client_address(leader)).await.unwrap().expect_success();
    }
    let status = status().await;
    assert_eq!((status.leader_id, status.term), (Some(leader), term), "nobody stood for election");
    cluster.ids().into_iter().for_each(|id| cluster.host(id).heal());
    cluster.assert_agreement().await;
}

/// Logged by a node that finds no room to start.
const WAITS: &str = "the start waits for room";

/// A supervisor gives a node that ends up after some tries, and the room comes back later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_disk_waits_for_room_and_ends_when_it_is_told_to() {
    // A ballast would give a start room once more.
    let mut cluster = Cluster::start_with(Settings::with_ids(1..=1).hosted().flag("--ballast-bytes", 0)).await;
    let address = cluster.client_address(1);
    Request::put("kept", "1").send(address).await.unwrap().expect_success();
    cluster.kill(1).await;
    cluster.host(1).limit_room(1 << 20);
    let waits = async |cluster: &Cluster| {
        let look = async || if cluster.log_text(1).contains(WAITS) { Ok(()) } else { Err(cluster.log_text(1)) };
        eventually("it waits for room", PATIENCE, look).await;
    };
    cluster.start_node(1);
    waits(&cluster).await;
    let refused = Request::get("/livez").send(address).await.expect_err("it serves nobody");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "it takes no connection that it does not serve");
    cluster.stop(1).await;
    cluster.start_node(1);
    waits(&cluster).await;
    assert!(cluster.try_end(1).is_none(), "it is not given up");
    cluster.host(1).heal();
    cluster.wait_ready(1).await;
    Request::get("/v1/kv/kept").send(address).await.unwrap().expect_success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fills_refuses_what_grows_reads_on_and_comes_back() {
    let mut cluster = hosted(1..=1).await;
    let load = Load::start(&cluster, 4, "full");
    load.wait_for_more(200).await;
    let history = load.finish().await.history;
    let address = cluster.client_address(1);
    cluster.host(1).limit_room(LITTLE_ROOM);
    let refused = async || {
        let answer = Request::put("more", "1").send(address).await.map_err(|error| error.to_string())?;
        if answer.status == 507 { Ok(()) } else { Err(answer.text()) }
    };
    eventually("a write is refused", PATIENCE, refused).await;
    assert_durable(&cluster, 1, &history).await;

    // Something else takes all that is left. Reads go on for as long as the node does, which may be over at any moment.
    cluster.host(1).limit_room(0);
    let (until, mut serves) = (Instant::now() + Duration::from_secs(2), true);
    let targets: Vec<_> = history.keys().map(|(key, _)| format!("/v1/kv/{key}")).collect();
    let mut targets = targets.iter().cycle();
    while serves && Instant::now() < until {
        let target = targets.next().expect("something was written");
        serves = Request::get(target).send(address).await.is_ok_and(|answer| answer.is_success());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if serves {
        cluster.kill(1).await;
    } else {
        let (end, log) = cluster.wait_end(1, PATIENCE).await;
        assert_eq!(end.code(), Some(EXIT_NO_ROOM), "{log}");
    }
    cluster.start_node(1);
    let answer = eventually("it says that its disk is full, or serves reads", PATIENCE, async || {
        if let Some((end, log)) = cluster.try_end(1) {
            return Ok(format!("it ended: {end:?}: {log}"));
        }
        if cluster.log_text(1).contains(WAITS) {
            return Ok("it waits".to_owned());
        }
        cluster.is_ready(1).await.map(|()| "it serves".to_owned())
    })
    .await;
    println!("with no room at all: {answer}");
    if !answer.starts_with("it ended") {
        cluster.kill(1).await;
    }
    cluster.host(1).heal();
    cluster.bring_up(1).await;
    Request::put("more", "1").send(address).await.unwrap().expect_success();
    assert_durable(&cluster, 1, &history).await;
    cluster.assert_agreement().await;
}
