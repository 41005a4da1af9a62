//! Measures how long each step of a task keeps a thread that Raft and requests share.
//!
//! Owns the bound, the measure, and how tasks are started on those threads: each of their steps is measured, openraft's own by the
//! store's `raft::runtime`. Builds with debug assertions measure always, others where [`WATCH_STEPS`] says so, as long searches have it:
//! tests, simulations and soaks fail on what is said here as an error. Never ends what takes too long.

use std::any::type_name;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio_util::task::TaskTracker;

use crate::uptime::Uptime;

/// Longest time of the processor that one step may take in a release build. Builds with debug assertions are slower, see [`SLOWER`].
pub const STEP_MAX: Duration = Duration::from_millis(10);

/// How much longer code takes in builds with debug assertions.
const SLOWER: u32 = if cfg!(debug_assertions) { 5 } else { 1 };

/// What a step may take in this build.
const BOUND: Duration = STEP_MAX.saturating_mul(SLOWER);

/// The variable that has a process measure steps in any build; 0 has none measure them.
pub const WATCH_STEPS: &str = "QUORATE_WATCH_STEPS";

/// What was said: tests look for it in the logs of nodes.
pub const SAID: &str = "a step kept a thread";

/// Whether steps of this process are measured.
static WATCHES: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os(WATCH_STEPS).map_or(cfg!(debug_assertions), |said| said != "0"));

/// Steps of this process that took too long, by what they belong to.
static LONG_STEPS: Mutex<BTreeMap<&str, LongSteps>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// Time of the processor that counts for no step that is under way.
    static ASIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Those of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct LongSteps {
    count: u32,
    faults: u32,
    longest: Duration,
}

pin_project! {
    /// A future whose steps are measured.
    pub struct Watched<F> {
        what: &'static str,
        #[pin]
        work: F,
    }
}

/// Does some work; says so where one step of it keeps its thread for too long.
pub fn watched<F: Future>(what: &'static str, work: F) -> Watched<F> {
    Watched { what, work }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (what, work) = (*this.what, this.work);
        step(what, || work.poll(context))
    }
}

/// A future that goes by its type, where it is a whole task.
pub fn task<F: Future>(work: F) -> Watched<F> {
    watched(type_name::<F>(), work)
}

/// Starts a task of the runtime at hand.
#[expect(clippy::disallowed_methods, reason = "it is watched")]
pub fn spawn<F: Future<Output: Send + 'static> + Send + 'static>(work: F) -> JoinHandle<F::Output> {
    tokio::spawn(task(work))
}

/// Starts a task of that runtime.
#[expect(clippy::disallowed_methods, reason = "it is watched")]
pub fn spawn_on<F: Future<Output: Send + 'static> + Send + 'static>(
    runtime: &Handle,
    work: F,
) -> JoinHandle<F::Output> {
    runtime.spawn(task(work))
}

/// Starts one of these tasks.
#[expect(clippy::disallowed_methods, reason = "it is watched")]
pub fn spawn_in<F: Future<Output: Send + 'static> + Send + 'static>(
    tasks: &mut JoinSet<F::Output>,
    work: F,
) -> AbortHandle {
    tasks.spawn(task(work))
}

/// Starts a task that is waited for with others.
#[expect(clippy::disallowed_methods, reason = "it is watched")]
pub fn spawn_tracked<F: Future<Output: Send + 'static> + Send + 'static>(
    tasks: &TaskTracker,
    work: F,
) -> JoinHandle<F::Output> {
    tasks.spawn(task(work))
}

/// Starts a task of that runtime, which is waited for with others.
#[expect(clippy::disallowed_methods, reason = "it is watched")]
pub fn spawn_tracked_on<F>(tasks: &TaskTracker, work: F, runtime: &Handle) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    tasks.spawn_on(task(work), runtime)
}

/// Starts a task that stands for a thread in a simulation: it keeps nobody waiting there, and is not watched.
#[expect(clippy::disallowed_methods, reason = "it stands for a thread")]
pub fn spawn_thread_of_simulation<F: Future<Output: Send + 'static> + Send + 'static>(
    work: F,
) -> JoinHandle<F::Output> {
    tokio::spawn(work)
}

/// Takes one step; says so where it keeps its thread for too long.
pub fn step<T>(what: &'static str, step: impl FnOnce() -> T) -> T {
    if !*WATCHES {
        return step();
    }
    let (done, took) = measured(step);
    if took > BOUND {
        tell(what, took);
        // The steps around it did nothing wrong.
        count_aside(took);
    }
    done
}

/// The first of its kind in a process is no error unless it is far too long. What the host of a virtual machine takes counts as time of the
/// thread: a step that only touches 1 MiB of new memory, which takes 0.7 ms on average, was measured with 16 ms. That is rare, and a slow
/// step is slow each time.
fn tell(what: &'static str, took: Duration) {
    let is_fault = {
        let mut all = LONG_STEPS.lock();
        let steps = all.entry(what).or_default();
        let is_fault = is_fault(took, steps.count);
        steps.count += 1;
        steps.faults += u32::from(is_fault);
        steps.longest = steps.longest.max(took);
        is_fault
    };
    // The time of the line is that of a wall clock, which tests set wrong.
    let uptime = Uptime::now().of_machine();
    if is_fault {
        tracing::error!(what, ?uptime, ?took, "{SAID}");
    } else {
        tracing::warn!(what, ?uptime, ?took, "one step was long; the next is told as an error");
    }
}

/// Whether a long step is one of the code, after so many of its kind `before` it.
fn is_fault(took: Duration, before: u32) -> bool {
    before > 0 || took > 2 * BOUND
}

/// What was told as an error so far in this process: what kept a thread, how often, and for how long at most.
pub fn faults() -> Vec<(&'static str, u32, Duration)> {
    let all = LONG_STEPS.lock();
    all.iter().filter(|(_, steps)| steps.faults > 0).map(|(what, steps)| (*what, steps.faults, steps.longest)).collect()
}

/// Does work for which others need not wait: it counts for no step.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    at_cost(work, |_| Duration::MAX)
}

/// Does work that may take as long as what it came to says: beyond that it counts for the step that is under way. For what is bounded by
/// what was asked for, and not by how much there is.
pub fn at_cost<T>(work: impl FnOnce() -> T, cost: impl FnOnce(&T) -> Duration) -> T {
    if !*WATCHES {
        return work();
    }
    let (done, took) = measured(work);
    count_aside(took.min(cost(&done).saturating_mul(SLOWER)));
    done
}

/// Each step of this future is done [`aside`].
pub async fn all_aside<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| aside(|| work.as_mut().poll(context))).await
}

fn count_aside(took: Duration) {
    ASIDE.set(ASIDE.get() + took);
}

/// Time of the processor that a step took on its thread, without what was done aside.
fn measured<T>(step: impl FnOnce() -> T) -> (T, Duration) {
    let (begin, aside) = (processor_time(), ASIDE.get());
    let done = step();
    let took = processor_time().saturating_sub(begin);
    (done, took.saturating_sub(ASIDE.get() - aside))
}

/// Time of the processor that this thread has had. What others on the machine take does not count.
pub fn processor_time() -> Duration {
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

    /// Takes longer than any step may.
    fn spin_too_long() {
        spin(BOUND * 3);
    }

    fn spin(lasts: Duration) {
        let begin = processor_time();
        while processor_time() - begin < lasts {}
    }

    fn told(what: &str) -> u32 {
        LONG_STEPS.lock().get(what).map_or(0, |steps| steps.count)
    }

    #[test]
    fn one_step_that_is_a_little_long_may_be_the_machine() {
        assert!(!is_fault(BOUND * 2, 0) && is_fault(BOUND * 2, 1) && is_fault(BOUND * 3, 0));
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
        let ((), took) = measured(|| at_cost(|| spin(long * SLOWER), |()| short));
        assert!(took >= (long - short) * SLOWER && took < long * SLOWER, "what is beyond the cost counts: {took:?}");
    }

    #[test]
    fn a_long_step_is_told_once_by_the_innermost_that_took_it() {
        step("outer of two", || step("inner of two", spin_too_long));
        assert_eq!((told("outer of two"), told("inner of two")), (0, 1));
        assert!(
            faults()
                .iter()
                .any(|(what, times, longest)| (*what, *times) == ("inner of two", 1) && *longest > BOUND * 2)
        );
    }

    async fn long_task() {
        tokio::task::yield_now().await;
        spin_too_long();
    }

    #[tokio::test]
    async fn each_way_to_start_a_task_has_it_watched() {
        let long_tasks = || {
            let all = LONG_STEPS.lock();
            all.iter().filter(|(what, _)| what.contains("long_task")).map(|(_, steps)| steps.count).sum::<u32>()
        };
        let (mut set, tracker, runtime) = (JoinSet::new(), TaskTracker::new(), Handle::current());
        spawn(long_task()).await.unwrap();
        assert_eq!(long_tasks(), 1);
        spawn_on(&runtime, long_task()).await.unwrap();
        assert_eq!(long_tasks(), 2);
        spawn_in(&mut set, long_task());
        set.join_next().await.unwrap().unwrap();
        assert_eq!(long_tasks(), 3);
        spawn_tracked(&tracker, long_task()).await.unwrap();
        spawn_tracked_on(&tracker, long_task(), &runtime).await.unwrap();
        assert_eq!(long_tasks(), 5);
        spawn_thread_of_simulation(long_task()).await.unwrap();
        spawn(all_aside(long_task())).await.unwrap();
        assert_eq!(long_tasks(), 5, "threads of a simulation, and what is done aside, keep nobody");
    }
}
