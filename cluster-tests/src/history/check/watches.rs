//! C5: a watch shows each change of its keys once, whole, and in the order of revisions, over whatever breaks.
//!
//! Owns comparing what each watch was shown with the changes that are known from all other sources: what writers were told,
//! what readers saw and what other watches were shown.

use std::collections::BTreeMap;

use crate::history::operation::mark_of;
use crate::history::record::{Event, Moment, Shown};
use crate::history::timeline::Timeline;
use crate::history::{Counterexample, History, Verdict};

type Checked = Result<u64, Box<Counterexample>>;
/// Every change: by revision and key the new value and who asked for it.
type Changes<'h> = BTreeMap<(u64, &'h str), (Option<String>, Option<u64>)>;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let timeline = Timeline::of(history);
    let mut changes = Changes::new();
    for atom in timeline.atoms.iter().filter(|atom| atom.part.is_change()) {
        for (key, value) in atom.changes() {
            changes.insert((atom.revision, key), (value, atom.record.map(|record| record.id)));
        }
    }
    let watches = history.watches();
    let judged = watches.into_iter().map(|(number, moments)| Watch { history, number }.judge(&moments, &changes));
    Verdict::of(judged.sum())
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
        let Some((value, by)) = changes.get(&(event.revision, event.key.as_str())) else {
            return wrong("nobody made such a change".into(), None);
        };
        let shown = event.entry.as_ref();
        if shown.map(|entry| mark_of(&entry.value)) != *value {
            return wrong(format!("it shows {:?}", shown.map(|entry| &entry.value)), *by);
        }
        if let Some(entry) = shown
            && (entry.mod_revision, &entry.key) != (event.revision, &event.key)
        {
            return wrong(format!("it shows {entry}"), *by);
        }
        match by.and_then(|by| self.history.record(by)) {
            Some(record) if record.call > at => wrong("it was shown before anybody asked for it".into(), *by),
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
        for ((revision, key), (_, by)) in due {
            checked += 1;
            if !shown.contains(&(*revision, *key)) {
                let what = format!(
                    "watch {} was shown everything up to {last}, but not the change of {key} at {revision}",
                    self.number
                );
                return Err(Counterexample::new(what, *by));
            }
        }
        Ok(checked)
    }

    fn name(&self, event: &Event) -> String {
        format!("watch {}: the change of {} at {}.{}", self.number, event.key, event.revision, event.index)
    }
}
