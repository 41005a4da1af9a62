//! Bounds of one apply: what it writes, whatever it is asked for, and that each row it writes can be read again.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::machine_support::bounds::{self, bytes, declare, found, json, keep, put, write};
use crate::machine_support::{Store, batch};
use quorate_crossing::memory::most_during;
use quorate_machine::access::{Grant, Permission};
use quorate_machine::document::{Criteria, Json};
use quorate_machine::keyspace::audit::{self, AuditEffect, AuditGroup, AuditLine, AuditOp};
use quorate_machine::keyspace::family;
use quorate_machine::limits;
use quorate_machine::machine::{self, Applier, Fault, MemoryView, Most, Row, Vars, View};
use quorate_machine::rules::SequenceName;
use quorate_machine::types::*;

/// More than applying one batch ever holds: most is held for a transaction, which cannot be cut; what it reads is kept to be
/// undone while it is written and answered.
const MEMORY_MAX: usize = 5 * limits::BATCH_EFFECT_BYTES_MAX;

/// More than applying one batch ever reads: some of what counts is read again to be written or answered.
const READ_MAX: usize = 8 * limits::BATCH_EFFECT_BYTES_MAX;

/// Fewest bytes that count for each time that rows are looked for: where they lie on disk, that takes some microseconds, and what counts
/// bounds the time of a step.
const LOOKED_UP_BYTES_MIN: usize = 64;

/// How often rows are looked for beside that, for each command and for the batch.
const LOOKS_MAX: usize = 16;

/// A view that counts the bytes read and the lookups.
struct Counting<'v> {
    rows: &'v MemoryView,
    read: Cell<usize>,
    looks: Cell<usize>,
}

impl Counting<'_> {
    fn of(rows: &MemoryView) -> Counting<'_> {
        Counting { rows, read: Cell::new(0), looks: Cell::new(0) }
    }

    /// Fails if the charged bytes do not cover the lookups.
    fn assert_counted(&self, taken: usize, commands: usize) {
        let (looks, most) = (self.looks.get(), taken / LOOKED_UP_BYTES_MIN + LOOKS_MAX * (1 + commands));
        assert!(
            looks <= most,
            "rows were looked for {looks} times to apply {commands} commands, which took {taken} bytes"
        );
    }

    fn count(&self, rows: Vec<Row>) -> Vec<Row> {
        self.looks.set(self.looks.get() + 1);
        self.read.set(self.read.get() + rows.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>());
        rows
    }
}

impl View for Counting<'_> {
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let row = self.rows.get(row_key)?;
        self.looks.set(self.looks.get() + 1);
        self.read.set(self.read.get() + row.as_ref().map_or(0, Vec::len));
        Ok(row)
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        Ok(self.count(self.rows.scan(start, end, limit)?))
    }

    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        Ok(self.count(self.rows.scan_back(start, end, limit)?))
    }

    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        Ok(self.count(self.rows.scan_page(start, end, reverse, most)?))
    }
}

/// Applies one batch and gives its replies and the bytes of keys and values that it writes.
fn measured(store: &mut Store, batch: &Batch) -> (Vec<Reply>, usize) {
    measured_within(MEMORY_MAX, store, batch)
}

/// Measures a store that may take at most this memory.
fn measured_within(memory_max: usize, store: &mut Store, batch: &Batch) -> (Vec<Reply>, usize) {
    let view = Counting::of(&store.view);
    let ((replies, taken, applied), memory) = most_during(|| {
        let mut applier = Applier::new(&view, store.vars.clone());
        let replies = applier.apply_batch(store.index + 1, batch).unwrap();
        (replies, applier.taken_bytes(), applier.finish())
    });
    view.assert_counted(taken, batch.commands.len());
    let read = view.read.get();
    assert!(read < READ_MAX, "{read} bytes were read to apply {} commands", batch.commands.len());
    assert!(memory < memory_max, "{memory} bytes were held to apply {} commands", batch.commands.len());
    let bytes = keep(store, batch, &replies, applied);
    (replies, bytes)
}

/// A key of the greatest length.
fn long_key(name: &str) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    key.resize(limits::KEY_BYTES_MAX, b'.');
    key
}

fn begin_session(store: &mut Store, clock: u64) -> SessionId {
    let create = SessionOp::Create { ttl_ms: 1_000, owner: String::new(), labels: Vec::new() };
    let (replies, _) = measured(store, &batch(clock, &[Command::unnamed(Action::Session(create))]));
    match replies[0].outcome {
        Outcome::Session(SessionReply::Created { id, .. }) => id,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_of_entries_with_long_keys_that_end_at_once_make_no_batch_beyond_the_bound() {
    let mut store = Store::default();
    for nth in 0..3 {
        let session = begin_session(&mut store, 1);
        for part in 0..8 {
            let puts: Vec<_> =
                (0..128).map(|at| put(long_key(&format!("{nth}/{part}/{at}")), Vec::new(), Some(session))).collect();
            let (replies, _) = measured(&mut store, &batch(1, &puts));
            assert!(replies.iter().all(|reply| matches!(reply.outcome, Outcome::Written(_))));
        }
    }
    let mut batches = 0;
    while store.vars.sessions > 0 {
        let (_, bytes) = measured(&mut store, &batch(5_000, &[]));
        assert!(bytes < 4 * limits::BATCH_EFFECT_BYTES_MAX, "{bytes} bytes are written by one batch");
        batches += 1;
    }
    assert!(batches >= 3, "{batches}");
    for (_, row) in store.rows(family::AUDIT) {
        assert!(row.len() < limits::BATCH_EFFECT_BYTES_MAX, "an audit row of {} bytes", row.len());
    }
    store.check();
}

/// A write of an entry that goes after so many milliseconds.
fn expiring(key: String, data: Vec<u8>, ms: u64) -> Command {
    Command::unnamed(Action::Write(WriteOp { expiry: Expiry::After(ms), ..write(key, bytes(data)) }))
}

/// Uses small entries, since a step of expiry or compaction takes many of them.
#[test]
fn what_housekeeping_looks_up_counts() {
    let mut store = Store::default();
    for part in 0..4 {
        let put = |at: u32| expiring(format!("{part}/{at}"), Vec::new(), 1);
        measured(&mut store, &batch(1, &(0..256).map(put).collect::<Vec<_>>()));
    }
    let step = |store: &mut Store, what: Maintenance| {
        let (replies, _) = measured(store, &batch(2, &[Command::unnamed(Action::Maintain(what))]));
        match replies[0].outcome {
            Outcome::Maintained { removed, .. } => removed,
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(step(&mut store, Maintenance::ExpireDue { limit: 1_000 }), 1_000);
    assert_eq!(step(&mut store, Maintenance::ExpireDue { limit: 1_000 }), 24);
    let mut dropped = 0;
    loop {
        match step(&mut store, Maintenance::Compact { revision: u64::MAX, groups_max: 64 }) {
            0 => break,
            groups => dropped += groups,
        }
    }
    assert_eq!(dropped, 6);
    store.check();
}

#[test]
fn an_audit_group_of_any_size_can_be_read_again() {
    let line = AuditLine {
        revision: 1,
        op: AuditOp::Remove,
        key: None,
        request_id: None,
        principal: String::new(),
        effect: AuditEffect::Refused(Refusal::NotFound),
    };
    // Each line of it has less than ten bytes, and 176 in memory: 140 MiB at once.
    let lines = vec![line; 840_000];
    let group = AuditGroup { index: 1, clock: 2, wall: 3, first_revision: 4, last_revision: 5, lines };
    let row = audit::encode(&group);
    assert!(audit::decode(&row).unwrap() == group, "the group that came back differs");
}

/// Entries of 1 MiB each, under keys that begin with `d/`.
fn with_large_entries(count: usize) -> Store {
    let mut store = Store::default();
    for nth in 0..count {
        measured(&mut store, &batch(1, &[put(format!("d/{nth:03}"), vec![b'x'; 1 << 20], None)]));
    }
    store
}

fn nothing_matches() -> Criteria {
    let text = Json::parse(br#"[{"field":"$version","op":"eq","value":7}]"#).unwrap();
    Criteria::read(&text, "/where").unwrap()
}

#[test]
fn a_search_through_large_entries_holds_only_a_few_of_them_at_once() {
    let mut store = with_large_entries(48);
    let claim = Action::Claim(bounds::claim("d/", nothing_matches()));
    let (replies, _) = measured(&mut store, &batch(2, &[Command::unnamed(claim)]));
    assert!(matches!(&replies[0].outcome, Outcome::Claimed(done) if done.more && done.examined < 16), "{replies:?}");
    let change = Action::Where(found("d/", nothing_matches(), WhereChange::Remove));
    let (replies, _) = measured(&mut store, &batch(2, &[Command::unnamed(change)]));
    assert!(matches!(&replies[0].outcome, Outcome::Where(done) if done.examined < 16), "{replies:?}");
}

/// A step of housekeeping, and whether more is left.
fn maintain(store: &mut Store, what: Maintenance) -> (u32, bool) {
    let (replies, bytes) = measured(store, &batch(2, &[Command::unnamed(Action::Maintain(what))]));
    assert!(bytes < 4 * limits::BATCH_EFFECT_BYTES_MAX, "{bytes} bytes are written by one step of {what:?}");
    match replies[0].outcome {
        Outcome::Maintained { removed, more } => (removed, more),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_of_building_an_index_holds_only_a_few_large_entries_at_once() {
    let mut store = with_large_entries(48);
    measured(&mut store, &batch(2, &[Command::unnamed(declare("d", r#"{"indexes":[["a"]]}"#))]));
    let mut steps = 0;
    while maintain(&mut store, Maintenance::Indexes { rows_max: 8_192 }).1 {
        steps += 1;
    }
    assert!((6..=12).contains(&steps), "{steps}");
    store.check();
}

#[test]
fn a_step_of_clearing_an_index_of_long_keys_is_bounded() {
    let mut store = Store::default();
    measured(&mut store, &batch(2, &[Command::unnamed(declare("d", r#"{"indexes":[["a"]]}"#))]));
    while maintain(&mut store, Maintenance::Indexes { rows_max: 8_192 }).1 {}
    for part in 0..40 {
        let puts: Vec<_> = (0..128).map(|at| put(long_key(&format!("d/{part}/{at}")), Vec::new(), None)).collect();
        measured(&mut store, &batch(2, &puts));
    }
    measured(&mut store, &batch(2, &[Command::unnamed(declare("d", "{}"))]));
    let mut steps = 0;
    loop {
        let (removed, more) = maintain(&mut store, Maintenance::Indexes { rows_max: 8_192 });
        assert!(removed < 4_000, "{removed} rows of 4 KiB in one step");
        if !more {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 2, "{steps}");
    store.check();
}

/// Declares 16 indexes over the same eight fields below `d/`, and writes entries there whose eight texts are as long as an index keeps.
fn with_many_index_rows(session: SessionId, store: &mut Store, count: usize) {
    let fields = |first: usize| (0..8).map(|at| format!("\"f{}\"", (first + at) % 8)).collect::<Vec<_>>().join(",");
    let turned = |first: usize| fields(first).replacen("\"f", "\"-f", 1);
    let indexes: Vec<_> =
        (0..8).flat_map(|first| [fields(first), turned(first)]).map(|list| format!("[{list}]")).collect();
    let rules = format!(r#"{{"indexes":[{}]}}"#, indexes.join(","));
    measured(store, &batch(2, &[Command::unnamed(declare("d", &rules))]));
    while maintain(store, Maintenance::Indexes { rows_max: 8_192 }).1 {}
    for nth in 0..count {
        let texts = (0..8).map(|at| format!("\"f{at}\":\"{nth:04}{}\"", "x".repeat(1_020))).collect::<Vec<_>>();
        let op = write(format!("d/{nth:04}"), json(format!("{{{}}}", texts.join(","))));
        let command = Command::unnamed(Action::Write(WriteOp { session: Some(session), ..op }));
        let (replies, _) = measured(store, &batch(2, &[command]));
        assert!(matches!(replies[0].outcome, Outcome::Written(_)), "{replies:?}");
    }
}

/// All that go with a session go in one revision, so this cannot be cut. Entries are as large as their texts, which stand in each index.
#[test]
fn a_session_takes_only_so_many_index_rows_with_it() {
    const ENTRIES: usize = 490;
    let mut store = Store::default();
    let session = begin_session(&mut store, 2);
    with_many_index_rows(session, &mut store, ENTRIES);
    let rows = store.rows(family::INDEX).len();
    assert_eq!(rows, 16 * ENTRIES);
    let attached = 8 * 1_024 * ENTRIES as u64;
    assert!(attached > limits::SESSION_BYTES_MAX * 9 / 10, "a session takes more than {attached} bytes");
    // Each of its texts is the key of a row in each index.
    let bound = limits::SESSION_BYTES_MAX as usize * (limits::INDEXES_MAX + 4);
    let (_, bytes) = measured_within(bound, &mut store, &batch(5_000, &[]));
    assert!(store.rows(family::INDEX).is_empty());
    assert!(bytes < bound, "{bytes} bytes are written by the end of a session");
    store.check();
}

#[test]
fn a_step_of_compaction_reads_and_drops_only_so_many_long_lines() {
    let mut store = Store::default();
    for part in 0..40 {
        let puts: Vec<_> = (0..256).map(|at| put(long_key(&format!("{part}/{at}")), Vec::new(), None)).collect();
        measured(&mut store, &batch(1, &puts));
    }
    let revision = store.vars.revision;
    let mut steps = 0;
    while maintain(&mut store, Maintenance::Compact { revision, groups_max: 1_000 }).1 {
        steps += 1;
    }
    assert!((3..20).contains(&steps), "{steps}");
    store.check();
}

#[test]
fn a_transaction_buries_only_so_much_before_it_comes_again() {
    let mut store = Store::default();
    for nth in 0..40 {
        measured(&mut store, &batch(1, &[expiring(format!("d/{nth:03}"), vec![b'x'; 1 << 20], 10)]));
    }
    let step = |nth| Step::Write(write(format!("d/{nth:03}"), bytes(b"1")));
    let txn = Txn { then: (0..40).map(step).collect(), ..Txn::default() };
    let command = Command { request_id: Some(RequestId("t".into())), ..Command::unnamed(Action::Txn(txn)) };
    let mut rounds = 0;
    let dry =
        machine::evaluate(&store.view, &Vars { clock: 100, ..store.vars.clone() }, store.index, &command).unwrap();
    assert!(
        matches!(dry.outcome, Outcome::Rejected(Rejection::TooMuch { .. })),
        "a rehearsal is never deferred: {dry:?}"
    );
    loop {
        let (replies, _) = measured(&mut store, &batch(100, std::slice::from_ref(&command)));
        store.check();
        rounds += 1;
        match &replies[0].outcome {
            Outcome::Deferred => assert!(rounds < 10, "nothing comes of it"),
            Outcome::Txn(done) => break assert_eq!(done.results.len(), 40),
            other => panic!("{other:?}"),
        }
    }
    assert!(rounds > 1);
}

fn schedule(ids: std::ops::Range<usize>, payload: usize) -> Command {
    let new = |nth: usize| NewTask {
        id: Some(TaskId::new(format!("t{nth}")).unwrap()),
        payload: Value { kind: ContentKind::Bytes, data: vec![b'x'; payload] },
        start: Start::In(0),
        recurrence: None,
        retry: RetryPlan::default(),
        keep_ms: 0,
        replace: true,
    };
    let verb = TaskVerb::Schedule(ids.map(new).collect());
    Command::unnamed(Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb }))
}

#[test]
fn scheduling_ids_that_are_in_use_does_not_load_all_that_is_there() {
    let mut store = Store::default();
    for nth in 0..40 {
        measured(&mut store, &batch(1, &[schedule(nth..nth + 1, 1 << 20)]));
    }
    let revision = store.vars.revision;
    let (replies, _) = measured(&mut store, &batch(1, &[schedule(0..40, 1)]));
    assert!(matches!(&replies[0].outcome, Outcome::Rejected(Rejection::TooMuch { .. })), "{replies:?}");
    assert_eq!(store.vars.revision, revision);
    let (replies, _) = measured(&mut store, &batch(1, &[schedule(0..8, 1)]));
    assert!(matches!(&replies[0].outcome, Outcome::Task(_)), "{replies:?}");
    store.check();
}

/// Criteria of long lists, each of which has to be looked through before the last one says no.
fn long_lists(lists: usize) -> Criteria {
    let values: Vec<_> = (0..limits::CRITERIA_LIST_MAX).map(|nth| nth.to_string()).collect();
    let list = format!(r#"{{"field":"a","op":"nin","value":[{}]}}"#, values.join(","));
    let text = format!(r#"[{},{{"field":"$version","op":"eq","value":7}}]"#, vec![list; lists].join(","));
    Criteria::read(&Json::parse(text.as_bytes()).unwrap(), "/where").unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may look at the clock; the machine does not")]
fn criteria_of_long_lists_are_weighed_before_they_are_looked_through() {
    let mut store = Store::default();
    for part in 0..4 {
        let document = |nth| Command::unnamed(Action::Write(write(format!("d/{part}/{nth}"), json(r#"{"a":1000}"#))));
        let documents: Vec<_> = (0..1_000).map(document).collect();
        measured(&mut store, &batch(1, &documents));
    }
    let claim = ClaimOp { limit: 1, ..bounds::claim("d/", long_lists(limits::CRITERIA_TERMS_MAX - 1)) };
    let begun = Instant::now();
    let (replies, _) = measured(&mut store, &batch(2, &[Command::unnamed(Action::Claim(claim))]));
    let took = begun.elapsed();
    assert!(matches!(&replies[0].outcome, Outcome::Claimed(done) if done.more && done.examined < 3_000), "{replies:?}");
    // Compared one by one, they took a minute in a build without optimisation.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn refusals_that_say_much_keep_little_under_their_request_id() {
    let mut store = Store::default();
    let name = |nth: usize| format!("\"{nth}{}\"", "f".repeat(limits::PATH_BYTES_MAX - 8));
    let names: Vec<_> = (0..limits::RULE_FAULTS_MAX).map(name).collect();
    let rules = format!(r#"{{"required":[{}]}}"#, names.join(","));
    measured(&mut store, &batch(1, &[Command::unnamed(declare("d", &rules))]));
    let refused = |nth: usize| write(format!("d/{nth}"), json("{}"));
    let bulk = Action::Bulk((0..150).map(refused).collect());
    let command = Command { request_id: Some(RequestId("b".into())), ..Command::unnamed(bulk) };
    let (replies, _) = measured(&mut store, &batch(1, std::slice::from_ref(&command)));
    let details = |replies: &[Reply]| replies[0].outcome.detail_bytes();
    assert!(details(&replies) > 4 * limits::KEPT_DETAILS_MAX, "{} bytes", details(&replies));
    for (_, row) in store.rows(family::REQUEST) {
        assert!(row.len() < limits::KEPT_DETAILS_MAX, "{} bytes are kept", row.len());
    }
    let (again, _) = measured(&mut store, &batch(1, &[command]));
    assert!(again[0].replayed);
    let why = |replies: &[Reply]| match &replies[0].outcome {
        Outcome::Bulk(items) => items.iter().map(|item| std::mem::discriminant(&item.outcome)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&again), why(&replies));
    store.check();
}

/// Which kind of command it is. A new kind does not compile here: it needs a command at its limits below.
fn kind_of(action: &Action) -> usize {
    match action {
        Action::Write(_) => 0,
        Action::Maintain(_) => 1,
        Action::Bulk(_) => 2,
        Action::Txn(_) => 3,
        Action::Where(_) => 4,
        Action::Claim(_) => 5,
        Action::Rules(_) => 6,
        Action::Numbers(_) => 7,
        Action::Session(_) => 8,
        Action::Lock(_) => 9,
        Action::Barrier(_) => 10,
        Action::Latch(_) => 11,
        Action::Task(_) => 12,
        Action::Access(_) => 13,
        Action::Faults(_) => 14,
        Action::Members(_) => 15,
        Action::Quota(_) => 16,
    }
}

/// How many kinds there are.
const KINDS: usize = 17;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// As many tasks as one command schedules, with ids as long as they may be and a MiB of payloads.
fn many_tasks() -> Action {
    let id = |nth: usize| TaskId::new(format!("{nth:0width$}", width = limits::TASK_ID_BYTES_MAX)).unwrap();
    match schedule(0..limits::TASKS_SCHEDULED_MAX, 1_024).action {
        Action::Task(TaskOp { queue, verb: TaskVerb::Schedule(tasks) }) => {
            let tasks = (0..).zip(tasks).map(|(nth, task)| NewTask { id: Some(id(nth)), ..task }).collect();
            Action::Task(TaskOp { queue, verb: TaskVerb::Schedule(tasks) })
        }
        other => panic!("{other:?}"),
    }
}

/// A command of each kind at its limits, about entries of 1 MiB below `d/`, and tasks as large.
fn commands_at_their_limits(session: SessionId) -> Vec<Action> {
    let key = |nth: usize| Key::new(format!("d/{nth:03}")).unwrap();
    let write = |nth, change| WriteOp { return_previous: true, ..write(format!("d/{nth:03}"), change) };
    let largest = bytes(vec![b'y'; limits::VALUE_BYTES_MAX]);
    let lock = LockName { space: LockSpace::Election, name: name("leader") };
    let proclaimed = Value { kind: ContentKind::Bytes, data: vec![b'v'; limits::PROCLAIMED_BYTES_MAX] };
    let (worker, queue) = ("w".repeat(limits::TASK_WORKER_BYTES_MAX), QueueName::new("q").unwrap());
    let grant = |nth| Grant { permission: Permission::Read, prefix: long_key(&format!("{nth:02}")) };
    let grants = (0..limits::ROLE_GRANTS_MAX).map(grant).collect();
    vec![
        Action::Write(write(0, largest)),
        Action::Txn(Txn { then: (0..24).map(|nth| Step::Get(key(nth))).collect(), ..Txn::default() }),
        Action::Txn(Txn {
            then: (0..24).map(|nth| Step::Write(write(nth, Change::Touch))).collect(),
            ..Txn::default()
        }),
        Action::Claim(ClaimOp { lock_ms: 1, ..bounds::claim("d/", Criteria::default()) }),
        Action::Bulk((0..24).map(|nth| write(nth, Change::Lock(1))).collect()),
        declare("d", r#"{"indexes":[["a"],["b"]]}"#),
        Action::Maintain(Maintenance::Indexes { rows_max: u32::MAX }),
        Action::Where(found("d/", Criteria::default(), WhereChange::Remove)),
        Action::Maintain(Maintenance::ExpireDue { limit: u32::MAX }),
        Action::Maintain(Maintenance::Compact { revision: u64::MAX, groups_max: u32::MAX }),
        Action::Numbers(NumbersOp { name: SequenceName::new("s").unwrap(), count: limits::NUMBERS_MAX }),
        Action::Session(SessionOp::Renew(vec![session; limits::SESSIONS_RENEWED_MAX])),
        Action::Lock(LockOp::Acquire(Acquire {
            value: Some(proclaimed.clone()),
            ..Acquire::of(lock.clone(), session)
        })),
        Action::Barrier(BarrierOp::Enter { name: name("b"), session, parties: limits::BARRIER_PARTIES_MAX }),
        Action::Latch(LatchOp::Create { name: name("l"), count: limits::LATCH_COUNT_MAX }),
        Action::Lock(LockOp::Proclaim { lock: lock.clone(), token: u64::MAX, value: proclaimed }),
        Action::Lock(LockOp::Leave { lock, session, asked: None, release: true }),
        Action::Task(TaskOp {
            queue: queue.clone(),
            verb: TaskVerb::Claim { limit: 100, lease_ms: 1_000, worker, session: None },
        }),
        many_tasks(),
        Action::Task(TaskOp { queue, verb: TaskVerb::Requeue(Requeue::Oldest(limits::TASKS_REQUEUED_MAX)) }),
        Action::Access(AccessOp::SetRole { name: RoleName::new("r").unwrap(), grants }),
        Action::Maintain(Maintenance::Count),
        Action::Faults(FaultsOp::Forget),
        Action::Members(MembersOp::Revoke(TokenId(1))),
        Action::Quota(QuotaOp::Set {
            subject: QuotaSubject::Prefix(vec![b'k'; limits::KEY_BYTES_MAX]),
            bounds: QuotaBounds { bytes: Some(u64::MAX), ..QuotaBounds::default() },
        }),
        Action::Maintain(Maintenance::Count),
    ]
}

#[test]
fn each_command_at_its_limits_reads_writes_and_holds_only_so_much() {
    let mut store = with_large_entries(24);
    let session = begin_session(&mut store, 1);
    for nth in 0..24 {
        measured(&mut store, &batch(1, &[schedule(nth..nth + 1, 1 << 20)]));
    }
    let mut kinds = BTreeSet::new();
    for (clock, action) in (2..).zip(commands_at_their_limits(session)) {
        kinds.insert(kind_of(&action));
        let command = Command::unnamed(action);
        let mut rounds = 0;
        loop {
            let (replies, bytes) = measured(&mut store, &batch(10 * clock, std::slice::from_ref(&command)));
            assert!(bytes < 4 * limits::BATCH_EFFECT_BYTES_MAX, "{bytes} bytes are written by {command:?}");
            rounds += 1;
            let more = matches!(replies[0].outcome, Outcome::Deferred | Outcome::Maintained { more: true, .. });
            if !more || rounds > 50 {
                break;
            }
        }
        store.check();
    }
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
}
