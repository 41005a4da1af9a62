//! How many connections there may be, of one owner and of all.
//!
//! Owns the counting. Where all permits are taken, the newest comer gets that of the oldest one of the crowd that has the most: a crowd
//! that comes in turn pushes itself out, and whoever does in time what is asked for is through before its turn comes. Never looks
//! at a connection.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// A limit for each `K` and for all together. Cloning shares it.
#[derive(Debug)]
pub(super) struct EvictingLimit<K> {
    /// For one key.
    of_one_max: usize,
    /// For all.
    all_max: usize,
    taken: Arc<Mutex<Rows<K>>>,
}

/// Who has a permit.
#[derive(Debug)]
struct Rows<K> {
    /// The oldest first.
    rows: VecDeque<Taken<K>>,
    /// Of the next one.
    serial: u64,
}

impl<K> Clone for EvictingLimit<K> {
    fn clone(&self) -> Self {
        Self { of_one_max: self.of_one_max, all_max: self.all_max, taken: Arc::clone(&self.taken) }
    }
}

#[derive(Debug)]
struct Taken<K> {
    serial: u64,
    key: K,
    end: CancellationToken,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub(super) struct EvictingPermit<K> {
    serial: u64,
    of: EvictingLimit<K>,
}

impl<K> Drop for EvictingPermit<K> {
    fn drop(&mut self) {
        self.of.taken.lock().rows.retain(|taken| taken.serial != self.serial);
    }
}

impl<K: Ord + Copy> EvictingLimit<K> {
    pub fn new(of_one_max: usize, all_max: usize) -> Self {
        assert!(0 < of_one_max && of_one_max <= all_max, "{of_one_max} of {all_max} permits");
        Self { of_one_max, all_max, taken: Arc::new(Mutex::new(Rows { rows: VecDeque::new(), serial: 0 })) }
    }

    /// Takes a permit. Whoever has to make room for it has its token cancelled, and so has this one in its time.
    pub fn take(&self, key: K, end: CancellationToken) -> EvictingPermit<K> {
        let mut taken = self.taken.lock();
        let Rows { rows: taken, serial: next } = &mut *taken;
        let serial = *next;
        *next += 1;
        let crowd = match taken.iter().filter(|other| other.key == key).count() {
            own if own >= self.of_one_max => Some(key),
            _ if taken.len() >= self.all_max => largest(taken),
            _ => None,
        };
        if let Some(crowd) = crowd
            && let Some(at) = taken.iter().position(|other| other.key == crowd)
            && let Some(oldest) = taken.remove(at)
        {
            oldest.end.cancel();
        }
        taken.push_back(Taken { serial, key, end });
        EvictingPermit { serial, of: self.clone() }
    }
}

/// Who has the most.
fn largest<K: Ord + Copy>(taken: &VecDeque<Taken<K>>) -> Option<K> {
    let mut counts = BTreeMap::<K, usize>::new();
    for taken in taken {
        *counts.entry(taken.key).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(limit: &EvictingLimit<u32>, key: u32) -> (EvictingPermit<u32>, CancellationToken) {
        let end = CancellationToken::new();
        (limit.take(key, end.clone()), end)
    }

    #[test]
    fn one_that_takes_more_than_its_part_pushes_out_its_own_oldest() {
        let limit = EvictingLimit::new(2, 4);
        let (_honest, stays) = take(&limit, 1);
        let (_first, first) = take(&limit, 7);
        let (second_permit, second) = take(&limit, 7);
        let (_third, third) = take(&limit, 7);
        assert!(first.is_cancelled() && !second.is_cancelled() && !third.is_cancelled() && !stays.is_cancelled());
        drop(second_permit);
        let (_fourth, fourth) = take(&limit, 7);
        assert!(!second.is_cancelled(), "it had gone by itself");
        assert!(!third.is_cancelled() && !fourth.is_cancelled(), "its permit was free");
    }

    #[test]
    fn where_all_is_taken_the_largest_crowd_makes_room() {
        let limit = EvictingLimit::new(3, 4);
        let (_one, alone) = take(&limit, 1);
        let crowd: Vec<_> = (0..3).map(|_| take(&limit, 7)).collect();
        let (_two, newcomer) = take(&limit, 2);
        assert!(crowd[0].1.is_cancelled(), "the oldest of the crowd");
        assert!(!alone.is_cancelled() && !newcomer.is_cancelled() && !crowd[1].1.is_cancelled());
        assert!(limit.taken.lock().rows.len() == 4);
    }

    #[test]
    fn a_place_is_free_once_it_is_dropped() {
        let limit = EvictingLimit::new(1, 1);
        for _ in 0..3 {
            let (permit, end) = take(&limit, 1);
            drop(permit);
            assert!(!end.is_cancelled());
        }
        assert!(limit.taken.lock().rows.is_empty());
    }
}
