//! C3: nothing is there that nobody wrote, that a failed operation wrote, or twice.
//!
//! Owns comparing every value that anybody was shown with the writes. Counts on values that are unique: each is written by one
//! operation.

use std::collections::{BTreeMap, HashMap};

use crate::operation::mark_of;
use crate::record::{Entry, Outcome, Record, Seen, Shown};
use crate::timeline::{Part, Timeline, entries_of};
use crate::{Counterexample, History, Verdict};

type Checked = Result<(), Box<Counterexample>>;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let mut writers = HashMap::new();
    for record in &history.records {
        for write in record.operation.writes() {
            if let Some(mark) = write.change.mark() {
                writers.insert((write.key.as_str(), mark), record);
            }
        }
    }
    let mut judge = Judge { writers, revisions: BTreeMap::new(), checked: 0 };
    let answers = history.records.iter().try_for_each(|record| judge.answer(record));
    let watches = answers.and_then(|()| judge.watches(history));
    let removals = watches.and_then(|()| check_removals(history));
    Verdict::of(removals.map(|()| judge.checked))
}

struct Judge<'h> {
    writers: HashMap<(&'h str, String), &'h Record>,
    /// At which revision each value of a key was seen to be written, and by whom.
    revisions: BTreeMap<(&'h str, String), (u64, u64)>,
    checked: u64,
}

impl<'h> Judge<'h> {
    fn answer(&mut self, record: &'h Record) -> Checked {
        if let Outcome::Absurd(what) = &record.outcome {
            return Err(Counterexample::new(format!("an answer is outside of the contract: {what}"), [record.id]));
        }
        entries_of(record).into_iter().try_for_each(|entry| self.view(entry, Some(record)))?;
        let (crate::operation::Operation::Write(write), Some(decided)) = (&record.operation, record.decided()) else {
            return Ok(());
        };
        match (&decided.seen, write.change.mark()) {
            (Seen::Written(_), Some(mark)) => self.at(&write.key, mark, decided.revision, record.id),
            _ => Ok(()),
        }
    }

    fn watches(&mut self, history: &'h History) -> Checked {
        history.moments.iter().try_for_each(|moment| match &moment.shown {
            Shown::Event(event) => event.entry.iter().try_for_each(|entry| self.view(entry, None)),
            _ => Ok(()),
        })
    }

    fn view(&mut self, entry: &'h Entry, by: Option<&Record>) -> Checked {
        self.checked += 1;
        let value = mark_of(&entry.value);
        let reader = by.map(|record| record.id);
        let Some(writer) = self.writers.get(&(entry.key.as_str(), value.clone())) else {
            return Err(Counterexample::new(format!("nobody wrote {entry}"), reader));
        };
        if let Outcome::Failed(reason) = &writer.outcome {
            let what = format!("{entry} was seen, but its write failed for certain: {reason}");
            return Err(Counterexample::new(what, reader.into_iter().chain([writer.id])));
        }
        let refused = writer.decided().is_some_and(|decided| matches!(decided.seen, Seen::Refused(_)));
        if refused {
            let what = format!("{entry} was seen, but its write was refused");
            return Err(Counterexample::new(what, reader.into_iter().chain([writer.id])));
        }
        if by.is_some_and(|reader| reader.end < writer.call) {
            let what = format!("{entry} was seen before anybody asked for it");
            return Err(Counterexample::new(what, reader.into_iter().chain([writer.id])));
        }
        let writer = writer.id;
        self.at(&entry.key, value, entry.mod_revision, reader.unwrap_or(writer))
    }

    /// A value of a key was written at this revision; it must be the only one.
    fn at(&mut self, key: &'h str, value: String, revision: u64, by: u64) -> Checked {
        let (first, witness) = *self.revisions.entry((key, value.clone())).or_insert((revision, by));
        if first == revision {
            return Ok(());
        }
        let writer = self.writers.get(&(key, value.clone())).map(|record| record.id);
        let what = format!("{key} = {value} took effect twice, at revisions {first} and {revision}");
        Err(Counterexample::new(what, [witness, by].into_iter().chain(writer)))
    }
}

/// What goes, somebody removed, unless it lives for a while only.
fn check_removals(history: &History) -> Checked {
    let timeline = Timeline::of(history);
    for atom in &timeline.atoms {
        if let Part::Vanished(key) = atom.part
            && !timeline.fleeting.contains(key)
        {
            let what = format!("nobody removed {key}, and at revision {} it was gone", atom.revision);
            return Err(Counterexample::new(what, []));
        }
    }
    Ok(())
}
