//! The leader's own housekeeping: expiry, history compaction, indexes, and the clock that deadlines count.
//!
//! Owns when to propose what. Never changes state itself: each step is a log entry, re-checked when it is applied, so two
//! nodes that both believe to lead can at worst propose the same step twice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_machine::query::{StateFault, Unplanned};
use quorate_machine::types::{
    Action, Command, Maintenance, Outcome, PlanTask, Recurrence, Revision, TaskOp, TaskVerb, WallMillis,
};
use quorate_machine::{command_codec, machine};
use quorate_node_core::{cron, limits};
use quorate_store::state::StateReader;
use quorate_threads::background;

use super::proposer::ProposerParts;
use super::request_table::{self, Watch};

/// How often the leader looks at the first deadline. Bounds how late an expiry is.
const TICK: Duration = Duration::from_millis(50);
/// While any deadline is pending the clock is committed this often, so that a failover loses little of it.
const CLOCK_COMMIT: Duration = Duration::from_secs(1);
/// How often the leader looks for history to drop.
const COMPACT_EVERY: Duration = Duration::from_secs(5);
/// Most entries that one command expires. It bounds the time of one apply: 256 entries with their rows on disk took up to 24 ms.
const EXPIRE_LIMIT: u32 = 64;

/// Recurring tasks planned by one batch.
const PLANS: usize = 256;

/// How often the leader looks for indexes to build or to clear.
const INDEX_EVERY: Duration = Duration::from_millis(250);

/// How often it is looked whether something is to be counted for quotas, which is seldom.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// Entries taken into an index by one command: other writes go in between.
const INDEX_ROWS: u32 = 256;

/// How much history is kept: whichever of the first two keeps more, unless it takes more than the third.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Milliseconds of cluster clock.
    pub keep_ms: u64,
    /// Revisions.
    pub keep_revisions: u64,
    /// Bytes of it, as [`quorate_machine::machine::Sizes`] counts them.
    pub bytes_max: u64,
}

impl Retention {
    /// A revision to compact to, so that history that takes too much takes a tenth less than it may: as if each revision
    /// had taken the same. Where they did not, the next look sees it.
    fn fitting(&self, history_bytes: u64, oldest: Revision, newest: Revision) -> Option<Revision> {
        let wanted = self.bytes_max - self.bytes_max / 10;
        if history_bytes <= self.bytes_max {
            return None;
        }
        let excess = u128::from(history_bytes - wanted) * u128::from(newest - oldest) / u128::from(history_bytes);
        Some(oldest + u64::try_from(excess).expect("a part of a u64"))
    }
}

/// Runs for as long as the node; does nothing while another node leads.
pub async fn run(parts: Arc<ProposerParts>, retention: Retention) {
    let now = Instant::now();
    let mut maintainer = Maintainer {
        parts,
        retention,
        clock_committed: now,
        looked: now,
        compacting: None,
        indexed: now,
        counted: now,
        table: Watch::new(now),
        refusals: Watch::new(now),
    };
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if maintainer.parts.view.now().leader != Some(maintainer.parts.self_id) {
            continue;
        }
        if let Err(fault) = maintainer.tick().await {
            // The state machine meets the same damage and stops the node; here it only must not pass in silence.
            tracing::error!(%fault, "housekeeping");
        }
    }
}

struct Maintainer {
    parts: Arc<ProposerParts>,
    retention: Retention,
    clock_committed: Instant,
    /// When it was last seen whether there is history to drop.
    looked: Instant,
    /// How far it is being dropped.
    compacting: Option<Revision>,
    /// When it was last seen that no index wants work.
    indexed: Instant,
    /// When it was last seen that nothing is to be counted.
    counted: Instant,
    /// Times of the last look at the table of kept outcomes, and of the last warning.
    table: Watch,
    /// The same of the record of refusals, which is looked at together with it.
    refusals: Watch,
}

impl Maintainer {
    fn state(&self) -> &StateReader {
        &self.parts.state
    }

    /// Reads what takes the longer the more there is: of Raft's threads, which this task shares, only moments may be taken.
    async fn aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&StateReader) -> Result<T, StateFault> + Send + 'static,
    ) -> Result<T, StateFault> {
        let state = self.state().clone();
        let read = background::blocking(move || read(&state)).await;
        read.map_err(|error| StateFault::because("housekeeping did not read the state", error))?
    }

    async fn tick(&mut self) -> Result<(), StateFault> {
        if let Some(deadline) = self.state().first_deadline()? {
            match self.parts.clock_now() {
                Some(now) if deadline <= now => self.repeat(Maintenance::ExpireDue { limit: EXPIRE_LIMIT }).await,
                _ if self.clock_committed.elapsed() >= CLOCK_COMMIT => self.commit_clock().await,
                _ => {}
            }
        }
        self.plan_tasks().await?;
        self.compact().await?;
        if self.counted.elapsed() >= COUNT_EVERY {
            if self.state().has_counting_work()? {
                self.work_on(Maintenance::Count).await;
            } else {
                self.counted = Instant::now();
            }
        }
        if self.indexed.elapsed() >= INDEX_EVERY {
            if self.aside(StateReader::has_index_work).await? {
                self.work_on(Maintenance::Indexes { rows_max: INDEX_ROWS }).await;
            } else {
                self.indexed = Instant::now();
            }
        }
        self.watch_table().await
    }

    /// Says in the log of the leader that the table of kept outcomes fills up, and that refusals are left out of the audit trail.
    async fn watch_table(&mut self) -> Result<(), StateFault> {
        if !self.table.looks(Instant::now()) {
            return Ok(());
        }
        let warning = self.aside(request_table::warning).await?;
        if let Some(warning) = warning.filter(|_| self.table.says(Instant::now())) {
            tracing::warn!("{warning}");
        }
        let warning = self.aside(request_table::refusals_warning).await?;
        if let Some(warning) = warning.filter(|_| self.refusals.says(Instant::now())) {
            tracing::warn!("{warning}");
        }
        Ok(())
    }

    /// Says when recurring tasks come again.
    async fn plan_tasks(&mut self) -> Result<(), StateFault> {
        while self.state().has_unplanned_tasks() {
            let unplanned = self.aside(|state| state.unplanned_tasks(PLANS)).await?;
            if unplanned.is_empty() {
                return Ok(());
            }
            // By no clock of one machine: a task that is planned too far ahead stays away until then.
            let Some(wall) = self.parts.wall_now().await else { return Ok(()) };
            let count = unplanned.len();
            // A pattern may take long to search.
            let planned = background::blocking(move || unplanned.iter().map(|task| plan(task, wall)).collect()).await;
            let commands = planned.map_err(|error| StateFault::because("tasks were not planned", error))?;
            // Not proposed or unknown: the next tick does it again.
            let Ok(_) = self.parts.write_batch(commands).await else { return Ok(()) };
            self.clock_committed = Instant::now();
            if count < PLANS {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn commit_clock(&mut self) {
        // Not proposed or unknown: the next tick does it again.
        if self.parts.write_batch(Vec::new()).await.is_ok() {
            self.clock_committed = Instant::now();
        }
    }

    /// Drops history that is kept no longer.
    async fn compact(&mut self) -> Result<(), StateFault> {
        if self.compacting.is_none() && self.looked.elapsed() >= COMPACT_EVERY {
            self.looked = Instant::now();
            let Retention { keep_ms, keep_revisions, .. } = self.retention;
            let (at, sizes) = (self.state().position(), self.state().sizes());
            let too_much = self.retention.fitting(sizes.history_bytes, at.oldest_revision, at.revision);
            let compactable = self.aside(move |state| state.compactable_to(keep_ms, keep_revisions)).await?;
            self.compacting = compactable.max(too_much);
        }
        if let Some(revision) = self.compacting
            && !self.work_on(Maintenance::Compact { revision, groups_max: limits::COMPACT_GROUPS }).await
        {
            self.compacting = None;
        }
        Ok(())
    }

    /// Goes on with long work for a moment: what is due must not wait until it is done. Rests as long after each step as it
    /// took, since every node is busy with it and writes wait behind it. False: nothing is left to do, or does not get through.
    async fn work_on(&mut self, step: Maintenance) -> bool {
        let until = Instant::now() + TICK;
        let command = encoded(step);
        while Instant::now() < until {
            let begin = Instant::now();
            if !self.step(&command).await {
                return false;
            }
            tokio::time::sleep(begin.elapsed()).await;
        }
        true
    }

    /// Proposes the step until it finds nothing more to do, or does not get through.
    async fn repeat(&mut self, step: Maintenance) {
        let command = encoded(step);
        while self.step(&command).await {}
    }

    /// Proposes a step. Whether it got through, did something and would find more.
    async fn step(&mut self, command: &Bytes) -> bool {
        let Ok(replies) = self.parts.write_batch(vec![command.clone()]).await else { return false };
        self.clock_committed = Instant::now();
        let outcome = replies.first().map(|reply| &reply.outcome);
        matches!(outcome, Some(Outcome::Maintained { more: true, removed }) if *removed > 0)
    }
}

/// The next time of a task, after the last one and after now. A last one that is far ahead of now was taken before the wall clock was
/// walked back, and tells nothing of when the next one should come.
fn plan(task: &Unplanned, wall: WallMillis) -> Bytes {
    let head = &task.row.head;
    let due = match &head.recurrence {
        Some(Recurrence::Cron { pattern, zone }) => {
            let last = if machine::is_of_before(head.due, wall) { wall } else { head.due };
            let next = cron::next(pattern, zone, last.max(wall));
            next.map_err(|why| tracing::warn!(queue = %task.queue, %why, "a recurring task does not come again")).ok()
        }
        Some(Recurrence::Every(_)) | None => None,
    };
    let plan = PlanTask { id: task.id.clone(), seen: head.revision, due };
    let action = Action::Task(TaskOp { queue: task.queue.clone(), verb: TaskVerb::Plan(plan) });
    command_codec::encode_command(&Command::unnamed(action))
}

fn encoded(step: Maintenance) -> Bytes {
    command_codec::encode_command(&Command::unnamed(Action::Maintain(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_that_takes_too_much_is_dropped_from_its_oldest_end() {
        let retention = Retention { keep_ms: 0, keep_revisions: 1, bytes_max: 1_000 };
        assert_eq!(retention.fitting(1_000, 5, 1_005), None);
        assert_eq!(retention.fitting(1_800, 5, 1_005), Some(505), "half of it is too much");
        assert_eq!(retention.fitting(u64::MAX, 1, u64::MAX), Some(u64::MAX - 900));
        assert_eq!(retention.fitting(9_000, 7, 7), Some(7), "there is nothing to drop");
        let nothing = Retention { bytes_max: 0, ..retention };
        assert_eq!(nothing.fitting(10, 5, 105), Some(105));
    }
}
