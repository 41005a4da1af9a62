//! Criteria and patches as they are written in JSON.
//!
//! Owns the notation and its checks: every fault is told, with a JSON pointer to it. The request around them, and what
//! becomes of the faults, is the node's.
//!
//! - Criteria: a list of `{"field":…,"op":…,"value":…}`, `{"any":[…]}`, `{"all":[…]}` and `{"not":{…}}`. Beside `$key` a value
//!   may be bytes, `{"base64":"…"}`.
//! - Merge patch: an object.
//! - JSON Patch: a list of `{"op":"add","path":"/a","value":…}`; paths are JSON pointers. Members that RFC 6902 does
//!   not define are ignored, as it says; anywhere else they are a fault.
//! - Update operators: a list of `{"op":"inc","path":"a.b","value":1}`; paths in either notation. `unset` and `now`
//!   have no value; `now` may have `"form":"unix_ms"` beside its default `"rfc3339"`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::criteria::{Criteria, Operand, Operator, Predicate, Term, Value};
use super::json::{Json, Object};
use super::json_patch::JsonPatchOp;
use super::number::Number;
use super::patch::Patch;
use super::patch_fault::PatchError;
use super::path::{Field, MetaField, Path, PathError};
use super::update::{TimeForm, UpdateAction, UpdateOp};
use crate::limits;

/// Something wrong with a written form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer to it.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// Of which kind.
    pub kind: FaultKind,
}

/// Kinds of faults that a caller is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A bad value, or a missing one.
    Invalid,
    /// A member that has no meaning.
    UnknownField,
}

/// The faults so far; the first [`limits::READ_FAULTS_MAX`] are kept.
#[derive(Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(&mut self, pointer: impl Into<String>, detail: impl ToString) {
        self.push(pointer.into(), detail.to_string(), FaultKind::Invalid);
    }

    fn push(&mut self, pointer: String, detail: String, kind: FaultKind) {
        if self.0.len() < limits::READ_FAULTS_MAX {
            self.0.push(Fault { pointer, detail, kind });
        }
    }

    /// The value, or the fault that it has.
    pub(crate) fn keep<T, E: ToString>(&mut self, pointer: impl Into<String>, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(pointer, error.to_string())).ok()
    }

    /// What was read, unless there were faults.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T, Vec<Fault>> {
        match read {
            Some(read) if self.0.is_empty() => Ok(read),
            _ => {
                assert!(!self.0.is_empty(), "nothing was read, and no fault was found");
                Err(self.0)
            }
        }
    }
}

/// An object being read, with the pointer to it.
pub(crate) struct Members<'o, 'a> {
    pub(crate) object: &'o Object<'a>,
    pub(crate) pointer: String,
}

impl<'o, 'a> Members<'o, 'a> {
    pub(crate) fn of(json: &'o Json<'a>, pointer: String, faults: &mut Faults) -> Option<Self> {
        match json {
            Json::Object(object) => Some(Self { object, pointer }),
            other => {
                faults.add(pointer, format!("expected an object, found a value of type {}", other.kind()));
                None
            }
        }
    }

    pub(crate) fn at(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, super::path::escape(name))
    }

    pub(crate) fn refuse_others(&self, known: &[&str], faults: &mut Faults) {
        for (name, _) in self.object.iter().filter(|(name, _)| !known.contains(name)) {
            let detail = format!("unknown field; known here are {}", known.join(" "));
            faults.push(self.at(name), detail, FaultKind::UnknownField);
        }
    }

    pub(crate) fn required(&self, name: &str, faults: &mut Faults) -> Option<&'o Json<'a>> {
        let found = self.object.get(name);
        if found.is_none() {
            faults.add(self.at(name), "required");
        }
        found
    }

    pub(crate) fn text(&self, name: &str, faults: &mut Faults) -> Option<&'o str> {
        match self.required(name, faults)? {
            Json::String(text) => Some(text),
            other => {
                faults.add(self.at(name), format!("expected a string, found a value of type {}", other.kind()));
                None
            }
        }
    }

    fn path(&self, name: &str, parse: fn(&str) -> Result<Path, PathError>, faults: &mut Faults) -> Option<Path> {
        let text = self.text(name, faults)?;
        faults.keep(self.at(name), parse(text))
    }

    fn value(&self, faults: &mut Faults) -> Option<Json<'static>> {
        self.required("value", faults).map(|value| value.clone().into_owned())
    }
}

impl Criteria {
    /// Reads a list of terms that stands at `pointer`.
    pub fn read(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let terms = read_terms(json, pointer, &mut faults);
        let criteria = terms.and_then(|terms| faults.keep(pointer, Self::new(terms)));
        faults.finish(criteria)
    }
}

/// All terms, those with faults too, as far as they can be read: one fault does not hide another.
fn read_terms(json: &Json<'_>, pointer: &str, faults: &mut Faults) -> Option<Vec<Term>> {
    let items = read_list(json, pointer, faults)?;
    let read = |(at, item): (usize, &Json<'_>)| read_term(item, format!("{pointer}/{at}"), faults);
    Some(items.iter().enumerate().filter_map(read).collect())
}

pub(crate) fn read_list<'j, 'a>(json: &'j Json<'a>, pointer: &str, faults: &mut Faults) -> Option<&'j [Json<'a>]> {
    match json {
        Json::Array(items) => Some(items),
        other => {
            faults.add(pointer, format!("expected a list, found a value of type {}", other.kind()));
            None
        }
    }
}

fn read_term(json: &Json<'_>, pointer: String, faults: &mut Faults) -> Option<Term> {
    let members = Members::of(json, pointer, faults)?;
    let Some(group) = ["any", "all", "not"].into_iter().find(|group| members.object.get(group).is_some()) else {
        return read_predicate(&members, faults).map(Term::Predicate);
    };
    members.refuse_others(&[group], faults);
    let (inner, at) = (members.required(group, faults)?, members.at(group));
    if group == "not" {
        return read_term(inner, at, faults).map(|term| Term::Not(Box::new(term)));
    }
    let terms = read_terms(inner, &at, faults)?;
    if matches!(inner, Json::Array(items) if items.is_empty()) {
        faults.add(at, "a group has at least one member");
    }
    Some(if group == "any" { Term::Any(terms) } else { Term::All(terms) })
}

fn read_predicate(members: &Members<'_, '_>, faults: &mut Faults) -> Option<Predicate> {
    members.refuse_others(&["field", "op", "value"], faults);
    let field = members.text("field", faults);
    let field = field.and_then(|text| faults.keep(members.at("field"), Field::parse(text)));
    let name = members.text("op", faults);
    let operator = name.and_then(|name| {
        let known = || format!("no such operator; known are {}", Operator::NAMES.map(|(name, _)| name).join(" "));
        faults.keep(members.at("op"), Operator::parse(name).ok_or_else(known))
    });
    let (field, operator) = (field?, operator?);
    let operand = match (operator, members.object.get("value")) {
        (_, None) => Operand::None,
        (Operator::In | Operator::Nin | Operator::Between, Some(Json::Array(items))) => {
            let at = |place: usize| format!("{}/{place}", members.at("value"));
            let read = |(place, item)| faults.keep(at(place), read_operand(&field, item));
            Operand::List(items.iter().enumerate().map(read).collect::<Option<_>>()?)
        }
        (_, Some(value)) => Operand::One(faults.keep(members.at("value"), read_operand(&field, value))?),
    };
    faults.keep(members.at("value"), Predicate::new(field, operator, operand))
}

/// Revisions and tokens may be written as strings of digits, as answers show them, and as numbers; keys as strings and as
/// bytes.
fn read_operand(field: &Field, json: &Json<'_>) -> Result<Value, String> {
    let whole = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    Ok(match (field, json) {
        (Field::Meta(MetaField::CreateRevision | MetaField::ModRevision), Json::String(text)) => match whole(text) {
            Some(number) => Value::Json(Json::Number(Number::from(number))),
            None => read_value(json),
        },
        (Field::Meta(MetaField::Cas), Json::Number(number)) => match whole(number.as_str()) {
            Some(number) => Value::Json(Json::String(number.to_string().into())),
            None => read_value(json),
        },
        (Field::Meta(MetaField::Key), Json::Object(object)) if object.len() == 1 => match object.get("base64") {
            Some(Json::String(text)) => {
                Value::Name(STANDARD.decode(&**text).map_err(|error| format!("not base64: {error}"))?)
            }
            _ => read_value(json),
        },
        _ => read_value(json),
    })
}

fn read_value(json: &Json<'_>) -> Value {
    match json {
        Json::Object(object) if object.len() == 1 && object.get("now") == Some(&Json::Bool(true)) => Value::Now,
        other => Value::Json(other.clone().into_owned()),
    }
}

impl Patch {
    /// Reads a patch of any kind that stands at `pointer`: an object is a merge patch; a list is a JSON Patch or update
    /// operators, which have no name in common, by its first operation.
    pub fn read(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        let Json::Array(items) = json else { return Self::read_merge(json, pointer) };
        let first = items.first().and_then(|item| match item {
            Json::Object(object) => object.get("op"),
            _ => None,
        });
        let is_update = matches!(first, Some(Json::String(name)) if UPDATE_NAMES.contains(&&**name));
        if is_update { Self::read_update(json, pointer) } else { Self::read_json_patch(json, pointer) }
    }

    /// Reads a merge patch.
    pub fn read_merge(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let patch = faults.keep(pointer, Self::merge(json.clone().into_owned()));
        faults.finish(patch)
    }

    /// Reads a JSON Patch.
    pub fn read_json_patch(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        read_operations(json, pointer, read_json_patch_op, JsonPatchOp::check, Self::json)
    }

    /// Reads a list of update operators.
    pub fn read_update(json: &Json<'_>, pointer: &str) -> Result<Self, Vec<Fault>> {
        read_operations(json, pointer, read_update_op, UpdateOp::check, Self::update)
    }
}

fn read_operations<T>(
    json: &Json<'_>,
    pointer: &str,
    read: fn(&Members<'_, '_>, &mut Faults) -> Option<T>,
    check: fn(&T) -> Result<(), PatchError>,
    make: fn(Vec<T>) -> Result<Patch, PatchError>,
) -> Result<Patch, Vec<Fault>> {
    let mut faults = Faults::default();
    let items = read_list(json, pointer, &mut faults);
    let operations = items.map(|items| {
        let read_one = |(at, item)| {
            let members = Members::of(item, format!("{pointer}/{at}"), &mut faults)?;
            let operation = read(&members, &mut faults)?;
            faults.keep(members.pointer, check(&operation))?;
            Some(operation)
        };
        items.iter().enumerate().filter_map(read_one).collect()
    });
    let patch = operations.and_then(|operations| faults.keep(pointer, make(operations)));
    faults.finish(patch)
}

fn read_json_patch_op(members: &Members<'_, '_>, faults: &mut Faults) -> Option<JsonPatchOp> {
    let operator = members.text("op", faults);
    let path = members.path("path", Path::parse_pointer, faults);
    let operator = operator?;
    let mut from = || members.path("from", Path::parse_pointer, faults);
    Some(match operator {
        "remove" => JsonPatchOp::Remove { path: path? },
        "move" => from().zip(path).map(|(from, path)| JsonPatchOp::Move { from, path })?,
        "copy" => from().zip(path).map(|(from, path)| JsonPatchOp::Copy { from, path })?,
        "add" => members.value(faults).zip(path).map(|(value, path)| JsonPatchOp::Add { path, value })?,
        "replace" => members.value(faults).zip(path).map(|(value, path)| JsonPatchOp::Replace { path, value })?,
        "test" => members.value(faults).zip(path).map(|(value, path)| JsonPatchOp::Test { path, value })?,
        _ => {
            faults.add(members.at("op"), "no such operation; known here are add remove replace move copy test");
            return None;
        }
    })
}

const UPDATE_NAMES: [&str; 7] = ["inc", "set", "unset", "append", "max", "min", "now"];

fn read_update_op(members: &Members<'_, '_>, faults: &mut Faults) -> Option<UpdateOp> {
    let operator = members.text("op", faults);
    let path = members.path("path", Path::parse, faults);
    let known: &[&str] = match operator? {
        "unset" => &["op", "path"],
        "now" => &["op", "path", "form"],
        _ => &["op", "path", "value"],
    };
    members.refuse_others(known, faults);
    let action = match operator? {
        "inc" => members.value(faults).map(UpdateAction::Inc),
        "set" => members.value(faults).map(UpdateAction::Set),
        "unset" => Some(UpdateAction::Unset),
        "append" => members.value(faults).map(UpdateAction::Append),
        "max" => members.value(faults).map(UpdateAction::Max),
        "min" => members.value(faults).map(UpdateAction::Min),
        "now" => read_time_form(members, faults).map(UpdateAction::Now),
        _ => {
            faults.add(members.at("op"), format!("no such operator; known here are {}", UPDATE_NAMES.join(" ")));
            None
        }
    };
    Some(UpdateOp { path: path?, action: action? })
}

fn read_time_form(members: &Members<'_, '_>, faults: &mut Faults) -> Option<TimeForm> {
    match members.object.get("form") {
        None => Some(TimeForm::Rfc3339),
        Some(Json::String(form)) if form == "rfc3339" => Some(TimeForm::Rfc3339),
        Some(Json::String(form)) if form == "unix_ms" => Some(TimeForm::UnixMs),
        Some(_) => {
            faults.add(members.at("form"), "`rfc3339` or `unix_ms`");
            None
        }
    }
}
