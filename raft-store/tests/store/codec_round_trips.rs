//! Every record and every kind of row key: there and back, in order, and safe on any bytes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quorate_machine::access::{Grant, Permission};
use quorate_machine::document::{Criteria, Excerpt, Json, Patch, PatchFault, PatchRefusal, TooDear, Unmet};
use quorate_machine::keyspace::audit::{AuditEffect, AuditGroup, AuditLine, AuditOp, Superseded};
use quorate_machine::keyspace::digest::RowMark;
use quorate_machine::keyspace::entry::EntryRow;
use quorate_machine::keyspace::history::Version;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::task::TaskRow;
use quorate_machine::keyspace::{audit, bucket, deadline, entry, family, history, refusals, request};
use quorate_machine::machine::{BucketDigest, Sizes, Vars};
use quorate_machine::types::*;
use quorate_machine::{codec, command_codec, limits};
use quorate_store::meta::AppliedRecord;
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord, StoredMembershipRecord};

/// Keys of the bytes that escaping has to care for.
fn key_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()], 1..6)
}

fn key_ranges() -> impl Strategy<Value = KeyRange> {
    (vec(any::<u8>(), 0..9), option::of(vec(any::<u8>(), 0..9))).prop_map(|(start, end)| KeyRange::new(start, end))
}

fn keys() -> impl Strategy<Value = Key> {
    key_bytes().prop_map(|bytes| Key::new(bytes).unwrap())
}

fn kinds() -> impl Strategy<Value = ContentKind> {
    prop_oneof![Just(ContentKind::Json), Just(ContentKind::Bytes)]
}

fn values() -> impl Strategy<Value = Value> {
    (kinds(), vec(any::<u8>(), 0..300)).prop_map(|(kind, data)| Value { kind, data })
}

fn metas() -> impl Strategy<Value = EntryMeta> {
    let times = any::<[Option<u64>; 2]>();
    (any::<[u64; 3]>(), 1..=u64::MAX, times).prop_map(|(mut revisions, version, [expires_at, locked_until])| {
        revisions.sort_unstable();
        let [create_revision, mod_revision, cas] = revisions;
        EntryMeta { create_revision, mod_revision, version, cas, expires_at, locked_until, session: None }
    })
}

fn entries() -> impl Strategy<Value = Entry> {
    (metas(), values()).prop_map(|(meta, value)| Entry { meta, value })
}

fn shown() -> impl Strategy<Value = Shown> {
    (entries(), any::<bool>()).prop_map(|(entry, bare)| {
        let whole = Shown::Whole(entry);
        if bare { whole.to_bare() } else { whole }
    })
}

fn ids() -> impl Strategy<Value = RequestId> {
    "[ -~]{1,40}".prop_map(RequestId)
}

fn patches() -> impl Strategy<Value = Patch> {
    let texts = [
        r#"{"a":{"b":null,"c":[1.50]}}"#,
        r#"[{"op":"add","path":"/a/-","value":{}},{"op":"test","path":"","value":null}]"#,
        r#"[{"op":"inc","path":"a.b","value":-1},{"op":"now","path":"c","form":"unix_ms"}]"#,
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| Patch::read(&json(text), "").unwrap())
}

fn conditions() -> impl Strategy<Value = Criteria> {
    let texts = ["[]", r#"[{"field":"$version","op":"gt","value":3}]"#, r#"[{"not":{"field":"a.b","op":"exists"}}]"#];
    prop::sample::select(texts.to_vec()).prop_map(|text| Criteria::read(&json(text), "").unwrap())
}

fn json(text: &str) -> Json<'_> {
    Json::parse(text.as_bytes()).unwrap()
}

fn excerpts() -> impl Strategy<Value = Excerpt> {
    (".{0,20}", any::<bool>()).prop_map(|(text, is_whole)| Excerpt { text, is_whole })
}

fn unmet() -> impl Strategy<Value = Unmet> {
    ("/if/[0-9]", option::of(excerpts())).prop_map(|(pointer, actual)| Unmet { pointer, actual })
}

fn refusals_of_patches() -> impl Strategy<Value = PatchRefusal> {
    let fault = prop_oneof![
        Just(PatchFault::Missing),
        excerpts().prop_map(|actual| PatchFault::IntoScalar { actual }),
        any::<u64>().prop_map(|length| PatchFault::OutOfRange { length }),
        option::of(excerpts()).prop_map(|actual| PatchFault::TestFailed { actual }),
    ];
    ("/patch/[0-9]", "(/[a-z~]{0,3}){0,3}", fault).prop_map(|(pointer, path, fault)| PatchRefusal {
        pointer,
        path,
        fault,
    })
}

fn commands() -> impl Strategy<Value = Command> {
    let presence = prop_oneof![Just(Presence::Any), Just(Presence::Absent), Just(Presence::Present)];
    let tokens = prop_oneof![
        Just(Tokens::Any),
        any::<u64>().prop_map(Tokens::One),
        vec(any::<u64>(), 0..20).prop_map(Tokens::AnyOf),
        vec(any::<u64>(), 0..20).prop_map(Tokens::NoneOf),
    ];
    let expect = (presence, tokens).prop_map(|(presence, tokens)| Expect { presence, tokens }).boxed();
    let change = prop_oneof![
        values().prop_map(Change::Put),
        patches().prop_map(Change::Patch),
        Just(Change::Remove),
        Just(Change::Touch),
        any::<u64>().prop_map(Change::Lock),
        any::<u64>().prop_map(Change::Extend),
        Just(Change::Unlock),
    ];
    let expiry = prop_oneof![Just(Expiry::Keep), Just(Expiry::Never), any::<u64>().prop_map(Expiry::After)];
    let op = (keys(), expect.clone(), conditions(), change, expiry, any::<bool>())
        .prop_map(|(key, expect, condition, change, expiry, return_previous)| WriteOp {
            key,
            expect,
            condition,
            change,
            expiry,
            return_previous,
            session: None,
            guard: None,
        })
        .boxed();
    let write = op.clone().prop_map(Action::Write);
    let bulk = vec(op.clone(), 0..3).prop_map(Action::Bulk);
    let check =
        (keys(), expect, conditions()).prop_map(|(key, expect, condition)| Check { key, expect, condition }).boxed();
    let step = prop_oneof![
        keys().prop_map(Step::Get),
        op.prop_map(Step::Write),
        key_ranges().prop_map(|range| {
            let (order, filter) = (ListOrder::BY_KEY, RevisionFilter::ALL);
            Step::List(ListStep { range, limit: 7, order, filter, shown: ListShown::Keys, at: Some(9) })
        }),
        key_ranges().prop_map(|range| Step::Remove(RemoveStep { range, return_previous: true })),
    ]
    .boxed();
    let flat = (vec(check, 0..2), vec(step.clone(), 0..2), vec(step, 0..2)).prop_map(|(checks, then, otherwise)| Txn {
        checks,
        then,
        otherwise,
    });
    let txn = flat.prop_recursive(limits::TXN_DEPTH_MAX as u32 - 1, 8, 1, |inner| {
        (inner.clone(), inner, key_ranges(), any::<(bool, i64)>()).prop_map(
            |(mut outer, inner, range, (branches, number))| {
                let Txn { then, otherwise, .. } = inner.clone();
                let (operator, with) = (ComparisonOperator::Less, Compared::ModRevision(number));
                let comparisons = vec![Comparison { range, operator, with }];
                let branch = Step::Branch(Branch { comparisons, then, otherwise });
                outer.otherwise.push(if branches { branch } else { Step::Txn(inner) });
                outer
            },
        )
    });
    // What is nested too deeply is refused, and has a test of its own.
    let txn =
        txn.prop_filter_map("too deep", |txn| (txn.fault() != Some(TxnFault::TooDeep)).then_some(Action::Txn(txn)));
    let expire = any::<u32>().prop_map(|limit| Action::Maintain(Maintenance::ExpireDue { limit }));
    let compact = any::<(u64, u32)>()
        .prop_map(|(revision, groups_max)| Action::Maintain(Maintenance::Compact { revision, groups_max }));
    let raise = any::<u32>().prop_map(|level| Action::Maintain(Maintenance::RaiseLevel { level }));
    let access = access().prop_map(Action::Access);
    let members = members().prop_map(Action::Members);
    let quota = quotas().prop_map(Action::Quota);
    let of_operators = prop_oneof![access, members, quota];
    let action =
        prop_oneof![4 => write, 1 => bulk, 1 => txn, 1 => expire, 1 => compact, 1 => raise, 3 => of_operators].boxed();
    let access_revision = option::of(0..Command::NO_ACCESS_REVISION);
    (option::of(ids()), ".{0,10}", action, access_revision).prop_map(
        |(request_id, principal, action, access_revision)| Command { request_id, principal, action, access_revision },
    )
}

fn grants() -> impl Strategy<Value = Grant> {
    let permission = prop_oneof![
        Just(Permission::Read),
        Just(Permission::Write),
        Just(Permission::Lock),
        Just(Permission::Admin),
        Just(Permission::Backup),
        Just(Permission::Monitor)
    ];
    (permission, vec(any::<u8>(), 0..5)).prop_map(|(permission, prefix)| Grant { permission, prefix })
}

fn members() -> impl Strategy<Value = MembersOp> {
    let id = || any::<u64>().prop_map(TokenId);
    let hash = || any::<[u8; 32]>().prop_map(SecretHash);
    let invite = (id(), hash(), any::<Option<u64>>(), any::<bool>(), any::<u64>()).prop_map(
        |(id, hash, node_id, is_standby, for_ms)| {
            MembersOp::Invite(NewInvitation { id, hash, node_id, is_standby, for_ms })
        },
    );
    let admit = (id(), hash(), any::<(u64, u128)>(), any::<bool>()).prop_map(
        |(invitation, hash, (node_id, incarnation), as_standby)| {
            let newcomer = NodeDisk { node_id, incarnation };
            MembersOp::Admit { invitation, hash, newcomer, as_standby }
        },
    );
    prop_oneof![invite, id().prop_map(MembersOp::Revoke), admit]
}

fn quota_subjects() -> impl Strategy<Value = QuotaSubject> {
    prop_oneof![
        Just(QuotaSubject::Default),
        "\\PC{1,20}".prop_map(QuotaSubject::Principal),
        vec(any::<u8>(), 1..20).prop_map(QuotaSubject::Prefix),
    ]
}

fn quotas() -> impl Strategy<Value = QuotaOp> {
    let bound = || any::<Option<u64>>();
    let bounds = (bound(), bound(), bound(), bound(), bound())
        .prop_map(|(sessions, locks, entries, bytes, tasks)| QuotaBounds { sessions, locks, entries, bytes, tasks });
    prop_oneof![
        (quota_subjects(), bounds).prop_map(|(subject, bounds)| QuotaOp::Set { subject, bounds }),
        quota_subjects().prop_map(QuotaOp::Remove),
    ]
}

fn access() -> impl Strategy<Value = AccessOp> {
    let user = || "\\PC{5,20}".prop_map(|name| UserName::new(name).unwrap());
    let role = || "\\PC{1,20}".prop_map(|name| RoleName::new(name).unwrap());
    let id = || any::<u64>().prop_map(TokenId);
    let token = (id(), user(), any::<[u8; 32]>(), any::<Option<u64>>(), ".{0,9}").prop_map(
        |(id, user, hash, expires_at, note)| {
            AccessOp::AddToken(NewToken { id, user, hash: SecretHash(hash), expires_at, note })
        },
    );
    prop_oneof![
        (user(), vec(role(), 0..3)).prop_map(|(name, roles)| AccessOp::SetUser { name, roles }),
        user().prop_map(AccessOp::RemoveUser),
        (role(), vec(grants(), 0..3)).prop_map(|(name, grants)| AccessOp::SetRole { name, grants }),
        role().prop_map(AccessOp::RemoveRole),
        token,
        id().prop_map(AccessOp::RemoveToken),
    ]
}

/// A schedule, and the row of its task in some state.
fn tasks() -> impl Strategy<Value = (TaskOp, TaskRow)> {
    let recurrence = prop_oneof![
        any::<u64>().prop_map(Recurrence::Every),
        (".{0,9}", ".{0,9}").prop_map(|(pattern, zone)| Recurrence::Cron { pattern, zone }),
    ];
    let start = prop_oneof![any::<u64>().prop_map(Start::At), any::<u64>().prop_map(Start::In), Just(Start::Planned)];
    let state = prop_oneof![
        Just(TaskState::Scheduled),
        (any::<u64>(), any::<u64>(), ".{0,9}").prop_map(|(token, until, worker)| {
            TaskState::Claimed { token, until, worker, session: (until % 2 == 0).then_some(SessionId(until)) }
        }),
        any::<u64>().prop_map(|at| TaskState::Dead { at }),
        Just(TaskState::Unplanned),
        any::<u64>().prop_map(|until| TaskState::Done { until }),
    ];
    let numbers = any::<([u64; 7], [u32; 3])>();
    (("\\PC{1,20}", "\\PC{1,20}"), values(), start, option::of(recurrence), state, option::of(".{0,20}"), numbers)
        .prop_map(|((queue, id), payload, start, recurrence, state, last_error, (words, small))| {
            let [due, number, planned, keep_ms, created, revision, runs] = words;
            let [max_attempts, attempts, factor_milli] = small;
            let retry = RetryPlan { max_attempts, initial_ms: due, max_ms: planned, factor_milli };
            let (queue, id) = (QueueName::new(queue).unwrap(), TaskId::new(id).unwrap());
            let new = NewTask {
                id: Some(id),
                payload: payload.clone(),
                start,
                recurrence: recurrence.clone(),
                retry,
                keep_ms,
                replace: due % 2 == 0,
            };
            let head = TaskHead {
                state,
                due,
                number,
                planned,
                attempts,
                retry,
                recurrence,
                last_error,
                keep_ms,
                created,
                revision,
                runs,
            };
            (TaskOp { queue, verb: TaskVerb::Schedule(vec![new]) }, TaskRow { head, payload })
        })
}

fn replies() -> impl Strategy<Value = Reply> {
    let rejection = prop_oneof![
        shown().prop_map(|current| Rejection::AlreadyExists { current }),
        Just(Rejection::NotFound),
        shown().prop_map(|current| Rejection::Locked { current }),
        shown().prop_map(|current| Rejection::NotLocked { current }),
        (any::<Option<u64>>(), option::of(shown()))
            .prop_map(|(expected, current)| Rejection::CasMismatch { expected, current }),
        (vec(unmet(), 0..3), option::of(shown()))
            .prop_map(|(unmet, current)| Rejection::ConditionNotMet { unmet: unmet.into(), current }),
        shown().prop_map(|current| Rejection::NotADocument { current }),
        (refusals_of_patches(), shown())
            .prop_map(|(refusal, current)| Rejection::PatchFailed { refusal: Box::new(refusal), current }),
        any::<(u64, u64)>().prop_map(|(limit, actual)| Rejection::TooLarge { limit, actual }),
        any::<u64>().prop_map(|limit| Rejection::TooMuch { limit }),
        any::<(u64, u64)>().prop_map(|(limit, actual)| Rejection::TooDear(TooDear { limit, actual })),
        any::<(u32, u32, u32)>().prop_map(|(holders, waiters, most)| Rejection::QueueLong { holders, waiters, most }),
        Just(Rejection::RequestIdReused),
        Just(Rejection::Txn(TxnRefusal::Compacted)),
        ".{0,20}".prop_map(Rejection::Unsupported),
        shown().prop_map(|current| Rejection::CasListed { current }),
    ]
    .boxed();
    let written =
        (option::of(metas()), option::of(shown())).prop_map(|(meta, previous)| Written { meta, previous }).boxed();
    let items = prop_oneof![
        written.clone().prop_map(ItemOutcome::Written),
        rejection.clone().prop_map(ItemOutcome::Rejected),
        Just(ItemOutcome::Deferred),
    ];
    let steps = prop_oneof![
        option::of(shown()).prop_map(StepReply::Got),
        written.clone().prop_map(StepReply::Written),
        vec(written.clone().prop_map(StepReply::Written), 0..2)
            .prop_map(|results| StepReply::Txn(TxnReply { failed: None, results })),
        vec(written.prop_map(StepReply::Written), 0..2)
            .prop_map(|results| StepReply::Branched(Branched { succeeded: false, results })),
        (vec((keys(), shown()), 0..3), any::<(u64, bool, bool)>()).prop_map(|(entries, (count, more, left_out))| {
            StepReply::Listed(Listed { entries, count, more, left_out })
        }),
        (vec((keys(), shown()), 0..3), any::<u64>())
            .prop_map(|(entries, count)| StepReply::Removed(Removed { count, entries })),
    ];
    let outcome = prop_oneof![
        (option::of(metas()), option::of(shown()))
            .prop_map(|(meta, previous)| Outcome::Written(Written { meta, previous })),
        rejection.clone().prop_map(Outcome::Rejected),
        vec((any::<u64>(), items), 0..3).prop_map(|items| {
            Outcome::Bulk(items.into_iter().map(|(revision, outcome)| BulkItem { revision, outcome }).collect())
        }),
        (option::of((any::<u32>(), rejection.clone())), vec(steps, 0..3)).prop_map(|(failed, results)| {
            Outcome::Txn(TxnReply { failed: failed.map(|(at, why)| CheckFailed { at, why }), results })
        }),
        ("(/then/[0-9])?", option::of(keys()), rejection)
            .prop_map(|(pointer, key, why)| { Outcome::TxnRejected(Box::new(StepRejected { pointer, key, why })) }),
        any::<(u32, bool)>().prop_map(|(removed, more)| Outcome::Maintained { removed, more }),
        Just(Outcome::Deferred),
    ];
    (any::<(u64, u64, u64, bool)>(), outcome).prop_map(|((index, revision, clock, replayed), outcome)| Reply {
        index,
        revision,
        clock,
        replayed,
        outcome,
    })
}

fn groups() -> impl Strategy<Value = AuditGroup> {
    use AuditOp::*;
    let op = prop::sample::select(vec![
        Insert, Upsert, Replace, Update, Remove, Touch, Lock, Extend, Unlock, Expire, Unknown, Txn,
    ]);
    let refusal = prop::sample::select(vec![
        Refusal::AlreadyExists,
        Refusal::NotFound,
        Refusal::CasMismatch,
        Refusal::Locked,
        Refusal::NotLocked,
        Refusal::ConditionNotMet,
        Refusal::NotADocument,
        Refusal::PatchFailed,
        Refusal::TooLarge,
        Refusal::RequestIdReused,
        Refusal::Unsupported,
        Refusal::CasListed,
        Refusal::TooDear,
        Refusal::QueueLong,
    ]);
    let mark = || any::<(u128, u64)>().prop_map(|(hash, bytes)| RowMark { hash, bytes });
    let superseded = (any::<u64>(), mark()).prop_map(|(revision, row)| Superseded { revision, row });
    let effect = prop_oneof![
        refusal.prop_map(AuditEffect::Refused),
        mark().prop_map(|row| AuditEffect::Relocked { row }),
        mark().prop_map(|row| AuditEffect::Elected { row }),
        (option::of(superseded), any::<bool>())
            .prop_map(|(previous, removed)| AuditEffect::Changed { previous, removed }),
    ];
    let line = (any::<u64>(), op, option::of(keys()), option::of(ids()), ".{0,10}", effect).prop_map(
        |(revision, op, key, request_id, principal, effect)| AuditLine {
            revision,
            op,
            key,
            request_id,
            principal,
            effect,
        },
    );
    (any::<[u64; 5]>(), vec(line, 0..5)).prop_map(|([index, clock, wall, first_revision, last_revision], lines)| {
        AuditGroup { index, clock, wall, first_revision, last_revision, lines }
    })
}

fn applied() -> impl Strategy<Value = AppliedRecord> {
    let bucket = any::<(u64, u128)>().prop_map(|(bucket, digest)| BucketDigest { bucket, digest });
    let vars = (any::<[u64; 4]>(), any::<u128>(), vec(bucket, 0..3)).prop_map(|(words, lasting_digest, buckets)| {
        let [revision, oldest_revision, clock, wall] = words;
        let (collections, sessions, unplanned) = (clock % 3, clock % 5, clock % 7);
        let next_timer = (clock % 2 == 0).then_some(clock);
        Vars {
            revision,
            oldest_revision,
            clock,
            wall,
            collections,
            sessions,
            unplanned,
            next_timer,
            lasting_digest,
            buckets,
            sizes: Sizes { entries: wall % 11, live_bytes: wall, history_bytes: clock },
            level: (revision % 5) as u32,
            epoch: clock % 13,
            epoch_revision: wall,
            access: oldest_revision,
        }
    });
    let log_id =
        || option::of(any::<(u64, u64, u64)>().prop_map(|(term, node, index)| LogIdRecord { term, node, index }));
    let member = any::<(u16, u128)>().prop_map(|(port, incarnation)| {
        let address = format!("[::1]:{port}");
        MemberRecord { peer_addr: address.clone(), client_addr: address, incarnation }
    });
    let nodes = prop::collection::btree_map(any::<u64>(), member, 0..4);
    let configs = vec(prop::collection::btree_set(any::<u64>(), 0..4), 0..3);
    (log_id(), log_id(), configs, nodes, vars).prop_map(
        |(log_id, set_at, configs, nodes, vars): (_, _, Vec<BTreeSet<u64>>, BTreeMap<_, _>, _)| {
            let membership = StoredMembershipRecord { log_id: set_at, membership: MembershipRecord { configs, nodes } };
            AppliedRecord { log_id, membership, vars }
        },
    )
}

/// Calls every decoder; what they say does not matter, only that they return.
fn decode_everything(bytes: &[u8]) {
    let _ = command_codec::decode_command(bytes);
    let _ = command_codec::decode_batch(&Bytes::copy_from_slice(bytes));
    let _ = codec::decode::<KeptReply>(bytes);
    let _ = audit::decode(bytes);
    let _ = codec::decode::<AppliedRecord>(bytes);
    let _ = entry::decode(bytes);
    let _ = entry::decode_key(bytes);
    let _ = history::decode(bytes);
    let _ = history::decode_key(bytes);
    let _ = audit::decode_key(bytes);
    let _ = refusals::decode_key(bytes);
    let _ = request::decode_key(bytes);
    let _ = deadline::decode_key(bytes);
    let _ = bucket::of_row(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn commands_and_batches_come_back(
        commands in vec(commands(), 0..4), clock in any::<u64>(), wall in any::<u64>(), seed in any::<[u8; 16]>()
    ) {
        let batch = Batch { clock, wall, seed, commands: commands.iter().map(command_codec::encode_command).collect() };
        let decoded = command_codec::decode_batch(&command_codec::encode_batch(&batch)).unwrap();
        prop_assert_eq!(&decoded, &batch);
        for (encoded, command) in decoded.commands.iter().zip(&commands) {
            let decoded = command_codec::decode_command(encoded).unwrap();
            prop_assert_eq!(decoded.fingerprint(), command.fingerprint());
            prop_assert_eq!(&decoded, command);
        }
    }

    #[test]
    fn one_changed_byte_changes_the_fingerprint(command in commands(), at in any::<prop::sample::Index>(), by in 1..=u8::MAX) {
        let mut bytes = command_codec::encode_command(&command).to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        if let Ok(other) = command_codec::decode_command(&bytes) && (Command { access_revision: command.access_revision, ..other.clone() }) != command {
            prop_assert_ne!(other.fingerprint(), command.fingerprint());
        }
    }

    #[test]
    fn the_access_revision_is_no_part_of_the_fingerprint(command in commands(), access_revision in option::of(0..Command::NO_ACCESS_REVISION)) {
        let again = Command { access_revision, ..command.clone() };
        prop_assert_eq!(again.fingerprint(), command.fingerprint());
        prop_assert_eq!(command_codec::encode_command(&again) == command_codec::encode_command(&command), access_revision == command.access_revision);
    }

    #[test]
    fn entry_rows_come_back(
        meta in metas(), key in any::<u64>(), is_relocked in any::<bool>(), value in values()
    ) {
        let key = meta.locked_until.map(|_| key);
        let row = EntryRow { meta, key, is_relocked, kind: value.kind, data: &value.data };
        let (row, written) = (entry::encode_row(&row), row);
        prop_assert_eq!(entry::decode(&row).unwrap(), written);
        prop_assert_eq!(history::decode(&row).unwrap(), Version::Entry(written));
        for length in 0..row.len().min(34) {
            prop_assert!(entry::decode(&row[..length]).is_err(), "cut to {} bytes", length);
        }
    }

    #[test]
    fn replies_come_back(reply in replies()) {
        prop_assert_eq!(codec::decode::<Reply>(&codec::encode(&reply)).unwrap(), reply);
    }

    #[test]
    fn tasks_come_back(task in tasks()) {
        let (op, row) = task;
        let action = Action::Task(op);
        let command = Command { request_id: None, principal: String::new(), action, access_revision: None };
        prop_assert_eq!(command_codec::decode_command(&command_codec::encode_command(&command)).unwrap(), command);
        prop_assert_eq!(codec::decode::<TaskRow>(&codec::encode(&row)).unwrap(), row);
    }

    #[test]
    fn kept_replies_come_back_without_values(fingerprint in any::<u64>(), reply in replies()) {
        let row = request::encode(fingerprint, &reply);
        let kept = codec::decode::<KeptReply>(&row).unwrap();
        prop_assert_eq!(kept.reply.outcome.value_bytes(), 0);
        let expected = KeptReply { fingerprint, reply: reply.to_bare() };
        prop_assert_eq!(codec::encode(&expected), row);
        prop_assert_eq!(kept, expected);
    }

    #[test]
    fn audit_groups_come_back(group in groups()) {
        let row = audit::encode(&group);
        prop_assert_eq!(&row, &codec::encode(&group));
        prop_assert_eq!(audit::decode(&row).unwrap(), group);
    }

    #[test]
    fn applied_records_come_back(record in applied()) {
        prop_assert_eq!(codec::decode::<AppliedRecord>(&codec::encode(&record)).unwrap(), record);
    }

    #[test]
    fn row_keys_come_back(key in key_bytes(), first in any::<u64>(), second in any::<u64>(), id in "[ -~]{1,40}", owner in "\\PC{0,20}") {
        let (entry_key, request_key) = (entry::row_key(&key), request::row_key(first, &owner, &id));
        let deadline_key = deadline::row_key(first, &key);
        prop_assert_eq!(entry::decode_key(&entry_key).unwrap(), key.as_slice());
        prop_assert_eq!(history::decode_key(&history::row_key(&key, first)).unwrap(), (key.clone(), first));
        prop_assert_eq!(audit::decode_key(&audit::row_key(first, second)).unwrap(), (first, second));
        prop_assert_eq!(refusals::decode_key(&refusals::row_key(first, second)).unwrap(), (first, second));
        prop_assert_eq!(request::decode_key(&request_key).unwrap(), (first, owner.as_str(), id.as_str()));
        prop_assert_eq!(deadline::decode_key(&deadline_key).unwrap(), (first, key.as_slice()));
        prop_assert_eq!(bucket::of_row(&request_key), Some(first));
        prop_assert_eq!(bucket::of_row(&refusals::row_key(first, second)), Some(first));
        prop_assert_eq!(bucket::of_row(&audit::row_key(first, second)), None);
    }

    #[test]
    fn row_keys_sort_as_what_they_stand_for(
        a in key_bytes(), b in key_bytes(), first in any::<[u64; 2]>(), second in any::<[u64; 2]>()
    ) {
        prop_assert_eq!(entry::row_key(&a).cmp(&entry::row_key(&b)), a.cmp(&b));
        let history = |key: &Vec<u8>, at: usize| history::row_key(key, first[at]);
        prop_assert_eq!(history(&a, 0).cmp(&history(&b, 1)), (&a, first[0]).cmp(&(&b, first[1])));
        let pair = |at: usize| (first[at], second[at]);
        let audit = |at: usize| audit::row_key(first[at], second[at]);
        let refusal = |at: usize| refusals::row_key(first[at], second[at]);
        prop_assert_eq!(audit(0).cmp(&audit(1)), pair(0).cmp(&pair(1)));
        prop_assert_eq!(refusal(0).cmp(&refusal(1)), pair(0).cmp(&pair(1)));
        let deadline = |key: &Vec<u8>, at: usize| deadline::row_key(first[at], key);
        prop_assert_eq!(deadline(&a, 0).cmp(&deadline(&b, 1)), (first[0], &a).cmp(&(first[1], &b)));
    }

    #[test]
    fn the_bounds_of_a_history_hold_its_rows_and_no_others(
        a in key_bytes(), b in key_bytes(), revision in any::<u64>(), other in any::<u64>()
    ) {
        let (first, last) = history::bounds_up_to(&a, revision);
        let inside = |row: &Vec<u8>| first <= *row && *row <= last;
        prop_assert_eq!(inside(&history::row_key(&a, other)), other <= revision);
        prop_assert!(a == b || !inside(&history::row_key(&b, other)));
        prop_assert_eq!(history::lower_bound(&a) <= history::row_key(&b, other), a <= b);
    }

    #[test]
    fn what_is_due_is_what_lies_in_the_due_range(clock in any::<u64>(), by in any::<i8>(), key in key_bytes()) {
        let deadline = clock.saturating_add_signed(by.into());
        let (start, end) = deadline::due_range(clock);
        let row = deadline::row_key(deadline, &key);
        prop_assert_eq!(start <= row && row < end, deadline <= clock);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..80), family in prop::sample::select(vec![
        family::META, family::ENTRY, family::HISTORY, family::AUDIT, family::REFUSALS, family::REQUEST, family::DEADLINE, family::LOCK,
    ])) {
        decode_everything(&bytes);
        decode_everything(&[&[codec::FORMAT_VERSION], bytes.as_slice()].concat());
        decode_everything(&[&[family], bytes.as_slice()].concat());
    }

    #[test]
    fn no_flipped_byte_makes_a_decoder_panic(
        command in commands(), group in groups(), reply in replies(), record in applied(),
        at in any::<prop::sample::Index>(), by in any::<u8>(),
    ) {
        let batch = Batch { clock: 1, wall: 1, seed: [7; 16], commands: vec![command_codec::encode_command(&command)] };
        for mut bytes in [
            command_codec::encode_command(&command).to_vec(), codec::encode(&group), request::encode(1, &reply),
            codec::encode(&record), command_codec::encode_batch(&batch).to_vec(),
        ] {
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            decode_everything(&bytes);
            decode_everything(&bytes[..at]);
        }
    }
}

#[test]
fn a_length_beyond_all_bounds_is_refused_and_not_allocated() {
    // Version, access_revision, no id, a principal of 2^62 bytes.
    let bytes = [&[codec::FORMAT_VERSION][..], &[0; 8], &[0, 253], &(1_u64 << 62).to_le_bytes()].concat();
    assert!(matches!(command_codec::decode_command(&bytes), Err(codec::CodecError::Malformed(_))));
}
