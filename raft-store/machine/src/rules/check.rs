//! Whether rules make sense together.
//!
//! Owns every check between the parts of rules, and the faults they make. How rules are written is in [`super::read`].

use bincode::{Decode, Encode};

use super::Rules;
use super::convert::convert;
use super::field::{FieldKind, FieldRule};
use super::index::IndexRule;
use super::write::field_text;
use crate::document::path::{Path, array_index, escape};
use crate::document::{Fault, Faults, Json};
use crate::limits::{INDEXES_MAX, JSON_DEPTH_MAX, RULE_FIELDS_MAX, RULES_BYTES_MAX, TTL_MS_MAX, VALUE_BYTES_MAX};

/// Rules before they are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RulesParts {
    /// Rules of fields.
    pub fields: Vec<(Path, FieldRule)>,
    /// Fields that every document has, and not as null.
    pub required: Vec<Path>,
    /// Indexes.
    pub indexes: Vec<IndexRule>,
    /// TTL of what is written without one.
    pub ttl_ms: Option<u64>,
    /// Whether a write has to say which entry it expects.
    pub precondition_required: bool,
}

/// Rules with the JSON pointer to each part, as it was written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) root: String,
    pub(super) fields: Vec<(String, Path, FieldRule)>,
    pub(super) required: Vec<(String, Path)>,
    /// The pointer is that of the list of fields.
    pub(super) indexes: Vec<(String, IndexRule)>,
    pub(super) ttl_ms: Option<u64>,
    pub(super) precondition_required: bool,
}

impl Rules {
    /// Takes parts that fit each other; else all faults, as pointers into the written form.
    pub fn new(parts: RulesParts) -> Result<Self, Vec<Fault>> {
        let fields = parts.fields.into_iter();
        let fields = fields.map(|(path, rule)| (format!("/fields/{}", escape(&field_text(&path))), path, rule));
        let required = parts.required.into_iter().enumerate().map(|(at, path)| (format!("/required/{at}"), path));
        let indexes = parts.indexes.into_iter().enumerate().map(|(at, index)| {
            let list = if index.is_unique() { "/fields" } else { "" };
            (format!("/indexes/{at}{list}"), index)
        });
        let draft = Draft {
            root: String::new(),
            fields: fields.collect(),
            required: required.collect(),
            indexes: indexes.collect(),
            ttl_ms: parts.ttl_ms,
            precondition_required: parts.precondition_required,
        };
        let mut faults = Faults::default();
        let rules = draft.check(&mut faults);
        faults.finish(rules)
    }
}

impl Draft {
    /// Rules, and what is wrong with them. `None` where they are too many to look at.
    pub(super) fn check(mut self, faults: &mut Faults) -> Option<Rules> {
        if !self.has_bounded_counts(faults) {
            return None;
        }
        for (pointer, path, rule) in &mut self.fields {
            check_field(pointer, path, rule, faults);
        }
        self.fields.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
        self.check_twice(faults);
        self.check_nesting(faults);
        if self.ttl_ms.is_some_and(|ttl_ms| !(1..=TTL_MS_MAX).contains(&ttl_ms)) {
            faults.add(format!("{}/ttl_ms", self.root), format!("1 to {TTL_MS_MAX}"));
        }
        let rules = Rules {
            fields: self.fields.into_iter().map(|(_, path, rule)| (path, rule)).collect(),
            required: self.required.into_iter().map(|(_, path)| path).collect(),
            indexes: self.indexes.into_iter().map(|(_, index)| index).collect(),
            ttl_ms: self.ttl_ms,
            precondition_required: self.precondition_required,
        };
        let bytes = rules.to_json().text_bytes();
        if bytes > RULES_BYTES_MAX {
            faults.add(self.root, format!("rules have at most {RULES_BYTES_MAX} bytes as JSON, these have {bytes}"));
        }
        Some(rules)
    }

    fn has_bounded_counts(&self, faults: &mut Faults) -> bool {
        let counts = [
            ("fields", self.fields.len(), RULE_FIELDS_MAX),
            ("required", self.required.len(), RULE_FIELDS_MAX),
            ("indexes", self.indexes.len(), INDEXES_MAX),
        ];
        for (name, count, max) in counts.iter().filter(|(_, count, max)| count > max) {
            faults.add(format!("{}/{name}", self.root), format!("at most {max}, here are {count}"));
        }
        counts.iter().all(|(_, count, max)| count <= max)
    }

    fn check_twice(&self, faults: &mut Faults) {
        for pair in self.fields.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
            faults.add(&pair[1].0, "another member names the same field");
        }
        for (at, (pointer, path)) in self.required.iter().enumerate() {
            if self.required[..at].iter().any(|(_, before)| before == path) {
                faults.add(pointer, "stands in the list already");
            }
        }
        for (at, (pointer, index)) in self.indexes.iter().enumerate() {
            if self.indexes[..at].iter().any(|(_, before)| before.fields() == index.fields()) {
                faults.add(pointer, "there is an index of these fields already");
            }
        }
    }

    /// Refuses paths that can lead nowhere, given the types of what is above.
    fn check_nesting(&self, faults: &mut Faults) {
        let fields = self.fields.iter().map(|(pointer, path, _)| (pointer.clone(), path));
        let required = self.required.iter().map(|(pointer, path)| (pointer.clone(), path));
        let indexed = self.indexes.iter().flat_map(|(pointer, index)| {
            index.fields().iter().enumerate().map(move |(at, path)| (format!("{pointer}/{at}"), path))
        });
        for (pointer, path) in fields.chain(required) {
            self.check_place(pointer, path, faults);
        }
        for (pointer, path) in indexed {
            let kind = self.fields.iter().find(|(_, found, _)| found == path).map(|(_, _, rule)| rule.kind);
            match kind {
                Some(kind @ (FieldKind::Object | FieldKind::Array)) => {
                    faults.add(pointer, format!("the field is of type {}, which has no order", kind.name()));
                }
                _ => self.check_place(pointer, path, faults),
            }
        }
    }

    fn check_place(&self, pointer: String, path: &Path, faults: &mut Faults) {
        if path.names().is_empty() {
            return faults.add(pointer, "the whole document is not a field");
        }
        let leads_nowhere = |above: &Path, kind: FieldKind| {
            let is_index = || array_index(&path.names()[above.names().len()]).is_some();
            above.is_above(path) && (kind.is_scalar() || (kind == FieldKind::Array && !is_index()))
        };
        let above = self.fields.iter().find(|(_, above, rule)| leads_nowhere(above, rule.kind));
        if let Some((_, above, rule)) = above {
            let (above, kind) = (field_text(above), rule.kind.name());
            faults.add(pointer, format!("lies inside of {above}, which is of type {kind}"));
        }
    }
}

/// Checks that the parts of a rule fit each other, and converts its default to its type.
fn check_field(pointer: &str, path: &Path, rule: &mut FieldRule, faults: &mut Faults) {
    let kind = rule.kind;
    match rule.max {
        Some(_) if kind != FieldKind::Varchar => faults.add(format!("{pointer}/max"), "only varchar has a length"),
        Some(max) if !(1..=VALUE_BYTES_MAX as u64).contains(&max) => {
            faults.add(format!("{pointer}/max"), format!("1 to {VALUE_BYTES_MAX}"));
        }
        _ => {}
    }
    if rule.sequence.is_some() && !matches!(kind, FieldKind::Long | FieldKind::Any) {
        faults.add(format!("{pointer}/sequence"), "numbers stand in fields of type long or any");
    }
    if rule.auto_update && !matches!(kind, FieldKind::Long | FieldKind::Datetime) {
        faults.add(format!("{pointer}/auto_update"), "times stand in fields of type datetime or long");
    }
    if rule.auto_update && rule.sequence.is_some() {
        faults.add(format!("{pointer}/auto_update"), "the field has a sequence");
    }
    if let Some(default) = rule.default.take() {
        let (at, is_automatic) = (format!("{pointer}/default"), rule.is_automatic());
        rule.default = if is_automatic { Err(AUTOMATIC.to_owned()) } else { check_default(path, rule, default) }
            .map_err(|detail| faults.add(at, detail))
            .ok();
    }
}

const AUTOMATIC: &str = "the field always has a value of its own: a number of the sequence or a time";

fn check_default(path: &Path, rule: &FieldRule, given: Json<'static>) -> Result<Json<'static>, String> {
    let kind = rule.kind;
    let converted = convert(kind, &given).map_err(|_| format!("not of type {}", kind.name()))?;
    let default = converted.unwrap_or(given);
    if default == Json::Null {
        return Err("a default is a value other than null".to_owned());
    }
    if path.names().len() + default.depth() > JSON_DEPTH_MAX {
        return Err(format!("a document has at most {JSON_DEPTH_MAX} levels"));
    }
    match (&default, rule.max) {
        (Json::String(text), Some(max)) if text.len() as u64 > max => {
            Err(format!("has {} bytes, of at most {max}", text.len()))
        }
        _ => Ok(default),
    }
}

impl Encode for Rules {
    fn encode<E: bincode::enc::Encoder>(&self, encoder: &mut E) -> Result<(), bincode::error::EncodeError> {
        self.fields.encode(encoder)?;
        self.required.encode(encoder)?;
        self.indexes.encode(encoder)?;
        self.ttl_ms.encode(encoder)?;
        self.precondition_required.encode(encoder)
    }
}

impl<Context> Decode<Context> for Rules {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let checked = Self::new(RulesParts::decode(decoder)?);
        checked.map_err(|faults| bincode::error::DecodeError::OtherString(format!("rules with faults: {faults:?}")))
    }
}

bincode::impl_borrow_decode!(Rules);
