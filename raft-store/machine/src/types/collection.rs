//! What is stored of a collection.
//!
//! Owns its rules and how far each of its indexes is. The entries of indexes are [`crate::keyspace::index`]'s.

use bincode::{Decode, Encode};

use super::{ContentKind, Entry, EntryMeta, Key, Revision, Shown, Value};
use crate::rules::Rules;

/// A collection. Encode and decode with [`crate::codec`].
///
/// Invariant: one [`IndexState`] for each index of the rules, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct CollectionRow {
    /// Revision at which it was declared.
    pub create_revision: Revision,
    /// Revision at which its rules were last set; its token too.
    pub mod_revision: Revision,
    /// How often they were set.
    pub version: u64,
    /// Its rules.
    pub rules: Rules,
    /// Its indexes.
    pub indexes: Vec<IndexState>,
}

impl CollectionRow {
    /// It in the form of an entry, for a refusal that shows it: the value is its rules as JSON.
    pub fn to_shown(&self) -> Shown {
        let meta = EntryMeta {
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            cas: self.mod_revision,
            expires_at: None,
            locked_until: None,
            session: None,
        };
        let data = self.rules.to_json().to_text().into_bytes();
        Shown::Whole(Entry { meta, value: Value { kind: ContentKind::Json, data } })
    }
}

/// One index of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct IndexState {
    /// What its rows stand under; never used again for another.
    pub id: u64,
    /// How far it is.
    pub stage: IndexStage,
}

/// How far an index is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum IndexStage {
    /// It holds the entries up to and including this key, and no other; none at first.
    Building(Option<Key>),
    /// It holds all entries of the collection.
    Ready,
    /// It cannot be: holds why. It holds nothing, or what is still to be cleared.
    Failed(IndexFailure),
}

/// Why an index cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum IndexFailure {
    /// Two entries with the same values, in a unique index.
    NotUnique(Key, Key),
    /// An entry with a string too long to be indexed.
    TooLong(Key),
    /// Taking an entry in faulted: a bug of this software, see [`crate::keyspace::fault`]. Setting the rules again tries again.
    Internal,
}

impl IndexState {
    /// Whether an entry of this key has to stand in it now.
    pub fn holds(&self, key: &[u8]) -> bool {
        match &self.stage {
            IndexStage::Ready => true,
            IndexStage::Building(after) => after.as_ref().is_some_and(|after| key <= after.as_bytes()),
            IndexStage::Failed(_) => false,
        }
    }
}
