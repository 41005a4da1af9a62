//! Transactions: conditions on many keys, then all of a branch or nothing of it.
//!
//! Owns the order of checks and steps, what "all or nothing" undoes, and that all writes share one revision. What each
//! write means is `write`'s.

use std::collections::{BTreeSet, VecDeque};

use super::write::{check_condition, check_expect, document};
use crate::document::Subject;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::entry::{self, EntryRow};
use crate::machine::collections::understood;
use crate::machine::current::decode_current;
use crate::machine::stop::{Stop, Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller, Vars};
use crate::mutants::Mutant;
use crate::types::{
    Branch, Branched, Check, CheckFailed, Key, Outcome, Rejection, Shown, Step, StepRejected, StepReply, Txn, TxnReply,
    Written,
};

/// The result of a part of a transaction, unless a step is rejected.
pub(in crate::machine) type Stepped<T> = Result<T, Stop<Box<StepRejected>>>;

impl<V: View> Applier<'_, V> {
    /// Carries out a transaction, or says which step forbids it.
    pub(in crate::machine) fn txn(&mut self, txn: &Txn, caller: Caller) -> Result<Outcome, Fault> {
        if let Some(fault) = txn.fault() {
            let rejection = Rejection::Unsupported(fault.to_string());
            self.record(AuditOp::Txn, None, caller, AuditEffect::Refused((&rejection).into()));
            return Ok(Outcome::Rejected(rejection));
        }
        if let Some(outcome) = self.bury_expired(txn, &caller)? {
            return Ok(outcome);
        }
        // The burial has a bound of its own: a transaction is not refused for what others left behind.
        self.begin_steps();
        let done =
            self.jointly(caller.clone(), |applier, taken_before| applier.branch(txn, "", &caller, taken_before))?;
        Ok(match done {
            Ok(done) => Outcome::Txn(done),
            Err(rejected) => Outcome::TxnRejected(rejected),
        })
    }

    /// Does something of which all writes share one revision, and undoes all of it where it is rejected. It is told how
    /// many bytes the batch had taken before.
    fn jointly<T>(
        &mut self,
        caller: Caller,
        work: impl FnOnce(&mut Self, usize) -> Stepped<T>,
    ) -> Result<Result<T, Box<StepRejected>>, Fault> {
        let (revision, lines, taken) = (self.vars.revision, self.batch.lines.len(), self.taken());
        self.overlay.begin();
        let done = self.sharing_revision(|applier| split(work(applier, taken)))?;
        match &done {
            Ok(_) => self.overlay.keep(),
            Err(rejected) => {
                self.overlay.undo();
                if !Mutant::UndoneRevisionsStay.acts() {
                    self.vars.revision = revision;
                }
                self.batch.lines.truncate(lines);
                let effect = AuditEffect::Refused((&rejected.why).into());
                self.record(AuditOp::Txn, rejected.key.clone(), caller, effect);
            }
        }
        Ok(done)
    }

    /// Buries the expired entries of all keys that it may write, each in a revision of its own, so that what it then writes
    /// needs only one. Where there is too much of them, what is removed by then is less to come, so the transaction comes again;
    /// where there is too much to look at, it never will be less, so it is refused.
    fn bury_expired(&mut self, txn: &Txn, caller: &Caller) -> Result<Option<Outcome>, Fault> {
        let (taken_before, revision_before) = (self.taken(), self.vars.revision);
        let keys: BTreeSet<&Key> = txn.all_writes().map(|op| &op.key).collect();
        for key in keys {
            let row_key = entry::row_key(key.as_bytes());
            let newest = self.vars.revision;
            let Some(row) = self.overlay.peek(&row_key)? else { continue };
            let (meta, bytes) = (decode_current(&row_key, &row, newest)?.meta, row.len());
            if meta.expires_at.is_some_and(|deadline| deadline <= self.vars.clock) {
                drop(row);
                self.expire(key.clone(), &row_key, &meta)?;
            }
            self.take_bytes(bytes);
            if let Err(rejected) = self.check_bound(taken_before) {
                let is_less = self.vars.revision > revision_before;
                return Ok(Some(if is_less { Outcome::Deferred } else { self.refuse_txn(rejected, caller.clone()) }));
            }
        }
        Ok(None)
    }

    /// Notes that a transaction was rejected.
    fn refuse_txn(&mut self, rejected: Box<StepRejected>, caller: Caller) -> Outcome {
        self.record(AuditOp::Txn, rejected.key.clone(), caller, AuditEffect::Refused((&rejected.why).into()));
        Outcome::TxnRejected(rejected)
    }

    /// Judges the checks and takes the steps that follow. `place` points to the transaction.
    fn branch(&mut self, txn: &Txn, place: &str, caller: &Caller, taken_before: usize) -> Stepped<TxnReply> {
        let mut failed = None;
        for (at, check) in txn.checks.iter().enumerate() {
            let judged = split(self.check(check))?;
            // Whether it holds is not known, so neither branch can be taken.
            if let Err(why @ Rejection::TooDear(_)) = judged {
                let (pointer, key) = (format!("{place}/if/{at}"), Some(check.key.clone()));
                return Err(Box::new(StepRejected { pointer, key, why }).into());
            }
            self.check_bound(taken_before)?;
            if let Err(why) = judged {
                let at = u32::try_from(at).expect("checks are bounded by limits::TXN_STEPS_MAX");
                failed = Some(CheckFailed { at, why });
                break;
            }
        }
        let succeeded = failed.is_none();
        let steps = (succeeded, txn.branch(succeeded));
        let results = self.steps(steps, &mut VecDeque::new(), place, caller, taken_before)?;
        Ok(TxnReply { failed, results })
    }

    /// Takes the steps of a branch. `place` points to it. It is decided with all branches within it before any of their steps; where
    /// it is within one, that was done.
    fn fork(
        &mut self,
        branch: &Branch,
        decided: &mut VecDeque<bool>,
        place: &str,
        caller: &Caller,
        taken_before: usize,
    ) -> Stepped<Branched> {
        let succeeded = match decided.pop_front() {
            Some(succeeded) => succeeded,
            None => {
                self.decide(branch, decided, taken_before)?;
                decided.pop_front().expect("it was decided")
            }
        };
        let steps = (succeeded, branch.branch(succeeded));
        let results = self.steps(steps, decided, place, caller, taken_before)?;
        Ok(Branched { succeeded, results })
    }

    /// Judges the comparisons of a branch, and of those within that are reached by that, in the order in which they will be.
    fn decide(&mut self, branch: &Branch, decided: &mut VecDeque<bool>, taken_before: usize) -> Stepped<()> {
        let mut succeeded = true;
        for comparison in &branch.comparisons {
            succeeded = self.compare(comparison)?;
            self.check_bound(taken_before)?;
            if !succeeded {
                break;
            }
        }
        decided.push_back(succeeded);
        for step in branch.branch(succeeded) {
            if let Step::Branch(within) = step {
                self.decide(within, decided, taken_before)?;
            }
        }
        Ok(())
    }

    /// Takes the steps of the one or the other branch.
    fn steps(
        &mut self,
        (succeeded, steps): (bool, &[Step]),
        decided: &mut VecDeque<bool>,
        place: &str,
        caller: &Caller,
        taken_before: usize,
    ) -> Stepped<Vec<StepReply>> {
        let name = if succeeded { "then" } else { "else" };
        let mut results = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let place = format!("{place}/{name}/{at}");
            results.push(self.step(step, decided, &place, caller, taken_before)?);
            self.check_bound(taken_before)?;
        }
        Ok(results)
    }

    fn step(
        &mut self,
        step: &Step,
        decided: &mut VecDeque<bool>,
        place: &str,
        caller: &Caller,
        taken_before: usize,
    ) -> Stepped<StepReply> {
        match step {
            Step::Get(key) => {
                let shown = self.live(key, |_, row| row.map(|row| row.to_shown()))?;
                self.take_bytes(shown.as_ref().map_or(0, Shown::value_bytes));
                Ok(StepReply::Got(shown))
            }
            Step::Write(op) => match split(self.write(op.clone(), caller.clone()))? {
                Ok(written) => {
                    self.take_bytes(Written::value_bytes(&written));
                    Ok(StepReply::Written(written))
                }
                Err(why) => {
                    let (pointer, key) = (place.to_owned(), Some(op.key.clone()));
                    Err(Box::new(StepRejected { pointer, key, why }).into())
                }
            },
            Step::Txn(txn) => self.branch(txn, place, caller, taken_before).map(StepReply::Txn),
            Step::List(step) => self.list(step, place).map(StepReply::Listed),
            Step::Remove(step) => self.remove_range(step, place, caller).map(StepReply::Removed),
            Step::Branch(branch) => self.fork(branch, decided, place, caller, taken_before).map(StepReply::Branched),
        }
    }

    /// Whether a transaction has taken no more than it may.
    fn check_bound(&self, taken_before: usize) -> Result<(), Box<StepRejected>> {
        let limit = self.bounds.txn_bytes;
        if self.taken() - taken_before <= limit {
            return Ok(());
        }
        // How much it came to is measured, and no measure is kept: only that it is too much follows from what was asked.
        let why = Rejection::TooMuch { limit: limit as u64 };
        Err(Box::new(StepRejected { pointer: String::new(), key: None, why }))
    }

    /// Whether a check holds.
    fn check(&mut self, check: &Check) -> Tried<()> {
        let Vars { clock, wall, .. } = self.vars;
        let collection = self.collection_of(check.key.as_bytes())?;
        let condition = understood(collection.as_deref(), &check.condition, wall);
        let steps = self.steps_so_far();
        let (judged, bytes) = self.live(&check.key, |key, row| {
            let judged = check_expect(&check.expect, false, row, clock).and_then(|()| {
                let document = document(&condition, false, row, &steps)?;
                let is_locked = row.is_some_and(|row| row.meta.is_locked_at(clock));
                let meta = row.map(|row| &row.meta);
                let subject = Subject { key, meta, is_locked, document: document.as_ref(), clock, wall };
                check_condition(&condition, row, &subject, &steps)
            });
            (judged, row.map_or(0, |row| row.data.len()))
        })?;
        self.take_steps(&steps);
        self.take_bytes(bytes + judged.as_ref().err().map_or(0, Rejection::value_bytes));
        Ok(judged?)
    }

    /// Shows the entry of a key as it is now; an expired one is none.
    pub(in crate::machine) fn live<T>(
        &mut self,
        key: &Key,
        look: impl FnOnce(&Key, Option<&EntryRow<'_>>) -> T,
    ) -> Result<T, Fault> {
        let (newest, clock) = (self.vars.revision, self.vars.clock);
        let row_key = entry::row_key(key.as_bytes());
        let row = match self.overlay.get(&row_key)? {
            Some(row) => Some(decode_current(&row_key, row, newest)?).filter(|row| !row.is_expired_at(clock)),
            None => None,
        };
        Ok(look(key, row.as_ref()))
    }
}
