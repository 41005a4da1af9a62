//! The queue between the callers of the log and its writer thread.
//!
//! Owns the one order of all log I/O: appends, votes, truncations and purges leave as they came. Never does I/O and
//! never drops an operation unanswered: what cannot be done any more is failed by whoever drains.
//!
//! Bounded in bytes: every operation holds a permit until it is done, and a caller waits for its permit before it
//! queues.

use std::io;
use std::sync::Arc;

use openraft::storage::IOFlushed;
use parking_lot::{Condvar, Mutex};
use quorate_threads::background;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::raft::wire::{LogIdRecord, VoteRecord};
use crate::raft::{LogEntry, TypeConfig};

/// Most bytes of entries that wait for the disk. At 30 MB/s of appends this is half a second of a stalled disk.
pub const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of one permit.
const PERMIT_BYTES: usize = 1024;

const PERMITS: usize = QUEUE_BYTES_MAX / PERMIT_BYTES;

/// How the caller of a waiting operation hears of it.
pub type Completion = oneshot::Sender<io::Result<()>>;

/// One operation on the log.
pub struct Op {
    /// What to do.
    pub work: Work,
    /// Room in the queue, given back when the operation is dropped.
    _permit: OwnedSemaphorePermit,
}

/// What to do.
pub enum Work {
    /// Write the entries, sync, call back.
    Append {
        /// Consecutive entries.
        entries: Vec<LogEntry>,
        /// openraft's ear.
        callback: IOFlushed<TypeConfig>,
        /// Number of truncations before this append, see [`super::view::View::written_up_to`].
        epoch: u64,
    },
    /// Write the vote, sync, answer.
    Vote {
        /// The vote.
        vote: VoteRecord,
        /// Answered when it is durable.
        done: Completion,
    },
    /// Drop everything after `keep`, sync, answer.
    Truncate {
        /// Last entry that stays (or the purge mark).
        keep: Option<LogIdRecord>,
        /// Answered when it is durable.
        done: Completion,
    },
    /// Remember the purge mark.
    Purge {
        /// Last purged entry. May lie beyond the end.
        upto: LogIdRecord,
    },
}

impl Op {
    /// Tells the caller how it went.
    pub fn complete(self, result: &io::Result<()>) {
        let result = match result {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        match self.work {
            Work::Append { callback, .. } => callback.io_completed(result),
            // A caller that no longer listens was cancelled; the log did what it was asked.
            Work::Vote { done, .. } | Work::Truncate { done, .. } => drop(done.send(result)),
            Work::Purge { .. } => {}
        }
    }
}

/// See the top of the file.
pub struct Queue {
    inner: Mutex<Inner>,
    ready: Condvar,
    /// Instead of `ready`, in a simulation.
    arrived: Option<Notify>,
    room: Arc<Semaphore>,
}

struct Inner {
    ops: Vec<Op>,
    closed: bool,
}

impl Queue {
    /// An empty, open queue.
    pub fn new() -> Self {
        Self {
            inner: Mutex::new(Inner { ops: Vec::new(), closed: false }),
            ready: Condvar::new(),
            arrived: background::is_simulated().then(Notify::new),
            room: Arc::new(Semaphore::new(PERMITS)),
        }
    }

    /// Waits for room for this many bytes. More than the whole queue waits for an empty one.
    pub async fn room(&self, bytes: usize) -> io::Result<OwnedSemaphorePermit> {
        let permits = (bytes / PERMIT_BYTES + 1).min(PERMITS) as u32;
        Arc::clone(&self.room).acquire_many_owned(permits).await.map_err(|_| closed())
    }

    /// Bytes that wait for the disk, as far as permits tell.
    pub fn waiting_bytes(&self) -> usize {
        PERMITS.saturating_sub(self.room.available_permits()) * PERMIT_BYTES
    }

    /// Queues an operation. Fails where the log is closed or has failed; then nothing was queued.
    pub fn push(&self, work: Work, permit: OwnedSemaphorePermit) -> io::Result<()> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(closed());
        }
        inner.ops.push(Op { work, _permit: permit });
        match &self.arrived {
            None => drop(self.ready.notify_one()),
            Some(arrived) => arrived.notify_one(),
        }
        Ok(())
    }

    /// Moves everything queued to `into`, waiting for something to come. False once closed and empty.
    pub fn drain(&self, into: &mut Vec<Op>) -> bool {
        let mut inner = self.inner.lock();
        while inner.ops.is_empty() {
            if inner.closed {
                return false;
            }
            self.ready.wait(&mut inner);
        }
        std::mem::swap(&mut inner.ops, into);
        true
    }

    /// [`Self::drain`] for the writer of a simulation, which is the only one to wait.
    pub async fn arrivals(&self, into: &mut Vec<Op>) -> bool {
        let arrived = self.arrived.as_ref().expect("only a simulation waits in a task");
        loop {
            {
                let mut inner = self.inner.lock();
                if !inner.ops.is_empty() {
                    std::mem::swap(&mut inner.ops, into);
                    return true;
                }
                if inner.closed {
                    return false;
                }
            }
            arrived.notified().await;
        }
    }

    /// Takes no more; what is queued is still drained. Wakes everyone who waits for room.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.ready.notify_all();
        if let Some(arrived) = &self.arrived {
            arrived.notify_one();
        }
        self.room.close();
    }
}

/// What callers of a closed log get.
pub fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the log is closed or has failed")
}
