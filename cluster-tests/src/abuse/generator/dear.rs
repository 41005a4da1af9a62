//! Few bytes that make much work.
//!
//! Owns the dearest request that is known of each operation, and the document that some of them look into. Never knows what makes it dear.

use serde_json::{Value, json};

use super::places::{LARGE, LIST};
use cluster_harness::http::Request;

/// Criteria in a group that no entry of ours meets: a search evaluates all of them for each entry. They and the group are the most terms allowed.
const CRITERIA: usize = 63;
/// Operations of a bulk, and lines of a stream. Each is parsed and judged by itself.
const OPS: usize = 32;
/// Long values that a transaction reads beside what it looks into.
const READS: usize = 2;
/// Ranges of one transaction, with a thousand entries each: together a little less than it may look at.
const RANGES: usize = 24;
/// Sessions of one renewal.
const SESSIONS: u64 = 1_000;
/// Tasks of one request.
const TASKS: usize = 1_000;

/// Makes the request that writes the document for conditions and patches; `bytes` is about its length.
pub fn list_of(bytes: usize) -> Request {
    Request::put(LIST, format!("{{\"a\":[{}]}}", vec!["0"; bytes / 2].join(",")))
}

/// The dearest request of an operation of the API, by its name; `None` where nothing is known to be dearer than the usual one.
pub fn dear_request(name: &str, usual: &Request) -> Option<Request> {
    const NEVER: &str = "?if=a%20contains%207";
    Some(match name {
        "get /v1/kv/{key}" => Request::get(format!("/v1/kv/{LARGE}0")),
        // All that was changed is looked through for a key that nobody has changed.
        "get /v1/audit" => Request::get("/v1/audit?key=x/none&limit=1000"),
        "get /v1/watch" => Request::get(
            "/v1/watch?prefix=x&from=1&prev=true&where=%5B%7B%22field%22:%22n%22,%22op%22:%22lt%22,%22value%22:0%7D%5D",
        ),
        "put /v1/kv/{key}" => Request::put(&format!("{LIST}{NEVER}"), "1"),
        "delete /v1/kv/{key}" => Request::new("DELETE", format!("/v1/kv/{LIST}{NEVER}")),
        "patch /v1/kv/{key}" => Request::new("PATCH", format!("/v1/kv/{LIST}"))
            .header("Content-Type", "application/json-patch+json")
            .body(failing_patch().to_string().into_bytes()),
        "post /v1/bulk in lines" => lines(usual, &dear_op()),
        "post /v1/ops in lines" => lines(usual, &json!({"n": 1, "op": dear_op()})),
        _ => Request { headers: Vec::new(), ..usual.clone() }.json(dear_body(name)?.to_string()),
    })
}

fn lines(usual: &Request, line: &Value) -> Request {
    usual.clone().body(format!("{line}\n").repeat(OPS).into_bytes())
}

/// A patch that does all of its work, and changes nothing.
fn failing_patch() -> Value {
    json!([{"op": "test", "path": "/n", "value": 0}])
}

/// A condition that does not hold, for which all of the list is looked through as often as may be.
fn long_condition() -> Value {
    json!([{"any": [{"field": "a", "op": "contains", "value": 7}, {"field": "a", "op": "contains", "value": 8}]}])
}

/// An operation that changes nothing.
fn dear_op() -> Value {
    json!({"op": "touch", "key": LIST, "ttl_ms": 0, "if": long_condition()})
}

fn dear_body(name: &str) -> Option<Value> {
    let never = vec![json!({"field": "n", "op": "lt", "value": 0}); CRITERIA];
    let search = json!({"prefix": "x/", "where": [{ "any": never }]});
    let with = |name: &str, value: Value| {
        let mut body = search.clone();
        body[name] = value;
        body
    };
    Some(match name {
        "post /v1/count" | "post /v1/delete_where" => search,
        "post /v1/find" => with("order_by", json!(["-n"])),
        "post /v1/update_where" => with("patch", json!({"a": 1})),
        "post /v1/claim" => with("lock_ms", json!(300)),
        "post /v1/ops" => dear_op(),
        "post /v1/bulk" => json!({"ops": vec![dear_op(); OPS]}),
        "post /v1/txn" => {
            // It goes through the log for the write.
            let mut steps = vec![json!({"op": "get", "key": format!("{LARGE}0")}); READS];
            steps.push(json!({"op": "upsert", "key": "x/txn", "value": 1}));
            let condition = json!([{"field": "a", "op": "contains", "value": 7}]);
            json!({"if": [{"key": LIST, "if": condition}], "else": steps})
        }
        "post /v1/tasks/{queue}" => {
            let task = |number| json!({"id": format!("d{number}"), "delay_ms": 86_400_000, "replace": true});
            json!({"tasks": (0..TASKS).map(task).collect::<Vec<_>>()})
        }
        "post /v1/sessions/renew" => {
            json!({"sessions": (1_000_000..1_000_000 + SESSIONS).map(|id| id.to_string()).collect::<Vec<_>>()})
        }
        _ => return None,
    })
}

/// All of a range is read and put in order for one entry.
fn sorted(key: &str, range_end: &str) -> Value {
    json!({"key": key, "range_end": range_end, "sort_order": "DESCEND", "sort_target": "VALUE", "limit": "1"})
}

/// The dearest message of a call of etcd's services, by its path over gRPC.
pub fn dear_message(path: &str) -> Option<Value> {
    Some(match path {
        "/etcdserverpb.KV/Range" => sorted("x/", "x0"),
        // The value that it keeps is read first, and goes through the log again.
        "/etcdserverpb.KV/Put" => json!({"key": format!("{LARGE}0"), "ignore_value": true, "prev_kv": true}),
        "/etcdserverpb.KV/Txn" => {
            let mut steps = vec![json!({"request_range": sorted("x/small/000", "x/small/001")}); RANGES];
            steps.push(json!({"request_put": {"key": "x/txn", "value": "1"}}));
            json!({ "success": steps })
        }
        "/etcdserverpb.Watch/Watch" => {
            json!({"create_request": {"key": "x/", "range_end": "x0", "start_revision": "1", "prev_kv": true}})
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use quorate_machine::document::Steps;
    use quorate_machine::limits::{COMMAND_STEPS_MAX, TASKS_SCHEDULED_MAX};
    use quorate_node_core::limits::DEAR_BYTES;

    use super::*;

    const _: () = assert!(TASKS <= TASKS_SCHEDULED_MAX);

    #[test]
    fn looking_into_the_list_is_dear_and_not_yet_refused() {
        let put = list_of(1_000_000);
        let text = put.body.expect("a document");
        let steps = Steps::unbounded();
        steps.take_parsing(&text).expect("there is no bound");
        assert!(steps.bytes() >= DEAR_BYTES && steps.taken() * 3 / 2 < COMMAND_STEPS_MAX, "{}", steps.taken());
    }
}
