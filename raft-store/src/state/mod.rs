//! The replicated state on disk: one RocksDB without WAL, data and applied position in one batch.

use std::sync::Arc;
use std::time::Duration;

use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};
use crate::types::{ClusterMillis, Entry, Key, Reply, RequestId, Revision};

pub mod snapshot;

/// A fault of this node's own disk or state: damage, I/O. Never something a client caused. The node must stop.
#[derive(Debug, Clone, thiserror::Error)]
#[error("state store: {0}")]
pub struct StateFault(pub String);

/// Where a read was evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPosition {
    /// Last applied log index.
    pub index: u64,
    /// Revision there.
    pub revision: Revision,
    /// Cluster clock there.
    pub clock: ClusterMillis,
    /// Oldest revision that can still be read; reads below it are compacted.
    pub oldest_revision: Revision,
}

/// The answer to a read of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRead {
    /// Where it was evaluated.
    pub at: ReadPosition,
    /// The entry, unless missing or expired at that position.
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

/// What to list.
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
    /// Stop once this many bytes of keys and values were gathered (at least one entry is returned).
    pub bytes_max: usize,
    /// Leave the values out (empty `data`).
    pub keys_only: bool,
    /// From the end backwards.
    pub reverse: bool,
}

/// A page of a listing.
#[derive(Debug, Clone)]
pub struct ListPage {
    /// Where it was evaluated; `at.revision` is the revision asked for, where one was.
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
}

/// A cheap, cloneable handle for reads beside the state machine. Sees each applied batch whole or not at all, also
/// across the installation of a snapshot.
#[derive(Clone)]
pub struct StateReader {
    _inner: Arc<()>,
}

impl StateReader {
    /// Reads one key as of now.
    pub fn get(&self, _key: &Key) -> Result<KeyRead, StateFault> {
        unimplemented!("stub")
    }

    /// Reads one key as it was at `revision`.
    pub fn get_at(&self, _key: &Key, _revision: Revision) -> Result<PastRead, StateFault> {
        unimplemented!("stub")
    }

    /// Lists a range.
    pub fn list(&self, _query: &ListQuery) -> Result<ListRead, StateFault> {
        unimplemented!("stub")
    }

    /// Counts the live entries of `[start, end)` at `revision`, by scanning. `limit`, `bytes_max` etc. do not apply.
    pub fn count(&self, _query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
        unimplemented!("stub")
    }

    /// The kept answer of a request id.
    pub fn request(&self, _id: &RequestId) -> Result<(ReadPosition, Option<Reply>), StateFault> {
        unimplemented!("stub")
    }

    /// Evaluates a command against the state as of now and throws the writes away.
    pub fn dry_run(&self, _command: &crate::types::Command) -> Result<Reply, StateFault> {
        unimplemented!("stub")
    }

    /// The applied position with membership and digest.
    pub fn applied(&self) -> AppliedState {
        unimplemented!("stub")
    }

    /// Current position; cheaper than [`Self::applied`].
    pub fn position(&self) -> ReadPosition {
        unimplemented!("stub")
    }

    /// Waits until `index` is applied here and visible to reads. Returns at once where it is.
    pub async fn wait_applied(&self, _index: u64) {
        unimplemented!("stub")
    }

    /// Waits until `revision` is reached here.
    pub async fn wait_revision(&self, _revision: Revision) {
        unimplemented!("stub")
    }

    /// Waits for a change of `key` after `seen` (a `mod_revision`, or the revision of a read that found nothing), for
    /// at most `wait`; then the caller reads again. Spurious returns are allowed, missed changes are not.
    pub async fn wait_key_change(&self, _key: &Key, _seen: Revision, _wait: Duration) {
        unimplemented!("stub")
    }

    /// The first pending deadline, if any: the leader proposes expiry when it is due.
    pub fn first_deadline(&self) -> Result<Option<ClusterMillis>, StateFault> {
        unimplemented!("stub")
    }

    /// Up to which revision history can be compacted under the retention rule: keep what is younger than `keep_ms` of
    /// cluster clock and the last `keep_revisions`, whichever keeps more. `None` when there is nothing to do.
    pub fn compactable_to(&self, _keep_ms: u64, _keep_revisions: u64) -> Result<Option<Revision>, StateFault> {
        unimplemented!("stub")
    }
}
