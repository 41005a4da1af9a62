//! What the state store is asked and what it answers.
//!
//! Owns the public vocabulary of reads, faults, options and numbers for the operator. Never touches the disk.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use quorate_machine::keyspace::fault::FaultCounts;
use quorate_machine::level::{Level, TooNew};
use quorate_machine::machine::{Bounds, Sizes};
use quorate_machine::query::ReadPosition;
use quorate_machine::types::Revision;

use crate::durations::DurationCounts;
use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};

/// Why the state did not open. The node must not start; the text names the file or directory.
#[derive(Debug, thiserror::Error)]
pub enum StateOpenError {
    /// The file system refused something.
    #[error("state storage at {path}: {source}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What is there is not what this store wrote.
    #[error("state storage damaged: {path}: {reason}")]
    Damaged {
        /// File or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer build has been at work.
    #[error(transparent)]
    TooNew(#[from] TooNew),
}

/// How to open the state store.
#[derive(Debug, Clone)]
pub struct StateOptions {
    /// This node; decides when its turn is to build a snapshot, so that nodes do not all build at once.
    pub node_id: u64,
    /// Applied entries between two snapshots. Ask for one (openraft's snapshot policy) four times as often: the store
    /// declines unless it is this node's turn. 0 grants every request.
    pub snapshot_entries_min: u64,
    /// How long applied entries may stay out of the durable state: bounds the replay after a crash.
    pub flush_every: Duration,
    /// How often the store looks whether RocksDB flushed by itself, and tells [`super::StateReader::on_durable`].
    pub durable_poll: Duration,
    /// A state of at most this many bytes is read whole at open and compared with its digest. Damage in a larger one
    /// is found where it is read.
    pub verify_bytes_max: u64,
    /// Free disk below which a snapshot that is not forced is not built.
    pub snapshot_free_bytes_min: u64,
    /// Most bytes of changes of late in memory, for those who watch; kept only while somebody does.
    pub feed_bytes_max: usize,
    /// Whether each group of entries is applied a second time, one by one, and both are compared: a difference stops the node. Twice
    /// the work, so only builds with debug assertions do it unasked.
    pub checks_groups: bool,
    /// What entries are applied within. What they come to depends on it, so all nodes of a cluster keep to the same from their first entry on: a
    /// node to its limits, and only a simulation to lower bounds. Dry runs are judged by a node's.
    pub bounds: Bounds,
}

/// The variable that has a process check groups in any build, as long searches do; 0 has none check them, for those who count what
/// applying takes.
pub const CHECK_GROUPS: &str = "QUORATE_CHECK_GROUPS";

/// [`StateOptions::checks_groups`] of this process.
fn checks_groups() -> bool {
    std::env::var_os(CHECK_GROUPS).map_or(cfg!(debug_assertions), |said| said != "0")
}

impl StateOptions {
    /// The options of a production node.
    pub fn new(node_id: u64) -> Self {
        Self {
            node_id,
            snapshot_entries_min: 40_000,
            flush_every: Duration::from_secs(30),
            durable_poll: Duration::from_secs(1),
            verify_bytes_max: 256 << 20,
            snapshot_free_bytes_min: 256 << 20,
            feed_bytes_max: 32 << 20,
            checks_groups: checks_groups(),
            bounds: Bounds::default(),
        }
    }
}

/// Everything known of the applied position, for status, metrics and peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedState {
    /// Last applied entry.
    pub log_id: Option<LogIdRecord>,
    /// Membership in force there.
    pub membership: StoredMembershipRecord,
    /// Revision, clock, oldest revision there.
    pub at: ReadPosition,
    /// Wall clock there.
    pub wall: u64,
    /// Digest of all replicated state there.
    pub digest: u128,
    /// Feature level there.
    pub level: Level,
    /// How much there is.
    pub sizes: Sizes,
    /// How often it went on in another cluster; 0 in the first.
    pub epoch: u64,
    /// The revision at which that began; 0 in the first.
    pub epoch_revision: Revision,
}

/// Numbers for metrics. Sizes are RocksDB's own and approximate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateStats {
    /// Last applied log index.
    pub applied_index: u64,
    /// Applied index that would survive a crash.
    pub durable_index: u64,
    /// Rows of all kinds.
    pub rows_estimate: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Bytes of the live table files.
    pub table_bytes: u64,
    /// Bytes of blocks in memory.
    pub block_cache_bytes: u64,
    /// Bytes that compaction has to rewrite to catch up.
    pub compaction_debt_bytes: u64,
    /// Index of the current snapshot, if there is one.
    pub snapshot_index: Option<u64>,
    /// Bytes of the current snapshot; most of them are shared with the live files.
    pub snapshot_bytes: u64,
    /// Waits for changes of keys, watches too.
    pub watched_keys: u64,
    /// Watches.
    pub watches: u64,
    /// Whether RocksDB holds writes up until it has caught up.
    pub is_stalled: bool,
    /// Groups of entries applied, by how long each took with its write.
    pub apply: DurationCounts,
    /// Entries in those groups.
    pub applied_entries: u64,
    /// Snapshots built since the start.
    pub snapshots_built: u64,
    /// Snapshots of other nodes that took the place of the state since the start.
    pub snapshots_installed: u64,
    /// Faults that this node contained since the start, while it applied entries.
    pub contained_faults: u64,
    /// What the cluster contained, ever and now.
    pub faults: FaultCounts,
}
