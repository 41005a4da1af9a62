//! Who may use this machine: tests that share it, or one that measures.
//!
//! Owns the turns within one test program; the others run one after another. Never bounds how many tests run at a time: that is the
//! test harness's.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::thread::ThreadId;

use parking_lot::{Condvar, Mutex};

/// See the head of this file.
#[derive(Default)]
struct Turns {
    /// How often each thread has the machine. A test is a thread, and may run several clusters.
    held: HashMap<ThreadId, usize>,
    /// Whether the only thread in `held` has the machine for itself.
    is_alone: bool,
    /// Threads that want it for themselves.
    waiting: usize,
}

static TURNS: LazyLock<Mutex<Turns>> = LazyLock::new(Mutex::default);
static CHANGED: Condvar = Condvar::new();

/// The right to use the machine, until it is dropped.
#[derive(Debug)]
pub struct Turn(ThreadId);

impl Turn {
    /// Waits until no test has the machine for itself. A test that has it already does not wait.
    pub fn shared() -> Self {
        Self::take(false)
    }

    /// Waits until no other test has the machine, and keeps others from it.
    pub fn alone() -> Self {
        Self::take(true)
    }

    fn take(alone: bool) -> Self {
        let id = std::thread::current().id();
        let mut turns = TURNS.lock();
        turns.waiting += usize::from(alone);
        let is_free = |turns: &Turns| match alone {
            true => turns.held.keys().all(|other| *other == id),
            false => turns.held.contains_key(&id) || !(turns.is_alone || turns.waiting > 0),
        };
        while !is_free(&turns) {
            CHANGED.wait(&mut turns);
        }
        turns.waiting -= usize::from(alone);
        turns.is_alone |= alone;
        *turns.held.entry(id).or_default() += 1;
        Self(id)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = TURNS.lock();
        let count = turns.held.get_mut(&self.0).expect("a turn was counted");
        *count -= 1;
        if *count == 0 {
            turns.held.remove(&self.0);
            turns.is_alone = false;
        }
        CHANGED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn who_is_alone_has_nobody_beside_it() {
        let running = AtomicUsize::new(0);
        let work = |alone: bool| {
            let _first = if alone { Turn::alone() } else { Turn::shared() };
            let _second = Turn::shared();
            let before = running.fetch_add(1, Ordering::SeqCst);
            assert!(!alone || before == 0, "{before} others run");
            std::thread::yield_now();
            let left = running.fetch_sub(1, Ordering::SeqCst) - 1;
            assert!(!alone || left == 0, "{left} others run");
        };
        std::thread::scope(|scope| {
            for number in 0..8 {
                scope.spawn(move || (0..100).for_each(|turn| work((number + turn) % 4 == 0)));
            }
        });
    }
}
