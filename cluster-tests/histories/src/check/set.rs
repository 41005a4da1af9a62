//! C4: what was added and never removed is in every later list, to the end.
//!
//! Owns telling a lost element from one that was missing for a while. Believes no revision, only times.

use std::collections::BTreeMap;

use crate::operation::{Change, Operation};
use crate::record::{Came, Item, Record, Seen};
use crate::{Counterexample, History, Verdict};

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let added = added(history);
    let mut lists: Vec<(&str, &Record, Vec<&str>)> = history.records.iter().filter_map(list_of).collect();
    lists.sort_by_key(|(_, record, _)| record.call);
    let mut checked = 0;
    for (prefix, record, keys) in &lists {
        let below = added.range(*prefix..).take_while(|(key, _)| key.starts_with(prefix));
        for (key, adder) in below.filter(|(_, adder)| adder.end < record.call) {
            checked += 1;
            if keys.binary_search(key).is_ok() {
                continue;
            }
            let later = lists.iter().any(|(_, later, keys)| later.call > record.end && keys.binary_search(key).is_ok());
            let how = if later { "was missing for a while: stale" } else { "is lost" };
            return Verdict::Broken(Counterexample::new(format!("{key} was added and {how}"), [adder.id, record.id]));
        }
    }
    Verdict::Holds(checked)
}

/// Keys that were added for good, each with who added it first.
fn added(history: &History) -> BTreeMap<&str, &Record> {
    let mut added = BTreeMap::new();
    for record in &history.records {
        for (write, is_written) in record.operation.writes().into_iter().zip(written(record)) {
            if is_written && matches!(write.change, Change::Put(_) | Change::Insert(_)) {
                let first: &mut &Record = added.entry(write.key.as_str()).or_insert(record);
                if record.end < first.end {
                    *first = record;
                }
            }
        }
    }
    for write in history.records.iter().flat_map(|record| record.operation.writes()) {
        if write.change == Change::Remove || write.ttl_ms.is_some() {
            added.remove(write.key.as_str());
        }
    }
    added
}

/// Of each write of an operation, whether it took effect.
fn written(record: &Record) -> Vec<bool> {
    match (&record.operation, record.decided().map(|decided| &decided.seen)) {
        (Operation::Write(_), Some(Seen::Written(_))) => vec![true],
        (Operation::Bulk { .. }, Some(Seen::Items(items))) => {
            items.iter().map(|Item { came, .. }| matches!(came, Came::Written(_))).collect()
        }
        (Operation::Txn(txn), Some(Seen::Txn(seen))) => {
            let writes = |succeeded| crate::operation::writes_of(txn.branch(succeeded)).map(move |_| succeeded);
            writes(true).chain(writes(false)).map(|branch| branch == seen.succeeded).collect()
        }
        (operation, _) => vec![false; operation.writes().len()],
    }
}

/// What a list showed: prefix and keys, in order.
fn list_of(record: &Record) -> Option<(&str, &Record, Vec<&str>)> {
    match (&record.operation, &record.decided()?.seen) {
        (Operation::List { prefix }, Seen::Entries(entries)) => {
            let mut keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
            keys.sort_unstable();
            Some((prefix, record, keys))
        }
        _ => None,
    }
}
