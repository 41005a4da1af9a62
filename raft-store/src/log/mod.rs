//! The durable Raft log: entries, vote and purge mark in segment files of its own.
//!
//! Owns the order and the durability of everything that openraft wants remembered. Never interprets a payload, and
//! never serves a state: that is `crate::state`.
//!
//! The path of an append: openraft's task puts the entries into the tail in memory ([`view`], [`tail`]), where every
//! reader sees them at once, and into the queue ([`queue`]); the writer thread ([`writer`]) drains the queue into one
//! group ([`group`]), which is one write and one sync, and calls back in order. Groups stand one after the other in
//! segments ([`segment`]), files of zeros that are made ahead of time ([`spare`]), so that a sync writes the group and
//! nothing else. The housekeeping thread ([`chores`]) keeps the [high-water mark](crate::high_water_mark) and deletes
//! segments of purged entries. [`recover`] says what is checked at open, [`walk`] what may be missing at the end, [`index`] where each entry
//! is, `crate::adapters::log_storage` is openraft's view of all this.
//!
//! # What an undetected loss takes
//!
//! The log is refused if it lost anything below its mark. The mark is exact [`chores::MARK_QUIET`] after the log
//! came to rest and at most [`chores::MARK_INTERVAL`] old (plus one write of it) while the log is busy; a vote is in
//! it before it is answered. Above the mark, the log is refused if any group that was ever synced can still be read behind
//! one that cannot. So what stays unnoticed, at most, is that the groups of the last quarter second before a crash became
//! unreadable from one of them on to the very last, without exception, by something that did not change the length of a
//! file. Damage to one place cannot do that unless the place is the last group. A disk that reports a sync and then loses
//! the write, and every later one, can do it at a power loss; no check inside this node can see that.
//!
//! # Failpoints
//!
//! In builds with debug assertions, in the order in which one append, vote or truncation passes them:
//!
//! | name | where |
//! |---|---|
//! | `log-after-mark-lowered` | a truncation's mark is durable, nothing else of it |
//! | `log-before-write` | a group is encoded, nothing of it written |
//! | `log-before-sync` | a group is given to the system, not synced |
//! | `log-sync-error` | `return`: the sync fails with an I/O error |
//! | `log-after-sync-before-ack` | a group is durable, nobody knows |
//! | `log-after-truncate` | a truncation is durable, its caller does not know |
//! | `mark-before-rename` | the first mark is durable under its temporary name |
//! | `mark-before-sync` | a later mark is given to the system, not synced |
//! | `identity-before-rename` | likewise the identity marker (`crate::identity`) |

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use openraft::storage::IOFlushed;
use parking_lot::{Mutex, RwLock};
use quorate_threads::{background, watchdog};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::high_water_mark::MarkWriter;
use crate::identity::Identity;
use crate::raft::wire::LogIdRecord;
use crate::raft::{LogEntry, LogId, TypeConfig, Vote};

pub mod chores;
mod direct;
mod group;
mod index;
mod inspect;
mod open_error;
mod options;
#[doc(hidden)]
pub mod pieces;
mod queue;
mod read;
mod record;
mod recover;
mod segment;
mod spare;
mod stats;
mod stretch;
mod tail;
mod view;
mod walk;
mod writer;

pub use inspect::{LogFacts, inspect};
pub use open_error::LogOpenError;
pub use options::{LogOptions, SimulatedDisk};
pub use recover::LOG_DIR;
pub use stats::LogStats;
pub use stretch::Stretch;

use chores::Chores;
use index::Content;
use queue::{Queue, Work};
use record::DirectoryTag;
use spare::Spare;
use view::View;
use writer::{Position, Writer};

/// Called once, at the first I/O error or damage: the node says why and exits. What failed is never tried again.
pub type FatalHook = Arc<dyn Fn(&str) + Send + Sync>;

/// What the log's handles and threads share.
struct Shared {
    dir: PathBuf,
    tag: DirectoryTag,
    /// What is on disk. Locked after the view, if both are; for a moment only, never across I/O.
    content: RwLock<Content>,
    spare: Spare,
    view: RwLock<View>,
    queue: Queue,
    mark: MarkWriter,
    chores: Chores,
    counters: stats::Counters,
    fault: Fault,
    /// Index after the last entry whose purge is durable.
    purged_durably: AtomicU64,
    /// Index after the last entry that the state holds durably.
    durable_state: AtomicU64,
    /// Keeps other processes out until the last reader is gone.
    _lock: File,
}

/// Tells the node of the first fault, and only of that.
struct Fault {
    first: OnceLock<String>,
    hook: FatalHook,
}

impl Fault {
    fn report(&self, error: &dyn std::error::Error) {
        if self.first.set(error.to_string()).is_ok() {
            (self.hook)(&format!("raft log: {error}"));
        }
    }
}

/// The log. Cloning shares it; the last clone to go (or [`LogStore::close`]) ends its threads.
#[derive(Clone)]
pub struct LogStore {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

/// Reads the log. Cheap to clone, sees appended entries at once, also before they are durable.
#[derive(Clone)]
pub struct LogReader {
    shared: Arc<Shared>,
}

impl LogStore {
    /// Opens `<data_dir>/log`, or makes it where `data_dir` never had one. Checks what it finds against itself and
    /// against the high-water mark and refuses damage by naming the file. `identity` goes into the check of each entry.
    /// Blocks for as long as it takes to verify the newest entries, a fraction of a second.
    pub fn open(data_dir: &Path, identity: &Identity, on_fatal: FatalHook) -> Result<LogStore, LogOpenError> {
        Self::open_with(data_dir, identity, &LogOptions::default(), on_fatal)
    }

    /// [`Self::open`] with other settings. They may differ from those that the log was made with.
    pub fn open_with(
        data_dir: &Path,
        identity: &Identity,
        options: &LogOptions,
        on_fatal: FatalHook,
    ) -> Result<LogStore, LogOpenError> {
        let recovered = recover::recover(data_dir, identity, options)?;
        let (walked, view, (mark_file, mark)) = (recovered.walked, recovered.view, recovered.mark);
        let purged_durably = walked.content.log_state.purged.map_or(0, |id| id.index + 1);
        let last = walked.content.log_state.last;
        let (dir, next) = (data_dir.join(LOG_DIR), walked.segment.number() + 1);
        let position = Position { segment: walked.segment, offset: walked.offset, sequence: walked.sequence };
        let shared = Arc::new(Shared {
            spare: Spare::new(
                dir.clone(),
                identity.clone(),
                (options.format, options.segment_bytes),
                next,
                walked.spare,
                walked.bytes,
            ),
            dir,
            tag: recovered.tag,
            content: RwLock::new(walked.content),
            view: RwLock::new(view),
            queue: Queue::new(),
            mark: MarkWriter::new(mark_file, mark),
            chores: Chores::default(),
            counters: stats::Counters::default(),
            fault: Fault { first: OnceLock::new(), hook: on_fatal },
            purged_durably: AtomicU64::new(purged_durably),
            durable_state: AtomicU64::new(0),
            _lock: recovered.lock,
        });
        let in_data_dir = |source| LogOpenError::Io { path: data_dir.to_owned(), source };
        shared.mark.raise(last);
        shared.mark.write().map_err(in_data_dir)?;
        let threads = Arc::new(Threads::start(&shared, position, options).map_err(in_data_dir)?);
        Ok(LogStore { shared, threads })
    }

    /// Says that the state durably holds the effects of every entry up to `index`. Entries are never deleted from
    /// disk beyond that, whatever is purged; since opening, nothing is known to be durable until this is called.
    pub fn set_durable_state_index(&self, index: u64) {
        self.shared.durable_state.fetch_max(index.saturating_add(1), Ordering::AcqRel);
        self.shared.chores.nudge();
    }

    /// Index of the last entry, or of the last one purged; 0 for an empty log.
    pub fn last_index(&self) -> u64 {
        self.shared.view.read().last.as_ref().map_or(0, |id| id.index)
    }

    /// Index of the last entry purged, if any.
    pub fn purged_index(&self) -> Option<u64> {
        self.shared.view.read().purged.as_ref().map(|id| id.index)
    }

    /// The last entry that is durable, or was purged last.
    pub fn durable_id(&self) -> Option<LogId> {
        self.shared.content.read().log_state.last.map(LogId::from)
    }

    /// The counters since the log was opened.
    pub fn stats(&self) -> LogStats {
        let (tail, queue) = (self.shared.view.read().tail.bytes(), self.shared.queue.waiting_bytes());
        self.shared.counters.read(tail, self.shared.spare.disk_bytes(), queue)
    }

    /// A reader of this log.
    pub fn reader(&self) -> LogReader {
        LogReader { shared: Arc::clone(&self.shared) }
    }

    /// Takes no more, writes what is queued, leaves an exact mark. Blocks for some milliseconds, or until a segment that
    /// is being made is made. Other clones are of no more use; the directory is free once they and all readers are dropped.
    pub fn close(self) {
        self.threads.stop(&self.shared);
    }

    /// The last purged id and the last id.
    pub(crate) fn bounds(&self) -> (Option<LogId>, Option<LogId>) {
        let view = self.shared.view.read();
        (view.purged, view.last)
    }

    /// The id of the entry at an index, where the log holds one. Blocks where that has to be read from disk.
    pub(crate) fn id_at(&self, index: u64) -> io::Result<Option<LogId>> {
        read::id_at(&self.shared, index)
    }

    /// Makes the entries visible and queues them. The callback hears when they are durable.
    pub(crate) async fn append(&self, entries: Vec<LogEntry>, callback: IOFlushed<TypeConfig>) -> io::Result<()> {
        let permit = self.shared.queue.room(entries.iter().map(tail::cost).sum()).await?;
        // Queued under the lock: the order in the queue is the order in the view.
        let mut view = self.shared.view.write();
        view.append(&entries);
        let epoch = view.epoch;
        self.shared.queue.push(Work::Append { entries, callback, epoch }, permit)
    }

    /// Durable when it returns.
    pub(crate) async fn save_vote(&self, vote: &Vote) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        let permit = self.shared.queue.room(0).await?;
        self.shared.queue.push(Work::Vote { vote: vote.into(), done }, permit)?;
        answer.await.map_err(|_| queue::closed())?
    }

    /// Drops every entry after `keep`; durable when it returns.
    pub(crate) async fn truncate_after(&self, keep: Option<LogId>) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        let permit = self.shared.queue.room(0).await?;
        {
            let mut view = self.shared.view.write();
            if !view.truncate_after(keep) {
                return Ok(());
            }
            let keep = view.last.as_ref().map(LogIdRecord::from);
            self.shared.queue.push(Work::Truncate { keep, done }, permit)?;
        }
        answer.await.map_err(|_| queue::closed())?
    }

    /// Drops every entry up to `upto`, which may lie beyond the end. Durable in order with what follows.
    pub(crate) async fn purge(&self, upto: LogId) -> io::Result<()> {
        let permit = self.shared.queue.room(0).await?;
        let durable = self.shared.durable_state.load(Ordering::Acquire);
        if durable <= upto.index {
            tracing::warn!(%upto, durable, "purged before the state was said to be durable; the entries stay on disk");
        }
        let mut view = self.shared.view.write();
        if !view.purge(upto) {
            return Ok(());
        }
        self.shared.queue.push(Work::Purge { upto: (&upto).into() }, permit)
    }
}

impl LogReader {
    /// The last durable vote.
    pub(crate) fn vote(&self) -> Option<Vote> {
        self.shared.view.read().vote
    }

    /// All entries of the range that the log holds.
    pub(crate) async fn read(&self, range: std::ops::Range<u64>) -> io::Result<Vec<LogEntry>> {
        read::read(&self.shared, range, None).await
    }

    /// A first part of the entries of the range, up to `bytes_max`, but at least one if there is one.
    pub(crate) async fn read_some(&self, range: std::ops::Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        read::read(&self.shared, range, Some(bytes_max)).await
    }
}

/// The threads of an open log; in a simulation, tasks.
struct Threads {
    running: Mutex<Option<Running>>,
    shared: Arc<Shared>,
}

enum Running {
    Threads {
        writer: JoinHandle<()>,
        chores: JoinHandle<()>,
        spare: JoinHandle<()>,
    },
    /// Segments are made on the spot.
    Tasks {
        _writer: AbortOnDropHandle<()>,
        _chores: AbortOnDropHandle<()>,
    },
}

impl Threads {
    fn start(shared: &Arc<Shared>, position: Position, options: &LogOptions) -> io::Result<Self> {
        let writer = Writer::new(Arc::clone(shared), position);
        let running = match &options.disk {
            Some(disk) if background::is_simulated() => Running::Tasks {
                _writer: AbortOnDropHandle::new(watchdog::spawn_thread_of_simulation(
                    writer.run_simulated(Arc::clone(disk)),
                )),
                _chores: AbortOnDropHandle::new(watchdog::spawn_thread_of_simulation(chores::run_simulated(
                    Arc::clone(shared),
                ))),
            },
            _ => Self::start_threads(shared, writer)?,
        };
        Ok(Self { running: Mutex::new(Some(running)), shared: Arc::clone(shared) })
    }

    fn start_threads(shared: &Arc<Shared>, writer: Writer) -> io::Result<Running> {
        let (cleaner, maker) = (Arc::clone(shared), Arc::clone(shared));
        let start = |name: &str, run: Box<dyn FnOnce() + Send>| thread::Builder::new().name(name.to_owned()).spawn(run);
        Ok(Running::Threads {
            writer: start("log-writer", Box::new(move || writer.run()))?,
            chores: start("log-chores", Box::new(move || chores::run(&cleaner)))?,
            spare: start("log-spare", Box::new(move || maker.spare.run()))?,
        })
    }

    /// Ends the writer, then, as that may have raised the mark, the chores. The second call does nothing.
    fn stop(&self, shared: &Shared) {
        let Some(running) = self.running.lock().take() else { return };
        shared.queue.close();
        let Running::Threads { writer, chores, spare } = running else { return };
        let writer = writer.join();
        shared.chores.close();
        shared.spare.close();
        if writer.is_err() || chores.join().is_err() || spare.join().is_err() {
            shared.fault.report(&io::Error::other("a thread of the log panicked"));
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop(&self.shared);
    }
}

#[cfg(test)]
mod versions;
