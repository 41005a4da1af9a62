//! A node's state in memory, that applies and checks itself.
//!
//! Owns how batches become rows here, as a node does it. All that it applies is applied in other groups as well and compared, by
//! [`Twins`]. What must hold of the rows is `check`'s.

use quorate_machine::codec;

use quorate_machine::command_codec;
use quorate_machine::keyspace::backed_up::is_kept;
use quorate_machine::keyspace::fault::{self, FaultCounts};
use quorate_machine::keyspace::{entry, history};
use quorate_machine::machine::{
    self, Applied, Applier, Bounds, Contained, Epoch, EpochStep, Fault, MemoryView, Vars, View, Write,
};
use quorate_machine::types::{self, Batch, Command, Key, NodeDisk, Reply, Revision};

use crate::twins::{Begin, Entry, Twins};

/// Replies of each batch, and changes of keys.
pub type Answers = (Vec<Vec<Reply>>, Vec<(Key, Revision)>);

/// A whole node's state in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    /// Its rows.
    pub view: MemoryView,
    /// Its scalars.
    pub vars: Vars,
    /// Log index of the last entry.
    pub index: u64,
    /// What it keeps to: as a node, unless a test lowers it.
    pub bounds: Bounds,
    /// What the groups of its twins follow from.
    pub seed: u64,
    /// The same log in other groups.
    pub twins: Twins,
}

impl Store {
    /// Applies batches in one apply call; replies and changes.
    pub fn apply(&mut self, batches: &[Batch]) -> Result<Answers, Fault> {
        let (replies, applied) = self.attempt(batches, false)?;
        let changed = self.keep(batches, &replies, applied);
        Ok((replies, changed))
    }

    /// An entry at the moment at which it is.
    pub fn now(&self, commands: &[Command]) -> Batch {
        Batch { wall: self.vars.wall, ..batch(self.vars.clock, commands) }
    }

    /// Applies as a node does: contains faults and returns them.
    pub fn apply_contained(&mut self, batches: &[Batch]) -> (Vec<Vec<Reply>>, Vec<Contained>) {
        let (replies, mut applied) = machine::applying(|contain| self.attempt(batches, contain)).unwrap();
        let contained = std::mem::take(&mut applied.contained);
        self.keep(batches, &replies, applied);
        (replies, contained)
    }

    /// Goes on as what a test's own applier made of the next entry, which was measured meanwhile. The twins follow, unmeasured.
    pub fn keep_next(&mut self, batch: &Batch, replies: &[Reply], applied: Applied) {
        self.keep(std::slice::from_ref(batch), &[replies.to_vec()], applied);
    }

    /// Applies a membership entry; both lists are in order.
    pub fn apply_membership(&mut self, before: &[NodeDisk], after: &[NodeDisk]) -> Result<(), Fault> {
        let mut applier = Applier::new(&self.view, self.vars.clone()).within(self.bounds);
        applier.apply_membership(self.index + 1, before, after)?;
        let applied = applier.finish();
        self.follow(vec![(Entry::Members(before.to_vec(), after.to_vec()), Vec::new())], applied);
        Ok(())
    }

    fn attempt(&self, batches: &[Batch], contain: bool) -> Result<(Vec<Vec<Reply>>, Applied), Fault> {
        let mut applier = Applier::new(&self.view, self.vars.clone()).within(self.bounds).containing(contain);
        let replies = (self.index + 1..).zip(batches).map(|(index, batch)| applier.apply_batch(index, batch));
        let replies = replies.collect::<Result<_, _>>()?;
        Ok((replies, applier.finish()))
    }

    /// Keeps what was applied; changes.
    fn keep(&mut self, batches: &[Batch], replies: &[Vec<Reply>], applied: Applied) -> Vec<(Key, Revision)> {
        assert_eq!(applied.contained, [], "a fault was contained, which is a bug");
        let changed = applied.changed.clone();
        let entries =
            batches.iter().zip(replies).map(|(batch, replies)| (Entry::Batch(batch.clone()), replies.clone()));
        self.follow(entries.collect(), applied);
        changed.into_iter().map(|change| (change.key, change.revision)).collect()
    }

    /// Goes on as what entries came to, and has the twins follow.
    fn follow(&mut self, entries: Vec<(Entry, Vec<Reply>)>, applied: Applied) {
        let Self { view, vars, index, bounds, seed, twins, .. } = self;
        twins.begin(&Begin { view, vars, index: *index, bounds: *bounds, seed: *seed });
        assert_ordered(&applied.writes);
        self.view.write(applied.writes);
        self.vars = applied.vars;
        self.index += entries.len() as u64;
        self.twins.note(entries, &applied.changed, &self.vars);
    }

    /// What it goes on as in another cluster.
    pub fn begin_epoch(&mut self) {
        let mut epoch = Epoch::after(self.vars.clone(), 0).unwrap();
        let rows = std::mem::take(&mut self.view.0).into_iter().filter(|(row_key, _)| is_kept(row_key));
        self.view.0 = rows.map(|(row_key, row)| (row_key.clone(), epoch.take(&row_key, row).unwrap())).collect();
        self.vars = epoch.finish().unwrap();
        self.check();
        let mut step = EpochStep::default();
        while let Some(applied) = step.next(&self.view, self.vars.clone(), self.index).unwrap() {
            self.view.write(applied.writes);
            self.vars = applied.vars;
        }
        // In between a lock may be kept from those who wait: they go as well.
        self.check();
    }

    /// How much faulted and was contained.
    pub fn fault_counts(&self) -> FaultCounts {
        let row = self.view.get(fault::COUNTS_KEY).unwrap();
        row.map(|row| codec::decode(&row).unwrap()).unwrap_or_default()
    }

    /// All rows of a family.
    pub fn rows(&self, family: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.view.scan(&[family], &[family + 1], usize::MAX).unwrap()
    }

    /// The entry of a key at a revision, expiry aside.
    pub fn read_at(&self, key: &[u8], revision: Revision) -> Option<types::Entry> {
        let current = self.view.get(&entry::row_key(key)).unwrap();
        history::read_at::<Fault>(
            key,
            revision,
            current.as_deref(),
            |first, last| {
                let mut rows = self.view.0.range(first.to_vec()..=last.to_vec());
                Ok(rows.next_back().map(|(_, row)| row.clone()))
            },
            |first, last| {
                let mut rows = self.view.0.range(first.to_vec()..=last.to_vec());
                Ok(rows.next().map(|(_, row)| row.clone()))
            },
        )
        .unwrap()
    }
}

/// One write for each row, in key order, ranges first.
fn assert_ordered(writes: &[Write]) {
    let rows = writes.iter().skip_while(|write| matches!(write, Write::DeleteRange { .. }));
    let keys: Vec<_> = rows
        .map(|write| match write {
            Write::Put { key, .. } | Write::Delete { key } => key,
            Write::DeleteRange { .. } => panic!("a range after a row in {writes:?}"),
        })
        .collect();
    assert!(keys.is_sorted_by(|a, b| a < b), "{writes:?}");
}

/// An entry of the log. Its randomness is always the same: which key a lock gets follows from where it is in the log.
pub fn batch(clock: u64, commands: &[Command]) -> Batch {
    let commands = commands.iter().map(command_codec::encode_command).collect();
    Batch { clock, wall: 1_000_000 + clock, seed: [7; 16], commands }
}
