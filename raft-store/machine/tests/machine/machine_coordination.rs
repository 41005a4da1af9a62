//! Sessions and locks under random commands: what must hold of every step, whatever it was.
//!
//! A small model knows when each session may end and who waits where; the rows' own invariants are checked by
//! `Store::check` after each batch, and every cut into apply calls has to give the same.

use std::collections::BTreeMap;

use crate::machine_support::{Store, assert_cuts_agree, batch};
use proptest::prelude::*;
use quorate_machine::codec;
use quorate_machine::keyspace::lock_queue::{self, HolderRow, WaiterRow};
use quorate_machine::keyspace::{family, session};
use quorate_machine::limits;
use quorate_machine::types::{
    Acquire, Action, BarrierOp, Batch, Change, Command, ContentKind, Expect, Expiry, Guard, Key, LockMode, LockName,
    LockOp, LockReply, LockSpace, Name, Outcome, Question, Rejection, Reply, Revision, SessionId, SessionOp,
    SessionReply, Value, WriteOp,
};

/// Sessions are named by their turn: the machine gives the ids.
#[derive(Debug, Clone)]
enum Move {
    Create(u64),
    Renew(usize),
    End(usize),
    Acquire {
        lock: usize,
        session: usize,
        mode: LockMode,
        wait_ms: u64,
        delay_ms: u64,
    },
    ReleaseNewest(usize),
    Leave {
        lock: usize,
        session: usize,
        release: bool,
    },
    Enter {
        session: usize,
    },
    Depart {
        session: usize,
    },
    Put {
        session: usize,
        key: usize,
    },
    Guarded {
        lock: usize,
        token_back: u64,
    },
    Pass(u64),
    /// The wall clock of the leader jumps by so many hours.
    Jump(i64),
}

fn moves() -> impl Strategy<Value = Move> {
    let (locks, sessions) = (0..3_usize, 0..6_usize);
    let mode = prop_oneof![3 => Just(LockMode::Exclusive), 1 => Just(LockMode::Shared)];
    let wait = prop_oneof![Just(0), Just(50), Just(400)];
    let delay = prop_oneof![3 => Just(0), 1 => Just(70)];
    prop_oneof![
        3 => prop_oneof![Just(100_u64), Just(150), Just(1_000)].prop_map(Move::Create),
        3 => sessions.clone().prop_map(Move::Renew),
        1 => sessions.clone().prop_map(Move::End),
        8 => (locks.clone(), sessions.clone(), mode, wait, delay).prop_map(|(lock, session, mode, wait_ms, delay_ms)| {
            Move::Acquire { lock, session, mode, wait_ms, delay_ms }
        }),
        3 => locks.clone().prop_map(Move::ReleaseNewest),
        2 => (locks.clone(), sessions.clone(), any::<bool>())
            .prop_map(|(lock, session, release)| Move::Leave { lock, session, release }),
        1 => sessions.clone().prop_map(|session| Move::Enter { session }),
        1 => sessions.clone().prop_map(|session| Move::Depart { session }),
        2 => (sessions, 0..4_usize).prop_map(|(session, key)| Move::Put { session, key }),
        2 => (locks, 0..4_u64).prop_map(|(lock, token_back)| Move::Guarded { lock, token_back }),
        1 => (-2..3_i64).prop_map(Move::Jump),
        5 => prop_oneof![Just(1_u64), Just(30), Just(99), Just(100), Just(300)].prop_map(Move::Pass),
    ]
}

fn lock_of(number: usize) -> LockName {
    // The last one is an election: the same mechanism, and what it keeps.
    let space = if number == 2 { LockSpace::Election } else { LockSpace::Lock };
    LockName { space, name: Name::new(format!("l{number}")).unwrap() }
}

/// What is known of sessions without the machine.
#[derive(Default)]
struct Model {
    ids: Vec<SessionId>,
    /// Cluster clock before which each one that lives must not end.
    lives_until: BTreeMap<SessionId, (u64, u64)>,
    clock: u64,
}

impl Model {
    fn id(&self, number: usize) -> SessionId {
        // Of the youngest, most of which live; and now and then none.
        let at = self.ids.len().checked_sub(1 + number);
        at.map_or(SessionId(9_999_999), |at| self.ids[at])
    }

    fn command(&self, store: &Store, step: &Move) -> Option<Action> {
        let name = Name::new("b").unwrap();
        Some(match step {
            Move::Create(ttl_ms) => {
                Action::Session(SessionOp::Create { ttl_ms: *ttl_ms, owner: "o".into(), labels: Vec::new() })
            }
            Move::Renew(session) => Action::Session(SessionOp::Renew(vec![self.id(*session)])),
            Move::End(session) => Action::Session(SessionOp::End(self.id(*session))),
            Move::Acquire { lock, session, mode, wait_ms, delay_ms } => {
                let lock = lock_of(*lock);
                let mode = if lock.space == LockSpace::Election { LockMode::Exclusive } else { *mode };
                let (session, wait_ms, delay_ms) = (self.id(*session), *wait_ms, *delay_ms);
                Action::Lock(LockOp::Acquire(Acquire { mode, wait_ms, delay_ms, ..Acquire::of(lock, session) }))
            }
            Move::ReleaseNewest(lock) => {
                let lock = lock_of(*lock);
                let token = holders(store, &lock).last().map_or(7, |(token, _)| *token);
                Action::Lock(LockOp::Release { lock, token })
            }
            Move::Leave { lock, session, release } => {
                let (lock, session, release) = (lock_of(*lock), self.id(*session), *release);
                Action::Lock(LockOp::Leave { lock, session, asked: None, release })
            }
            Move::Enter { session } => {
                Action::Barrier(BarrierOp::Enter { name, session: self.id(*session), parties: 2 })
            }
            Move::Depart { session } => Action::Barrier(BarrierOp::Leave { name, session: self.id(*session) }),
            Move::Put { session, key } => Action::Write(put(*key, Some(self.id(*session)), None)),
            Move::Guarded { lock, token_back } => {
                let lock = lock_of(*lock);
                let newest = holders(store, &lock).last().map_or(9, |(token, _)| *token);
                let token = newest.saturating_sub(*token_back);
                Action::Write(put(0, None, Some(Box::new(Guard { lock, token }))))
            }
            Move::Pass(_) | Move::Jump(_) => return None,
        })
    }

    fn learn(&mut self, action: &Action, reply: &Reply) {
        match (action, &reply.outcome) {
            (Action::Session(SessionOp::Create { ttl_ms, .. }), Outcome::Session(SessionReply::Created { id, .. })) => {
                self.ids.push(*id);
                self.lives_until.insert(*id, (*ttl_ms, self.clock + ttl_ms));
            }
            (Action::Session(SessionOp::Renew(ids)), Outcome::Session(SessionReply::Renewed(renewed))) => {
                let known = self.lives_until.get_mut(&ids[0]);
                assert_eq!(renewed[0].is_some(), known.is_some(), "{ids:?} renewed as {renewed:?}");
                if let Some((ttl_ms, until)) = known {
                    *until = self.clock + *ttl_ms;
                }
            }
            (Action::Session(SessionOp::End(id)), Outcome::Session(SessionReply::Ended(_))) => {
                assert!(self.lives_until.remove(id).is_some());
            }
            _ => {}
        }
    }
}

fn put(key: usize, session: Option<SessionId>, guard: Option<Box<Guard>>) -> WriteOp {
    WriteOp {
        key: Key::new(format!("k{key}")).unwrap(),
        expect: Expect::ANY,
        condition: Default::default(),
        change: Change::Put(Value { kind: ContentKind::Json, data: b"1".to_vec() }),
        expiry: Expiry::Never,
        return_previous: false,
        session,
        guard,
    }
}

fn holders(store: &Store, lock: &LockName) -> Vec<(Revision, HolderRow)> {
    let rows = store.rows(family::HOLDER).into_iter();
    let rows = rows.map(|(key, row)| (lock_queue::decode_holder(&key).unwrap(), codec::decode(&row).unwrap()));
    rows.filter(|((of, _), _)| of == lock).map(|((_, token), row)| (token, row)).collect()
}

fn waiters(store: &Store, lock: &LockName) -> Vec<(Revision, WaiterRow)> {
    let rows = store.rows(family::WAITER).into_iter();
    let rows = rows.map(|(key, row)| (lock_queue::decode_waiter(&key).unwrap(), codec::decode(&row).unwrap()));
    rows.filter(|((of, _), _)| of == lock).map(|((_, place), row)| (place, row)).collect()
}

/// Plays the moves one batch each, and checks each.
fn play(steps: &[Move]) -> Vec<Batch> {
    let (mut store, mut model, mut batches) = (Store::default(), Model { clock: 1, ..Model::default() }, Vec::new());
    let mut greatest = BTreeMap::new();
    let mut hours = 10;
    for step in steps {
        if let Move::Pass(ms) = step {
            model.clock += ms;
        }
        if let Move::Jump(by) = step {
            hours += by;
        }
        let action = model.command(&store, step);
        let commands: Vec<_> = action
            .iter()
            .map(|action| Command {
                request_id: None,
                principal: String::new(),
                action: action.clone(),
                access_revision: None,
            })
            .collect();
        let wall = 3_600_000 * u64::try_from(hours.max(0)).unwrap();
        let next = Batch { wall, ..batch(model.clock, &commands) };
        batches.push(next.clone());
        let before = store.clone();
        let (replies, _) = store.apply(&[next]).unwrap();
        store.check();
        // Sessions end when nobody renewed them for so long, and not before.
        model.lives_until.retain(|_, (_, until)| *until > model.clock);
        if let Some(action) = &action {
            model.learn(action, &replies[0][0]);
            check_guarded(&before, &store, action, &replies[0][0]);
        }
        let live: Vec<_> =
            store.rows(family::SESSION).iter().map(|(key, _)| session::decode_key(key).unwrap()).collect();
        assert_eq!(live, model.lives_until.keys().copied().collect::<Vec<_>>(), "after {step:?} at {}", model.clock);
        for number in 0..3 {
            check_lock(&before, &store, &lock_of(number), &mut greatest);
        }
    }
    batches
}

/// A guarded write is applied exactly where its token held the lock when it was looked at.
fn check_guarded(before: &Store, after: &Store, action: &Action, reply: &Reply) {
    let Action::Write(WriteOp { guard: Some(guard), .. }) = action else { return };
    let held = |store: &Store| holders(store, &guard.lock).iter().any(|(token, _)| *token == guard.token);
    match &reply.outcome {
        Outcome::Written(_) => assert!(held(after), "written under {guard:?}"),
        Outcome::Rejected(Rejection::GuardFailed { .. }) => assert!(!held(after), "refused under {guard:?}"),
        other => panic!("{other:?}, and before the token held: {}", held(before)),
    }
}

/// Grants are in order of places, and tokens only grow.
fn check_lock(before: &Store, after: &Store, lock: &LockName, greatest: &mut BTreeMap<LockName, Revision>) {
    let waited = waiters(before, lock);
    let now: BTreeMap<_, _> = holders(after, lock).into_iter().map(|(token, row)| (row.session, token)).collect();
    let still: Vec<_> = waiters(after, lock).into_iter().map(|(place, _)| place).collect();
    let mut last_token = 0;
    for (place, row) in waited {
        let Some(&token) = now.get(&row.party.session) else { continue };
        assert!(still.first().is_none_or(|first| *first > place), "{lock:?}: place {place} before {still:?}");
        assert!(token > last_token, "{lock:?}: token {token} of place {place} after {last_token}");
        last_token = token;
    }
    let known = greatest.entry(lock.clone()).or_default();
    let were: Vec<_> = holders(before, lock).into_iter().map(|(token, _)| token).collect();
    for token in now.values().filter(|token| !were.contains(token)) {
        assert!(token > known, "{lock:?}: token {token} after {known}");
    }
    *known = now.values().copied().max().unwrap_or(0).max(*known);
}

proptest! {
    #[test]
    fn sessions_never_end_early_and_locks_are_given_in_order(steps in prop::collection::vec(moves(), 1..80)) {
        play(&steps);
    }

    #[test]
    fn however_batches_are_grouped_the_rows_are_the_same(steps in prop::collection::vec(moves(), 1..14)) {
        assert_cuts_agree(&play(&steps));
    }
}

fn command(action: Action) -> Command {
    Command { request_id: None, principal: String::new(), action, access_revision: None }
}

fn create(ttl_ms: u64) -> Command {
    command(Action::Session(SessionOp::Create { ttl_ms, owner: String::new(), labels: Vec::new() }))
}

#[test]
fn a_crowd_of_sessions_that_end_at_once_ends_over_some_batches() {
    let mut store = Store::default();
    let many = limits::TIMERS_FIRED_MAX * 2 + 10;
    for _ in 0..many.div_ceil(512) {
        store.apply(&[batch(1, &vec![create(1_000); 512])]).unwrap();
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
fn so_much_may_hang_on_a_session_and_no_more() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create(1_000)])]).unwrap();
    let puts = |from: usize, to: usize| {
        let puts = (from..to).map(|key| command(Action::Write(put(key, Some(SessionId(2)), None))));
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
fn two_questions_of_a_session_in_one_entry_are_told_apart() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create(60_000), create(60_000)])]).unwrap();
    let lock = lock_of(0);
    let ask = |session: u64| {
        let request = Acquire { wait_ms: 50_000, ..Acquire::of(lock.clone(), SessionId(session)) };
        command(Action::Lock(LockOp::Acquire(request)))
    };
    let listen = || command(Action::Lock(LockOp::Listen { lock: lock.clone(), session: SessionId(3) }));
    for again in [ask(3), listen()] {
        let (replies, _) = store.apply(&[batch(2, &[ask(2), ask(3), again])]).unwrap();
        let asked = |reply: &Reply| match reply.outcome {
            Outcome::Lock(LockReply::Waiting { asked, .. }) => asked,
            ref other => panic!("does not wait: {other:?}"),
        };
        let (first, second) = (asked(&replies[0][1]), asked(&replies[0][2]));
        assert!(first < second, "{first} {second}");
        let [(token, _)] = &holders(&store, &lock)[..] else { panic!("not one holder") };
        let release = command(Action::Lock(LockOp::Release { lock: lock.clone(), token: *token }));
        store.apply(&[batch(3, &[release])]).unwrap();
        // The first hung up. The second was told that it holds the lock, without a word to the log.
        let (lock, session) = (lock.clone(), SessionId(3));
        let leave = |asked| {
            let (lock, asked) = (lock.clone(), Some(asked));
            command(Action::Lock(LockOp::Leave { lock, session, asked, release: true }))
        };
        let (replies, _) = store.apply(&[batch(4, &[leave(first)])]).unwrap();
        assert!(matches!(replies[0][0].outcome, Outcome::Lock(LockReply::Held { .. })), "{:?}", replies[0][0]);
        let (replies, _) = store.apply(&[batch(5, &[leave(second)])]).unwrap();
        assert!(matches!(replies[0][0].outcome, Outcome::Lock(LockReply::Gone(true))), "{:?}", replies[0][0]);
        store.check();
    }
}

#[test]
fn who_hung_up_loses_a_place_or_a_grant_unless_another_question_is_listened_to() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create(60_000), create(60_000)])]).unwrap();
    let (lock, session) = (lock_of(0), SessionId(3));
    let ask = |session| {
        let request = Acquire { wait_ms: 50_000, ..Acquire::of(lock.clone(), session) };
        Action::Lock(LockOp::Acquire(request))
    };
    let listen = Action::Lock(LockOp::Listen { lock: lock.clone(), session });
    let hang_up = |question| Action::Lock(LockOp::HangUp { lock: lock.clone(), session, question });
    let leave = |asked| {
        let (lock, asked) = (lock.clone(), Some(asked));
        Action::Lock(LockOp::Leave { lock, session, asked, release: true })
    };
    let mut decide = |action: Action| {
        let (replies, _) = store.apply(&[batch(2, &[command(action)])]).unwrap();
        store.check();
        match &replies[0][0].outcome {
            Outcome::Lock(done) => done.clone(),
            other => panic!("not of a lock: {other:?}"),
        }
    };
    // A place: the other question of the session listens in time, and then does not.
    let LockReply::Held { token } = decide(ask(SessionId(2))) else { panic!("it is free") };
    let LockReply::Waiting { asked: first, .. } = decide(ask(session)) else { panic!("it is held") };
    let LockReply::Waiting { asked: second, .. } = decide(ask(session)) else { panic!("it is held") };
    assert_eq!(decide(hang_up(Question::Numbered(first))), LockReply::Gone(false), "it is not the last");
    let LockReply::HungUp(left) = decide(hang_up(Question::Numbered(second))) else { panic!("it is the last") };
    let LockReply::Waiting { asked: third, .. } = decide(listen) else { panic!("it has a place") };
    assert!(matches!(decide(leave(left)), LockReply::Waiting { .. }), "somebody listens");
    let LockReply::HungUp(left) = decide(hang_up(Question::Numbered(third))) else { panic!("it is the last") };
    assert_eq!(decide(leave(left)), LockReply::Gone(true));
    // What was granted after a wait, after the other had hung up.
    let LockReply::Waiting { asked, .. } = decide(ask(session)) else { panic!("it is held") };
    let LockReply::HungUp(left) = decide(hang_up(Question::Numbered(asked))) else { panic!("it is the last") };
    decide(Action::Lock(LockOp::Release { lock: lock.clone(), token }));
    assert_eq!(decide(leave(left)), LockReply::Gone(true));
    // What was granted at once: only until the session is told, and only to who was ready to wait.
    let LockReply::Held { token } = decide(ask(session)) else { panic!("it is free") };
    assert_eq!(decide(hang_up(Question::Granted(token + 1))), LockReply::Gone(false));
    let LockReply::HungUp(left) = decide(hang_up(Question::Granted(token))) else { panic!("nobody was told") };
    assert_eq!(decide(ask(session)), LockReply::Held { token });
    assert_eq!(decide(leave(left)), LockReply::Held { token });
    assert_eq!(decide(hang_up(Question::Granted(token))), LockReply::Gone(false), "it was told since");
}

#[test]
fn a_long_queue_is_granted_in_its_order() {
    let mut store = Store::default();
    let parties = 300;
    store.apply(&[batch(1, &vec![create(60_000); parties])]).unwrap();
    let lock = lock_of(0);
    let ask = |session: usize| {
        let session = SessionId(session as u64 + 2);
        let request = Acquire { wait_ms: 50_000, ..Acquire::of(lock.clone(), session) };
        command(Action::Lock(LockOp::Acquire(request)))
    };
    store.apply(&[batch(2, &(0..parties).map(ask).collect::<Vec<_>>())]).unwrap();
    for session in 0..parties {
        let [(token, holder)] = &holders(&store, &lock)[..] else { panic!("not one holder") };
        assert_eq!(holder.session, SessionId(session as u64 + 2));
        let release = command(Action::Lock(LockOp::Release { lock: lock.clone(), token: *token }));
        let (replies, _) = store.apply(&[batch(3, &[release])]).unwrap();
        assert!(matches!(replies[0][0].outcome, Outcome::Lock(LockReply::Gone(true))));
    }
    store.check();
    assert!(store.rows(family::LOCK_HEAD).is_empty());
}

#[test]
fn the_entries_of_a_session_have_a_bound_together() {
    let mut store = Store::default();
    store.apply(&[batch(1, &[create(60_000)])]).unwrap();
    let size = limits::VALUE_BYTES_MAX;
    let mut write = |key: usize, bytes: usize, session: Option<SessionId>| {
        let mut op = put(key, session, None);
        op.change = Change::Put(Value { kind: ContentKind::Bytes, data: vec![7; bytes] });
        let (mut replies, _) = store.apply(&[batch(2, &[command(Action::Write(op))])]).unwrap();
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
