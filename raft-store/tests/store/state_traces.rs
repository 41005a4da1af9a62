//! What is gone leaves traces in the database until they are merged away: nothing that happens all the time walks over them.

use std::time::Duration;

use quorate_machine::document::{Criteria, Json, Order};
use quorate_machine::query::Party;
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::{
    Acquire, Action, Change, ClaimOp, Command, ContentKind, Expect, LockName, LockOp, LockSpace, Maintenance, Name,
    RulesChange, RulesOp, SessionId, SessionOp, Value,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::MembershipRecord;
use quorate_store::state::StateReader;
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

use crate::state_support::*;

/// Enough that a walk over all of their traces at each step cannot be missed.
const ENTRIES: u64 = 20_000;
pub(crate) const EACH_BATCH: u64 = 500;
/// Rows taken at each step of housekeeping, as a leader asks for.
const STEP: u32 = 256;

/// Traces that were walked over in this thread meanwhile.
fn traces(work: impl FnOnce()) -> u64 {
    counted(&[PerfMetric::InternalDeleteSkippedCount], work)
}

/// What RocksDB counts of these in this thread meanwhile, in all.
pub(crate) fn counted(what: &[PerfMetric], work: impl FnOnce()) -> u64 {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut counts = PerfContext::default();
    counts.reset();
    work();
    let walked = what.iter().map(|what| counts.metric(*what)).sum();
    set_perf_stats(PerfStatsLevel::Disable);
    walked
}

/// A state that applies on the thread of the test, where what RocksDB counts is counted.
pub(crate) struct Store {
    state: StateMachine,
    pub(crate) reader: StateReader,
    runtime: tokio::runtime::Runtime,
    next: u64,
    _dir: tempfile::TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, reader) = open(dir.path());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut store = Self { state, reader, runtime, next: 1, _dir: dir };
        store.runtime.block_on(apply(&mut store.state, vec![blank(0)]));
        store
    }

    pub(crate) fn apply(&mut self, clock: u64, commands: &[Command]) {
        self.apply_entry(batch(self.next, clock, commands));
    }

    pub(crate) fn set_members(&mut self, members: MembershipRecord) {
        let mut entry = blank(self.next);
        entry.payload = openraft::EntryPayload::Membership(members.try_into().unwrap());
        self.apply_entry(entry);
    }

    fn apply_entry(&mut self, entry: LogEntry) {
        self.next += 1;
        self.runtime.block_on(apply(&mut self.state, vec![entry]));
    }

    fn put_all(&mut self, clock: u64, each: impl Fn(u64) -> Command) {
        for first in (0..ENTRIES).step_by(EACH_BATCH as usize) {
            let commands: Vec<_> = (first..first + EACH_BATCH).map(&each).collect();
            self.apply(clock, &commands);
        }
    }
}

#[test]
fn what_is_due_is_found_without_a_walk_over_what_was_due_before() {
    let mut store = Store::new();
    store.put_all(1, |nth| with_ttl(put(format!("k/{nth:06}"), "x"), 100 + nth));
    store.apply(1, &[with_ttl(put("last", "x"), 1_000_000)]);
    let steps = ENTRIES.div_ceil(STEP.into()) + 1;
    let walked = traces(|| {
        for _ in 0..steps {
            store.apply(500_000, &[maintain(Maintenance::ExpireDue { limit: STEP })]);
        }
    });
    assert_eq!(store.reader.position().clock, 500_000);
    assert_eq!(store.reader.sizes().entries, 1, "all that was due is gone");
    assert!(walked < 4 * ENTRIES, "{walked} traces in {steps} steps");
    let walked = traces(|| assert_eq!(store.reader.first_deadline().unwrap(), Some(1_000_001)));
    assert!(walked < 2 * u64::from(STEP), "{walked} traces in one look");
}

#[test]
fn the_first_deadline_is_found_without_a_walk_over_those_that_were_put_off() {
    let mut store = Store::new();
    for round in 1..4 {
        store.put_all(round, |nth| with_ttl(put(format!("k/{nth:06}"), "x"), 100_000 * round + nth));
    }
    // Another thread looks beside the writer, once a second.
    let mut walked = u64::MAX;
    for _ in 0..400 {
        walked = traces(|| assert_eq!(store.reader.first_deadline().unwrap(), Some(300_003)));
        if walked < 100 {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    assert!(walked < 100, "{walked} traces in one look");
    // One that is due sooner is found all the same.
    store.apply(4, &[with_ttl(put("soon", "x"), 50)]);
    assert_eq!(store.reader.first_deadline().unwrap(), Some(54));
}

fn rules(name: &str, indexes: &str) -> Command {
    let text = format!("{{\"indexes\":{indexes}}}");
    let change = RulesChange::Set(Rules::read(&Json::parse(text.as_bytes()).unwrap(), "").unwrap());
    let op = RulesOp { name: CollectionName::new(name).unwrap(), expect: Expect::ANY, change };
    Command::unnamed(Action::Rules(op))
}

#[test]
fn an_index_is_cleared_without_a_walk_over_what_was_cleared_before() {
    let mut store = Store::new();
    store.apply(1, &[rules("d", r#"[["a"]]"#)]);
    store.put_all(1, |nth| {
        let value = Value { kind: ContentKind::Json, data: format!("{{\"a\":{nth}}}").into_bytes() };
        write(key(format!("d/{nth:06}")), Change::Put(value))
    });
    let step = || maintain(Maintenance::Indexes { rows_max: STEP });
    while store.reader.has_index_work().unwrap() {
        store.apply(1, &[step()]);
    }
    store.apply(1, &[rules("d", "[]")]);
    let mut steps = 0;
    let walked = traces(|| {
        while store.reader.has_index_work().unwrap() {
            store.apply(1, &[step()]);
            steps += 1;
        }
    });
    assert!(steps >= ENTRIES / u64::from(STEP), "{steps} steps");
    assert!(walked < 4 * ENTRIES, "{walked} traces in {steps} steps");
}

#[test]
fn whether_a_key_changed_is_found_without_a_walk_over_its_compacted_versions() {
    let mut store = Store::new();
    store.put_all(1, |_| put("hot", "x"));
    store.apply(1, &[remove("hot")]);
    let seen = store.reader.position().revision;
    while store.reader.position().oldest_revision < seen - 1 {
        store.apply(1, &[maintain(Maintenance::Compact { revision: seen - 1, groups_max: 64 })]);
    }
    let walked = traces(|| {
        store.runtime.block_on(store.reader.wait_key_change(&key("hot"), seen, Duration::from_millis(1)));
    });
    assert!(walked < 100, "{walked} traces in one look");
}

#[test]
fn a_lock_that_changed_hands_often_is_shown_without_a_walk_over_all_who_had_it() {
    const ROUNDS: usize = 2_000;
    let mut store = Store::new();
    let lock = LockName { space: LockSpace::Lock, name: Name::new("hot").unwrap() };
    let create = || SessionOp::Create { ttl_ms: 60_000, owner: String::new(), labels: Vec::new() };
    store.apply(0, &[Command::unnamed(Action::Session(create())), Command::unnamed(Action::Session(create()))]);
    let (first, second) = (SessionId(2), SessionId(3));
    let acquire = |session| {
        let asked = Acquire { wait_ms: 50_000, ..Acquire::of(lock.clone(), session) };
        Command::unnamed(Action::Lock(LockOp::Acquire(asked)))
    };
    let token = |store: &Store, session| match store.reader.party(&lock, session).unwrap().found {
        Party::Holding { token, .. } => token,
        other => panic!("{other:?}"),
    };
    let release = |token| Command::unnamed(Action::Lock(LockOp::Release { lock: lock.clone(), token }));
    for _ in 0..ROUNDS {
        store.apply(0, &[acquire(first), acquire(second)]);
        let held = token(&store, first);
        store.apply(0, &[release(held)]);
        let held = token(&store, second);
        store.apply(0, &[release(held)]);
    }
    let shown = |store: &Store, holders, waiters| {
        let walked = traces(|| {
            let seen = store.reader.lock(&lock, 10).unwrap().found;
            assert_eq!((seen.holders.len(), seen.waiters.len()), (holders, waiters));
        });
        assert!(walked < 100, "{walked} traces, {holders} holders, {waiters} waiters");
    };
    shown(&store, 0, 0);
    store.apply(0, &[acquire(first), acquire(second)]);
    shown(&store, 1, 1);
    let Party::Waiting { place, .. } = store.reader.party(&lock, second).unwrap().found else { panic!("it waits") };
    let walked = traces(|| assert_eq!(store.reader.places_before(&lock, place, 100).unwrap(), 0));
    assert!(walked < 100, "{walked} traces");
}

#[test]
fn the_collection_whose_index_is_built_is_found_without_a_look_at_all_others() {
    const OTHERS: u64 = 4_000;
    let mut store = Store::new();
    for first in (0..OTHERS).step_by(EACH_BATCH as usize) {
        let commands: Vec<_> = (first..first + EACH_BATCH).map(|nth| rules(&format!("c/{nth:06}"), "[]")).collect();
        store.apply(1, &commands);
    }
    let document = |nth| {
        let value = Value { kind: ContentKind::Json, data: format!("{{\"a\":{nth}}}").into_bytes() };
        write(key(format!("d/{nth:06}")), Change::Put(value))
    };
    store.apply(1, &(0..1_000).map(document).collect::<Vec<_>>());
    store.apply(1, &[rules("d", r#"[["a"]]"#)]);
    let step = || maintain(Maintenance::Indexes { rows_max: STEP });
    store.apply(1, &[step()]);
    let looked = counted(&[PerfMetric::NextOnMemtableCount], || store.apply(1, &[step()]));
    assert!(looked < OTHERS / 2, "{looked} rows in one step");
    while store.reader.has_index_work().unwrap() {
        store.apply(1, &[step()]);
    }
    let looked = counted(&[PerfMetric::NextOnMemtableCount], || assert!(!store.reader.has_index_work().unwrap()));
    assert!(looked < 100, "{looked} rows in one look");
    // One that is changed is looked at again.
    store.apply(1, &[rules("d", r#"[["a"],["b"]]"#)]);
    assert!(store.reader.has_index_work().unwrap());
}

#[test]
fn entries_that_are_used_as_a_queue_are_claimed_without_a_walk_over_those_that_were_done() {
    let mut store = Store::new();
    store.put_all(1, |nth| {
        let value = Value { kind: ContentKind::Json, data: b"{}".to_vec() };
        write(key(format!("q/{nth:06}")), Change::Put(value))
    });
    for first in (0..ENTRIES - EACH_BATCH).step_by(EACH_BATCH as usize) {
        let done: Vec<_> = (first..first + EACH_BATCH).map(|nth| remove(format!("q/{nth:06}"))).collect();
        store.apply(1, &done);
    }
    let claim = || {
        let (prefix, criteria, order) = (b"q/".to_vec(), Criteria::default(), Order::new(Vec::new()));
        Command::unnamed(Action::Claim(ClaimOp {
            prefix,
            criteria,
            order,
            limit: 1,
            lock_ms: 1_000,
            patch: None,
            guard: None,
        }))
    };
    let first = traces(|| store.apply(2, &[claim()]));
    assert!(first >= ENTRIES - EACH_BATCH, "{first} traces: nobody had looked yet");
    let second = traces(|| store.apply(2, &[claim()]));
    assert!(second < 100, "{second} traces");
}
