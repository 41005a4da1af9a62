//! A document to what the rules of its collection ask for.
//!
//! Owns the order in which that happens and what is refused. Says whether it changed anything, so that what is as it
//! should be stays the bytes that were sent.

use std::fmt;

use bincode::{Decode, Encode};

use super::Rules;
use super::convert::{convert, wall_clock};
use super::field::{FieldKind, FieldRule};
use super::name::SequenceName;
use crate::document::path::{Path, array_index};
use crate::document::{Json, Number, Object, Steps, TooDear, order};
use crate::entry::WallMillis;
use crate::limits::{INDEX_TEXT_BYTES_MAX, RULE_FAULTS_MAX};

/// A document that the rules accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conformed<'a> {
    /// It.
    pub document: Json<'a>,
    /// Whether it is another one than was given.
    pub is_changed: bool,
}

/// Something about a document that rules do not accept.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RuleFault {
    /// JSON pointer to it, below `/value`.
    pub pointer: String,
    /// What is wrong.
    pub kind: RuleFaultKind,
}

/// What rules do not accept. Shows as the text that answers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum RuleFaultKind {
    /// The value is no object, so it has no fields.
    NotAnObject,
    /// A value that is not of the type and cannot become so.
    Type(FieldKind),
    /// A varchar of too many bytes.
    TooLong {
        /// Most.
        max: u64,
        /// Found.
        actual: u64,
    },
    /// A required field that is missing or null.
    Required,
    /// A field that is to be filled, below something that is neither an object nor an element of an array.
    NoPlace,
    /// A string in an indexed field, too long for that; holds its bytes.
    IndexedTooLong {
        /// Found.
        actual: u64,
    },
}

impl Rules {
    /// Makes a document as the rules want it, or says why it cannot be: at most [`RULE_FAULTS_MAX`] faults.
    ///
    /// 1. Values are converted to the type of their field, and checked.
    /// 2. A field that is missing gets its default; a null stays.
    /// 3. A field with a sequence or an automatic time gets a new one, unless the write leaves another value there than
    ///    `old` has, and not null.
    /// 4. Required fields are there and not null.
    ///
    /// What is above goes before what is inside of it; objects on the way to a field that is filled are made where they are
    /// missing. Numbers are drawn only once nothing is at fault, in the order of the paths.
    ///
    /// All that it takes counts in `steps`; beyond their bound there is no outcome.
    pub fn conform<'a>(
        &'a self,
        old: Option<&Json<'_>>,
        new: Json<'a>,
        wall: WallMillis,
        next: &mut dyn FnMut(&SequenceName) -> u64,
        steps: &Steps,
    ) -> Result<Result<Conformed<'a>, Vec<RuleFault>>, TooDear> {
        if !self.needs_documents() {
            return Ok(Ok(Conformed { document: new, is_changed: false }));
        }
        if !matches!(new, Json::Object(_)) {
            return Ok(Err(vec![RuleFault::not_an_object()]));
        }
        let mut work = Work { document: new, is_changed: false, drawn: Vec::new(), faults: Vec::new(), steps };
        for (path, rule) in &self.fields {
            work.visit(path, rule, old, wall);
            steps.judge(())?;
        }
        for path in &self.required {
            let found = path.find_within(&work.document, steps);
            let is_missing = matches!(found, None | Some(Json::Null));
            steps.judge(())?;
            if is_missing && !work.has_fault_at(path) {
                work.refuse(path, RuleFaultKind::Required);
            }
        }
        work.finish(next)
    }
}

/// A document on its way.
struct Work<'a, 's> {
    document: Json<'a>,
    is_changed: bool,
    /// Fields that get a number in the end; they have a zero so far.
    drawn: Vec<(&'a Path, &'a SequenceName)>,
    faults: Vec<RuleFault>,
    /// The steps that it takes, and their bound.
    steps: &'s Steps,
}

impl<'a> Work<'a, '_> {
    /// Looks at one field; `old` is the whole document before. Means nothing where that takes too many steps.
    fn visit(&mut self, path: &'a Path, rule: &'a FieldRule, old: Option<&Json<'_>>, wall: WallMillis) {
        let steps = self.steps;
        let found = path.find_within(&self.document, steps);
        if found.is_some_and(|found| rule.kind != FieldKind::Any && !steps.take_reading(found)) {
            return;
        }
        let Ok(converted) = found.map_or(Ok(None), |found| convert(rule.kind, found)) else {
            return self.refuse(path, RuleFaultKind::Type(rule.kind));
        };
        let value = converted.as_ref().or(found);
        let before = old.filter(|_| rule.is_automatic()).and_then(|old| path.find_within(old, steps));
        if rule.is_automatic() && is_left(found, value, before, steps) {
            return self.fill_automatically(path, rule, wall);
        }
        let actual = match (value, rule.max) {
            (Some(Json::String(text)), Some(max)) => {
                Some(text.len() as u64).filter(|actual| *actual > max).zip(Some(max))
            }
            _ => None,
        };
        if let Some((actual, max)) = actual {
            return self.refuse(path, RuleFaultKind::TooLong { max, actual });
        }
        match (found, converted, &rule.default) {
            (Some(_), Some(converted), _) => self.put(path, converted),
            (None, _, Some(default)) => self.put(path, default.borrowed()),
            _ => {}
        }
    }

    fn fill_automatically(&mut self, path: &'a Path, rule: &'a FieldRule, wall: WallMillis) {
        match &rule.sequence {
            Some(sequence) => {
                self.put(path, Json::Number(Number::from(0)));
                self.drawn.push((path, sequence));
            }
            None => {
                let now = wall_clock(rule.kind, wall);
                self.put(path, now.expect("automatic times stand beside types that have them"));
            }
        }
    }

    fn put(&mut self, path: &'a Path, value: Json<'a>) {
        match place(&mut self.document, path, self.steps) {
            Some(place) => {
                *place = value;
                self.is_changed = true;
            }
            None => self.refuse(path, RuleFaultKind::NoPlace),
        }
    }

    fn refuse(&mut self, path: &Path, kind: RuleFaultKind) {
        if self.faults.len() < RULE_FAULTS_MAX {
            self.faults.push(RuleFault::at(path, kind));
        }
    }

    fn has_fault_at(&self, path: &Path) -> bool {
        let fault = RuleFault::at(path, RuleFaultKind::Required);
        self.faults.iter().any(|found| found.pointer == fault.pointer)
    }

    fn finish(
        mut self,
        next: &mut dyn FnMut(&SequenceName) -> u64,
    ) -> Result<Result<Conformed<'a>, Vec<RuleFault>>, TooDear> {
        if !self.faults.is_empty() {
            return Ok(Err(self.faults));
        }
        for (path, sequence) in self.drawn {
            let place = self.steps.judge(place(&mut self.document, path, self.steps))?;
            *place.expect("it holds a zero already") = Json::Number(Number::from(next(sequence)));
        }
        Ok(Ok(Conformed { document: self.document, is_changed: self.is_changed }))
    }
}

/// Whether a write leaves it to the rules what stands in a field: it has nothing there, or what was there before.
fn is_left(found: Option<&Json<'_>>, converted: Option<&Json<'_>>, old: Option<&Json<'_>>, steps: &Steps) -> bool {
    let is_old = |value: &Json<'_>| old.is_some_and(|old| order::same_within(old, value, steps));
    found.is_none_or(|found| *found == Json::Null || is_old(found)) || converted.is_some_and(is_old)
}

/// The place of a field, made with the objects on the way where it is missing; `None` where there cannot be one, and beyond the bound.
fn place<'j, 'a>(document: &'j mut Json<'a>, path: &'a Path, steps: &Steps) -> Option<&'j mut Json<'a>> {
    path.names().iter().try_fold(document, |value, name| match value {
        Json::Object(object) => {
            // It is looked for to see whether it is there, and then to be given.
            if !steps.take(2 * object.len()) {
                return None;
            }
            if object.get(name).is_none() {
                object.set(name, Json::Object(Object::default()));
            }
            object.get_mut(name)
        }
        Json::Array(items) => items.get_mut(array_index(name)?),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    })
}

impl RuleFault {
    /// A fault of the field at a path.
    pub fn at(path: &Path, kind: RuleFaultKind) -> Self {
        Self { pointer: format!("/value{path}"), kind }
    }

    /// The fault of a value that is no document, also of one that is not JSON.
    pub fn not_an_object() -> Self {
        Self { pointer: "/value".to_owned(), kind: RuleFaultKind::NotAnObject }
    }
}

impl fmt::Display for RuleFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("the collection has rules for fields, so a value must be an object"),
            Self::Type(kind) => write!(f, "the collection wants {} here", kind.wanted()),
            Self::TooLong { max, actual } => write!(f, "at most {max} bytes, this has {actual}"),
            Self::Required => f.write_str("required, and not null"),
            Self::NoPlace => f.write_str(
                "the collection fills this field, but what is above it is no object and has no such element",
            ),
            Self::IndexedTooLong { actual } => {
                write!(f, "an indexed string has at most {INDEX_TEXT_BYTES_MAX} bytes, this one has {actual}")
            }
        }
    }
}

impl FieldKind {
    /// What is taken for it, as messages say it.
    fn wanted(self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::Boolean => "true or false",
            Self::Long => "a whole number of 64 bits",
            Self::Double => "a number",
            Self::Varchar => "a string",
            Self::Datetime => {
                "a time in RFC 3339, in Unix milliseconds, or like `20260418153012`, of the years 0 to 9999"
            }
            Self::Object => "an object",
            Self::Array => "an array",
        }
    }
}
