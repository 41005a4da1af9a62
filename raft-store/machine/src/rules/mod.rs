//! Collection rules: what documents below a prefix are like, and how they are found.
//!
//! Owns the rules themselves with their checks and written form, what they make of a document that is written, the
//! index entries of a document, and which index answers a search. Functions of their arguments alone, as
//! [`document`](crate::document) is: clock and sequence numbers are given, and no rows are known. The machine reads and
//! writes those.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

// What rules are.
mod check;
mod field;
mod index;
mod name;

// As they stand in requests and answers.
mod read;
mod write;

// What they do to what is given: a value, criteria, a document.
mod conform;
mod convert;
mod criteria;

// Which index to use.
mod narrow;
mod select;

pub use check::RulesParts;
pub use conform::{Conformed, RuleFault, RuleFaultKind};
pub use field::{FieldKind, FieldRule};
pub use index::{IndexRule, IndexRuleError};
pub use name::{CollectionName, NameError, SequenceName, candidates};
pub(crate) use name::{checked_name, name_traits};
pub use select::{Selection, select, selections};
pub use write::field_text;

use crate::document::path::Path;

/// The rules of one collection.
///
/// Invariant: within the bounds of [`crate::limits`], and no rule contradicts another, because every constructor checks:
/// no path twice, none inside of another's scalar, each member of a [`FieldRule`] beside a type that it means something
/// for, and a default that has the type already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Sorted, so that what is above stands before what is inside of it.
    fields: Vec<(Path, FieldRule)>,
    required: Vec<Path>,
    indexes: Vec<IndexRule>,
    ttl_ms: Option<u64>,
    precondition_required: bool,
}

impl Rules {
    /// Rules of fields, by path.
    pub fn fields(&self) -> &[(Path, FieldRule)] {
        &self.fields
    }

    /// The rule of one field.
    pub fn field(&self, path: &Path) -> Option<&FieldRule> {
        let at = self.fields.binary_search_by(|(found, _)| found.cmp(path)).ok()?;
        Some(&self.fields[at].1)
    }

    /// Fields that every document has, and not as null.
    pub fn required(&self) -> &[Path] {
        &self.required
    }

    /// Indexes, in the order given.
    pub fn indexes(&self) -> &[IndexRule] {
        &self.indexes
    }

    /// TTL of what is written without one.
    pub fn ttl_ms(&self) -> Option<u64> {
        self.ttl_ms
    }

    /// Whether a write has to say which entry it expects.
    pub fn precondition_required(&self) -> bool {
        self.precondition_required
    }

    /// Whether values have to be documents, since fields are named that every one of them has or may have.
    pub fn needs_documents(&self) -> bool {
        !self.fields.is_empty() || !self.required.is_empty()
    }
}
