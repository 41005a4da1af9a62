//! The background thread of the state store.
//!
//! Owns the flush cadence, so that a restart never replays more than that, and tells what has become durable. RocksDB
//! flushes by itself when a memtable is full; the thread finds that out by asking for the durable applied row. It also paces merges
//! by how many flushed files wait for them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use quorate_machine::query::StateFault;
use quorate_threads::{background, watchdog};
use tokio_util::task::AbortOnDropHandle;

use super::shared::Shared;

/// Stops and joins the thread when dropped. In a simulation it is a task.
pub(crate) struct Flusher {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _task: Option<AbortOnDropHandle<()>>,
}

impl Flusher {
    pub(crate) fn start(shared: Arc<Shared>, poll: Duration, flush_every: Duration) -> Result<Self, StateFault> {
        let polls_per_flush = (flush_every.as_millis() / poll.as_millis().max(1)).max(1);
        if background::is_simulated() {
            let task = AbortOnDropHandle::new(watchdog::spawn_thread_of_simulation(run_simulated(
                Arc::downgrade(&shared),
                poll,
                polls_per_flush,
            )));
            return Ok(Self { stop: None, thread: None, _task: Some(task) });
        }
        let (stop, stopped) = channel();
        let run = move || run(&shared, &stopped, poll, polls_per_flush);
        let thread = std::thread::Builder::new().name("state-flusher".into()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), _task: None })
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the state store panicked");
        }
    }
}

fn run(shared: &Shared, stopped: &Receiver<()>, poll: Duration, polls_per_flush: u128) {
    let mut polls = 0;
    while stopped.recv_timeout(poll) == Err(RecvTimeoutError::Timeout) {
        polls += 1;
        keep(shared, polls % polls_per_flush == 0);
    }
}

/// A task that was aborted goes when it is its turn; the state is closed before that, as by a thread that is joined.
async fn run_simulated(shared: Weak<Shared>, poll: Duration, polls_per_flush: u128) {
    for polls in 1.. {
        tokio::time::sleep(poll).await;
        let Some(shared) = shared.upgrade() else { return };
        keep(&shared, polls % polls_per_flush == 0);
    }
}

fn keep(shared: &Shared, flush_is_due: bool) {
    // A failed flush also makes the next write fail, which stops the node; here there is nothing to decide.
    if let Err(fault) = tick(shared, flush_is_due) {
        tracing::error!(%fault, "the state could not be made durable");
    }
}

fn tick(shared: &Shared, flush_is_due: bool) -> Result<(), StateFault> {
    let durable = shared.note_durable()?;
    if flush_is_due && durable < shared.position().index {
        shared.flush()?;
    }
    shared.refresh_heads()?;
    shared.pace_merges()
}
