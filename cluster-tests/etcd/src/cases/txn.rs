//! Transactions.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    compares_creations, compares_what_is_not_there, refuses_as_a_whole, too_many_operations,
    more_operations_than_etcd_takes, reads_revisions, ranges_with_options, names_longer_than_keys,
    says_first_what_is_wrong_by_itself,
}

const RESULTS: [&str; 4] = ["EQUAL", "GREATER", "LESS", "NOT_EQUAL"];

fn put(key: &str, value: &str) -> Value {
    json!({ "request_put": { "key": key, "value": value } })
}

fn get(key: &str) -> Value {
    json!({ "request_range": { "key": key } })
}

fn delete(key: &str, end: &str) -> Value {
    json!({ "request_delete_range": { "key": key, "range_end": end } })
}

fn nest(compare: Value, success: Value, failure: Value) -> Value {
    json!({ "request_txn": { "compare": compare, "success": success, "failure": failure } })
}

async fn txn(case: &mut Case, compare: Value, success: Value, failure: Value) -> Value {
    case.call("KV/Txn", json!({ "compare": compare, "success": success, "failure": failure })).await
}

/// Whether one comparison holds.
async fn compare(case: &mut Case, compare: Value) {
    txn(case, json!([compare]), json!([]), json!([])).await;
}

/// Compares with each value by each operator.
async fn compares(case: &mut Case, target: &str, field: &str, values: &[Value]) {
    for result in RESULTS {
        for value in values {
            let mut with = json!({ "key": "a", "target": target, "result": result });
            with[field] = value.clone();
            compare(case, with).await;
        }
    }
}

async fn compares_creations(case: &mut Case) {
    let first = case.put("a", "1").await;
    case.put("a", "2").await;
    compares(case, "CREATE", "create_revision", &[json!(0), json!(first - 1), json!(first), json!(first + 1)]).await;
}

async fn compares_what_is_not_there(case: &mut Case) {
    for (target, field) in
        [("VERSION", "version"), ("CREATE", "create_revision"), ("MOD", "mod_revision"), ("LEASE", "lease")]
    {
        compares(case, target, field, &[json!(-1), json!(0), json!(1)]).await;
    }
    compares(case, "VALUE", "value", &["", "a"].map(Value::from)).await;
}

async fn refuses_as_a_whole(case: &mut Case) {
    case.put("a", "1").await;
    let leased = json!({ "request_put": { "key": "b", "lease": 12_345 } });
    txn(case, json!([]), json!([put("a", "2"), leased]), json!([])).await;
    txn(case, json!([]), json!([put("a", "2"), nest(json!([]), json!([leased]), json!([]))]), json!([])).await;
    // In the branch that is not taken it is not asked for.
    txn(case, json!([]), json!([put("a", "3")]), json!([leased])).await;
    case.all().await;
}

async fn many(case: &mut Case, count: usize) {
    let gets = || Value::from(vec![get("a"); count]);
    let one = json!({ "key": "a", "target": "VERSION", "version": 0 });
    for (what, request) in [
        ("comparisons", json!({ "compare": vec![one; count] })),
        ("success", json!({ "success": gets() })),
        ("failure", json!({ "failure": gets() })),
        ("nested", json!({ "success": [{ "request_txn": { "success": gets() } }] })),
    ] {
        let mut answer = case.quietly("KV/Txn", request).await;
        // That there are as many answers is all that is of interest.
        if let Some(Value::Array(responses)) = answer.get_mut("responses") {
            *responses = vec![json!(responses.len())];
        }
        case.note("KV/Txn", Some(json!(format!("{count} {what}"))), Some(answer));
    }
}

async fn too_many_operations(case: &mut Case) {
    for count in [128, 1_025, 5_000] {
        many(case, count).await;
    }
}

async fn more_operations_than_etcd_takes(case: &mut Case) {
    many(case, 129).await;
}

async fn reads_revisions(case: &mut Case) {
    let first = case.put("a", "1").await;
    let second = case.put("a", "2").await;
    let at = |revision: i64| json!({ "request_range": { "key": "a", "revision": revision } });
    txn(case, json!([]), json!([put("a", "3"), at(first), at(second), at(0), at(-1)]), json!([])).await;
    for far in [1_000, 1_i64 << 40] {
        txn(case, json!([]), json!([put("a", "4"), at(second + far)]), json!([])).await;
        txn(case, json!([]), json!([put("a", "4")]), json!([at(second + far)])).await;
    }
    case.all().await;
}

async fn ranges_with_options(case: &mut Case) {
    for (key, value) in [("b", "1"), ("a", "2"), ("c", "0")] {
        case.put(key, value).await;
    }
    let range = |options: Value| {
        let mut range = json!({ "key": "a", "range_end": "\0" });
        for (name, value) in options.as_object().expect("options") {
            range[name] = value.clone();
        }
        json!({ "request_range": range })
    };
    let ops = [
        json!({ "limit": 1 }),
        json!({ "count_only": true }),
        json!({ "keys_only": true }),
        json!({ "sort_target": "VALUE", "sort_order": "DESCEND" }),
        json!({ "sort_target": "CREATE", "sort_order": "ASCEND", "limit": 2 }),
        json!({ "serializable": true }),
        json!({ "max_mod_revision": 1 }),
    ];
    txn(case, json!([]), ops.into_iter().map(range).collect(), json!([])).await;
}

/// What is named by more bytes than a key has here. Its length stands for it.
async fn names_longer_than_keys(case: &mut Case) {
    case.put("k", "1").await;
    for length in [4_096, 4_097, 100_000] {
        let name = "k".repeat(length);
        let absent = json!([{ "key": name, "target": "VERSION", "version": 0 }]);
        let present = json!([{ "key": name, "target": "MOD", "result": "GREATER", "mod_revision": 0 }]);
        let valued = json!([{ "key": name, "target": "VALUE", "value": "" }]);
        let within = nest(absent.clone(), json!([get(&name), delete(&name, "")]), json!([]));
        let ranges = json!([delete(&name, "kl"), get(&name), delete("j", &name), delete(&name, &name)]);
        for (what, request) in [
            ("compared alone", json!({ "compare": absent, "success": [get("k")] })),
            ("compared", json!({ "compare": absent, "success": [put("a", "1")] })),
            ("compared as if it were there", json!({ "compare": present, "failure": [put("a", "1")] })),
            ("compared by value", json!({ "compare": valued, "failure": [put("a", "1")] })),
            ("read", json!({ "success": [get(&name)] })),
            ("read beside a put", json!({ "success": [put("a", "1"), get(&name)] })),
            ("removed", json!({ "success": [delete(&name, "")] })),
            ("removed beside a put", json!({ "success": [put("a", "1"), delete(&name, "")] })),
            ("within", json!({ "success": [put("a", "1"), within] })),
            ("at the ends of ranges", json!({ "success": ranges })),
        ] {
            let answer = case.quietly("KV/Txn", request).await;
            case.note("KV/Txn", Some(json!(format!("{what}, with {length} bytes"))), Some(answer));
            case.put("k", "1").await;
        }
    }
}

/// Before what is only found where it is carried out.
async fn says_first_what_is_wrong_by_itself(case: &mut Case) {
    let revision = case.put("a", "1").await;
    let future = json!({ "request_range": { "key": "a", "revision": revision + (1_i64 << 40) } });
    let no_key = json!({ "request_put": { "value": "1" } });
    let with_value = json!({ "request_put": { "key": "b", "value": "1", "ignore_value": true } });
    let no_lease = json!({ "request_put": { "key": "b", "lease": 12_345 } });
    let odd_lease = json!({ "request_put": { "key": "b", "lease": -7 } });
    let kept = json!({ "request_put": { "key": "b", "ignore_value": true, "lease": 12_345 } });
    let within = |ops: Value| nest(json!([]), ops, json!([]));
    for ops in [
        json!([future, put("b", "1"), put("b", "1")]),
        json!([future, no_key]),
        json!([future, with_value]),
        json!([future, within(json!([with_value]))]),
        json!([within(json!([no_lease])), future]),
        json!([future, no_lease]),
        json!([odd_lease]),
        json!([kept]),
        json!([kept, future]),
        json!([put("b", "1"), future]),
    ] {
        txn(case, json!([]), ops.clone(), json!([])).await;
        txn(case, json!([]), json!([get("a")]), ops).await;
    }
    case.call("KV/Put", json!({ "key": "b", "ignore_value": true, "lease": 12_345 })).await;
    txn(case, json!([]), json!([put("b", "1")]), json!([future, odd_lease, kept])).await;
    case.all().await;
}
