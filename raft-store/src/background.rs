//! Who does what may block, and what is nobody's request.
//!
//! Owns the choice between threads, which is how every node runs, and tasks of the runtime at hand, which is how a simulation runs
//! a whole cluster on one thread: there the order of all work has to follow from a seed. Never does work of its own.

use std::cell::Cell;
use std::io;

thread_local! {
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
}

/// Does from now on in tasks, or at once, what is started from this thread. For simulations alone; it is never taken back.
pub fn simulate_on_this_thread() {
    SIMULATED.set(true);
}

/// Whether this thread belongs to a simulation.
pub fn is_simulated() -> bool {
    SIMULATED.get()
}

/// Runs what may block where that harms nobody. An error says that it panicked, or that the runtime is going down.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    if is_simulated() {
        // As with threads, others may run between the decision and the deed.
        tokio::task::yield_now().await;
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
