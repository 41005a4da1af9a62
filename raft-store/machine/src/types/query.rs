//! Commands about what is found, about collections and about sequences, and what applying them answers.
//!
//! Owns their form in the log. What is found is decided when they are applied, so that it is the same on every node and
//! for every retry.

use bincode::{Decode, Encode};

use super::{Expect, Expiry, Guard, Key, Rejection, Shown};
use crate::document::path::Path;
use crate::document::{Criteria, Order, Patch};
use crate::limits;
use crate::rules::{CollectionName, Rules, SequenceName};

/// Changes entries that match, each on its own, in order of key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WhereOp {
    /// Only keys that begin with this.
    pub prefix: Vec<u8>,
    /// What holds of the entries.
    pub criteria: Criteria,
    /// What else must hold of each that matches for it to be changed; the others are counted as skipped.
    pub condition: Criteria,
    /// What to do with each.
    pub change: WhereChange,
    /// Most entries changed.
    pub limit: u32,
    /// Go on behind this key: [`WhereReply::after`] of the command before.
    pub after: Option<Key>,
    /// A token that must hold a lock.
    pub guard: Option<Box<Guard>>,
}

/// What is done with each entry that matches.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum WhereChange {
    /// It is patched.
    Patch {
        /// How.
        patch: Patch,
        /// What happens to its expiry.
        expiry: Expiry,
    },
    /// It is removed.
    Remove,
}

/// What a [`WhereOp`] came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct WhereReply {
    /// Entries that match, and those that take too many steps to judge: they failed.
    pub matched: u32,
    /// Of those, changed.
    pub applied: u32,
    /// Of those, that the condition did not hold of.
    pub skipped: u32,
    /// Of those, refused for another reason.
    pub failed: u32,
    /// Entries looked at, expired ones too.
    pub examined: u32,
    /// The first of those skipped or failed, at most [`crate::limits::WHERE_ITEMS_MAX`].
    pub items: Vec<WhereItem>,
    /// Whether those are missing because they were too long to be kept under the request id: this answers a retry.
    pub left_out: bool,
    /// Where to go on; `None` once every entry was looked at.
    pub after: Option<Key>,
}

/// An entry that matches and was not changed, nor claimed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WhereItem {
    /// Which of those that match, from 0.
    pub n: u32,
    /// Its key.
    pub key: Key,
    /// Why.
    pub why: Rejection,
}

impl WhereItem {
    /// About what a row takes for it.
    pub(super) fn listed_bytes(&self) -> usize {
        self.key.as_bytes().len() + limits::LISTED_ENTRY_BYTES + self.why.detail_bytes()
    }
}

/// Locks entries that match and are not locked, in order, all at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ClaimOp {
    /// Only keys that begin with this.
    pub prefix: Vec<u8>,
    /// What holds of the entries.
    pub criteria: Criteria,
    /// Which come first.
    pub order: Order,
    /// Most entries claimed.
    pub limit: u32,
    /// For so many milliseconds of cluster clock.
    pub lock_ms: u64,
    /// Changes each in the same step.
    pub patch: Option<Patch>,
    /// A token that must hold a lock.
    pub guard: Option<Box<Guard>>,
}

/// What a [`ClaimOp`] came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct ClaimReply {
    /// What was claimed, in order; the token of each is the key to its lock.
    pub entries: Vec<(Key, Shown)>,
    /// Entries that match and were passed over, because the patch does not fit them or leaves what their collection does
    /// not accept; at most [`crate::limits::CLAIM_REFUSED_MAX`].
    pub refused: Vec<WhereItem>,
    /// Whether those are missing because they were too long to be kept under the request id: this answers a retry.
    pub left_out: bool,
    /// Entries looked at.
    pub examined: u32,
    /// Whether it ended at a bound, so that there may be more.
    pub more: bool,
    /// The fields of the index that was used.
    pub index: Option<Vec<Path>>,
}

/// Sets or removes the rules of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RulesOp {
    /// The collection.
    pub name: CollectionName,
    /// What must hold of its being declared, and of its token.
    pub expect: Expect,
    /// What to do.
    pub change: RulesChange,
}

/// What is done with the rules.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RulesChange {
    /// They are these from now on. Indexes that stay the same stay as they are; the others are built, or dropped.
    Set(Rules),
    /// There are none; its entries stay.
    Remove,
}

/// Draws numbers from a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NumbersOp {
    /// The sequence.
    pub name: SequenceName,
    /// How many: 1 to [`crate::limits::NUMBERS_MAX`].
    pub count: u32,
}
