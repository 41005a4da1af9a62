//! What a life under test says of itself, and what its storage has promised by it.
//!
//! Owns the language between a life and its judge. Never looks at a disk.

use std::collections::{BTreeMap, BTreeSet};

use bincode::{Decode, Encode};

/// Something that a life began, or was told by the storage.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Note {
    /// The storage is about to be opened. openraft may then purge what the state has, and give up a snapshot that is too old.
    Opening,
    /// The storage was opened and found sound. What it holds counts as promised from here on.
    Opened {
        /// Index of the last entry that was durably purged. openraft may have purged more meanwhile, which may come back.
        purged: Option<u64>,
        /// Index of the current snapshot.
        snapshot: Option<u64>,
    },
    /// A vote for this term is about to be saved.
    Voting(u64),
    /// It was saved.
    Voted(u64),
    /// Entries are about to be appended.
    Submitted(Run),
    /// They are durable.
    Acked(Run),
    /// All entries from this index on are about to be dropped.
    Truncating(u64),
    /// Entries of this node's log are committed, and may be applied.
    Committed(Run),
    /// Entries that this node may not have are committed by others.
    Elsewhere(Run),
    /// The state was found to be at this index, or was brought there.
    Applied(u64),
    /// The state holds everything up to this index durably.
    Durable(u64),
    /// A snapshot up to this index is complete.
    Snapshot(u64),
    /// A snapshot up to this index took the place of the state.
    Installed(u64),
    /// Entries up to this index are about to be purged.
    Purging(u64),
    /// The cluster is about to be adopted.
    Adopting,
    /// It was adopted.
    Adopted,
    /// The mark of a state that is not trusted is about to be set (or lifted).
    Quarantining(bool),
    /// It was set (or lifted).
    Quarantined(bool),
}

/// Consecutive entries of one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Run {
    /// Index of the first.
    pub first: u64,
    /// Index of the last.
    pub last: u64,
    /// Their term.
    pub term: u64,
}

/// Whether the state is marked as not to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub enum Trust {
    /// No mark.
    #[default]
    Given,
    /// Marked.
    Taken,
    /// A change was begun and not finished.
    Open,
}

/// What must be true of the storage, whenever it stops.
#[derive(Debug, Clone, Default, Encode, Decode)]
pub struct Promised {
    /// Term of the last vote saved.
    pub voted: u64,
    /// Term of the last vote that was begun to be saved.
    pub voting: u64,
    /// Index and term of every entry that may be there.
    pub submitted: BTreeSet<(u64, u64)>,
    /// Index to term of every entry that must be there, but for those purged.
    pub acked: BTreeMap<u64, u64>,
    /// Index to term of every committed entry, whether this node has it or not.
    pub committed: BTreeMap<u64, u64>,
    /// Index after the last entry that this node knows to be committed and has had in its log or in its state.
    pub committed_here: u64,
    /// Index after the last entry whose effect is durable.
    pub durable: u64,
    /// Index after the last entry of the current snapshot.
    pub snapshot: u64,
    /// Index after the last entry ever asked to be purged.
    pub purging: u64,
    /// Whether an adoption was begun.
    pub adopting: bool,
    /// Whether the cluster was adopted.
    pub adopted: bool,
    /// See [`Trust`].
    pub trust: Trust,
}

impl Promised {
    /// Takes in what a life said.
    pub fn hear(&mut self, note: &Note) {
        match note {
            Note::Opening => {
                let end = self.committed.keys().next_back().map_or(0, |index| index + 1);
                (self.purging, self.snapshot) = (self.purging.max(end), 0);
            }
            Note::Opened { purged, snapshot } => self.reopened(*purged, *snapshot),
            Note::Voting(term) => self.voting = *term,
            Note::Voted(term) => (self.voted, self.voting) = (*term, self.voting.max(*term)),
            Note::Submitted(run) => self.submitted.extend(run.indexes().map(|index| (index, run.term))),
            Note::Acked(run) => self.acked.extend(run.indexes().map(|index| (index, run.term))),
            Note::Truncating(from) => drop(self.acked.split_off(from)),
            Note::Committed(run) => {
                self.committed.extend(run.indexes().map(|index| (index, run.term)));
                self.committed_here = self.committed_here.max(run.last + 1);
            }
            Note::Elsewhere(run) => self.committed.extend(run.indexes().map(|index| (index, run.term))),
            Note::Applied(index) => self.committed_here = self.committed_here.max(index + 1),
            Note::Durable(index) => self.durable = self.durable.max(index + 1),
            Note::Snapshot(index) => self.snapshot = self.snapshot.max(index + 1),
            Note::Installed(index) => {
                for mark in [&mut self.durable, &mut self.snapshot, &mut self.committed_here] {
                    *mark = (*mark).max(index + 1);
                }
            }
            Note::Purging(index) => self.purging = self.purging.max(index + 1),
            Note::Adopting => self.adopting = true,
            Note::Adopted => self.adopted = true,
            Note::Quarantining(_) => self.trust = Trust::Open,
            Note::Quarantined(true) => self.trust = Trust::Taken,
            Note::Quarantined(false) => self.trust = Trust::Given,
        }
    }

    /// How many entries this note acknowledges, without those that are known to be there: to be asked before it is taken in. A life
    /// says all that its log holds again and again.
    pub fn newly_acked(&self, note: &Note) -> u64 {
        let Note::Acked(run) = note else { return 0 };
        run.indexes().filter(|index| self.acked.get(index) != Some(&run.term)).count() as u64
    }

    fn reopened(&mut self, purged: Option<u64>, snapshot: Option<u64>) {
        let first = purged.map_or(0, |index| index + 1);
        self.purging = self.purging.max(first);
        self.snapshot = snapshot.map_or(0, |index| index + 1);
        self.acked = self.acked.split_off(&first);
        self.submitted = self.submitted.split_off(&(first, 0));
    }

    /// Forgets committed entries that no judgement needs any more.
    pub fn prune(&mut self) {
        self.committed = self.committed.split_off(&self.durable.saturating_sub(1));
    }
}

impl Run {
    /// The indexes.
    pub fn indexes(&self) -> std::ops::RangeInclusive<u64> {
        self.first..=self.last
    }

    /// The runs that entries of these indexes and terms, in order, make up.
    pub fn all_of(entries: impl IntoIterator<Item = (u64, u64)>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (index, term) in entries {
            match runs.last_mut() {
                Some(run) if run.term == term && run.last + 1 == index => run.last = index,
                _ => runs.push(Run { first: index, last: index, term }),
            }
        }
        runs
    }
}
