//! What the machine reads from and what it answers with: the only two things it knows of a database.
//!
//! Owns the read interface, the writes, the fault, and a view in memory for tests and tools. Never does I/O itself.

use std::collections::BTreeMap;

use crate::codec::CodecError;
use crate::level::TooNew;

/// Why something could not be applied: an undecodable row, a broken invariant, a panic, a failed read. What every node meets
/// alike is [contained](Self::is_contained); after any other the node must stop, because it can no longer hold the same state
/// as the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The view could not be read. Holds the reason.
    #[error("reading the state failed: {0}")]
    Read(String),
    /// A stored row is not what it should be.
    #[error("the state row {row_key} is damaged: {source}")]
    Row {
        /// Escaped bytes of the row key.
        row_key: String,
        /// What is wrong.
        source: CodecError,
    },
    /// Bytes that could not be decoded, where the row is not known.
    #[error("the state is damaged: {0}")]
    Bytes(#[from] CodecError),
    /// Stored rows contradict each other. Holds both sides.
    #[error("the state breaks an invariant: {0}")]
    Invariant(String),
    /// A newer build has to go on from here.
    #[error(transparent)]
    TooNew(#[from] TooNew),
    /// Applying panicked. Holds what was said.
    #[error("applying panicked: {0}")]
    Panic(String),
}

impl Fault {
    /// Whether it follows from the log and the rows alone, so that every node meets it at the same command: then that command
    /// is taken back and all else goes on. A row that is damaged on one disk only is no such case: the database finds that by
    /// its checksums, and the read fails.
    pub fn is_contained(&self) -> bool {
        match self {
            Self::Row { .. } | Self::Bytes(_) | Self::Invariant(_) | Self::Panic(_) => true,
            Self::Read(_) | Self::TooNew(_) => false,
        }
    }

    /// A damaged row.
    pub fn row(row_key: &[u8], source: CodecError) -> Self {
        Self::Row { row_key: row_key.escape_ascii().to_string(), source }
    }
}

/// Row key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// How much one look at a range gives at most.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// So many rows.
    pub rows: usize,
    /// No row behind the one with which keys and values have so many bytes.
    pub bytes: usize,
}

impl Most {
    /// So many rows, of any size.
    pub fn rows(rows: usize) -> Self {
        Self { rows, bytes: usize::MAX }
    }

    /// Takes rows in their order until there are as many as may be.
    pub fn take(self, rows: impl Iterator<Item = Row>) -> Vec<Row> {
        let mut page = Page::new(self);
        page.fill(rows);
        page.rows
    }

    /// Whether rows that were taken may have ended before the range did.
    pub(super) fn is_reached_by(self, taken: &[Row]) -> bool {
        taken.len() >= self.rows || taken.iter().map(bytes_of).sum::<usize>() >= self.bytes
    }
}

/// Rows that are taken up to a bound. Its end follows from the rows and the bound alone, however often it was filled.
#[derive(Debug)]
pub(super) struct Page {
    most: Most,
    bytes: usize,
    pub(super) rows: Vec<Row>,
}

impl Page {
    pub(super) fn new(most: Most) -> Self {
        Self { most, bytes: 0, rows: Vec::new() }
    }

    /// How much more it takes; `None` once it is full.
    pub(super) fn room(&self) -> Option<Most> {
        let Most { rows, bytes } = self.most;
        let is_full = self.rows.len() >= rows || (!self.rows.is_empty() && self.bytes >= bytes);
        (!is_full).then(|| Most { rows: rows - self.rows.len(), bytes: bytes.saturating_sub(self.bytes).max(1) })
    }

    /// Takes rows in their order until it is full, and asks for none beyond: that may stand behind thousands that are gone.
    pub(super) fn fill(&mut self, mut rows: impl Iterator<Item = Row>) {
        while self.room().is_some() {
            let Some(row) = rows.next() else { return };
            self.bytes = self.bytes.saturating_add(bytes_of(&row));
            self.rows.push(row);
        }
    }
}

/// Of key and value.
fn bytes_of((key, value): &Row) -> usize {
    key.len() + value.len()
}

/// A consistent view of the rows as they were before the apply call.
pub trait View {
    /// The value of one row.
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Rows of `[start, end)` in ascending order, at most `limit`.
    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault>;

    /// Rows of `[start, end)` in descending order, at most `limit`.
    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault>;

    /// Rows of `[start, end)` in ascending or descending order, at most so much. A view of rows that are not in memory reads no
    /// more than it gives.
    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        let rows = match reverse {
            false => self.scan(start, end, most.rows),
            true => self.scan_back(start, end, most.rows),
        };
        Ok(most.take(rows?.into_iter()))
    }

    /// A collection before which no stored one has an index that is being built, where that is known: what is looked for from there on is
    /// what is looked for from the first on.
    fn no_building_before(&self) -> Option<Vec<u8>> {
        None
    }

    /// It was seen that no stored collection before this row has an index that is being built.
    fn note_no_building_before(&self, _row_key: &[u8]) {}
}

/// One write to the database. The keys are row keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or overwrites a row.
    Put {
        /// The row.
        key: Vec<u8>,
        /// Its new value.
        value: Vec<u8>,
    },
    /// Deletes a row that exists.
    Delete {
        /// The row.
        key: Vec<u8>,
    },
    /// Deletes all rows of `[start, end)`.
    DeleteRange {
        /// First row, inclusive.
        start: Vec<u8>,
        /// End, exclusive.
        end: Vec<u8>,
    },
}

/// Rows in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryView(pub BTreeMap<Vec<u8>, Vec<u8>>);

impl MemoryView {
    /// Carries the writes out, in order.
    pub fn write(&mut self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Put { key, value } => {
                    self.0.insert(key, value);
                }
                Write::Delete { key } => {
                    self.0.remove(&key);
                }
                Write::DeleteRange { start, end } => self.0.retain(|key, _| *key < start || *key >= end),
            }
        }
    }
}

impl View for MemoryView {
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.0.get(row_key).cloned())
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        let range = self.0.range::<[u8], _>((std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)));
        Ok(range.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        let range = self.0.range::<[u8], _>((std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)));
        Ok(range.rev().take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        let range = self.0.range::<[u8], _>((std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)));
        let rows = range.map(|(key, value)| (key.clone(), value.clone()));
        Ok(if reverse { most.take(rows.rev()) } else { most.take(rows) })
    }
}
