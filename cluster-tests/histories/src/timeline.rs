//! Which operation took effect at which revision.
//!
//! Owns putting what clients were told, and what others saw of operations of unknown outcome, into the order of revisions. Never
//! judges whether that order is legal.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::file::History;
use super::operation::{Change, Operation, Step, Txn, Write, mark_of, writes_of};
use super::record::{Came, Decided, Entry, Event, Item, Record, Refused, Seen, Shown, StepSeen, TxnSeen, Written};

/// Something that happened at one revision and cannot be divided.
#[derive(Debug, Clone)]
pub struct Atom<'h> {
    /// The revision of its effect, or at which it was evaluated.
    pub revision: u64,
    /// The operation that it is, or is part of; none where nobody is known to have asked for it.
    pub record: Option<&'h Record>,
    /// What it is.
    pub part: Part<'h>,
}

/// What can happen at one revision.
#[derive(Debug, Clone)]
pub enum Part<'h> {
    /// A write took effect. What its client was told, if it was told.
    Wrote(&'h Write, Option<&'h Written>),
    /// A transaction that writes was carried out. Whether its checks held, and what its client was told, if it was told.
    Transacted(&'h Txn, bool, Option<&'h TxnSeen>),
    /// An entry went, and nobody is known to have removed it.
    Vanished(&'h str),
    /// A write was refused.
    Refused(&'h Write, &'h Refused),
    /// A transaction was refused, or had nothing to write.
    Observed(&'h Txn, Result<&'h TxnSeen, &'h Refused>),
    /// Something was read.
    Read(&'h Operation, &'h Seen),
}

/// What happened, in the order of revisions; at each first the change, then what was seen of it.
#[derive(Debug, Clone, Default)]
pub struct Timeline<'h> {
    /// All of it.
    pub atoms: Vec<Atom<'h>>,
    /// Keys of writes that may have happened without anybody having seen it: nothing can be said of them.
    pub doubtful: BTreeSet<&'h str>,
    /// Keys that live for a while only, so that their absence means nothing.
    pub fleeting: BTreeSet<&'h str>,
}

impl Part<'_> {
    /// Whether it changed something.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Wrote(..) | Self::Transacted(..) | Self::Vanished(_))
    }
}

impl<'h> Atom<'h> {
    /// What somebody wrote or removed by it, each with what the client was told of that, if it was told.
    pub fn writes(&self) -> Vec<(&'h Write, Option<&'h Written>)> {
        match self.part {
            Part::Wrote(write, _) if write.change.is_of_lock() => Vec::new(),
            Part::Wrote(write, told) => vec![(write, told)],
            Part::Transacted(txn, succeeded, told) => {
                let told_of = |place: usize| match told.and_then(|seen| seen.steps.get(place)) {
                    Some(StepSeen::Written(told)) => Some(told),
                    _ => None,
                };
                let write = |(place, step): (usize, &'h Step)| match step {
                    Step::Write(write) => Some((write, told_of(place))),
                    Step::Get(_) => None,
                };
                txn.branch(succeeded).iter().enumerate().filter_map(write).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl<'h> Timeline<'h> {
    /// That of a history.
    pub fn of(history: &'h History) -> Self {
        let mut timeline = Self::default();
        for record in &history.records {
            if let Some(decided) = record.decided() {
                timeline.take(record, decided);
            }
            let fleeting = record.operation.writes().into_iter().filter(|write| write.ttl_ms.is_some());
            timeline.fleeting.extend(fleeting.map(|write| write.key.as_str()));
        }
        let lost = timeline.locate_unknown(history);
        timeline.doubtful = lost.iter().flat_map(|record| record.operation.writes()).map(|write| &*write.key).collect();
        timeline.atoms.sort_by_key(|atom| (atom.revision, !atom.part.is_change(), atom.record.map(|record| record.id)));
        timeline
    }

    /// Takes what a client was told.
    fn take(&mut self, record: &'h Record, decided: &'h Decided) {
        let mut put = |revision, part| self.atoms.push(Atom { revision, record: Some(record), part });
        let revision = decided.revision;
        match (&record.operation, &decided.seen) {
            (Operation::Write(write), Seen::Written(written)) => put(revision, Part::Wrote(write, Some(written))),
            (Operation::Write(write), Seen::Refused(refused)) => put(revision, Part::Refused(write, refused)),
            (Operation::Bulk { writes }, Seen::Items(items)) => {
                let part = |(write, item): (&'h Write, &'h Item)| match &item.came {
                    Came::Written(written) => put(item.revision, Part::Wrote(write, Some(written))),
                    Came::Refused(refused) => put(item.revision, Part::Refused(write, refused)),
                };
                writes.iter().zip(items).for_each(part);
            }
            (Operation::Txn(txn), Seen::Txn(seen)) => {
                let wrote = seen.steps.iter().any(|step| matches!(step, StepSeen::Written(_)));
                let (changed, observed) =
                    (Part::Transacted(txn, seen.succeeded, Some(seen)), Part::Observed(txn, Ok(seen)));
                put(revision, if wrote { changed } else { observed });
            }
            (Operation::Txn(txn), Seen::Refused(refused)) => put(revision, Part::Observed(txn, Err(refused))),
            (operation, seen) if operation.is_read() => put(revision, Part::Read(operation, seen)),
            _ => {}
        }
    }

    /// Finds the revisions of operations of unknown outcome in what others saw. Gives those that nobody saw.
    fn locate_unknown(&mut self, history: &'h History) -> Vec<&'h Record> {
        let known: BTreeSet<u64> =
            self.atoms.iter().filter(|atom| atom.part.is_change()).map(|atom| atom.revision).collect();
        let mut unknown: BTreeMap<u64, &Record> = BTreeMap::new();
        let mut by_value: HashMap<(&str, String), (u64, &Write)> = HashMap::new();
        for record in history.records.iter().filter(|record| record.is_unknown()) {
            unknown.insert(record.id, record);
            for write in record.operation.writes() {
                if let Some(mark) = write.change.mark() {
                    by_value.insert((write.key.as_str(), mark), (record.id, write));
                }
            }
        }
        let mut seen = BTreeSet::new();
        let is_new = |revision: u64, key: &'h str, seen: &mut BTreeSet<(u64, &'h str)>| {
            !known.contains(&revision) && seen.insert((revision, key))
        };
        let mut located = BTreeMap::new();
        for entry in views(history) {
            if !is_new(entry.mod_revision, &entry.key, &mut seen) {
                continue;
            }
            if let Some((id, write)) = by_value.get(&(entry.key.as_str(), mark_of(&entry.value))) {
                located.insert((*id, entry.mod_revision), *write);
            }
        }
        let mut vanished = Vec::new();
        for event in removals(history) {
            if !is_new(event.revision, &event.key, &mut seen) {
                continue;
            }
            let remover = |record: &&'h Record| {
                let elsewhere = located.keys().any(|(id, revision)| *id == record.id && *revision != event.revision);
                let is_free = !elsewhere || matches!(record.operation, Operation::Bulk { .. });
                let mut writes = record.operation.writes().into_iter();
                let write = writes.find(|write| write.key == event.key && write.change == Change::Remove);
                write.filter(|_| is_free).map(|write| (record.id, write))
            };
            match unknown.values().find_map(remover) {
                Some((id, write)) => drop(located.insert((id, event.revision), write)),
                None => vanished.push((event.revision, event.key.as_str())),
            }
        }
        for ((id, revision), write) in &located {
            let record = unknown[id];
            let part = match &record.operation {
                Operation::Txn(txn) => {
                    let succeeded = writes_of(&txn.then).any(|step| std::ptr::eq(step, *write));
                    Part::Transacted(txn, succeeded, None)
                }
                _ => Part::Wrote(write, None),
            };
            self.atoms.push(Atom { revision: *revision, record: Some(record), part });
        }
        let vanish = |(revision, key)| Atom { revision, record: None, part: Part::Vanished(key) };
        self.atoms.extend(vanished.into_iter().map(vanish));
        let is_located = |record: &&Record| located.keys().any(|(id, _)| *id == record.id);
        let is_whole = |record: &&Record| is_located(record) && !matches!(record.operation, Operation::Bulk { .. });
        unknown.into_values().filter(|record| !is_whole(record)).collect()
    }
}

/// Every entry that anybody was shown.
pub fn views(history: &History) -> impl Iterator<Item = &Entry> {
    let in_answers = history.records.iter().flat_map(entries_of);
    let in_watches = history.moments.iter().filter_map(|moment| match &moment.shown {
        Shown::Event(Event { entry, .. }) => entry.as_ref(),
        _ => None,
    });
    in_answers.chain(in_watches)
}

/// Every entry that an operation was shown.
pub fn entries_of(record: &Record) -> Vec<&Entry> {
    let Some(decided) = record.decided() else { return Vec::new() };
    match &decided.seen {
        Seen::Entry(entry) => entry.iter().collect(),
        Seen::Entries(entries) => entries.iter().collect(),
        Seen::Refused(refused) => refused.current.iter().collect(),
        Seen::Items(items) => {
            let shown = items.iter().filter_map(|item| match &item.came {
                Came::Refused(refused) => refused.current.as_ref(),
                Came::Written(_) => None,
            });
            shown.collect()
        }
        Seen::Txn(seen) => {
            let shown = seen.steps.iter().filter_map(|step| match step {
                StepSeen::Entry(entry) => entry.as_ref(),
                StepSeen::Written(_) => None,
            });
            shown.collect()
        }
        _ => Vec::new(),
    }
}

/// Every removal that a watch was shown, by revision.
fn removals(history: &History) -> Vec<&Event> {
    let events = history.moments.iter().filter_map(|moment| match &moment.shown {
        Shown::Event(event) if event.entry.is_none() => Some(event),
        _ => None,
    });
    let mut events: Vec<_> = events.collect();
    events.sort_by_key(|event| event.revision);
    events
}
