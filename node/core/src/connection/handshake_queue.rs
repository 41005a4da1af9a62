//! How many TLS handshakes with clients are under way at a time.
//!
//! Owns the queue. One address takes only a part of the places, and who waits, waits in turn. Never ends a handshake: its deadline does.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::origin::Neighbour;
use crate::limits::{ADDRESS_HANDSHAKES_MAX, HANDSHAKES_MAX};

const OPEN: &str = "these semaphores are never closed";

/// The queue of a port. Cloning shares it.
#[derive(Clone)]
pub struct HandshakeQueue {
    all: Arc<Semaphore>,
    of_one: Arc<Mutex<BTreeMap<Neighbour, Arc<Semaphore>>>>,
}

/// A place, until it is dropped.
pub struct HandshakePermit {
    _all: OwnedSemaphorePermit,
    _own: Own,
}

/// A place among those of one address. The last one takes their count away.
struct Own {
    permit: Option<OwnedSemaphorePermit>,
    from: Neighbour,
    of_one: Arc<Mutex<BTreeMap<Neighbour, Arc<Semaphore>>>>,
}

impl Default for HandshakeQueue {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(HANDSHAKES_MAX)), of_one: Arc::default() }
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
        place.permit = Some(own.acquire_owned().await.expect(OPEN));
        let all = Arc::clone(&self.all).acquire_owned().await.expect(OPEN);
        HandshakePermit { _all: all, _own: place }
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

    fn address(last: u8) -> Neighbour {
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)).into()
    }

    #[test]
    fn one_address_takes_its_part_and_nothing_is_left_of_those_who_are_gone() {
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
        assert!(queue.of_one.lock().is_empty());
        assert_eq!(queue.all.available_permits(), HANDSHAKES_MAX);
    }

    #[test]
    fn who_gives_up_while_waiting_leaves_nothing() {
        let queue = HandshakeQueue::default();
        let taken: Vec<_> = (0..ADDRESS_HANDSHAKES_MAX).filter_map(|_| queue.take(address(7)).now_or_never()).collect();
        assert!(queue.take(address(7)).now_or_never().is_none());
        drop(taken);
        assert!(queue.of_one.lock().is_empty());
    }
}
