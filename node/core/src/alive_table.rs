//! A table of what is in use: each thing is there for as long as somebody has it.
//!
//! Owns finding and making it, and forgetting those that are gone. Never keeps anything alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A table of so few is not worth a look.
const SWEPT_MIN: usize = 64;

/// What is in use, by its key.
#[derive(Debug)]
pub struct AliveTable<K, V>(Mutex<Entries<K, V>>);

#[derive(Debug)]
struct Entries<K, V> {
    all: BTreeMap<K, Weak<V>>,
    /// At which size those are forgotten that are gone.
    sweep_at: usize,
}

impl<K: Ord, V> Entries<K, V> {
    /// Forgets those that are gone where there are too many to leave that for later.
    fn sweep(&mut self) {
        if self.all.len() >= self.sweep_at {
            self.all.retain(|_, value| value.strong_count() > 0);
            self.sweep_at = 2 * self.all.len() + SWEPT_MIN;
        }
    }
}

impl<K: Ord, V> AliveTable<K, V> {
    /// What is in use under this key; made where there is nothing.
    pub fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut entries = self.0.lock();
        if let Some(known) = entries.all.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        entries.sweep();
        let made = Arc::new(make());
        entries.all.insert(key, Arc::downgrade(&made));
        made
    }

    /// Notes under this key what is in use anyway, in place of what was noted there before.
    pub fn note(&self, key: K, value: &Arc<V>) {
        let mut entries = self.0.lock();
        entries.sweep();
        entries.all.insert(key, Arc::downgrade(value));
    }

    /// Everything that is in use, with its key.
    pub fn entries(&self) -> Vec<(K, Arc<V>)>
    where
        K: Clone,
    {
        self.0.lock().all.iter().filter_map(|(key, value)| Some((key.clone(), value.upgrade()?))).collect()
    }

    /// Everything that is in use, by key.
    pub fn all(&self) -> Vec<Arc<V>> {
        self.0.lock().all.values().filter_map(Weak::upgrade).collect()
    }
}

impl<K, V> Default for AliveTable<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Entries { all: BTreeMap::new(), sweep_at: SWEPT_MIN }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_found_and_what_is_gone_is_forgotten() {
        let table = AliveTable::default();
        let kept = table.get(0, || 7);
        for key in 1..10_000 {
            drop(table.get(key, || 7));
        }
        assert!(table.0.lock().all.len() <= 2 * (SWEPT_MIN + 2));
        assert!(Arc::ptr_eq(&kept, &table.get(0, || 8)));
        drop(kept);
        assert_eq!(*table.get(0, || 8), 8, "nobody had it any more");
        let other = Arc::new(9);
        table.note(0, &other);
        assert_eq!(table.all(), [Arc::clone(&other)], "and nothing else is in use");
        assert_eq!(table.entries(), [(0, other)]);
    }
}
