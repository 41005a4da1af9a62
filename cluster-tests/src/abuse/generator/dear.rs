//! Few bytes that make much work.
//!
//! Owns the dearest request that is known of each operation. Never knows what makes it dear.

use serde_json::{Value, json};

/// Long values that one request reads.
const READS: usize = 8;
/// Criteria that no entry of ours meets: each is looked at for each entry.
const CRITERIA: usize = 32;
/// Counts of one transaction.
const COUNTS: usize = 64;
/// Sessions of one renewal.
const SESSIONS: u64 = 1_000;

/// The body of the dearest request of an operation, by its method and path, or of a call of etcd's services by its path over gRPC; `None`
/// where nothing is known to be dearer than any other.
pub fn dear_body(name: &str) -> Option<Value> {
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
        "post /v1/bulk" => json!({"ops": vec![json!({"op": "get", "key": "xlarge/0"}); READS]}),
        "post /v1/txn" => json!({"if": [], "then": vec![json!({"op": "get", "key": "xlarge/0"}); READS]}),
        "post /v1/sessions/renew" => {
            json!({"sessions": (1_000_000..1_000_000 + SESSIONS).map(|id| id.to_string()).collect::<Vec<_>>()})
        }
        "/etcdserverpb.KV/Range" => {
            json!({"key": "x/", "range_end": "x0", "sort_order": "DESCEND", "sort_target": "VALUE", "limit": "1"})
        }
        "/etcdserverpb.KV/Txn" => {
            json!({"success": vec![json!({"request_range": {"key": "x/", "range_end": "x0", "count_only": true}}); COUNTS]})
        }
        "/etcdserverpb.Watch/Watch" => {
            json!({"create_request": {"key": "x/", "range_end": "x0", "start_revision": "1", "prev_kv": true}})
        }
        _ => return None,
    })
}
