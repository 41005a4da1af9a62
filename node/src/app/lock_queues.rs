//! Queues of those who wait to lock entries, on the node that leads: first come, first served.
//!
//! Owns the order and nothing else: a queue is memory of one leader, so it begins anew at the next one. Whoever waits at another
//! node has its place kept for a moment between two questions. Never reads the state, never proposes anything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quorate_store::types::Key;
use tokio::sync::Notify;

/// How long a place is kept for who does not ask for it: some ways between two nodes, and short for those behind it.
pub const KEPT: Duration = Duration::from_secs(2);

/// Most places in all queues. Who comes later does not wait.
const PLACES_MAX: usize = 65_536;

/// The queues of all entries. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LockQueues(Arc<Mutex<Queues>>);

#[derive(Debug, Default)]
struct Queues {
    queues: BTreeMap<Key, VecDeque<Place>>,
    places: usize,
}

#[derive(Debug)]
struct Place {
    id: u128,
    /// Told when it comes to the head.
    first: Arc<Notify>,
    /// How often it was attended to: tells one absence from another.
    visits: u64,
    /// How many attend to it at the moment.
    present: usize,
}

/// Somebody who attends to a place. What becomes of it when this is dropped says [`Stay`].
#[derive(Debug)]
pub struct Attended {
    queues: LockQueues,
    key: Key,
    id: u128,
    first: Arc<Notify>,
    stay: Stay,
}

/// What becomes of a place that nobody attends to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It is given up.
    Gone,
    /// It is kept for [`KEPT`].
    Kept,
}

impl LockQueues {
    /// Attends to the place of this id in the queue of an entry, at its end where it has none yet. `None` where there is no room.
    pub fn attend(&self, key: &Key, id: u128, stay: Stay) -> Option<Attended> {
        let mut queues = self.0.lock();
        let is_known = queues.queues.get(key).is_some_and(|queue| queue.iter().any(|place| place.id == id));
        if !is_known {
            if queues.places >= PLACES_MAX {
                return None;
            }
            queues.places += 1;
            let place = Place { id, first: Arc::default(), visits: 0, present: 0 };
            queues.queues.entry(key.clone()).or_default().push_back(place);
        }
        let place = queues.place(key, id).expect("it is there now");
        place.visits += 1;
        place.present += 1;
        let first = Arc::clone(&place.first);
        Some(Attended { queues: self.clone(), key: key.clone(), id, first, stay })
    }

    /// Gives up a place, if it is there.
    pub fn leave(&self, key: &Key, id: u128) {
        let queues = &mut *self.0.lock();
        let Some(queue) = queues.queues.get_mut(key) else { return };
        let before = queue.len();
        queue.retain(|place| place.id != id);
        queues.places -= before - queue.len();
        match queue.front() {
            // Whoever is first already looks once more, which is no harm.
            Some(next) => next.first.notify_one(),
            None => drop(queues.queues.remove(key)),
        }
    }

    /// How many wait.
    pub fn places(&self) -> usize {
        self.0.lock().places
    }

    /// Nobody attends to a place now: gives it up unless somebody does in time.
    fn keep(&self, key: Key, id: u128, visits: u64) {
        let queues = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let is_alone =
                queues.0.lock().place(&key, id).is_some_and(|place| place.visits == visits && place.present == 0);
            if is_alone {
                queues.leave(&key, id);
            }
        });
    }
}

impl Queues {
    fn place(&mut self, key: &Key, id: u128) -> Option<&mut Place> {
        self.queues.get_mut(key)?.iter_mut().find(|place| place.id == id)
    }
}

impl Attended {
    /// Waits until nobody is before it.
    pub async fn come_first(&self) {
        while !self.is_first() {
            self.first.notified().await;
        }
    }

    fn is_first(&self) -> bool {
        let queues = self.queues.0.lock();
        queues.queues.get(&self.key).and_then(VecDeque::front).is_some_and(|place| place.id == self.id)
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if self.stay == Stay::Gone {
            return self.queues.leave(&self.key, self.id);
        }
        let left = self.queues.0.lock().place(&self.key, self.id).map(|place| {
            // Another place may have the id by now.
            place.present = place.present.saturating_sub(1);
            (place.visits, place.present)
        });
        if let Some((visits, 0)) = left {
            self.queues.keep(self.key.clone(), self.id, visits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new("k").expect("a key")
    }

    async fn comes_first(place: &Attended) -> bool {
        tokio::time::timeout(Duration::from_millis(1), place.come_first()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_came_first_is_first_and_the_next_when_that_one_has_left() {
        let queues = LockQueues::default();
        let places: Vec<_> = (0..3).map(|id| queues.attend(&key(), id, Stay::Gone).expect("room")).collect();
        let mut places = VecDeque::from(places);
        while let Some(first) = places.pop_front() {
            assert!(comes_first(&first).await);
            for other in &places {
                assert!(!comes_first(other).await);
            }
            let (next, left) = (places.front(), async { drop(first) });
            match next {
                Some(next) => drop(tokio::join!(next.come_first(), left)),
                None => left.await,
            }
        }
        assert_eq!(queues.places(), 0);
        assert!(queues.0.lock().queues.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_for_who_comes_back_in_time_and_for_nobody_else() {
        let queues = LockQueues::default();
        let away = queues.attend(&key(), 1, Stay::Kept).expect("room");
        let next = queues.attend(&key(), 2, Stay::Gone).expect("room");
        drop(away);
        assert!(!comes_first(&next).await, "it may come back");
        tokio::time::sleep(KEPT / 2).await;
        let back = queues.attend(&key(), 1, Stay::Kept).expect("room");
        tokio::time::sleep(KEPT).await;
        assert!(comes_first(&back).await && !comes_first(&next).await, "it is there");
        drop(back);
        tokio::time::timeout(2 * KEPT, next.come_first()).await.expect("it did not come back");
        assert_eq!(queues.places(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_by_its_id_makes_room_at_once() {
        let queues = LockQueues::default();
        drop(queues.attend(&key(), 1, Stay::Kept).expect("room"));
        let next = queues.attend(&key(), 2, Stay::Gone).expect("room");
        assert!(!comes_first(&next).await);
        queues.leave(&key(), 1);
        queues.leave(&key(), 7);
        assert!(comes_first(&next).await);
    }
}
