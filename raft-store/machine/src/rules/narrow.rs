//! What a criterion says of the index bytes of its field.
//!
//! Owns the ranges of bytes outside of which no value can satisfy a predicate. They may hold more than what does: whoever
//! walks them checks each document with the criteria themselves.

use std::collections::BTreeMap;

use crate::document::path::{Field, Path};
use crate::document::{Criteria, Json, Number, Operand, Operator, Predicate, Term, Value, order, time};
use crate::entry::WallMillis;
use crate::limits::INDEX_TEXT_BYTES_MAX;

/// Bytes from `start` on and before `end`; the form of one value, with whatever follows it, is wholly inside or outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    /// Whether only one form is inside.
    pub(super) is_point: bool,
}

/// What the bytes of a field may be.
///
/// Invariant: ascending, and no two overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allowed(pub(super) Vec<Interval>);

/// What all terms leave of each field that they narrow. Only terms that must hold by themselves are looked at, not those
/// inside of `any` and `not`.
pub(super) fn allowed_fields(criteria: &Criteria, wall: WallMillis) -> BTreeMap<&Path, Allowed> {
    let mut fields = BTreeMap::new();
    narrow_all(criteria.terms(), wall, &mut fields);
    fields
}

fn narrow_all<'c>(terms: &'c [Term], wall: WallMillis, fields: &mut BTreeMap<&'c Path, Allowed>) {
    for term in terms {
        match term {
            Term::Predicate(predicate) => {
                if let Field::Document(path) = predicate.field()
                    && let Some(narrowed) = allowed_by(predicate, wall)
                {
                    let left = match fields.remove(path) {
                        Some(before) => before.intersect(&narrowed),
                        None => narrowed,
                    };
                    fields.insert(path, left);
                }
            }
            Term::All(terms) => narrow_all(terms, wall, fields),
            Term::Any(_) | Term::Not(_) => {}
        }
    }
}

impl Allowed {
    /// Sorts what may overlap.
    fn of(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.end.cmp(&a.end)));
        let mut sorted: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals.into_iter().filter(|interval| interval.start < interval.end) {
            match sorted.last_mut() {
                // A point ends where the one around it does; of two ranges the second may reach further.
                Some(last) if interval.start < last.end => {
                    if last.end < interval.end {
                        last.end = interval.end;
                    }
                }
                _ => sorted.push(interval),
            }
        }
        Self(sorted)
    }

    fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
            let (start, end) = ((&a.start).max(&b.start), (&a.end).min(&b.end));
            if start < end {
                let is_point = a.is_point || b.is_point;
                both.push(Interval { start: start.clone(), end: end.clone(), is_point });
            }
            if a.end <= b.end { left = left_rest } else { right = right_rest }
        }
        Self(both)
    }

    /// Whether only single values are allowed.
    pub(super) fn is_points(&self) -> bool {
        self.0.iter().all(|interval| interval.is_point)
    }

    /// Whether only one value is.
    pub(super) fn is_one_point(&self) -> bool {
        matches!(self.0.as_slice(), [interval] if interval.is_point)
    }

    /// Whether a unique index that allows only these has one document for each: null and what is missing bind nobody, and
    /// neither do arrays and objects.
    pub(super) fn is_bound(&self) -> bool {
        let (null, array) = (form(Some(&Json::Null)), form(Some(&Json::Array(Vec::new()))));
        self.is_points() && self.0.iter().all(|interval| null < interval.start && interval.start < array)
    }

    /// As at most so many, wider where it has to be.
    pub(super) fn covered(&self, max: usize) -> Vec<Interval> {
        let join = |part: &[Interval]| match part {
            [only] => only.clone(),
            [first, .., last] => Interval { start: first.start.clone(), end: last.end.clone(), is_point: false },
            [] => unreachable!("chunks are not empty"),
        };
        self.0.chunks(self.0.len().div_ceil(max).max(1)).map(join).collect()
    }

    /// How much it says: 2 with both ends among the values of one type, 1 with one of them, 0 if it goes beyond a type.
    pub(super) fn strength(&self) -> u8 {
        let of = |Interval { start, end, .. }: &Interval| {
            let is_one_type = start[0] == end[0] || (end.len() == 1 && start[0] + 1 == end[0]);
            let ends = u8::from(start.len() > 1) + u8::from(end.len() > 1);
            if is_one_type { ends.max(1) } else { 0 }
        };
        self.0.iter().map(of).min().unwrap_or(2)
    }
}

/// The ranges outside of which a predicate never holds; `None` where it may hold anywhere.
///
/// | predicate | ranges |
/// |---|---|
/// | `eq in` | the form of each value |
/// | `lt lte gt gte between` | that side of the value, among the values of its type |
/// | `starts` | the strings that do |
/// | `nexists` | the form of what is missing |
/// | `exists` | all behind that |
fn allowed_by(predicate: &Predicate, wall: WallMillis) -> Option<Allowed> {
    let values = predicate.operand().values();
    match (predicate.operator(), predicate.operand()) {
        (Operator::Eq | Operator::In, _) => {
            Some(Allowed::of(values.iter().flat_map(|value| equal_to(value, wall)).collect()))
        }
        (Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte, Operand::One(value)) => {
            one_side(predicate.operator(), value, wall)
        }
        (Operator::Between, Operand::List(values)) => {
            let [low, high] = values.as_slice() else { return None };
            Some(one_side(Operator::Gte, low, wall)?.intersect(&one_side(Operator::Lte, high, wall)?))
        }
        (Operator::Starts, Operand::One(Value::Json(start @ Json::String(_)))) => {
            let mut bytes = form(Some(start));
            // Without the mark of its end.
            bytes.truncate(bytes.len() - 2);
            Some(Allowed::of(vec![Interval { end: behind(&bytes), start: bytes, is_point: false }]))
        }
        (Operator::Nexists, _) => Some(Allowed::of(vec![point(None)])),
        (Operator::Exists, _) => {
            let start = behind(&form(None));
            Some(Allowed::of(vec![Interval { start, end: vec![u8::MAX], is_point: false }]))
        }
        _ => None,
    }
}

fn equal_to(value: &Value, wall: WallMillis) -> Vec<Interval> {
    match value {
        // All arrays have one form, and so have all objects.
        Value::Json(json) => vec![point(Some(json))],
        Value::Now => {
            let number = Json::Number(Number::from(wall));
            vec![point(Some(&number)), times(Operator::Eq, wall)]
        }
        // Beside a key only, which no index has.
        Value::Name(_) => Vec::new(),
    }
}

fn one_side(operator: Operator, value: &Value, wall: WallMillis) -> Option<Allowed> {
    match value {
        Value::Json(json @ (Json::Number(_) | Json::String(_))) => Some(Allowed::of(vec![side(operator, json)])),
        // Has no order; no constructor lets it through.
        Value::Json(_) | Value::Name(_) => None,
        Value::Now => {
            let number = Json::Number(Number::from(wall));
            Some(Allowed::of(vec![side(operator, &number), times(operator, wall)]))
        }
    }
}

/// The values of its type on one side of a value.
fn side(operator: Operator, value: &Json<'_>) -> Interval {
    let at = form(Some(value));
    let tag = at[0];
    let (start, end) = match operator {
        Operator::Lt => (vec![tag], at),
        Operator::Lte => (vec![tag], behind(&at)),
        Operator::Gt => (behind(&at), vec![tag + 1]),
        _ => (at, vec![tag + 1]),
    };
    Interval { start, end, is_point: false }
}

/// The strings that may be times on one side of the wall clock, or be it. They start with the date where they were
/// written, which may be a day off; a field declared as `datetime` has only times in UTC, and is compared as a string.
fn times(operator: Operator, wall: WallMillis) -> Interval {
    let wall = i64::try_from(wall).unwrap_or(i64::MAX);
    let date = |ms: i64, beyond: &str| {
        let date = time::from_unix_ms(ms).map_or(beyond.to_owned(), |text| text[..10].to_owned());
        let mut bytes = form(Some(&Json::String(date.into())));
        bytes.truncate(bytes.len() - 2);
        bytes
    };
    let from = || date(wall.saturating_sub(time::MS_PER_DAY), "9999");
    let to = || behind(&date(wall.saturating_add(time::MS_PER_DAY), "9999"));
    let (start, end) = match operator {
        Operator::Lt | Operator::Lte => (date(i64::MIN, "0"), to()),
        Operator::Gt | Operator::Gte => (from(), behind(&date(i64::MAX, "9"))),
        _ => (from(), to()),
    };
    Interval { start, end, is_point: false }
}

fn point(value: Option<&Json<'_>>) -> Interval {
    let start = form(value);
    Interval { end: behind(&start), start, is_point: true }
}

/// The bytes of a value in an index. What is longer than any there is cut: nothing there begins with that, so it stands
/// where the whole would.
fn form(value: Option<&Json<'_>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    order::encode_sort(value, &mut bytes);
    bytes.truncate(FORM_BYTES_MAX);
    bytes
}

/// A tag, the longest indexed string with every byte escaped, and the mark of its end.
const FORM_BYTES_MAX: usize = 1 + 2 * INDEX_TEXT_BYTES_MAX + 2;

/// The first bytes behind all that begin with these.
pub(super) fn behind(bytes: &[u8]) -> Vec<u8> {
    let kept = bytes.iter().rposition(|byte| *byte != u8::MAX).expect("forms begin with a tag, which is not FF");
    let mut end = bytes[..=kept].to_vec();
    end[kept] += 1;
    end
}
