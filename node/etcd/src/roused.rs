//! Which watches of a stream may have something to say.
//!
//! Owns that a change costs as much as the watches that it concerns, however many others their stream has: they share one task, and were
//! each of them looked at whenever that is woken, ten thousand would keep its thread for milliseconds. Never looks at a watch.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use futures::task::AtomicWaker;

/// Those of one stream.
#[derive(Default)]
pub struct Roused(Arc<Shared>);

#[derive(Default)]
struct Shared {
    ids: Mutex<BTreeSet<i64>>,
    stream: AtomicWaker,
}

impl Shared {
    fn ids(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What wakes one watch.
struct Rouse {
    id: i64,
    of: Arc<Shared>,
}

impl Wake for Rouse {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.of.ids().insert(self.id);
        self.of.stream.wake();
    }
}

impl Roused {
    /// For the watch of this id, which is to be looked at a first time.
    pub fn waker(&self, id: i64) -> Waker {
        self.rouse(id);
        Arc::new(Rouse { id, of: Arc::clone(&self.0) }).into()
    }

    /// That watch is to be looked at again. Wakes nobody: for the task of the stream, which is awake.
    pub fn rouse(&self, id: i64) {
        self.0.ids().insert(id);
    }

    /// All that are to be looked at, those behind this one first. From now on the task of the stream is woken for each other.
    pub fn take(&self, after: i64, stream: &Waker) -> Vec<i64> {
        self.0.stream.register(stream);
        let ids = std::mem::take(&mut *self.0.ids());
        ids.range((Excluded(after), Unbounded)).chain(ids.range(..=after)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(Mutex<u32>);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() += 1;
        }
    }

    #[test]
    fn only_those_that_were_woken_are_looked_at_and_each_wakes_the_stream() {
        let (roused, woken) = (Roused::default(), Arc::new(Count(Mutex::new(0))));
        let stream = Waker::from(Arc::clone(&woken));
        let wakers: Vec<_> = (0..4).map(|id| roused.waker(id)).collect();
        assert_eq!(roused.take(-1, &stream), [0, 1, 2, 3], "each a first time");
        assert!(roused.take(-1, &stream).is_empty());
        wakers[2].wake_by_ref();
        assert_eq!((roused.take(-1, &stream), *woken.0.lock().unwrap()), (vec![2], 1));
        wakers[3].wake_by_ref();
        wakers[1].wake_by_ref();
        roused.rouse(0);
        assert_eq!(roused.take(1, &stream), [3, 0, 1], "those behind the last one first");
    }
}
