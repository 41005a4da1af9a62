//! The housekeeping thread: what the log needs done, but no caller should wait for.
//!
//! Owns two chores: bringing the high-water mark up to date, and deleting segments of purged entries. Never touches an
//! entry that is not purged. (Making segments would hold up the mark: see [`super::spare`].)

#![expect(clippy::disallowed_methods, reason = "spaces out the marks; nothing of it is replicated")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Shared;

/// The mark is never further behind a busy log than this (and one write of it). It costs one sync each time, beside
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

    /// Waits for a nudge after `seen`, then for the log to rest, at the latest until the interval since `last_done` is
    /// over. Gives the nudges so far and whether the log rests; `None` once closed.
    fn wait(&self, seen: u64, last_done: Instant) -> Option<(u64, bool)> {
        let mut state = self.state.lock();
        while state.nudges == seen && !state.closed {
            state.idle = true;
            self.changed.wait(&mut state);
            state.idle = false;
        }
        let deadline = last_done + MARK_INTERVAL;
        let mut rests = false;
        while !state.closed && Instant::now() < deadline {
            let before = state.nudges;
            self.changed.wait_for(&mut state, MARK_QUIET);
            rests = state.nudges == before;
            if rests {
                break;
            }
        }
        (!state.closed).then_some((state.nudges, rests))
    }
}

/// Runs until closed; leaves an exact mark unless the log has failed.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut seen = 0;
    let (_, mut done_at) = shared.mark.behind();
    while let Some((nudges, rests)) = shared.chores.wait(seen, done_at) {
        // A log that does not rest yet is looked at again, nudge or no nudge.
        seen = nudges - u64::from(!rests);
        report(shared, if rests { shared.mark.write_twice() } else { shared.mark.write() });
        done_at = Instant::now();
        report(shared, reclaim(shared));
    }
    report(shared, shared.mark.write_twice());
    report(shared, reclaim(shared));
}

/// [`run`] as a task of a simulation: as often as a thread would, whatever there is to do.
pub(super) async fn run_simulated(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(MARK_INTERVAL).await;
        report(&shared, shared.mark.write());
        report(&shared, reclaim(&shared));
    }
}

fn report(shared: &Shared, result: io::Result<()>) {
    if let Err(error) = result {
        // No more appends: a log whose mark cannot be kept would not notice its own loss.
        shared.queue.close();
        shared.fault.report(&error);
    }
}

/// Deletes the oldest segments that hold nothing but entries which are purged and which the state holds durably. One
/// after the other, each deletion durable: the segments that are left never have a gap.
fn reclaim(shared: &Shared) -> io::Result<()> {
    let purged = shared.purged_durably.load(Ordering::Acquire);
    let end = purged.min(shared.durable_state.load(Ordering::Acquire));
    loop {
        let Some(oldest) = shared.content.read().segments.removable(end) else { return Ok(()) };
        oldest.remove()?;
        shared.content.write().segments.forget_oldest();
        shared.spare.removed(&oldest);
    }
}
