//! A node whose state is not that of the others: it notices, serves nobody, says so, and is rebuilt from the leader.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::Load;
use cluster_harness::{Cluster, Request, eventually};
use quorate_client::{Client, Scrape, Value};
use quorate_machine::codec;
use quorate_machine::keyspace::digest::RowHasher;
use quorate_machine::keyspace::entry;
use quorate_store::meta::{APPLIED_KEY, AppliedRecord};

/// The key whose row is altered on one disk.
const KEY: &str = "altered";

/// What a bug leaves that has one node apply something else than the others: another value in one row, and a digest that has it.
fn alter(cluster: &Cluster, id: u64) {
    let state = cluster.data_dir(id).join("state");
    let pointer = fs::read_to_string(state.join("CURRENT-DB")).unwrap();
    let live: PathBuf = state.join(pointer.split_whitespace().last().unwrap());
    let db = rocksdb::DB::open(&rocksdb::Options::default(), live).unwrap();
    let row_key = entry::row_key(KEY.as_bytes());
    let row = db.get(&row_key).unwrap().expect("the entry is there");
    let mut other = row.clone();
    let at = row.len() - 2;
    assert_eq!(row[at], b'e', "the value ends with `value\"`");
    other[at] = b'E';
    let mut record: AppliedRecord =
        codec::decode(&db.get(APPLIED_KEY).unwrap().expect("it applied something")).unwrap();
    let mut hasher = RowHasher::default();
    let change = hasher.hash(&row_key, &other).wrapping_sub(hasher.hash(&row_key, &row));
    record.vars.lasting_digest = record.vars.lasting_digest.wrapping_add(change);
    let mut options = rocksdb::WriteOptions::new();
    options.disable_wal(true);
    db.put_opt(&row_key, &other, &options).unwrap();
    db.put_opt(APPLIED_KEY, codec::encode(&record), &options).unwrap();
    db.flush().unwrap();
}

/// A cluster of which two nodes are left, and the state of one of them differs: nobody is there to say who is right. Gives the one that
/// was altered and the one that is not there.
async fn altered() -> (Cluster, u64, u64) {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    client.put(KEY, Value::json_text("\"the value\"")).await.expect("written");
    let victim = cluster.follower().await;
    let leader = cluster.leader().await;
    let third = cluster.live_but(victim).into_iter().find(|id| *id != leader).expect("there are three");
    // Acknowledged by the other two it may yet be on its way.
    for id in [victim, third] {
        eventually("it has the entry", PATIENCE, async || {
            match answer(&cluster, id, "/v1/kv/altered?consistency=local").await {
                (200, _) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    cluster.stop(victim).await;
    alter(&cluster, victim);
    cluster.stop(third).await;
    cluster.start_node(victim);
    (cluster, victim, third)
}

/// Waits until one of two nodes that differ has stopped for that, and gives it and the one that goes on, which leads.
async fn split(cluster: &Cluster, nodes: [u64; 2]) -> (u64, u64) {
    let mut found = None;
    eventually("one of them leads, and the other stops", PATIENCE, async || {
        let mut warned = Vec::new();
        for id in nodes {
            warned.push((id, cluster.status(id).await?));
        }
        let stopped = warned.iter().filter(|(_, status)| !status.ready).map(|(id, _)| *id).collect::<Vec<_>>();
        let leads = warned.iter().find(|(id, status)| status.leader_id == Some(*id)).map(|(id, _)| *id);
        match (&stopped[..], leads) {
            ([stopped], Some(leads)) if *stopped != leads => found = Some((*stopped, leads)),
            _ => return Err(format!("{warned:?}")),
        }
        for (id, status) in &warned {
            if !status.warnings.iter().any(|warning| warning.contains("no majority says who is right")) {
                return Err(format!("node {id} does not tell: {:?}", status.warnings));
            }
            let split = metric(cluster, *id, "quorate_digest_split_nodes").await;
            if split != 1 {
                return Err(format!("node {id} counts {split}"));
            }
        }
        Ok(())
    })
    .await;
    found.expect("it was found")
}

/// A client that asks once where a machine is only slow: a second try may be told that nothing was left to do.
pub fn patient(cluster: &Cluster) -> Client {
    let endpoints: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect();
    let builder = Client::builder().endpoints(endpoints.join(","));
    builder.timeout(2 * PATIENCE).attempt_timeout(2 * PATIENCE).build().expect("addresses are endpoints")
}

async fn answer(cluster: &Cluster, id: u64, path: &str) -> (u16, serde_json::Value) {
    let answer = Request::get(path).send(cluster.client_address(id)).await.expect("it answers");
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

async fn metric(cluster: &Cluster, id: u64, name: &str) -> u64 {
    let answer = Request::get("/metrics").send(cluster.client_address(id)).await.expect("it answers");
    let scrape = Scrape::parse(&answer.text()).expect("it can be read");
    scrape.value(name).unwrap_or_else(|| panic!("no {name} in {}", answer.text())) as u64
}

/// Waits until the node has put itself into quarantine, and looks at what it says then.
async fn assert_quarantined(cluster: &Cluster, victim: u64) {
    eventually("the node puts itself into quarantine", PATIENCE, async || {
        let (status, problem) = answer(cluster, victim, "/v1/kv/altered?consistency=local").await;
        if status == 503 && problem["code"] == "quarantined" { Ok(()) } else { Err(format!("{status} {problem}")) }
    })
    .await;
    let (status, problem) = answer(cluster, victim, "/readyz").await;
    assert!(status == 503 && problem["detail"].to_string().contains("member repair"), "{problem}");
    assert_eq!(
        answer(cluster, victim, "/livez").await.0,
        200,
        "it is not to be restarted: its log counts for the quorum"
    );
    assert_eq!(metric(cluster, victim, "quorate_quarantined").await, 1);
    let warnings = cluster.status(victim).await.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("its state is wrong")), "{warnings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_state_differs_serves_nobody_until_it_is_rebuilt() {
    let mut cluster = Cluster::start().await;
    let client = patient(&cluster);
    client.put(KEY, Value::json_text("\"the value\"")).await.expect("written");
    let victim = cluster.follower().await;
    let only_victim = Client::builder()
        .endpoints(cluster.client_address(victim).to_string())
        .discover_members(false)
        .build()
        .expect("an endpoint");
    cluster.wait_ready(victim).await;
    cluster.stop(victim).await;
    alter(&cluster, victim);
    cluster.start_node(victim);
    // It may be found out before anybody asks it anything.
    let watching = async {
        let mut watch = only_victim.watch("alt").initial().start().await.ok()?;
        let _first = watch.next().await;
        Some(watch)
    };
    let watch = tokio::time::timeout(Duration::from_secs(1), watching).await.ok().flatten();
    assert_quarantined(&cluster, victim).await;
    eventually("the others know", PATIENCE, async || {
        let other = cluster.live_but(victim)[0];
        let (wrong, agreed) = (
            metric(&cluster, other, "quorate_digest_diverged_nodes").await,
            metric(&cluster, other, "quorate_digest_compared_index").await,
        );
        if wrong == 1 && agreed > 0 { Ok(()) } else { Err(format!("{wrong} at {agreed}")) }
    })
    .await;
    // What the watch saw is true; then the node ends it rather than tell what may be wrong. It has no other node to go on at.
    if let Some(mut watch) = watch {
        eventually("the node lets go of its watch", PATIENCE, async || {
            let _ = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
            match metric(&cluster, victim, "quorate_watches").await {
                0 => Ok(()),
                watches => Err(format!("{watches} watches")),
            }
        })
        .await;
    }

    cluster.kill(victim).await;
    cluster.start_node(victim);
    eventually("it listens again", PATIENCE, async || cluster.status(victim).await.map(drop)).await;
    assert_quarantined(&cluster, victim).await;

    let load = Load::start(&cluster, 4, "meanwhile");
    load.wait_for_more(200).await;
    let other = cluster.live_but(victim)[0];
    assert!(!client.members().repair(other).await.expect("an answer").repaired, "it trusts its state");
    let repaired = client.members().repair(victim).await;
    assert!(repaired.expect("an answer").repaired);
    cluster.wait_ready(victim).await;
    load.wait_for_more(200).await;
    load.finish().await;
    let read = only_victim.get(KEY).await.expect("it serves").expect("it is there");
    assert_eq!(read.json::<String>().unwrap(), "the value");
    assert_eq!(metric(&cluster, victim, "quorate_quarantined").await, 0);
    // Trusted from now on, over a restart too.
    cluster.stop(victim).await;
    cluster.bring_up(victim).await;
    cluster.assert_agreement().await;
}

/// Two nodes of three are left and differ. The one that leads goes on, the other stops, also over a restart; then the third comes back and
/// agrees with the one that stopped: that one serves again by itself, and the leader hands over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_is_told_and_the_leader_goes_on_until_a_majority_decides() {
    let (mut cluster, victim, third) = altered().await;
    let other = cluster.ids().into_iter().find(|id| ![victim, third].contains(id)).expect("there are three");
    let (stopped, leads) = split(&cluster, [victim, other]).await;
    let (status, problem) = answer(&cluster, stopped, "/v1/kv/altered?consistency=local").await;
    assert_eq!((status, &problem["code"]), (503, &"quarantined".into()), "{problem}");
    assert_eq!(answer(&cluster, leads, "/v1/kv/altered").await.0, 200);
    cluster.kill(stopped).await;
    cluster.start_node(stopped);
    assert_eq!(split(&cluster, [victim, other]).await, (stopped, leads), "a restart changes nothing");
    let client = cluster.client_without(None);
    client.put("more", Value::json_text("1")).await.expect("the leader goes on, and the other acknowledges");

    // Whatever the third holds is what the majority holds.
    if stopped == victim {
        alter(&cluster, third);
    }
    cluster.bring_up(third).await;
    assert_quarantined(&cluster, leads).await;
    cluster.wait_ready(stopped).await;
    eventually("another node leads", PATIENCE, async || match cluster.leader().await {
        leader if leader == leads => Err("it still leads".into()),
        _ => Ok(()),
    })
    .await;
    client.put("more", Value::json_text("2")).await.expect("the others go on");
    // With the other follower gone there is a quorum only with the node in quarantine: its log is as good as any.
    let leader = cluster.leader().await;
    let follower = cluster.live_but(leads).into_iter().find(|id| *id != leader).expect("there are three");
    cluster.kill(follower).await;
    client.put("more", Value::json_text("3")).await.expect("it acknowledges entries");
    cluster.bring_up(follower).await;
    assert!(patient(&cluster).members().repair(leads).await.expect("an answer").repaired);
    cluster.wait_all_ready().await;
    cluster.hand_leadership_to(leads).await;
    cluster.assert_agreement().await;
}
