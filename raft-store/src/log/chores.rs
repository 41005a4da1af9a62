//! The housekeeping thread: what the log needs done, but no caller should wait for.
//!
//! Owns two chores: bringing the high-water mark up to date, and deleting files of purged entries. Never touches an
//! entry that is not purged.

#![expect(clippy::disallowed_methods, reason = "spaces out the marks; nothing of it is replicated")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{Shared, record};

/// The mark is never further behind a busy log than this (and one write of it). It costs two fsyncs each time, beside
/// some hundred of the log.
pub const MARK_INTERVAL: Duration = Duration::from_millis(250);

/// A log that rests this long gets its exact mark at once.
pub const MARK_QUIET: Duration = Duration::from_millis(20);

/// How the thread hears of work.
#[derive(Default)]
pub struct Chores {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts nudges.
    nudges: u64,
    /// The thread sleeps until it is nudged.
    idle: bool,
    closed: bool,
}

impl Chores {
    /// Says that there may be something to do. Cheap: wakes the thread only where it sleeps for good.
    pub fn nudge(&self) {
        let mut state = self.state.lock();
        state.nudges += 1;
        if state.idle {
            self.changed.notify_one();
        }
    }

    /// Ends the thread once it has done what there is.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Waits for a nudge after `seen`, then for the log to rest, at the latest until `deadline` of the work found.
    /// `None` once closed.
    fn wait(&self, seen: u64, last_done: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        while state.nudges == seen && !state.closed {
            state.idle = true;
            self.changed.wait(&mut state);
            state.idle = false;
        }
        let deadline = last_done + MARK_INTERVAL;
        while !state.closed && Instant::now() < deadline {
            let before = state.nudges;
            self.changed.wait_for(&mut state, MARK_QUIET);
            if state.nudges == before {
                break;
            }
        }
        (!state.closed).then_some(state.nudges)
    }
}

/// Runs until closed; leaves an exact mark unless the log has failed.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut seen = 0;
    let mut reclaimed = 0;
    let (_, mut done_at) = shared.mark.behind();
    while let Some(nudges) = shared.chores.wait(seen, done_at) {
        seen = nudges;
        report(shared, shared.mark.write());
        done_at = Instant::now();
        report(shared, reclaim(shared, &mut reclaimed));
    }
    report(shared, shared.mark.write());
}

fn report(shared: &Shared, result: io::Result<()>) {
    if let Err(error) = result {
        // No more appends: a log whose mark cannot be kept would not notice its own loss.
        shared.queue.close();
        shared.fault.report(&error);
    }
}

/// Deletes the files that hold nothing but entries which are purged and which the state holds durably. Files are
/// some tens of megabytes; what shares one with a live entry stays until that is purged too.
fn reclaim(shared: &Shared, reclaimed: &mut u64) -> io::Result<()> {
    let purged = shared.purged_durably.load(Ordering::Acquire);
    let end = purged.min(shared.durable_state.load(Ordering::Acquire));
    if end <= *reclaimed {
        return Ok(());
    }
    // Both ends are inclusive.
    let (from, to) = (record::entry_key(0), record::entry_key(end - 1));
    shared.db.delete_file_in_range(from, to).map_err(io::Error::other)?;
    *reclaimed = end;
    Ok(())
}
