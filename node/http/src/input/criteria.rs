//! Criteria, patches and rules in requests.
//!
//! Owns that their faults are told like all others of an input. Their form and meaning are `quorate_machine::document`'s and
//! `quorate_machine::rules`'.

use std::borrow::Cow;

use quorate_api::{JsonText, typed_criteria};
use quorate_machine::document::{Criteria, Fault, FaultKind, Json, Patch};
use quorate_machine::rules::Rules;

use crate::input::extract::Faults;

/// Reads a criteria list that stands at `pointer`.
pub fn criteria(text: &[u8], pointer: &str, faults: &mut Faults) -> Option<Criteria> {
    read(text, pointer, faults, Criteria::read)
}

/// Reads criteria that stand at `pointer`; none without them.
pub fn list(items: Option<&[JsonText]>, pointer: &str, faults: &mut Faults) -> Option<Criteria> {
    let Some(items) = items else { return Some(Criteria::default()) };
    let items: Vec<_> = items.iter().map(|item| item.0.get()).collect();
    criteria(format!("[{}]", items.join(",")).as_bytes(), pointer, faults)
}

/// Reads conditions as they are typed into a query; none without them.
pub fn typed(texts: &[Cow<'_, str>], pointer: &str, faults: &mut Faults) -> Option<Criteria> {
    let mut list = Vec::with_capacity(texts.len());
    for text in texts {
        match typed_criteria(text) {
            Ok(read) => list.extend(read.0),
            Err(why) => {
                faults.add(pointer, format!("{why}; for example `status eq pending`, `n gte 3`, `owner nexists`"));
                return None;
            }
        }
    }
    if list.is_empty() {
        return Some(Criteria::default());
    }
    criteria(format!("[{}]", list.join(",")).as_bytes(), pointer, faults)
}

/// Reads a patch of any kind that stands at `pointer`.
pub fn patch(text: &[u8], pointer: &str, faults: &mut Faults) -> Option<Patch> {
    read(text, pointer, faults, Patch::read)
}

/// Reads a merge patch that stands at `pointer`.
pub fn merge_patch(text: &[u8], pointer: &str, faults: &mut Faults) -> Option<Patch> {
    read(text, pointer, faults, Patch::read_merge)
}

/// Reads a JSON Patch that stands at `pointer`.
pub fn json_patch(text: &[u8], pointer: &str, faults: &mut Faults) -> Option<Patch> {
    read(text, pointer, faults, Patch::read_json_patch)
}

/// Reads the rules of a collection that stand at `pointer`.
pub fn rules(text: &[u8], pointer: &str, faults: &mut Faults) -> Option<Rules> {
    read(text, pointer, faults, Rules::read)
}

fn read<T>(
    text: &[u8],
    pointer: &str,
    faults: &mut Faults,
    form: fn(&Json<'_>, &str) -> Result<T, Vec<Fault>>,
) -> Option<T> {
    let json = match Json::parse(text) {
        Ok(json) => json,
        Err(error) => {
            faults.add(pointer, error.to_string());
            return None;
        }
    };
    match form(&json, pointer) {
        Ok(read) => Some(read),
        Err(found) => {
            for fault in found {
                match fault.kind {
                    FaultKind::Invalid => faults.add(fault.pointer, fault.detail),
                    FaultKind::UnknownField => faults.add_unknown(fault.pointer, fault.detail),
                }
            }
            None
        }
    }
}
