//! How many TLS handshakes with clients are under way at a time.
//!
//! Owns the queue. One address takes only a part of the places, and one of each address stands in line for the next one: behind a crowd
//! waits nobody but the crowd. While somebody waits, handshakes that have gone on for too long make room: those of the largest crowd first.
//! Their deadlines end the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::origin::Neighbour;
use crate::limits::{ADDRESS_HANDSHAKES_MAX, HANDSHAKE_LOOK_MS, HANDSHAKE_PATIENCE_MS, HANDSHAKES_MAX};

const OPEN: &str = "these semaphores are never closed";

const LOOK: Duration = Duration::from_millis(HANDSHAKE_LOOK_MS);

/// The queue of a port. Cloning shares it.
#[derive(Clone)]
pub struct HandshakeQueue {
    all: Arc<Semaphore>,
    of_one: Arc<Mutex<BTreeMap<Neighbour, Arc<Semaphore>>>>,
    at_work: Arc<Mutex<AtWork>>,
}

/// The handshakes that have a place, without those that have to go, and who is next.
#[derive(Default)]
struct AtWork {
    /// The handshakes by serial number: each has a higher one than those that began before it.
    rows: BTreeMap<u64, Row>,
    /// The number of the next one.
    serial: u64,
    /// The addresses that have one in line.
    in_line: BTreeSet<Neighbour>,
}

struct Row {
    from: Neighbour,
    since: Instant,
    end: CancellationToken,
}

/// A place, until it is dropped.
pub struct HandshakePermit {
    serial: u64,
    end: CancellationToken,
    at_work: Arc<Mutex<AtWork>>,
    _all: OwnedSemaphorePermit,
    _own: Own,
}

/// The one of an address that stands in line for a place.
struct InLine {
    from: Neighbour,
    at_work: Arc<Mutex<AtWork>>,
}

/// A place among those of one address. The last one takes their count away.
struct Own {
    permit: Option<OwnedSemaphorePermit>,
    from: Neighbour,
    of_one: Arc<Mutex<BTreeMap<Neighbour, Arc<Semaphore>>>>,
}

impl Default for HandshakeQueue {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(HANDSHAKES_MAX)), of_one: Arc::default(), at_work: Arc::default() }
    }
}

impl HandshakeQueue {
    /// Waits for a place.
    pub async fn take(&self, from: Neighbour) -> HandshakePermit {
        let own = {
            let mut of_one = self.of_one.lock();
            Arc::clone(of_one.entry(from).or_insert_with(|| Arc::new(Semaphore::new(ADDRESS_HANDSHAKES_MAX))))
        };
        // Made before it waits, so that it cleans up also where it is given up.
        let mut place = Own { permit: None, from, of_one: Arc::clone(&self.of_one) };
        place.permit = Some(wait(own, || self.at_work.lock().make_room_of(from)).await);
        let all = self.place_among_all(from).await;
        let (serial, end) = self.at_work.lock().begin(from);
        HandshakePermit { serial, end, at_work: Arc::clone(&self.at_work), _all: all, _own: place }
    }

    /// Waits in line, if no other one of its address does. Else it looks now and then for a place that nobody in line takes, and for the
    /// place of its address in the line.
    async fn place_among_all(&self, from: Neighbour) -> OwnedSemaphorePermit {
        loop {
            if let Ok(place) = Arc::clone(&self.all).try_acquire_owned() {
                return place;
            }
            if let Some(_in_line) = InLine::join(from, &self.at_work) {
                return wait(Arc::clone(&self.all), || self.at_work.lock().make_room_for(from)).await;
            }
            sleep(LOOK).await;
        }
    }
}

/// Waits for one of these places. Asks for room at once where there is none, and again after each look.
async fn wait(places: Arc<Semaphore>, make_room: impl Fn()) -> OwnedSemaphorePermit {
    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
        return place;
    }
    let mut waiting = pin!(places.acquire_owned());
    loop {
        make_room();
        if let Ok(place) = timeout(LOOK, waiting.as_mut()).await {
            return place.expect(OPEN);
        }
    }
}

impl AtWork {
    fn begin(&mut self, from: Neighbour) -> (u64, CancellationToken) {
        let (serial, end) = (self.serial, CancellationToken::new());
        self.serial += 1;
        self.rows.insert(serial, Row { from, since: Instant::now(), end: end.clone() });
        (serial, end)
    }

    /// Those that have gone on for too long, the oldest first.
    fn overdue(&self) -> impl Iterator<Item = (u64, Neighbour)> {
        let (now, patience) = (Instant::now(), Duration::from_millis(HANDSHAKE_PATIENCE_MS));
        let overdue = self.rows.iter().take_while(move |(_, row)| now.saturating_duration_since(row.since) >= patience);
        overdue.map(|(serial, row)| (*serial, row.from))
    }

    /// Has the oldest one of this address go, if it has gone on for too long: another one of it waits.
    fn make_room_of(&mut self, from: Neighbour) {
        let oldest = self.overdue().find(|(_, of)| *of == from);
        self.end(oldest.map(|(serial, _)| serial));
    }

    /// Has as many go as stand in line, of those that have gone on for too long: of the largest crowd first, and the oldest one of it, as long
    /// as this address has fewer places.
    fn make_room_for(&mut self, from: Neighbour) {
        if self.overdue().next().is_none() {
            return;
        }
        let mut crowds = BTreeMap::new();
        for row in self.rows.values() {
            *crowds.entry(row.from).or_insert(0usize) += 1;
        }
        for _ in 0..self.in_line.len() {
            let size = |of: &Neighbour| crowds.get(of).copied().unwrap_or(0);
            let largest = self.overdue().max_by_key(|(serial, of)| (size(of), Reverse(*serial)));
            let Some((serial, of)) = largest.filter(|(_, of)| size(of) > size(&from)) else { return };
            self.end(Some(serial));
            *crowds.entry(of).or_default() -= 1;
        }
    }

    /// Taken out at once, so that each makes room for one.
    fn end(&mut self, serial: Option<u64>) {
        if let Some(row) = serial.and_then(|serial| self.rows.remove(&serial)) {
            row.end.cancel();
        }
    }
}

impl InLine {
    /// `None` where another one of its address stands there.
    fn join(from: Neighbour, at_work: &Arc<Mutex<AtWork>>) -> Option<Self> {
        let is_only_one = at_work.lock().in_line.insert(from);
        is_only_one.then(|| Self { from, at_work: Arc::clone(at_work) })
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        self.at_work.lock().in_line.remove(&self.from);
    }
}

impl HandshakePermit {
    /// Waits until it has to make room.
    pub async fn has_to_go(&self) {
        self.end.cancelled().await;
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.at_work.lock().rows.remove(&self.serial);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut of_one = self.of_one.lock();
        // Whoever waits or has a place has a share of the count.
        if of_one.get(&self.from).is_some_and(|count| Arc::strong_count(count) == 1) {
            of_one.remove(&self.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures::FutureExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(HANDSHAKE_PATIENCE_MS);

    fn address(last: u8) -> Neighbour {
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)).into()
    }

    fn nothing_is_left(queue: &HandshakeQueue) -> bool {
        queue.of_one.lock().is_empty()
            && queue.at_work.lock().rows.is_empty()
            && queue.at_work.lock().in_line.is_empty()
            && queue.all.available_permits() == HANDSHAKES_MAX
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_takes_its_part_and_nothing_is_left_of_those_who_are_gone() {
        let queue = HandshakeQueue::default();
        let taken: Vec<_> = (0..ADDRESS_HANDSHAKES_MAX)
            .map(|_| queue.take(address(7)).now_or_never().expect("there is room"))
            .collect();
        let mut waiting = Box::pin(queue.take(address(7)));
        assert!(waiting.as_mut().now_or_never().is_none(), "it has its part");
        let honest = queue.take(address(1)).now_or_never().expect("others have theirs");
        assert_eq!(queue.of_one.lock().len(), 2);
        drop(taken);
        let last = waiting.as_mut().now_or_never().expect("it is its turn");
        drop((honest, last, waiting));
        assert!(nothing_is_left(&queue));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_while_waiting_leaves_nothing() {
        let queue = HandshakeQueue::default();
        let taken: Vec<_> = (0..ADDRESS_HANDSHAKES_MAX).filter_map(|_| queue.take(address(7)).now_or_never()).collect();
        assert!(queue.take(address(7)).now_or_never().is_none());
        drop(taken);
        assert!(nothing_is_left(&queue));
    }

    /// Handshakes of this address that never get on. Each ends once it has to go.
    fn crowd(queue: &HandshakeQueue, last: u8, count: usize) -> Vec<tokio::task::JoinHandle<()>> {
        let silent = |_| {
            let permit = queue.take(address(last)).now_or_never().expect("there is room");
            tokio::spawn(async move { permit.has_to_go().await })
        };
        (0..count).map(silent).collect()
    }

    fn gone(crowd: &[tokio::task::JoinHandle<()>]) -> usize {
        crowd.iter().filter(|silent| silent.is_finished()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_for_too_long_makes_room_for_those_who_wait_the_largest_crowd_first() {
        let queue = HandshakeQueue::default();
        let small = crowd(&queue, 1, 1);
        let mut large: Vec<_> = (2..5).flat_map(|last| crowd(&queue, last, ADDRESS_HANDSHAKES_MAX)).collect();
        large.extend(crowd(&queue, 5, queue.all.available_permits()));
        assert_eq!(queue.all.available_permits(), 0);
        let began = Instant::now();
        let honest = queue.take(address(9)).await;
        let took = began.elapsed();
        assert!((PATIENCE..=PATIENCE + 2 * LOOK).contains(&took), "{took:?}");
        assert_eq!((gone(&small), gone(&large)), (0, 1), "as many as wait");
        // Those that have gone on for too long by now go at once.
        let began = Instant::now();
        let others = [queue.take(address(9)).await, queue.take(address(10)).await];
        assert!(began.elapsed() <= LOOK, "{:?}", began.elapsed());
        assert_eq!((gone(&small), gone(&large)), (0, 3));
        drop((honest, others));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_that_waits_has_its_own_go_and_no_others() {
        let queue = HandshakeQueue::default();
        let (own, other) = (crowd(&queue, 1, ADDRESS_HANDSHAKES_MAX), crowd(&queue, 2, 2));
        let next = queue.take(address(1)).await;
        assert_eq!((gone(&own), gone(&other)), (1, 0));
        drop(next);
    }

    /// Crowds as large as each other: none has to make room for another one.
    #[tokio::test(start_paused = true)]
    async fn who_comes_alone_does_not_wait_behind_crowds() {
        const CROWDS: usize = 6;
        let queue = HandshakeQueue::default();
        let addresses = || (0..CROWDS).map(|n| 1 + n as u8);
        let mut at_work: Vec<_> = addresses().flat_map(|last| crowd(&queue, last, HANDSHAKES_MAX / CROWDS)).collect();
        at_work.extend(crowd(&queue, 1, queue.all.available_permits()));
        let silent = |last: u8| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take(address(last)).await.has_to_go().await })
        };
        let more: Vec<_> = addresses().flat_map(|last| [last; 18]).map(silent).collect();
        sleep(Duration::from_millis(1)).await;
        assert_eq!((queue.all.available_permits(), queue.at_work.lock().in_line.len()), (0, CROWDS));
        let began = Instant::now();
        let honest = queue.take(address(9)).await;
        let took = began.elapsed();
        assert!(took <= PATIENCE + 2 * LOOK, "{took:?}");
        at_work.into_iter().chain(more).for_each(|silent| silent.abort());
        drop(honest);
        sleep(LOOK).await;
        assert!(nothing_is_left(&queue));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_goes_on_where_nobody_waits() {
        let queue = HandshakeQueue::default();
        let slow = crowd(&queue, 1, ADDRESS_HANDSHAKES_MAX - 1);
        sleep(2 * PATIENCE).await;
        let fast = [queue.take(address(1)).await, queue.take(address(2)).await];
        assert_eq!(gone(&slow), 0, "there was room");
        drop(fast);
    }
}
