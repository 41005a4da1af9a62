//! The documents about the API itself: OpenAPI, metrics, version.

use std::collections::BTreeSet;

use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::metrics::{MetricsSource, Sample, Value};
use quorate_node_http::{Route, all_routes};
use serde_json::{Value as Json, json};

use crate::raw::Server;

#[tokio::test]
async fn the_openapi_document_has_every_route_method_and_error() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    let listed: BTreeSet<_> = paths.keys().map(String::as_str).collect();
    let routes: Vec<&Route> = all_routes().iter().filter(|route| !route.operations().is_empty()).collect();
    assert_eq!(listed, routes.iter().map(|route| route.template()).collect());
    for route in routes {
        let methods: BTreeSet<_> =
            route.allow().split(", ").filter(|method| *method != "HEAD").map(str::to_lowercase).collect();
        let item = paths[route.template()].as_object().expect("a path item");
        assert_eq!(item.keys().cloned().collect::<BTreeSet<_>>(), methods, "{route:?}");
        for (method, operation) in item {
            let responses = operation["responses"].as_object().expect("responses");
            assert!(responses.keys().any(|status| status.as_str() < "400"), "{method} {route:?} never succeeds");
            assert!(operation["summary"].is_string(), "{method} {route:?} is not described");
            if route.is_data() {
                let error = &responses["400"]["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(error, "#/components/schemas/Problem", "{method} {route:?}");
                assert!(responses.contains_key("504") && responses.contains_key("503"), "{method} {route:?}");
            }
        }
    }
    // A null is refused where a field may be left out.
    let find = &document["components"]["schemas"]["FindRequest"]["properties"];
    assert_eq!((&find["cursor"]["type"], &find["where"]["type"]), (&"string".into(), &"array".into()));
    let put = &paths["/v1/kv/{key}"]["put"];
    for status in ["201", "409", "412", "413", "415", "507"] {
        assert!(put["responses"][status].is_object(), "{status}");
    }
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("a name");
        assert!(schemas.contains_key(name), "{name} is referred to and not there");
    }
}

#[test]
fn the_operators_guide_lists_all_that_is_open_to_all() {
    const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
    let chapter = OPERATIONS.split("## Authentication and audit").nth(1).expect("a chapter");
    let list = chapter.split("are open to all").next().expect("a list");
    let is_open = |route: &&Route| route.operations().iter().any(|operation| operation.policy.guard == Guard::None);
    for route in all_routes().iter().filter(is_open) {
        let shown = match route.template().split("/{").next().expect("a path") {
            "/" | "/console" => "the console's files".to_owned(),
            path => format!("`{path}`"),
        };
        assert!(list.contains(&shown), "{shown} is missing in {list}");
    }
    for of_etcd in ["`/health`", "etcd's Authenticate"] {
        assert!(list.contains(of_etcd), "{of_etcd} is missing in {list}");
    }
}

#[tokio::test]
async fn the_openapi_document_says_what_every_response_and_bound_is() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    let mut responses = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("a path item") {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                // Refused by the HTTP library: there is no answer of ours.
                let ours = status != "431";
                assert_eq!(response["headers"]["Quorate-Revision"].is_object(), ours, "{status} of {method} {path}");
                responses += 1;
            }
        }
    }
    assert!(responses > 100, "only {responses} responses are described");
    let text = document.to_string();
    assert!(!text.contains("\"int64\"") && text.contains("\"uint64\""), "all our numbers are unsigned");
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(
        (&schemes["bearer"]["scheme"], &schemes["certificate"]["type"]),
        (&"bearer".into(), &"mutualTLS".into())
    );
    let get = &document["paths"]["/v1/kv/{key}"]["get"];
    assert_eq!(get["security"], serde_json::json!([{"bearer": []}, {"certificate": []}, {}]));
    assert_eq!(document["paths"]["/livez"]["get"]["security"], serde_json::json!([]));
    for (method, status) in [("get", "200"), ("get", "304"), ("put", "200"), ("put", "201"), ("patch", "204")] {
        let headers = &document["paths"]["/v1/kv/{key}"][method]["responses"][status]["headers"];
        assert!(headers["ETag"].is_object(), "{method} {status}");
        assert_eq!(headers["Location"].is_object(), status == "201", "{method} {status}");
    }
    assert!(get["responses"]["503"]["headers"]["Retry-After"].is_object());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["EntryView"]["properties"]["value"]["type"], serde_json::Value::Null, "a value is any JSON");
    assert_eq!(schemas["EntryView"]["properties"]["cas"]["type"], serde_json::json!(["string", "null"]));
    assert_eq!(schemas["Op"]["properties"]["cas"]["type"], "string", "null is refused there");
    assert_eq!(schemas["Op"]["properties"]["key"]["maxLength"], 4_096);
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_never_by_key() {
    let server = Server::start().await;
    server.put_json("/v1/kv/secret-key", "1").await;
    server.get("/v1/kv/other-key").await;
    server.get("/nowhere").await;
    let response = server.get("/metrics").await;
    let text = response.text();
    for line in [
        "quorate_http_requests_total{route=\"/v1/kv/{key}\",code=\"2xx\"} 1",
        "quorate_http_requests_total{route=\"/v1/kv/{key}\",code=\"4xx\"} 1",
        "quorate_http_requests_total{route=\"unknown\",code=\"4xx\"} 1",
        "quorate_http_request_duration_seconds_count{route=\"/v1/kv/{key}\"} 2",
        "quorate_raft_term 7",
        "quorate_raft_is_leader 0",
        "quorate_http_requests_in_flight 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("secret-key") && !text.contains("nowhere"));
    assert!(response.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text")));
    assert_eq!(server.get("/version").await.json()["api"], "v1");
}

struct Parts;

impl MetricsSource for Parts {
    fn sample(&self, out: &mut Vec<Sample>) {
        let buckets = vec![(0.001, 2), (0.5, 0), (f64::INFINITY, 1)];
        let value = Value::Histogram { sum: 1.25, buckets };
        out.push(Sample { name: "log_fsync_duration_seconds", help: "Time of one fsync", label: None, value });
        for (channel, frames) in [("control", 3), ("append", 4)] {
            out.push(Sample::counter("peer_frames_sent", "Frames", frames).labelled("channel", channel));
        }
        out.push(Sample::gauge("write_queue_commands", "Commands", 5));
    }
}

#[tokio::test]
async fn metrics_show_what_the_parts_of_the_node_count() {
    let server = Server::start().await;
    server.metrics.add_source(Parts);
    server.metrics.observe_batch(3, 700);
    server.metrics.observe_forwarded(2);
    server.metrics.observe_read_round(9);
    server.metrics.observe_election();
    let text = server.get("/metrics").await.text();
    let lines: BTreeSet<_> = text.lines().collect();
    for line in [
        "# TYPE quorate_batch_commands histogram",
        "quorate_batch_commands_bucket{le=\"4.0\"} 1",
        "quorate_batch_size_bytes_sum 700.0",
        "quorate_forwarded_commands_total 2",
        "quorate_read_index_rounds_total 1",
        "quorate_read_index_reads_sum 9.0",
        "quorate_elections_started_total 1",
        "# TYPE quorate_log_fsync_duration_seconds histogram",
        "quorate_log_fsync_duration_seconds_sum 1.25",
        "quorate_log_fsync_duration_seconds_count 3",
        "quorate_log_fsync_duration_seconds_bucket{le=\"0.5\"} 2",
        "quorate_log_fsync_duration_seconds_bucket{le=\"+Inf\"} 3",
        "# TYPE quorate_peer_frames_sent counter",
        "quorate_peer_frames_sent_total{channel=\"control\"} 3",
        "quorate_peer_frames_sent_total{channel=\"append\"} 4",
        "# TYPE quorate_write_queue_commands gauge",
        "quorate_write_queue_commands 5.0",
    ] {
        assert!(lines.contains(line), "{line} is missing in\n{text}");
    }
    let resident = text.lines().find_map(|line| line.strip_prefix("quorate_process_resident_memory_bytes "));
    assert!(resident.is_some_and(|bytes| bytes.parse::<f64>().is_ok_and(|bytes| bytes > 1e6)), "{resident:?}");
    // Each name is described once, as one kind of number.
    let described: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let names: BTreeSet<_> = described.iter().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(described.len(), names.len());
}

/// What of a document is a promise: not the texts for people, and not of which build it is.
fn promises(document: &mut Json, is_names: bool) {
    match document {
        Json::Object(fields) => {
            let text =
                |name: &str| matches!(name, "description" | "summary" | "title" | "example" | "examples" | "info");
            fields.retain(|name, _| is_names || !text(name));
            fields.iter_mut().for_each(|(name, field)| promises(field, name == "properties"));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| promises(item, false)),
        _ => {}
    }
}

/// A line for each operation and each component.
fn lines(document: &Json) -> String {
    let mut text = String::from("{\n");
    let parts = document.as_object().expect("an object");
    for (number, (name, part)) in parts.iter().enumerate() {
        let end = if number + 1 < parts.len() { "," } else { "" };
        match (name.as_str(), part) {
            ("paths" | "components", Json::Object(groups)) => {
                text += &format!("{}: {{\n", json!(name));
                for (number, (name, group)) in groups.iter().enumerate() {
                    let inner = group.as_object().expect("an object");
                    let inner: Vec<_> = inner.iter().map(|(name, one)| format!("{}: {one}", json!(name))).collect();
                    let end = if number + 1 < groups.len() { "," } else { "" };
                    text += &format!("{}: {{\n{}\n}}{end}\n", json!(name), inner.join(",\n"));
                }
                text += &format!("}}{end}\n");
            }
            _ => text += &format!("{}: {part}{end}\n", json!(name)),
        }
    }
    text + "}\n"
}

/// Where `now` does not keep what `kept` promises: something is gone or different. What is new is no breach, unless it narrows what
/// was allowed.
fn breaches(kept: &Json, now: &Json, place: &str, found: &mut Vec<String>) {
    match (kept, now) {
        (Json::Object(kept), Json::Object(now)) => {
            for (name, kept) in kept {
                let place = format!("{place}/{name}");
                match now.get(name) {
                    Some(now) => breaches(kept, now, &place, found),
                    None => found.push(format!("{place} is gone")),
                }
            }
            let narrows = |name: &str| matches!(name, "required" | "enum" | "pattern" | "maximum" | "minimum");
            let is_new = |name: &str| narrows(name) && !place.ends_with("/properties");
            found.extend(
                now.keys()
                    .filter(|name| is_new(name) && !kept.contains_key(*name))
                    .map(|name| format!("{place}/{name} is new")),
            );
        }
        (Json::Array(kept), Json::Array(now)) if !place.ends_with("/required") => {
            let is_known =
                |new: &Json| kept.iter().any(|known| (&known["name"], &known["in"]) == (&new["name"], &new["in"]));
            let needed = now.iter().filter(|new| new["required"] == true && !is_known(new));
            found.extend(needed.map(|new| format!("{place} has a new one that must be there: {}", new["name"])));
            for item in kept {
                let mut least: Option<Vec<String>> = None;
                for other in now {
                    let mut found = Vec::new();
                    breaches(item, other, place, &mut found);
                    if least.as_ref().is_none_or(|least| found.len() < least.len()) {
                        least = Some(found);
                    }
                }
                found.extend(least.unwrap_or_else(|| vec![format!("{place} is empty")]));
            }
        }
        _ if kept == now => {}
        _ => found.push(format!("{place} was {kept}, is {now}")),
    }
}

#[tokio::test]
async fn the_api_keeps_what_its_document_promises() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let server = Server::start().await;
    let mut now = server.get("/openapi.json").await.json();
    promises(&mut now, false);
    if std::env::var_os("QUORATE_WRITE_DOCS").is_some() {
        std::fs::write(path, lines(&now)).expect("written");
    }
    let kept = std::fs::read_to_string(path).expect("docs/openapi.json is there; QUORATE_WRITE_DOCS=1 writes it");
    let mut found = Vec::new();
    breaches(&serde_json::from_str(&kept).expect("JSON"), &now, "", &mut found);
    let what = "API v1 is frozen, and this is not what docs/openapi.json promises; if nobody can have relied on it, write that anew with QUORATE_WRITE_DOCS=1";
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn a_promise_that_is_broken_is_found() {
    let kept = json!({"a": {"type": "string", "description": "one"}, "list": [{"name": "x"}, "y"], "required": ["a"]});
    let told = |now: Json| {
        let mut found = Vec::new();
        breaches(&kept, &now, "", &mut found);
        found
    };
    let fine = json!({"b": 1, "a": {"type": "string", "description": "one", "format": "f"}, "list": ["y", "z", {"name": "x", "in": "q"}], "required": ["a"]});
    assert_eq!(told(fine), [""; 0]);
    assert_eq!(
        told(json!({"a": {"type": "integer", "description": "one"}, "list": [{"name": "x"}, "y"], "required": ["a"]})),
        ["/a/type was \"string\", is \"integer\""]
    );
    assert_eq!(told(json!({"list": [{"name": "x"}, "y"], "required": ["a"]})), ["/a is gone"]);
    let more = json!({"a": {"type": "string", "description": "one"}, "list": [{"name": "x"}, "y", {"name": "z", "required": true}], "required": ["a"]});
    assert_eq!(told(more), ["/list has a new one that must be there: \"z\""]);
    assert_eq!(told(json!({"a": {"type": "string", "description": "one"}, "list": ["y"], "required": ["a"]})).len(), 1);
    assert_eq!(
        told(
            json!({"a": {"type": "string", "description": "one"}, "list": [{"name": "x"}, "y"], "required": ["a", "b"]})
        )
        .len(),
        1
    );
    assert_eq!(
        told(
            json!({"a": {"type": "string", "description": "one", "pattern": "^$"}, "list": [{"name": "x"}, "y"], "required": ["a"]})
        ),
        ["/a/pattern is new"]
    );
}
