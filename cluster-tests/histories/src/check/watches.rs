//! C5: a watch shows each change of its keys once, whole, and in the order of revisions, over whatever breaks.
//!
//! Owns comparing what each watch was shown with the changes that are known from all other sources: what writers asked for and were
//! told, what readers saw and what other watches were shown. That an entry has outlived its time shows in reads before its removal
//! is a change, so no revision says by when a watch has to show that.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{self, State};
use crate::operation::mark_of;
use crate::record::{Entry, Event, Moment, Shown, Written};
use crate::timeline::{Part, Timeline};
use crate::{Counterexample, History, Verdict};

type Checked = Result<u64, Box<Counterexample>>;
/// Every change, by revision and key.
type Changes<'h> = BTreeMap<(u64, &'h str), Known<'h>>;

/// What is known of a change.
struct Known<'h> {
    /// The mark of the new value; none where the entry went.
    mark: Option<String>,
    /// Who asked for it, where somebody did.
    by: Option<u64>,
    /// What that client was told, if it was told.
    told: Option<&'h Written>,
    /// The new value, where it follows from what was asked for.
    value: Option<Value>,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let changes = changes_of(&Timeline::of(history));
    let watches = history.watches();
    let judged = watches.into_iter().map(|(number, moments)| Watch { history, number }.judge(&moments, &changes));
    Verdict::of(judged.sum())
}

fn changes_of<'h>(timeline: &Timeline<'h>) -> Changes<'h> {
    let (mut changes, mut state) = (Changes::new(), State::new());
    for atom in timeline.atoms.iter().filter(|atom| atom.part.is_change()) {
        let by = atom.record.map(|record| record.id);
        if let Part::Vanished(key) = atom.part {
            state.remove(key);
            changes.insert((atom.revision, key), Known { mark: None, by, told: None, value: None });
        }
        for (write, told) in atom.writes() {
            let key = write.key.as_str();
            model::apply_told(&mut state, write, atom.revision, told);
            // What a patch leaves follows only where everything is known that was there before.
            let is_certain = !timeline.doubtful.contains(key) && !timeline.fleeting.contains(key);
            let patched = state.get(key).filter(|_| is_certain).map(|entry| &entry.value);
            let value = write.change.value().or(patched).cloned();
            changes.insert((atom.revision, key), Known { mark: write.change.mark(), by, told, value });
        }
    }
    changes
}

impl Known<'_> {
    /// What an entry that is shown as the outcome contradicts, in words.
    fn contradicted_by(&self, entry: &Entry) -> Option<String> {
        if let Some(value) = self.value.as_ref().filter(|value| **value != entry.value) {
            return Some(format!("it should be {value}"));
        }
        let told = self.told?;
        let differs = |told: Option<u64>, shown: Option<u64>| told.is_some() && shown.is_some() && told != shown;
        let is_other = differs(told.cas, entry.cas)
            || differs(told.create_revision, Some(entry.create_revision))
            || differs(told.version, Some(entry.version));
        is_other.then(|| format!("its writer was told {told:?}, and it shows {entry:?}"))
    }
}

/// One watch.
struct Watch<'h> {
    history: &'h History,
    number: u64,
}

impl Watch<'_> {
    fn judge(&self, moments: &[&Moment], changes: &Changes<'_>) -> Checked {
        let (mut prefix, mut from, mut upto) = ("", u64::MAX, 0);
        let mut events: Vec<(u64, &Event)> = Vec::new();
        for moment in moments {
            match &moment.shown {
                Shown::Begun { prefix: wanted, from: first } => (prefix, from) = (wanted, *first),
                Shown::Event(event) => events.push((moment.at, event)),
                Shown::Progress(revision) => upto = upto.max(*revision),
                // None of them reads so slowly, or begins so late, that it may be cut off.
                Shown::Ended(why) => {
                    return Err(Counterexample::new(format!("watch {} ended: {why}", self.number), []));
                }
            }
        }
        self.check_order(&events)?;
        for (at, event) in &events {
            self.check_event(*at, event, (prefix, from), changes)?;
        }
        // More of the last revision may have been on its way.
        let last = events.last().map_or(0, |(_, event)| event.revision.saturating_sub(1));
        self.check_complete(&events, prefix, from..=upto.max(last), changes)
    }

    fn check_order(&self, events: &[(u64, &Event)]) -> Result<(), Box<Counterexample>> {
        for pair in events.windows(2) {
            let [before, after] = [pair[0].1, pair[1].1];
            let [first, second] = [before, after].map(|event| (event.revision, event.index));
            if first >= second {
                let how = if first == second { "twice" } else { "out of order" };
                let what = format!("{} was shown behind {first:?}: {how}", self.name(after));
                return Err(Counterexample::new(what, []));
            }
        }
        Ok(())
    }

    fn check_event(
        &self,
        at: u64,
        event: &Event,
        (prefix, from): (&str, u64),
        changes: &Changes<'_>,
    ) -> Result<(), Box<Counterexample>> {
        let wrong = |why: String, by: Option<u64>| Err(Counterexample::new(format!("{}: {why}", self.name(event)), by));
        if !event.key.starts_with(prefix) || event.revision < from {
            return wrong(format!("it watches {prefix} from revision {from} on"), None);
        }
        let Some(known) = changes.get(&(event.revision, event.key.as_str())) else {
            return wrong("nobody made such a change".into(), None);
        };
        let shown = event.entry.as_ref();
        if shown.map(|entry| mark_of(&entry.value)) != known.mark {
            return wrong(format!("it shows {:?}", shown.map(|entry| &entry.value)), known.by);
        }
        if let Some(entry) = shown
            && (entry.mod_revision, &entry.key) != (event.revision, &event.key)
        {
            return wrong(format!("it shows {entry}"), known.by);
        }
        if let Some(why) = shown.and_then(|entry| known.contradicted_by(entry)) {
            return wrong(why, known.by);
        }
        match known.by.and_then(|by| self.history.record(by)) {
            Some(record) if record.call > at => wrong("it was shown before anybody asked for it".into(), known.by),
            _ => Ok(()),
        }
    }

    fn check_complete(
        &self,
        events: &[(u64, &Event)],
        prefix: &str,
        revisions: std::ops::RangeInclusive<u64>,
        changes: &Changes<'_>,
    ) -> Checked {
        if revisions.is_empty() {
            return Ok(0);
        }
        let shown: std::collections::BTreeSet<_> =
            events.iter().map(|(_, event)| (event.revision, event.key.as_str())).collect();
        let (first, last) = (*revisions.start(), *revisions.end());
        let due = changes.range((first, "")..(last + 1, "")).filter(|((_, key), _)| key.starts_with(prefix));
        let mut checked = 0;
        for ((revision, key), known) in due {
            checked += 1;
            if !shown.contains(&(*revision, *key)) {
                let what = format!(
                    "watch {} was shown everything up to {last}, but not the change of {key} at {revision}",
                    self.number
                );
                return Err(Counterexample::new(what, known.by));
            }
        }
        Ok(checked)
    }

    fn name(&self, event: &Event) -> String {
        format!("watch {}: the change of {} at {}.{}", self.number, event.key, event.revision, event.index)
    }
}
