//! Reads of entries.
//!
//! A read that is not linearizable comes after one that is: the server might not have heard of the writes yet.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! { sorts_with_a_limit, counts, filters_by_revisions, reads_revisions_that_are_not_there }

const FROM_A: (&str, &str) = ("a", "\0");

/// Entries whose orders by key, version, creation, change and value differ, some of them alike in one.
async fn fill(case: &mut Case) -> Vec<i64> {
    let mut revisions = Vec::new();
    for (key, value) in
        [("c", "3"), ("a", "9"), ("d", "3"), ("b", "5"), ("a", "1"), ("e", ""), ("d", "7"), ("a", "2"), ("c", "2")]
    {
        revisions.push(case.put(key, value).await);
    }
    revisions
}

async fn range(case: &mut Case, (key, end): (&str, &str), options: Value) {
    let mut request = json!({ "key": key, "range_end": end });
    for (name, value) in options.as_object().expect("options") {
        request[name] = value.clone();
    }
    case.call("KV/Range", request).await;
}

async fn sorts_with_a_limit(case: &mut Case) {
    fill(case).await;
    for target in 0..5 {
        for order in 0..3 {
            range(case, FROM_A, json!({ "sort_target": target, "sort_order": order, "limit": 2 })).await;
        }
    }
    // How locks look for the one before them.
    range(
        case,
        FROM_A,
        json!({ "sort_target": "CREATE", "sort_order": "DESCEND", "limit": 1, "max_create_revision": 1 }),
    )
    .await;
}

async fn counts(case: &mut Case) {
    fill(case).await;
    for (range_of, options) in [
        (FROM_A, json!({})),
        (("b", "d"), json!({})),
        (("a", ""), json!({})),
        (("x", ""), json!({})),
        (("x", "z"), json!({})),
        (FROM_A, json!({ "limit": 2 })),
        (FROM_A, json!({ "keys_only": true })),
        (FROM_A, json!({ "sort_order": "DESCEND", "sort_target": "MOD" })),
        (FROM_A, json!({ "min_mod_revision": 1_i64 << 40 })),
    ] {
        let mut options = options;
        options["count_only"] = json!(true);
        range(case, range_of, options).await;
    }
}

const FILTERS: [&str; 4] = ["min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"];

async fn filters_by_revisions(case: &mut Case) {
    let revisions = fill(case).await;
    for filter in FILTERS {
        for revision in [-1, 1, revisions[0], revisions[3], revisions[6], revisions[8], revisions[8] + 1] {
            let mut options = json!({});
            options[filter] = json!(revision);
            range(case, FROM_A, options).await;
        }
    }
}

async fn reads_revisions_that_are_not_there(case: &mut Case) {
    let revision = case.put("a", "1").await;
    for revision in [0, -1, i64::MIN, revision + 1, revision + 1_000, i64::MAX] {
        for options in [json!({}), json!({ "count_only": true }), json!({ "serializable": true })] {
            let mut options = options;
            options["revision"] = json!(revision);
            range(case, FROM_A, options).await;
        }
    }
    let _ = case.get("a").await;
}
