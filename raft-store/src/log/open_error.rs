//! Why a log cannot be opened.

use std::io;
use std::path::PathBuf;

use super::segment::SEGMENTS;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    /// A file is missing or not what was written.
    #[error("storage damaged: {path}: {reason}")]
    Damaged {
        /// The file, or the directory where only that is known.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The log is sound but ends too early, or has an older vote.
    #[error(
        "log lost synced data: {mark} says that {dir} {claimed}, but it {found}; this node must rejoin under a new id"
    )]
    LostSyncedData {
        /// The high-water mark.
        mark: PathBuf,
        /// The log.
        dir: PathBuf,
        /// What the log held once.
        claimed: String,
        /// What it holds now.
        found: String,
    },
    /// Written by a build that knows another format.
    #[error("{path}: the log has format {found}, this build reads {SEGMENTS}")]
    UnknownFormat {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Another process has it open.
    #[error("{path} is in use by another process: {reason}")]
    InUse {
        /// The log.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Reading or writing failed; nothing is known to be damaged.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
