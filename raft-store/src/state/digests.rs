//! Digests of the state at log indexes of late: what nodes compare with each other.
//!
//! Owns which are kept. Never judges: two nodes that hold different digests at one index have diverged, and who of them is
//! wrong is for a majority to say.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;

/// Every node ends an apply group at the multiples of this, so that nodes under load have digests at the same indexes,
/// however entries reach them. A group is a write to the database: seldom enough to cost nothing.
const MARK_EVERY: u64 = 256;

/// Marks kept: minutes of load. A node that is further behind is compared once it has caught up.
const MARKS_KEPT: usize = 64;

/// Other indexes kept. Where there are few writes each is a group of its own, on every node.
const OTHERS_KEPT: usize = 32;

/// The digests of late.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    marks: VecDeque<(u64, u128)>,
    others: VecDeque<(u64, u128)>,
}

/// Whether an apply group has to end at this index.
pub(crate) fn is_mark(index: u64) -> bool {
    index > 0 && index.is_multiple_of(MARK_EVERY)
}

impl Digests {
    /// Keeps the digest after a group.
    pub(crate) fn note(&self, index: u64, digest: u128) {
        let mut kept = self.0.lock();
        let Kept { marks, others } = &mut *kept;
        let (ring, most) = if is_mark(index) { (marks, MARKS_KEPT) } else { (others, OTHERS_KEPT) };
        if ring.len() == most {
            ring.pop_front();
        }
        ring.push_back((index, digest));
    }

    /// The state was replaced: what it was before is no longer of interest.
    pub(crate) fn restart(&self, index: u64, digest: u128) {
        *self.0.lock() = Kept::default();
        self.note(index, digest);
    }

    /// All that are kept.
    pub(crate) fn all(&self) -> BTreeMap<u64, u128> {
        let kept = self.0.lock();
        kept.marks.iter().chain(&kept.others).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_while_others_come_and_go() {
        let digests = Digests::default();
        for index in 1..=10_000 {
            digests.note(index, u128::from(index) * 7);
        }
        let all = digests.all();
        assert_eq!(all.len(), MARKS_KEPT.min(10_000 / MARK_EVERY as usize) + OTHERS_KEPT);
        assert!(all.iter().all(|(index, digest)| *digest == u128::from(*index) * 7));
        assert!(all.contains_key(&10_000) && all.contains_key(&MARK_EVERY) && !all.contains_key(&9_000));
        digests.restart(5, 1);
        assert_eq!(digests.all(), BTreeMap::from([(5, 1)]));
    }
}
