//! Backups: one stream with everything that a new cluster needs of an old one, readable years later or refused by name.
//!
//! Owns the form of a backup and which rows are in it. Never decides when one is taken, nor what a restore makes of it: that
//! is [`crate::offline`].
//!
//! A backup is the state at one revision as if its history had just been compacted: every current row, sessions and locks
//! too, since a restore has to end them properly. Left out are old versions, audit lines and elections of before, which
//! nobody can ask for once a new epoch has begun, and the request table: a client of before is told nothing about its
//! requests by a cluster that may not have them.
//!
//! A state to which further log entries shall be applied has to be whole, with all of that: [`Content::Whole`], in the same form.

mod content;
mod frame;
mod reader;
mod take;
mod writer;

use std::io;

use bincode::{Decode, Encode};
use quorate_machine::machine::Vars;
use quorate_machine::query::StateFault;
use quorate_machine::types::WallMillis;
use quorate_machine::versions::Versions;

use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};

pub use content::Content;
pub use frame::{BACKUP_FORMAT, END_BYTES, HEAD_BYTES_MAX};
pub use quorate_machine::keyspace::backed_up::is_kept;
pub use reader::{BackupReader, BackupRow};
pub use take::Taker;
pub use writer::BackupWriter;

/// What stands at the start of a backup: where it comes from and what it is of.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BackupHeader {
    /// The cluster it was taken of.
    pub cluster_id: u128,
    /// The node that took it.
    pub node_id: u64,
    /// Version of that node's program.
    pub node_version: String,
    /// Wall clock of that node when it began, Unix milliseconds.
    pub taken_at: WallMillis,
    /// The last log entry that is in it.
    pub log_id: Option<LogIdRecord>,
    /// The membership there, for people: a restore has a membership of its own.
    pub membership: StoredMembershipRecord,
    /// The scalars there: revision, clocks, digest of the whole state with what is left out here.
    pub vars: Vars,
}

/// What stands at the end of a whole backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupEnd {
    /// Rows of all blocks.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub row_bytes: u64,
    /// Blocks.
    pub blocks: u64,
    /// The revision of the backup, as in its header.
    pub revision: u64,
    /// Digest of the rows, see [`quorate_machine::keyspace::digest`].
    pub digest: u128,
}

/// Why bytes are not a whole backup, or could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The node that takes it has a fault.
    #[error(transparent)]
    State(#[from] StateFault),
    /// Something else.
    #[error("this is no backup of Quorate: it does not begin as one")]
    NotABackup,
    /// Written by a build with another form of backups, or of rows.
    #[error("{what} format {found}, this build reads {known}; restore with the version that took the backup")]
    UnknownFormat {
        /// Of what.
        what: &'static str,
        /// Its number in the file.
        found: u32,
        /// Those that this build reads.
        known: Versions,
    },
    /// It ends too early.
    #[error("the backup is cut short: it ends at byte {at}, in the middle of {what}")]
    CutShort {
        /// Offset of the end.
        at: u64,
        /// What was being read.
        what: &'static str,
    },
    /// Bytes are not those that were written.
    #[error("the backup is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the part that is damaged.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

#[cfg(test)]
mod tests;
