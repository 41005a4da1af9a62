//! Questions about entries, answers, and positions that answers are of.
//!
//! Owns their forms. Never reads a row.

use crate::machine::Vars;
use crate::types::{ClusterMillis, Entry, Key, Revision, WallMillis};

/// The position at which a read was evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPosition {
    /// Last applied log index; 0 also while nothing was applied.
    pub index: u64,
    /// Revision there.
    pub revision: Revision,
    /// Cluster clock there.
    pub clock: ClusterMillis,
    /// Oldest revision that can still be read; reads below it are compacted.
    pub oldest_revision: Revision,
}

impl ReadPosition {
    /// The position after the entry at `index`, which left these scalars.
    pub fn new(index: u64, vars: &Vars) -> Self {
        Self { index, revision: vars.revision, clock: vars.clock, oldest_revision: vars.oldest_revision }
    }
}

/// The answer to a read of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRead {
    /// The position of the read. For one in the past, `at.revision` is the revision asked for.
    pub at: ReadPosition,
    /// The entry, unless missing or expired at that position. Expiry is not judged for a read in the past: there an
    /// entry counts until something superseded or removed it, so that the answer is always the same.
    pub entry: Option<Entry>,
}

/// The answer to a read in the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PastRead {
    /// The entry as it was, if there was one.
    Found(KeyRead),
    /// The revision is below `at.oldest_revision`.
    Compacted(ReadPosition),
    /// The revision is above `at.revision`.
    Future(ReadPosition),
}

/// A question for a list of entries.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// First key, inclusive; empty for the very first.
    pub start: Vec<u8>,
    /// End key, exclusive; `None` for no end.
    pub end: Option<Vec<u8>>,
    /// At this revision; `None` for the current one.
    pub revision: Option<Revision>,
    /// Most entries returned.
    pub limit: usize,
    /// Stop before more than this many bytes of keys and values are gathered (at least one entry is returned).
    pub bytes_max: usize,
    /// Leave the values out (empty `data`).
    pub keys_only: bool,
    /// From the end backwards.
    pub reverse: bool,
}

/// A page of a listing.
#[derive(Debug, Clone)]
pub struct ListPage {
    /// The position of the read. `at.revision` is the revision asked for, if one was.
    pub at: ReadPosition,
    /// Keys and entries in the order asked for.
    pub entries: Vec<(Key, Entry)>,
    /// Whether the range holds more after the last entry.
    pub more: bool,
}

/// The answer to a listing.
#[derive(Debug, Clone)]
pub enum ListRead {
    /// A page.
    Page(ListPage),
    /// The revision is below `at.oldest_revision`.
    Compacted(ReadPosition),
    /// The revision is above `at.revision`.
    Future(ReadPosition),
}

/// Something as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed<T> {
    /// The moment.
    pub at: ReadPosition,
    /// Its wall clock.
    pub wall: WallMillis,
    /// The finding.
    pub found: T,
}

/// Some things of a list, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// They.
    pub items: Vec<T>,
    /// Whether there are others after them.
    pub more: bool,
}
