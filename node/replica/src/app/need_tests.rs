//! What commands need of a full disk: one row for each kind.

use quorate_machine::document::Criteria;
use quorate_machine::types::{
    Acquire, AfterFailure, BulkItem, ContentKind, Expect, Expiry, FaultsOp, ItemOutcome, Key, KeyRange, LockName,
    LockSpace, Maintenance, MembersOp, Name, QueueName, QuotaBounds, QuotaSubject, Rejection, RemoveStep, Removed,
    Requeue, RoleName, SessionId, Step, TaskId, TaskOp, Ticket, TokenId, UserName, Value, WhereOp, WhereReply, Written,
};

use super::*;

fn removal_of(key: &str) -> WriteOp {
    WriteOp::removal(Key::new(key).expect("a key"), false)
}

fn write(change: Change) -> WriteOp {
    WriteOp { change, ..removal_of("k") }
}

fn put() -> WriteOp {
    write(Change::Put(Value { kind: ContentKind::Bytes, data: vec![1] }))
}

fn name() -> Name {
    Name::new("n").expect("a name")
}

fn lock() -> LockName {
    LockName { space: LockSpace::Lock, name: name() }
}

fn task(verb: TaskVerb) -> Action {
    Action::Task(TaskOp { queue: QueueName::new("q").expect("a name"), verb })
}

fn ticket() -> Ticket {
    Ticket { id: TaskId::new("t").expect("an id"), token: 1 }
}

fn txn(steps: Vec<Step>) -> Action {
    Action::Txn(Txn { checks: vec![], then: vec![], otherwise: steps })
}

fn found(change: WhereChange) -> Action {
    let (criteria, condition) = (Criteria::default(), Criteria::default());
    Action::Where(WhereOp { prefix: vec![], criteria, condition, change, limit: 1, after: None, guard: None })
}

#[test]
fn each_kind_of_command_needs_what_it_leaves() {
    let user = || UserName::new("ann").expect("a name");
    let role = || RoleName::new("reader").expect("a name");
    let acquire = Acquire::of(lock(), SessionId(1));
    let touch = || WriteOp { expiry: Expiry::After(1), ..write(Change::Touch) };
    let rows = [
        (Action::Write(put()), Need::Room),
        (Action::Write(touch()), Need::Little),
        (Action::Write(removal_of("k")), Need::IfItFrees),
        (Action::Write(WriteOp { expect: Expect::cas(7), ..removal_of("k") }), Need::IfItFrees),
        (Action::Bulk(vec![removal_of("a"), removal_of("b")]), Need::IfItFrees),
        (Action::Bulk(vec![removal_of("a"), touch()]), Need::Little),
        (Action::Bulk(vec![removal_of("a"), put()]), Need::Room),
        (Action::Bulk(vec![]), Need::Little),
        (txn(vec![Step::Write(removal_of("a"))]), Need::IfItFrees),
        (txn(vec![Step::Write(removal_of("a")), Step::Write(put())]), Need::Room),
        (found(WhereChange::Remove), Need::IfItFrees),
        (Action::Session(SessionOp::Create { ttl_ms: 1, owner: String::new(), labels: vec![] }), Need::Room),
        (Action::Session(SessionOp::Renew(vec![])), Need::Nothing),
        (Action::Session(SessionOp::End(SessionId(1))), Need::IfItFrees),
        (Action::Lock(LockOp::Acquire(acquire)), Need::Room),
        (Action::Lock(LockOp::Release { lock: lock(), token: 1 }), Need::IfItFrees),
        (
            Action::Lock(LockOp::Leave { lock: lock(), session: SessionId(1), asked: None, release: true }),
            Need::IfItFrees,
        ),
        (Action::Barrier(BarrierOp::Enter { name: name(), session: SessionId(1), parties: 2 }), Need::Room),
        (Action::Barrier(BarrierOp::Leave { name: name(), session: SessionId(1) }), Need::IfItFrees),
        (Action::Latch(LatchOp::Create { name: name(), count: 1 }), Need::Room),
        (Action::Latch(LatchOp::CountDown { name: name(), by: 1 }), Need::Little),
        (Action::Latch(LatchOp::Remove { name: name() }), Need::IfItFrees),
        (task(TaskVerb::Schedule(vec![])), Need::Room),
        (task(TaskVerb::Claim { limit: 1, lease_ms: 1, worker: String::new(), session: None }), Need::Little),
        (task(TaskVerb::Extend { ticket: ticket(), lease_ms: 1 }), Need::Little),
        (task(TaskVerb::Fail { ticket: ticket(), error: String::new(), then: AfterFailure::Die }), Need::Little),
        (task(TaskVerb::Requeue(Requeue::Oldest(1))), Need::Little),
        (task(TaskVerb::Complete(ticket())), Need::IfItFrees),
        (task(TaskVerb::Cancel(ticket().id)), Need::IfItFrees),
        (Action::Access(AccessOp::SetUser { name: user(), roles: vec![] }), Need::Room),
        (Action::Access(AccessOp::SetRole { name: role(), grants: vec![] }), Need::Room),
        (Action::Access(AccessOp::RemoveUser(user())), Need::IfItFrees),
        (Action::Access(AccessOp::RemoveToken(TokenId(1))), Need::IfItFrees),
        (Action::Members(MembersOp::Revoke(TokenId(1))), Need::Nothing),
        (Action::Quota(QuotaOp::Set { subject: QuotaSubject::Default, bounds: QuotaBounds::default() }), Need::Nothing),
        (Action::Quota(QuotaOp::Remove(QuotaSubject::Default)), Need::Nothing),
        (Action::Maintain(Maintenance::ExpireDue { limit: 1 }), Need::Nothing),
        (Action::Faults(FaultsOp::Forget), Need::Nothing),
    ];
    for (action, need) in rows {
        assert_eq!(of(&action), need, "{action:?}");
    }
}

#[test]
fn what_is_written_about_a_removal_is_in_proportion_to_what_it_removes() {
    let gone = || Written { meta: None, previous: None };
    let item = |outcome| BulkItem { revision: 1, outcome };
    let bulk = |there: usize, absent: usize| {
        let there = (0..there).map(|_| item(ItemOutcome::Written(gone())));
        let absent = (0..absent).map(|_| item(ItemOutcome::Rejected(Rejection::NotFound)));
        Outcome::Bulk(there.chain(absent).collect())
    };
    assert!(frees(&Outcome::Written(gone()), 300));
    assert!(!frees(&Outcome::Written(gone()), 100_000), "a condition as long as that");
    assert!(frees(&bulk(100, 0), 100 * 200) && frees(&bulk(50, 50), 100 * 200));
    assert!(!frees(&bulk(1, 999), 1_000 * 200), "one of a thousand");
    assert!(!frees(&bulk(0, 1), 1));
    let range = |count| {
        let results = vec![StepReply::Removed(Removed { count, entries: vec![] }), StepReply::Got(None)];
        let within = TxnReply { failed: None, results };
        Outcome::Txn(TxnReply { failed: None, results: vec![StepReply::Txn(within)] })
    };
    assert!(frees(&range(1), 300) && !frees(&range(0), 300));
    let found = |applied| Outcome::Where(WhereReply { applied, ..WhereReply::default() });
    assert!(frees(&found(1), 300) && !frees(&found(0), 300));
    let step = RemoveStep { range: KeyRange::of_key(b"k"), return_previous: false };
    assert_eq!(of(&txn(vec![Step::Remove(step)])), Need::IfItFrees);
}
