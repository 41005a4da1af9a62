//! The bodies of `POST /v1/find` and `POST /v1/count`.
//!
//! Owns the reading of a query with a pointer to every fault, and what a cursor has to fit to. The names are those of
//! `quorate_api::FindRequest` and `CountRequest`, which a test holds this file to.

use std::borrow::Cow;

use quorate_store::codec;
use quorate_store::document::path::{Field, MetaField, Path};
use quorate_store::document::{Criteria, Order, OrderField, Projection};
use quorate_store::limits::KEY_BYTES_MAX;
use quorate_store::state::{FindBounds, FindMoment, FindQuery, ValueShown, Wanted};
use quorate_store::types::Revision;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::criteria::criteria;
use super::cursor::FindCursor;
use super::error::Failure;
use super::extract::Faults;
use super::json;
use super::op_body::{text, typed};
use super::read;
use crate::app::Consistency;
use crate::limits;

const FIND_FIELDS: &str =
    "prefix, where, order_by, limit, cursor, fields, keys_only, revision, consistency, min_revision";
const COUNT_FIELDS: &str = "prefix, where, cursor, revision, consistency, min_revision";

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `POST /v1/find`
    Find,
    /// `POST /v1/count`
    Count,
}

/// A checked query.
#[derive(Debug)]
pub struct FindWish {
    /// What to find.
    pub query: FindQuery,
    /// How fresh.
    pub consistency: Consistency,
    /// For the cursor to the next page: hash of what has to be repeated.
    pub hash: u64,
}

/// The fields as they stand in the body.
#[derive(Default)]
struct Fields<'a> {
    prefix: Option<Cow<'a, str>>,
    criteria: Criteria,
    order_by: Vec<OrderField>,
    /// As written: for the hash.
    order_names: Vec<String>,
    limit: Option<u64>,
    cursor: Option<Cow<'a, str>>,
    fields: Option<Vec<Path>>,
    keys_only: Option<bool>,
    revision: Option<Revision>,
    consistency: Option<Cow<'a, str>>,
    min_revision: Option<Revision>,
}

impl FindWish {
    /// Reads a body that is known to be strict JSON. Reports every fault, not only the first.
    pub fn read(body: &[u8], kind: Kind) -> Result<Self, Failure> {
        let list = json::fields(body).map_err(|fault| {
            let detail = if body.first() == Some(&b'{') { fault.detail } else { "a query is a JSON object".to_owned() };
            Failure::invalid(fault.pointer, detail)
        })?;
        let mut faults = Faults::default();
        let mut fields = Fields::default();
        for (name, raw) in list {
            fields.set(&name, raw, kind, &mut faults);
        }
        let wanted = fields.wanted(kind, &mut faults);
        let consistency = read::consistency_of(fields.consistency.as_deref(), fields.min_revision, "/", &mut faults);
        let hash = fields.hash(kind);
        let cursor = fields.cursor(hash, &mut faults);
        faults.check()?;
        let (after, moment) = match (cursor, fields.revision) {
            (Some(FindCursor { pin, after, .. }), _) => (Some(after), FindMoment::Pinned(pin)),
            (None, Some(revision)) => (None, FindMoment::Revision(revision)),
            (None, None) => (None, FindMoment::Now),
        };
        let prefix = fields.prefix.map_or_else(Vec::new, |prefix| prefix.into_owned().into_bytes());
        let bounds = FindBounds { entries_max: limits::FIND_ENTRIES_MAX, bytes_max: limits::FIND_BYTES_MAX };
        let query =
            FindQuery { prefix, criteria: fields.criteria, wanted, moment, after, bounds, may_walk_past: false };
        Ok(Self { query, consistency, hash })
    }
}

impl<'a> Fields<'a> {
    fn set(&mut self, name: &str, raw: &'a RawValue, kind: Kind, faults: &mut Faults) {
        match (name, kind) {
            ("prefix", _) => self.prefix = prefix(raw, faults),
            ("where", _) => {
                self.criteria = criteria(raw.get().as_bytes(), "/where", faults).unwrap_or_default();
            }
            ("cursor", _) => self.cursor = text(raw, "/cursor", faults),
            ("revision", _) => self.revision = typed(raw, "/revision", "a revision, a whole number", faults),
            ("consistency", _) => self.consistency = text(raw, "/consistency", faults),
            ("min_revision", _) => {
                self.min_revision = typed(raw, "/min_revision", "a revision, a whole number", faults);
            }
            ("order_by", Kind::Find) => (self.order_by, self.order_names) = order_by(raw, faults),
            ("limit", Kind::Find) => self.limit = limit(raw, faults),
            ("fields", Kind::Find) => self.fields = projection(raw, faults),
            ("keys_only", Kind::Find) => self.keys_only = typed(raw, "/keys_only", "true or false", faults),
            (other, _) => {
                let known = if kind == Kind::Find { FIND_FIELDS } else { COUNT_FIELDS };
                faults.add_unknown(json::pointer(other), format!("no such field; there are: {known}"));
            }
        }
    }

    fn wanted(&mut self, kind: Kind, faults: &mut Faults) -> Wanted {
        if kind == Kind::Count {
            return Wanted::Count;
        }
        let shown = match (self.fields.take(), self.keys_only.unwrap_or(false)) {
            (Some(_), true) => {
                faults.add("/keys_only", "leaves the values out, so there are no fields to show; choose one");
                ValueShown::Nothing
            }
            (None, true) => ValueShown::Nothing,
            (Some(paths), false) => ValueShown::Parts(Projection::new(paths)),
            (None, false) => ValueShown::Whole,
        };
        // Bounded where it was read.
        let limit = self.limit.map_or(limits::LIST_ENTRIES_DEFAULT, |limit| limit as usize);
        let order = Order::new(std::mem::take(&mut self.order_by));
        Wanted::Page { order, limit, bytes_max: limits::LIST_BYTES_MAX, shown }
    }

    /// Of what decides which entries there are and in which order: a cursor stands for a place in that.
    fn hash(&self, kind: Kind) -> u64 {
        let prefix = self.prefix.as_deref().unwrap_or("");
        xxh3_64(&codec::encode(&(kind == Kind::Count, prefix, &self.criteria, &self.order_names)))
    }

    fn cursor(&self, hash: u64, faults: &mut Faults) -> Option<FindCursor> {
        let text = self.cursor.as_deref()?;
        let Some(cursor) = FindCursor::decode(text) else {
            faults.add("/cursor", "not a cursor of this route; give back the one of the page before, or start anew");
            return None;
        };
        if cursor.query != hash && faults.is_empty() {
            faults.add("/cursor", "belongs to another query; repeat prefix, where and order_by of the page before");
        }
        if self.revision.is_some_and(|revision| revision != cursor.pin.revision) {
            let detail = format!("the cursor stands for revision {}; leave this out", cursor.pin.revision);
            faults.add("/revision", detail);
        }
        Some(cursor)
    }
}

/// The beginning of keys.
pub fn prefix<'a>(raw: &'a RawValue, faults: &mut Faults) -> Option<Cow<'a, str>> {
    let prefix = text(raw, "/prefix", faults)?;
    if prefix.len() > KEY_BYTES_MAX {
        faults.add("/prefix", format!("longer than a key can be, {KEY_BYTES_MAX} bytes"));
    }
    Some(prefix)
}

/// The fields to order by, and their names as written.
pub fn order_by(raw: &RawValue, faults: &mut Faults) -> (Vec<OrderField>, Vec<String>) {
    const WANTED: &str = "a list of field paths, `-` before those of which the greatest come first";
    let names: Vec<String> = typed(raw, "/order_by", WANTED, faults).unwrap_or_default();
    let mut fields = Vec::new();
    if names.len() > limits::FIND_ORDER_FIELDS_MAX {
        let max = limits::FIND_ORDER_FIELDS_MAX;
        faults.add("/order_by", format!("at most {max} fields, here are {}", names.len()));
        return (fields, names);
    }
    for (at, name) in names.iter().enumerate() {
        match order_field(name) {
            Ok(field) => fields.push(field),
            Err(detail) => faults.add(format!("/order_by/{at}"), detail),
        }
    }
    (fields, names)
}

fn order_field(text: &str) -> Result<OrderField, String> {
    let (name, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
    match Field::parse(name).map_err(|error| error.to_string())? {
        Field::Meta(MetaField::Cas) => Err("$cas is opaque: it has no order; $mod_revision has".to_owned()),
        field => Ok(OrderField { field, descending }),
    }
}

fn limit(raw: &RawValue, faults: &mut Faults) -> Option<u64> {
    let max = limits::LIST_ENTRIES_MAX as u64;
    let limit: u64 = typed(raw, "/limit", &format!("a whole number from 1 to {max}"), faults)?;
    if limit == 0 || limit > max {
        faults.add("/limit", format!("out of range; give 1 to {max}"));
        return None;
    }
    Some(limit)
}

fn projection(raw: &RawValue, faults: &mut Faults) -> Option<Vec<Path>> {
    let names: Vec<String> = typed(raw, "/fields", "a list of field paths", faults)?;
    let max = limits::FIND_FIELDS_MAX;
    match names.len() {
        0 => faults.add("/fields", "names no field; keys_only leaves the values out"),
        many if many > max => faults.add("/fields", format!("at most {max} fields, here are {many}")),
        _ => {}
    }
    let mut paths = Vec::with_capacity(names.len().min(max));
    for (at, name) in names.iter().enumerate().take(max) {
        match Path::parse(name) {
            Ok(path) => paths.push(path),
            Err(error) if name.starts_with('$') => {
                let detail = format!("{error}; metadata is always in the answer");
                faults.add(format!("/fields/{at}"), detail);
            }
            Err(error) => faults.add(format!("/fields/{at}"), error.to_string()),
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use quorate_api::{CountRequest, FindRequest, ReadConsistency};

    use super::*;

    fn names(body: &impl serde::Serialize) -> String {
        let text = serde_json::to_vec(body).expect("JSON");
        let names: Vec<_> = json::fields(&text).expect("an object").into_iter().map(|(name, _)| name).collect();
        names.join(", ")
    }

    #[test]
    fn the_fields_are_those_of_the_wire_types() {
        let consistency = Some(ReadConsistency::Local);
        let full = FindRequest {
            prefix: Some(String::new()),
            criteria: Some(Vec::new()),
            order_by: Some(Vec::new()),
            limit: Some(1),
            cursor: Some(String::new()),
            fields: Some(Vec::new()),
            keys_only: Some(true),
            revision: Some(1),
            consistency,
            min_revision: Some(1),
        };
        assert_eq!(names(&full), FIND_FIELDS);
        let full = CountRequest {
            prefix: full.prefix,
            criteria: full.criteria,
            cursor: full.cursor,
            revision: full.revision,
            consistency,
            min_revision: full.min_revision,
        };
        assert_eq!(names(&full), COUNT_FIELDS);
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let body =
            br#"{"prefix":1,"where":[{"field":"a..b","op":"is","value":1},{"fild":"a"}],"order_by":["a","-$cas"],
            "limit":0,"cursor":"x","fields":["$key"],"keys_only":1,"revision":-1,"consistency":"some","colour":1}"#;
        let failure = format!("{:?}", FindWish::read(body, Kind::Find).expect_err("faults"));
        let pointers =
            ["/prefix", "/where/0/field", "/where/0/op", "/where/1/fild", "/order_by/1", "/limit", "/cursor"];
        for pointer in pointers.into_iter().chain(["/fields/0", "/keys_only", "/revision", "/consistency", "/colour"]) {
            assert!(failure.contains(&format!("\"{pointer}\"")), "{pointer} is missing in {failure}");
        }
        let failure = format!("{:?}", FindWish::read(br#"{"limit":5}"#, Kind::Count).expect_err("not a field"));
        assert!(failure.contains("UnknownField"), "{failure}");
    }
}
