//! What is done to a data directory while no node runs on it: restore, replay, recovery, check.
//!
//! Owns the steps and their order. Never works on the directory of a running node. What it makes is built aside and exchanged at the end
//! ([`staging`]), so that whatever happens meanwhile, the directory is as it was or as it shall be.

mod base;
mod build;
mod check;
mod check_kept;
mod check_quotas;
mod check_rows;
mod check_state;
mod position;
mod recover;
mod replay;
mod restore;
mod staging;

use std::io;
use std::path::{Path, PathBuf};

use quorate_machine::query::StateFault;

use crate::backup::BackupError;
use crate::identity::IdentityError;
use crate::log::LogOpenError;
use crate::state::StateOpenError;

pub use check::{CheckReport, check};
pub use check_rows::decode as decode_row;
pub use recover::{RecoverOptions, Recovered, Survivor, recover, survivor};
pub use replay::{Replay, ReplayError, Replayed, Until};
pub use restore::{RestoreOptions, Restored, refuse_occupied, restore, restore_made};
pub use staging::{is_interrupted, remove_beside_marker};

/// Why it was not done. A sentence for people; the directory is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// What is there does not allow it.
    #[error("{0}")]
    Refused(String),
    /// The file system refused something.
    #[error("{path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The backup is not whole.
    #[error("{path}: {source}")]
    Backup {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BackupError,
    },
    /// The marker of the directory.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The log of the directory.
    #[error(transparent)]
    Log(#[from] LogOpenError),
    /// The state of the directory.
    #[error(transparent)]
    State(#[from] StateOpenError),
    /// The state of the directory, once it was open.
    #[error(transparent)]
    Fault(#[from] StateFault),
}

impl OfflineError {
    /// An error of the system at this path.
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
