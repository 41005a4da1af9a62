//! C1: strict serializability of all reads and writes, by the revisions in their answers.
//!
//! Owns the proof: the order of revisions must agree with real time, and a sound store that is led through it must give every
//! answer that was given. No search: the revisions are the witness. Leaves out keys that live for a while, whose absence the
//! order does not decide, keys of writes whose outcome nobody saw, and locked ones from when their lock may have ended by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{self, State};
use crate::operation::{Change, Operation, Txn, Write, writes_of};
use crate::record::{Came, Entry, Micros, Record, Refused, Seen, TxnSeen, Written};
use crate::timeline::{Atom, Part, Timeline};
use crate::{Counterexample, History, Verdict};

/// Refusals that depend on nothing but entries.
const CODES: [&str; 6] =
    ["already_exists", "not_found", "cas_mismatch", "condition_not_met", "locked", "not_lock_holder"];

type Checked = Result<(), Box<Counterexample>>;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let timeline = Timeline::of(history);
    let mut replay = Replay::of(&timeline);
    let replayed = timeline.atoms.iter().try_for_each(|atom| replay.step(atom));
    Verdict::of(replayed.and_then(|()| check_real_time(history, &timeline)).map(|()| timeline.atoms.len() as u64))
}

/// A sound store on its way through the revisions.
struct Replay<'t, 'h> {
    timeline: &'t Timeline<'h>,
    state: State,
    /// Who wrote each key last.
    writers: BTreeMap<&'h str, u64>,
    /// The last revision that changed something, and by whom.
    last: Option<(u64, Option<u64>)>,
    /// When a lock on an entry may end by itself.
    lapses: BTreeMap<&'h str, Micros>,
    /// Entries whose lock may have ended by itself.
    lapsed: BTreeSet<&'h str>,
}

impl<'t, 'h> Replay<'t, 'h> {
    fn of(timeline: &'t Timeline<'h>) -> Self {
        let (state, last) = (State::new(), None);
        let (writers, lapses, lapsed) = Default::default();
        Self { timeline, state, writers, last, lapses, lapsed }
    }

    fn step(&mut self, atom: &Atom<'h>) -> Checked {
        self.let_lapse(atom);
        if atom.part.is_change() {
            self.take_revision(atom)?;
        }
        match atom.part {
            Part::Wrote(write, told) => self.wrote(atom, write, told),
            Part::Transacted(txn, succeeded, told) => self.transacted(atom, txn, succeeded, told),
            Part::Vanished(key) => {
                self.state.remove(key);
                Ok(())
            }
            Part::Refused(write, refused) => self.refused(atom, write, refused),
            Part::Observed(txn, told) => self.observed(atom, txn, told),
            Part::Read(operation, seen) => self.read(atom, operation, seen),
        }
    }

    /// Nothing is known any more of locks that may have ended when this was answered.
    fn let_lapse(&mut self, atom: &Atom<'h>) {
        let end = atom.record.map_or(0, |record| record.end);
        self.lapsed.extend(self.lapses.iter().filter(|(_, lapse)| **lapse <= end).map(|(key, _)| *key));
        self.lapses.retain(|_, lapse| *lapse > end);
    }

    /// Each revision is taken once, but by the parts of one change.
    fn take_revision(&mut self, atom: &Atom<'h>) -> Checked {
        let by = atom.record.map(|record| record.id);
        let shared =
            self.last.filter(|(revision, other)| *revision == atom.revision && other.is_some() && by.is_some());
        self.last = Some((atom.revision, by));
        match shared {
            Some((revision, other)) => {
                Err(Counterexample::new(format!("two changes have revision {revision}"), other.into_iter().chain(by)))
            }
            None => Ok(()),
        }
    }

    fn wrote(&mut self, atom: &Atom<'h>, write: &'h Write, told: Option<&Written>) -> Checked {
        let refused = model::refusal(&self.state, write).filter(|_| self.is_certain(&write.key));
        if let Some(Refused { code, .. }) = refused {
            return self.contradiction(
                atom,
                &write.key,
                &format!("the write took effect where it had to be refused as {code}"),
            );
        }
        let expected = model::apply_told(&mut self.state, write, atom.revision, told);
        match (&write.change, atom.record) {
            (Change::Lock(ms), Some(record)) => drop(self.lapses.insert(&write.key, record.call + ms * 1_000)),
            _ => drop(self.lapses.remove(write.key.as_str())),
        }
        let wrong = told.is_some_and(|told| *told != expected && self.is_certain(&write.key));
        let checked = match wrong {
            true => self.contradiction(atom, &write.key, &format!("the write should have been told {expected:?}")),
            false => Ok(()),
        };
        self.note(atom, &write.key);
        checked
    }

    fn transacted(&mut self, atom: &Atom<'h>, txn: &'h Txn, succeeded: bool, told: Option<&TxnSeen>) -> Checked {
        if !self.is_certain_txn(txn) {
            for write in writes_of(txn.branch(succeeded)) {
                model::apply(&mut self.state, write, atom.revision);
                self.note(atom, &write.key);
            }
            return Ok(());
        }
        let key = first_key(txn);
        match model::txn(&mut self.state, txn, atom.revision) {
            Err(Refused { code, .. }) => self.contradiction(
                atom,
                key,
                &format!("the transaction took effect where it had to be refused as {code}"),
            ),
            Ok(expected) if expected.succeeded != succeeded || told.is_some_and(|told| *told != expected) => {
                self.contradiction(atom, key, &format!("the transaction should have come to {expected:?}"))
            }
            Ok(_) => {
                writes_of(txn.branch(succeeded)).for_each(|write| self.note(atom, &write.key));
                Ok(())
            }
        }
    }

    fn refused(&self, atom: &Atom<'h>, write: &'h Write, told: &Refused) -> Checked {
        if !CODES.contains(&told.code.as_str()) || !self.is_certain(&write.key) {
            return Ok(());
        }
        match model::refusal(&self.state, write) {
            None => self.contradiction(atom, &write.key, "the write was refused although nothing was against it"),
            Some(expected) if expected.code != told.code => self.contradiction(
                atom,
                &write.key,
                &format!("the write should have been refused as {}", expected.code),
            ),
            // A retry long after shows no entry.
            Some(expected) if told.current.is_some() && told.current != expected.current => {
                let shown = expected.current.map_or("nothing".into(), |entry| entry.to_string());
                self.contradiction(atom, &write.key, &format!("the refusal should have shown {shown}"))
            }
            Some(_) => Ok(()),
        }
    }

    fn observed(&mut self, atom: &Atom<'h>, txn: &'h Txn, told: Result<&TxnSeen, &Refused>) -> Checked {
        let depends_on_more = told.is_err_and(|refused| !CODES.contains(&refused.code.as_str()));
        if depends_on_more || !self.is_certain_txn(txn) {
            return Ok(());
        }
        let key = first_key(txn);
        // Where it would write, the answer is wrong and the state counts no more.
        match (model::txn(&mut self.state, txn, atom.revision), told) {
            (Err(expected), Err(told)) if expected.code == told.code => Ok(()),
            (Ok(expected), Ok(told)) if expected == *told => Ok(()),
            (expected, _) => {
                self.contradiction(atom, key, &format!("the transaction should have come to {expected:?}"))
            }
        }
    }

    fn read(&self, atom: &Atom<'h>, operation: &'h Operation, seen: &Seen) -> Checked {
        let (expected, seen): (Vec<&Entry>, Vec<&Entry>) = match (operation, seen) {
            (Operation::Get { key } | Operation::Local { key, .. }, Seen::Entry(entry)) => {
                (self.state.get(key).into_iter().collect(), entry.iter().collect())
            }
            (Operation::List { prefix }, Seen::Entries(entries)) => {
                (model::list(&self.state, prefix).collect(), entries.iter().collect())
            }
            (Operation::Find { prefix, at_least }, Seen::Entries(entries)) => {
                let found = model::list(&self.state, prefix).filter(|entry| model::is_found(entry, *at_least));
                (found.collect(), entries.iter().collect())
            }
            _ => return self.contradiction(atom, "", "the answer is of another operation"),
        };
        let certain = |entry: &&&Entry| self.is_certain(&entry.key);
        let [expected, seen] =
            [&expected, &seen].map(|entries| entries.iter().filter(certain).copied().collect::<Vec<_>>());
        if matches!(operation, Operation::Get { key } | Operation::Local { key, .. } if !self.is_certain(key))
            || expected == seen
        {
            return Ok(());
        }
        let (shown, key) = difference(&expected, &seen);
        self.contradiction(atom, key, &format!("the read should have shown {shown}"))
    }

    fn is_certain(&self, key: &str) -> bool {
        let Timeline { doubtful, fleeting, .. } = self.timeline;
        ![doubtful, fleeting, &self.lapsed].iter().any(|keys| keys.contains(key))
    }

    fn is_certain_txn(&self, txn: &Txn) -> bool {
        let checks = txn.checks.iter().map(|check| check.key.as_str());
        let steps = txn.then.iter().chain(&txn.otherwise).map(|step| step.key());
        checks.chain(steps).all(|key| self.is_certain(key))
    }

    fn note(&mut self, atom: &Atom<'h>, key: &'h str) {
        if let Some(record) = atom.record {
            self.writers.insert(key, record.id);
        }
    }

    /// That this cannot be, beside whoever wrote the key last.
    fn contradiction(&self, atom: &Atom<'h>, key: &str, why: &str) -> Checked {
        let records = atom.record.map(|record| record.id).into_iter().chain(self.writers.get(key).copied());
        Err(Counterexample::new(format!("at revision {}: {why}", atom.revision), records))
    }
}

fn first_key(txn: &Txn) -> &str {
    let checks = txn.checks.iter().map(|check| check.key.as_str());
    checks.chain(txn.then.iter().map(|step| step.key())).next().unwrap_or_default()
}

/// The first entry in which the two differ, in words, and its key.
fn difference<'e>(expected: &[&'e Entry], seen: &[&'e Entry]) -> (String, &'e str) {
    let missing = expected.iter().find(|entry| !seen.contains(entry));
    let extra = seen.iter().find(|entry| !expected.contains(entry));
    match (missing, extra) {
        (Some(entry), _) => (entry.to_string(), &entry.key),
        (None, Some(entry)) if expected.iter().all(|other| other.key != entry.key) => {
            (format!("nothing at {}", entry.key), &entry.key)
        }
        _ => ("the same entries once each and in order".into(), ""),
    }
}

/// Whatever was called after an answer was there comes behind that answer.
fn check_real_time(history: &History, timeline: &Timeline<'_>) -> Checked {
    let first_changes = first_changes(timeline);
    let mut by_call: Vec<&Record> = history.records.iter().collect();
    by_call.sort_by_key(|record| record.call);
    let mut by_end: Vec<&Record> = history.records.iter().filter(|record| record.decided().is_some()).collect();
    by_end.sort_by_key(|record| record.end);
    let (mut ended, mut newest) = (by_end.into_iter().peekable(), None::<(u64, u64)>);
    for record in by_call {
        while let Some(before) = ended.next_if(|before| before.end < record.call) {
            let revision = before.decided().map_or(0, latest_revision);
            newest = newest.max(Some((revision, before.id)));
        }
        let Some((newest, witness)) = newest else { continue };
        let changed = first_changes.get(&record.id).copied();
        let evaluated = record.decided().map(|decided| decided.revision);
        let too_old = match (changed, evaluated) {
            (Some(changed), _) => changed <= newest,
            // May be old, but what came after it may not be older.
            (None, Some(_)) if matches!(record.operation, Operation::Local { .. }) => false,
            (None, Some(evaluated)) => evaluated < newest,
            (None, None) => false,
        };
        if too_old {
            let at = changed.or(evaluated).unwrap_or(0);
            let what =
                format!("revision {newest} was known before this was asked for, yet it is of revision {at}: stale");
            return Err(Counterexample::new(what, [witness, record.id]));
        }
    }
    Ok(())
}

/// The latest revision that an answer tells of.
fn latest_revision(decided: &crate::record::Decided) -> u64 {
    let items = match &decided.seen {
        Seen::Items(items) => {
            items.iter().filter(|item| matches!(item.came, Came::Written(_))).map(|item| item.revision).max()
        }
        _ => None,
    };
    items.unwrap_or(0).max(decided.revision)
}

/// The first revision that each operation changed something at.
fn first_changes(timeline: &Timeline<'_>) -> BTreeMap<u64, u64> {
    let mut first = BTreeMap::new();
    for atom in timeline.atoms.iter().filter(|atom| atom.part.is_change()) {
        if let Some(record) = atom.record {
            first.entry(record.id).or_insert(atom.revision);
        }
    }
    first
}
