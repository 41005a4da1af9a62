//! The bodies of `POST /v1/find` and `POST /v1/count`.
//!
//! Owns the reading of a query with a pointer to every fault, and what a cursor has to fit to. The names are those of
//! `quorate_api::FindRequest` and `CountRequest`, which a test holds this file to.

use quorate_api::{CountRequest, FindRequest, Name, ReadConsistency};
use quorate_machine::codec;
use quorate_machine::document::path::{Field, MetaField, Path};
use quorate_machine::document::{Order, OrderField, Projection};
use quorate_machine::query::{FindBounds, FindMoment, FindQuery, ValueShown, Wanted};
use quorate_machine::types::Revision;
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits;
use xxhash_rust::xxh3::xxh3_64;

use crate::input::consistency;
use crate::input::cursor::FindCursor;
use crate::input::extract::Faults;
use crate::input::{criteria, key};

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
pub struct ParsedFind {
    /// What to find.
    pub query: FindQuery,
    /// How fresh.
    pub consistency: Consistency,
    /// For the cursor to the next page: hash of what has to be repeated.
    pub hash: u64,
}

impl ParsedFind {
    /// Checks a request to find. Reports every fault, not only the first.
    pub fn find(request: &FindRequest) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let order_names = request.order_by.clone().unwrap_or_default();
        let order = order_by(&order_names, &mut faults);
        let limit = faults.within("/limit", request.limit, 1..=limits::LIST_ENTRIES_MAX as u32);
        let paths = request.fields.as_deref().map(|names| projection(names, &mut faults));
        let shown = match (paths, request.keys_only.unwrap_or(false)) {
            (Some(_), true) => {
                faults.add("/keys_only", "leaves the values out, so there are no fields to show; choose one");
                ValueShown::Nothing
            }
            (None, true) => ValueShown::Nothing,
            (Some(paths), false) => ValueShown::Parts(Projection::new(paths)),
            (None, false) => ValueShown::Whole,
        };
        let limit = limit.map_or(limits::LIST_ENTRIES_DEFAULT, |limit| limit as usize);
        let wanted = Wanted::Page { order: Order::new(order), limit, bytes_max: limits::LIST_BYTES_MAX, shown };
        Self::of(request, wanted, &order_names, faults)
    }

    /// Checks a request to count.
    pub fn count(request: CountRequest) -> Result<Self, Failure> {
        let CountRequest { prefix, criteria, cursor, revision, consistency, min_revision } = request;
        let request =
            FindRequest { prefix, criteria, cursor, revision, consistency, min_revision, ..FindRequest::default() };
        Self::of(&request, Wanted::Count, &[], Faults::default())
    }

    /// Checks what both have in common.
    fn of(request: &FindRequest, wanted: Wanted, order: &[String], mut faults: Faults) -> Result<Self, Failure> {
        let prefix = request.prefix.as_ref().map(Name::as_bytes).unwrap_or_default();
        key::check_prefix(prefix, "/prefix", &mut faults);
        let criteria = criteria::list(request.criteria.as_deref(), "/where", &mut faults).unwrap_or_default();
        let consistency = request.consistency.map(|consistency| match consistency {
            ReadConsistency::Linearizable => "linearizable",
            ReadConsistency::Local => "local",
        });
        let consistency = consistency::consistency_of(consistency, request.min_revision, "/", &mut faults);
        // Of what decides which entries there are and in which order: a cursor stands for a place in that.
        let hash = xxh3_64(&codec::encode(&(matches!(wanted, Wanted::Count), prefix, &criteria, order)));
        let cursor = request.cursor.as_deref().and_then(|text| cursor_of(text, request.revision, hash, &mut faults));
        faults.check()?;
        let (after, moment) = match (cursor, request.revision) {
            (Some(FindCursor { pin, after, .. }), _) => (Some(after), FindMoment::Pinned(pin)),
            (None, Some(revision)) => (None, FindMoment::Revision(revision)),
            // Until it is looked what time it is.
            (None, None) => (None, FindMoment::Now(0)),
        };
        let bounds = FindBounds { entries_max: limits::FIND_ENTRIES_MAX, bytes_max: limits::FIND_BYTES_MAX };
        let prefix = prefix.to_vec();
        let query = FindQuery { prefix, criteria, wanted, moment, after, bounds, may_walk_past: false };
        Ok(Self { query, consistency, hash })
    }
}

fn cursor_of(text: &str, revision: Option<Revision>, hash: u64, faults: &mut Faults) -> Option<FindCursor> {
    let Some(cursor) = FindCursor::decode(text) else {
        faults.add("/cursor", "not a cursor of this route; give back the one of the page before, or start anew");
        return None;
    };
    if cursor.query != hash && faults.is_empty() {
        faults.add("/cursor", "belongs to another query; repeat prefix, where and order_by of the page before");
    }
    if revision.is_some_and(|revision| revision != cursor.pin.revision) {
        let detail = format!("the cursor stands for revision {}; leave this out", cursor.pin.revision);
        faults.add("/revision", detail);
    }
    Some(cursor)
}

/// The fields to order by.
pub fn order_by(names: &[String], faults: &mut Faults) -> Vec<OrderField> {
    let max = limits::FIND_ORDER_FIELDS_MAX;
    if names.len() > max {
        faults.add("/order_by", format!("at most {max} fields, here are {}", names.len()));
        return Vec::new();
    }
    let mut fields = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match order_field(name) {
            Ok(field) => fields.push(field),
            Err(detail) => faults.add(format!("/order_by/{at}"), detail),
        }
    }
    fields
}

fn order_field(text: &str) -> Result<OrderField, String> {
    let (name, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
    match Field::parse(name).map_err(|error| error.to_string())? {
        Field::Meta(MetaField::Cas) => Err("$cas is opaque: it has no order; $mod_revision has".to_owned()),
        field => Ok(OrderField { field, descending }),
    }
}

fn projection(names: &[String], faults: &mut Faults) -> Vec<Path> {
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
    paths
}
