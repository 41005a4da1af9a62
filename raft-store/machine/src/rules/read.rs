//! Rules as they are written in JSON.
//!
//! Owns the notation; every fault is told, with a JSON pointer to it. What fits what is in [`super::check`].
//!
//! ```json
//! {"fields": {"status": {"type": "varchar", "max": 20, "default": "new"}, "n": {"type": "long", "sequence": "orders"},
//!             "updated": {"type": "datetime", "auto_update": true}},
//!  "required": ["status"], "indexes": [["status", "due"], {"fields": ["n"], "unique": true}],
//!  "ttl_ms": 86400000, "precondition_required": true}
//! ```

use super::Rules;
use super::check::Draft;
use super::field::{FieldKind, FieldRule};
use super::index::IndexRule;
use super::name::SequenceName;
use crate::document::path::Path;
use crate::document::{Fault, Faults, Json, Members, Numeric, read_list};

impl Rules {
    /// Reads rules that stand at `pointer`.
    pub fn read(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let members = Members::of(json, pointer.to_owned(), &mut faults);
        let draft = members.map(|members| read_draft(&members, &mut faults));
        let rules = draft.and_then(|draft| draft.check(&mut faults));
        faults.finish(rules)
    }
}

/// All parts that can be read: one fault does not hide another.
fn read_draft(members: &Members<'_, '_>, faults: &mut Faults) -> Draft {
    members.refuse_others(&["fields", "required", "indexes", "ttl_ms", "precondition_required"], faults);
    let mut draft = Draft { root: members.pointer.clone(), ..Draft::default() };
    if let Some(fields) = members.object.get("fields") {
        draft.fields = read_fields(fields, members.at("fields"), faults);
    }
    if let Some(required) = members.object.get("required") {
        draft.required = read_paths(required, &members.at("required"), faults);
    }
    if let Some(indexes) = members.object.get("indexes") {
        let at = members.at("indexes");
        let items = read_list(indexes, &at, faults).unwrap_or_default();
        let read = |(index, item)| read_index(item, format!("{at}/{index}"), faults);
        draft.indexes = items.iter().enumerate().filter_map(read).collect();
    }
    draft.ttl_ms = whole_number(members, "ttl_ms", faults);
    draft.precondition_required = flag(members, "precondition_required", faults);
    draft
}

fn read_fields(json: &Json<'_>, pointer: String, faults: &mut Faults) -> Vec<(String, Path, FieldRule)> {
    let Some(members) = Members::of(json, pointer, faults) else { return Vec::new() };
    let read = |(name, value): (&str, &Json<'_>)| {
        let at = members.at(name);
        let path = faults.keep(at.as_str(), Path::parse(name));
        let rule = Members::of(value, at.clone(), faults).and_then(|members| read_field(&members, faults));
        Some((at, path?, rule?))
    };
    members.object.iter().filter_map(read).collect()
}

/// The rule, unless its type is unknown: what fits beside it cannot be said then.
fn read_field(members: &Members<'_, '_>, faults: &mut Faults) -> Option<FieldRule> {
    members.refuse_others(&["type", "max", "default", "sequence", "auto_update"], faults);
    let kind = match members.object.get("type") {
        None => Some(FieldKind::Any),
        Some(_) => read_kind(members, faults),
    };
    let sequence = members.object.get("sequence").and_then(|_| members.text("sequence", faults));
    let sequence = sequence.and_then(|name| faults.keep(members.at("sequence"), SequenceName::new(name)));
    let (max, auto_update) = (whole_number(members, "max", faults), flag(members, "auto_update", faults));
    let default = members.object.get("default").map(|default| default.clone().into_owned());
    Some(FieldRule { kind: kind?, max, default, sequence, auto_update })
}

fn read_kind(members: &Members<'_, '_>, faults: &mut Faults) -> Option<FieldKind> {
    let name = members.text("type", faults)?;
    let known = || format!("no such type; known are {}", FieldKind::NAMES.map(|(name, _)| name).join(" "));
    faults.keep(members.at("type"), FieldKind::parse(name).ok_or_else(known))
}

/// An index with the pointer to its fields.
fn read_index(json: &Json<'_>, pointer: String, faults: &mut Faults) -> Option<(String, IndexRule)> {
    let (list, pointer, unique) = match json {
        Json::Object(_) => {
            let members = Members::of(json, pointer, faults)?;
            members.refuse_others(&["fields", "unique"], faults);
            let unique = flag(&members, "unique", faults);
            (members.required("fields", faults)?, members.at("fields"), unique)
        }
        _ => (json, pointer, false),
    };
    let count = read_list(list, &pointer, faults)?.len();
    let paths = read_paths(list, &pointer, faults);
    if paths.len() < count {
        return None;
    }
    let paths = paths.into_iter().map(|(_, path)| path).collect();
    let index = faults.keep(pointer.as_str(), IndexRule::new(paths, unique))?;
    Some((pointer, index))
}

fn read_paths(json: &Json<'_>, pointer: &str, faults: &mut Faults) -> Vec<(String, Path)> {
    let items = read_list(json, pointer, faults).unwrap_or_default();
    let read = |(index, item): (usize, &Json<'_>)| {
        let at = format!("{pointer}/{index}");
        let path = match item {
            Json::String(text) => faults.keep(at.as_str(), Path::parse(text))?,
            other => {
                faults.add(at, format!("expected a field path, found a value of type {}", other.kind()));
                return None;
            }
        };
        Some((at, path))
    };
    items.iter().enumerate().filter_map(read).collect()
}

fn whole_number(members: &Members<'_, '_>, name: &str, faults: &mut Faults) -> Option<u64> {
    let found = members.object.get(name)?;
    let whole = match found {
        Json::Number(number) => match number.value() {
            Numeric::Integer(integer) => u64::try_from(integer).ok(),
            Numeric::Float(_) => None,
        },
        _ => None,
    };
    if whole.is_none() {
        faults.add(members.at(name), "expected a whole number, not negative");
    }
    whole
}

fn flag(members: &Members<'_, '_>, name: &str, faults: &mut Faults) -> bool {
    match members.object.get(name) {
        None => false,
        Some(Json::Bool(value)) => *value,
        Some(other) => {
            faults.add(members.at(name), format!("expected true or false, found a value of type {}", other.kind()));
            false
        }
    }
}
