//! Sessions, locks, elections, barriers and latches as readers see them.

use quorate_machine::keyspace::session::PartyAt;
use quorate_machine::query::{CoordinationCounts, LeaderChange, Party};
use quorate_machine::types::{
    Acquire, Action, BarrierOp, BarrierRow, Change, Command, ContentKind, LatchOp, LatchRow, LockName, LockOp,
    LockSpace, Maintenance, Name, SessionId, SessionOp, Value,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::state::StateReader;

use crate::state_support::*;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn lock(text: &str) -> LockName {
    LockName { space: LockSpace::Lock, name: name(text) }
}

fn election(text: &str) -> LockName {
    LockName { space: LockSpace::Election, name: name(text) }
}

fn session(owner: &str, ttl_ms: u64) -> Command {
    let labels = vec![("of".into(), owner.into())];
    Command::unnamed(Action::Session(SessionOp::Create { ttl_ms, owner: owner.into(), labels }))
}

fn acquire(lock: LockName, session: u64, wait_ms: u64, value: Option<&str>) -> Command {
    let value = value.map(|text| Value { kind: ContentKind::Json, data: text.into() });
    let request = Acquire { wait_ms, value, ..Acquire::of(lock, SessionId(session)) };
    Command::unnamed(Action::Lock(LockOp::Acquire(request)))
}

fn enter(session: u64) -> Command {
    Command::unnamed(Action::Barrier(BarrierOp::Enter { name: name("b"), session: SessionId(session), parties: 2 }))
}

/// Applies commands and advances the index.
struct Log {
    state: StateMachine,
    index: u64,
}

impl Log {
    async fn put(&mut self, clock: u64, commands: &[Command]) {
        self.index += 1;
        apply(&mut self.state, vec![batch(self.index, clock, commands)]).await;
    }
}

#[test]
fn reads_tell_who_holds_what_and_who_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (state, reader) = open(dir.path());
    let mut log = Log { state, index: 0 };
    runtime().block_on(async {
        apply(&mut log.state, vec![blank(0)]).await;
        // Revisions 2 to 4 are sessions; 5 holds, 6 and 7 wait.
        log.put(0, &[session("a", 1_000), session("b", 2_000), session("c", 60_000)]).await;
        let asked =
            [acquire(lock("l"), 2, 0, None), acquire(lock("l"), 3, 500, None), acquire(lock("l"), 4, 900, None)];
        log.put(100, &asked).await;
        let attached = [acquire(election("l"), 2, 0, None), enter(2), enter(4)];
        log.put(200, &attached).await;
        let mut entry = write(key("svc/a"), Change::Put(value("x")));
        if let Action::Write(op) = &mut entry.action {
            op.session = Some(SessionId(2));
        }
        log.put(300, &[entry]).await;

        let held = reader.session(SessionId(2), 10).unwrap();
        assert_eq!((held.at.index, held.at.clock, held.wall), (4, 300, 1_300));
        let held = held.found.expect("it lives");
        assert_eq!((&*held.row.owner, held.row.expires_at, held.row.attached), ("a", 1_000, 4));
        assert_eq!(held.locks, [(lock("l"), PartyAt::Holding(5)), (election("l"), PartyAt::Holding(8))]);
        assert_eq!((&held.barriers[..], &held.keys[..]), (&[name("b")][..], &[key("svc/a")][..]));
        let none = reader.session(SessionId(2), 0).unwrap().found.unwrap();
        assert_eq!((none.locks.len(), none.barriers.len(), none.keys.len(), none.row.attached), (0, 0, 0, 4));
        assert_eq!(reader.session(SessionId(5), 10).unwrap().found, None, "a revision that is no session");
        let ids = |after, limit| {
            let page = reader.sessions(after, limit).unwrap().found;
            (page.items.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), page.more)
        };
        assert_eq!(ids(None, 2), (vec![2, 3], true));
        assert_eq!(ids(Some(SessionId(3)), 2), (vec![4], false));

        let party = |lock: &LockName, id| reader.party(lock, SessionId(id)).unwrap().found;
        assert!(matches!(party(&lock("l"), 2), Party::Holding { token: 5, row } if row.session == SessionId(2)));
        assert!(
            matches!(party(&lock("l"), 4), Party::Waiting { place: 7, row } if row.until == 1_000 && row.asked / 1_024 == 2)
        );
        assert_eq!((party(&election("l"), 3), party(&lock("l"), 99)), (Party::Nothing, Party::Expired));
        assert_eq!(reader.places_before(&lock("l"), 7, 10).unwrap(), 1);
        assert_eq!(reader.places_before(&lock("l"), 8, 10).unwrap(), 2);
        assert_eq!(reader.places_before(&lock("l"), 8, 1).unwrap(), 1, "no more are counted");
        let read = reader.lock(&lock("l"), 1).unwrap().found;
        let head = read.head.expect("in use");
        assert_eq!((head.holders, head.waiters, head.slots), (1, 2, 1));
        assert_eq!((read.holders[0].number, &*read.holders[0].owner), (5, "a"));
        assert_eq!((read.waiters.len(), read.waiters[0].number, &*read.waiters[0].owner), (1, 6, "b"));
        assert_eq!(reader.lock(&lock("none"), 9).unwrap().found.head, None);
        assert!(reader.holder(&lock("l"), 5).unwrap().found.is_some());
        assert!(
            reader.holder(&lock("l"), 6).unwrap().found.is_none()
                && reader.holder(&election("l"), 5).unwrap().found.is_none()
        );
        let barrier = reader.barrier(&name("b"), Some(SessionId(4))).unwrap().found;
        assert_eq!(barrier.row, Some(BarrierRow { parties: 2, entered: 2, opened: Some(10) }));
        assert!(barrier.is_in && barrier.lives);
        let other = reader.barrier(&name("b"), Some(SessionId(3))).unwrap().found;
        assert!(!other.is_in && other.lives && !reader.barrier(&name("b"), Some(SessionId(9))).unwrap().found.lives);
        let counts = CoordinationCounts { sessions: 3, holders: 2, waiters: 2 };
        assert_eq!(reader.coordination_counts(10).unwrap(), counts);

        // The place of the second is over before the first session is; then the third has it.
        log.put(700, &[]).await;
        assert_eq!(party(&lock("l"), 3), Party::Nothing);
        log.put(999, &[]).await;
        assert!(matches!(party(&lock("l"), 2), Party::Holding { .. }), "not early");
        log.put(1_000, &[]).await;
        assert_eq!(party(&lock("l"), 2), Party::Expired);
        assert_eq!(reader.get(&key("svc/a")).unwrap().entry, None);
        assert_eq!(reader.barrier(&name("b"), Some(SessionId(2))).unwrap().found.row.map(|row| row.entered), Some(1));
        log.put(1_000, &[Command::unnamed(Action::Latch(LatchOp::Create { name: name("t"), count: 2 }))]).await;
        assert_eq!(reader.latch(&name("t")).unwrap().found, Some(LatchRow { count: 2, left: 2, opened: None }));
        assert_eq!(reader.latch(&name("u")).unwrap().found, None);
    });
}

#[test]
fn observers_get_each_change_of_a_leader_until_it_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let (state, reader) = open(dir.path());
    let mut log = Log { state, index: 0 };
    runtime().block_on(async {
        apply(&mut log.state, vec![blank(0)]).await;
        assert_eq!(reader.elected(&name("e")).unwrap().found, None);
        log.put(0, &[session("a", 10_000), session("b", 20_000)]).await;
        log.put(5, &[acquire(election("e"), 2, 0, Some("1")), acquire(election("e"), 3, 9_000, Some("2"))]).await;
        let said = Value { kind: ContentKind::Json, data: b"7".to_vec() };
        log.put(6, &[Command::unnamed(Action::Lock(LockOp::Proclaim { lock: election("e"), token: 4, value: said }))])
            .await;
        log.put(7, &[Command::unnamed(Action::Lock(LockOp::Release { lock: election("e"), token: 4 }))]).await;
        let told = |change: &LeaderChange| {
            let leader = change.1.as_ref().map(|leader| {
                let value = leader.value.as_ref().expect("a value");
                (leader.token, leader.owner.clone(), leader.since, String::from_utf8_lossy(&value.data).into_owned())
            });
            (change.0, leader)
        };
        let a = |value: &str| Some((4, "a".to_owned(), 1_005, value.to_owned()));
        let b = Some((8, "b".to_owned(), 1_007, "2".to_owned()));
        let all = |reader: &StateReader, after| {
            let page = reader.elected_after(&name("e"), after, 9).unwrap().found;
            assert!(!page.more);
            page.items.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(all(&reader, 0), [(4, a("1")), (6, a("7")), (7, None), (8, b.clone())]);
        assert_eq!(all(&reader, 6), [(7, None), (8, b.clone())]);
        let page = reader.elected_after(&name("e"), 4, 1).unwrap().found;
        assert_eq!((page.items.len(), page.items[0].0, page.more), (1, 6, true));
        assert_eq!(reader.elected(&name("e")).unwrap().found.as_ref().map(told), Some((8, b.clone())));

        log.put(8, &[maintain(Maintenance::Compact { revision: 8, groups_max: 100 })]).await;
        assert_eq!((reader.position().oldest_revision, all(&reader, 0)), (8, vec![]));
        let present = reader.elected(&name("e")).unwrap().found;
        assert_eq!(present.as_ref().map(told), Some((8, b)), "who leads is known though the change is not");
    });
}
