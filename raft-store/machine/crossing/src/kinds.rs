//! Kinds of commands.
//!
//! Owns their names and what each is aimed at, in exhaustive matches: a new command does not compile until it is in here, and
//! the table of pairs then asks for it in every state of its target. Never looks at a state.

use quorate_machine::types::{
    AccessOp, Action, BarrierOp, Change, FaultsOp, LatchOp, LockOp, LockSpace, Maintenance, MembersOp, Presence,
    QuotaOp, Requeue, RulesChange, SessionOp, TaskVerb, WhereChange, WriteOp,
};

/// What a kind of command is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// One entry.
    Entry,
    /// The entries of a prefix.
    Entries,
    /// A collection.
    Collection,
    /// A sequence.
    Sequence,
    /// A session.
    Session,
    /// A lock.
    Lock,
    /// An election.
    Election,
    /// A barrier.
    Barrier,
    /// A latch.
    Latch,
    /// A task.
    Task,
    /// A user, a role or a token.
    Account,
    /// An invitation.
    Invitation,
    /// A quota.
    Quota,
    /// The whole state.
    Everything,
}

/// The kinds of a write.
pub const CHANGES: [&str; 11] =
    ["insert", "upsert", "replace", "patch", "remove", "touch", "lock", "extend", "unlock", "claim", "claim patching"];

/// The kind of a write. A put has three, by what it expects.
pub fn of_write(op: &WriteOp) -> &'static str {
    match &op.change {
        Change::Put(_) => match op.expect.presence {
            Presence::Absent => "insert",
            Presence::Any => "upsert",
            Presence::Present => "replace",
        },
        Change::Patch(_) => "patch",
        Change::Remove => "remove",
        Change::Touch => "touch",
        Change::Lock(_) => "lock",
        Change::Extend(_) => "extend",
        Change::Unlock => "unlock",
        Change::Claim { patch: None, .. } => "claim",
        Change::Claim { patch: Some(_), .. } => "claim patching",
    }
}

/// A step that lists a range.
pub const LIST_RANGE: &str = "transaction: list a range";
/// A step that removes a range.
pub const REMOVE_RANGE: &str = "transaction: remove a range";
/// A comparison with the entries of a range.
pub const COMPARE_RANGE: &str = "transaction: compare a range";

/// Kinds that are no writes of one entry, each with its target.
pub const OTHERS: [(&str, Target); 60] = [
    (LIST_RANGE, Target::Entries),
    (REMOVE_RANGE, Target::Entries),
    (COMPARE_RANGE, Target::Entries),
    ("where: patch", Target::Entries),
    ("where: remove", Target::Entries),
    ("claim of what is found", Target::Entries),
    ("rules: set", Target::Collection),
    ("rules: remove", Target::Collection),
    ("numbers", Target::Sequence),
    ("session: create", Target::Everything),
    ("session: create as", Target::Session),
    ("session: renew", Target::Session),
    ("session: end", Target::Session),
    ("lock: acquire", Target::Lock),
    ("lock: release", Target::Lock),
    ("lock: leave", Target::Lock),
    ("lock: listen", Target::Lock),
    ("lock: hang up", Target::Lock),
    ("lock: proclaim", Target::Lock),
    ("election: campaign", Target::Election),
    ("election: resign", Target::Election),
    ("election: leave", Target::Election),
    ("election: listen", Target::Election),
    ("election: hang up", Target::Election),
    ("election: proclaim", Target::Election),
    ("barrier: enter", Target::Barrier),
    ("barrier: leave", Target::Barrier),
    ("latch: create", Target::Latch),
    ("latch: count down", Target::Latch),
    ("latch: remove", Target::Latch),
    ("task: schedule", Target::Task),
    ("task: schedule one", Target::Task),
    ("task: claim", Target::Task),
    ("task: extend", Target::Task),
    ("task: complete", Target::Task),
    ("task: fail", Target::Task),
    ("task: cancel", Target::Task),
    ("task: requeue one", Target::Task),
    ("task: requeue the oldest", Target::Task),
    ("task: plan", Target::Task),
    ("access: set user", Target::Account),
    ("access: remove user", Target::Account),
    ("access: set role", Target::Account),
    ("access: remove role", Target::Account),
    ("access: add token", Target::Account),
    ("access: remove token", Target::Account),
    ("quota: set", Target::Quota),
    ("quota: remove", Target::Quota),
    ("faults: forget", Target::Everything),
    ("faults: retry", Target::Everything),
    ("faults: drop", Target::Everything),
    ("maintain: expire", Target::Everything),
    ("maintain: compact", Target::Everything),
    ("maintain: indexes", Target::Everything),
    ("maintain: raise the level", Target::Everything),
    ("maintain: count", Target::Everything),
    ("new epoch", Target::Everything),
    ("members: invite", Target::Invitation),
    ("members: revoke", Target::Invitation),
    ("members: admit", Target::Invitation),
];

/// The kind of a command that is no write, bulk or transaction.
pub fn of_other(action: &Action) -> Option<&'static str> {
    Some(match action {
        Action::Write(_) | Action::Bulk(_) | Action::Txn(_) => return None,
        Action::Where(op) => match op.change {
            WhereChange::Patch { .. } => "where: patch",
            WhereChange::Remove => "where: remove",
        },
        Action::Claim(_) => "claim of what is found",
        Action::Rules(op) => match op.change {
            RulesChange::Set(_) => "rules: set",
            RulesChange::Remove => "rules: remove",
        },
        Action::Numbers(_) => "numbers",
        Action::Session(op) => match op {
            SessionOp::Create { .. } => "session: create",
            SessionOp::CreateAs { .. } => "session: create as",
            SessionOp::Renew(_) => "session: renew",
            SessionOp::End(_) => "session: end",
        },
        Action::Lock(op) => of_lock(op),
        Action::Barrier(BarrierOp::Enter { .. }) => "barrier: enter",
        Action::Barrier(BarrierOp::Leave { .. }) => "barrier: leave",
        Action::Latch(LatchOp::Create { .. }) => "latch: create",
        Action::Latch(LatchOp::CountDown { .. }) => "latch: count down",
        Action::Latch(LatchOp::Remove { .. }) => "latch: remove",
        Action::Task(op) => of_verb(&op.verb),
        Action::Access(op) => match op {
            AccessOp::SetUser { .. } => "access: set user",
            AccessOp::RemoveUser(_) => "access: remove user",
            AccessOp::SetRole { .. } => "access: set role",
            AccessOp::RemoveRole(_) => "access: remove role",
            AccessOp::AddToken(_) => "access: add token",
            AccessOp::RemoveToken(_) => "access: remove token",
        },
        Action::Quota(op) => match op {
            QuotaOp::Set { .. } => "quota: set",
            QuotaOp::Remove(_) => "quota: remove",
        },
        Action::Faults(op) => match op {
            FaultsOp::Forget => "faults: forget",
            FaultsOp::Retry(_) => "faults: retry",
            FaultsOp::Drop(_) => "faults: drop",
        },
        Action::Members(op) => match op {
            MembersOp::Invite(_) => "members: invite",
            MembersOp::Revoke(_) => "members: revoke",
            MembersOp::Admit { .. } => "members: admit",
        },
        Action::Maintain(what) => match what {
            Maintenance::ExpireDue { .. } => "maintain: expire",
            Maintenance::Compact { .. } => "maintain: compact",
            Maintenance::Indexes { .. } => "maintain: indexes",
            Maintenance::RaiseLevel { .. } => "maintain: raise the level",
            Maintenance::Count => "maintain: count",
        },
    })
}

fn of_lock(op: &LockOp) -> &'static str {
    match op {
        LockOp::Acquire(request) => match request.lock.space {
            LockSpace::Lock => "lock: acquire",
            LockSpace::Election => "election: campaign",
        },
        LockOp::Release { lock, .. } => match lock.space {
            LockSpace::Lock => "lock: release",
            LockSpace::Election => "election: resign",
        },
        LockOp::Leave { lock, .. } => match lock.space {
            LockSpace::Lock => "lock: leave",
            LockSpace::Election => "election: leave",
        },
        LockOp::Proclaim { lock, .. } => match lock.space {
            LockSpace::Lock => "lock: proclaim",
            LockSpace::Election => "election: proclaim",
        },
        LockOp::Listen { lock, .. } => match lock.space {
            LockSpace::Lock => "lock: listen",
            LockSpace::Election => "election: listen",
        },
        LockOp::HangUp { lock, .. } => match lock.space {
            LockSpace::Lock => "lock: hang up",
            LockSpace::Election => "election: hang up",
        },
    }
}

fn of_verb(verb: &TaskVerb) -> &'static str {
    match verb {
        TaskVerb::Schedule(_) => "task: schedule",
        TaskVerb::ScheduleOne(_) => "task: schedule one",
        TaskVerb::Claim { .. } => "task: claim",
        TaskVerb::Extend { .. } => "task: extend",
        TaskVerb::Complete(_) => "task: complete",
        TaskVerb::Fail { .. } => "task: fail",
        TaskVerb::Cancel(_) => "task: cancel",
        TaskVerb::Requeue(Requeue::One(_)) => "task: requeue one",
        TaskVerb::Requeue(Requeue::Oldest(_)) => "task: requeue the oldest",
        TaskVerb::Plan(_) => "task: plan",
    }
}
