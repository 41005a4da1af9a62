//! Timers: what the machine does by itself when the cluster clock reaches a moment.
//!
//! Owns when it is done: as the first thing of the first batch at or after that moment, so that no command of that batch
//! sees what is over. Each kind knows itself what there is to do. After a moment at which much is due, a batch does only a part of
//! it; what is left counts as not over yet, so it may be late but is never early.

use crate::keyspace::family;
use crate::keyspace::family_range;
use crate::keyspace::timer::{self, TimerKind};
use crate::limits;
use crate::machine::Applier;
use crate::machine::view::{Fault, View};
use crate::types::{ClusterMillis, Key};

impl<V: View> Applier<'_, V> {
    /// Sets a timer.
    pub(in crate::machine) fn arm(&mut self, at: ClusterMillis, kind: TimerKind, subject: &[u8]) -> Result<(), Fault> {
        self.overlay.insert_absent(timer::row_key(at, kind, subject), Vec::new())?;
        self.vars.next_timer = Some(self.vars.next_timer.map_or(at, |next| next.min(at)));
        Ok(())
    }

    /// Has work go on with the next batch, as often as it is asked for until then.
    pub(in crate::machine) fn go_on_later(&mut self, kind: TimerKind, subject: &[u8]) -> Result<(), Fault> {
        match self.overlay.peek(&timer::row_key(self.vars.clock, kind, subject))?.is_some() {
            true => Ok(()),
            false => self.arm(self.vars.clock, kind, subject),
        }
    }

    /// Removes a timer that is set.
    pub(in crate::machine) fn disarm(
        &mut self,
        at: ClusterMillis,
        kind: TimerKind,
        subject: &[u8],
    ) -> Result<(), Fault> {
        self.take_work(&timer::row_key(at, kind, subject))
    }

    /// Tells those who wait for this that it has changed.
    pub(in crate::machine) fn wake(&mut self, waker: Key) {
        self.woken.insert(waker);
    }

    /// Whether a timer is due that has not fired yet.
    pub(in crate::machine) fn has_due_timers(&self) -> bool {
        self.vars.next_timer.is_some_and(|next| next <= self.vars.clock)
    }

    /// Does what is due, in order of time, up to a bound. Gives how many timers fired.
    pub(in crate::machine) fn fire_due(&mut self) -> Result<usize, Fault> {
        let Some(next) = self.vars.next_timer.filter(|next| *next <= self.vars.clock) else { return Ok(0) };
        // The other half is for the commands.
        self.halve_budget(true);
        let mut fired = 0;
        // From the head of the family a scan would walk the tombstones of all that fired or was removed before.
        let start = timer::bound(next);
        let (_, end) = timer::due_range(self.vars.clock);
        for (row_key, _) in self.overlay.scan(&start, &end, limits::TIMERS_FIRED_MAX)? {
            if self.has_taken_its_part() {
                break;
            }
            // What fired before may have had this one removed.
            if self.overlay.peek(&row_key)?.is_none() {
                continue;
            }
            self.take_bytes(limits::LOOK_BYTES);
            fired += 1;
            self.work_on_row(&row_key, |applier| applier.fire(&row_key))?;
        }
        self.halve_budget(false);
        self.leave_half();
        let (_, end) = family_range(family::TIMER);
        let first = self.overlay.scan(&start, &end, 1)?;
        let first =
            first.first().map(|(row_key, _)| timer::time_of(row_key).map_err(|error| Fault::row(row_key, error)));
        self.vars.next_timer = first.transpose()?;
        Ok(fired)
    }

    /// Does what a timer is for; its row goes first.
    fn fire(&mut self, row_key: &[u8]) -> Result<(), Fault> {
        self.overlay.take(row_key)?;
        let (at, kind, subject) = timer::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
        match kind {
            TimerKind::Session => self.fire_session(at, subject),
            TimerKind::LockDelay => self.fire_lock_delay(at, subject),
            TimerKind::Place => self.fire_place(at, subject),
            TimerKind::TaskLease => self.task_lease_over(subject),
            TimerKind::TaskKept => self.task_kept_over(subject),
            TimerKind::Grant => self.fire_grant(subject),
            TimerKind::SessionTasks => self.fire_session_tasks(subject),
            TimerKind::TasksAhead => self.fire_tasks_ahead(subject),
        }
    }
}
