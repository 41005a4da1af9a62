//! What a command needs of a disk that runs full.
//!
//! Owns the judgement by what is asked for, and by what that would come to. Pure. Never looks at a disk: [`super::last_room`] does.

use quorate_machine::types::{
    AccessOp, Action, BarrierOp, Branched, Change, ItemOutcome, LatchOp, LockOp, Outcome, QuotaOp, RulesChange,
    SessionOp, StepReply, TaskVerb, Txn, TxnReply, WhereChange, WriteOp,
};

/// What has to be free. In the order in which they are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing: few and small, and without them nobody comes out again, or others lose what they hold.
    Nothing,
    /// Nothing, where it removes something that is there; else as [`Self::Little`].
    IfItFrees,
    /// Some: it changes what is there already. Each time that costs an entry of the log, a kept outcome, and mostly a version.
    Little,
    /// All that writes need: it makes the state larger.
    Room,
}

/// Bytes in the log that a command may have for each thing that it removes, where nothing else is taken: what is there to be removed
/// comes to an end, and so does what is written about it.
const BYTES_FOR_A_REMOVAL: usize = 4 * 1024;

/// What an action needs.
pub fn of(action: &Action) -> Need {
    match action {
        Action::Write(op) => of_write(op),
        Action::Bulk(ops) => ops.iter().map(of_write).max().unwrap_or(Need::Little),
        Action::Txn(txn) => of_txn(txn),
        Action::Where(op) => removal(op.change == WhereChange::Remove),
        Action::Claim(_) | Action::Numbers(_) => Need::Room,
        Action::Rules(op) => removal(op.change == RulesChange::Remove),
        Action::Session(SessionOp::Create { .. } | SessionOp::CreateAs { .. }) => Need::Room,
        Action::Session(SessionOp::Renew(_)) => Need::Nothing,
        Action::Session(SessionOp::End(_)) => Need::IfItFrees,
        Action::Lock(op) => {
            removal(matches!(op, LockOp::Release { .. } | LockOp::Leave { .. } | LockOp::HangUp { .. }))
        }
        Action::Barrier(op) => removal(matches!(op, BarrierOp::Leave { .. })),
        Action::Latch(LatchOp::Create { .. }) => Need::Room,
        Action::Latch(LatchOp::CountDown { .. }) => Need::Little,
        Action::Latch(LatchOp::Remove { .. }) => Need::IfItFrees,
        // Work that is under way can be finished, and tasks that nobody needs be cancelled.
        Action::Task(op) => match op.verb {
            TaskVerb::Schedule(_) | TaskVerb::ScheduleOne(_) => Need::Room,
            TaskVerb::Claim { .. } | TaskVerb::Extend { .. } | TaskVerb::Fail { .. } | TaskVerb::Requeue(_) => {
                Need::Little
            }
            TaskVerb::Complete(_) | TaskVerb::Cancel(_) => Need::IfItFrees,
            TaskVerb::Plan(_) => Need::Nothing,
        },
        Action::Access(AccessOp::SetUser { .. } | AccessOp::SetRole { .. } | AccessOp::AddToken(_)) => Need::Room,
        Action::Access(AccessOp::RemoveUser(_) | AccessOp::RemoveRole(_) | AccessOp::RemoveToken(_)) => Need::IfItFrees,
        // Nodes that are needed must be able to come, and whoever fills the disk be bounded.
        Action::Members(_) | Action::Quota(QuotaOp::Set { .. } | QuotaOp::Remove(_)) => Need::Nothing,
        Action::Maintain(_) | Action::Faults(_) => Need::Nothing,
    }
}

fn of_write(op: &WriteOp) -> Need {
    match op.change {
        Change::Remove => Need::IfItFrees,
        Change::Touch => Need::Little,
        _ => Need::Room,
    }
}

/// By what it writes, whichever way it takes.
fn of_txn(txn: &Txn) -> Need {
    txn.all_writes().map(of_write).max().unwrap_or(Need::IfItFrees)
}

fn removal(is_one: bool) -> Need {
    if is_one { Need::IfItFrees } else { Need::Room }
}

/// Whether a command that [frees if anything](Need::IfItFrees) and has so many bytes removes enough for them, when it changes
/// something and this is what comes of it.
pub fn frees(outcome: &Outcome, command_bytes: usize) -> bool {
    let removed = match outcome {
        Outcome::Bulk(items) => items.iter().filter(|item| matches!(item.outcome, ItemOutcome::Written(_))).count(),
        Outcome::Txn(done) => removed_by(&done.results),
        Outcome::Where(done) => done.applied as usize,
        // One thing, with all that hangs on it.
        _ => 1,
    };
    command_bytes <= removed.saturating_mul(BYTES_FOR_A_REMOVAL)
}

fn removed_by(results: &[StepReply]) -> usize {
    let of = |result: &StepReply| match result {
        StepReply::Got(_) | StepReply::Listed(_) => 0,
        StepReply::Written(_) => 1,
        StepReply::Removed(removed) => removed.count as usize,
        StepReply::Txn(TxnReply { results, .. }) | StepReply::Branched(Branched { results, .. }) => removed_by(results),
    };
    results.iter().map(of).sum()
}

#[cfg(test)]
#[path = "need_tests.rs"]
mod tests;
