//! Every route of the OpenAPI document, asked in every state its target can be in, on real processes that nothing hurts.
//!
//! With a node of a development build, `QUORATE_MUTANT` puts a bug into all nodes: then this has to fail.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_harness::drive::client::Nodes;
use cluster_harness::drive::crossing::{ApiClients, declared};
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, Request, Settings};
use serde_json::Value;

const VISITORS: usize = 6;
const THINK: Duration = Duration::from_millis(4);
/// At least, and at most until each route was met.
const DURING: Duration = Duration::from_secs(15);
const DURING_MAX: Duration = Duration::from_secs(60);

/// Routes that nothing should come of here, since they would change who the members are: they are asked in ways that are refused.
const REFUSED: [(&str, &str); 6] = [
    ("post", "/v1/cluster/members"),
    ("delete", "/v1/cluster/members/{id}"),
    ("post", "/v1/cluster/members/{id}/demote"),
    ("post", "/v1/cluster/members/{id}/promote"),
    ("post", "/v1/cluster/members/{id}/repair"),
    ("post", "/v1/cluster/members/{id}/replace"),
];

type Declared = BTreeMap<(String, String), std::collections::BTreeSet<u16>>;

/// Routes that were never asked, or never with success.
fn missing(api_clients: &ApiClients, declared: &Declared) -> Vec<String> {
    let met = api_clients.met();
    let is_met = |(method, path): &(String, String)| {
        let statuses = met.get(&(method.as_str(), path.as_str()));
        let is_refused = REFUSED.contains(&(method, path));
        statuses.is_some_and(|statuses| is_refused || statuses.keys().any(|status| (200..400).contains(status)))
    };
    declared.keys().filter(|route| !is_met(route)).map(|(method, path)| format!("{method} {path}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_asked_in_every_state_and_nothing_is_internal() {
    let mut dice = seeded();
    let mut cluster = Cluster::new(Settings::default());
    if let Ok(mutant) = std::env::var("QUORATE_MUTANT") {
        cluster.ids().into_iter().for_each(|id| cluster.set_environment(id, "QUORATE_MUTANT", &mutant));
    }
    cluster.start_all();
    cluster.wait_all_ready().await;
    let document = Request::get("/openapi.json").send(cluster.client_address(1)).await.expect("it answers");
    let declared: Declared = declared(&document.json::<Value>());
    let api_clients = ApiClients::leading();
    let mut work = api_clients.start(VISITORS, &Nodes::of(&cluster), &mut dice, THINK);
    let begun = tokio::time::Instant::now();
    tokio::time::sleep(DURING).await;
    while !missing(&api_clients, &declared).is_empty() && begun.elapsed() < DURING_MAX && api_clients.wrong().is_empty()
    {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    api_clients.end();
    while work.join_next().await.is_some_and(|ended| ended.is_ok()) {}
    println!("{}", api_clients.table());
    assert!(api_clients.wrong().is_empty(), "{}", api_clients.wrong().join("\n"));
    assert_eq!(missing(&api_clients, &declared), Vec::<String>::new(), "never met with success");
    for ((method, path), statuses) in api_clients.met() {
        let known = declared.get(&(method.to_owned(), path.to_owned()));
        let known = known.unwrap_or_else(|| panic!("{method} {path} is not in the document"));
        let strange: Vec<_> = statuses.keys().filter(|status| !known.contains(status)).collect();
        assert!(strange.is_empty(), "{method} {path} is answered {strange:?}, which the document does not say");
    }
    let (replays, pages) = api_clients.looked();
    assert!(replays > 50 && pages > 10, "{replays} replays, {pages} finds by pages");
    cluster.assert_agreement().await;
}
