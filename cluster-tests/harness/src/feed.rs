//! What a watch was shown, and what must be true of it.
//!
//! Owns the checks: nothing is missing, nothing comes twice, nothing out of order. Knows revisions and what writers were told;
//! never looks at a node.

use std::collections::BTreeMap;

use quorate_client::api::{WatchEvent, WatchEventKind};

/// The events of a watch of all keys, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    events: Vec<WatchEvent>,
}

/// A write as its writer was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The revision it took.
    pub revision: u64,
    /// The keys it wrote, in order.
    pub keys: Vec<String>,
    /// The value of all of them, as JSON text.
    pub value: String,
}

impl Feed {
    /// Takes an event.
    pub fn push(&mut self, event: WatchEvent) {
        self.events.push(event);
    }

    /// All events so far.
    pub fn events(&self) -> &[WatchEvent] {
        &self.events
    }

    /// What is wrong with the events as a feed of every change after revision `after` up to `last`, where no revision was taken
    /// by anything but changes of keys.
    pub fn faults(&self, after: u64, last: u64) -> Vec<String> {
        let (mut revision, mut index) = (after, u32::MAX);
        let mut faults = Vec::new();
        for event in &self.events {
            let follows = match event.index {
                Some(0) => event.revision == revision + 1,
                Some(next) => event.revision == revision && next == index.wrapping_add(1),
                None => false,
            };
            if !follows {
                let place = format!("{}.{:?} of {}", event.revision, event.index, event.key);
                faults.push(format!("{place} comes behind {revision}.{index}"));
            }
            (revision, index) = (event.revision, event.index.unwrap_or(u32::MAX));
        }
        if revision != last {
            faults.push(format!("the last event is of revision {revision}, the last change of {last}"));
        }
        faults
    }

    /// What is wrong with the events, seeing what writers were told.
    pub fn faults_beside(&self, writes: &[Acknowledged]) -> Vec<String> {
        let mut by_revision: BTreeMap<u64, Vec<&WatchEvent>> = BTreeMap::new();
        for event in &self.events {
            by_revision.entry(event.revision).or_default().push(event);
        }
        let shown = |event: &&WatchEvent| {
            let value = event.entry.as_ref().and_then(|entry| entry.value.as_ref());
            (event.key.to_string(), value.map_or(String::new(), |value| value.0.get().to_owned()))
        };
        let wrong = |write: &&Acknowledged| {
            let seen: Vec<_> = by_revision.get(&write.revision).into_iter().flatten().map(shown).collect();
            let told: Vec<_> = write.keys.iter().map(|key| (key.clone(), write.value.clone())).collect();
            seen != told
        };
        writes.iter().filter(wrong).map(|write| format!("a write is not shown as it was: {write:?}")).collect()
    }

    /// The entries that are there after the events, if there were none before: key and version.
    pub fn outcome(&self) -> BTreeMap<String, u64> {
        let mut entries = BTreeMap::new();
        for event in &self.events {
            match (event.kind, &event.entry) {
                (WatchEventKind::Put, Some(entry)) => entries.insert(event.key.to_string(), entry.version),
                _ => entries.remove(&event.key.to_string()),
            };
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(revision: u64, index: u32) -> WatchEvent {
        let (kind, key) = (WatchEventKind::Delete, "k".into());
        WatchEvent { kind, revision, index: Some(index), key, entry: None, cause: None, prev: None, initial: false }
    }

    fn feed(events: &[(u64, u32)]) -> Feed {
        Feed { events: events.iter().map(|(revision, index)| event(*revision, *index)).collect() }
    }

    #[test]
    fn a_gap_a_repeat_another_order_and_half_a_transaction_are_noticed() {
        assert_eq!(feed(&[(4, 0), (5, 0), (5, 1), (6, 0)]).faults(3, 6), Vec::<String>::new());
        for bad in [
            vec![(4, 0), (6, 0)],
            vec![(4, 0), (5, 0), (5, 0), (6, 0)],
            vec![(4, 0), (5, 1), (5, 0), (6, 0)],
            vec![(4, 0), (5, 1), (6, 0)],
            vec![(5, 0), (6, 0)],
            vec![(4, 0), (5, 0)],
            vec![],
        ] {
            assert!(!feed(&bad).faults(3, 6).is_empty(), "{bad:?}");
        }
    }

    #[test]
    fn a_write_that_is_shown_otherwise_or_in_part_is_noticed() {
        let write = |keys: &[&str]| Acknowledged {
            revision: 4,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            value: String::new(),
        };
        assert!(feed(&[(4, 0)]).faults_beside(&[write(&["k"])]).is_empty());
        for keys in [&["l"][..], &["k", "k"], &[]] {
            assert_eq!(feed(&[(4, 0)]).faults_beside(&[write(keys)]).len(), 1, "{keys:?}");
        }
        assert_eq!(feed(&[(5, 0)]).faults_beside(&[write(&["k"])]).len(), 1);
    }
}
