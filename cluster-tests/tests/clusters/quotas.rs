//! Quotas on clusters of real processes: what is counted holds on every node, and over a new leader.

use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, Settings, eventually};
use quorate_client::api::{ErrorCode, Grant, Permission, Problem, QuotaRequest, QuotaState};
use quorate_client::{Client, Error, Value};

/// No failover ends a session that lives so long.
const LONG: Duration = Duration::from_secs(60);

const ROOT: &str = "5f0d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";

fn client(cluster: &Cluster, token: &str) -> Client {
    let all: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect();
    Client::builder().endpoints(all.join(",")).timeout(PATIENCE).token(token).build().expect("a client")
}

fn refused<T: std::fmt::Debug>(done: Result<T, Error>) -> Problem {
    let error = done.expect_err("it is beyond a quota");
    let problem = error.problem().unwrap_or_else(|| panic!("no problem: {error}")).clone();
    assert_eq!(problem.code, ErrorCode::QuotaExceeded, "{problem:?}");
    problem
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_hold_on_every_node_and_over_a_new_leader() {
    let mut cluster = Cluster::start_with(Settings::default().guarded(ROOT)).await;
    let root = client(&cluster, ROOT);
    for n in 0..30 {
        root.put(format!("t/{n:02}"), Value::bytes("x")).await.expect("there is no quota yet");
    }
    let bounds = QuotaRequest { entries: Some(20), ..QuotaRequest::default() };
    root.quotas().set_prefix("t/", bounds).await.expect("a quota");
    eventually("the quota has counted what was there", PATIENCE, async || {
        let quota = root.quotas().prefix("t/").await.expect("an answer").expect("it is there");
        let used = quota.used.and_then(|used| used.entries);
        if quota.state == Some(QuotaState::Enforced) && used == Some(30) { Ok(()) } else { Err(format!("{quota:?}")) }
    })
    .await;
    let quota = refused(root.put("t/new", Value::bytes("x")).await).quota.expect("which quota");
    assert_eq!((quota.prefix, &*quota.counts, quota.bound, quota.used), (Some("t/".into()), "entries", 20, 30));

    // A user has what it was given, and no more sessions than that.
    let all = Grant { permission: Permission::Lock, prefix: "".into() };
    root.access().set_role("app", [all]).await.expect("a role");
    root.access().set_user("app", ["app"]).await.expect("a user");
    let token = root.access().create_token("app").await.expect("a token").token.0;
    let two = QuotaRequest { sessions: Some(2), locks: Some(1), ..QuotaRequest::default() };
    root.quotas().set_principal("app", two).await.expect("a quota");
    let app = client(&cluster, &token);
    let first = app.session().ttl(LONG).await.expect("the first");
    let _second = app.session().ttl(LONG).await.expect("the second");
    let quota = refused(app.session().await).quota.expect("which quota");
    assert_eq!((quota.principal.as_deref(), quota.bound, quota.used), (Some("app"), 2, 2));
    assert!(root.session().await.is_ok(), "others have their own");

    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    refused(root.put("t/new", Value::bytes("x")).await);
    for n in 0..11 {
        root.remove(format!("t/{n:02}")).await.expect("what is there may go");
    }
    root.put("t/new", Value::bytes("x")).await.expect("there is room again");
    first.end().await.expect("it ends");
    let third = app.session().await.expect("there is room again");
    let used = root.quotas().principal("app").await.expect("an answer").used.expect("what is used");
    assert_eq!((used.sessions, used.locks), (Some(2), Some(0)));
    drop(third);
}
