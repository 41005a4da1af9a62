//! What a node tells of itself: metrics by convention, alerts and a dashboard that know them, the cluster in one view.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use cluster_harness::load::Load;
use cluster_harness::{Cluster, PATIENCE, Request, eventually};
use quorate_client::{MetricKind, Scrape};
use serde_json::Value;

use super::guide::built;
use super::tls::with_tls_between_nodes;

const OPERATIONS: &str = include_str!("../../../docs/operations.md");
const ALERTS: &str = include_str!("../../../scripts/monitoring/alerts.yml");
const ALERTS_TEST: &str = include_str!("../../../scripts/monitoring/alerts_test.yml");
const DASHBOARD: &str = include_str!("../../../scripts/monitoring/dashboard.json");

async fn scrape(cluster: &Cluster, id: u64) -> Scrape {
    let answer = Request::get("/metrics").send(cluster.client_address(id)).await.expect("an answer").expect_success();
    Scrape::parse(&answer.text()).unwrap_or_else(|why| panic!("node {id}: {why}"))
}

/// The first column of the tables of the guide's section on metrics.
fn described() -> BTreeSet<&'static str> {
    let rows = OPERATIONS.lines().filter_map(|line| line.strip_prefix("| `quorate_"));
    rows.map(|row| row.split('`').next().expect("split gives at least one part")).collect()
}

/// Real nodes: some metrics are only there with TLS between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_follows_the_conventions_and_is_what_the_guide_the_alerts_and_the_dashboard_say() {
    let (mut cluster, _certificates, _pki) = with_tls_between_nodes().await;
    Request::put("insight", "1").send(cluster.client_address(1)).await.expect("an answer").expect_success();
    assert_follows_the_conventions_and_is_described(&scrape(&cluster, 1).await);
    assert_is_what_alerts_and_dashboard_ask_for(&scrape(&cluster, 2).await);
    cluster.assert_agreement().await;
}

fn assert_follows_the_conventions_and_is_described(scrape: &Scrape) {
    let described = described();
    let mut faults = Vec::new();
    for family in scrape.families() {
        let name = family.name.as_str();
        let mut must = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("{name}: {what}"));
            }
        };
        must(name.starts_with("quorate_"), "has no prefix");
        must(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "is not snake case",
        );
        must(family.help.as_ref().is_some_and(|help| help.len() > 5), "has no help");
        must(!name.ends_with("_total"), "a counter's ending belongs to its samples");
        for unit in ["_ms", "_milliseconds", "_micros", "_kib", "_mib", "_minutes", "_percent"] {
            must(!name.ends_with(unit), "is not in a base unit: seconds, bytes, ratios");
        }
        let samples = match family.kind {
            MetricKind::Gauge => vec![name.to_owned()],
            MetricKind::Counter => vec![format!("{name}_total")],
            MetricKind::Histogram => ["bucket", "sum", "count"].map(|end| format!("{name}_{end}")).to_vec(),
        };
        must(samples.iter().all(|sample| scrape.value(sample).is_some()), "is described and has no numbers");
        if family.kind == MetricKind::Histogram {
            let is_sized = name.ends_with("_seconds") || name.ends_with("_bytes") || family.unit.is_none();
            must(is_sized, "a histogram of time or size says so in its name");
        }
        let known = name.strip_prefix("quorate_").is_some_and(|short| described.contains(short));
        must(known, "is missing in the table of docs/operations.md");
    }
    let exported: BTreeSet<_> = scrape.families().iter().map(|family| family.name.as_str()).collect();
    for name in &described {
        if !exported.contains(format!("quorate_{name}").as_str()) {
            faults.push(format!("quorate_{name}: stands in docs/operations.md and is exported by no node"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A name in an expression: what it is called, and whether a function that wants a counter is put on it.
fn names_in(expression: &str) -> BTreeMap<String, bool> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeMap::new();
    for (at, _) in expression.match_indices("quorate_") {
        if expression[..at].ends_with(is_word) {
            continue;
        }
        let name: String = expression[at..].chars().take_while(|c| is_word(*c)).collect();
        let before = expression[..at].trim_end();
        let grows = ["rate(", "increase("].iter().any(|function| before.ends_with(function));
        *names.entry(name).or_default() |= grows;
    }
    names
}

/// Every value of a name, wherever it stands.
fn all_of(value: &Value, name: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(text) if field == name => found.push(text.clone()),
                    _ => all_of(value, name, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_of(item, name, found)),
        _ => {}
    }
}

/// Every metric of theirs is exported, and of the right kind.
fn assert_is_what_alerts_and_dashboard_ask_for(scrape: &Scrape) {
    let samples: BTreeSet<&str> = scrape.sample_names().collect();
    let alerts: Value = serde_saphyr::from_str(ALERTS).expect("the alerts are YAML");
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let (mut rules, mut panels) = (Vec::new(), Vec::new());
    all_of(&alerts, "expr", &mut rules);
    all_of(&dashboard, "expr", &mut panels);
    assert!(rules.len() >= 15 && panels.len() >= 30, "{} rules, {} targets", rules.len(), panels.len());
    let mut faults = Vec::new();
    for expression in rules.iter().chain(&panels) {
        for (name, grows) in names_in(expression) {
            if !samples.contains(name.as_str()) {
                faults.push(format!("{name} is exported by no node: {expression}"));
            }
            // An index that only grows within a term is a gauge, and its rate is what it moves by.
            let is_counter = ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end));
            if grows != is_counter && name != "quorate_raft_applied_index" {
                faults.push(format!("{name}: rate and increase are for counters, and counters for them: {expression}"));
            }
        }
        for label in labels_in(expression) {
            let of_prometheus = ["job", "instance"].contains(&label.as_str());
            let is_known = samples.iter().any(|name| scrape.label_names(name).any(|known| known == label));
            if !of_prometheus && !is_known {
                faults.push(format!("no metric has the label {label}: {expression}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let mut names = Vec::new();
    all_of(&alerts, "alert", &mut names);
    for name in names {
        assert!(
            OPERATIONS.contains(&format!("| `{name}`")),
            "{name} is missing among the alerts of docs/operations.md"
        );
    }
}

#[test]
fn each_alert_is_tested_with_series_that_fire_it_and_series_that_do_not() {
    let (alerts, tests): (Value, Value) =
        (serde_saphyr::from_str(ALERTS).expect("YAML"), serde_saphyr::from_str(ALERTS_TEST).expect("YAML"));
    let mut names = Vec::new();
    all_of(&alerts, "alert", &mut names);
    assert!(names.len() >= 30, "{names:?}");
    let tests = tests["tests"].as_array().expect("a list");
    for name in names {
        let test = tests.iter().find(|test| test["name"] == *name);
        let test = test.unwrap_or_else(|| panic!("{name} is missing in alerts_test.yml"));
        let looks = test["promql_expr_test"].as_array().expect("a list");
        let quoted = format!("\"{name}\"");
        let is_of_it = |look: &Value| look["expr"].as_str().is_some_and(|expression| expression.contains(&quoted));
        assert!(looks.iter().all(is_of_it), "{name}: {looks:?}");
        let fires = |look: &Value| look["exp_samples"].as_array().is_some_and(|samples| !samples.is_empty());
        assert!(looks.iter().any(fires) && !looks.iter().all(fires), "{name}: {looks:?}");
    }
}

/// The labels that an expression selects by.
fn labels_in(expression: &str) -> BTreeSet<String> {
    let selectors = expression.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parts = selectors.flat_map(|selector| selector.split(','));
    parts.filter_map(|part| part.split_once('=')).map(|(label, _)| label.trim().to_owned()).collect()
}

/// Runs the client's program on these endpoints; gives its exit code and what it printed.
async fn quorate(endpoints: String, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(built("quorate"));
    command.args(arguments).env("QUORATE_ENDPOINTS", endpoints);
    let done = tokio::task::spawn_blocking(move || command.output()).await.expect("the task ends");
    let done = done.expect("the program runs");
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_shows_every_member_though_one_endpoint_is_known_and_one_node_is_dead() {
    let mut cluster = Cluster::start().await;
    let one = cluster.client_address(1).to_string();
    let (code, text) = quorate(one.clone(), &["status"]).await;
    assert_eq!(code, Some(0), "{text}");
    for words in ["3 of 3 voters answer", "one more may fail", "feature level"] {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
    let (_, json) = quorate(one.clone(), &["status", "--output", "json"]).await;
    let overview: Value = serde_json::from_str(&json).expect("JSON");
    let members = &overview["nodes"];
    assert_eq!((&overview["quorum"], &overview["voters_answering"]), (&Value::from(true), &Value::from(3)), "{json}");
    let ids: Vec<_> = members.as_array().expect("a list").iter().map(|member| member["node_id"].as_u64()).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    assert!(members[2]["status"]["disk_free_bytes"].as_u64().is_some_and(|free| free > 0), "{json}");

    cluster.kill(3).await;
    eventually("the others see that one more must not fail", PATIENCE, async || {
        let (code, text) = quorate(one.clone(), &["status"]).await;
        let dead = text.lines().any(|line| line.starts_with("3 ") && line.contains("no answer"));
        let told = code == Some(0) && dead && text.contains("2 of 3 voters answer, not one more may fail");
        if told { Ok(()) } else { Err(text) }
    })
    .await;
    cluster.kill(2).await;
    eventually("the one that is left does not say that somebody leads", PATIENCE, async || {
        let (code, text) = quorate(one.clone(), &["status"]).await;
        let (_, json) = quorate(one.clone(), &["status", "-o", "json"]).await;
        let is_told = text.contains("no leader") && text.contains("1 of 3 voters answer, no quorum");
        let told = is_told && code == Some(1) && json.contains("\"leader_id\":null") && json.contains("\"no_leader\"");
        if told { Ok(()) } else { Err(format!("{text}{json}")) }
    })
    .await;
    cluster.bring_up(2).await;
    cluster.bring_up(3).await;
    let (code, text) = quorate("127.0.0.1:1".into(), &["status", "--timeout", "1s"]).await;
    assert_eq!(code, Some(1), "nobody answers: {text}");
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_shows_what_the_nodes_do_meanwhile() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, 4, "top");
    load.wait_for_more(100).await;
    let endpoints: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id).to_string()).collect();
    let (code, json) = quorate(endpoints.join(","), &["top", "--once", "--every", "500ms", "--output", "json"]).await;
    assert_eq!(code, Some(0), "{json}");
    let nodes: Value = serde_json::from_str(&json).expect("JSON");
    let nodes = nodes.as_array().expect("a list");
    assert_eq!(nodes.len(), 3);
    let rate = |node: &Value| node["requests_per_second"]["entries"].as_f64().expect("a rate");
    assert!(nodes.iter().map(rate).sum::<f64>() > 10.0, "{json}");
    assert_eq!(nodes.iter().filter(|node| node["leads"] == true).count(), 1, "{json}");
    assert!(nodes.iter().any(|node| node["p99_seconds"].as_f64().is_some_and(|p99| p99 > 0.0)), "{json}");
    assert!(nodes.iter().all(|node| node["memory_bytes"].as_f64().is_some_and(|bytes| bytes > 1e6)), "{json}");
    let (code, text) = quorate(endpoints.join(","), &["top", "--once", "--every", "200ms"]).await;
    assert_eq!((code, text.lines().count()), (Some(0), 4), "a heading and three nodes:\n{text}");
    load.finish().await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_counts_whom_it_reaches_and_disks_and_rates_are_told() {
    let mut cluster = Cluster::start().await;
    let reached = async |expected: f64| {
        let leader = cluster.leader().await;
        // So that whoever leads has had a batch.
        let put = Request::put("insight", "1").send(cluster.client_address(leader)).await;
        let answer = put.map_err(|error| error.to_string())?;
        if !answer.is_success() {
            return Err(answer.text());
        }
        let scrape = scrape(&cluster, leader).await;
        let found = scrape.value("quorate_raft_voters_reached");
        if found == Some(expected) { Ok(scrape) } else { Err(format!("{found:?} voters reached")) }
    };
    let now = eventually("all voters are reached", PATIENCE, async || reached(3.0).await).await;
    assert_eq!(now.value("quorate_raft_voters"), Some(3.0));
    assert!(now.value("quorate_disk_size_bytes") >= now.value("quorate_disk_free_bytes"));
    assert_eq!(now.value("quorate_disk_low"), Some(0.0));
    for counted in ["quorate_apply_duration_seconds_count", "quorate_batch_duration_seconds_count"] {
        assert!(now.value(counted).is_some_and(|count| count > 0.0), "{counted}");
    }
    let other = cluster.follower().await;
    cluster.kill(other).await;
    let reached = async || {
        let found = scrape(&cluster, cluster.leader().await).await.value("quorate_raft_voters_reached");
        if found == Some(2.0) { Ok(()) } else { Err(format!("{found:?} voters reached")) }
    };
    eventually("the dead one is not", Duration::from_secs(20), reached).await;
    cluster.bring_up(other).await;
    cluster.assert_agreement().await;
}
