//! The dearest command of each kind that there can be, in the state in which it takes most.
//!
//! Owns these states and commands, in scenes. Every kind of [`kinds`] stands in one of them, see [`kinds_of`]. Their cost is measured
//! elsewhere: bytes and steps by the tests of the machine, instructions by `scripts/instructions`. Commands whose work does not grow with
//! anything stand together in one scene.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use quorate_machine::access::{Grant, Permission};
use quorate_machine::document::path::{Field, MetaField};
use quorate_machine::document::{Criteria, Json, Order, OrderField, Patch};
use quorate_machine::keyspace::entry;
use quorate_machine::machine::{Applier, View};
use quorate_machine::rules::{CollectionName, Rules, SequenceName};
use quorate_machine::types::{
    AccessOp, Acquire, Action, AfterFailure, BarrierOp, Batch, Branch, Change, Check, ClaimOp, Command, Compared,
    Comparison, ComparisonOperator, ContentKind, Expect, Expiry, FaultsOp, Key, KeyRange, LatchOp, ListOrder,
    ListOrderBy, ListShown, ListStep, LockMode, LockName, LockOp, LockReply, LockSpace, Maintenance, MembersOp, Name,
    NewInvitation, NewTask, NewToken, NodeDisk, NumbersOp, Outcome, PlanTask, Presence, Question, QueueName,
    QuotaBounds, QuotaOp, QuotaSubject, RemoveStep, Reply, Requeue, RetryPlan, RevisionFilter, RoleName, RulesChange,
    RulesOp, SecretHash, SessionId, SessionOp, SessionReply, Start, Step, TaskId, TaskOp, TaskReply, TaskVerb, Ticket,
    TokenId, Txn, UserName, Value, WhereChange, WhereOp, WriteOp,
};
use quorate_machine::{level, limits};

use crate::kinds::{self, CHANGES, OTHERS};
use crate::store::{Store, batch};

/// A state, and commands that take most in it, each in a batch of its own.
pub struct Scene {
    /// Its name, for people and for what is kept of it.
    pub name: &'static str,
    /// The state.
    pub store: fn() -> Store,
    /// The commands.
    pub commands: fn(&Store) -> Vec<Action>,
}

/// All of them.
pub const SCENES: &[Scene] = &[
    Scene { name: "upsert by rules", store: wide_by_rules, commands: |_| vec![wide(Presence::Any)] },
    Scene { name: "replace by rules", store: wide_by_rules, commands: |_| vec![wide(Presence::Present)] },
    Scene { name: "insert by rules", store: empty_by_rules, commands: |_| vec![wide(Presence::Absent)] },
    Scene { name: "remove from indexes", store: wide_by_rules, commands: |_| vec![on_list(Change::Remove, false)] },
    Scene { name: "touch on conditions", store: list, commands: |_| vec![on_list(Change::Touch, true)] },
    Scene { name: "patch", store: list, commands: |_| vec![on_list(Change::Patch(moves()), false)] },
    Scene { name: "claim patching", store: list, commands: |_| vec![on_list(claimed(Some(moves())), false)] },
    Scene { name: "claim on conditions", store: list, commands: |_| vec![on_list(claimed(None), true)] },
    Scene { name: "lock on conditions", store: list, commands: |_| vec![on_list(Change::Lock(1), true)] },
    Scene { name: "extend on conditions", store: locked, commands: |store| vec![by_holder(store, Change::Extend(1))] },
    Scene { name: "unlock on conditions", store: locked, commands: |store| vec![by_holder(store, Change::Unlock)] },
    Scene { name: "bulk", store: many_entries, commands: |_| vec![Action::Bulk(small_writes())] },
    Scene { name: "transaction of writes", store: many_entries, commands: |_| vec![writing()] },
    Scene { name: "transaction on conditions", store: list, commands: |_| vec![checking()] },
    Scene { name: "transaction over ranges", store: many_entries, commands: |_| vec![over_ranges()] },
    Scene { name: "removal of a range", store: many_entries, commands: |_| vec![removing()] },
    Scene { name: "update of what matches", store: list, commands: |_| vec![updating()] },
    Scene { name: "removal of what matches", store: many_entries, commands: |_| vec![removing_where()] },
    Scene { name: "search of what matches", store: many_entries, commands: |_| vec![searching()] },
    Scene { name: "claim of what is found", store: many_entries, commands: |_| vec![claiming()] },
    Scene { name: "renewal of sessions", store: many_sessions, commands: |store| vec![renewal(store)] },
    Scene { name: "end of a session", store: session_with_entries, commands: |_| vec![ending()] },
    Scene { name: "release of a lock", store: lock_with_waiters, commands: |_| vec![release()] },
    Scene { name: "scheduling of tasks", store: empty, commands: |_| vec![schedule(limits::TASKS_SCHEDULED_MAX)] },
    Scene { name: "tasks", store: many_tasks, commands: |_| of_tasks() },
    Scene { name: "requeueing of tasks", store: dead_tasks, commands: |_| vec![requeueing()] },
    Scene { name: "expiry and compaction", store: expired_entries, commands: |_| keeping() },
    Scene { name: "building of an index", store: lists_to_index, commands: |_| vec![indexing()] },
    Scene { name: "the rest", store: empty, commands: |_| small() },
];

/// The kinds of what a command does.
pub fn kinds_of(action: &Action) -> Vec<&'static str> {
    match action {
        Action::Write(op) => vec![kinds::of_write(op)],
        Action::Bulk(ops) => ops.iter().map(kinds::of_write).collect(),
        Action::Txn(txn) => kinds_of_steps([&txn.then, &txn.otherwise]),
        other => vec![kinds::of_other(other).expect("it is no write, bulk or transaction")],
    }
}

fn kinds_of_steps(ways: [&Vec<Step>; 2]) -> Vec<&'static str> {
    let of_step = |step: &Step| match step {
        Step::Get(_) => Vec::new(),
        Step::Write(op) => vec![kinds::of_write(op)],
        Step::Txn(txn) => kinds_of_steps([&txn.then, &txn.otherwise]),
        Step::List(_) => vec![kinds::LIST_RANGE],
        Step::Remove(_) => vec![kinds::REMOVE_RANGE],
        Step::Branch(branch) => {
            let compared = branch.comparisons.iter().map(|_| kinds::COMPARE_RANGE);
            compared.chain(kinds_of_steps([&branch.then, &branch.otherwise])).collect()
        }
    };
    ways.into_iter().flatten().flat_map(of_step).collect()
}

/// The kinds of which there has to be a command.
pub fn wanted() -> BTreeSet<&'static str> {
    let all = CHANGES.into_iter().chain(OTHERS.into_iter().map(|(kind, _)| kind));
    // A new epoch is no command: it begins in a store that does not run.
    all.filter(|kind| *kind != "new epoch").collect()
}

/// Applies a command of a scene in a batch of its own. Gives what came of it, and how many bytes it took of the bound of a batch.
///
/// `scripts/instructions` counts what is executed within this function, by its name: it is not inlined, it is called for nothing else, and no
/// other name contains its own, as that of a closure in it would.
#[inline(never)]
pub fn apply_counted(store: &mut Store, action: Action) -> (Outcome, usize) {
    let batch = batch(store.vars.clock, &[Command::unnamed(action)]);
    let (mut replies, taken) = apply_batch(store, &batch);
    (replies.remove(0).outcome, taken)
}

fn apply_batch(store: &mut Store, batch: &Batch) -> (Vec<Reply>, usize) {
    store.index += 1;
    let mut applier = Applier::new(&store.view, store.vars.clone());
    let replies = applier.apply_batch(store.index, batch).unwrap();
    let taken = applier.taken_bytes();
    let applied = applier.finish();
    store.view.write(applied.writes);
    store.vars = applied.vars;
    (replies, taken)
}

/// Applies what makes a state.
fn prepare(store: &mut Store, action: Action) -> Outcome {
    let batch = batch(store.vars.clock, &[Command::unnamed(action)]);
    let outcome = apply_batch(store, &batch).0.remove(0).outcome;
    let is_refused = matches!(outcome, Outcome::Rejected(_) | Outcome::TxnRejected(_) | Outcome::Deferred);
    assert!(!is_refused, "{outcome:?}");
    outcome
}

/// Elements of a list that is parsed, and looked through by two conditions or patched by some operations, before more is refused.
const ELEMENTS: usize = 400_000;

/// Elements of a list that is about as long as a value may be.
const ELEMENTS_MAX: usize = 700_000;

/// Members of an object that is about as long as a value may be.
const MEMBERS: usize = 100_000;

fn json(text: &str) -> Json<'static> {
    Json::parse(text.as_bytes()).unwrap().into_owned()
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn bytes(length: usize) -> Value {
    Value { kind: ContentKind::Bytes, data: vec![b'x'; length] }
}

fn document(text: String) -> Value {
    Value { kind: ContentKind::Json, data: text.into_bytes() }
}

fn a_list(elements: usize) -> Value {
    document(format!(r#"{{"a":[{}]}}"#, vec!["0"; elements].join(",")))
}

fn a_wide_object() -> Value {
    let members: Vec<_> = (0..MEMBERS).map(|n| format!("\"{n:06}\":0")).collect();
    document(format!("{{{}}}", members.join(",")))
}

fn write(name: &str, change: Change) -> WriteOp {
    WriteOp { change, ..WriteOp::removal(key(name), false) }
}

/// Makes as many conditions as there may be, each of which looks through all of the list.
fn conditions() -> Criteria {
    let term = r#"{"field":"a","op":"ncontains","value":7}"#;
    Criteria::read(&json(&format!("[{}]", vec![term; limits::CRITERIA_TERMS_MAX].join(","))), "/if").unwrap()
}

/// Moves the whole list twice with each operation.
fn moves() -> Patch {
    let operation = r#"{"op":"move","from":"/a/0","path":"/a/1"}"#;
    Patch::read(&json(&format!("[{}]", vec![operation; limits::PATCH_OPERATIONS_MAX].join(","))), "/patch").unwrap()
}

fn claimed(patch: Option<Patch>) -> Change {
    Change::Claim { ms: limits::LOCK_MS_MAX, patch }
}

/// A write of the entry with the long value.
fn on_list(change: Change, on_conditions: bool) -> Action {
    let condition = if on_conditions { conditions() } else { Criteria::default() };
    Action::Write(WriteOp { condition, return_previous: true, ..write("d/1", change) })
}

fn wide(presence: Presence) -> Action {
    let expect = Expect { presence, ..Expect::ANY };
    Action::Write(WriteOp { expect, return_previous: true, ..write("d/1", Change::Put(a_wide_object())) })
}

fn empty() -> Store {
    Store::default()
}

fn list() -> Store {
    let mut store = empty();
    prepare(&mut store, on_list(Change::Put(a_list(ELEMENTS)), false));
    store
}

/// The same, locked.
fn locked() -> Store {
    let mut store = list();
    prepare(&mut store, on_list(Change::Lock(limits::LOCK_MS_MAX), false));
    store
}

/// A write of the entry by who holds its lock.
fn by_holder(store: &Store, change: Change) -> Action {
    let row = store.view.get(&entry::row_key(b"d/1")).unwrap().unwrap();
    let expect = Expect::cas(entry::decode(&row).unwrap().key.unwrap());
    Action::Write(WriteOp { expect, condition: conditions(), ..write("d/1", change) })
}

fn declare(store: &mut Store, rules: &str) {
    let change = RulesChange::Set(Rules::read(&json(rules), "").unwrap());
    prepare(store, Action::Rules(RulesOp { name: CollectionName::new("d").unwrap(), expect: Expect::ANY, change }));
}

/// Makes as many indexes of as many fields as there may be, none of them of [`a_wide_object`].
fn indexes() -> String {
    let fields = |nth: usize| (0..limits::INDEX_FIELDS_MAX).map(|at| format!("\"f{nth}_{at}\"")).collect::<Vec<_>>();
    let indexes: Vec<_> = (0..limits::INDEXES_MAX).map(|nth| format!("[{}]", fields(nth).join(","))).collect();
    indexes.join(",")
}

/// With as many fields as are not too dear for an object with so many members.
fn empty_by_rules() -> Store {
    let mut store = empty();
    let fields: Vec<_> = (0..3).map(|nth| format!(r#""f{nth}":{{"type":"long"}}"#)).collect();
    declare(&mut store, &format!(r#"{{"fields":{{{}}},"indexes":[{}]}}"#, fields.join(","), indexes()));
    store
}

fn wide_by_rules() -> Store {
    let mut store = empty_by_rules();
    prepare(&mut store, wide(Presence::Any));
    store
}

/// Entries of 1 KiB, as many as one command writes.
fn small_writes() -> Vec<WriteOp> {
    let op = |nth: usize| write(&format!("d/{nth:05}"), Change::Put(bytes(1_024)));
    (0..limits::COMMAND_WRITES_MAX).map(op).collect()
}

/// Makes as many entries as one command looks at, all of which expire once time passes.
fn many_entries() -> Store {
    // Several scenes begin with it, and to make it takes longer than all of them.
    static MADE: OnceLock<Store> = OnceLock::new();
    MADE.get_or_init(make_many_entries).clone()
}

fn make_many_entries() -> Store {
    let mut store = empty();
    let all = usize::try_from(limits::COMMAND_ENTRIES_MAX).unwrap();
    let names: Vec<_> = (0..all).map(|nth| format!("d/{nth:05}")).collect();
    for names in names.chunks(limits::COMMAND_WRITES_MAX) {
        let op = |name: &String| WriteOp {
            expiry: Expiry::After(1),
            ..write(name, Change::Put(document(r#"{"a":[0,1,2,3]}"#.into())))
        };
        prepare(&mut store, Action::Bulk(names.iter().map(op).collect()));
    }
    store
}

/// The same, past their time.
fn expired_entries() -> Store {
    let mut store = many_entries();
    let later = batch(store.vars.clock + 1, &[]);
    apply_batch(&mut store, &later);
    store
}

fn writing() -> Action {
    let then = small_writes().into_iter().take(limits::TXN_STEPS_MAX).map(Step::Write).collect();
    Action::Txn(Txn { then, ..Txn::default() })
}

fn checking() -> Action {
    let check = || Check { key: key("d/1"), expect: Expect::ANY, condition: conditions() };
    let then = vec![Step::Get(key("d/1")), Step::Write(write("d/1", Change::Touch))];
    Action::Txn(Txn { checks: vec![check(), check()], then, ..Txn::default() })
}

fn whole_range() -> KeyRange {
    KeyRange::new(b"d/".to_vec(), Some(b"d0".to_vec()))
}

/// Lists a range in another order than that of keys, and compares all of it.
fn over_ranges() -> Action {
    let list = ListStep {
        range: whole_range(),
        limit: 0,
        order: ListOrder { by: ListOrderBy::Value, descending: true },
        filter: RevisionFilter::ALL,
        shown: ListShown::Entries,
        at: None,
    };
    let comparison =
        Comparison { range: whole_range(), operator: ComparisonOperator::Greater, with: Compared::Version(0) };
    let branch = Branch { comparisons: vec![comparison], then: vec![Step::List(list)], otherwise: Vec::new() };
    Action::Txn(Txn { then: vec![Step::Branch(branch)], ..Txn::default() })
}

/// Removes as many as one transaction may.
fn removing() -> Action {
    let range = KeyRange::new(b"d/".to_vec(), Some(b"d/02100".to_vec()));
    let step = RemoveStep { range, return_previous: true };
    Action::Txn(Txn { then: vec![Step::Remove(step)], ..Txn::default() })
}

fn where_op(criteria: Criteria, change: WhereChange) -> Action {
    Action::Where(WhereOp {
        prefix: b"d/".to_vec(),
        criteria,
        condition: Criteria::default(),
        change,
        limit: limits::WHERE_LIMIT_MAX,
        after: None,
        guard: None,
    })
}

fn updating() -> Action {
    where_op(Criteria::default(), WhereChange::Patch { patch: moves(), expiry: Expiry::Keep })
}

fn removing_where() -> Action {
    where_op(Criteria::default(), WhereChange::Remove)
}

/// Looks at all entries, and finds none.
fn searching() -> Action {
    let term = r#"{"field":"a","op":"contains","value":7}"#;
    let criteria = Criteria::read(&json(&format!("[{term}]")), "/where").unwrap();
    where_op(criteria, WhereChange::Remove)
}

fn claiming() -> Action {
    let by_version = Order::new(vec![OrderField { field: Field::Meta(MetaField::Version), descending: true }]);
    Action::Claim(ClaimOp {
        prefix: b"d/".to_vec(),
        criteria: Criteria::default(),
        order: by_version,
        limit: limits::CLAIM_LIMIT_MAX,
        lock_ms: limits::LOCK_MS_MAX,
        patch: None,
        guard: None,
    })
}

fn create(store: &mut Store) -> SessionId {
    let create = SessionOp::Create { ttl_ms: limits::SESSION_TTL_MS_MAX, owner: String::new(), labels: Vec::new() };
    match prepare(store, Action::Session(create)) {
        Outcome::Session(SessionReply::Created { id, .. }) => id,
        other => panic!("{other:?}"),
    }
}

/// The id that the session of a state has.
fn chosen(lease: i64) -> SessionId {
    SessionId::chosen(lease).unwrap()
}

fn create_as(lease: i64) -> Action {
    let (ttl_ms, owner, labels) = (limits::SESSION_TTL_MS_MAX, String::new(), Vec::new());
    Action::Session(SessionOp::CreateAs { id: chosen(lease), ttl_ms, owner, labels })
}

const LEASES: std::ops::RangeInclusive<i64> = 1..=1_024;

fn many_sessions() -> Store {
    let mut store = empty();
    for lease in LEASES {
        prepare(&mut store, create_as(lease));
    }
    store
}

fn renewal(store: &Store) -> Action {
    let at_most = usize::try_from(store.vars.sessions).unwrap().min(limits::SESSIONS_RENEWED_MAX);
    Action::Session(SessionOp::Renew(LEASES.map(chosen).take(at_most).collect()))
}

/// A session with as many entries as may go with it, as large as they may be together.
fn session_with_entries() -> Store {
    let mut store = empty();
    prepare(&mut store, create_as(1));
    let each = usize::try_from(limits::SESSION_BYTES_MAX).unwrap() / limits::SESSION_ATTACHED_MAX as usize - 128;
    for nth in 0..limits::SESSION_ATTACHED_MAX {
        let op = write(&format!("d/{nth:05}"), Change::Put(bytes(each)));
        prepare(&mut store, Action::Write(WriteOp { session: Some(chosen(1)), ..op }));
    }
    store
}

fn ending() -> Action {
    Action::Session(SessionOp::End(chosen(1)))
}

fn lock(space: LockSpace) -> LockName {
    LockName { space, name: Name::new("n").unwrap() }
}

fn acquire(space: LockSpace, session: SessionId, mode: LockMode) -> Action {
    let value = (space == LockSpace::Election).then(|| bytes(limits::PROCLAIMED_BYTES_MAX));
    let wait_ms = limits::LOCK_WAIT_MS_MAX;
    Action::Lock(LockOp::Acquire(Acquire { mode, wait_ms, value, ..Acquire::of(lock(space), session) }))
}

/// A lock that is held, and for which as many wait as may, all of which will share it.
fn lock_with_waiters() -> Store {
    let mut store = empty();
    let holder = create(&mut store);
    let outcome = prepare(&mut store, acquire(LockSpace::Lock, holder, LockMode::Exclusive));
    assert_eq!(outcome, Outcome::Lock(LockReply::Held { token: HELD }));
    for _ in 0..limits::LOCK_WAITERS_MAX {
        let waiter = create(&mut store);
        prepare(&mut store, acquire(LockSpace::Lock, waiter, LockMode::Shared));
    }
    store
}

fn release() -> Action {
    Action::Lock(LockOp::Release { lock: lock(LockSpace::Lock), token: HELD })
}

/// The token of the lock of [`lock_with_waiters`].
const HELD: u64 = 3;

fn queue(verb: TaskVerb) -> Action {
    Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb })
}

fn new_task(nth: usize) -> NewTask {
    NewTask {
        id: Some(TaskId::new(format!("t{nth:04}")).unwrap()),
        payload: bytes(1_024),
        start: Start::In(0),
        recurrence: None,
        retry: RetryPlan { max_attempts: 1, ..RetryPlan::default() },
        keep_ms: 0,
        replace: true,
    }
}

fn schedule(count: usize) -> Action {
    queue(TaskVerb::Schedule((0..count).map(new_task).collect()))
}

fn many_tasks() -> Store {
    let mut store = empty();
    prepare(&mut store, schedule(limits::TASKS_SCHEDULED_MAX));
    store
}

/// Makes as many tasks as one command schedules, all of them dead.
fn dead_tasks() -> Store {
    let mut store = many_tasks();
    loop {
        let Outcome::Task(done) = prepare(&mut store, claiming_tasks()) else { panic!("no claim") };
        let TaskReply::Claimed(claimed) = *done else { panic!("no claim") };
        if claimed.tasks.is_empty() {
            return store;
        }
        let token = store.vars.revision;
        for task in claimed.tasks {
            prepare(&mut store, queue(failing(Ticket { id: task.id, token })));
        }
    }
}

fn claiming_tasks() -> Action {
    let (worker, lease_ms) = ("w".repeat(limits::TASK_WORKER_BYTES_MAX), limits::TASK_LEASE_MS_MAX);
    queue(TaskVerb::Claim { limit: limits::CLAIM_LIMIT_MAX, lease_ms, worker, session: None })
}

fn failing(ticket: Ticket) -> TaskVerb {
    TaskVerb::Fail { ticket, error: "e".repeat(limits::TASK_ERROR_BYTES_MAX), then: AfterFailure::Die }
}

/// Gives the claim of tasks, and the commands on single ones.
fn of_tasks() -> Vec<Action> {
    let id = |nth| TaskId::new(format!("t{nth:04}")).unwrap();
    // An empty store is at the first revision: tasks are scheduled at the next, and claimed at the one after it.
    let ticket = |nth| Ticket { id: id(nth), token: 3 };
    vec![
        claiming_tasks(),
        queue(TaskVerb::ScheduleOne(new_task(limits::TASKS_SCHEDULED_MAX))),
        queue(TaskVerb::Extend { ticket: ticket(0), lease_ms: limits::TASK_LEASE_MS_MAX }),
        queue(TaskVerb::Complete(ticket(1))),
        queue(failing(ticket(2))),
        queue(TaskVerb::Requeue(Requeue::One(id(2)))),
        queue(TaskVerb::Cancel(id(3))),
        queue(TaskVerb::Plan(PlanTask { id: id(4), seen: 2, due: None })),
    ]
}

fn requeueing() -> Action {
    queue(TaskVerb::Requeue(Requeue::Oldest(limits::TASKS_REQUEUED_MAX)))
}

fn keeping() -> Vec<Action> {
    vec![
        Action::Maintain(Maintenance::ExpireDue { limit: u32::MAX }),
        Action::Maintain(Maintenance::Compact { revision: u64::MAX, groups_max: u32::MAX }),
    ]
}

/// Long documents and the indexes for which they have to be read.
fn lists_to_index() -> Store {
    let mut store = empty();
    for nth in 0..2 {
        prepare(&mut store, Action::Write(write(&format!("d/{nth}"), Change::Put(a_list(ELEMENTS_MAX)))));
    }
    declare(&mut store, &format!(r#"{{"indexes":[{}]}}"#, indexes()));
    store
}

fn indexing() -> Action {
    Action::Maintain(Maintenance::Indexes { rows_max: u32::MAX })
}

/// Commands that take little, whatever there is.
fn small() -> Vec<Action> {
    let mut all = vec![
        Action::Session(SessionOp::Create { ttl_ms: 1_000, owner: String::new(), labels: Vec::new() }),
        create_as(1),
        Action::Numbers(NumbersOp { name: SequenceName::new("s").unwrap(), count: limits::NUMBERS_MAX }),
        Action::Maintain(Maintenance::RaiseLevel { level: level::KNOWN }),
        Action::Maintain(Maintenance::Count),
    ];
    all.extend(some_rules());
    all.extend([LockSpace::Lock, LockSpace::Election].into_iter().flat_map(of_locks));
    all.extend(of_barriers_and_latches());
    all.extend(of_operators());
    all
}

fn some_rules() -> [Action; 2] {
    let rules = Rules::read(&json(&format!(r#"{{"indexes":[{}]}}"#, indexes())), "").unwrap();
    let of = |change| RulesOp { name: CollectionName::new("d").unwrap(), expect: Expect::ANY, change };
    [Action::Rules(of(RulesChange::Set(rules))), Action::Rules(of(RulesChange::Remove))]
}

fn of_locks(space: LockSpace) -> Vec<Action> {
    let (lock, session) = (|| lock(space), chosen(1));
    vec![
        acquire(space, session, LockMode::Exclusive),
        Action::Lock(LockOp::Listen { lock: lock(), session }),
        Action::Lock(LockOp::HangUp { lock: lock(), session, question: Question::Numbered(1) }),
        Action::Lock(LockOp::Proclaim { lock: lock(), token: 1, value: bytes(limits::PROCLAIMED_BYTES_MAX) }),
        Action::Lock(LockOp::Release { lock: lock(), token: 1 }),
        Action::Lock(LockOp::Leave { lock: lock(), session, asked: None, release: true }),
    ]
}

fn of_barriers_and_latches() -> [Action; 5] {
    let (name, session) = (|| Name::new("n").unwrap(), chosen(1));
    [
        Action::Barrier(BarrierOp::Enter { name: name(), session, parties: limits::BARRIER_PARTIES_MAX }),
        Action::Barrier(BarrierOp::Leave { name: name(), session }),
        Action::Latch(LatchOp::Create { name: name(), count: limits::LATCH_COUNT_MAX }),
        Action::Latch(LatchOp::CountDown { name: name(), by: limits::LATCH_COUNT_MAX }),
        Action::Latch(LatchOp::Remove { name: name() }),
    ]
}

fn of_operators() -> Vec<Action> {
    let (user, role) = (|| UserName::new("u").unwrap(), || RoleName::new("r").unwrap());
    let grant = |nth| Grant { permission: Permission::Read, prefix: format!("{nth:04}").into_bytes() };
    let (id, hash) = (TokenId(1), || SecretHash([7; 32]));
    let token = NewToken { id, user: user(), hash: hash(), expires_at: None, note: String::new() };
    let invitation = NewInvitation { id, hash: hash(), node_id: None, is_standby: false, for_ms: 1_000 };
    let newcomer = NodeDisk { node_id: 1, incarnation: 1 };
    let subject = || QuotaSubject::Prefix(b"d/".to_vec());
    vec![
        Action::Access(AccessOp::SetRole { name: role(), grants: (0..limits::ROLE_GRANTS_MAX).map(grant).collect() }),
        Action::Access(AccessOp::SetUser { name: user(), roles: vec![role()] }),
        Action::Access(AccessOp::AddToken(token)),
        Action::Access(AccessOp::RemoveToken(id)),
        Action::Access(AccessOp::RemoveUser(user())),
        Action::Access(AccessOp::RemoveRole(role())),
        Action::Members(MembersOp::Invite(invitation)),
        Action::Members(MembersOp::Admit { invitation: id, hash: hash(), newcomer, as_standby: false }),
        Action::Members(MembersOp::Revoke(id)),
        Action::Quota(QuotaOp::Set {
            subject: subject(),
            bounds: QuotaBounds { bytes: Some(u64::MAX), ..QuotaBounds::default() },
        }),
        Action::Quota(QuotaOp::Remove(subject())),
        Action::Faults(FaultsOp::Forget),
        Action::Faults(FaultsOp::Retry(vec![0x70, 1, 2])),
        Action::Faults(FaultsOp::Drop(vec![0x70, 1, 2])),
    ]
}
