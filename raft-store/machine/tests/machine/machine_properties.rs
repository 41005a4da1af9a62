//! What must hold of the machine under any sequence of commands, against a model that is too simple to be wrong.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::collections::BTreeMap;

use crate::machine_support::model::Model;
use crate::machine_support::{Store, batch};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_crossing::run::without_keys;
use quorate_machine::access::{Permission, RequiredPermission};
use quorate_machine::document::path::Field;
use quorate_machine::document::{self, Criteria, Json, Operand, Operator, Patch, Predicate, Term};
use quorate_machine::keyspace::family;
use quorate_machine::machine::{self, Fault, Vars};
use quorate_machine::requirements::Requirement;
use quorate_machine::types::{
    Action, Batch, Branch, BulkItem, Change, Check, Command, Compared, Comparison, ComparisonOperator, ContentKind,
    Expect, Expiry, ItemOutcome, Key, KeyRange, ListOrder, ListOrderBy, ListShown, ListStep, Maintenance, Outcome,
    Presence, Rejection, RemoveStep, Reply, RequestId, RevisionFilter, Step, Tokens, Txn, Value, WriteOp,
};
use quorate_machine::{codec, command_codec, level, limits};

const KEYS: [&[u8]; 4] = [b"a", b"a\0", b"a\0\x01", b"b"];

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value { kind: ContentKind::Bytes, data: b"{}".to_vec() }),
        "\\{\"[abc]\":[0-9]\\}".prop_map(|text| Value { kind: ContentKind::Json, data: text.into() }),
        "[0-9]".prop_map(|text| Value { kind: ContentKind::Json, data: text.into() }),
    ]
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        7 => values().prop_map(Change::Put),
        2 => "\\{\"[abc]\":([0-9]|null|\\{\"[ab]\":(null|1)\\})\\}".prop_map(|patch| Change::Patch(merge_patch(&patch))),
        2 => Just(Change::Remove),
        1 => Just(Change::Touch),
        2 => prop_oneof![1..20u64, Just(limits::LOCK_MS_MAX + 1)].prop_map(Change::Lock),
        1 => (1..20u64).prop_map(Change::Extend),
        1 => Just(Change::Unlock),
    ]
}

fn merge_patch(text: &str) -> Patch {
    Patch::read_merge(&Json::parse(text.as_bytes()).unwrap(), "").unwrap()
}

fn predicate(field: &str, operator: &str, value: &str) -> Term {
    let value = document::Value::Json(Json::parse(value.as_bytes()).unwrap().into_owned());
    let operator = Operator::parse(operator).unwrap();
    Term::Predicate(Predicate::new(Field::parse(field).unwrap(), operator, Operand::One(value)).unwrap())
}

fn writes() -> impl Strategy<Value = WriteOp> {
    let presence = prop_oneof![4 => Just(Presence::Any), 2 => Just(Presence::Absent), 2 => Just(Presence::Present)];
    let tokens = prop_oneof![
        6 => Just(Tokens::Any),
        2 => (1..30u64).prop_map(Tokens::One),
        1 => prop::collection::vec(1..30u64, 0..18).prop_map(Tokens::AnyOf),
        1 => prop::collection::vec(1..30u64, 0..18).prop_map(Tokens::NoneOf),
    ];
    let expect = (presence, tokens).prop_map(|(presence, tokens)| Expect { presence, tokens });
    let expiry = prop_oneof![
        2 => Just(Expiry::Keep),
        2 => Just(Expiry::Never),
        3 => prop_oneof![0..20u64, Just(limits::REQUEST_BUCKET_MS), Just(limits::TTL_MS_MAX + 1)]
            .prop_map(Expiry::After),
    ];
    let condition = prop_oneof![
        5 => Just(Vec::new()),
        1 => (1..6u64).prop_map(|version| vec![predicate("$version", "lte", &version.to_string())]),
        1 => "[0-9]".prop_map(|value| vec![predicate("a", "eq", &value)]),
    ];
    (0..KEYS.len(), expect, condition, changes(), expiry, any::<bool>()).prop_map(
        |(key, expect, condition, change, expiry, return_previous)| {
            let (key, condition) = (Key::new(KEYS[key]).unwrap(), Criteria::new(condition).unwrap());
            WriteOp { key, expect, condition, change, expiry, return_previous, session: None, guard: None }
        },
    )
}

fn checks() -> impl Strategy<Value = Check> {
    let expect = prop_oneof![
        2 => Just(Expect::ANY),
        1 => Just(Expect::ABSENT),
        2 => Just(Expect::PRESENT),
        2 => (1..30u64).prop_map(Expect::cas),
    ];
    let condition = prop_oneof![
        3 => Just(Vec::new()),
        1 => (1..6u64).prop_map(|version| vec![predicate("$version", "lte", &version.to_string())]),
    ];
    (0..KEYS.len(), expect, condition).prop_map(|(key, expect, condition)| Check {
        key: Key::new(KEYS[key]).unwrap(),
        expect,
        condition: Criteria::new(condition).unwrap(),
    })
}

fn txns() -> impl Strategy<Value = Txn> {
    let step = || {
        prop_oneof![
            1 => (0..KEYS.len()).prop_map(|key| Step::Get(Key::new(KEYS[key]).unwrap())),
            3 => writes().prop_map(Step::Write),
            1 => list_steps().prop_map(Step::List),
            1 => (ranges(), any::<bool>())
                .prop_map(|(range, return_previous)| Step::Remove(RemoveStep { range, return_previous })),
        ]
    };
    let flat = move || {
        (
            prop::collection::vec(checks(), 0..2),
            prop::collection::vec(step(), 0..3),
            prop::collection::vec(step(), 0..3),
        )
            .prop_map(|(checks, then, otherwise)| Txn { checks, then, otherwise })
    };
    let branch = (prop::collection::vec(comparisons(), 0..3), flat());
    (flat(), prop::option::weighted(0.3, flat()), prop::option::weighted(0.3, branch)).prop_map(
        |(mut txn, nested, branch)| {
            txn.then.extend(nested.map(Step::Txn));
            let branch =
                branch.map(|(comparisons, Txn { then, otherwise, .. })| Branch { comparisons, then, otherwise });
            txn.otherwise.extend(branch.clone().map(Step::Branch));
            txn.then.extend(branch.map(Step::Branch));
            txn
        },
    )
}

fn ranges() -> impl Strategy<Value = KeyRange> {
    prop_oneof![
        (0..KEYS.len()).prop_map(|key| KeyRange::of_key(KEYS[key])),
        (prop::option::of(0..KEYS.len()), prop::option::of(0..KEYS.len())).prop_map(|(start, end)| KeyRange::new(
            start.map_or_else(Vec::new, |key| Vec::from(KEYS[key])),
            end.map(|key| Vec::from(KEYS[key])),
        )),
        (limits::KEY_BYTES_MAX..limits::KEY_BYTES_MAX + 3).prop_map(|length| KeyRange::of_key(&vec![b'a'; length])),
    ]
}

fn list_steps() -> impl Strategy<Value = ListStep> {
    let by = prop_oneof![
        Just(ListOrderBy::Key),
        Just(ListOrderBy::Version),
        Just(ListOrderBy::CreateRevision),
        Just(ListOrderBy::ModRevision),
        Just(ListOrderBy::Value),
    ];
    let shown = prop_oneof![Just(ListShown::Entries), Just(ListShown::Keys), Just(ListShown::Count)];
    let filter = prop_oneof![
        Just(RevisionFilter::ALL),
        (1..12u64).prop_map(|max_mod| RevisionFilter { max_mod, ..RevisionFilter::ALL }),
        (1..12u64).prop_map(|min_create| RevisionFilter { min_create, ..RevisionFilter::ALL }),
    ];
    let at = prop::option::weighted(0.2, 0..20u64);
    (ranges(), 0..4u64, by, any::<bool>(), filter, shown, at).prop_map(
        |(range, limit, by, descending, filter, shown, at)| ListStep {
            range,
            limit,
            order: ListOrder { by, descending },
            filter,
            shown,
            at,
        },
    )
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    let with = prop_oneof![
        (-1..4i64).prop_map(Compared::Version),
        (-1..20i64).prop_map(Compared::CreateRevision),
        (-1..20i64).prop_map(Compared::ModRevision),
        (-1..4i64).prop_map(|near| Compared::Lease(if near > 0 { (1 << 62) + near } else { near })),
        values().prop_map(|value| Compared::Value(value.data)),
    ];
    let operator = prop_oneof![
        Just(ComparisonOperator::Equal),
        Just(ComparisonOperator::NotEqual),
        Just(ComparisonOperator::Greater),
        Just(ComparisonOperator::Less),
    ];
    (ranges(), operator, with).prop_map(|(range, operator, with)| Comparison { range, operator, with })
}

fn commands() -> impl Strategy<Value = Command> {
    let action = prop_oneof![
        12 => writes().prop_map(Action::Write),
        2 => prop::collection::vec(writes(), 0..4).prop_map(Action::Bulk),
        5 => txns().prop_map(Action::Txn),
        1 => (0..=level::FIRST).prop_map(|level| Action::Maintain(Maintenance::RaiseLevel { level })),
        1 => (0..4u32).prop_map(|limit| Action::Maintain(Maintenance::ExpireDue { limit })),
        1 => (0..40u64, 0..4u32)
            .prop_map(|(revision, groups_max)| Action::Maintain(Maintenance::Compact { revision, groups_max })),
    ];
    (action, prop::option::weighted(0.4, 0..4u8), 0..8u8).prop_map(|(action, id, who)| {
        let request_id = id.filter(|_| !matches!(action, Action::Maintain(_))).map(|id| RequestId(format!("r{id}")));
        Command {
            request_id,
            principal: if who == 0 { "ann".into() } else { String::new() },
            action,
            access_revision: None,
        }
    })
}

/// Batches with retries: a command of a batch is now and then one that came before.
fn histories() -> impl Strategy<Value = Vec<(u64, Vec<Command>)>> {
    let step = prop_oneof![
        6 => Just(0),
        6 => 1..10u64,
        1 => Just(limits::REQUEST_BUCKET_MS - 1),
        1 => Just(3 * limits::REQUEST_BUCKET_MS),
    ];
    let command = (commands(), prop::option::weighted(0.15, any::<prop::sample::Index>()));
    prop::collection::vec((step, prop::collection::vec(command, 0..5)), 1..25).prop_map(|steps| {
        let mut clock = 0;
        let mut sent: Vec<Command> = Vec::new();
        let mut batches = Vec::new();
        for (step, commands) in steps {
            clock += step;
            let mut batch = Vec::new();
            for (fresh, again) in commands {
                let command = again.filter(|_| !sent.is_empty()).map_or(fresh, |again| again.get(&sent).clone());
                sent.push(command.clone());
                batch.push(command);
            }
            batches.push((clock, batch));
        }
        batches
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// What each write and check of a command expects.
fn each_expect(action: &mut Action, change: &mut dyn FnMut(&mut Expect)) {
    match action {
        Action::Write(op) => change(&mut op.expect),
        Action::Bulk(ops) => ops.iter_mut().for_each(|op| change(&mut op.expect)),
        Action::Txn(txn) => each_expect_of(txn, change),
        _ => {}
    }
}

fn each_expect_of(txn: &mut Txn, change: &mut dyn FnMut(&mut Expect)) {
    txn.checks.iter_mut().for_each(|check| change(&mut check.expect));
    for step in txn.then.iter_mut().chain(&mut txn.otherwise) {
        match step {
            Step::Write(op) => change(&mut op.expect),
            Step::Txn(txn) => each_expect_of(txn, change),
            _ => {}
        }
    }
}

/// Names the keys of locks in place of what everybody sees of them.
fn name_keys(expect: &mut Expect, keys: &BTreeMap<u64, u64>) {
    let name = |token: &mut u64| *token = keys.get(token).copied().unwrap_or(*token);
    match &mut expect.tokens {
        Tokens::One(token) => name(token),
        Tokens::AnyOf(tokens) | Tokens::NoneOf(tokens) => tokens.iter_mut().for_each(name),
        Tokens::Any => {}
    }
}

/// Whether a command raises the feature level to this one.
fn raises(encoded: &[u8], reached: level::Level) -> bool {
    let action = command_codec::decode_command(encoded).map(|command| command.action);
    matches!(action, Ok(Action::Maintain(Maintenance::RaiseLevel { level })) if level == reached)
}

proptest! {
    #![proptest_config(config())]

    /// Replies, every readable revision of every key, the digest and all invariants of the rows.
    #[test]
    fn the_machine_agrees_with_the_model_at_every_step(history in histories()) {
        let (mut store, mut model) = (Store::default(), Model::default());
        for (clock, mut commands) in history {
            // Nobody can guess the key of a lock: whoever names the cas of a locked entry means its key.
            let keys = model.keys_by_cas();
            commands.iter_mut().for_each(|command| each_expect(&mut command.action, &mut |expect| name_keys(expect, &keys)));
            let batch = batch(clock, &commands);
            let seed = batch.seed;
            let (replies, changed) = store.apply(&[batch]).unwrap();
            prop_assert_eq!(&replies[0], &model.apply(store.index, (clock, seed), &commands));
            prop_assert_eq!(changed, model.take_changed());
            let revisions = (store.vars.oldest_revision, store.vars.revision);
            prop_assert_eq!(revisions, (model.oldest_revision(), model.revision));
            store.check();
            for key in KEYS {
                for revision in store.vars.oldest_revision..=store.vars.revision {
                    let read = store.read_at(key, revision);
                    prop_assert_eq!(read, model.read_at(key, revision), "{:?} at {}", key, revision);
                }
            }
        }
    }

    /// Whatever a command does, it demanded a right on each key that it changes.
    #[test]
    fn a_command_requires_every_key_that_it_changes(history in histories()) {
        let mut store = Store::default();
        for (clock, commands) in history {
            for command in commands {
                // What is due by now is nobody's doing.
                store.apply(&[batch(clock, &[])]).unwrap();
                let mut required = Vec::new();
                command.action.requirements(&mut |requirement| match requirement {
                    Requirement::Permission(RequiredPermission::Name(permission, name)) if permission != Permission::Read => {
                        required.push(KeyRange::of_key(name));
                    }
                    Requirement::Permission(RequiredPermission::Range(permission, start, end)) if permission != Permission::Read => {
                        required.push(KeyRange::new(start.to_vec(), end.map(<[u8]>::to_vec)));
                    }
                    _ => {}
                });
                let (_, changed) = store.apply(&[batch(clock, std::slice::from_ref(&command))]).unwrap();
                if let Action::Maintain(_) = command.action {
                    continue;
                }
                for (key, revision) in changed {
                    let known = required.iter().any(|range| range.contains(key.as_bytes()));
                    prop_assert!(known, "{} changed at {} by {:?}", key, revision, command);
                }
            }
        }
    }

    /// Replaying a log from any applied position gives the same bytes, however openraft cuts it into apply calls.
    #[test]
    fn one_apply_call_equals_two_cut_anywhere(history in histories()) {
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        crate::machine_support::assert_cuts_agree(&batches);
    }

    #[test]
    fn a_dry_run_answers_what_the_command_then_answers(history in histories(), command in commands()) {
        let mut store = Store::default();
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        store.apply(&batches).unwrap();
        let dry = machine::evaluate(&store.view, &store.vars, store.index + 1, &command).unwrap();
        let (replies, _) = store.apply(&[batch(store.vars.clock, &[command])]).unwrap();
        prop_assert_eq!(without_keys(&dry), without_keys(&replies[0][0]));
    }

    /// Nothing is lost of an answer by having been kept, and nothing comes to it.
    #[test]
    fn a_command_that_comes_again_is_answered_as_it_was(
        history in histories(),
        mut command in prop_oneof![commands(), txns().prop_map(|txn| Command::unnamed(Action::Txn(txn)))],
    ) {
        let mut store = Store::default();
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        store.apply(&batches).unwrap();
        command.request_id = Some(RequestId("again".into()));
        let batches = [store.vars.clock; 2].map(|clock| batch(clock, std::slice::from_ref(&command)));
        let (replies, _) = store.apply(&batches).unwrap();
        prop_assert_eq!(&replies[1][0], &Reply { replayed: true, ..replies[0][0].clone() });
    }

    /// Bytes from nowhere as commands: refused, on every node alike, and without an effect on the rest. Where they happen to
    /// raise the feature level beyond what this build knows, it stops, as it must.
    #[test]
    fn any_bytes_as_a_command_are_survived(
        garbage in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
        command in commands(),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut flipped = command_codec::encode_command(&command).to_vec();
        let at = flip.0.index(flipped.len());
        flipped[at] ^= flip.1;
        let versioned = garbage.iter().map(|bytes| [&[codec::FORMAT_VERSION], bytes.as_slice()].concat());
        let commands: Vec<_> = garbage.iter().cloned().chain(versioned).chain([flipped]).map(Bytes::from).collect();
        let mut store = Store::default();
        match store.apply(&[Batch { clock: 1, wall: 1, seed: [7; 16], commands: commands.clone() }]) {
            Ok((replies, _)) => {
                prop_assert_eq!(replies[0].len(), commands.len());
                store.check();
            }
            Err(Fault::TooNew(refused)) => prop_assert!(commands.iter().any(|bytes| raises(bytes, refused.reached))),
            Err(fault) => panic!("{fault}"),
        }
    }

    /// Damage is a fault or goes unnoticed; it is never a panic.
    #[test]
    fn damaged_rows_are_survived(
        history in histories(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
        revision in prop::option::of(any::<u64>()),
        more in prop::collection::vec(commands(), 1..10),
    ) {
        let mut store = Store::default();
        let batches: Vec<Batch> = history.iter().map(|(clock, commands)| batch(*clock, commands)).collect();
        store.apply(&batches).unwrap();
        let clock = store.vars.clock;
        for (row, at, change) in damage {
            let Some(key) = store.view.0.keys().nth(row.index(store.view.0.len().max(1))).cloned() else { break };
            match store.view.0.get_mut(&key).filter(|row| !row.is_empty() && change != 0) {
                Some(row) => { let at = at.index(row.len()); row[at] ^= change; }
                None => { store.view.0.remove(&key); }
            }
        }
        store.vars.revision = revision.unwrap_or(store.vars.revision);
        let _fault_or_not = store.apply(&[batch(clock + 20, &more)]);
    }
}

#[test]
fn an_expired_entry_at_the_end_of_the_revisions_is_a_fault() {
    let mut store = Store { vars: Vars { revision: u64::MAX, ..Vars::default() }, ..Store::default() };
    let command = write(b"a", Change::Remove);
    assert!(matches!(store.apply(&[batch(1, &[command])]), Err(machine::Fault::Invariant(_))));
}

#[test]
fn a_step_of_expiry_is_bounded_whatever_it_asks_for() {
    let mut store = Store::default();
    let entries: Vec<Command> = (0..limits::MAINTENANCE_ROWS_MAX + 1)
        .map(|number| {
            let mut command = write(&number.to_be_bytes(), Change::Touch);
            if let Action::Write(op) = &mut command.action {
                op.change = Change::Put(Value { kind: ContentKind::Json, data: b"1".to_vec() });
                op.expiry = Expiry::After(1);
            }
            command
        })
        .collect();
    store.apply(&[batch(1, &entries)]).unwrap();
    let expire = maintain(Maintenance::ExpireDue { limit: u32::MAX });
    let (replies, _) = store.apply(&[batch(2, &[expire.clone(), expire.clone(), expire])]).unwrap();
    let removed = limits::MAINTENANCE_ROWS_MAX as u32;
    let outcomes: Vec<_> = replies.concat().into_iter().map(|reply: Reply| reply.outcome).collect();
    let step = |removed, more| Outcome::Maintained { removed, more };
    assert_eq!(outcomes, [step(removed, true), step(1, false), step(0, false)]);
    store.check();

    // Three groups of many lines: each step stops after the group in which it reached the bound.
    let compact = maintain(Maintenance::Compact { revision: u64::MAX, groups_max: u32::MAX });
    let mut dropped = Vec::new();
    for _ in 0..3 {
        let (replies, _) = store.apply(&[batch(3, std::slice::from_ref(&compact))]).unwrap();
        dropped.push(replies[0][0].outcome.clone());
        store.check();
    }
    assert_eq!(dropped, [step(2, false), step(0, false), step(0, false)]);
    assert!(store.view.0.is_empty(), "{:?}", store.view.0.keys().next());
}

#[test]
fn what_is_kept_of_a_large_entry_is_small() {
    let large = Value { kind: ContentKind::Json, data: vec![b'1'; 1 << 20] };
    let mut store = Store::default();
    store.apply(&[batch(1, &[write(b"a", Change::Put(large.clone()))])]).unwrap();
    let mut refused = write(b"a", Change::Put(large.clone()));
    refused.request_id = Some(RequestId("refused".into()));
    if let Action::Write(op) = &mut refused.action {
        op.expect = Expect::ABSENT;
    }
    let mut written = write(b"a", Change::Remove);
    written.request_id = Some(RequestId("written".into()));
    if let Action::Write(op) = &mut written.action {
        op.return_previous = true;
    }
    let commands = [refused, written];
    let (first, _) = store.apply(&[batch(1, &commands)]).unwrap();
    for (_, row) in store.rows(family::REQUEST) {
        assert!(row.len() < 64, "{} bytes", row.len());
    }
    // Yet a retry is answered in full.
    let (again, _) = store.apply(&[batch(1, &commands)]).unwrap();
    for (first, again) in first[0].iter().zip(&again[0]) {
        assert_eq!(again, &Reply { replayed: true, ..first.clone() });
        assert_eq!(again.outcome.value_bytes(), large.data.len());
    }
    store.check();
}

/// The commands that are decided and the bytes of values that they are answered with.
fn decided(replies: &[Reply]) -> (usize, usize) {
    let decided = replies.iter().take_while(|reply| reply.outcome != Outcome::Deferred).count();
    assert!(replies[decided..].iter().all(|reply| reply.outcome == Outcome::Deferred), "decided after a deferred one");
    (decided, replies.iter().map(|reply| reply.outcome.value_bytes()).sum())
}

#[test]
fn a_crowd_of_refusals_with_a_large_entry_is_deferred_beyond_the_bound() {
    let large = Value { kind: ContentKind::Bytes, data: vec![7; 1 << 20] };
    let mut store = Store::default();
    store.apply(&[batch(1, &[write(b"a", Change::Put(large))])]).unwrap();
    let refused = |number: u32| {
        let mut command = write(b"a", Change::Remove);
        command.request_id = Some(RequestId(format!("r{number}")));
        if let Action::Write(op) = &mut command.action {
            op.expect = Expect::cas(77);
        }
        command
    };
    let crowd: Vec<Command> = (0..1_000).map(refused).collect();
    let small = batch(2, &[write(b"b", Change::Put(Value { kind: ContentKind::Json, data: b"1".to_vec() }))]);
    let batches = [batch(2, &crowd), small, batch(2, &crowd)];

    let before = store.clone();
    let (replies, _) = store.apply(&batches).unwrap();
    store.check();
    let (first, bytes) = decided(&replies[0]);
    assert!(first > 1 && bytes <= limits::BATCH_EFFECT_BYTES_MAX + limits::VALUE_BYTES_MAX, "{first}: {bytes} bytes");
    assert_eq!(decided(&replies[1]).0, 1, "each batch has the whole bound");
    // A retry takes only what it shows, so a few more than the first time are decided.
    assert!(replies[2][..first].iter().all(|reply| reply.replayed));
    let kept = store.rows(family::REQUEST).len();
    assert_eq!(kept, decided(&replies[2]).0, "nothing is kept of a deferred command");

    // However the batches are cut.
    for cut in 0..=batches.len() {
        let mut parts = before.clone();
        let mut replies_of_parts = parts.apply(&batches[..cut]).unwrap().0;
        replies_of_parts.extend(parts.apply(&batches[cut..]).unwrap().0);
        assert!(replies_of_parts == replies && parts == store, "cut at {cut}");
    }

    // Who comes again is decided in the end.
    let mut left = &crowd[kept..];
    for _ in 0..crowd.len() {
        let (replies, _) = store.apply(&[batch(3, left)]).unwrap();
        left = &left[decided(&replies[0]).0..];
        if left.is_empty() {
            break;
        }
    }
    store.check();
    assert_eq!(store.rows(family::REQUEST).len(), crowd.len());
}

#[test]
fn a_bulk_stops_at_the_bound_and_says_which_items_are_undecided() {
    let op = |number: u8| {
        let data = vec![7; 1 << 20];
        let Action::Write(op) = write(&[b'k', number], Change::Put(Value { kind: ContentKind::Bytes, data })).action
        else {
            unreachable!()
        };
        op
    };
    let mut store = Store::default();
    let bulk = |ops: Vec<WriteOp>| Command {
        request_id: None,
        principal: String::new(),
        action: Action::Bulk(ops),
        access_revision: None,
    };
    // One command cannot carry so much, so the entries are there first, and then each is touched.
    for number in 0..20 {
        store.apply(&[batch(1, &[bulk(vec![op(number)])])]).unwrap();
    }
    let touches: Vec<_> = (0..20).map(|number| WriteOp { change: Change::Touch, ..op(number) }).collect();
    let (replies, _) = store.apply(&[batch(2, &[bulk(touches)])]).unwrap();
    let Outcome::Bulk(items) = &replies[0][0].outcome else { panic!("{replies:?}") };
    let is_deferred = |item: &BulkItem| item.outcome == ItemOutcome::Deferred;
    let decided = items.iter().position(is_deferred).unwrap();
    assert!((1..20).contains(&decided) && items[decided..].iter().all(is_deferred), "{decided}");
    assert_eq!(store.vars.revision, 1 + 20 + decided as u64);
    store.check();
}

#[test]
fn a_transaction_beyond_its_bound_has_no_effect_at_all() {
    let mut store = Store::default();
    let value = Value { kind: ContentKind::Bytes, data: vec![7; 1 << 20] };
    let mut steps = Vec::new();
    for number in 0..20 {
        let put = write(&[b'k', number], Change::Put(value.clone()));
        store.apply(&[batch(1, &[put])]).unwrap();
        let Action::Write(touch) = write(&[b'k', number], Change::Touch).action else { unreachable!() };
        steps.push(Step::Write(touch));
    }
    let before = store.clone();
    let action = Action::Txn(Txn { checks: Vec::new(), then: steps, otherwise: Vec::new() });
    let command = Command { request_id: None, principal: String::new(), action, access_revision: None };
    let (replies, changed) = store.apply(&[batch(1, &[command])]).unwrap();
    assert!(matches!(replies[0][0].outcome, Outcome::TxnRejected(_)), "{:?}", replies[0][0].outcome);
    assert_eq!((changed, store.vars.revision), (Vec::new(), before.vars.revision));
    assert_eq!(store.rows(family::ENTRY), before.rows(family::ENTRY));
    store.check();
}

#[test]
fn a_transaction_that_only_looks_is_bounded_too() {
    let mut store = Store::default();
    let data = format!("[{}1]", "1,".repeat(1 << 19)).into_bytes();
    store.apply(&[batch(1, &[write(b"a", Change::Put(Value { kind: ContentKind::Json, data }))])]).unwrap();
    let check = |_| {
        let condition = Criteria::new(vec![predicate("a", "neq", "1")]).unwrap();
        Check { key: Key::new(b"a").unwrap(), expect: Expect::ANY, condition }
    };
    let action = Action::Txn(Txn { checks: (0..1_000).map(check).collect(), ..Txn::default() });
    let command = Command { request_id: None, principal: String::new(), action, access_revision: None };
    let (replies, _) = store.apply(&[batch(1, &[command])]).unwrap();
    let Outcome::TxnRejected(rejected) = &replies[0][0].outcome else { panic!("{replies:?}") };
    assert!(matches!(rejected.why, Rejection::TooDear(_)), "{rejected:?}");
    store.check();
}

#[test]
fn expiry_of_large_entries_stops_at_the_bound_and_goes_on() {
    let mut store = Store::default();
    let entries = 20;
    for number in 0..entries {
        let mut put = write(&[b'k', number], Change::Put(Value { kind: ContentKind::Bytes, data: vec![7; 1 << 20] }));
        if let Action::Write(op) = &mut put.action {
            op.expiry = Expiry::After(1);
        }
        store.apply(&[batch(1, &[put])]).unwrap();
    }
    let expire = maintain(Maintenance::ExpireDue { limit: 1_000 });
    let mut steps = Vec::new();
    while !matches!(steps.last(), Some((_, false))) {
        let (replies, _) = store.apply(&[batch(2, std::slice::from_ref(&expire))]).unwrap();
        let Outcome::Maintained { removed, more } = replies[0][0].outcome else { panic!("{replies:?}") };
        steps.push((removed, more));
    }
    assert_eq!(steps, [(8, true), (8, true), (4, false)]);
    store.check();
}

fn write(key: &[u8], change: Change) -> Command {
    let key = Key::new(key).unwrap();
    let (expect, condition, expiry) = (Expect::ANY, Criteria::default(), Expiry::Never);
    let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
    Command { request_id: None, principal: String::new(), action: Action::Write(op), access_revision: None }
}

fn maintain(what: Maintenance) -> Command {
    Command { request_id: None, principal: String::new(), action: Action::Maintain(what), access_revision: None }
}

/// Not a test: says what a put costs. Run with `--run-ignored only --no-capture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn measure_a_put_of_256_bytes_with_a_request_id() {
    for keys in [1_000_u64, 100_000] {
        let mut store = Store::default();
        let (mut nanos, mut puts) = (0, 0_u32);
        for round in 0..400_u64 {
            let put = |number: u64| {
                let key = format!("orders/{:012}", (round * 64 + number).wrapping_mul(0x9E37_79B9) % keys);
                let data = vec![b'x'; 256];
                let mut put = write(key.as_bytes(), Change::Put(Value { kind: ContentKind::Json, data }));
                put.request_id = Some(RequestId(format!("01890a5d-ac96-774b-bcce-{round:06}{number:06}")));
                put
            };
            let puts_of_batch: Vec<Command> = (0..64).map(put).collect();
            let batch = batch(round, &puts_of_batch);
            let mut applier = machine::Applier::new(&store.view, store.vars.clone());
            let start = std::time::Instant::now();
            let replies = applier.apply_batch(round + 1, &batch).unwrap();
            let applied = applier.finish();
            nanos += start.elapsed().as_nanos();
            puts += replies.len() as u32;
            store.view.write(applied.writes);
            store.vars = applied.vars;
        }
        println!("{keys} keys: {} ns per put, {} rows", nanos / u128::from(puts), store.view.0.len());
    }
}
