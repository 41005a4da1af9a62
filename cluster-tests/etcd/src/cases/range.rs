//! Reads of entries.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! {
    sorts_by_every_target, sorts_with_a_limit, sorts_an_old_revision, refuses_unknown_sorts, limits, limits_one_key, counts, keys_only,
    filters_by_revisions, filters_by_two_revisions, filters_with_limits_and_counts, reads_the_past, reads_revisions_that_are_not_there,
    reads_serializable, ends_of_ranges, ends_of_ranges_that_hold_nothing, bytes_that_are_no_text, values_of_some_size, an_empty_store,
    entries_that_came_again,
}

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

async fn sorts_by_every_target(case: &mut Case) {
    fill(case).await;
    for target in 0..5 {
        for order in 0..3 {
            range(case, FROM_A, json!({ "sort_target": target, "sort_order": order })).await;
        }
    }
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

async fn sorts_an_old_revision(case: &mut Case) {
    let revisions = fill(case).await;
    for target in 0..5 {
        range(case, FROM_A, json!({ "revision": revisions[4], "sort_target": target, "sort_order": "DESCEND" })).await;
    }
}

async fn refuses_unknown_sorts(case: &mut Case) {
    case.put("a", "1").await;
    for (target, order) in [(5, 0), (0, 3), (5, 3), (-1, 0), (0, -1)] {
        range(case, FROM_A, json!({ "sort_target": target, "sort_order": order })).await;
    }
}

async fn limits(case: &mut Case) {
    fill(case).await;
    for limit in [0, 1, 2, 4, 5, 6, 1_000_000, -1] {
        range(case, FROM_A, json!({ "limit": limit })).await;
    }
    range(case, ("b", "d"), json!({ "limit": 1 })).await;
    range(case, ("b\0", "\0"), json!({ "limit": 2 })).await;
}

async fn limits_one_key(case: &mut Case) {
    fill(case).await;
    for limit in [0, 1, 2] {
        case.call("KV/Range", json!({ "key": "a", "limit": limit })).await;
    }
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

async fn keys_only(case: &mut Case) {
    fill(case).await;
    let lease = case.grant(60).await;
    case.call("KV/Put", json!({ "key": "f", "value": "with a lease", "lease": lease })).await;
    for options in [json!({}), json!({ "limit": 3 }), json!({ "sort_target": "VALUE", "sort_order": "ASCEND" })] {
        let mut options = options;
        options["keys_only"] = json!(true);
        range(case, FROM_A, options).await;
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

async fn filters_by_two_revisions(case: &mut Case) {
    let revisions = fill(case).await;
    for (n, one) in FILTERS.iter().enumerate() {
        for other in &FILTERS[n + 1..] {
            let mut options = json!({});
            options[one] = json!(revisions[3]);
            options[other] = json!(revisions[6]);
            range(case, FROM_A, options).await;
        }
    }
}

async fn filters_with_limits_and_counts(case: &mut Case) {
    let revisions = fill(case).await;
    for filter in FILTERS {
        for options in [
            json!({ "limit": 1 }),
            json!({ "limit": 2 }),
            json!({ "count_only": true }),
            json!({ "keys_only": true, "limit": 3 }),
        ] {
            let mut options = options;
            options[filter] = json!(revisions[3]);
            range(case, FROM_A, options).await;
        }
    }
}

async fn reads_the_past(case: &mut Case) {
    let mut revisions = fill(case).await;
    revisions.push(case.delete("b").await);
    revisions.push(case.delete("a").await);
    revisions.push(case.put("a", "again").await);
    for revision in revisions {
        range(case, FROM_A, json!({ "revision": revision })).await;
        case.call("KV/Range", json!({ "key": "a", "revision": revision })).await;
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

/// Another server might not have heard of the writes yet, so this one is asked that has.
async fn reads_serializable(case: &mut Case) {
    let revisions = fill(case).await;
    range(case, FROM_A, json!({})).await;
    range(case, FROM_A, json!({ "serializable": true })).await;
    range(case, FROM_A, json!({ "serializable": true, "revision": revisions[2], "limit": 1 })).await;
    range(case, ("", ""), json!({ "serializable": true })).await;
}

async fn ends_of_ranges(case: &mut Case) {
    fill(case).await;
    for ends in [
        ("a", ""),
        ("a", "b"),
        ("a", "a\0"),
        ("b", "\0"),
        ("\0", "\0"),
        ("a", "zzz"),
        ("\0", "b"),
        ("c", "c\0"),
        ("b\0", "d"),
    ] {
        range(case, ends, json!({})).await;
    }
}

async fn ends_of_ranges_that_hold_nothing(case: &mut Case) {
    fill(case).await;
    for ends in
        [("c", "a"), ("c", "c"), ("c", "\0\0"), ("z", "\0"), ("", ""), ("", "b"), ("", "\0"), ("\0", ""), ("x", "")]
    {
        range(case, ends, json!({})).await;
    }
}

async fn bytes_that_are_no_text(case: &mut Case) {
    for key in ["hex:00", "hex:0000", "hex:7f", "hex:80", "hex:ff", "hex:ff00", "hex:ffff", "ä", "\n"] {
        case.put(key, key).await;
    }
    range(case, ("hex:00", "hex:00"), json!({})).await;
    range(case, ("hex:80", "hex:ff"), json!({})).await;
    range(case, ("hex:ff", "hex:00"), json!({})).await;
    range(case, ("hex:ff", ""), json!({})).await;
}

async fn values_of_some_size(case: &mut Case) {
    for (key, size) in [("a", 1_000), ("b", 10_000)] {
        case.put(key, &"v".repeat(size)).await;
    }
    let _ = case.get("b").await;
    range(case, FROM_A, json!({ "keys_only": true })).await;
}

async fn an_empty_store(case: &mut Case) {
    for options in [json!({}), json!({ "count_only": true }), json!({ "limit": 1 }), json!({ "sort_order": "DESCEND" })]
    {
        range(case, ("\0", "\0"), options).await;
    }
    let _ = case.get("a").await;
}

async fn entries_that_came_again(case: &mut Case) {
    case.put("a", "1").await;
    case.put("a", "2").await;
    let _ = case.get("a").await;
    case.delete("a").await;
    let _ = case.get("a").await;
    case.put("a", "3").await;
    let _ = case.get("a").await;
    case.put("a", "4").await;
    let _ = case.get("a").await;
}
