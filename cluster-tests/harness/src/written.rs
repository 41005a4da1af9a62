//! What clients did and were told, and what must be true of it afterwards.
//!
//! Owns the record of writes to keys that have one writer each, and the check that none is lost and none is made up.
//! Never looks at a node itself.

use std::collections::BTreeMap;

/// The writes to one key by its only writer: sequence numbers 1, 2, 3, …
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// The last number whose write was acknowledged; 0 for none.
    pub acknowledged: u64,
    /// The last number that was sent; the same, or more where the outcome of a write is not known.
    pub attempted: u64,
}

/// The writes of all writers, by key.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    keys: BTreeMap<String, Written>,
}

impl Writes {
    /// Those of a record: of each key the last number that was acknowledged and the last one that was sent.
    pub fn of<'a>(record: impl Iterator<Item = (&'a str, u64, u64)>) -> Self {
        let of =
            |(key, acknowledged, attempted): (&str, u64, u64)| (key.to_owned(), Written { acknowledged, attempted });
        Self { keys: record.map(of).collect() }
    }

    /// Notes that a write is about to be sent, and returns its number.
    pub fn begin(&mut self, key: &str) -> u64 {
        let written = self.keys.entry(key.to_owned()).or_default();
        written.attempted += 1;
        written.attempted
    }

    /// Notes that the write with this number was acknowledged.
    pub fn acknowledge(&mut self, key: &str, number: u64) {
        let written = self.keys.get_mut(key).expect("a write begins before it is acknowledged");
        assert!(number <= written.attempted, "{key}: acknowledged {number}, sent only {}", written.attempted);
        written.acknowledged = written.acknowledged.max(number);
    }

    /// Takes over the keys of another history; no key may be in both.
    pub fn merge(&mut self, other: Writes) {
        for (key, written) in other.keys {
            let before = self.keys.insert(key.clone(), written);
            assert!(before.is_none(), "{key} has two writers");
        }
    }

    /// The same attempts, but acknowledged only as far as `earlier`, a copy of this history from before, has it.
    pub fn acknowledged_by(mut self, earlier: &Writes) -> Self {
        for (key, written) in &mut self.keys {
            written.acknowledged = earlier.keys.get(key).map_or(0, |earlier| earlier.acknowledged);
        }
        self
    }

    /// Every key that was written, or may have been.
    pub fn keys(&self) -> impl Iterator<Item = (&str, Written)> {
        self.keys.iter().map(|(key, written)| (key.as_str(), *written))
    }

    /// How many writes were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.keys.values().map(|written| written.acknowledged).sum()
    }

    /// Compares with what a linearizable read found for each key (0 for nothing). Returns one sentence for each key
    /// that lost an acknowledged write or shows one that nobody sent.
    pub fn faults(&self, found: &BTreeMap<String, u64>) -> Vec<String> {
        let fault = |(key, written): (&String, &Written)| {
            let now = found.get(key).copied().unwrap_or(0);
            let (lowest, highest) = (written.acknowledged, written.attempted);
            (!(lowest..=highest).contains(&now))
                .then(|| format!("{key}: write {lowest} was acknowledged and {highest} sent, but {now} is there"))
        };
        self.keys.iter().filter_map(fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two writes to `k`, the first acknowledged.
    fn history() -> Writes {
        let mut history = Writes::default();
        let first = history.begin("k");
        history.acknowledge("k", first);
        history.begin("k");
        history
    }

    #[test]
    fn a_write_of_unknown_fate_may_be_there_or_not() {
        for now in [1, 2] {
            assert_eq!(history().faults(&BTreeMap::from([("k".into(), now)])), Vec::<String>::new());
        }
    }

    #[test]
    fn a_lost_acknowledged_write_is_a_fault() {
        assert_eq!(history().faults(&BTreeMap::new()).len(), 1);
    }

    #[test]
    fn a_write_that_nobody_sent_is_a_fault() {
        assert_eq!(history().faults(&BTreeMap::from([("k".into(), 3)])).len(), 1);
    }
}
