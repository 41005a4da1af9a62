//! The same log in other groups: what an entry comes to must not depend on which others were applied in the same call.
//!
//! Owns states that apply what a store applied, each in groups of its own, and the comparison of replies, of changes that watches are told
//! and of scalars; the digest among those is of all rows. A difference is a panic that says which entries. Never decides what an entry
//! should come to.

use std::fmt::Debug;

use quorate_machine::codec;
use quorate_machine::keyspace::changes::KeyChange;
use quorate_machine::machine::{self, Applied, Applier, Bounds, Contained, Fault, MemoryView, Vars};
use quorate_machine::types::{Batch, NodeDisk, Reply};

use crate::chance::Chance;

/// No group has more entries: all that it came to is in memory.
const GROUP_MAX: usize = 256;

/// One entry of the log.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Commands.
    Batch(Batch),
    /// The members before it, and after it.
    Members(Vec<NodeDisk>, Vec<NodeDisk>),
}

/// An entry that the store applied.
#[derive(Debug, Clone)]
struct Noted {
    entry: Entry,
    replies: Vec<Reply>,
    /// The scalars after it, where it was the last of its call.
    vars: Option<Vars>,
}

/// How a twin groups entries.
#[derive(Debug, Clone)]
enum Grouping {
    /// Each in a call of its own.
    Single,
    /// As many as it is drawn.
    Random(Chance),
    /// All that there are.
    Whole,
}

/// A state that is behind a store, and catches up in groups of its own.
#[derive(Debug, Clone)]
struct Twin {
    grouping: Grouping,
    view: MemoryView,
    vars: Vars,
    index: u64,
    bounds: Bounds,
    pending: Vec<Noted>,
    /// Changes of keys that the store told of those.
    changed: Vec<KeyChange>,
    /// It catches up once so many entries are pending.
    next: usize,
    /// Groups of more than one entry so far.
    groups: u64,
}

/// What a store had come to before the first entry that its twins apply.
pub struct Begin<'s> {
    /// Its rows.
    pub view: &'s MemoryView,
    /// Its scalars.
    pub vars: &'s Vars,
    /// Log index of its last entry.
    pub index: u64,
    /// What it keeps to.
    pub bounds: Bounds,
    /// What random groups follow from.
    pub seed: u64,
}

/// The twins of a store: none until it applies something. Two stores do not differ by them.
#[derive(Debug, Clone, Default)]
pub struct Twins(Vec<Twin>);

impl PartialEq for Twins {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Twins {}

impl Twins {
    /// Begins with a state, unless they have begun; anew where it was changed by hand since.
    pub fn begin(&mut self, begin: &Begin<'_>) {
        let is_at = |twin: &Twin| {
            (&twin.view, &twin.vars, twin.index, twin.bounds) == (begin.view, begin.vars, begin.index, begin.bounds)
        };
        // The first has applied all that the store has.
        if !self.0.first().is_some_and(is_at) {
            self.settle();
            let groupings =
                [Grouping::Single, Grouping::Random(Chance::new(begin.seed ^ begin.index)), Grouping::Whole];
            self.0 = groupings.into_iter().map(|grouping| Twin::new(grouping, begin)).collect();
        }
    }

    /// Applies what the store applied in one call, now or later.
    pub fn note(&mut self, entries: impl IntoIterator<Item = (Entry, Vec<Reply>)>, changed: &[KeyChange], vars: &Vars) {
        let mut noted: Vec<_> =
            entries.into_iter().map(|(entry, replies)| Noted { entry, replies, vars: None }).collect();
        if let Some(last) = noted.last_mut() {
            last.vars = Some(vars.clone());
        }
        for twin in &mut self.0 {
            twin.pending.extend(noted.iter().cloned());
            twin.changed.extend_from_slice(changed);
            while twin.pending.len() >= twin.next {
                twin.catch_up(twin.next);
            }
        }
    }

    /// Applies all that is pending.
    pub fn settle(&mut self) {
        for twin in &mut self.0 {
            twin.catch_up(twin.pending.len());
        }
        if let Some((first, others)) = self.0.split_first() {
            let differs = others.iter().find(|twin| twin.view != first.view);
            assert!(differs.is_none(), "the rows depend on the groups, and the digest does not: {differs:?}");
        }
    }

    /// Forgets what is pending: the store failed.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Groups of more than one entry that were compared.
    pub fn groups(&self) -> u64 {
        self.0.iter().map(|twin| twin.groups).sum()
    }
}

impl Drop for Twins {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.settle();
        }
    }
}

impl Twin {
    fn new(mut grouping: Grouping, begin: &Begin<'_>) -> Self {
        let &Begin { view, vars, index, bounds, seed: _ } = begin;
        let next = grouping.draw();
        let (view, vars) = (view.clone(), vars.clone());
        let (pending, changed) = (Vec::new(), Vec::new());
        Self { grouping, view, vars, index, bounds, pending, changed, next, groups: 0 }
    }

    /// Applies so many entries in one call, and compares.
    fn catch_up(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let group: Vec<Noted> = self.pending.drain(..count).collect();
        let indexes = self.index + 1..=self.index + count as u64;
        let come = machine::applying(|contain| self.attempt(&group, contain));
        let (replies, applied) = come.unwrap_or_else(|fault| panic!("entries {indexes:?} in one call: {fault}"));
        for ((index, noted), replies) in indexes.clone().zip(&group).zip(&replies) {
            let told = || format!("entry {index} among {indexes:?} in one call, of {:?}", noted.entry);
            assert_same(&noted.replies, replies, told);
        }
        // Those of the entries behind these are left.
        let is_all = self.pending.is_empty();
        let told = if is_all { self.changed.len() } else { applied.changed.len().min(self.changed.len()) };
        let changed: Vec<_> = self.changed.drain(..told).collect();
        assert_same(&changed, &applied.changed, || format!("changes of entries {indexes:?} in one call: {group:?}"));
        self.view.write(applied.writes);
        self.vars = applied.vars;
        self.index += count as u64;
        self.groups += u64::from(count > 1);
        if let Some(vars) = group.last().and_then(|noted| noted.vars.as_ref()) {
            assert_same(vars, &self.vars, || format!("after entries {indexes:?} in one call: {group:?}"));
        }
        // As a node that starts: only what is stored is left.
        self.vars = codec::decode(&codec::encode(&self.vars)).unwrap();
        self.next = self.grouping.draw();
    }

    fn attempt(&self, group: &[Noted], contain: bool) -> Result<(Vec<Vec<Reply>>, Applied), Fault> {
        let mut applier = Applier::new(&self.view, self.vars.clone()).within(self.bounds).containing(contain);
        let mut replies = Vec::with_capacity(group.len());
        for (index, noted) in (self.index + 1..).zip(group) {
            replies.push(match &noted.entry {
                Entry::Batch(batch) => applier.apply_batch(index, batch)?,
                Entry::Members(before, after) => {
                    applier.apply_membership(index, before, after)?;
                    Vec::new()
                }
            });
        }
        let mut applied = applier.finish();
        // Which fault it was is told in the words of one build, and is no part of the state.
        let _told: Vec<Contained> = std::mem::take(&mut applied.contained);
        Ok((replies, applied))
    }
}

impl Grouping {
    /// How many entries the next group has.
    fn draw(&mut self) -> usize {
        match self {
            Self::Single => 1,
            Self::Random(chance) => {
                let most = if chance.percent(25) { 40 } else { 5 };
                1 + chance.below(most) as usize
            }
            Self::Whole => GROUP_MAX,
        }
    }
}

/// Panics where two differ, with what was applied.
fn assert_same<T: PartialEq + Debug>(store: &T, twin: &T, told: impl Fn() -> String) {
    if store != twin {
        let told: String = told().chars().take(2_000).collect();
        panic!("what an entry comes to depends on its group: {store:?} in the store, {twin:?} by {told}");
    }
}
