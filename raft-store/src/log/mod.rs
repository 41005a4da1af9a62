//! The durable Raft log: entries, vote and purge mark in one RocksDB of their own.
//!
//! Owns the order and the durability of everything that openraft wants remembered. Never interprets a payload, and
//! never serves a state: that is `crate::state`.
//!
//! The path of an append: openraft's task puts the entries into the tail in memory ([`view`], [`tail`]), where every
//! reader sees them at once, and into the queue ([`queue`]); the writer thread ([`writer`]) drains the queue into one
//! write and one fsync and calls back in order. The housekeeping thread ([`chores`]) keeps the high-water mark
//! ([`mark`]) and deletes purged files. [`recover`] says what is checked at open, [`record`] what the rows look like,
//! `crate::raft::log_storage` is openraft's view of all this.
//!
//! # What an undetected loss takes
//!
//! The log is refused if it lost anything below its mark. The mark is exact [`chores::MARK_QUIET`] after the log
//! came to rest and at most [`chores::MARK_INTERVAL`] old (plus one write of it) while the log is busy; a vote is in
//! it before it is answered. So what stays unnoticed is only a WAL whose last quarter second before a crash was cut
//! off, at a record's edge or inside one, by something that did not damage anything else. A disk that reports an
//! fsync and then loses the write can do that at a power loss; no check inside this node can see it.
//!
//! # Failpoints
//!
//! With the feature `failpoints`, in the order in which one append, vote or truncation passes them:
//!
//! | name | where |
//! |---|---|
//! | `log-after-mark-lowered` | a truncation's mark is durable, nothing else of it |
//! | `log-before-write` | a group is encoded, nothing of it written |
//! | `log-before-sync` | a group is given to the system, not synced |
//! | `log-sync-error` | `return`: the sync fails with an I/O error |
//! | `log-after-sync-before-ack` | a group is durable, nobody knows |
//! | `log-after-truncate` | a truncation is durable, its caller does not know |
//! | `mark-before-rename` | a new mark is durable under its temporary name |
//! | `identity-before-rename` | likewise the identity marker (`crate::identity`) |

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use openraft::storage::IOFlushed;
use parking_lot::{Mutex, RwLock};
use rocksdb::{ColumnFamily, DB, FlushOptions};
use tokio::sync::oneshot;

use crate::identity::Identity;
use crate::raft::wire::LogIdRecord;
use crate::raft::{LogEntry, LogId, TypeConfig, Vote};

pub mod chores;
pub mod mark;
mod options;
mod queue;
mod read;
mod record;
mod recover;
mod stats;
mod tail;
mod view;
mod writer;

pub use recover::{LOG_DIR, LogOpenError};
pub use stats::{FSYNC_BUCKETS_MICROS, LogStats};

use chores::Chores;
use mark::MarkKeeper;
use queue::{Queue, Work};
use record::Stamp;
use view::View;
use writer::Writer;

/// Called once, at the first I/O error or damage: the node says why and exits. What failed is never tried again.
pub type FatalHook = Arc<dyn Fn(&str) + Send + Sync>;

/// What the log's handles and threads share.
struct Shared {
    db: DB,
    dir: PathBuf,
    stamp: Stamp,
    view: RwLock<View>,
    queue: Queue,
    mark: MarkKeeper,
    chores: Chores,
    counters: stats::Counters,
    fault: Fault,
    /// Index after the last entry whose purge is durable.
    purged_durably: AtomicU64,
    /// Index after the last entry that the state holds durably.
    durable_state: AtomicU64,
}

impl Shared {
    fn meta(&self) -> &ColumnFamily {
        meta(&self.db)
    }
}

fn meta(db: &DB) -> &ColumnFamily {
    db.cf_handle(options::META_CF).expect("the database was opened with its meta column family")
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
    /// against the high-water mark and refuses damage by naming the file. `identity` goes into the check of each row.
    /// Blocks for as long as RocksDB replays its WAL, up to a second.
    pub fn open(data_dir: &Path, identity: &Identity, on_fatal: FatalHook) -> Result<LogStore, LogOpenError> {
        let recovered = recover::recover(data_dir, identity)?;
        let purged_durably = recovered.view.purged.as_ref().map_or(0, |id| id.index + 1);
        let last = recovered.view.last.as_ref().map(LogIdRecord::from);
        let shared = Arc::new(Shared {
            db: recovered.db,
            dir: data_dir.join(LOG_DIR),
            stamp: recovered.stamp,
            view: RwLock::new(recovered.view),
            queue: Queue::new(),
            mark: MarkKeeper::new(data_dir, recovered.mark),
            chores: Chores::default(),
            counters: stats::Counters::default(),
            fault: Fault { first: OnceLock::new(), hook: on_fatal },
            purged_durably: AtomicU64::new(purged_durably),
            durable_state: AtomicU64::new(0),
        });
        let in_data_dir = |source| LogOpenError::Io { path: data_dir.to_owned(), source };
        shared.mark.raise(last);
        shared.mark.write().map_err(in_data_dir)?;
        let threads = Arc::new(Threads::start(&shared).map_err(in_data_dir)?);
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

    /// The counters since the log was opened.
    pub fn stats(&self) -> LogStats {
        self.shared.counters.read(self.shared.view.read().tail.bytes())
    }

    /// A reader of this log.
    pub fn reader(&self) -> LogReader {
        LogReader { shared: Arc::clone(&self.shared) }
    }

    /// Takes no more, writes what is queued, leaves an exact mark and flushed table files. Blocks for some tens of
    /// milliseconds. Other clones are of no more use; the directory is free once they and all readers are dropped.
    pub fn close(self) {
        self.threads.stop(&self.shared);
        if self.shared.fault.first.get().is_some() {
            return;
        }
        let mut wait = FlushOptions::default();
        wait.set_wait(true);
        // The WAL holds everything and is synced: without this flush the next start is slower, nothing else.
        for flushed in [self.shared.db.flush_opt(&wait), self.shared.db.flush_cf_opt(self.shared.meta(), &wait)] {
            if let Err(error) = flushed {
                tracing::warn!(dir = %self.shared.dir.display(), %error, "the log could not be flushed at close");
            }
        }
    }

    /// The last purged id and the last id.
    pub(crate) fn bounds(&self) -> (Option<LogId>, Option<LogId>) {
        let view = self.shared.view.read();
        (view.purged, view.last)
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
        let empties = view.last == Some(upto);
        self.shared.queue.push(Work::Purge { upto: (&upto).into(), empties }, permit)
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

/// The two threads of an open log.
struct Threads {
    running: Mutex<Option<Running>>,
    shared: Arc<Shared>,
}

struct Running {
    writer: JoinHandle<()>,
    chores: JoinHandle<()>,
}

impl Threads {
    fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (writer, keeper) = (Writer::new(Arc::clone(shared)), Arc::clone(shared));
        let writer = thread::Builder::new().name("log-writer".to_owned()).spawn(move || writer.run())?;
        let chores = thread::Builder::new().name("log-chores".to_owned()).spawn(move || chores::run(&keeper))?;
        Ok(Self { running: Mutex::new(Some(Running { writer, chores })), shared: Arc::clone(shared) })
    }

    /// Ends the writer, then, as that may have raised the mark, the chores. The second call does nothing.
    fn stop(&self, shared: &Shared) {
        let Some(Running { writer, chores }) = self.running.lock().take() else { return };
        shared.queue.close();
        let writer = writer.join();
        shared.chores.close();
        if writer.is_err() || chores.join().is_err() {
            shared.fault.report(&io::Error::other("a thread of the log panicked"));
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop(&self.shared);
    }
}
