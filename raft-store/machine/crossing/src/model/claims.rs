//! Which entries a claim gets: those that match, looked at one by one.
//!
//! Owns the order in which they come, whatever index finds them. Says nothing while a collection stands below a
//! prefix that is claimed.

use quorate_machine::document::{Json, Subject};
use quorate_machine::types::{ClaimOp, ContentKind, Key, Outcome};

use crate::picture::Picture;

/// Compares what a claim got with the first that match, in the order that it asked for.
pub fn judge(before: &Picture, op: &ClaimOp, outcome: &Outcome) {
    let Outcome::Claimed(done) = outcome else { return };
    let is_nested = before.collections.keys().any(|name| name.as_str().contains('/'));
    if is_nested {
        return;
    }
    // Passed over is what the patch does not fit, or makes larger than a quota allows. A lock alone is refused by none.
    assert!(done.refused.is_empty() || op.patch.is_some(), "passed over without a patch: {done:?}");
    let mut expected = claimable(before, op);
    for item in &done.refused {
        assert!(expected.contains(&item.key), "{} was passed over and does not match", item.key);
    }
    expected.retain(|key| !done.refused.iter().any(|item| item.key == *key));
    let claimed: Vec<_> = done.entries.iter().map(|(key, _)| key.clone()).collect();
    let wanted = &expected[..expected.len().min(op.limit as usize)];
    if op.order.by_key() == Some(false) {
        // Without an order any of them will do.
        let is_one = claimed.iter().all(|key| expected.contains(key));
        assert!(is_one && claimed.len() == wanted.len(), "{claimed:?} of {expected:?}");
    } else {
        assert_eq!(claimed, wanted, "claimed on the left, what matches on the right");
    }
}

/// The keys of all that match and are not locked, in order.
fn claimable(before: &Picture, op: &ClaimOp) -> Vec<Key> {
    let (clock, wall) = (before.vars.clock, before.vars.wall);
    let is_of = |name: &str| op.prefix.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
    let collection = before.collections.iter().find(|(name, _)| is_of(name.as_str()));
    let criteria =
        collection.map_or_else(|| op.criteria.clone(), |(_, row)| row.rules.converted(&op.criteria, wall).into_owned());
    let mut found = Vec::new();
    for (key, entry) in &before.entries {
        let is_free = !entry.is_expired_at(clock) && !entry.meta.is_locked_at(clock);
        let document = Json::parse_stored(&entry.value.data).ok().filter(|_| entry.value.kind == ContentKind::Json);
        let meta = Some(&entry.meta);
        let subject = Subject { key, meta, is_locked: false, document: document.as_ref(), clock, wall };
        if is_free && key.as_bytes().starts_with(&op.prefix) && criteria.hold(&subject) {
            found.push((op.order.rank(&subject), key.clone()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, key)| key).collect()
}
