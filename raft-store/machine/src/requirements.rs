//! What a command requires of who asks for it.
//!
//! Owns the one list of it: every kind of command stands here, recursively with all that is in it, and a new kind does not
//! compile before it says what it requires. Judges nothing.

use crate::access::{Permission, RequiredPermission};
use crate::types::{
    Action, BarrierOp, Change, ClaimOp, Guard, Key, KeyRange, LatchOp, LockOp, LockSpace, RulesChange, RulesOp,
    SessionId, SessionOp, Step, TaskOp, TaskVerb, Txn, WhereChange, WhereOp, WriteOp,
};
use Permission::{Admin, Lock, Read, Write};

/// What has to hold for somebody to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement<'a> {
    /// Rights.
    Permission(RequiredPermission<'a>),
    /// The session is their own, or they may administer everything. Ids of sessions can be guessed: who knows one must not end
    /// what hangs on it.
    Session(SessionId),
    /// The same, where the session lives: whether the branch that names it is taken is decided later.
    SessionOfBranch(SessionId),
    /// Any right at all: for what has no name yet.
    Something,
}

/// Takes what is demanded, one after the other.
pub type Visit<'v> = dyn FnMut(Requirement<'_>) + 'v;

impl Action {
    /// Everything that carrying it out requires, whichever way it goes. A dry run requires the same: it tells the same.
    pub fn requirements(&self, visit: &mut Visit<'_>) {
        match self {
            Self::Write(op) => of_write(op, visit),
            Self::Bulk(ops) => ops.iter().for_each(|op| of_write(op, visit)),
            Self::Txn(txn) => of_txn(txn, visit),
            Self::Where(op) => of_where(op, visit),
            Self::Claim(op) => of_claim(op, visit),
            Self::Rules(op) => of_rules(op, visit),
            Self::Numbers(op) => name(Write, op.name.as_str(), visit),
            Self::Session(op) => of_session(op, visit),
            Self::Lock(op) => of_lock(op, visit),
            Self::Barrier(BarrierOp::Enter { name: of, session, .. } | BarrierOp::Leave { name: of, session }) => {
                name(Lock, of.as_str(), visit);
                visit(Requirement::Session(*session));
            }
            Self::Latch(
                LatchOp::Create { name: of, .. } | LatchOp::CountDown { name: of, .. } | LatchOp::Remove { name: of },
            ) => name(Lock, of.as_str(), visit),
            Self::Task(op) => of_task(op, visit),
            Self::Access(_) | Self::Faults(_) | Self::Members(_) | Self::Quota(_) => everything(visit),
            // The cluster's own, which no caller can ask for.
            Self::Maintain(_) => everything(visit),
        }
    }
}

impl WriteOp {
    /// Visits what one write requires.
    pub fn requirements(&self, visit: &mut Visit<'_>) {
        of_write(self, visit);
    }
}

/// The right to do everything.
fn everything(visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Prefix(Admin, b"")));
}

fn name(permission: Permission, name: &str, visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Name(permission, name.as_bytes())));
}

fn key(permission: Permission, key: &Key, visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Name(permission, key.as_bytes())));
}

/// A guard tells whether a token holds a lock, and makes an effect depend on it.
fn of_guard(guard: Option<&Guard>, visit: &mut Visit<'_>) {
    if let Some(Guard { lock, .. }) = guard {
        match lock.space {
            LockSpace::Lock | LockSpace::Election => name(Lock, lock.name.as_str(), visit),
        }
    }
}

fn of_write(op: &WriteOp, visit: &mut Visit<'_>) {
    match &op.change {
        Change::Put(_) | Change::Patch(_) | Change::Remove | Change::Touch => key(Write, &op.key, visit),
        Change::Lock(_) | Change::Extend(_) | Change::Unlock => {
            key(Lock, &op.key, visit);
            // They may also say how long the entry lives and with which session it goes, which is a change of it.
            if !matches!(op.expiry, crate::types::Expiry::Keep) || op.session.is_some() {
                key(Write, &op.key, visit);
            }
        }
        Change::Claim { patch, .. } => {
            key(Lock, &op.key, visit);
            if patch.is_some() {
                key(Write, &op.key, visit);
            }
        }
    }
    if let Some(session) = op.session {
        visit(Requirement::Session(session));
    }
    of_guard(op.guard.as_deref(), visit);
}

fn of_txn(txn: &Txn, visit: &mut Visit<'_>) {
    for check in &txn.checks {
        key(Read, &check.key, visit);
    }
    txn.then.iter().chain(&txn.otherwise).for_each(|step| of_step(step, visit));
}

fn of_step(step: &Step, visit: &mut Visit<'_>) {
    match step {
        Step::Get(of) => key(Read, of, visit),
        Step::Write(op) => of_write(op, visit),
        Step::Txn(txn) => of_txn(txn, visit),
        Step::List(step) => range(Read, &step.range, visit),
        Step::Remove(step) => range(Write, &step.range, visit),
        Step::Branch(branch) => {
            branch.comparisons.iter().for_each(|comparison| range(Read, &comparison.range, visit));
            let mut in_branch = |requirement: Requirement<'_>| match requirement {
                Requirement::Session(session) => visit(Requirement::SessionOfBranch(session)),
                other => visit(other),
            };
            branch.then.iter().chain(&branch.otherwise).for_each(|step| of_step(step, &mut in_branch));
        }
    }
}

fn range(permission: Permission, range: &KeyRange, visit: &mut Visit<'_>) {
    visit(Requirement::on_range(permission, range));
}

impl<'a> Requirement<'a> {
    /// A permission on all keys of a range.
    pub fn on_range(permission: Permission, range: &'a KeyRange) -> Self {
        Self::Permission(match range.key() {
            Some(key) => RequiredPermission::Name(permission, key),
            None => RequiredPermission::Range(permission, range.start(), range.end()),
        })
    }
}

fn of_where(op: &WhereOp, visit: &mut Visit<'_>) {
    match &op.change {
        WhereChange::Patch { .. } | WhereChange::Remove => {
            visit(Requirement::Permission(RequiredPermission::Prefix(Write, &op.prefix)))
        }
    }
    of_guard(op.guard.as_deref(), visit);
}

fn of_claim(op: &ClaimOp, visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Prefix(Lock, &op.prefix)));
    if op.patch.is_some() {
        visit(Requirement::Permission(RequiredPermission::Prefix(Write, &op.prefix)));
    }
    of_guard(op.guard.as_deref(), visit);
}

/// Rules act on every key of a collection, and on the sequences that they draw from whoever writes.
fn of_rules(op: &RulesOp, visit: &mut Visit<'_>) {
    visit(Requirement::Permission(RequiredPermission::Prefix(Admin, format!("{}/", op.name.as_str()).as_bytes())));
    match &op.change {
        RulesChange::Set(rules) => {
            for sequence in rules.fields().iter().filter_map(|(_, rule)| rule.sequence.as_ref()) {
                name(Write, sequence.as_str(), visit);
            }
        }
        RulesChange::Remove => {}
    }
}

fn of_session(op: &SessionOp, visit: &mut Visit<'_>) {
    match op {
        SessionOp::Create { .. } | SessionOp::CreateAs { .. } => visit(Requirement::Something),
        SessionOp::Renew(sessions) => sessions.iter().for_each(|session| visit(Requirement::Session(*session))),
        SessionOp::End(session) => visit(Requirement::Session(*session)),
    }
}

fn of_lock(op: &LockOp, visit: &mut Visit<'_>) {
    let (lock, session) = match op {
        LockOp::Acquire(acquire) => (&acquire.lock, Some(acquire.session)),
        LockOp::Leave { lock, session, .. }
        | LockOp::Listen { lock, session }
        | LockOp::HangUp { lock, session, .. } => (lock, Some(*session)),
        LockOp::Release { lock, .. } | LockOp::Proclaim { lock, .. } => (lock, None),
    };
    name(Lock, lock.name.as_str(), visit);
    if let Some(session) = session {
        visit(Requirement::Session(session));
    }
}

fn of_task(op: &TaskOp, visit: &mut Visit<'_>) {
    name(Write, op.queue.as_str(), visit);
    match &op.verb {
        TaskVerb::Claim { session: Some(session), .. } => visit(Requirement::Session(*session)),
        TaskVerb::Claim { session: None, .. } | TaskVerb::Schedule(_) | TaskVerb::ScheduleOne(_) => {}
        TaskVerb::Extend { .. } | TaskVerb::Complete(_) | TaskVerb::Fail { .. } => {}
        TaskVerb::Cancel(_) | TaskVerb::Requeue(_) => {}
        // The leader's alone.
        TaskVerb::Plan(_) => everything(visit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Criteria;
    use crate::types::{Acquire, Check, Expect, Expiry, LockName, Maintenance, Name, NumbersOp, QueueName, Value};
    use crate::types::{ContentKind, TaskVerb};

    fn shown(action: &Action) -> Vec<String> {
        let mut all = Vec::new();
        action.requirements(&mut |requirement| {
            all.push(match requirement {
                Requirement::Permission(RequiredPermission::Name(permission, name)) => {
                    format!("{permission:?} {}", name.escape_ascii())
                }
                Requirement::Permission(RequiredPermission::Prefix(permission, name)) => {
                    format!("{permission:?} {}*", name.escape_ascii())
                }
                Requirement::Permission(RequiredPermission::Range(permission, ..)) => format!("{permission:?} ?"),
                Requirement::Session(session) => format!("session {session}"),
                Requirement::SessionOfBranch(session) => format!("session {session}, if it lives"),
                Requirement::Something => "something".to_owned(),
            });
        });
        all
    }

    fn write(key: &str, change: Change) -> WriteOp {
        WriteOp { change, ..WriteOp::removal(Key::new(key).expect("a key"), true) }
    }

    fn lock(name: &str) -> LockName {
        LockName { space: LockSpace::Lock, name: Name::new(name).expect("a name") }
    }

    #[test]
    fn writes_require_what_they_change_lock_and_hang_on() {
        let value = Value { kind: ContentKind::Bytes, data: Vec::new() };
        assert_eq!(shown(&Action::Write(write("a", Change::Put(value.clone())))), ["Write a"]);
        assert_eq!(shown(&Action::Write(write("a", Change::Lock(5)))), ["Lock a"]);
        let living = WriteOp { expiry: Expiry::After(5), ..write("a", Change::Unlock) };
        assert_eq!(shown(&Action::Write(living)), ["Lock a", "Write a"]);
        let guarded = WriteOp {
            guard: Some(Box::new(Guard { lock: lock("l"), token: 1 })),
            session: Some(SessionId(7)),
            ..write("a", Change::Put(value))
        };
        assert_eq!(shown(&Action::Bulk(vec![guarded])), ["Write a", "session 7", "Lock l"]);
    }

    #[test]
    fn transactions_require_all_of_both_branches_at_any_depth() {
        let check = Check { key: Key::new("c").expect("a key"), expect: Expect::ANY, condition: Criteria::default() };
        let inner = Txn {
            checks: vec![check.clone()],
            then: vec![Step::Write(write("deep", Change::Remove))],
            otherwise: vec![Step::Get(Key::new("other").expect("a key"))],
        };
        let txn = Txn {
            checks: vec![check],
            then: vec![Step::Get(Key::new("g").expect("a key"))],
            otherwise: vec![Step::Txn(inner)],
        };
        assert_eq!(shown(&Action::Txn(txn)), ["Read c", "Read g", "Read c", "Write deep", "Read other"]);
    }

    #[test]
    fn what_has_a_session_requires_that_it_is_the_callers() {
        let acquire = Acquire::of(lock("l"), SessionId(3));
        assert_eq!(shown(&Action::Lock(LockOp::Acquire(acquire))), ["Lock l", "session 3"]);
        let renewal = SessionOp::Renew(vec![SessionId(1), SessionId(2)]);
        assert_eq!(shown(&Action::Session(renewal)), ["session 1", "session 2"]);
        let claim = TaskVerb::Claim { limit: 1, lease_ms: 1, worker: String::new(), session: Some(SessionId(9)) };
        let op = TaskOp { queue: QueueName::new("mail").expect("a name"), verb: claim };
        assert_eq!(shown(&Action::Task(op)), ["Write mail", "session 9"]);
    }

    #[test]
    fn rules_require_the_collection_and_what_its_sequences_give() {
        let json = br#"{"fields":{"n":{"type":"long","sequence":"invoices"}}}"#;
        let json = crate::document::Json::parse(json).expect("JSON");
        let rules = crate::rules::Rules::read(&json, "").expect("rules");
        let name = crate::rules::CollectionName::new("orders").expect("a name");
        let op = RulesOp { name, expect: Expect::ANY, change: RulesChange::Set(rules) };
        assert_eq!(shown(&Action::Rules(op)), ["Admin orders/*", "Write invoices"]);
        let name = crate::rules::SequenceName::new("invoices").expect("a name");
        assert_eq!(shown(&Action::Numbers(NumbersOp { name, count: 1 })), ["Write invoices"]);
        assert_eq!(shown(&Action::Maintain(Maintenance::ExpireDue { limit: 1 })), ["Admin *"]);
    }
}
