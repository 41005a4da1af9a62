//! Everything that a node can be asked for.
//!
//! Owns a legal request for each operation of the OpenAPI document and each call of etcd's services, by each protocol. An operation that is
//! new joins by itself: where no table knows a body for it, the schema alone makes its request. Never sends anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use etcd_conformance::forms::Form;
use quorate_etcd_api::{METHODS, Method};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::dear::{dear_message, dear_request};
pub use super::places::{HELD, LARGE, PREFIX};
use crate::abuse::way::{self, Way};
use cluster_harness::drive::crossing::{Known, declared, request_of};
use cluster_harness::http::Request;

/// How long who asks for it waits over HTTP, milliseconds: less than what is waited for until all is given back.
const WAIT_MS: u64 = 1_500;

/// Something that can be asked for.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The protocol that it goes by.
    pub way: Way,
    /// Method and path.
    pub name: String,
    /// A legal request, without what shows who asks.
    pub request: Request,
    /// The few bytes that make the most work; the same where nothing is known to make more.
    pub dear: Request,
    /// The flag of an operation whose answer may come late, or go on.
    pub lasts: bool,
    /// The flag of an operation whose client may send more once it was answered.
    pub goes_on: bool,
    /// A tenant can hold a resource with it for any time: a wait, a watch, a long answer.
    pub holds: bool,
}

impl Operation {
    /// Tells whether a request is known that makes more work than the usual one.
    pub fn has_dear(&self) -> bool {
        (&self.dear.target, &self.dear.body) != (&self.request.target, &self.request.body)
    }
}

/// All of them, for a document. Those who ask for the lock that is held do so by the session `waiter`.
pub fn operations(document: &Value, waiter: &str, dice: &mut StdRng) -> Vec<Arc<Operation>> {
    let mut all = Vec::new();
    for way in [Way::Http1, Way::Http2] {
        all.extend(of_document(way, document, waiter, dice));
    }
    for method in &METHODS {
        all.extend(of_gateway(method));
        all.push(of_grpc(method));
    }
    all.into_iter().map(Arc::new).collect()
}

/// The names of all of them by each protocol, for the document that this was built with.
pub fn names() -> BTreeSet<(Way, String)> {
    // What they say is of no interest.
    let all = operations(&document(), "7", &mut StdRng::seed_from_u64(1));
    all.iter().map(|operation| (operation.way, operation.name.clone())).collect()
}

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).expect("the document is JSON")
}

/// The media type of bodies whose lines are requests of their own.
const LINES: &str = "application/x-ndjson";

fn of_document(way: Way, document: &Value, waiter: &str, dice: &mut StdRng) -> Vec<Operation> {
    let (known, mut all) = (Known::default(), Vec::new());
    for (method, path) in declared(document).into_keys() {
        let described = &document["paths"][&path][&method];
        let name = format!("{method} {path}");
        let mut request = of_table(&name, waiter)
            .or_else(|| request_of(&method, &path, &known, dice))
            .unwrap_or_else(|| of_schema(&method, &path, described));
        // Under one request id only the first of many would make work.
        request.headers.retain(|(field, _)| field != "Idempotency-Key");
        if !described["requestBody"]["content"][LINES].is_null() {
            let lines = request.clone().body(lines(&path).repeat(32).into_bytes());
            let headers = vec![("Content-Type".to_owned(), LINES.to_owned())];
            let lines = Request { headers, ..lines };
            all.push(of_api(way, format!("{name} in lines"), &path, lines));
        }
        all.push(of_api(way, name, &path, request));
    }
    all
}

fn of_api(way: Way, name: String, path: &str, request: Request) -> Operation {
    const LASTING: [&str; 8] = ["acquire", "backup", "campaign", "claim", "enter", "leave", "observe", "watch"];
    let lasts = path.rsplit('/').next().is_some_and(|last| LASTING.contains(&last));
    let dear = dear_request(&name, &request).unwrap_or_else(|| request.clone());
    let holds = lasts || name == "get /v1/kv";
    Operation { way, name, request, dear, lasts, goes_on: false, holds }
}

/// Requests of operations that are to meet a certain state.
fn of_table(name: &str, waiter: &str) -> Option<Request> {
    Some(match name {
        "get /v1/kv" => Request::get(format!("/v1/kv?prefix={LARGE}")),
        "get /v1/watch" => Request::get(format!("/v1/watch?prefix={LARGE}&initial=true")),
        "post /v1/locks/{name}/acquire" => {
            let body = json!({"session": waiter, "wait_ms": WAIT_MS});
            Request::post(format!("/v1/locks/{HELD}/acquire"), body.to_string())
        }
        _ => return None,
    })
}

/// Makes a request from the schema of the document alone.
fn of_schema(method: &str, path: &str, described: &Value) -> Request {
    let all = ["GET", "PUT", "POST", "PATCH", "DELETE"];
    let method = all.into_iter().find(|known| known.eq_ignore_ascii_case(method));
    let method = method.unwrap_or_else(|| panic!("there is a new method, on {path}"));
    let mut parts = path.split('{');
    let mut target = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        target.push_str("x-1");
        target.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
    }
    let request = Request::new(method, target);
    if described["requestBody"].is_null() { request } else { request.json("{}") }
}

/// A line of a body in lines.
fn lines(path: &str) -> &'static str {
    match path {
        "/v1/ops" => "{\"n\":1,\"op\":{\"op\":\"get\",\"key\":\"xlarge/0\"}}\n",
        // A bulk only writes.
        _ => "{\"op\":\"upsert\",\"key\":\"x/line\",\"value\":1}\n",
    }
}

/// Bodies of calls that need more than their defaults to be legal, or to make work. Keys are text here.
const CALLS: [(&str, &str); 14] = [
    ("/etcdserverpb.KV/Range", r#"{"key":"xlarge/","range_end":"xlarge0"}"#),
    ("/etcdserverpb.KV/Put", r#"{"key":"x/a","value":"1"}"#),
    ("/etcdserverpb.KV/DeleteRange", r#"{"key":"x/none"}"#),
    (
        "/etcdserverpb.KV/Txn",
        r#"{"compare":[{"target":"CREATE","key":"x/a","create_revision":"0"}],
            "success":[{"request_put":{"key":"x/a","value":"1"}}],"failure":[{"request_range":{"key":"xlarge/0"}}]}"#,
    ),
    ("/etcdserverpb.KV/Compact", r#"{"revision":"1"}"#),
    ("/etcdserverpb.Watch/Watch", r#"{"create_request":{"key":"x/","range_end":"x0"}}"#),
    ("/etcdserverpb.Lease/LeaseGrant", r#"{"TTL":"60"}"#),
    ("/etcdserverpb.Lease/LeaseRevoke", r#"{"ID":"1"}"#),
    ("/etcdserverpb.Lease/LeaseKeepAlive", r#"{"ID":"1"}"#),
    ("/etcdserverpb.Lease/LeaseTimeToLive", r#"{"ID":"1","keys":true}"#),
    ("/v3lockpb.Lock/Lock", r#"{"name":"x-1"}"#),
    ("/v3electionpb.Election/Campaign", r#"{"name":"x-2","value":"v"}"#),
    ("/v3electionpb.Election/Leader", r#"{"name":"x-2"}"#),
    ("/v3electionpb.Election/Observe", r#"{"name":"x-2"}"#),
];

fn usual_body(path: &str) -> Value {
    let known = CALLS.iter().find(|(known, _)| *known == path);
    known.map_or_else(|| json!({}), |(_, body)| serde_json::from_str(body).expect("the table is JSON"))
}

fn lasts(method: &Method) -> bool {
    method.client_streams
        || method.server_streams
        || ["/Lock", "/Campaign"].iter().any(|end| method.path.ends_with(end))
}

fn holds(method: &Method) -> bool {
    lasts(method) || method.path == "/etcdserverpb.KV/Range"
}

fn of_grpc(method: &Method) -> Operation {
    // A call without a form has no message but the empty one.
    let form = Form::at(method.path);
    let call = |body: Value| {
        let message = form.as_ref().map(|form| form.encode(body).0);
        way::call(method.path, &message.unwrap_or_default())
    };
    let request = call(usual_body(method.path));
    let dear = dear_message(method.path).map_or_else(|| request.clone(), call);
    let (name, lasts) = (method.path.to_owned(), lasts(method));
    Operation { way: Way::Grpc, name, request, dear, lasts, goes_on: method.client_streams, holds: holds(method) }
}

fn of_gateway(method: &Method) -> Vec<Operation> {
    let form = Form::at(method.path);
    let one = |path: &&'static str| {
        let post = |body: Value| {
            let body = form.as_ref().map_or_else(|| json!({}), |form| form.to_gateway(body));
            Request::post(*path, body.to_string())
        };
        let request = post(usual_body(method.path));
        let dear = dear_message(method.path).map_or_else(|| request.clone(), post);
        let (name, lasts) = (format!("post {path}"), lasts(method));
        Operation { way: Way::Gateway, name, request, dear, lasts, goes_on: false, holds: holds(method) }
    };
    method.gateway.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use quorate_client::api::{
        BulkRequest, ClaimRequest, CountRequest, FindRequest, Op, RenewRequest, TaskSpecs, TxnRequest, WhereRequest,
        typed_criteria,
    };
    use quorate_machine::document::{Criteria, Json, Patch};
    use serde::de::DeserializeOwned;

    use super::*;

    fn usual_operations() -> Vec<Arc<Operation>> {
        operations(&document(), "7", &mut StdRng::seed_from_u64(1))
    }

    #[test]
    fn each_operation_and_each_call_is_there_by_each_of_its_protocols() {
        let all = usual_operations();
        let count = |way| all.iter().filter(|operation| operation.way == way).count();
        // Two operations take lines, too.
        let routes = declared(&document()).len();
        assert_eq!((count(Way::Http1), count(Way::Http2)), (routes + 2, routes + 2));
        let paths: usize = METHODS.iter().map(|method| method.gateway.len()).sum();
        assert_eq!((count(Way::Grpc), count(Way::Gateway)), (METHODS.len(), paths));
        let acquire =
            all.iter().find(|operation| operation.name == "post /v1/locks/{name}/acquire").expect("it is there");
        assert_eq!(acquire.request.target, "/v1/locks/x-held/acquire");
        assert!(acquire.holds && all.iter().all(|operation| !operation.request.target.contains('{')));
    }

    #[test]
    fn an_operation_that_no_table_knows_has_a_request_too() {
        let document =
            json!({"paths": {"/v1/new/{name}/of/{id}": {"post": {"requestBody": {}, "responses": {"200": {}}}}}});
        let all = operations(&document, "7", &mut StdRng::seed_from_u64(1));
        let new = all.iter().find(|operation| operation.name == "post /v1/new/{name}/of/{id}").expect("it joined");
        assert_eq!((new.request.method, new.request.target.as_str()), ("POST", "/v1/new/x-1/of/x-1"));
        assert_eq!(new.request.body.as_deref(), Some(&b"{}"[..]));
    }

    /// Reads a body as a node does: it is of this form, and so are all criteria and patches in it.
    fn read<T: DeserializeOwned>(name: &str, body: &[u8]) {
        let form = serde_json::from_slice::<T>(body);
        form.unwrap_or_else(|error| panic!("{name}: {error}"));
        read_parts(name, &serde_json::from_slice(body).expect("it is JSON"));
    }

    fn read_parts(name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    let text = value.to_string();
                    let json = Json::parse(text.as_bytes()).expect("it is JSON");
                    // Checks of a transaction have keys, and conditions in them.
                    let is_list_of_checks = value[0]["key"].is_string();
                    let faults = match member.as_str() {
                        "where" | "if" if !is_list_of_checks => Criteria::read(&json, "").err(),
                        "patch" => Patch::read(&json, "").err(),
                        _ => None,
                    };
                    assert!(faults.is_none(), "{name}: {faults:?} in {text}");
                    read_parts(name, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| read_parts(name, item)),
            _ => {}
        }
    }

    #[test]
    fn each_dear_request_is_of_the_form_that_its_operation_takes() {
        let mut seen = 0;
        for operation in usual_operations().iter().filter(|one| one.way == Way::Http1 && one.has_dear()) {
            let (name, dear) = (operation.name.as_str(), &operation.dear);
            let body = dear.body.as_deref().unwrap_or_default();
            match name {
                "get /v1/kv/{key}" | "get /v1/audit" => {}
                "get /v1/watch" => {
                    let (_, condition) = dear.target.rsplit_once('=').expect("a condition is last");
                    let marks = [("%5B", "["), ("%5D", "]"), ("%7B", "{"), ("%7D", "}"), ("%22", "\"")];
                    let text = marks.iter().fold(condition.to_owned(), |text, (mark, is)| text.replace(mark, is));
                    let json = Json::parse(text.as_bytes()).expect("it is JSON");
                    assert!(!Criteria::read(&json, "").expect("a condition").is_empty());
                }
                "put /v1/kv/{key}" | "delete /v1/kv/{key}" => {
                    let (_, condition) = dear.target.rsplit_once('=').expect("a condition is last");
                    typed_criteria(&condition.replace("%20", " ")).expect("a condition");
                }
                "patch /v1/kv/{key}" => {
                    let json = Json::parse(body).expect("it is JSON");
                    Patch::read_json_patch(&json, "").expect("a patch");
                }
                "post /v1/bulk in lines" => body.split(|byte| *byte == b'\n').for_each(|line| {
                    if !line.is_empty() {
                        read::<Op>(name, line);
                    }
                }),
                "post /v1/ops in lines" => {
                    let line = body.split(|byte| *byte == b'\n').next().expect("a line");
                    let line: Value = serde_json::from_slice(line).expect("it is JSON");
                    read::<Op>(name, line["op"].to_string().as_bytes());
                }
                "post /v1/count" => read::<CountRequest>(name, body),
                "post /v1/find" => read::<FindRequest>(name, body),
                "post /v1/update_where" | "post /v1/delete_where" => read::<WhereRequest>(name, body),
                "post /v1/claim" => read::<ClaimRequest>(name, body),
                "post /v1/ops" => read::<Op>(name, body),
                "post /v1/bulk" => read::<BulkRequest>(name, body),
                "post /v1/txn" => read::<TxnRequest>(name, body),
                "post /v1/tasks/{queue}" => read::<TaskSpecs>(name, body),
                "post /v1/sessions/renew" => read::<RenewRequest>(name, body),
                _ => panic!("{name} has a dear request that nothing here reads"),
            }
            seen += 1;
        }
        assert_eq!(seen, 18, "a name of the table is no operation");
    }

    #[test]
    fn a_bulk_only_writes_its_usual_and_its_dear_one() {
        for operation in usual_operations().iter().filter(|one| one.name.starts_with("post /v1/bulk")) {
            for request in [&operation.request, &operation.dear] {
                let body = String::from_utf8_lossy(request.body.as_deref().expect("it has one"));
                assert!(!body.contains(r#""op":"get""#), "{}: {body}", operation.name);
            }
        }
    }
}
