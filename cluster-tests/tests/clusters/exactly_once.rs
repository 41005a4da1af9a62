//! A request id makes a write happen once, wherever and whenever it is sent again.

use cluster_harness::{Cluster, Request};
use quorate_client::api::{EntryView, WriteAnswer};

use crate::forms::Forms;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_resent_to_every_node_and_after_a_failover_is_applied_once() {
    let mut cluster = Cluster::start().await;
    let request = Request::put("once", "7").request_id("once-1");
    let first: WriteAnswer = request.send(cluster.client_address(1)).await.unwrap().expect_success().json();
    assert!(!first.replayed, "the first try is no replay");

    assert_replayed_everywhere(&cluster, &request, &first).await;
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    cluster.leader().await;
    assert_replayed_everywhere(&cluster, &request, &first).await;
    cluster.bring_up(leader).await;
    assert_replayed_everywhere(&cluster, &request, &first).await;
    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    assert_replayed_everywhere(&cluster, &request, &first).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_a_write_is_told_its_first_outcome_by_every_node_and_after_a_failover() {
    let mut cluster = Cluster::start().await;
    let forms = Forms::decide(&cluster).await;
    for id in cluster.live() {
        forms.assert_replayed(&cluster, id).await;
    }
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    cluster.leader().await;
    for id in cluster.live() {
        forms.assert_replayed(&cluster, id).await;
    }
    cluster.bring_up(leader).await;
    cluster.assert_agreement().await;
}

async fn assert_replayed_everywhere(cluster: &Cluster, request: &Request, first: &WriteAnswer) {
    for id in cluster.live() {
        let at = cluster.client_address(id);
        let again: WriteAnswer = request.send(at).await.unwrap().expect_success().json();
        assert_eq!(again, WriteAnswer { replayed: true, ..first.clone() }, "the kept answer, through node {id}");
        let entry: EntryView = Request::get("/v1/kv/once").send(at).await.unwrap().expect_success().json();
        assert_eq!((entry.version, entry.mod_revision), (1, first.revision), "written once, seen through node {id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_id_sent_to_all_nodes_at_once_is_applied_once() {
    let mut cluster = Cluster::start().await;
    for round in 0..30_u64 {
        let key = format!("at-once/{round}");
        let request = Request::put(&key, round.to_string()).request_id(&format!("at-once-{round}"));
        let mut tries = Vec::new();
        for id in cluster.ids() {
            let (request, at) = (request.clone(), cluster.client_address(id));
            tries.push(tokio::spawn(
                async move { request.send(at).await.unwrap().expect_success().json::<WriteAnswer>() },
            ));
        }
        let mut answers = Vec::new();
        for each in tries {
            answers.push(each.await.unwrap());
        }
        assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1, "one of {answers:?} took effect");
        assert!(answers.iter().all(|answer| answer.cas == answers[0].cas && answer.version == Some(1)), "{answers:?}");
    }
    cluster.assert_agreement().await;
}
