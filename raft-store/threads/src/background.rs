//! Who does what may block, and what is nobody's request.
//!
//! Owns the choice between threads, which is how every node runs, those for what has time among them, and tasks of the runtime at hand, which is how a simulation runs
//! a whole cluster on one thread: there the order of all work has to follow from a seed. Never does work of its own.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::{LazyLock, mpsc};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use crate::watchdog;

/// Bytes that are read or written on the thread that serves others, too: about a millisecond, if each of them costs something.
pub const IN_PLACE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are copied in the time in which one is read as text.
const COPIES_FOR_ONE: usize = 16;

/// Does work beside a task, which waits for it.
pub type Aside = fn(Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
    static ASIDE: Cell<Option<Aside>> = const { Cell::new(None) };
}

/// Does from now on in tasks, or at once, what is started from this thread. For simulations alone; it is never taken back.
pub fn simulate_on_this_thread() {
    SIMULATED.set(true);
}

/// Has a simulation on this thread do what may block in this way, where that waits for what only tasks bring, as an upload does: within a
/// task it would wait for ever. Without, it is done at once.
pub fn simulate_blocking_by(aside: Aside) {
    ASIDE.set(Some(aside));
}

/// Whether this thread belongs to a simulation.
pub fn is_simulated() -> bool {
    SIMULATED.get()
}

/// How much less of the processors those threads get that do what has time: about a tenth of what others get.
const NICENESS: libc::c_int = 10;

/// Threads for work that has time. More of them than others exist would take the processors from these, were they not nicer.
static PATIENT: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let nicer = || {
        // SAFETY: takes no pointers. In Linux 0 is the calling thread.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) } != 0 {
            tracing::warn!(error = %io::Error::last_os_error(), "scans have the same priority as requests");
        }
    };
    Builder::new_multi_thread().worker_threads(1).thread_name("patient").on_thread_start(nicer).enable_all().build()
});

/// Runs what may block and has time, such as a scan: where others want the processors, they get them first.
pub async fn patiently<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if is_simulated() {
        return blocking(work).await;
    }
    match &*PATIENT {
        Ok(threads) => threads.spawn_blocking(work).await.map_err(io::Error::other),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// Runs a task that has time, such as one that lists an archive: what it computes between two waits is done on a thread of its own, and not
/// on those that requests and the log share. It goes on when nobody waits for it any more.
pub async fn patient_task<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    if is_simulated() {
        return Ok(watchdog::all_aside(task).await);
    }
    match &*PATIENT {
        #[expect(clippy::disallowed_methods, reason = "nobody waits for that thread")]
        Ok(threads) => threads.spawn(task).await.map_err(io::Error::other),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// Where connections of work that has time are driven: what goes over them is encrypted there. In a simulation the runtime at hand.
pub fn patient_handle() -> Handle {
    if is_simulated() {
        return Handle::current();
    }
    PATIENT.as_ref().map_or_else(|_| Handle::current(), |threads| threads.handle().clone())
}

/// Lets something large go where nobody waits for it: to give back the memory of a hundred thousand parts takes milliseconds.
pub fn let_go(large: impl Send + 'static) {
    beside(move || drop(large));
}

/// Does what may block, and what nobody waits for, on a thread of its own; at once where there is no runtime, and in a simulation. A runtime
/// that is going down may leave it undone.
pub fn beside(work: impl FnOnce() + Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) if !is_simulated() => drop(runtime.spawn_blocking(work)),
        _ => watchdog::aside(work),
    }
}

/// Does work that takes as long as there are bytes of it, where it stands: while it is at much, others are served by other threads.
pub fn in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= IN_PLACE_BYTES_MAX {
        return work();
    }
    watchdog::aside(|| match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // There is no other thread to serve them.
        _ => work(),
    })
}

/// Is [`in_place`] for bytes that are only copied or summed up.
pub fn copy_in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    in_place(bytes / COPIES_FOR_ONE, work)
}

/// Runs what may block where that harms nobody. An error says that it panicked, or that the runtime is going down.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if is_simulated() {
        return simulated(work).await;
    }
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

async fn simulated<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    // As with threads, others may run between the decision and the deed.
    tokio::task::yield_now().await;
    let Some(aside) = ASIDE.get() else { return Ok(watchdog::aside(work)) };
    let (done, result) = mpsc::channel();
    // Whoever waited for it may be gone by then.
    aside(Box::new(move || drop(done.send(work())))).await;
    result.try_recv().map_err(|_| io::Error::other("it panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static DONE: Cell<u32> = const { Cell::new(0) };
    }

    fn count(work: Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            work();
            DONE.set(DONE.get() + 1);
        })
    }

    fn forget(work: Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        drop(work);
        Box::pin(async {})
    }

    #[test]
    fn while_much_is_read_in_place_others_are_served_by_other_threads() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (other, told) = mpsc::channel();
        let reading = watchdog::spawn_on(runtime.handle(), async move {
            watchdog::spawn(async move { other.send(()).unwrap() });
            in_place(IN_PLACE_BYTES_MAX + 1, || told.recv_timeout(std::time::Duration::from_secs(30)))
        });
        runtime.block_on(reading).unwrap().expect("the only other task had no thread");
        assert_eq!(in_place(usize::MAX, || 1), 1, "without a runtime, too");
    }

    #[test]
    fn a_simulation_says_how_what_may_block_is_done() {
        // A thread of its own, which simulates for ever.
        let simulated = std::thread::spawn(|| {
            simulate_on_this_thread();
            let runtime = Builder::new_current_thread().build().unwrap();
            assert_eq!((runtime.block_on(blocking(|| 1)).unwrap(), DONE.get()), (1, 0));
            simulate_blocking_by(count);
            assert_eq!((runtime.block_on(patiently(|| 2)).unwrap(), DONE.get()), (2, 1));
            simulate_blocking_by(forget);
            assert!(runtime.block_on(blocking(|| 3)).is_err());
        });
        simulated.join().unwrap();
    }
}
