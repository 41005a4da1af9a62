//! openraft's state machine and snapshot builder over the state store.
//!
//! Owns the translation of types and the grouping of entries. Never decides what a command means. Answers when it is decided,
//! which is final since the entry is committed, and then shows it to readers: who wants to read what was answered here waits
//! for it ([`StateReader::wait_applied`]).

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{FutureExt, Stream, TryStreamExt};
use openraft::EntryPayload;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use quorate_machine::limits;
use quorate_machine::query::StateFault;
use quorate_threads::{background, watchdog};

use crate::raft::wire::SnapshotMetaRecord;
use crate::raft::{LogEntry, LogId, SnapshotMeta, StoredMembership, TypeConfig};
use crate::state::snapshot::SnapshotHandle;
use crate::state::{
    self, Committer, Flusher, Shared, StateOpenError, StateOptions, StateReader, build_snapshot, free_bytes,
    install_snapshot,
};

/// Most entries of one group.
const GROUP_ENTRIES_MAX: usize = 64;

/// A group is closed once it holds this many bytes of commands: bounds the time that a worker thread of the runtime
/// spends on it, and how long reads wait for it.
const GROUP_BYTES_MAX: usize = limits::BATCH_BYTES_SOFT_MAX;

/// From so many on it takes some milliseconds to apply them.
const LONG_GROUP_BYTES: usize = 64 << 10;

/// Turns of all others before such a group. From the word of a leader to the answer it is as many tasks of a node, one after the other;
/// with a turn between two groups, nodes that applied their logs again after a start heard nobody for half a second and elected another.
const LONG_GROUP_TURNS: usize = 16;

/// Snapshots of a node wait for one of so many turns.
const TURNS: u64 = 4;

/// A snapshot as openraft passes it round.
type Snapshot = openraft::alias::SnapshotOf<TypeConfig, SnapshotHandle>;

/// The replicated state as openraft sees it. There is one for each [`StateReader`] family; dropping it stops the
/// store's background work, and the database closes with the last reader.
pub struct StateMachine {
    shared: Arc<Shared>,
    committer: Committer,
    options: StateOptions,
    request: SnapshotRequest,
    _flusher: Flusher,
}

/// Asks for a snapshot out of turn and on a disk that is nearly full; whoever sets it has seen to the room. It is granted
/// to the next build that openraft asks for.
#[derive(Debug, Clone, Default)]
pub struct SnapshotRequest(Arc<AtomicBool>);

impl SnapshotRequest {
    /// Asks for one. Trigger openraft's build after it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether there was a request; it is gone then.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl StateMachine {
    /// Opens `<data_dir>/state/`, or makes it where it does not exist. Removes what an interrupted installation,
    /// snapshot or receive left behind. Refuses damage by name.
    pub fn open(data_dir: &Path, options: StateOptions) -> Result<(Self, StateReader), StateOpenError> {
        let (shared, flusher) = state::open(data_dir, &options)?;
        let reader = StateReader { shared: Arc::clone(&shared) };
        let committer = Committer::new(Arc::clone(&shared));
        Ok((Self { shared, committer, options, request: SnapshotRequest::default(), _flusher: flusher }, reader))
    }

    /// A handle for reads.
    pub fn reader(&self) -> StateReader {
        StateReader { shared: Arc::clone(&self.shared) }
    }

    /// See [`StateReader::durable_index`].
    pub fn durable_index(&self) -> u64 {
        self.shared.durable_index()
    }

    /// Last index that the current snapshot covers, if there is one.
    pub fn snapshot_index(&self) -> Option<u64> {
        self.shared.snapshots.current().map(|snapshot| snapshot.manifest().index())
    }

    /// What the current snapshot covers, if there is one.
    pub fn snapshot_meta(&self) -> Option<SnapshotMetaRecord> {
        self.shared.snapshots.current().map(|snapshot| snapshot.manifest().meta.clone())
    }

    /// Gives up the current snapshot. For a start at which it is older than what the log has purged or is about to:
    /// openraft then builds a new one, where it would otherwise send this one to followers again and again.
    pub fn discard_snapshot(&self) {
        self.shared.snapshots.discard();
    }

    /// For snapshots out of turn.
    pub fn snapshot_request(&self) -> SnapshotRequest {
        self.request.clone()
    }

    /// Applies entries in as few groups as their effect allows. The answers of each group go out before it is written: a write
    /// takes as long as all that a small entry needs besides, and nobody needs to wait for it who does not read.
    async fn apply_gathered(&mut self, mut entries: Vec<EntryResponder<TypeConfig>>) -> Result<(), StateFault> {
        while !entries.is_empty() {
            let (answers, decided) = watchdog::at_cost(
                || self.committer.decide(entries.iter().map(|(entry, _)| entry)),
                |done| done.as_ref().map_or(Duration::ZERO, |(_, decided)| decided.cost()),
            )?;
            let cost = decided.cost();
            let (count, given) = (answers.len(), entries.len());
            assert!((1..=given).contains(&count), "{count} answers for {given} entries");
            let is_awaited = entries[..count].iter().any(|(_, responder)| responder.is_some());
            if is_awaited {
                self.committer.before_answers();
            }
            for ((_, responder), answer) in entries.drain(..count).zip(answers) {
                if let Some(responder) = responder {
                    responder.send(answer);
                }
            }
            if is_awaited {
                tokio::task::yield_now().await;
            }
            watchdog::at_cost(|| self.committer.write(decided), |_| cost)?;
        }
        Ok(())
    }

    /// Whether a snapshot that openraft's policy asks for shall be built now. The policy asks each node at about the same
    /// indexes; the turns keep the nodes from all flushing and reading their tables at once.
    fn is_my_turn(&self) -> bool {
        let wanted = self.options.snapshot_entries_min;
        let last = self.shared.snapshots.current().map_or(0, |snapshot| snapshot.manifest().index());
        let since = self.committer.index().saturating_sub(last);
        let turn = (self.committer.index() / (wanted / TURNS).max(1)) % TURNS;
        let is_my_turn =
            wanted == 0 || since >= 2 * wanted || (since >= wanted / 2 && turn == self.options.node_id % TURNS);
        is_my_turn && self.has_room()
    }

    /// A failed build stops the node, so it is not tried where it would fail.
    fn has_room(&self) -> bool {
        match free_bytes(self.shared.state_dir()) {
            Ok(free) if free < self.options.snapshot_free_bytes_min => {
                tracing::warn!(free, "no snapshot: the disk is nearly full");
                false
            }
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "no snapshot: the free space is not known");
                false
            }
        }
    }
}

/// Lets everyone else go first. For a follower's applying, which nobody waits for: meanwhile a write that is being decided
/// may wait for this node's log, for its answer to the leader, or, where nodes share a processor, for a thread of another.
async fn give_way(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    std::thread::yield_now();
}

/// How often others have the thread before these entries are applied.
fn turns_before(group: &[EntryResponder<TypeConfig>]) -> usize {
    let bytes: usize = group.iter().map(|(entry, _)| payload_bytes(entry)).sum();
    if bytes < LONG_GROUP_BYTES { 1 } else { LONG_GROUP_TURNS }
}

/// The next entries that are there without waiting, at least one; empty at the end of the stream.
async fn gather<S>(entries: &mut S) -> io::Result<Vec<EntryResponder<TypeConfig>>>
where
    S: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin,
{
    let mut group = Vec::new();
    let mut bytes = 0;
    let mut next = entries.try_next().await?;
    while let Some((entry, responder)) = next.take() {
        bytes += payload_bytes(&entry);
        group.push((entry, responder));
        if group.len() < GROUP_ENTRIES_MAX && bytes < GROUP_BYTES_MAX {
            next = entries.try_next().now_or_never().transpose()?.flatten();
        }
    }
    Ok(group)
}

fn payload_bytes(entry: &LogEntry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(batch) => batch.0.len(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotHandle;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let record = self.committer.reload()?;
        let membership = record.membership.clone().try_into().map_err(StateFault::from)?;
        Ok((record.log_id.map(Into::into), membership))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + openraft::OptionalSend,
    {
        loop {
            let group = gather(&mut entries).await?;
            if group.is_empty() {
                return Ok(());
            }
            if group.iter().all(|(_, responder)| responder.is_none()) {
                give_way(turns_before(&group)).await;
            }
            self.apply_gathered(group).await?;
        }
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<SnapshotBuilder> {
        (force || self.request.take() || self.is_my_turn())
            .then(|| SnapshotBuilder { shared: Arc::clone(&self.shared) })
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder { shared: Arc::clone(&self.shared) }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotHandle) -> Result<(), io::Error> {
        let shared = Arc::clone(&self.shared);
        let meta = SnapshotMetaRecord::from(meta);
        background::blocking(move || install_snapshot(&shared, &meta, &snapshot)).await??;
        self.committer.reload()?;
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        self.shared.snapshots.current().map(into_snapshot).transpose()
    }
}

/// Builds snapshots of the state as it is when [`RaftSnapshotBuilder::build_snapshot`] runs, beside the apply path.
pub struct SnapshotBuilder {
    shared: Arc<Shared>,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotHandle;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let shared = Arc::clone(&self.shared);
        let built = background::blocking(move || build_snapshot(&shared)).await??;
        into_snapshot(built)
    }
}

fn into_snapshot(handle: SnapshotHandle) -> io::Result<Snapshot> {
    let meta = handle.manifest().meta.clone().try_into().map_err(StateFault::from)?;
    Ok(Snapshot { meta, snapshot: handle })
}
