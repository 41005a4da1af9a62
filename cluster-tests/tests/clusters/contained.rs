//! A bug in applying one command: it is taken back on all nodes, everything else goes on, and nobody can miss it.

use cluster_harness::{Answer, Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::api::{Applied, ErrorCode, FaultsAnswer, FaultsReply, StatusAnswer};

/// The key on which applying panics, in this build of the nodes.
const KEY: &str = "boom";

async fn status(cluster: &Cluster, id: u64) -> StatusAnswer {
    cluster.status(id).await.expect("it answers")
}

async fn faults(cluster: &Cluster, id: u64) -> FaultsAnswer {
    ask(cluster, id, Request::get("/v1/cluster/faults")).await.json()
}

async fn ask(cluster: &Cluster, id: u64, request: Request) -> Answer {
    request.send(cluster.client_address(id)).await.expect("an answer")
}

async fn put(cluster: &Cluster, id: u64, key: &str, request_id: &str) -> Answer {
    ask(cluster, id, Request::put(key, "1").request_id(request_id)).await
}

/// Asserts that a write met the bug: nothing of it was applied.
fn assert_internal(answer: &Answer) {
    let problem = answer.problem();
    assert_eq!((problem.status, problem.code, problem.applied), (500, ErrorCode::Internal, Applied::No), "{problem:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_panics_is_taken_back_on_all_nodes_and_everything_else_goes_on() {
    let mut cluster = Cluster::new(Settings::default());
    cluster.expect_faults();
    for id in cluster.ids() {
        cluster.set_environment(id, "QUORATE_PANIC_ON_KEY", KEY);
    }
    cluster.start_all();
    cluster.wait_all_ready().await;

    put(&cluster, 1, "before", "b-1").await.expect_success();
    assert_internal(&put(&cluster, 1, KEY, "boom-1").await);
    // Its outcome is kept as any other, whichever node is asked.
    assert_internal(&put(&cluster, 2, KEY, "boom-1").await);
    let kept = ask(&cluster, 3, Request::get("/v1/requests/boom-1")).await;
    assert!(kept.text().contains("internal"), "{}", kept.text());
    // With others in one command, all of it is taken back; in one log entry, only itself.
    let txn =
        r#"{"then": [{"op": "upsert", "key": "beside", "value": 1}, {"op": "upsert", "key": "boom", "value": 1}]}"#;
    assert_internal(&ask(&cluster, 1, Request::post("/v1/txn", txn)).await);
    let beside = ask(&cluster, 1, Request::get("/v1/kv/beside")).await;
    assert_eq!(beside.status, 404, "{}", beside.text());
    let (first, bad, second) =
        tokio::join!(put(&cluster, 1, "one", "o-1"), put(&cluster, 1, KEY, "boom-2"), put(&cluster, 1, "two", "t-1"));
    first.expect_success();
    assert_internal(&bad);
    second.expect_success();

    // Nobody can miss it.
    for id in cluster.ids() {
        eventually("the node has met all of it", PATIENCE, async || {
            let commands = faults(&cluster, id).await.commands;
            if commands == 3 { Ok(()) } else { Err(format!("{commands} commands")) }
        })
        .await;
        let warnings = status(&cluster, id).await.warnings;
        assert!(warnings.iter().any(|warning| warning.contains("3 commands faulted")), "{warnings:?}");
        let metrics = ask(&cluster, id, Request::get("/metrics")).await.text();
        assert!(metrics.contains("quorate_faulted_commands_total 3"), "node {id}");
        assert!(cluster.log_text(id).contains("the deliberate bug of the key boom"), "node {id}");
    }
    let told = faults(&cluster, 1).await;
    assert_eq!((told.kept.len(), told.parked, told.work.len()), (3, 0, 0), "{told:?}");
    assert_eq!(told, faults(&cluster, 2).await, "what is told is a part of the state");
    cluster.assert_agreement().await;

    // What was committed is applied again at each start.
    cluster.kill_all().await;
    cluster.start_all();
    cluster.wait_all_ready().await;
    assert_eq!(faults(&cluster, 3).await, told);
    put(&cluster, 3, "after", "a-1").await.expect_success();
    cluster.assert_agreement().await;

    let forget: FaultsReply =
        ask(&cluster, 2, Request::post("/v1/cluster/faults", r#"{"verb": "forget"}"#)).await.json();
    assert_eq!(forget.count, 3);
    eventually("the warning is gone", PATIENCE, async || {
        let warnings = status(&cluster, 1).await.warnings;
        if warnings.iter().any(|warning| warning.contains("faulted")) { Err(format!("{warnings:?}")) } else { Ok(()) }
    })
    .await;
}
