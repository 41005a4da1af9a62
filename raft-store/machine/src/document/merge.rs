//! RFC 7396: JSON merge patch.
//!
//! Owns the algorithm. Members that are replaced keep their place, new ones follow in the order of the patch. One look
//! at each member of document and patch, in time `n log n` also for objects with very many.

use std::borrow::Cow;

use super::json::{Json, Object};
use super::steps::Steps;

/// Merges a patch into a document.
pub fn merge<'a>(document: &mut Object<'a>, patch: &'a Object<'_>) {
    merge_within(document, patch, &Steps::unbounded());
}

/// The same, within a bound of steps; beyond it the result means nothing.
pub(super) fn merge_within<'a>(document: &mut Object<'a>, patch: &'a Object<'_>, steps: &Steps) {
    if !steps.take_sorting(patch) || !steps.take_looks(document.len(), patch.len()) {
        return;
    }
    let by_name = patch.by_name();
    let mut is_used = vec![false; patch.members.len()];
    document.members.retain_mut(|(name, old)| {
        let Ok(found) = by_name.binary_search_by(|(candidate, _)| (*candidate).cmp(name)) else { return true };
        let at = by_name[found].1;
        is_used[at] = true;
        merge_value(old, &patch.members[at].1, steps)
    });
    for (name, at) in in_order(by_name) {
        let new = &patch.members[at].1;
        if !is_used[at] && !matches!(new, Json::Null) {
            document.members.push((Cow::Borrowed(name), without_nulls(new, steps)));
        }
    }
}

/// Whether there is a value afterwards.
fn merge_value<'a>(old: &mut Json<'a>, new: &'a Json<'_>, steps: &Steps) -> bool {
    match (old, new) {
        (_, Json::Null) => return false,
        (Json::Object(old), Json::Object(new)) => merge_within(old, new, steps),
        (old, new) => *old = without_nulls(new, steps),
    }
    true
}

/// A patch merged into nothing.
fn without_nulls<'a>(patch: &'a Json<'_>, steps: &Steps) -> Json<'a> {
    match patch {
        Json::Object(patch) => {
            let mut object = Object::default();
            merge_within(&mut object, patch, steps);
            Json::Object(object)
        }
        plain => plain.borrowed(),
    }
}

fn in_order(mut by_name: Vec<(&str, usize)>) -> Vec<(&str, usize)> {
    by_name.sort_unstable_by_key(|(_, at)| *at);
    by_name
}
