//! The one thread that writes the log.
//!
//! Owns group commit: whatever is queued becomes one write and one fsync, and only then does anyone hear of it, in
//! the order they came. Never goes on after an error: what a failed fsync left on disk is unknown, and a second try
//! would report success for pages that the system has thrown away.

#![expect(clippy::disallowed_methods, reason = "measures how long a write took; nothing of it is replicated")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::BytesMut;
use rocksdb::{WriteBatch, WriteOptions};

use super::queue::{Op, Work};
use super::record::{self, ENTRIES_END, PURGED_KEY, VOTE_KEY};
use super::{Shared, options, tail};
use crate::raft::LogEntry;
use crate::raft::wire::LogIdRecord;

/// The thread's state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// The log's last id once everything taken from the queue is on disk.
    last: Option<LogIdRecord>,
    unsynced: WriteOptions,
    /// Room for the row being built, kept between groups.
    row: BytesMut,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let last = shared.view.read().last.as_ref().map(LogIdRecord::from);
        Self { shared, last, unsynced: options::unsynced(), row: BytesMut::new() }
    }

    /// Runs until the queue is closed and empty, or the first error.
    pub(super) fn run(mut self) {
        let mut ops = Vec::new();
        let mut result = Ok(());
        while self.shared.queue.drain(&mut ops) {
            if result.is_ok() {
                result = self.commit(&ops);
                if let Err(error) = &result {
                    self.shared.queue.close();
                    self.shared.fault.report(error);
                }
            }
            for op in ops.drain(..) {
                op.complete(&result);
            }
        }
    }

    /// Makes the operations durable and visible, all of them or (after a crash) a prefix.
    fn commit(&mut self, ops: &[Op]) -> io::Result<()> {
        for op in ops {
            if let Work::Truncate { keep, .. } = &op.work {
                self.shared.mark.lower(*keep)?;
            }
        }
        let (batch, entries) = self.encode(ops);
        let bytes = batch.size_in_bytes() as u64;
        fail::fail_point!("log-before-write");
        self.shared.db.write_opt(batch, &self.unsynced).map_err(io::Error::other)?;
        fail::fail_point!("log-before-sync");
        self.sync()?;
        fail::fail_point!("log-after-sync-before-ack");
        self.shared.counters.on_group(entries, bytes);
        self.publish(ops)
    }

    fn sync(&self) -> io::Result<()> {
        fail::fail_point!("log-sync-error", |_| Err(io::Error::other("failpoint log-sync-error")));
        let started = Instant::now();
        self.shared.db.flush_wal(true).map_err(io::Error::other)?;
        self.shared.counters.on_fsync(started.elapsed());
        Ok(())
    }

    fn encode(&mut self, ops: &[Op]) -> (WriteBatch, u64) {
        let mut batch = WriteBatch::with_capacity_bytes(ops.iter().map(room_for).sum());
        let mut count = 0;
        for op in ops {
            match &op.work {
                Work::Append { entries, .. } => {
                    count += entries.len() as u64;
                    self.encode_entries(entries, &mut batch);
                }
                Work::Vote { vote, .. } => {
                    batch.put_cf(self.shared.meta(), VOTE_KEY, self.shared.stamp.seal(VOTE_KEY, vote));
                }
                Work::Truncate { keep, .. } => {
                    let next = keep.map_or(0, |id| id.index + 1);
                    batch.delete_range(&record::entry_key(next)[..], &ENTRIES_END[..]);
                    self.last = *keep;
                }
                Work::Purge { upto, empties } => {
                    batch.put_cf(self.shared.meta(), PURGED_KEY, self.shared.stamp.seal(PURGED_KEY, upto));
                    if *empties {
                        self.last = Some(*upto);
                    }
                }
            }
        }
        (batch, count)
    }

    fn encode_entries(&mut self, entries: &[LogEntry], batch: &mut WriteBatch) {
        for entry in entries {
            self.shared.stamp.seal_entry(entry, &mut self.row);
            batch.put(record::entry_key(entry.log_id.index), &self.row);
            self.last = Some((&entry.log_id).into());
        }
    }

    /// Lets the rest of the store see what is durable now.
    fn publish(&self, ops: &[Op]) -> io::Result<()> {
        self.shared.mark.raise(self.last);
        for op in ops {
            match &op.work {
                Work::Append { entries, epoch, .. } => {
                    if let Some(entry) = entries.last() {
                        self.shared.view.write().written_up_to(entry.log_id.index + 1, *epoch);
                    }
                }
                Work::Vote { vote, .. } => {
                    self.shared.mark.vote(*vote)?;
                    self.shared.view.write().vote = Some((*vote).into());
                }
                Work::Truncate { .. } => fail::fail_point!("log-after-truncate", |_| Ok(())),
                Work::Purge { upto, .. } => self.shared.purged_durably.store(upto.index + 1, Ordering::Release),
            }
        }
        self.shared.chores.nudge();
        Ok(())
    }
}

/// Bytes that the operation takes in a batch, by estimate.
fn room_for(op: &Op) -> usize {
    match &op.work {
        Work::Append { entries, .. } => entries.iter().map(tail::cost).sum(),
        Work::Vote { .. } | Work::Truncate { .. } | Work::Purge { .. } => 128,
    }
}
