//! Indexes: the entries that a document has in them.
//!
//! Owns their form: the fields one after the other by [`order::encode_sort`], so that entries stand in an index as a
//! search orders them. Behind that stands the key of the entry, and before it what tells indexes apart; those are the
//! caller's.

use bincode::{Decode, Encode};

use super::Rules;
use super::conform::{RuleFault, RuleFaultKind};
use crate::document::path::{Path, find_each};
use crate::document::{Json, Steps, order};
use crate::limits::{INDEX_FIELDS_MAX, INDEX_TEXT_BYTES_MAX};

/// An index over fields.
///
/// Invariant: 1 to [`INDEX_FIELDS_MAX`] fields, none twice, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct IndexRule {
    fields: Vec<Path>,
    unique: bool,
}

/// Why fields make no index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexRuleError {
    /// None, or too many; holds how many.
    #[error("an index has 1 to {INDEX_FIELDS_MAX} fields, this one has {0}")]
    Count(usize),
    /// The field at this place stands before too.
    #[error("the field at place {0} stands in the index already")]
    Twice(usize),
    /// The field at this place is the whole document.
    #[error("the whole document, at place {0}, is not a field")]
    Root(usize),
}

impl IndexRule {
    /// Over these fields, the first one first.
    pub fn new(fields: Vec<Path>, unique: bool) -> Result<Self, IndexRuleError> {
        if !(1..=INDEX_FIELDS_MAX).contains(&fields.len()) {
            return Err(IndexRuleError::Count(fields.len()));
        }
        for (at, field) in fields.iter().enumerate() {
            if field.names().is_empty() {
                return Err(IndexRuleError::Root(at));
            }
            if fields[..at].contains(field) {
                return Err(IndexRuleError::Twice(at));
            }
        }
        Ok(Self { fields, unique })
    }

    /// The fields.
    pub fn fields(&self) -> &[Path] {
        &self.fields
    }

    /// Whether no two documents may have the same values in them.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// The bytes that a document stands under. `None`, for a value that is not JSON, has no fields; it stands in the index
    /// all the same, since a search in its order finds it too.
    pub fn key_of(&self, document: Option<&Json<'_>>) -> Result<Vec<u8>, RuleFault> {
        self.key_from(&self.values(document, &Steps::unbounded()))
    }

    /// Finds what its fields hold in a document. Counts the steps that it takes to find them and to have them sorted; beyond the bound there is
    /// nothing in some of them.
    pub(crate) fn values<'j, 'a>(&self, document: Option<&'j Json<'a>>, steps: &Steps) -> Vec<Option<&'j Json<'a>>> {
        values_of(&self.fields.iter().collect::<Vec<_>>(), document, steps)
    }

    /// [`Self::key_of`], of what its fields hold.
    pub(crate) fn key_from(&self, values: &[Option<&Json<'_>>]) -> Result<Vec<u8>, RuleFault> {
        let mut key = Vec::new();
        for (path, value) in self.fields.iter().zip(values.iter().copied()) {
            if let Some(Json::String(text)) = value
                && text.len() > INDEX_TEXT_BYTES_MAX
            {
                return Err(RuleFault::at(path, RuleFaultKind::IndexedTooLong { actual: text.len() as u64 }));
            }
            order::encode_sort(value, &mut key);
        }
        Ok(key)
    }

    /// Whether no other document may stand under the same bytes: the index is unique, and all fields are there, none of
    /// them null, an array or an object.
    pub fn is_bound(&self, document: Option<&Json<'_>>) -> bool {
        self.is_bound_by(&self.values(document, &Steps::unbounded()))
    }

    /// [`Self::is_bound`], by what its fields hold.
    pub(crate) fn is_bound_by(&self, values: &[Option<&Json<'_>>]) -> bool {
        self.unique
            && values.iter().all(|value| matches!(value, Some(Json::Bool(_) | Json::Number(_) | Json::String(_))))
    }
}

impl Rules {
    /// Finds what the fields of each index hold in a document, as [`IndexRule::values`]. Goes through the document once for all of them.
    pub(crate) fn indexed_values<'j, 'a>(
        &self,
        document: Option<&'j Json<'a>>,
        steps: &Steps,
    ) -> Vec<Vec<Option<&'j Json<'a>>>> {
        let paths: Vec<_> = self.indexes().iter().flat_map(IndexRule::fields).collect();
        let mut values = values_of(&paths, document, steps).into_iter();
        self.indexes().iter().map(|rule| values.by_ref().take(rule.fields().len()).collect()).collect()
    }
}

fn values_of<'j, 'a>(paths: &[&Path], document: Option<&'j Json<'a>>, steps: &Steps) -> Vec<Option<&'j Json<'a>>> {
    let Some(document) = document else { return vec![None; paths.len()] };
    let values = find_each(paths, document, steps);
    for value in values.iter().flatten() {
        steps.take_scalar(value);
    }
    values
}

impl<Context> Decode<Context> for IndexRule {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let (fields, unique) = (Vec::<Path>::decode(decoder)?, bool::decode(decoder)?);
        Self::new(fields, unique).map_err(|error| bincode::error::DecodeError::OtherString(error.to_string()))
    }
}

bincode::impl_borrow_decode!(IndexRule);
