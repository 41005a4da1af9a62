//! Entries: a key, a value, and what is known of it.
//!
//! Owns their form in the log and the state, with the revisions and times that all other types count in. Knows no command and no row; whoever
//! stands above takes them from [`crate::types`].

mod key;
mod units;

use std::fmt;

use bincode::{Decode, Encode};

pub use key::{Key, KeyError, after_prefix};
pub use units::{ClusterMillis, Revision, SessionId, WallMillis};

/// What a value is. A JSON value that is an object is called a document and can be patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ContentKind {
    /// UTF-8 JSON text, checked by the node before it entered the log.
    Json,
    /// Opaque bytes.
    Bytes,
}

/// A value with its kind.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Value {
    /// How to read `data`.
    pub kind: ContentKind,
    /// At most [`VALUE_BYTES_MAX`](crate::limits::VALUE_BYTES_MAX) bytes.
    pub data: Vec<u8>,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.data[..self.data.len().min(64)];
        write!(f, "{:?}[{}]{}", self.kind, self.data.len(), shown.escape_ascii())
    }
}

/// What is known of an entry beside its value.
///
/// Invariant: `create_revision <= mod_revision <= cas`, and `version >= 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct EntryMeta {
    /// Revision at which this incarnation of the key was created.
    pub create_revision: Revision,
    /// Revision of the last change.
    pub mod_revision: Revision,
    /// Changes since creation, starting at 1.
    pub version: u64,
    /// The compare-and-swap token: the revision at which the entry last changed or was locked.
    pub cas: u64,
    /// Cluster clock at which the entry expires, if ever: expired once `clock >= expires_at`.
    pub expires_at: Option<ClusterMillis>,
    /// Cluster clock at which the lock on it ends by itself: locked while `clock < locked_until`. Who locks an entry
    /// is answered with the key of the lock in place of `cas`.
    pub locked_until: Option<ClusterMillis>,
    /// The session that it goes with, if any.
    pub session: Option<SessionId>,
}

impl EntryMeta {
    /// Whether somebody holds a lock on it.
    pub fn is_locked_at(&self, clock: ClusterMillis) -> bool {
        self.locked_until.is_some_and(|until| clock < until)
    }

    /// The token, where it may be shown.
    pub fn cas_shown_at(&self, clock: ClusterMillis) -> Option<u64> {
        (!self.is_locked_at(clock)).then_some(self.cas)
    }
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Entry {
    /// Revisions, token, expiry.
    pub meta: EntryMeta,
    /// The value.
    pub value: Value,
}

impl Entry {
    /// Whether the entry is gone for a command or read evaluated at `clock`.
    pub fn is_expired_at(&self, clock: ClusterMillis) -> bool {
        self.meta.expires_at.is_some_and(|deadline| deadline <= clock)
    }
}

/// An entry as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Shown {
    /// With its value.
    Whole(Entry),
    /// Without: the form that is kept for retries, so that a crowd of refusals does not fill the disk with copies of
    /// one value. A retry is answered with the value again, unless that version was compacted since.
    Bare {
        /// Revisions, token, expiry.
        meta: EntryMeta,
        /// How its value was to be read.
        kind: ContentKind,
    },
}

impl Shown {
    /// Revisions, token, expiry; known in any form.
    pub fn meta(&self) -> &EntryMeta {
        match self {
            Self::Whole(entry) => &entry.meta,
            Self::Bare { meta, .. } => meta,
        }
    }

    /// How its value is to be read; known in any form.
    pub fn kind(&self) -> ContentKind {
        match self {
            Self::Whole(entry) => entry.value.kind,
            Self::Bare { kind, .. } => *kind,
        }
    }

    /// The entry, where the answer has its value.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Whole(entry) => Some(entry),
            Self::Bare { .. } => None,
        }
    }

    /// Bytes of the value that the answer carries.
    pub fn value_bytes(&self) -> usize {
        self.entry().map_or(0, |entry| entry.value.data.len())
    }

    /// Without the value.
    pub fn to_bare(&self) -> Self {
        match self {
            Self::Whole(entry) => Self::Bare { meta: entry.meta, kind: entry.value.kind },
            Self::Bare { meta, kind } => Self::Bare { meta: *meta, kind: *kind },
        }
    }
}
