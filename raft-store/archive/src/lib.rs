//! The archive of a cluster, beyond its machines: base states and pieces of its log, in an object store or a directory.
//!
//! Owns names, manifests, checksums, encryption, which points can be reached and what is kept; and encrypts backups that are files in the same
//! way. Knows nothing of the database, of
//! Raft, or of what an entry means: a state is a stream of bytes, an entry is bytes at a [`Position`].
//!
//! ```text
//! <prefix>/quorate-<cluster id>/
//!   base/<index>-<term>-<revision>-<wall>-<node>/manifest.json   written last: without it the base is not there
//!   base/<index>-<term>-<revision>-<wall>-<node>/state[.age]     the whole state after that entry
//!   log/<first>-<last>-<revision>-<least>-<wall>-<checksum>.log[.age]   a piece of the log
//!   log/<first>-<last>-<revision>-<least>-<wall>-<checksum>.bundle      many pieces, as they were written
//!   verified.json                                                the last restore that was tried
//!   archived-here                                                in a directory: the mark that this is the place
//! ```
//!
//! An object is there whole or not at all, and never changes: two nodes that both believe to lead write objects of other names, or
//! the same bytes. What was archived was committed, so all of them tell one history; [`Position`]s show it, by Raft's log matching:
//! equal term and index mean equal entries, and equal ones before them.
//!
//! Small objects become fewer and larger ones ([`Merging`]): the pieces of an hour that is over become one bundle, and those of a day. A piece
//! goes once a bundle that holds it was read again; until then both are there, which does no harm.
//!
//! Pieces, manifests and `verified.json` have a MAC where a key is given for it ([`MacKeys`]), and nothing is restored then that has none by it, nor
//! is a try of a restore taken to have been made.
//!
//! `<wall>` is the wall clock of the log at the end of the object. It may be walked back, so a piece has in its name also the `<least>`
//! that the clock shows within: by that, names alone tell which piece is the last that a point of time needs.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(clippy::print_stdout)]

mod archive;
mod base;
mod bundle;
#[cfg(feature = "object-stores")]
mod clouds;
#[cfg(feature = "object-stores")]
mod credentials;
mod crypt;
mod directory;
mod file;
mod location;
mod mac;
mod merge;
mod names;
mod plan;
mod retention;
mod segment;
mod stream;

pub use archive::{Archive, Bundle, NotMerged, Verified};
pub use base::{BaseManifest, BaseUpload};
pub use crypt::{Keys, Recipients};
pub use file::{FileSealing, WrittenFile, is_sealed, open_file, read_again};
pub use location::{Location, Place};
pub use mac::MacKeys;
pub use merge::{Listed, Merging};
pub use names::{BaseName, Form, SegmentName};
pub use plan::{Catalogue, Gap, Plan, Reach, Survey, Target, Unreachable};
pub use retention::{Retention, Superfluous};
pub use segment::{After, SEGMENT_BYTES, Segment, SegmentHead};

use quorate_machine::versions::Versions;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970.
pub type WallMillis = u64;

/// Where an entry stands in the log, and under which leader it came there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Term of the leader.
    pub term: u64,
    /// The leader.
    pub node: u64,
    /// Place in the log.
    pub index: u64,
}

/// Why something of an archive could not be read, written or found. A sentence for people, with what to do.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// What was asked for makes no sense, or is not there.
    #[error("{0}")]
    Refused(String),
    /// The store did not do it.
    #[error("{what}: {}", with_causes(source))]
    Store {
        /// What was tried, and where.
        what: String,
        /// What the store said.
        source: object_store::Error,
    },
    /// Bytes are not those that were written.
    #[error("{object} is damaged: {what}. Bring it back from a copy or an older version of it")]
    Damaged {
        /// The object.
        object: String,
        /// What is wrong with it.
        what: String,
    },
    /// It is encrypted, and no key that was given opens it; or it has no MAC, and a key was given for that.
    #[error("{object} {what}")]
    Locked {
        /// The object.
        object: String,
        /// Why, and what to do.
        what: String,
    },
    /// It has a MAC, and that is by none of the keys that were given.
    #[error(
        "{object} is not authentic: its MAC is by none of the keys given. Somebody else wrote it or changed it, or the key it was written with \
         is missing in the file of --mac-key (of a node, archive_mac_key)"
    )]
    Forged {
        /// The object.
        object: String,
    },
    /// An object of a newer build.
    #[error("{object} has format {found}, and this build reads {known}: use the version that wrote it, or a newer one")]
    UnknownFormat {
        /// The object.
        object: String,
        /// Its format.
        found: u32,
        /// What this build reads.
        known: Versions,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What failed, with what caused it, for people: HTTP clients say "builder error" and leave to its cause that there are no certificates.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Bytes as they stand in names and manifests.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ArchiveError {
    fn damaged(object: impl std::fmt::Display, what: impl Into<String>) -> Self {
        Self::Damaged { object: object.to_string(), what: what.into() }
    }

    /// Whether an object of this format can be read.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_format(object: &str, found: u32, known: Versions) -> Result<(), Self> {
        match known.reads(found) {
            true => Ok(()),
            false => Err(Self::UnknownFormat { object: object.to_owned(), found, known }),
        }
    }

    /// The same, of a piece that is in a bundle.
    fn within(self, bundle: &SegmentName) -> Self {
        match self {
            Self::Damaged { object, what } => Self::Damaged { object: format!("{object} in {bundle}"), what },
            Self::Forged { object } => Self::Forged { object: format!("{object} in {bundle}") },
            Self::Locked { object, what } => Self::Locked { object: format!("{object} in {bundle}"), what },
            other => other,
        }
    }

    /// An error of the store.
    fn store(what: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let what = what.into();
        move |source| Self::Store { what, source }
    }

    /// Whether an object is not as it was written, not there, or not to be opened with these keys by this build: another may do in its place.
    pub fn is_of_an_object(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Locked { .. } | Self::Forged { .. } | Self::UnknownFormat { .. })
            || self.is_not_found()
    }

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source: object_store::Error::NotFound { .. }, .. })
    }
}
