//! One counter, many clients, a leader that keeps dying: no increment is lost and none happens twice.

use std::time::Duration;

use cluster_harness::{Cluster, Request, eventually, seed};
use quorate_client::api::EntryView;
use quorate_client::{Client, Updated};
use rand::RngExt;

const CLIENTS: u64 = 8;
const INCREMENTS_EACH: u64 = 60;
const KILLS: u64 = 3;
const KEY: &str = "counter";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_clients_count_together_while_the_leader_is_killed_three_times() {
    let mut random = seed::seeded();
    let mut cluster = Cluster::start().await;
    let ids = cluster.ids();
    let tasks = (0..CLIENTS).map(|number| {
        let client = cluster.client_without(Some(ids[number as usize % ids.len()]));
        tokio::spawn(count(client, number))
    });
    let tasks: Vec<_> = tasks.collect();

    for kill in 1..=KILLS {
        // Spread over the run, each somewhere within its part of it.
        let part = CLIENTS * INCREMENTS_EACH / (KILLS + 1);
        let goal = kill * part - random.random_range(0..part / 2);
        wait_for_count(&cluster, goal).await;
        let leader = cluster.leader().await;
        println!("killing node {leader}, which leads, at about {goal}");
        cluster.kill(leader).await;
        wait_for_count(&cluster, goal + 30).await;
        cluster.bring_up(leader).await;
    }

    let (mut acknowledged, mut tries_most) = (0, 0);
    for task in tasks {
        let counted = task.await.expect("a client gave up");
        acknowledged += counted.acknowledged;
        tries_most = tries_most.max(counted.tries_most);
    }
    println!("most tries of one increment: {tries_most}");
    assert_eq!(acknowledged, CLIENTS * INCREMENTS_EACH);
    for id in cluster.ids() {
        assert_eq!(read(&cluster, id).await, Ok(acknowledged), "the counter through node {id}");
    }
    cluster.assert_agreement().await;
}

/// What one client did.
#[derive(Default)]
struct Counted {
    acknowledged: u64,
    /// How many tries the most contended increment took.
    tries_most: u32,
}

/// Increments until done.
async fn count(client: Client, number: u64) -> Counted {
    let mut counted = Counted::default();
    while counted.acknowledged < INCREMENTS_EACH {
        match client.update(KEY, |now: Option<u64>| Some(now.unwrap_or(0) + 1)).await {
            Ok(Updated::Written { tries, .. }) => {
                counted.acknowledged += 1;
                counted.tries_most = counted.tries_most.max(tries);
            }
            Ok(Updated::Unchanged) => panic!("client {number} increments always"),
            Err(error) => panic!("client {number} gave up after {} increments: {error}", counted.acknowledged),
        }
    }
    counted
}

async fn wait_for_count(cluster: &Cluster, goal: u64) {
    let any = *cluster.live().first().expect("some node lives");
    eventually(&format!("the counter reaches {goal}"), Duration::from_secs(120), async || {
        let now = read(cluster, any).await?;
        if now >= goal { Ok(()) } else { Err(format!("it is at {now}")) }
    })
    .await;
}

/// A linearizable read through one node.
async fn read(cluster: &Cluster, through: u64) -> Result<u64, String> {
    let answer = Request::get(format!("/v1/kv/{KEY}")).send(cluster.client_address(through)).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status == 404 {
        return Ok(0);
    }
    if !answer.is_success() {
        return Err(answer.text());
    }
    let entry: EntryView = answer.json();
    Ok(entry.value.expect("JSON is shown").0.get().parse().expect("a number"))
}
