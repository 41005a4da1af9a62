//! A node on a disk that is not its own takes no part.

use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::{Cluster, Request, Settings, eventually, sooner_than};

/// How long a node must keep out. Several election timeouts of the default settings.
const KEPT_OUT: Duration = Duration::from_secs(3);

async fn assert_serves(cluster: &Cluster, through: u64, value: u64) {
    let put = Request::put("still-serving", value.to_string());
    put.send(cluster.client_address(through)).await.unwrap().expect_success();
}

/// Waits until a node refuses to take part: it ends with an error, or it says why it is not ready. The reason must
/// contain `words`, in its log or in its status.
async fn refused(cluster: &mut Cluster, id: u64, words: &str) {
    let reason = eventually(&format!("node {id} says `{words}`"), PATIENCE, async || {
        if let Some((end, log)) = cluster.try_end(id) {
            assert!(!end.success(), "a node that refuses must not end as if all were well");
            assert!(log.contains(words), "node {id} ended without the words `{words}`:\n{log}");
            return Ok(format!("it ended with {end}"));
        }
        let warnings = cluster.status(id).await.map(|status| status.warnings.join("; ")).unwrap_or_default();
        let log = cluster.log_text(id);
        let said = log.lines().chain([warnings.as_str()]).find(|said| said.contains(words));
        said.map(str::to_owned).ok_or_else(|| format!("warnings: {warnings}"))
    })
    .await;
    println!("node {id} was refused: {reason}");
    if cluster.live().contains(&id) {
        let ready = sooner_than(KEPT_OUT, async || cluster.is_ready(id).await).await;
        assert!(ready.is_err(), "node {id} is ready, although it was refused");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_is_refused_under_its_old_number_and_counts_for_no_quorum() {
    let mut cluster = Cluster::start().await;
    assert_serves(&cluster, 1, 1).await;
    let wiped = cluster.follower().await;
    let others = cluster.live_but(wiped);
    cluster.kill(wiped).await;
    cluster.wipe(wiped);
    cluster.start_node(wiped);
    refused(&mut cluster, wiped, "known by disk").await;
    assert_serves(&cluster, others[0], 2).await;

    // One true member and the wiped one are no majority: were the wiped one counted, a write could be acknowledged
    // that the third, which is away, never saw.
    cluster.kill(others[0]).await;
    let write = Request::put("no-quorum", "1").header("Request-Timeout", "2000");
    let answer = write.send(cluster.client_address(others[1])).await.unwrap();
    assert_eq!(answer.status / 100, 5, "acknowledged by one true node of three: {}", answer.text());
    cluster.bring_up(others[0]).await;
    cluster.wait_ready(others[1]).await;
    assert_serves(&cluster, others[1], 3).await;

    if cluster.live().contains(&wiped) {
        cluster.kill(wiped).await;
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_of_another_cluster_answers_nobody_before_a_node_of_the_join_list_has_answered() {
    let mut foreign = Cluster::start_with(Settings::with_ids([3])).await;
    assert_serves(&foreign, 3, 2).await;
    foreign.kill(3).await;
    let mut cluster = Cluster::start().await;
    let known = cluster.status(1).await.unwrap().cluster_id;
    cluster.kill_all().await;
    std::fs::remove_dir_all(cluster.data_dir(3)).unwrap();
    std::fs::rename(foreign.data_dir(3), cluster.data_dir(3)).unwrap();
    cluster.start_node(3);
    // It is a majority of its own cluster, so it soon leads itself; nobody of its join list is there to object.
    assert_eq!(cluster.leader().await, 3);
    for asked in [
        Request::get("/v1/kv/still-serving?consistency=local"),
        Request::get("/v1/kv/still-serving"),
        Request::get("/v1/kv?prefix=still&consistency=local"),
        Request::put("still-serving", "3"),
    ] {
        let answer = asked.header("Request-Timeout", "1000").send(cluster.client_address(3)).await.unwrap();
        assert_eq!(answer.status, 503, "it speaks for a cluster that nobody here knows: {}", answer.text());
    }
    let reason = cluster.is_ready(3).await.unwrap_err();
    assert!(reason.contains("join list"), "{reason}");
    cluster.start_node(1);
    cluster.start_node(2);
    refused(&mut cluster, 3, &format!("cluster {known}")).await;
    assert_serves(&cluster, 1, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_one_that_is_to_grow_serves_again_once_a_node_of_its_join_list_answers() {
    let mut cluster = Cluster::new(Settings::with_ids([1, 2]));
    cluster.set_flag(1, "--join", format!("1={}", cluster.peer_address(1)));
    cluster.bring_up(1).await;
    assert_serves(&cluster, 1, 1).await;
    cluster.stop(1).await;
    cluster.unset_flags(1);
    cluster.start_node(1);
    eventually("it waits for the other node", PATIENCE, async || match cluster.is_ready(1).await {
        Err(reason) if reason.contains("join list") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    cluster.start_node(2);
    cluster.wait_all_ready().await;
    assert_serves(&cluster, 2, 2).await;
    cluster.assert_agreement().await;
}

/// Fault: all others are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_survivor_answers_local_reads() {
    let mut cluster = Cluster::start().await;
    assert_serves(&cluster, 1, 1).await;
    cluster.assert_agreement().await;
    let survivor = cluster.follower().await;
    cluster.stop(survivor).await;
    cluster.kill_all().await;
    cluster.start_node(survivor);
    let read = Request::get("/v1/kv/still-serving?consistency=local");
    eventually("the survivor answers", PATIENCE, async || {
        let answer = read.send(cluster.client_address(survivor)).await.map_err(|error| error.to_string())?;
        if answer.is_success() { Ok(()) } else { Err(format!("{} {}", answer.status, answer.text())) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_of_another_node_is_refused() {
    let mut cluster = Cluster::start().await;
    assert_serves(&cluster, 1, 1).await;
    let follower = cluster.follower().await;
    let (own, other) = (cluster.data_dir(follower), cluster.live_but(follower)[0]);
    cluster.kill(follower).await;
    cluster.kill(other).await;
    let aside = own.with_extension("aside");
    std::fs::rename(&own, &aside).unwrap();
    std::fs::rename(cluster.data_dir(other), &own).unwrap();
    cluster.start_node(follower);
    let (end, log) = cluster.wait_end(follower, PATIENCE).await;
    assert!(!end.success(), "it must not end as if all were well:\n{log}");
    let words = format!("belongs to node {other}");
    assert!(log.contains(&words) && log.contains(&own.display().to_string()), "no `{words}` and directory in:\n{log}");

    std::fs::rename(&own, cluster.data_dir(other)).unwrap();
    std::fs::rename(&aside, &own).unwrap();
    cluster.start_all();
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
}

/// Fault: a second process on the same directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_in_use_is_refused_to_a_second_process() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    assert_serves(&cluster, 1, 1).await;
    let mut second = Cluster::new(Settings::with_ids([1]));
    std::fs::create_dir_all(second.data_dir(1).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(cluster.data_dir(1), second.data_dir(1)).unwrap();
    second.start_node(1);
    let (end, log) = second.wait_end(1, PATIENCE).await;
    assert!(!end.success(), "two processes on one directory:\n{log}");
    println!("the second process said: {}", log.lines().last().unwrap_or_default());
    assert_serves(&cluster, 1, 2).await;
    cluster.assert_agreement().await;
}
