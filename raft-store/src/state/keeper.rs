//! The background thread of the state store.
//!
//! Owns the flush cadence, so that a restart never replays more than that, and tells what has become durable. RocksDB
//! flushes by itself when a memtable is full; the thread finds that out by asking for the durable applied row.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Shared;
use super::types::StateFault;

/// Stops and joins the thread when dropped.
pub(crate) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(shared: Arc<Shared>, poll: Duration, flush_every: Duration) -> Result<Self, StateFault> {
        let (stop, stopped) = channel();
        let polls_per_flush = (flush_every.as_millis() / poll.as_millis().max(1)).max(1);
        let run = move || run(&shared, &stopped, poll, polls_per_flush);
        let thread = std::thread::Builder::new().name("state-keeper".into()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
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
        // A failed flush also makes the next write fail, which stops the node; here there is nothing to decide.
        if let Err(fault) = tick(shared, polls % polls_per_flush == 0) {
            tracing::error!(%fault, "the state could not be made durable");
        }
    }
}

fn tick(shared: &Shared, flush_is_due: bool) -> Result<(), StateFault> {
    let durable = shared.note_durable()?;
    if flush_is_due && durable < shared.position().index {
        shared.flush()?;
    }
    Ok(())
}
