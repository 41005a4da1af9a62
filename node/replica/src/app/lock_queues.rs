//! Queues of those who wait to lock entries, on the node that leads: first come, first served.
//!
//! Owns the order and nothing else: a queue is memory of one leader, so it begins anew at the next one. Whoever waits at another
//! node has its place kept for a moment between two questions. Never reads the state, never proposes anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quorate_machine::types::Key;
use quorate_threads::watchdog;
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
    queues: BTreeMap<Key, Queue>,
    places: usize,
    /// How many places were ever given.
    given: u64,
}

/// Those who wait for one entry. Thousands may, and each comes back every second from another node: no place is searched for.
#[derive(Debug, Default)]
struct Queue {
    /// By id.
    places: BTreeMap<u128, Place>,
    /// Ids in the order in which they came.
    order: BTreeMap<u64, u128>,
}

#[derive(Debug)]
struct Place {
    /// Its place in the order.
    number: u64,
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
        let place = queues.place_or_new(key, id)?;
        place.visits += 1;
        place.present += 1;
        let first = Arc::clone(&place.first);
        Some(Attended { queues: self.clone(), key: key.clone(), id, first, stay })
    }

    /// Gives up a place, if it is there.
    pub fn leave(&self, key: &Key, id: u128) {
        let queues = &mut *self.0.lock();
        let Some(queue) = queues.queues.get_mut(key) else { return };
        let Some(place) = queue.places.remove(&id) else { return };
        queue.order.remove(&place.number);
        queues.places -= 1;
        match queue.order.first_key_value() {
            Some((number, next)) if *number > place.number => queue.places[next].first.notify_one(),
            // The first one stays the first.
            Some(_) => {}
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
        watchdog::spawn(async move {
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
        self.queues.get_mut(key)?.places.get_mut(&id)
    }

    /// At the end of the queue where there is none yet; `None` where there is no room.
    fn place_or_new(&mut self, key: &Key, id: u128) -> Option<&mut Place> {
        if self.place(key, id).is_none() {
            if self.places >= PLACES_MAX {
                return None;
            }
            self.places += 1;
            self.given += 1;
            let queue = self.queues.entry(key.clone()).or_default();
            queue.order.insert(self.given, id);
            queue.places.insert(id, Place { number: self.given, first: Arc::default(), visits: 0, present: 0 });
        }
        self.place(key, id)
    }
}

impl Queue {
    /// The id of whose turn it is.
    fn first(&self) -> Option<u128> {
        self.order.first_key_value().map(|(_, id)| *id)
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
        queues.queues.get(&self.key).and_then(Queue::first) == Some(self.id)
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
    use std::collections::VecDeque;

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
    async fn thousands_wait_for_one_entry_in_the_order_in_which_they_came() {
        const WAITERS: u128 = 10_000;
        let queues = LockQueues::default();
        // Ids are random: no order of theirs is that of the queue.
        let id = |n: u128| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1_000_003;
        let attend = |n| queues.attend(&key(), id(n), Stay::Gone).expect("room");
        let mut places: VecDeque<_> = (0..WAITERS).map(attend).collect();
        // Who asks again, as those at other nodes do each second, keeps its place.
        for again in 0..WAITERS {
            let place = queues.attend(&key(), id(again), Stay::Kept).expect("it has one");
            assert_eq!(place.is_first(), again == 0);
        }
        assert_eq!(queues.places(), WAITERS as usize);
        // Every third goes away, wherever it stands.
        let (gone, stay): (VecDeque<_>, _) = places.drain(..).enumerate().partition(|(n, _)| n % 3 == 1);
        drop(gone);
        let mut places = stay;
        while let Some((_, place)) = places.pop_front() {
            assert!(comes_first(&place).await && !places.back().is_some_and(|(_, last)| last.is_first()));
            drop(place);
        }
        assert!(queues.places() == 0 && queues.0.lock().queues.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_so_many_and_for_those_who_have_a_place() {
        let queues = LockQueues::default();
        let attend = |n: usize| queues.attend(&key(), n as u128, Stay::Gone);
        let places: Vec<_> = (0..PLACES_MAX).map(|n| attend(n).expect("room")).collect();
        assert!(attend(PLACES_MAX).is_none());
        drop(attend(7).expect("it has one, and gives it up"));
        assert_eq!(queues.places(), PLACES_MAX - 1);
        drop((attend(PLACES_MAX).expect("room"), places));
        assert_eq!(queues.places(), 0);
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
