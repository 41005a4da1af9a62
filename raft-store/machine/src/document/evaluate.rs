//! Whether criteria hold, and where they do not, why.
//!
//! Owns the meaning of every operator. Total: of any value each predicate holds or does not. Parts that do not fit each
//! other, which the constructors refuse, match nothing.

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bincode::{Decode, Encode};

use super::criteria::{Criteria, Operand, Operator, Predicate, Term, Value};
use super::json::{Json, Object};
use super::like;
use super::name;
use super::number::{Number, Numeric};
use super::order;
use super::path::{Field, MetaField};
use super::steps::{Steps, TooDear};
use super::time;
use super::write::Excerpt;
use crate::entry::{ClusterMillis, EntryMeta, Key, WallMillis};
use crate::limits;

/// What criteria are evaluated of: an entry, or a key that has none.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The key.
    pub key: &'a Key,
    /// Metadata of the entry, if there is one.
    pub meta: Option<&'a EntryMeta>,
    /// Whether the entry is locked; its token is `null` then.
    pub is_locked: bool,
    /// The value, where there is an entry and it is JSON. May be absent where [`Criteria::needs_document`] says so.
    pub document: Option<&'a Json<'a>>,
    /// The cluster clock, at the moment of `wall`.
    pub clock: ClusterMillis,
    /// The wall clock that `{"now":true}` stands for.
    pub wall: WallMillis,
}

/// A predicate that made criteria fail: one that does not hold, or below a `not` one that does.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Unmet {
    /// JSON pointer to it, such as `/if/0/any/1`.
    pub pointer: String,
    /// The field as it is; `None` where it is missing.
    pub actual: Option<Excerpt>,
}

impl Unmet {
    /// Whether it is one that holds and must not: each `not` around it turns round what is asked of it.
    pub fn holds(&self) -> bool {
        self.pointer.split('/').filter(|step| *step == "not").count() % 2 == 1
    }
}

/// The moment of a look at a field, and the steps that it counts in.
#[derive(Clone, Copy)]
struct Look<'s> {
    wall: WallMillis,
    steps: &'s Steps,
}

impl Criteria {
    /// Whether all terms hold.
    pub fn hold(&self, subject: &Subject<'_>) -> bool {
        let steps = Steps::unbounded();
        self.terms().iter().all(|term| term.holds(subject, &steps))
    }

    /// The same, within a bound of steps. [`Self::ready`] criteria take fewer steps for many subjects.
    pub fn hold_within(&self, subject: &Subject<'_>, steps: &Steps) -> Result<bool, TooDear> {
        steps.judge(self.terms().iter().all(|term| term.holds(subject, steps)))
    }

    /// Why they do not: the predicates of the first term that does not hold, at most [`limits::UNMET_MAX`] of them.
    /// One, unless it is a group: each alternative of an `any` has its own reason. Empty where they hold.
    ///
    /// `root` is the pointer to the list itself, such as `/if`.
    pub fn unmet(&self, subject: &Subject<'_>, root: &str) -> Vec<Unmet> {
        self.explained(subject, root, &Steps::unbounded()).unwrap_or_default()
    }

    /// [`Self::unmet`] within a bound of steps; `None` where they hold. Steps of the explanation count, too.
    pub fn unmet_within(
        &self,
        subject: &Subject<'_>,
        root: &str,
        steps: &Steps,
    ) -> Result<Option<Vec<Unmet>>, TooDear> {
        steps.judge(self.explained(subject, root, steps))
    }

    fn explained(&self, subject: &Subject<'_>, root: &str, steps: &Steps) -> Option<Vec<Unmet>> {
        let at = self.terms().iter().position(|term| !term.holds(subject, steps))?;
        let mut reasons = Vec::new();
        self.terms()[at].explain(subject, (false, steps), format!("{root}/{at}"), &mut reasons);
        Some(reasons)
    }
}

/// Criteria made ready to be evaluated of many subjects: long lists of values are in order, so that few of them are looked at.
#[derive(Debug)]
pub struct ReadyCriteria<'c>(Vec<ReadyTerm<'c>>);

#[derive(Debug)]
enum ReadyTerm<'c> {
    Predicate(&'c Predicate),
    /// An `in`, or a `nin`, of many values.
    Listed {
        predicate: &'c Predicate,
        /// The values as they were given, in [their order](order::compare).
        values: Vec<&'c Json<'static>>,
        /// Whether the wall clock is one of them too.
        has_now: bool,
    },
    /// The same of many names.
    Names {
        /// Whether the key is to be one of them.
        listed: bool,
        /// In order.
        names: Vec<&'c [u8]>,
    },
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
}

/// In lists of up to so many values each is looked at.
const SHORT_LIST: usize = 4;

impl Criteria {
    /// Makes them ready, which takes as long as to read them once.
    pub fn ready(&self) -> ReadyCriteria<'_> {
        ReadyCriteria(self.terms().iter().map(ReadyTerm::of).collect())
    }
}

impl ReadyCriteria<'_> {
    /// Whether all terms hold: exactly where [`Criteria::hold`] says so.
    pub fn hold(&self, subject: &Subject<'_>) -> bool {
        let steps = Steps::unbounded();
        self.0.iter().all(|term| term.holds(subject, &steps))
    }

    /// The same, within a bound of steps.
    pub fn hold_within(&self, subject: &Subject<'_>, steps: &Steps) -> Result<bool, TooDear> {
        steps.judge(self.0.iter().all(|term| term.holds(subject, steps)))
    }
}

impl<'c> ReadyTerm<'c> {
    fn of(term: &'c Term) -> Self {
        let all = |terms: &'c [Term]| terms.iter().map(Self::of).collect();
        match term {
            Term::Predicate(predicate) => Self::of_predicate(predicate),
            Term::Any(terms) => Self::Any(all(terms)),
            Term::All(terms) => Self::All(all(terms)),
            Term::Not(term) => Self::Not(Box::new(Self::of(term))),
        }
    }

    fn of_predicate(predicate: &'c Predicate) -> Self {
        let given = predicate.operand.values();
        if !matches!(predicate.operator, Operator::In | Operator::Nin) || given.len() <= SHORT_LIST {
            return Self::Predicate(predicate);
        }
        if predicate.field == Field::Meta(MetaField::Key) {
            let mut names: Vec<_> = given.iter().filter_map(Value::name).collect();
            names.sort_unstable();
            return Self::Names { listed: predicate.operator == Operator::In, names };
        }
        let json = |value: &'c Value| match value {
            Value::Json(json) => Some(json),
            Value::Now | Value::Name(_) => None,
        };
        let mut values: Vec<_> = given.iter().filter_map(json).collect();
        // A search would look at each element of an array or an object again and again.
        if values.iter().any(|value| matches!(value, Json::Array(_) | Json::Object(_))) {
            return Self::Predicate(predicate);
        }
        values.sort_by(|a, b| order::compare(a, b));
        Self::Listed { predicate, has_now: given.contains(&Value::Now), values }
    }

    fn holds(&self, subject: &Subject<'_>, steps: &Steps) -> bool {
        match self {
            Self::Predicate(predicate) => predicate.holds_within(subject, steps),
            Self::Listed { predicate, values, has_now } => {
                let found = subject.find(&predicate.field, steps);
                let look = Look { wall: subject.wall, steps };
                let is_listed = found.as_ref().and_then(Found::json).is_some_and(|found| {
                    values.binary_search_by(|value| order_of(value, found, steps)).is_ok()
                        || (*has_now && equals(found, &Value::Now, look))
                });
                is_listed == (predicate.operator == Operator::In)
            }
            Self::Names { listed, names } => names.binary_search(&subject.key.as_bytes()).is_ok() == *listed,
            Self::Any(terms) => terms.iter().any(|term| term.holds(subject, steps)),
            Self::All(terms) => terms.iter().all(|term| term.holds(subject, steps)),
            Self::Not(term) => !term.holds(subject, steps),
        }
    }
}

/// The order of a scalar of a list and a field.
fn order_of(value: &Json<'_>, found: &Json<'_>, steps: &Steps) -> Ordering {
    let is_allowed = steps.take(1) && steps.take_scalar(value) && steps.take_scalar(found);
    if is_allowed { order::compare(value, found) } else { Ordering::Equal }
}

impl Term {
    fn holds(&self, subject: &Subject<'_>, steps: &Steps) -> bool {
        match self {
            Self::Predicate(predicate) => predicate.holds_within(subject, steps),
            Self::Any(terms) => terms.iter().any(|term| term.holds(subject, steps)),
            Self::All(terms) => terms.iter().all(|term| term.holds(subject, steps)),
            Self::Not(term) => !term.holds(subject, steps),
        }
    }

    /// Adds the predicates that made this term come out as `outcome`: those that hold in one that holds, those that do not in one that does
    /// not.
    fn explain(
        &self,
        subject: &Subject<'_>,
        (outcome, steps): (bool, &Steps),
        pointer: String,
        reasons: &mut Vec<Unmet>,
    ) {
        let (terms, group) = match self {
            Self::Predicate(predicate) => {
                if reasons.len() < limits::UNMET_MAX {
                    reasons.push(Unmet { pointer, actual: predicate.actual(subject, steps) });
                }
                return;
            }
            Self::Not(term) => return term.explain(subject, (!outcome, steps), format!("{pointer}/not"), reasons),
            Self::Any(terms) => (terms, "any"),
            Self::All(terms) => (terms, "all"),
        };
        let alike = terms.iter().enumerate().filter(|(_, term)| term.holds(subject, steps) == outcome);
        // One term decides that an `any` holds or an `all` does not; it takes them all to decide the other way.
        let is_decided_by_one = outcome == matches!(self, Self::Any(_));
        let count = if is_decided_by_one { 1 } else { terms.len() };
        for (at, term) in alike.take(count) {
            term.explain(subject, (outcome, steps), format!("{pointer}/{group}/{at}"), reasons);
        }
    }
}

impl Predicate {
    /// Whether it holds.
    ///
    /// | operator | holds of a field that |
    /// |---|---|
    /// | `exists` | is there, `null` included |
    /// | `eq` | is [the same](order::same): numbers by value, objects in any order |
    /// | `lt lte gt gte` | is a number beside a number or a string beside a string, and comes before or behind it |
    /// | `between` | is not before the first nor behind the second, by the same rule |
    /// | `in` | `eq` one of them |
    /// | `contains` | is a string and has this string in it, or is an array and has an element that is the same |
    /// | `starts ends like` | is a string and does |
    /// | `neq nin ncontains nexists` | exactly where `eq`, `in`, `contains`, `exists` does not |
    ///
    /// So of a missing field, or one of another type, hold `neq`, `nin` and `ncontains` and no other; `nexists` holds
    /// of the missing one only. The fields of a value that is not JSON are missing, and so is all metadata of an entry
    /// that does not exist, but for `$key`, `$exists` and `$locked`.
    ///
    /// A key is its bytes: beside `$key` a string means the bytes of its UTF-8, and all but `like` compare bytes.
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        self.holds_within(subject, &Steps::unbounded())
    }

    /// The same, within a bound of steps; beyond it the result means nothing.
    fn holds_within(&self, subject: &Subject<'_>, steps: &Steps) -> bool {
        if !steps.take(1) {
            return false;
        }
        let found = subject.find(&self.field, steps);
        let found = match &found {
            Some(Found::Name(name)) => return self.holds_of_name(name, steps),
            found => found.as_ref().and_then(Found::json),
        };
        let look = Look { wall: subject.wall, steps };
        let positive = |holds: fn(&Json<'_>, &Operand, Look<'_>) -> bool| {
            found.is_some_and(|found| holds(found, &self.operand, look))
        };
        match self.operator {
            Operator::Exists => found.is_some(),
            Operator::Nexists => found.is_none(),
            Operator::Eq | Operator::In => positive(is_one_of),
            Operator::Neq | Operator::Nin => !positive(is_one_of),
            Operator::Contains => positive(contains),
            Operator::Ncontains => !positive(contains),
            Operator::Lt => positive(|found, operand, look| orders(found, operand, look, &[Ordering::is_lt])),
            Operator::Lte => positive(|found, operand, look| orders(found, operand, look, &[Ordering::is_le])),
            Operator::Gt => positive(|found, operand, look| orders(found, operand, look, &[Ordering::is_gt])),
            Operator::Gte => positive(|found, operand, look| orders(found, operand, look, &[Ordering::is_ge])),
            Operator::Between => {
                positive(|found, operand, look| orders(found, operand, look, &[Ordering::is_ge, Ordering::is_le]))
            }
            Operator::Starts => {
                positive(|found, operand, _| texts(found, operand, |text, start| text.starts_with(start)))
            }
            Operator::Ends => positive(|found, operand, _| texts(found, operand, |text, end| text.ends_with(end))),
            Operator::Like => positive(|found, operand, look| {
                texts(found, operand, |text, pattern| {
                    look.steps.take_match(text.as_bytes(), pattern) && like::matches(pattern, text)
                })
            }),
        }
    }

    fn holds_of_name(&self, found: &[u8], steps: &Steps) -> bool {
        if !steps.take(self.operand.values().len()) {
            return false;
        }
        let is_one_of = || self.operand.values().iter().any(|value| value.name() == Some(found));
        let given = |holds: &dyn Fn(&[u8]) -> bool| match &self.operand {
            Operand::One(value) => value.name().is_some_and(holds),
            Operand::None | Operand::List(_) => false,
        };
        match self.operator {
            Operator::Exists => true,
            Operator::Nexists => false,
            Operator::Eq | Operator::In => is_one_of(),
            Operator::Neq | Operator::Nin => !is_one_of(),
            Operator::Contains => given(&|part| name::find(found, part).is_some()),
            Operator::Ncontains => !given(&|part| name::find(found, part).is_some()),
            Operator::Lt => given(&|name| found < name),
            Operator::Lte => given(&|name| found <= name),
            Operator::Gt => given(&|name| found > name),
            Operator::Gte => given(&|name| found >= name),
            Operator::Between => match self.operand.values() {
                [low, high] => {
                    low.name().is_some_and(|low| found >= low) && high.name().is_some_and(|high| found <= high)
                }
                _ => false,
            },
            Operator::Starts => given(&|start| found.starts_with(start)),
            Operator::Ends => given(&|end| found.ends_with(end)),
            Operator::Like => match &self.operand {
                Operand::One(Value::Json(Json::String(pattern))) => {
                    steps.take_match(found, pattern) && like::matches_name(pattern, found)
                }
                _ => false,
            },
        }
    }

    fn actual(&self, subject: &Subject<'_>, steps: &Steps) -> Option<Excerpt> {
        subject.find(&self.field, steps).map(|found| found.excerpt())
    }
}

/// What a field is.
pub(super) enum Found<'a> {
    /// A value.
    Json(Cow<'a, Json<'a>>),
    /// The key: bytes, which need not be a text.
    Name(&'a [u8]),
}

impl Found<'_> {
    fn json(&self) -> Option<&Json<'_>> {
        match self {
            Self::Json(json) => Some(json),
            Self::Name(_) => None,
        }
    }

    /// As [`Json::excerpt`]; of a name that is no text, the form in which criteria take one.
    fn excerpt(&self) -> Excerpt {
        match self {
            Self::Json(json) => json.excerpt(),
            Self::Name(name) => match std::str::from_utf8(name) {
                Ok(text) => Json::String(Cow::Borrowed(text)).excerpt(),
                Err(_) => {
                    let bytes = Json::String(Cow::Owned(STANDARD.encode(name)));
                    Json::Object(Object { members: vec![(Cow::Borrowed("base64"), bytes)] }).excerpt()
                }
            },
        }
    }
}

impl<'a> Subject<'a> {
    /// The value of a field; `None` where it is missing, and where the search for it takes too many steps.
    pub(super) fn find(&self, field: &Field, steps: &Steps) -> Option<Found<'a>> {
        let number = |of: fn(&EntryMeta) -> u64| self.meta.map(|meta| Json::Number(Number::from(of(meta))));
        let value = match field {
            Field::Document(path) => {
                return path.find_within(self.document?, steps).map(Cow::Borrowed).map(Found::Json);
            }
            Field::Meta(MetaField::Key) => return Some(Found::Name(self.key.as_bytes())),
            Field::Meta(MetaField::Exists) => Some(Json::Bool(self.meta.is_some())),
            Field::Meta(MetaField::Locked) => Some(Json::Bool(self.is_locked)),
            Field::Meta(MetaField::Cas) if self.is_locked => self.meta.map(|_| Json::Null),
            Field::Meta(MetaField::Cas) => self.meta.map(|meta| Json::String(Cow::Owned(meta.cas.to_string()))),
            Field::Meta(MetaField::Version) => number(|meta| meta.version),
            Field::Meta(MetaField::CreateRevision) => number(|meta| meta.create_revision),
            Field::Meta(MetaField::ModRevision) => number(|meta| meta.mod_revision),
            Field::Meta(MetaField::ExpiresAt) => self
                .meta
                .and_then(|meta| meta.expires_at)
                .map(|moment| Json::String(Cow::Owned(time::format(time::wall_at(moment, self.clock, self.wall))))),
        };
        value.map(Cow::Owned).map(Found::Json)
    }
}

fn is_one_of(found: &Json<'_>, operand: &Operand, look: Look<'_>) -> bool {
    let values = operand.values();
    look.steps.take(values.len()) && values.iter().any(|value| equals(found, value, look))
}

fn equals(found: &Json<'_>, value: &Value, look: Look<'_>) -> bool {
    match value {
        Value::Json(value) => order::same_within(found, value, look.steps),
        Value::Now => compare(found, value, look) == Some(Ordering::Equal),
        Value::Name(_) => false,
    }
}

fn contains(found: &Json<'_>, operand: &Operand, look: Look<'_>) -> bool {
    match (found, operand) {
        (Json::Array(items), Operand::One(value)) => look.steps.take_elements(items.len()) && has(items, value, look),
        _ => texts(found, operand, |text, part| look.steps.take_search(text, part) && text.contains(part)),
    }
}

/// Whether an element is the same.
fn has(items: &[Json<'_>], value: &Value, look: Look<'_>) -> bool {
    let Value::Json(Json::Number(sought)) = value else { return items.iter().any(|item| equals(item, value, look)) };
    if !look.steps.take_number(sought) {
        return false;
    }
    // Read once, and not for each element.
    let worth = sought.value();
    let is_sought = |number: &Number<'_>| look.steps.take_number(number) && number.value().compare(worth).is_eq();
    items.iter().any(|item| matches!(item, Json::Number(number) if number == sought || is_sought(number)))
}

/// Whether the order of the field and each value is as expected.
fn orders(found: &Json<'_>, operand: &Operand, look: Look<'_>, expected: &[fn(Ordering) -> bool]) -> bool {
    let values = operand.values();
    let is_as_expected =
        |(value, is_expected): (&Value, &fn(Ordering) -> bool)| compare(found, value, look).is_some_and(is_expected);
    values.len() == expected.len() && values.iter().zip(expected).all(is_as_expected)
}

/// Numbers with numbers and strings with strings; `None` also where that takes too many steps.
fn compare(found: &Json<'_>, value: &Value, Look { wall, steps }: Look<'_>) -> Option<Ordering> {
    if !steps.take_scalar(found) {
        return None;
    }
    match (found, value) {
        (Json::Number(_), Value::Json(value @ Json::Number(_)))
        | (Json::String(_), Value::Json(value @ Json::String(_))) => {
            steps.take_scalar(value).then(|| order::compare(found, value))
        }
        (Json::Number(number), Value::Now) => Some(number.value().compare(Numeric::Integer(i128::from(wall)))),
        (Json::String(text), Value::Now) => {
            let nanos = if steps.take_time(text) { time::parse(text) } else { None };
            nanos.map(|nanos| nanos.cmp(&(i128::from(wall) * 1_000_000)))
        }
        _ => None,
    }
}

fn texts(found: &Json<'_>, operand: &Operand, holds: impl Fn(&str, &str) -> bool) -> bool {
    match (found, operand) {
        (Json::String(text), Operand::One(Value::Json(Json::String(given)))) => holds(text, given),
        _ => false,
    }
}
