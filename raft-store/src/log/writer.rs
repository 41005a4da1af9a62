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

use super::Shared;
use super::direct::Blocks;
use super::group::{BLOCK, GroupBuilder, KEPT_BYTES_MAX, LogState, Record};
use super::options::SimulatedDisk;
use super::queue::{Op, Work};
use super::segment::{FIRST_GROUP, Segment};

/// Where the next group goes.
pub(super) struct Position {
    pub segment: Arc<Segment>,
    pub offset: u64,
    /// Its number.
    pub sequence: u64,
}

/// The thread's state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    position: Position,
    /// What the log amounts to once everything taken from the queue is on disk.
    log_state: LogState,
    group: GroupBuilder,
    /// The group as it goes to the disk. Room kept between groups.
    blocks: Blocks,
    /// The directory of the group being written.
    records: Vec<Record>,
    /// Whether the segment after this one was asked for.
    spare_wanted: bool,
    /// How the last group went. Nothing is written after an error.
    outcome: io::Result<()>,
}

/// A group that waits to be written.
struct Pending {
    entries: u64,
    bytes: u64,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, position: Position) -> Self {
        let log_state = shared.content.read().log_state;
        let (group, blocks, records) = (GroupBuilder::default(), Blocks::default(), Vec::new());
        Self { shared, position, log_state, group, blocks, records, spare_wanted: false, outcome: Ok(()) }
    }

    /// Runs until the queue is closed and empty, or the first error.
    pub(super) fn run(mut self) {
        let mut ops = Vec::new();
        while self.shared.queue.drain(&mut ops) {
            if self.outcome.is_ok() {
                let committed = self.commit(&ops);
                self.note(committed);
            }
            self.answer(&mut ops);
        }
    }

    /// [`Self::run`] as a task of a simulation, on this disk.
    pub(super) async fn run_simulated(mut self, disk: Arc<dyn SimulatedDisk>) {
        let mut ops = Vec::new();
        while self.shared.queue.arrivals(&mut ops).await {
            if self.outcome.is_ok() {
                let committed = self.commit_slowly(&ops, &disk).await;
                self.note(committed);
            }
            self.answer(&mut ops);
        }
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = &outcome {
            self.shared.queue.close();
            self.shared.fault.report(error);
        }
        self.outcome = outcome;
    }

    fn answer(&self, ops: &mut Vec<Op>) {
        for op in ops.drain(..) {
            op.complete(&self.outcome);
        }
    }

    /// Makes the operations durable and visible, all of them or (after a crash) a prefix.
    fn commit(&mut self, ops: &[Op]) -> io::Result<()> {
        let pending = self.prepare(ops)?;
        self.write()?;
        self.finish(ops, &pending)
    }

    /// [`Self::commit`], with a time between the two in which a crash finds the group half written.
    async fn commit_slowly(&mut self, ops: &[Op], disk: &Arc<dyn SimulatedDisk>) -> io::Result<()> {
        let pending = self.prepare(ops)?;
        let mut on_its_way = OnItsWay { disk: &**disk, position: &self.position, blocks: &self.blocks, is_cut: true };
        tokio::time::sleep(disk.takes()).await;
        on_its_way.is_cut = false;
        drop(on_its_way);
        if disk.fails() {
            return Err(io::Error::other("the simulated disk failed a sync"));
        }
        self.write()?;
        self.finish(ops, &pending)
    }

    /// Encodes the group and makes room for it.
    fn prepare(&mut self, ops: &[Op]) -> io::Result<Pending> {
        for op in ops {
            if let Work::Truncate { keep, .. } = &op.work {
                self.shared.mark.lower(*keep)?;
            }
        }
        let entries = self.encode(ops)?;
        let bytes = self.group.padded_len();
        if self.position.offset + bytes > self.position.segment.capacity() {
            self.roll_over(bytes)?;
        }
        let Position { segment, sequence, .. } = &self.position;
        let group = self.group.finish(self.shared.tag, *sequence, segment.number());
        if self.blocks.capacity() > KEPT_BYTES_MAX {
            self.blocks = Blocks::default();
        }
        self.blocks.fill(group);
        Ok(Pending { entries, bytes })
    }

    fn write(&self) -> io::Result<()> {
        failpoint!("log-before-write");
        let Position { segment, offset, .. } = &self.position;
        segment.write(*offset, &self.blocks)?;
        failpoint!("log-before-sync");
        self.sync()
    }

    fn finish(&mut self, ops: &[Op], pending: &Pending) -> io::Result<()> {
        failpoint!("log-after-sync-before-ack");
        self.shared.counters.on_group(pending.entries, pending.bytes);
        self.publish(ops)?;
        self.advance(pending.bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        failpoint!("log-sync-error", |_| Err(io::Error::other("failpoint log-sync-error")));
        let started = Instant::now();
        self.position.segment.sync()?;
        self.shared.counters.on_fsync(started.elapsed());
        Ok(())
    }

    /// Goes on in the next segment. The one before counts as the last until a group in this one is durable.
    fn roll_over(&mut self, group_bytes: u64) -> io::Result<()> {
        self.position.segment = self.shared.spare.take(group_bytes)?;
        self.position.offset = FIRST_GROUP;
        self.spare_wanted = false;
        Ok(())
    }

    fn advance(&mut self, bytes: u64) {
        self.position.offset += bytes;
        self.position.sequence += 1;
        // A quarter in: a log that is hardly used needs no spare, a busy one has time to make it.
        if !self.spare_wanted && self.position.offset >= self.position.segment.capacity() / 4 {
            self.spare_wanted = true;
            self.shared.spare.want();
        }
    }

    /// Builds the group. Gives the number of entries.
    fn encode(&mut self, ops: &[Op]) -> io::Result<u64> {
        let counts = ops.iter().map(|op| match &op.work {
            Work::Append { entries, .. } => entries.len(),
            Work::Vote { .. } | Work::Truncate { .. } | Work::Purge { .. } => 1,
        });
        self.group.start(&self.log_state, counts.sum());
        self.records.clear();
        for op in ops {
            match &op.work {
                Work::Append { entries, .. } => {
                    let tag = self.shared.tag;
                    self.records.extend(entries.iter().map(|entry| self.group.entry(tag, entry)));
                }
                Work::Vote { vote, .. } => self.small(Record::Vote(*vote)),
                Work::Truncate { keep, .. } => self.small(Record::Truncate(*keep)),
                Work::Purge { upto } => self.small(Record::Purge(*upto)),
            }
        }
        for record in &self.records {
            // Never written: the log would not open again.
            self.log_state.apply(record).map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        }
        Ok(self.records.iter().filter(|record| matches!(record, Record::Entry { .. })).count() as u64)
    }

    fn small(&mut self, record: Record) {
        self.group.record(&record);
        self.records.push(record);
    }

    /// Lets the rest of the store see what is durable now.
    fn publish(&self, ops: &[Op]) -> io::Result<()> {
        let Position { segment, offset, .. } = &self.position;
        // Before the view may drop anything from memory.
        let applied = self.shared.content.write().apply(segment, *offset, &self.records);
        applied.map_err(io::Error::other)?;
        self.shared.mark.raise(self.log_state.last);
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
                Work::Truncate { .. } => failpoint!("log-after-truncate", |_| Ok(())),
                Work::Purge { upto } => self.shared.purged_durably.store(upto.index + 1, Ordering::Release),
            }
        }
        self.shared.chores.nudge();
        Ok(())
    }
}

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A group between its write and its sync, in a simulation. Dropped by a crash, it leaves what the disk says.
struct OnItsWay<'w> {
    disk: &'w dyn SimulatedDisk,
    position: &'w Position,
    blocks: &'w Blocks,
    is_cut: bool,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if !self.is_cut {
            return;
        }
        let group = self.blocks.as_slice();
        let survivors = self.disk.survivors(group.len().div_ceil(SECTOR));
        let parts = group.chunks(BLOCK).zip(survivors.chunks(BLOCK / SECTOR)).enumerate();
        for (place, (block, survivors)) in parts.filter(|(_, (_, survivors))| survivors.contains(&true)) {
            // What did not survive is as a new file has it.
            let mut left = block.to_vec();
            let lost = left.chunks_mut(SECTOR).zip(survivors).filter(|(_, survives)| !**survives);
            lost.for_each(|(sector, _)| sector.fill(0));
            let offset = self.position.offset + (place * BLOCK) as u64;
            let written = self.position.segment.write(offset, &Blocks::copy_of(&left));
            written.expect("the file under a simulated disk can be written");
        }
    }
}
