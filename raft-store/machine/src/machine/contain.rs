//! Containing faults: what cannot be applied is taken back and told, and everything else goes on.
//!
//! Owns savepoints, what a faulted command leaves behind, and work that is set aside. A group of entries is applied without
//! savepoints first, since they cost; only where that faults it is applied again, with them. Never contains what other nodes may
//! not meet, see [`Fault::is_contained`].

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

use super::bucket_uses::BucketUses;
use super::quotas::counts::KnownQuotas;
use super::upkeep::maintain;
use super::view::{Fault, View};
use super::{Applier, Caller, Vars, readable, requests};
use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::fault::{self, FaultCounts, FaultRow, ParkedRow};
use crate::keyspace::{family, family_range, task, timer};
use crate::limits;
use crate::types::{Action, Command, FaultsOp, Outcome, Refusal, Rejection, Reply, Revision, TaskOp, TaskVerb};

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be contained now. A panic hook that ends the process asks before it does so.
pub fn is_catching() -> bool {
    IS_CATCHING.get()
}

/// Does work; a panic becomes a fault. What the work changed until then is the caller's to throw away.
pub fn catching<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let outer = IS_CATCHING.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING.set(outer);
    done.unwrap_or_else(|panic| Err(Fault::Panic(words(panic.as_ref()))))
}

/// Applies something: first without containing faults, and where that meets one which can be contained, from the start again
/// with `true`. A fault that is still left is of this node.
pub fn applying<T>(mut apply: impl FnMut(bool) -> Result<T, Fault>) -> Result<T, Fault> {
    match catching(|| apply(false)) {
        Err(fault) if fault.is_contained() => catching(|| apply(true)),
        done => done,
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it said nothing".into())
}

/// A fault that was contained, for the log of this node: its words are those of the build at hand, and no part of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contained {
    /// Log index of the entry.
    pub index: u64,
    /// What was taken back.
    pub what: ContainedWork,
    /// What was found.
    pub fault: Fault,
}

/// What a contained fault took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainedWork {
    /// A command, by its number in the entry.
    Command(u32),
    /// Work of the machine's own, by the key of its row.
    Work(Vec<u8>),
}

/// What is put back when a fault is taken back, beside rows.
struct Savepoint {
    vars: Vars,
    lines: usize,
    joint: Option<Option<Revision>>,
    bucket_uses: BucketUses,
    depth: usize,
}

impl<V: View> Applier<'_, V> {
    /// Whether faults that every node meets alike are contained from now on.
    pub fn containing(self, is_containing: bool) -> Self {
        Self { is_containing, ..self }
    }

    /// Does work. Gives its contained fault, once all that it did is taken back, as the inner error; while nothing is contained,
    /// every fault is the outer one.
    pub(super) fn at_savepoint<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Result<T, Fault>, Fault> {
        if !self.is_containing {
            return work(self).map(Ok);
        }
        let (vars, lines, depth) = (self.vars.clone(), self.batch.lines.len(), self.overlay.depth());
        let bucket_uses = self.batch.bucket_uses.clone();
        let saved = Savepoint { vars, lines, joint: self.batch.joint, bucket_uses, depth };
        self.overlay.begin();
        match catching(|| work(self)) {
            Ok(done) => {
                assert_eq!(self.overlay.depth(), saved.depth + 1, "changes were begun and neither kept nor undone");
                self.overlay.keep();
                Ok(Ok(done))
            }
            Err(fault) if fault.is_contained() => {
                self.restore(saved);
                Ok(Err(fault))
            }
            Err(fault) => Err(fault),
        }
    }

    fn restore(&mut self, saved: Savepoint) {
        while self.overlay.depth() > saved.depth {
            self.overlay.undo();
        }
        self.vars = saved.vars;
        self.batch.lines.truncate(saved.lines);
        self.batch.joint = saved.joint;
        self.batch.bucket_uses = saved.bucket_uses;
        // What was taken of the batch's bound stays taken: the work was done.
        // It may hold what was taken back. `woken` may too: who is woken for nothing looks and waits on.
        self.batch.known_collections.clear();
        self.batch.known_quotas = KnownQuotas::default();
    }

    /// What a command comes to that faulted, and was taken back: an answer like any other, the same on every node.
    pub(super) fn faulted(&mut self, encoded: &[u8], fault: Fault) -> Result<Reply, Fault> {
        self.take_bytes(encoded.len());
        self.contained.push(Contained { index: self.batch.index, what: ContainedWork::Command(self.batch.nth), fault });
        // What is noted about it could fault in turn; then less is noted.
        if let Err(fault) = self.at_savepoint(|applier| applier.note_faulted(encoded))? {
            self.contained.push(Contained {
                index: self.batch.index,
                what: ContainedWork::Command(self.batch.nth),
                fault,
            });
            self.record(AuditOp::Unknown, None, Caller::default(), AuditEffect::Refused(Refusal::Internal));
        }
        Ok(self.reply(Outcome::Rejected(Rejection::Internal)))
    }

    /// Keeps a faulted command for a report, its outcome under its request id, and a line of audit.
    fn note_faulted(&mut self, encoded: &[u8]) -> Result<(), Fault> {
        let Vars { revision, clock, wall, level, .. } = self.vars;
        let command = catching(|| Ok(readable(encoded).ok()))?;
        let command = command.unwrap_or_else(|| Command::unnamed(Action::Faults(FaultsOp::Forget)));
        let kept = match encoded.len() <= limits::FAULT_COMMAND_BYTES_MAX {
            true => encoded.to_vec(),
            false => Vec::new(),
        };
        let row = FaultRow { revision, clock, wall, level, command: kept };
        self.overlay.insert_new(fault::row_key(self.batch.index, self.batch.nth), codec::encode(&row))?;
        self.count_faults(|counts| counts.commands += 1)?;
        self.drop_oldest_fault()?;
        let reply = self.reply(Outcome::Rejected(Rejection::Internal));
        if let Some(id) = &command.request_id
            && self.kept_reply(id, &command.principal)?.is_none()
        {
            let judged = (requests::fingerprint_of(encoded), encoded.len());
            self.keep_reply(&id.0, judged, &reply, &command.principal)?;
        }
        self.park_planning(&command.action)?;
        let key = match command.action {
            Action::Write(op) => Some(op.key),
            _ => None,
        };
        let caller = Caller { request_id: command.request_id, principal: command.principal };
        self.record(AuditOp::Unknown, key, caller, AuditEffect::Refused(Refusal::Internal));
        Ok(())
    }

    /// The leader would propose to plan a task again and again: that it waits for it is set aside.
    fn park_planning(&mut self, action: &Action) -> Result<(), Fault> {
        if let Action::Task(TaskOp { queue, verb: TaskVerb::Plan(plan) }) = action {
            let work = task::unplanned_key(queue, &plan.id);
            if self.overlay.peek(&work)?.is_some() {
                self.park_row(&work)?;
            }
        }
        Ok(())
    }

    /// Keeps only so many faulted commands.
    fn drop_oldest_fault(&mut self) -> Result<(), Fault> {
        let (start, end) = family_range(family::FAULT);
        let rows = self.overlay.scan(&start, &end, limits::FAULTS_KEPT_MAX + 1)?;
        if rows.len() > limits::FAULTS_KEPT_MAX {
            self.overlay.take(&rows[0].0)?;
        }
        Ok(())
    }

    fn count_faults(&mut self, change: impl FnOnce(&mut FaultCounts)) -> Result<(), Fault> {
        let mut counts: FaultCounts = self.decoded(fault::COUNTS_KEY)?.unwrap_or_default();
        change(&mut counts);
        self.overlay.replace(fault::COUNTS_KEY, Some(codec::encode(&counts))).map(|_| ())
    }

    /// Does work that a row stands for. Where it faults it is taken back, and the row set aside.
    pub(super) fn work_on_row(
        &mut self,
        work: &[u8],
        step: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self.at_savepoint(step)? {
            Ok(()) => Ok(()),
            Err(fault) => self.park(work, fault),
        }
    }

    /// Sets work aside that faulted: its row goes, and comes back when an operator has it tried again.
    pub(super) fn park(&mut self, work: &[u8], fault: Fault) -> Result<(), Fault> {
        self.contained.push(Contained { index: self.batch.index, what: ContainedWork::Work(work.to_vec()), fault });
        self.park_row(work)
    }

    /// Sets aside what cannot even be read; once.
    pub(super) fn park_unreadable(&mut self, row_key: &[u8], fault: Fault) -> Result<(), Fault> {
        if !self.is_containing {
            return Err(fault);
        }
        if self.is_parked(row_key)? { Ok(()) } else { self.park(row_key, fault) }
    }

    /// Tells the log of a fault of work that is not set aside.
    pub(super) fn note_contained(&mut self, work: &[u8], fault: Fault) {
        self.contained.push(Contained { index: self.batch.index, what: ContainedWork::Work(work.to_vec()), fault });
    }

    fn park_row(&mut self, work: &[u8]) -> Result<(), Fault> {
        if is_taken_away(work) {
            self.overlay.replace(work, None)?;
        }
        let Vars { revision, clock, wall, .. } = self.vars;
        let row = codec::encode(&ParkedRow { index: self.batch.index, revision, clock, wall });
        let was_there = self.overlay.replace(&fault::parked_key(work), Some(row))?.is_some();
        match was_there {
            true => Ok(()),
            false => self.count_faults(|counts| counts.parked += 1),
        }
    }

    /// Whether work is set aside.
    pub(super) fn is_parked(&self, work: &[u8]) -> Result<bool, Fault> {
        Ok(self.overlay.peek(&fault::parked_key(work))?.is_some())
    }

    /// Removes the row of work that is to be done no more, also where it is set aside.
    pub(super) fn take_work(&mut self, work: &[u8]) -> Result<(), Fault> {
        match self.forget_work(work)? {
            true => Ok(()),
            false => Err(Fault::Invariant(format!("row {} is missing", work.escape_ascii()))),
        }
    }

    /// Forgets work that may not be there. Returns whether it was.
    pub(super) fn forget_work(&mut self, work: &[u8]) -> Result<bool, Fault> {
        Ok(self.overlay.replace(work, None)?.is_some() || self.unpark(work)?)
    }

    /// Work is not set aside any more. Whether it was.
    fn unpark(&mut self, work: &[u8]) -> Result<bool, Fault> {
        let was_there = self.overlay.replace(&fault::parked_key(work), None)?.is_some();
        if was_there {
            self.count_faults(|counts| counts.parked = counts.parked.saturating_sub(1))?;
        }
        Ok(was_there)
    }

    /// What an operator does about faults.
    pub(super) fn faults(&mut self, op: FaultsOp, caller: Caller) -> Result<Outcome, Fault> {
        let work = match &op {
            FaultsOp::Retry(work) | FaultsOp::Drop(work) => Some(work),
            FaultsOp::Forget => None,
        };
        if let Some(work) = work
            && !self.is_parked(work)?
        {
            return Ok(self.refuse_in(AuditOp::Faults, None, caller, Rejection::NotFound));
        }
        self.take_revision()?;
        self.record(AuditOp::Faults, None, caller, AuditEffect::Beside);
        let done = match op {
            FaultsOp::Forget => self.forget_faults()?,
            FaultsOp::Retry(work) => self.retry(&work).map(|()| 1)?,
            FaultsOp::Drop(work) => self.drop_work(&work).map(|()| 1)?,
        };
        Ok(maintain::maintained(done, false))
    }

    fn forget_faults(&mut self) -> Result<usize, Fault> {
        let (start, end) = family_range(family::FAULT);
        let rows = self.overlay.scan(&start, &end, limits::FAULTS_KEPT_MAX)?;
        for (row_key, _) in &rows {
            self.overlay.take(row_key)?;
        }
        Ok(rows.len())
    }

    /// Tries work again: what waits for a moment at the next one, the rest at once.
    fn retry(&mut self, work: &[u8]) -> Result<(), Fault> {
        self.unpark(work)?;
        if is_taken_away(work) {
            self.overlay.replace(work, Some(Vec::new()))?;
        }
        match work.first() {
            Some(&family::TIMER) => {
                let at = timer::time_of(work).map_err(|error| Fault::row(work, error))?;
                self.vars.next_timer = Some(self.vars.next_timer.map_or(at, |next| next.min(at)));
            }
            Some(&family::AUDIT) => self.work_on_row(work, |applier| applier.compact_parked(work))?,
            Some(&family::ATTACHED) => self.work_on_row(work, |applier| applier.take_parked(work))?,
            Some(&family::LOCK_HEAD) => self.work_on_row(work, |applier| applier.grant_parked(work))?,
            _ => {}
        }
        Ok(())
    }

    /// Gives work up.
    fn drop_work(&mut self, work: &[u8]) -> Result<(), Fault> {
        self.unpark(work)?;
        if matches!(work.first(), Some(&(family::AUDIT | family::ATTACHED))) {
            self.overlay.replace(work, None)?;
        }
        Ok(())
    }
}

/// Whether setting work aside takes its row away. Where the row is more than a note that there is work, it stays.
fn is_taken_away(work: &[u8]) -> bool {
    matches!(
        work.first(),
        Some(&(family::TIMER | family::DEADLINE | family::LOCK | family::TASK_UNPLANNED | family::DROPPED_INDEX))
    )
}
