//! The order of entries in an answer: by fields, then by key.
//!
//! Owns the order and the bytes that sort that way, which are those of an index. What a value is worth is
//! [`super::order`]'s.

use bincode::{Decode, Encode};

use super::evaluate::{Found, Subject};
use super::order;
use super::path::{Field, MetaField};
use super::steps::Steps;

/// An order of entries: by fields, then by key.
///
/// Invariant: the last field is `$key`, and it is the only one of that kind; so no two entries are equal.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct Order {
    fields: Vec<OrderField>,
}

/// A field that entries are ordered by.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct OrderField {
    /// The field.
    pub field: Field,
    /// Whether the greatest come first.
    pub descending: bool,
}

impl Order {
    /// By these fields, the first one first. Entries that are equal in all of them stand by key, in the direction of the
    /// last field. A missing field is less than any value; arrays and objects are greater than other values, and equal to
    /// each other.
    pub fn new(mut fields: Vec<OrderField>) -> Self {
        let is_key = |field: &OrderField| field.field == Field::Meta(MetaField::Key);
        match fields.iter().position(is_key) {
            // A key stands for one entry: what comes behind it decides nothing.
            Some(at) => fields.truncate(at + 1),
            None => {
                let descending = fields.last().is_some_and(|last| last.descending);
                fields.push(OrderField { field: Field::Meta(MetaField::Key), descending });
            }
        }
        Self { fields }
    }

    /// Where it is the order of keys: whether that backwards.
    pub fn by_key(&self) -> Option<bool> {
        match self.fields.as_slice() {
            [key] => Some(key.descending),
            _ => None,
        }
    }

    /// The fields with whether they are descending; the last one is the key.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, bool)> {
        self.fields.iter().map(|field| (&field.field, field.descending))
    }

    /// Whether it looks into values.
    pub fn needs_document(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.field, Field::Document(_)))
    }

    /// Bytes that sort as the entries do. No two entries have the same: the bytes of the key are among them.
    pub fn rank(&self, subject: &Subject<'_>) -> Vec<u8> {
        let mut rank = Vec::new();
        for OrderField { field, descending } in &self.fields {
            let start = rank.len();
            match subject.find(field, &Steps::unbounded()) {
                Some(Found::Name(name)) => order::encode_name(name, &mut rank),
                Some(Found::Json(json)) => order::encode_sort(Some(&json), &mut rank),
                None => order::encode_sort(None, &mut rank),
            }
            if *descending {
                // No form is the start of another, so inverted they sort the other way round.
                rank[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        rank
    }
}

impl<Context> Decode<Context> for Order {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        Vec::decode(decoder).map(Self::new)
    }
}

bincode::impl_borrow_decode!(Order);
