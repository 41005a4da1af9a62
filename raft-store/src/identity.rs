//! Who this data directory belongs to: the marker file that a wiped or foreign disk cannot fake.
//!
//! Owns the file `identity` in the data directory, written whole, fsynced, renamed into place, directory fsynced.
//! Never changes a marker that exists, but for filling in the cluster id once.

use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

/// The marker's content.
///
/// Invariant: `node_id` and `incarnation` never change; `cluster_id` changes once, from `None`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// The cluster; `None` until this node was adopted by one.
    pub cluster_id: Option<u128>,
    /// The operator's number for this node.
    pub node_id: u64,
    /// Random, made with the directory.
    pub incarnation: u128,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The marker is damaged or of an unknown format.
    #[error("{path}: the identity marker is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The directory belongs to another node.
    #[error("{path} belongs to node {found}, not to node {asked}; start node {found} on it or give node {asked} a directory of its own")]
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// Node id in the marker.
        found: u64,
        /// Node id in the configuration.
        asked: u64,
    },
    /// The directory belongs to another cluster.
    #[error("{path} belongs to cluster {found:032x}, not to cluster {asked:032x}")]
    OtherCluster {
        /// The directory.
        path: PathBuf,
        /// Cluster id in the marker.
        found: u128,
        /// Cluster id asked for.
        asked: u128,
    },
    /// Data without a marker.
    #[error("{path} holds data but no identity marker; restore the file `identity` or start on an empty directory under a new node id")]
    Unmarked {
        /// The directory.
        path: PathBuf,
    },
}

/// Opens the marker of `dir`, or makes one with `fresh_incarnation` where the directory is new and empty.
pub fn open(_dir: &Path, _node_id: u64, _fresh_incarnation: u128) -> Result<Identity, IdentityError> {
    unimplemented!("stub")
}

/// Records the cluster id, durably. The same id again is fine; another is [`IdentityError::OtherCluster`].
pub fn adopt(_dir: &Path, _identity: &Identity, _cluster_id: u128) -> Result<Identity, IdentityError> {
    unimplemented!("stub")
}
