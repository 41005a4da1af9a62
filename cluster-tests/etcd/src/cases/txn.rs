//! Transactions.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    compares_versions, compares_creations, compares_changes, compares_leases, compares_values, compares_what_is_not_there,
    compares_without_a_value, compares_with_the_wrong_value, refuses_unknown_comparisons, compares_ranges, compares_ranges_that_hold_nothing,
    compares_several, is_empty, reads_only, writes_nothing, sees_what_it_wrote, tells_the_entries_before, puts_that_keep, with_leases,
    refuses_as_a_whole, nested, nested_deeper, nested_in_the_branch_not_taken, compares_nested_with_the_state_before, operations_that_are_none,
    refuses_no_key, duplicate_keys_in_one_branch, duplicate_keys_across_branches, duplicate_keys_in_nested_branches,
    duplicate_keys_in_removed_ranges, too_many_operations, more_operations_than_etcd_takes, reads_revisions, ranges_with_options,
    as_kubernetes_writes, as_locks_are_taken, removes_and_puts_again, names_longer_than_keys, removes_in_a_later_branch,
    reads_before_everything, says_first_what_is_wrong_by_itself,
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

/// A comparison that holds, or one that does not, where there is no `none`.
fn holds(yes: bool) -> Value {
    json!([{ "key": "none", "target": "VERSION", "version": if yes { 0 } else { 1 } }])
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

async fn all(case: &mut Case) {
    case.call("KV/Range", json!({ "key": "\0", "range_end": "\0" })).await;
}

async fn compares_versions(case: &mut Case) {
    case.put("a", "1").await;
    case.put("a", "2").await;
    compares(case, "VERSION", "version", &[json!(0), json!(1), json!(2), json!(3), json!(-1)]).await;
}

async fn compares_creations(case: &mut Case) {
    let first = case.put("a", "1").await;
    case.put("a", "2").await;
    compares(case, "CREATE", "create_revision", &[json!(0), json!(first - 1), json!(first), json!(first + 1)]).await;
}

async fn compares_changes(case: &mut Case) {
    case.put("a", "1").await;
    let last = case.put("a", "2").await;
    compares(case, "MOD", "mod_revision", &[json!(0), json!(last - 1), json!(last), json!(last + 1)]).await;
}

async fn compares_leases(case: &mut Case) {
    let lease = case.grant(60).await;
    case.call("KV/Put", json!({ "key": "a", "lease": lease })).await;
    compares(case, "LEASE", "lease", &[json!(0), json!(lease)]).await;
    case.put("a", "without").await;
    compares(case, "LEASE", "lease", &[json!(0), json!(lease)]).await;
}

async fn compares_values(case: &mut Case) {
    case.put("a", "m").await;
    compares(case, "VALUE", "value", &["", "a", "m", "m\0", "ma", "z", "hex:ff"].map(Value::from)).await;
    case.put("a", "").await;
    compares(case, "VALUE", "value", &["", "a"].map(Value::from)).await;
}

async fn compares_what_is_not_there(case: &mut Case) {
    for (target, field) in
        [("VERSION", "version"), ("CREATE", "create_revision"), ("MOD", "mod_revision"), ("LEASE", "lease")]
    {
        compares(case, target, field, &[json!(-1), json!(0), json!(1)]).await;
    }
    compares(case, "VALUE", "value", &["", "a"].map(Value::from)).await;
}

async fn compares_without_a_value(case: &mut Case) {
    for _ in 0..2 {
        for target in 0..5 {
            for result in RESULTS {
                compare(case, json!({ "key": "a", "target": target, "result": result })).await;
            }
        }
        case.put("a", "1").await;
    }
}

async fn compares_with_the_wrong_value(case: &mut Case) {
    let revision = case.put("a", "1").await;
    for target in 0..5 {
        compare(case, json!({ "key": "a", "target": target, "version": 1 })).await;
        compare(case, json!({ "key": "a", "target": target, "mod_revision": revision })).await;
        compare(case, json!({ "key": "a", "target": target, "value": "1" })).await;
    }
}

async fn refuses_unknown_comparisons(case: &mut Case) {
    case.put("a", "1").await;
    compare(case, json!({ "key": "a", "target": 5, "version": 1 })).await;
    compare(case, json!({ "key": "a", "target": -1, "version": 1 })).await;
    for result in [4, 9, -1] {
        for (target, field, value) in [("VERSION", "version", json!(1)), ("VALUE", "value", json!("1"))] {
            let mut with = json!({ "key": "a", "target": target, "result": result });
            with[field] = value;
            compare(case, with).await;
        }
    }
    compare(case, json!({ "target": "VERSION", "version": 1 })).await;
    compare(case, json!({ "target": "VERSION", "version": 1, "range_end": "z" })).await;
    compare(case, json!({})).await;
}

async fn compares_ranges(case: &mut Case) {
    case.put("a", "1").await;
    let revision = case.put("b", "1").await;
    case.put("b", "2").await;
    for end in ["b", "c", "\0"] {
        for result in RESULTS {
            compare(case, json!({ "key": "a", "range_end": end, "target": "VERSION", "version": 1, "result": result }))
                .await;
            compare(
                case,
                json!({ "key": "a", "range_end": end, "target": "MOD", "mod_revision": revision, "result": result }),
            )
            .await;
            compare(case, json!({ "key": "a", "range_end": end, "target": "VALUE", "value": "1", "result": result }))
                .await;
        }
    }
    compare(case, json!({ "key": "\0", "range_end": "\0", "target": "VERSION", "version": 0, "result": "GREATER" }))
        .await;
}

async fn compares_ranges_that_hold_nothing(case: &mut Case) {
    case.put("a", "1").await;
    for (key, end) in [("x", "z"), ("c", "b"), ("x", "\0"), ("b", "b")] {
        for result in RESULTS {
            compare(case, json!({ "key": key, "range_end": end, "target": "VERSION", "version": 0, "result": result }))
                .await;
            compare(case, json!({ "key": key, "range_end": end, "target": "VALUE", "value": "1", "result": result }))
                .await;
        }
    }
}

async fn compares_several(case: &mut Case) {
    case.put("a", "1").await;
    let one = |version: i64| json!({ "key": "a", "target": "VERSION", "version": version });
    for compare in [json!([one(1), one(1)]), json!([one(1), one(2)]), json!([one(2), one(1)]), json!([])] {
        txn(case, compare, json!([get("a")]), json!([get("b")])).await;
    }
}

async fn is_empty(case: &mut Case) {
    txn(case, json!([]), json!([]), json!([])).await;
    case.put("a", "1").await;
    txn(case, json!([]), json!([]), json!([])).await;
    txn(case, holds(true), json!([]), json!([])).await;
    txn(case, holds(false), json!([]), json!([])).await;
    case.put("a", "2").await;
}

async fn reads_only(case: &mut Case) {
    case.put("a", "1").await;
    txn(case, json!([]), json!([get("a"), get("b"), get("a")]), json!([])).await;
    case.put("a", "2").await;
}

/// A revision is taken only where something changes.
async fn writes_nothing(case: &mut Case) {
    case.put("a", "1").await;
    txn(case, json!([]), json!([delete("x", ""), delete("y", "\0"), get("a")]), json!([])).await;
    txn(case, holds(false), json!([put("a", "2")]), json!([])).await;
    case.get("a").await;
    case.put("a", "2").await;
}

async fn sees_what_it_wrote(case: &mut Case) {
    case.put("a", "1").await;
    let every = json!({ "request_range": { "key": "a", "range_end": "z" } });
    txn(
        case,
        json!([]),
        json!([every, put("a", "2"), get("a"), put("b", "3"), every, delete("c", "d"), every]),
        json!([]),
    )
    .await;
    txn(case, json!([]), json!([delete("a", "b"), get("a"), every, put("c", "4"), every]), json!([])).await;
    all(case).await;
}

async fn tells_the_entries_before(case: &mut Case) {
    case.put("a", "1").await;
    let put = json!({ "request_put": { "key": "a", "value": "2", "prev_kv": true } });
    let new = json!({ "request_put": { "key": "n", "value": "2", "prev_kv": true } });
    txn(case, json!([]), json!([put, new]), json!([])).await;
    let delete = json!({ "request_delete_range": { "key": "a", "range_end": "z", "prev_kv": true } });
    txn(case, json!([]), json!([delete, get("a")]), json!([])).await;
}

async fn puts_that_keep(case: &mut Case) {
    let lease = case.grant(60).await;
    case.put("a", "1").await;
    let keeping = |options: Value| {
        let mut put = json!({ "key": "a", "prev_kv": true });
        for (name, value) in options.as_object().expect("options") {
            put[name] = value.clone();
        }
        json!([{ "request_put": put }, get("a")])
    };
    txn(case, json!([]), keeping(json!({ "ignore_value": true, "lease": lease })), json!([])).await;
    txn(case, json!([]), keeping(json!({ "ignore_lease": true, "value": "2" })), json!([])).await;
    txn(case, json!([]), keeping(json!({ "ignore_lease": true, "ignore_value": true })), json!([])).await;
    txn(case, json!([]), keeping(json!({ "ignore_value": true, "value": "x" })), json!([])).await;
    txn(case, json!([]), keeping(json!({ "ignore_lease": true, "lease": lease })), json!([])).await;
    case.delete("a").await;
    txn(case, json!([]), keeping(json!({ "ignore_value": true })), json!([])).await;
    // Put by the transaction itself, and kept by it.
    let nested = nest(json!([]), json!([{ "request_put": { "key": "b", "ignore_value": true } }]), json!([]));
    txn(case, json!([]), json!([put("a", "1"), nested]), json!([])).await;
    all(case).await;
}

async fn with_leases(case: &mut Case) {
    let lease = case.grant(60).await;
    let put_with = |key: &str| json!({ "request_put": { "key": key, "lease": lease } });
    txn(case, json!([]), json!([put_with("a"), put_with("b"), get("a")]), json!([])).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
    txn(case, json!([]), json!([delete("a", ""), put("b", "without")]), json!([])).await;
    case.call("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })).await;
}

async fn refuses_as_a_whole(case: &mut Case) {
    case.put("a", "1").await;
    let leased = json!({ "request_put": { "key": "b", "lease": 12_345 } });
    txn(case, json!([]), json!([put("a", "2"), leased]), json!([])).await;
    txn(case, json!([]), json!([put("a", "2"), nest(json!([]), json!([leased]), json!([]))]), json!([])).await;
    // In the branch that is not taken it is not asked for.
    txn(case, json!([]), json!([put("a", "3")]), json!([leased])).await;
    all(case).await;
}

async fn nested(case: &mut Case) {
    for outer in [true, false] {
        for inner in [true, false] {
            let nested =
                nest(holds(inner), json!([put("a", "inner success")]), json!([put("a", "inner failure"), get("a")]));
            txn(case, holds(outer), json!([nested, get("a")]), json!([get("a"), nested])).await;
        }
    }
}

async fn nested_deeper(case: &mut Case) {
    let mut nested = nest(holds(true), json!([put("a", "deepest"), get("a")]), json!([]));
    for depth in 2..6 {
        txn(case, json!([]), json!([nested, get("a")]), json!([])).await;
        let key = format!("at {depth}");
        nested = nest(holds(true), json!([put(&key, ""), nested]), json!([]));
    }
    all(case).await;
}

async fn nested_in_the_branch_not_taken(case: &mut Case) {
    let nested = nest(holds(true), json!([put("a", "1")]), json!([]));
    txn(case, holds(false), json!([nested]), json!([get("a")])).await;
    txn(case, holds(true), json!([get("a")]), json!([nested])).await;
    all(case).await;
}

/// What a transaction in another compares is what there was before both.
async fn compares_nested_with_the_state_before(case: &mut Case) {
    let there = json!([{ "key": "a", "target": "VERSION", "result": "GREATER", "version": 0 }]);
    let nested = nest(there, json!([put("b", "it was there")]), json!([put("b", "it was not there")]));
    txn(case, json!([]), json!([put("a", "1"), nested]), json!([])).await;
    txn(case, json!([]), json!([delete("a", ""), nested]), json!([])).await;
    all(case).await;
}

async fn operations_that_are_none(case: &mut Case) {
    case.put("a", "1").await;
    txn(case, json!([]), json!([{}]), json!([])).await;
    txn(case, json!([]), json!([{}, get("a")]), json!([])).await;
    txn(case, json!([]), json!([get("a")]), json!([{}])).await;
}

async fn refuses_no_key(case: &mut Case) {
    for nothing in [get(""), put("", "1"), delete("", ""), nest(json!([]), json!([put("", "")]), json!([]))] {
        txn(case, json!([]), json!([nothing]), json!([])).await;
        txn(case, json!([]), json!([]), json!([nothing])).await;
    }
    txn(case, json!([]), json!([{ "request_range": { "key": "a", "sort_order": 7 } }]), json!([])).await;
    txn(case, json!([{ "key": "" , "range_end": "z" }]), json!([]), json!([])).await;
    all(case).await;
}

async fn duplicate_keys_in_one_branch(case: &mut Case) {
    for ops in [
        json!([put("a", "1"), put("a", "2")]),
        json!([put("a", "1"), put("b", "1"), put("a", "1")]),
        json!([put("a", "1"), get("a"), get("a")]),
        json!([delete("a", ""), delete("a", "")]),
        json!([delete("a", "c"), delete("b", "d")]),
    ] {
        txn(case, json!([]), ops.clone(), json!([])).await;
        txn(case, holds(false), json!([]), ops.clone()).await;
        txn(case, json!([]), json!([]), ops).await;
        all(case).await;
    }
}

async fn duplicate_keys_across_branches(case: &mut Case) {
    for (success, failure) in [
        (json!([put("a", "1")]), json!([put("a", "2")])),
        (json!([put("a", "1")]), json!([delete("a", "")])),
        (json!([delete("a", "b")]), json!([put("a", "2")])),
        (json!([delete("a", "b")]), json!([delete("a", "b")])),
    ] {
        txn(case, holds(true), success.clone(), failure.clone()).await;
        txn(case, holds(false), success, failure).await;
        all(case).await;
    }
}

async fn duplicate_keys_in_nested_branches(case: &mut Case) {
    let (none, one, other) = (json!([]), json!([put("a", "1")]), json!([put("b", "1")]));
    let removed = json!([delete("a", "")]);
    let all_removed = json!([delete("a", "z")]);
    for ops in [
        json!([put("a", "1"), nest(none.clone(), one.clone(), none.clone())]),
        json!([nest(none.clone(), one.clone(), none.clone()), put("a", "1")]),
        json!([put("a", "1"), nest(none.clone(), none.clone(), one.clone())]),
        json!([put("a", "1"), nest(none.clone(), other.clone(), none.clone())]),
        json!([nest(none.clone(), one.clone(), one.clone())]),
        json!([nest(none.clone(), one.clone(), other.clone()), nest(none.clone(), other.clone(), none.clone())]),
        json!([nest(none.clone(), one.clone(), none.clone()), nest(none.clone(), one.clone(), none.clone())]),
        json!([put("a", "1"), nest(none.clone(), removed.clone(), none.clone())]),
        json!([nest(none.clone(), removed.clone(), none.clone()), put("a", "1")]),
        json!([delete("a", "z"), nest(none.clone(), one.clone(), none.clone())]),
        json!([nest(none.clone(), one.clone(), none.clone()), delete("a", "z")]),
        json!([nest(none.clone(), all_removed.clone(), none.clone()), nest(none.clone(), none.clone(), one.clone())]),
        json!([nest(none.clone(), all_removed.clone(), none.clone()), nest(none.clone(), all_removed, none.clone())]),
        json!([nest(holds(false), json!([nest(none.clone(), one.clone(), none.clone())]), other), put("a", "2")]),
    ] {
        txn(case, none.clone(), ops.clone(), none.clone()).await;
        txn(case, holds(false), none.clone(), ops).await;
        all(case).await;
        case.delete("a").await;
    }
}

async fn duplicate_keys_in_removed_ranges(case: &mut Case) {
    for (end, key) in
        [("", "b"), ("c", "b"), ("c", "c"), ("b", "b"), ("\0", "z"), ("z", "az"), ("b\0", "b"), ("a", "b")]
    {
        txn(case, json!([]), json!([delete("b", end), put(key, "1")]), json!([])).await;
        txn(case, json!([]), json!([put(key, "1"), delete("b", end)]), json!([])).await;
    }
    for key in ["a", "z"] {
        txn(case, json!([]), json!([delete("\0", "\0"), put(key, "1")]), json!([])).await;
    }
    all(case).await;
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
    all(case).await;
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

async fn as_kubernetes_writes(case: &mut Case) {
    let changed = |revision: i64| json!([{ "key": "/registry/a", "target": "MOD", "mod_revision": revision }]);
    let read = json!([get("/registry/a")]);
    let created = txn(case, changed(0), json!([put("/registry/a", "1")]), read.clone()).await;
    let revision = crate::case::revision(&created);
    for (before, value) in [(0, "again"), (revision, "2"), (revision, "3")] {
        txn(case, changed(before), json!([put("/registry/a", value)]), read.clone()).await;
    }
    txn(case, changed(revision), json!([delete("/registry/a", "")]), read.clone()).await;
    txn(case, changed(revision + 1), json!([delete("/registry/a", "")]), read.clone()).await;
    let version = |version: i64| json!([{ "key": "compact_rev_key", "target": "VERSION", "version": version }]);
    for of in [0, 1, 1, 2] {
        txn(case, version(of), json!([put("compact_rev_key", "r")]), json!([get("compact_rev_key")])).await;
    }
}

async fn as_locks_are_taken(case: &mut Case) {
    let lease = case.grant(60).await;
    let first = json!({ "request_range": { "key": "lock/", "range_end": "lock0", "sort_target": "CREATE", "sort_order": "ASCEND", "limit": 1 } });
    for key in ["lock/one", "lock/two", "lock/one"] {
        let absent = json!([{ "key": key, "target": "CREATE", "create_revision": 0 }]);
        let put = json!({ "request_put": { "key": key, "lease": lease } });
        txn(case, absent, json!([put, first]), json!([get(key), first])).await;
    }
}

async fn removes_and_puts_again(case: &mut Case) {
    case.put("a", "1").await;
    // Only in transactions of their own, for a key is written once in one.
    txn(case, json!([]), json!([delete("a", "")]), json!([])).await;
    txn(case, json!([]), json!([put("a", "2")]), json!([])).await;
    all(case).await;
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

async fn removes_in_a_later_branch(case: &mut Case) {
    let (none, a, b) = (json!([]), json!([put("a", "1")]), json!([put("b", "1")]));
    let removed = json!([delete("a", "")]);
    for ops in [
        json!([nest(none.clone(), a.clone(), none.clone()), nest(none.clone(), none.clone(), removed.clone())]),
        json!([nest(holds(false), a.clone(), none.clone()), nest(none.clone(), removed.clone(), none.clone())]),
        json!([nest(holds(false), a.clone(), b.clone()), nest(holds(true), json!([delete("a", "z")]), none.clone())]),
        json!([nest(none.clone(), a.clone(), none.clone()), nest(none.clone(), removed.clone(), none.clone())]),
        json!([nest(none.clone(), removed, none.clone()), nest(none.clone(), none.clone(), a)]),
    ] {
        case.put("a", "0").await;
        txn(case, none.clone(), ops.clone(), none.clone()).await;
        all(case).await;
        txn(case, holds(false), none.clone(), ops).await;
        all(case).await;
    }
}

async fn reads_before_everything(case: &mut Case) {
    let before = |revision: i64| json!({ "request_range": { "key": "a", "revision": revision } });
    case.put("a", "1").await;
    for revision in [-5, i64::MIN] {
        case.call("KV/Range", json!({ "key": "a", "revision": revision })).await;
        txn(case, json!([]), json!([before(revision)]), json!([])).await;
        txn(case, json!([]), json!([put("a", "2"), before(revision)]), json!([])).await;
        txn(case, holds(false), json!([before(revision)]), json!([get("a")])).await;
        txn(case, json!([]), json!([nest(json!([]), json!([before(revision)]), json!([]))]), json!([])).await;
        case.get("a").await;
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
    all(case).await;
}
