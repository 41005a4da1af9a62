//! Who keeps a thread that serves connections for too long.
//!
//! Owns the bound and the measure, in builds with debug assertions: tests and simulations fail on what is said here as an error. In
//! other builds it costs nothing and says nothing. Never ends what takes too long.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longest time of the processor that one step may take in a release build. Builds with debug assertions are slower, see [`SLOWER`].
pub const STEP_MAX: Duration = Duration::from_millis(10);

/// How much longer code takes in builds with debug assertions.
const SLOWER: u32 = 5;

/// What was said: tests look for it in the logs of nodes.
pub const SAID: &str = "a request kept a thread";

/// Steps of this process that took too long.
static LONG_STEPS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Time of the processor that went into work for which others need not wait.
    static ASIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Does the work of a request; says so where one step of it keeps its thread for too long. It stays where it is pinned.
pub async fn watched<T>(what: &'static str, mut work: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|context| step(what, || work.as_mut().poll(context))).await
}

/// Takes one step; says so where it keeps its thread for too long.
pub fn step<T>(what: &'static str, step: impl FnOnce() -> T) -> T {
    if !cfg!(debug_assertions) {
        return step();
    }
    let (done, took) = measured(step);
    if took > STEP_MAX * SLOWER {
        tell(what, took);
    }
    done
}

/// The first of a process is no error unless it is far too long. What the host of a virtual machine takes counts as time of the thread:
/// a step that only touches 1 MiB of new memory, which takes 0.7 ms on average, was measured with 16 ms. That is rare, and a slow step
/// is slow each time.
fn tell(what: &'static str, took: Duration) {
    if is_fault(took, LONG_STEPS.fetch_add(1, Ordering::Relaxed)) {
        tracing::error!(what, ?took, "{SAID}");
    } else {
        tracing::warn!(what, ?took, "one step was long; the next is told as an error");
    }
}

/// Whether a long step is one of the code, after so many `before` it.
fn is_fault(took: Duration, before: u32) -> bool {
    before > 0 || took > 2 * STEP_MAX * SLOWER
}

/// Does work for which others need not wait: it counts for no step.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    if !cfg!(debug_assertions) {
        return work();
    }
    let begin = processor_time();
    let done = work();
    let took = processor_time().saturating_sub(begin);
    ASIDE.set(ASIDE.get() + took);
    done
}

/// Time of the processor that a step took on its thread, without what was done aside.
fn measured<T>(step: impl FnOnce() -> T) -> (T, Duration) {
    let (begin, aside) = (processor_time(), ASIDE.get());
    let done = step();
    let took = processor_time().saturating_sub(begin);
    (done, took.saturating_sub(ASIDE.get() - aside))
}

/// Time of the processor that this thread has had. What others on the machine take does not count.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Not by rustix, which looks for the system's fast clocks in a way that valgrind has no answer to.
    // SAFETY: the call only writes the struct it is given.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(read, 0, "there is such a clock");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(lasts: Duration) {
        let begin = processor_time();
        while processor_time() - begin < lasts {}
    }

    #[test]
    fn one_step_that_is_a_little_long_may_be_the_machine() {
        let bound = STEP_MAX * SLOWER;
        assert!(!is_fault(bound * 2, 0) && is_fault(bound * 2, 1) && is_fault(bound * 3, 0));
    }

    #[test]
    fn what_is_done_on_the_thread_counts_and_what_is_done_aside_does_not() {
        let (long, short) = (Duration::from_millis(20), Duration::from_millis(5));
        let ((), took) = measured(|| {
            spin(long);
            aside(|| spin(short));
        });
        assert!(took >= long && took < long + short, "{took:?}");
        let ((), took) = measured(|| std::thread::sleep(long));
        assert!(took < long, "to wait keeps no thread busy: {took:?}");
    }
}
