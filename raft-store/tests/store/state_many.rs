//! What happens all the time on the threads that Raft and requests share looks at as many rows with many sessions, and many members that were
//! removed, as with few.

use quorate_machine::types::{Action, Command, NodeDisk, SessionId, SessionOp};
use quorate_store::raft::wire::{MemberRecord, MembershipRecord};
use rocksdb::perf::PerfMetric;

use crate::state_traces::{EACH_BATCH, Store, counted};

/// Sessions, and members that were removed: few, but more than one batch ends at once, and many.
const FEW: u64 = 1_000;
const MANY: u64 = 20_000;
/// So many more rows a step may look at, as where they are spread over several files.
const SLACK: u64 = 100;
/// How long the first session lives, and the others do.
const SHORT_MS: u64 = 1_000;
const LONG_MS: u64 = 50_000;
/// A node that stays.
const STAYS: u64 = 1;

/// Rows that were looked at in this thread meanwhile, and traces of those that are gone. One may count twice.
pub(crate) fn rows(work: impl FnOnce()) -> u64 {
    let looked = [
        PerfMetric::InternalKeySkippedCount,
        PerfMetric::InternalDeleteSkippedCount,
        PerfMetric::NextOnMemtableCount,
        PerfMetric::PrevOnMemtableCount,
    ];
    counted(&looked, work)
}

fn session(nth: u64) -> SessionId {
    SessionId::chosen(i64::try_from(1 + nth).unwrap()).unwrap()
}

fn of_session(op: SessionOp) -> Command {
    Command::unnamed(Action::Session(op))
}

fn begin(nth: u64) -> Command {
    let ttl_ms = if nth == 0 { SHORT_MS } else { LONG_MS };
    of_session(SessionOp::CreateAs { id: session(nth), ttl_ms, owner: String::new(), labels: Vec::new() })
}

fn disk(node_id: u64) -> NodeDisk {
    NodeDisk { node_id, incarnation: node_id.into() }
}

/// The node that stays, and these.
fn members(others: std::ops::Range<u64>) -> MembershipRecord {
    let member = |id: u64| {
        let addr = format!("node-{id}:7000");
        (id, MemberRecord { peer_addr: addr.clone(), client_addr: addr, incarnation: disk(id).incarnation })
    };
    MembershipRecord { configs: vec![[STAYS].into()], nodes: [STAYS].into_iter().chain(others).map(member).collect() }
}

/// A state with so many sessions, in which so many members were removed.
fn aged(count: u64) -> Store {
    let mut store = Store::new();
    for first in (0..count).step_by(EACH_BATCH as usize) {
        store.apply(1, &(first..first + EACH_BATCH).map(begin).collect::<Vec<_>>());
        let others = STAYS + 1 + first..STAYS + 1 + first + EACH_BATCH;
        store.set_members(members(others));
    }
    store.set_members(members(0..0));
    assert!(store.reader.was_removed(disk(STAYS + count)).unwrap());
    store
}

type Step = (&'static str, fn(&mut Store));

/// In this order: the clock goes on from one to the next.
const STEPS: [Step; 9] = [
    ("the first deadline", |store| {
        assert_eq!(store.reader.first_deadline().unwrap(), Some(1 + SHORT_MS));
    }),
    ("what a status tells", |store| {
        assert_eq!(store.reader.applied().membership.membership.nodes.len(), 1);
        assert_eq!(store.reader.open_faults().unwrap(), (0, 0));
        assert!(!store.reader.has_counting_work().unwrap() && !store.reader.has_unplanned_tasks());
    }),
    ("who is a member, was one, or may become one", |store| {
        let (reader, gone, nobody) = (&store.reader, STAYS + 7, u64::MAX);
        assert!(reader.was_removed(disk(gone)).unwrap() && reader.was_id_removed(gone).unwrap());
        assert!(!reader.was_removed(disk(nobody)).unwrap() && !reader.was_id_removed(nobody).unwrap());
        assert_eq!(reader.admission(disk(gone)).unwrap(), None);
        assert_eq!(reader.invitations().unwrap().found, []);
    }),
    ("a member that comes and goes", |store| {
        store.set_members(members(9_000_000..9_000_001));
        store.set_members(members(0..0));
        assert!(store.reader.was_removed(disk(9_000_000)).unwrap());
    }),
    ("a look at a session", |store| {
        assert!(store.reader.session(session(11), 10).unwrap().found.is_some());
        assert_eq!(store.reader.session_owners(&[session(12), session(9_000_000)]).unwrap().found[1], None);
    }),
    ("a session that begins, is renewed and ends", |store| {
        store.apply(2, &[begin(9_000_000)]);
        store.apply(3, &[of_session(SessionOp::Renew(vec![session(9_000_000), session(13)]))]);
        store.apply(4, &[of_session(SessionOp::End(session(9_000_000)))]);
        assert_eq!(store.reader.session(session(9_000_000), 0).unwrap().found, None);
    }),
    ("a session that is over", |store| {
        store.apply(2 * SHORT_MS, &[]);
        assert_eq!(store.reader.session(session(0), 0).unwrap().found, None);
    }),
    ("the first batch after the moment at which all are over", |store| {
        store.apply(2 * LONG_MS, &[]);
        assert!(store.reader.first_deadline().unwrap().is_some_and(|next| next <= 2 * LONG_MS), "more is due");
    }),
    ("the next one", |store| store.apply(2 * LONG_MS, &[])),
];

#[test]
fn what_happens_all_the_time_looks_at_no_more_rows_with_many_sessions_and_removed_members() {
    let mut stores = [aged(FEW), aged(MANY)];
    let all = rows(|| assert_eq!(stores[1].reader.sessions(None, usize::MAX).unwrap().found.items.len() as u64, MANY));
    assert!(all >= MANY, "{all} rows in a walk over all sessions: nothing is proved by what is counted");
    for (what, step) in STEPS {
        let [few, many] = stores.each_mut().map(|store| rows(|| step(store)));
        println!("{what}: {few} rows with {FEW} sessions and removed members, {many} with {MANY}");
        assert!(many <= few + SLACK, "{what}: {many} rows with {MANY} sessions and removed members, {few} with {FEW}");
    }
}
