//! Bounds of sessions: what may hang on one, how many wait for one lock, what one apply grants, gives back and removes as one ends, and that
//! all of it comes in the end.

use crate::machine_support::bounds::{keep, put};
use crate::machine_support::{Store, batch};
use quorate_crossing::memory::most_during;
use quorate_machine::codec;
use quorate_machine::keyspace::lock_queue::{self, HolderRow};
use quorate_machine::keyspace::task::TaskRow;
use quorate_machine::keyspace::{entry, family, fault, session};
use quorate_machine::limits;
use quorate_machine::machine::{Applier, EpochStep, View};
use quorate_machine::types::*;

/// More than applying one batch ever holds.
const MEMORY_MAX: usize = 4 * limits::BATCH_EFFECT_BYTES_MAX;

/// Applies one batch and gives its replies and the bytes of keys and values that it writes.
fn measured(store: &mut Store, batch: &Batch) -> (Vec<Reply>, usize) {
    let ((replies, applied), memory) = most_during(|| {
        let mut applier = Applier::new(&store.view, store.vars.clone());
        let replies = applier.apply_batch(store.index + 1, batch).unwrap();
        (replies, applier.finish())
    });
    assert!(memory < MEMORY_MAX, "{memory} bytes were held to apply {} commands", batch.commands.len());
    let bytes = keep(store, batch, &replies, applied);
    (replies, bytes)
}

fn acquire(lock: &LockName, session: SessionId, mode: LockMode) -> Command {
    let request = Acquire { mode, wait_ms: 60_000, ..Acquire::of(lock.clone(), session) };
    Command::unnamed(Action::Lock(LockOp::Acquire(request)))
}

fn lock_of(number: usize) -> LockName {
    LockName { space: LockSpace::Lock, name: Name::new(format!("l{number}")).unwrap() }
}

fn end(session: SessionId) -> Command {
    Command::unnamed(Action::Session(SessionOp::End(session)))
}

fn create_for(ttl_ms: u64) -> Command {
    Command::unnamed(Action::Session(SessionOp::Create { ttl_ms, owner: String::new(), labels: Vec::new() }))
}

/// Sessions that live longer than a test, so many at once.
fn begin_sessions(store: &mut Store, count: usize) -> Vec<SessionId> {
    let create = Command { principal: "ann".to_owned(), ..create_for(1_000_000) };
    let commands = vec![create; count];
    let (replies, _) = measured(store, &batch(1, &commands));
    let id = |reply: &Reply| match reply.outcome {
        Outcome::Session(SessionReply::Created { id, .. }) => id,
        ref other => panic!("{other:?}"),
    };
    replies.iter().map(id).collect()
}

/// A session holds locks that many others wait for in shared mode. Gives it, and those who wait in their order.
fn with_a_crowd_behind_one(store: &mut Store, locks: usize, crowd: usize) -> (SessionId, Vec<SessionId>) {
    let sessions = begin_sessions(store, 1 + crowd);
    for lock in (0..locks).map(lock_of) {
        let first = acquire(&lock, sessions[0], LockMode::Exclusive);
        let others = sessions[1..].iter().map(|session| acquire(&lock, *session, LockMode::Shared));
        let commands: Vec<_> = [first].into_iter().chain(others).collect();
        let (replies, _) = measured(store, &batch(1, &commands));
        assert!(matches!(replies[0].outcome, Outcome::Lock(LockReply::Held { .. })));
        assert!(replies[1..].iter().all(|reply| matches!(reply.outcome, Outcome::Lock(LockReply::Waiting { .. }))));
    }
    (sessions[0], sessions[1..].to_vec())
}

/// Who holds a lock, in order of tokens.
fn holders(store: &Store, lock: &LockName) -> Vec<SessionId> {
    let (start, end) = lock_queue::holders_of(lock);
    let rows = store.view.scan(&start, &end, usize::MAX).unwrap();
    rows.iter().map(|(_, row)| codec::decode::<HolderRow>(row).unwrap().session).collect()
}

/// Batches without a command until nothing goes on by itself. Gives how many it took.
fn settle(store: &mut Store, mut check: impl FnMut(&Store)) -> usize {
    let mut batches = 0;
    while store.vars.next_timer.is_some_and(|next| next <= store.vars.clock) {
        let (_, bytes) = measured(store, &batch(1, &[]));
        assert!(bytes < 2 * limits::BATCH_EFFECT_BYTES_MAX, "{bytes} bytes are written by one batch");
        check(store);
        batches += 1;
    }
    batches
}

#[test]
fn locks_of_a_session_that_ends_are_granted_to_a_crowd_over_some_batches_and_in_order() {
    let mut store = Store::default();
    let (session, waiting) = with_a_crowd_behind_one(&mut store, 8, 500);
    let granted = |store: &Store| (0..8).map(|lock| holders(store, &lock_of(lock)).len()).sum::<usize>();
    let mut before = 0;
    let mut check = |store: &Store| {
        let now = granted(store);
        assert!((1..=2_000).contains(&(now - before)), "{now} after {before}");
        before = now;
        store.check();
    };
    measured(&mut store, &batch(1, &[end(session)]));
    check(&store);
    let batches = settle(&mut store, check);
    assert!(batches >= 2, "{batches}");
    for lock in (0..8).map(lock_of) {
        assert_eq!(holders(&store, &lock), waiting, "{lock:?}");
    }
}

#[test]
fn who_comes_while_grants_are_under_way_waits_behind_the_crowd() {
    let mut store = Store::default();
    let (session, _) = with_a_crowd_behind_one(&mut store, 8, 500);
    let late = begin_sessions(&mut store, 1)[0];
    let last = lock_of(7);
    let (replies, _) = measured(&mut store, &batch(1, &[end(session), acquire(&last, late, LockMode::Exclusive)]));
    assert!(matches!(replies[1].outcome, Outcome::Lock(LockReply::Waiting { .. }) | Outcome::Deferred), "{replies:?}");
    let (replies, _) = measured(&mut store, &batch(1, &[acquire(&last, late, LockMode::Exclusive)]));
    assert!(
        matches!(replies[0].outcome, Outcome::Lock(LockReply::Waiting { .. })),
        "half is for commands: {replies:?}"
    );
    settle(&mut store, Store::check);
    assert_eq!(holders(&store, &last).len(), 500);
}

#[test]
fn places_that_are_given_up_while_grants_are_under_way_leave_nothing_behind() {
    let mut store = Store::default();
    let (session, waiting) = with_a_crowd_behind_one(&mut store, 8, 500);
    let ends: Vec<_> = [session].into_iter().chain(waiting).map(end).collect();
    let mut ends = ends.as_slice();
    while !ends.is_empty() {
        let (replies, _) = measured(&mut store, &batch(1, &ends[..ends.len().min(100)]));
        let done = replies.iter().filter(|reply| !matches!(reply.outcome, Outcome::Deferred)).count();
        ends = &ends[done..];
    }
    settle(&mut store, Store::check);
    store.check();
    for family in [family::LOCK_HEAD, family::HOLDER, family::WAITER, family::ATTACHED, family::TIMER] {
        assert!(store.rows(family).is_empty(), "{family:#04x}");
    }
}

fn of_queue(verb: TaskVerb) -> Command {
    Command::unnamed(Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb }))
}

/// So many tasks of 1 MiB each that are claimed with a session. Gives it, and a ticket of the last of them.
fn with_claimed_tasks(store: &mut Store, count: usize) -> (SessionId, Ticket) {
    let session = begin_sessions(store, 1)[0];
    (session, claim_tasks(store, session, count))
}

/// Schedules large tasks and claims them with a session. Gives the last claim.
fn claim_tasks(store: &mut Store, session: SessionId, count: usize) -> Ticket {
    for nth in 0..count {
        let new = NewTask {
            id: Some(TaskId::new(format!("t{nth:03}")).unwrap()),
            payload: Value { kind: ContentKind::Bytes, data: vec![b'x'; 1 << 20] },
            start: Start::At(0),
            recurrence: None,
            retry: RetryPlan::default(),
            keep_ms: 0,
            replace: false,
        };
        measured(store, &batch(1, &[of_queue(TaskVerb::Schedule(vec![new]))]));
    }
    let mut last = None;
    for _ in 0..count {
        let claim = TaskVerb::Claim { limit: 1, lease_ms: 1_000_000, worker: String::new(), session: Some(session) };
        let (replies, _) = measured(store, &batch(1, &[of_queue(claim)]));
        let Outcome::Task(done) = &replies[0].outcome else { panic!("{replies:?}") };
        let TaskReply::Claimed(claimed) = &**done else { panic!("{done:?}") };
        last = Some(Ticket { id: claimed.tasks[0].id.clone(), token: replies[0].revision });
    }
    last.unwrap()
}

fn claimed_tasks(store: &Store) -> usize {
    let rows = store.rows(family::TASK).into_iter().map(|(_, row)| codec::decode::<TaskRow>(&row).unwrap());
    rows.filter(|row| matches!(row.head.state, TaskState::Claimed { .. })).count()
}

#[test]
fn tasks_claimed_with_a_session_that_ends_are_given_back_over_some_batches() {
    let mut store = Store::default();
    let (session, ticket) = with_claimed_tasks(&mut store, 24);
    let (_, bytes) = measured(&mut store, &batch(1, &[end(session)]));
    assert!(bytes < 2 * limits::BATCH_EFFECT_BYTES_MAX, "{bytes} bytes are written by the end of a session");
    store.check();
    let left = claimed_tasks(&store);
    assert!((1..24).contains(&left), "{left}");
    // The claim is over, whether or not the task was given back already.
    let verbs = [
        TaskVerb::Extend { ticket: ticket.clone(), lease_ms: 5_000 },
        TaskVerb::Fail { ticket: ticket.clone(), error: String::new(), then: AfterFailure::Retry },
        TaskVerb::Complete(ticket),
    ];
    let (replies, _) = measured(&mut store, &batch(1, &verbs.map(of_queue)));
    let is_over = |reply: &Reply| matches!(reply.outcome, Outcome::Rejected(Rejection::NotHolder) | Outcome::Deferred);
    assert!(replies.iter().all(is_over), "{replies:?}");
    assert_eq!(replies[0].outcome, Outcome::Rejected(Rejection::NotHolder), "half is for commands");
    let batches = settle(&mut store, Store::check);
    assert!(batches >= 3, "{batches}");
    assert_eq!((claimed_tasks(&store), store.rows(family::ATTACHED).len()), (0, 0));
}

#[test]
fn what_is_set_aside_of_a_session_that_ended_keeps_no_task_claimed() {
    let mut store = Store::default();
    let (session, _) = with_claimed_tasks(&mut store, 24);
    measured(&mut store, &batch(1, &[put("k", Vec::new(), Some(session))]));
    store.view.0.insert(entry::row_key(b"k"), vec![0xFF]);
    let (_, contained) = store.apply_contained(&[batch(1, &[end(session)])]);
    assert_eq!(contained.len(), 1, "only the entry cannot be read: {contained:?}");
    assert!(claimed_tasks(&store) > 0);
    while store.vars.next_timer.is_some_and(|next| next <= store.vars.clock) {
        let (_, contained) = store.apply_contained(&[batch(1, &[])]);
        assert_eq!(contained, []);
    }
    assert_eq!((claimed_tasks(&store), store.rows(family::ATTACHED).len()), (0, 1));
}

#[test]
fn a_step_into_a_new_epoch_ends_only_a_few_sessions_of_large_entries() {
    let mut store = Store::default();
    for session in begin_sessions(&mut store, 12) {
        for part in 0..3 {
            let key = format!("{session}/{part}");
            measured(&mut store, &batch(1, &[put(key, vec![b'x'; 1 << 20], Some(session))]));
        }
    }
    let mut step = EpochStep::default();
    let mut steps = 0;
    loop {
        let (applied, memory) = most_during(|| step.next(&store.view, store.vars.clone(), store.index).unwrap());
        assert!(memory < MEMORY_MAX, "{memory} bytes were held by one step");
        let Some(applied) = applied else { break };
        store.view.write(applied.writes);
        store.vars = applied.vars;
        steps += 1;
    }
    assert!(steps >= 4, "{steps}");
    assert_eq!((store.vars.sessions, store.vars.sizes.entries), (0, 0));
    store.check();
}

#[test]
fn the_id_of_a_session_is_free_once_nothing_hangs_on_its_end() {
    let mut store = Store::default();
    let id = SessionId::chosen(77).unwrap();
    let create = SessionOp::CreateAs { id, ttl_ms: 1_000_000, owner: String::new(), labels: Vec::new() };
    let create = Command::unnamed(Action::Session(create));
    store.apply(&[batch(1, std::slice::from_ref(&create))]).unwrap();
    claim_tasks(&mut store, id, 24);

    let (replies, _) = store.apply(&[batch(1, &[end(id), create.clone()])]).unwrap();
    let taken = || Outcome::Rejected(Rejection::SessionExists(id));
    let mut outcome = replies[0][1].outcome.clone();
    let mut refused = 0;
    while outcome == Outcome::Deferred || outcome == taken() {
        refused += u64::from(outcome == taken());
        let (replies, _) = store.apply(&[batch(1, std::slice::from_ref(&create))]).unwrap();
        outcome = replies[0][0].outcome.clone();
    }
    assert!(refused > 0, "the claims were given back at once: {outcome:?}");
    assert!(matches!(outcome, Outcome::Session(SessionReply::Created { .. })), "{outcome:?}");
    assert_eq!((claimed_tasks(&store), store.rows(family::ATTACHED).len()), (0, 0));
    store.check();
}

/// Spoils a row that has to do with a session.
type Damage = fn(&mut Store, SessionId);

/// Each is a state that a cluster goes on with: it sets aside what faults. A restore and a recovery go on with it as well.
#[test]
fn a_session_whose_end_faults_keeps_no_state_from_a_new_epoch() {
    let damages: [(&str, Damage); 4] = [
        ("its timer is missing", |store, id| {
            let timers = store.rows(family::TIMER).into_iter().map(|(row_key, _)| row_key);
            let of_it = timers.filter(|row_key| row_key.ends_with(&id.0.to_be_bytes())).collect::<Vec<_>>();
            assert_eq!(of_it.len(), 1);
            store.view.0.remove(&of_it[0]);
        }),
        ("its row cannot be read", |store, id| {
            store.view.0.insert(session::row_key(id), vec![0xFF]);
        }),
        ("an entry of it cannot be read", |store, _| {
            store.view.0.insert(entry::row_key(b"of it"), vec![0xFF]);
        }),
        ("a locked entry cannot be read", |store, _| {
            let put = put("locked", b"x".to_vec(), None);
            let Action::Write(op) = put.action.clone() else { unreachable!() };
            let lock = Command::unnamed(Action::Write(WriteOp { change: Change::Lock(5_000), ..op }));
            measured(store, &batch(1, &[put, lock]));
            assert_eq!(store.rows(family::LOCK).len(), 1);
            store.view.0.insert(entry::row_key(b"locked"), vec![0xFF]);
        }),
    ];
    for (what, damage) in damages {
        let mut store = Store::default();
        let sessions = begin_sessions(&mut store, 3);
        let entries = [("before", sessions[0]), ("of it", sessions[1]), ("behind", sessions[2])];
        for (key, session) in entries {
            measured(&mut store, &batch(1, &[put(key, b"x".to_vec(), Some(session))]));
        }
        damage(&mut store, sessions[1]);
        let mut step = EpochStep::default();
        let mut contained = 0;
        while let Some(applied) = step.next(&store.view, store.vars.clone(), store.index).expect(what) {
            contained += applied.contained.len();
            store.view.write(applied.writes);
            store.vars = applied.vars;
        }
        assert!(contained > 0, "{what}: nobody is told");
        assert_eq!((store.vars.sessions, store.rows(family::SESSION).len()), (0, 0), "{what}");
        // Of a row that cannot be read nobody knows whose session it was.
        let counted = usize::from(what == "its row cannot be read");
        assert_eq!(store.rows(family::QUOTA_USE).len(), counted, "{what}: no session is left to count");
        for key in [&b"before"[..], b"behind"] {
            assert_eq!(store.view.0.get(&entry::row_key(key)), None, "{what}: what can be ended is");
        }
        // What is set aside can be dropped by an operator, and nothing is left then.
        for (row_key, _) in store.rows(family::PARKED) {
            let work = fault::decode_parked(&row_key).unwrap().to_vec();
            let drop_it = Command::unnamed(Action::Faults(FaultsOp::Drop(work)));
            let (replies, contained) = store.apply_contained(&[batch(1, &[drop_it])]);
            assert!(!matches!(replies[0][0].outcome, Outcome::Rejected(_)), "{what}: {replies:?}");
            assert_eq!(contained, [], "{what}");
        }
        assert_eq!((store.fault_counts().parked, store.rows(family::ATTACHED).len()), (0, 0), "{what}");
    }
}

#[test]
fn a_crowd_of_sessions_that_end_at_once_ends_over_some_batches() {
    let mut store = Store::default();
    let many = limits::TIMERS_FIRED_MAX * 2 + 10;
    for _ in 0..many.div_ceil(512) {
        store.apply(&[batch(1, &vec![create_for(1_000); 512])]).unwrap();
    }
    let all = store.vars.sessions;
    store.apply(&[batch(1_000, &[])]).unwrap();
    assert_eq!(store.vars.sessions, all, "a session ended a millisecond early");
    let mut batches = 0;
    while store.vars.sessions > 0 {
        let before = store.vars.sessions;
        store.apply(&[batch(1_001, &[])]).unwrap();
        store.check();
        assert_eq!(before - store.vars.sessions, before.min(limits::TIMERS_FIRED_MAX as u64));
        batches += 1;
    }
    assert_eq!(batches, all.div_ceil(limits::TIMERS_FIRED_MAX as u64));
    assert_eq!(store.vars.next_timer, None);
}

#[test]
fn so_many_may_wait_for_a_lock_and_no_more() {
    let mut store = Store::default();
    let most = limits::LOCK_WAITERS_MAX;
    with_a_crowd_behind_one(&mut store, 1, most as usize);
    let late = begin_sessions(&mut store, 1)[0];
    // Whoever names no bound of its own is refused as whoever names the greatest.
    for max_waiters in [None, Some(most)] {
        let request = Acquire { wait_ms: 60_000, max_waiters, ..Acquire::of(lock_of(0), late) };
        let command = Command::unnamed(Action::Lock(LockOp::Acquire(request)));
        let (replies, _) = measured(&mut store, &batch(1, &[command]));
        let refused = Rejection::QueueLong { holders: 1, waiters: most, most, delay_ms: 0 };
        assert_eq!(replies[0].outcome, Outcome::Rejected(refused), "{max_waiters:?}");
    }
    store.check();
}

#[test]
fn so_much_may_hang_on_a_session_and_no_more() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create_for(1_000)])]).unwrap();
    let puts = |from: usize, to: usize| {
        let puts = (from..to).map(|key| put(format!("k{key}"), b"1".to_vec(), Some(SessionId(2))));
        batch(2, &puts.collect::<Vec<_>>())
    };
    let most = limits::SESSION_ATTACHED_MAX as usize;
    let (replies, _) = store.apply(&[puts(0, most)]).unwrap();
    assert!(replies[0].iter().all(|reply| matches!(reply.outcome, Outcome::Written(_))));
    let (replies, _) = store.apply(&[puts(most - 1, most + 1)]).unwrap();
    let outcomes: Vec<_> = replies[0].iter().map(|reply| &reply.outcome).collect();
    assert!(
        matches!(outcomes[..], [Outcome::Written(_), Outcome::Rejected(Rejection::TooMany { .. })]),
        "{outcomes:?}"
    );
    // All of it goes in one revision.
    let revision = store.vars.revision;
    let (_, changed) = store.apply(&[batch(1_001, &[])]).unwrap();
    store.check();
    assert_eq!((changed.len(), store.vars.revision), (most, revision + 1));
    assert!(changed.iter().all(|(_, at)| *at == revision + 1));
}

#[test]
fn the_entries_of_a_session_have_a_bound_together() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create_for(60_000)])]).unwrap();
    let size = limits::VALUE_BYTES_MAX;
    let mut write = |key: usize, bytes: usize, session: Option<SessionId>| {
        let write = put(format!("k{key}"), vec![7; bytes], session);
        let (mut replies, _) = store.apply(&[batch(2, &[write])]).unwrap();
        store.check();
        replies.pop().unwrap().pop().unwrap().outcome
    };
    let id = Some(SessionId(2));
    let fits = limits::SESSION_BYTES_MAX as usize / size;
    (0..fits).for_each(|key| assert!(matches!(write(key, size, id), Outcome::Written(_)), "{key}"));
    assert!(matches!(write(fits, size, id), Outcome::Rejected(Rejection::TooMany { .. })));
    // What is taken off, made smaller or removed gives room again; what grows takes it.
    assert!(matches!(write(0, 10, id), Outcome::Written(_)));
    assert!(matches!(write(fits, size, id), Outcome::Written(_)));
    assert!(matches!(write(0, size, id), Outcome::Rejected(Rejection::TooMany { .. })));
    assert!(matches!(write(1, size, None), Outcome::Written(_)));
    assert!(matches!(write(0, size, id), Outcome::Written(_)));
    store.apply(&[batch(60_001, &[])]).unwrap();
    store.check();
    assert_eq!(store.vars.sessions, 0);
}
