//! Restore and recovery of a data directory, without a node.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use openraft::storage::RaftLogStorageExt;
use quorate_machine::access::{Grant, Permission};
use quorate_machine::codec;
use quorate_machine::document::Json;
use quorate_machine::keyspace::bucket_use::{OwnerUse, RefusedUse};
use quorate_machine::keyspace::{access, bucket_use, deadline, family, sequence};
use quorate_machine::machine::EPOCH_REVISIONS;
use quorate_machine::rules::{CollectionName, Rules, SequenceName};
use quorate_machine::types::{
    AccessOp, Action, Change, Command, ContentKind, Expect, LatchOp, Maintenance, Name, NewToken, RoleName,
    RulesChange, RulesOp, SecretHash, SessionId, SessionOp, TokenId, UserName, UserRow, WriteOp,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::backup::Taker;
use quorate_store::identity::{self, Identity};
use quorate_store::log::LogStore;
use quorate_store::offline::{OfflineError, RecoverOptions, RestoreOptions, check, recover, restore, survivor};
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord};
use quorate_store::state::{StateOptions, StateReader};

use crate::state_support::*;

const CLUSTER: u128 = 77;

fn administered(op: AccessOp) -> Command {
    Command::unnamed(Action::Access(op))
}

fn user() -> UserName {
    UserName::new("ann").unwrap()
}

fn role() -> RoleName {
    RoleName::new("app").unwrap()
}

fn in_session(command: Command, id: u64) -> Command {
    let Action::Write(op) = command.action else { panic!("no write") };
    Command { action: Action::Write(WriteOp { session: Some(SessionId(id)), ..op }), ..command }
}

/// A role, a user that has it, and its token.
fn admitted() -> [Command; 3] {
    [
        administered(AccessOp::SetRole {
            name: role(),
            grants: vec![Grant { permission: Permission::Read, prefix: b"k".into() }],
        }),
        administered(AccessOp::SetUser { name: user(), roles: vec![role()] }),
        administered(AccessOp::AddToken(NewToken {
            id: TokenId(5),
            user: user(),
            hash: SecretHash([3; 32]),
            expires_at: None,
            note: String::new(),
        })),
    ]
}

/// A workload with users, and a session that has entries, a lock on an entry, and a latch.
pub fn entries() -> Vec<LogEntry> {
    let mut entries: Vec<_> = (0..=300).map(workload_entry).collect();
    entries[100] = batch(100, 100 * 700, &admitted());
    let clock = 301 * 700;
    let create = SessionOp::Create { ttl_ms: 60_000, owner: "o".into(), labels: Vec::new() };
    entries.push(batch(301, clock, &[Command::unnamed(Action::Session(create))]));
    entries
}

async fn filled(state: &mut StateMachine, reader: &StateReader) -> u64 {
    apply(state, entries()).await;
    let session = reader.position().revision;
    let latch = LatchOp::Create { name: Name::new("gate").unwrap(), count: 3 };
    let more = [
        in_session(put("held/a", "x"), session),
        in_session(with_ttl(put("held/b", "y"), 500_000), session),
        put("plain", "kept"),
        write(key("plain"), Change::Lock(20_000)),
        Command::unnamed(Action::Latch(latch)),
    ];
    apply(state, vec![batch(302, 302 * 700, &more)]).await;
    302
}

fn taker() -> Taker {
    Taker { cluster_id: CLUSTER, node_id: 1, node_version: "test".into(), now: 5 }
}

/// A restore of this backup into this directory.
pub fn chosen(from: &Path, data_dir: &Path) -> RestoreOptions {
    RestoreOptions {
        from: from.to_owned(),
        data_dir: data_dir.to_owned(),
        node_id: 4,
        peer_addr: "p:1".into(),
        client_addr: "c:1".into(),
        revision_floor: 0,
        cluster_id: 99,
        incarnation: 1234,
    }
}

pub fn reopened(dir: &Path, node_id: u64) -> (StateMachine, StateReader) {
    StateMachine::open(dir, StateOptions { node_id, ..options() }).expect("what was made opens")
}

/// Keys, values and revisions of all entries that hang on no session.
pub fn lasting(reader: &StateReader) -> Vec<(String, Vec<u8>, u64, u64, u64)> {
    let entries = page(reader.list(&query("", None)).unwrap()).entries;
    let entries = entries.into_iter().filter(|(_, entry)| entry.meta.session.is_none());
    entries
        .map(|(key, entry)| {
            let meta = entry.meta;
            (key.to_string(), entry.value.data, meta.create_revision, meta.mod_revision, meta.version)
        })
        .collect()
}

/// What must hold of a state in its new epoch, made of the one behind `before`.
fn check_epoch(before: &StateReader, after: &StateReader, node_id: u64) {
    assert_eq!(lasting(before), lasting(after));
    assert!(lasting(after).len() > 50);
    let (old, new) = (before.applied(), after.applied());
    let begun = old.at.revision + EPOCH_REVISIONS;
    assert_eq!(new.at.oldest_revision, begun);
    assert!(new.at.revision > begun, "the end of the session took a revision");
    assert_eq!((new.log_id, new.at.clock), (old.log_id, old.at.clock));
    assert!(before.access_revision() > 0 && before.rights_of(&user()).unwrap().is_some());
    assert_eq!(after.access_revision(), begun, "what was authorised before is not any more");
    assert_eq!(after.rights_of(&user()).unwrap(), before.rights_of(&user()).unwrap());
    assert_eq!(after.token(TokenId(5)).unwrap().found, before.token(TokenId(5)).unwrap().found);
    assert_eq!(new.membership.membership.configs, vec![[node_id].into()]);
    for (_, entry) in page(after.list(&query("", None)).unwrap()).entries {
        assert_eq!(entry.meta.cas, begun, "no token of before fits");
        assert_eq!((entry.meta.session, entry.meta.locked_until), (None, None));
    }
    assert!(after.get(&key("held/a")).unwrap().entry.is_none());
    assert_eq!(after.coordination_counts(10).unwrap().sessions, 0);
}

#[test]
fn a_backup_restored_is_the_same_state_in_a_new_epoch() {
    let (old_dir, new_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut state, reader) = open(old_dir.path());
    runtime().block_on(filled(&mut state, &reader));
    let path = new_dir.path().join("backup");
    let mut header = None;
    let (file, end) =
        reader.back_up(taker(), File::create(&path).unwrap(), |begun| header = Some(begun.clone())).unwrap();
    drop(file);
    let data_dir = new_dir.path().join("data");
    let mut told = Vec::new();
    let restored = restore(&chosen(&path, &data_dir), |read, of| told.push((read, of))).unwrap();
    assert_eq!((Some(restored.header), restored.end), (header, end));
    assert_eq!(restored.epoch, 1);
    let length = fs::metadata(&path).unwrap().len();
    assert_eq!(told.last(), Some(&(length, length)));
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 4, "identity, log, mark and state");

    let marker = identity::open(&data_dir, 4, 0).unwrap();
    assert_eq!(marker, Identity { cluster_id: Some(99), node_id: 4, incarnation: 1234 });
    let (mut made, after) = reopened(&data_dir, 4);
    check_epoch(&reader, &after, 4);
    let log = LogStore::open(&data_dir, &marker, Arc::new(|fault| panic!("{fault}"))).unwrap();
    let last = reader.applied().log_id.unwrap();
    assert_eq!((log.purged_index(), log.last_index()), (Some(last.index), last.index));

    // The state goes on: writes, expiries and compaction find everything in its place.
    runtime().block_on(async {
        let more = (1..=200).map(|n| {
            let mut entry = workload_entry(last.index + n);
            entry.log_id = LogIdRecord { term: last.term + 2, node: 4, index: last.index + n }.into();
            entry
        });
        apply(&mut made, more.collect()).await;
        let what = quorate_machine::types::Maintenance::Compact { revision: u64::MAX, groups_max: 10_000 };
        apply(&mut made, vec![batch(last.index + 201, 600 * 700, &[maintain(what)])]).await;
    });
    after.flush().unwrap();
    drop((made, after));
    reopened(&data_dir, 4);
}

#[test]
fn an_old_token_is_refused_after_a_restore() {
    let (old_dir, new_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut state, reader) = open(old_dir.path());
    runtime().block_on(filled(&mut state, &reader));
    let path = new_dir.path().join("backup");
    reader.back_up(taker(), File::create(&path).unwrap(), |_| {}).unwrap();
    let data_dir = new_dir.path().join("data");
    restore(&chosen(&path, &data_dir), |_, _| {}).unwrap();
    let (_made, after) = reopened(&data_dir, 4);
    let (name, ..) = lasting(&reader).swap_remove(3);
    let token = reader.get(&key(&name)).unwrap().entry.unwrap().meta.cas;
    let with_token = |cas| {
        let Action::Write(op) = put(&name, "z").action else { panic!("no write") };
        Command::unnamed(Action::Write(WriteOp { expect: Expect::cas(cas), ..op }))
    };
    let tried = |cas| format!("{:?}", after.dry_run(&with_token(cas), 0).unwrap().outcome);
    assert!(tried(token).contains("CasMismatch"), "{}", tried(token));
    let fresh = after.get(&key(&name)).unwrap().entry.unwrap().meta.cas;
    assert!(tried(fresh).contains("Written"), "{}", tried(fresh));
}

#[test]
fn of_two_restores_into_one_directory_at_once_the_second_is_refused_and_the_first_comes_to_its_end() {
    let (old_dir, new_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut state, reader) = open(old_dir.path());
    runtime().block_on(filled(&mut state, &reader));
    let (path, data_dir) = (new_dir.path().join("backup"), new_dir.path().join("data"));
    reader.back_up(taker(), File::create(&path).unwrap(), |_| {}).unwrap();
    let mut refused = None;
    let second = || restore(&chosen(&path, &data_dir), |_, _| {}).unwrap_err().to_string();
    restore(&chosen(&path, &data_dir), |_, _| {
        refused.get_or_insert_with(second);
    })
    .unwrap();
    let refused = refused.expect("it was tried in the middle");
    assert!(refused.contains("another restore or recovery works in"), "{refused}");
    reopened(&data_dir, 4);
}

#[test]
fn a_restore_refuses_what_is_occupied_and_what_is_damaged_and_leaves_nothing() {
    let (old_dir, new_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut state, reader) = open(old_dir.path());
    runtime().block_on(filled(&mut state, &reader));
    let path = new_dir.path().join("backup");
    reader.back_up(taker(), File::create(&path).unwrap(), |_| {}).unwrap();
    let data_dir = new_dir.path().join("data");

    fs::create_dir(&data_dir).unwrap();
    fs::write(data_dir.join("precious"), "x").unwrap();
    let error = restore(&chosen(&path, &data_dir), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("is not empty (there is precious)"), "{error}");
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 1);
    fs::remove_file(data_dir.join("precious")).unwrap();

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    let error = restore(&chosen(&path, &data_dir), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("cut short"), "{error}");
    assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 0, "nothing is left of it");

    // What one that was killed leaves is no empty directory for a node, and none to keep for a restore.
    fs::create_dir(data_dir.join("recovering")).unwrap();
    let error = identity::open(&data_dir, 4, 1).unwrap_err();
    assert!(error.to_string().contains("unfinished restore"), "a node must not start on it: {error}");

    fs::write(&path, &whole).unwrap();
    restore(&chosen(&path, &data_dir), |_, _| {}).unwrap();
    reopened(&data_dir, 4);
}

/// A data directory of node 1 of three, whose state lacks the last entries of its log.
pub fn survivor_dir(dir: &Path) -> u64 {
    let made = identity::open(dir, 1, 5).unwrap();
    let identity = identity::adopt(dir, &made, CLUSTER).unwrap();
    let mut log = LogStore::open(dir, &identity, Arc::new(|fault| panic!("{fault}"))).unwrap();
    let (mut state, reader) = open(dir);
    let member = |id: u64| MemberRecord {
        peer_addr: format!("p:{id}"),
        client_addr: format!("c:{id}"),
        incarnation: if id == 1 { identity.incarnation } else { id.into() },
    };
    let membership =
        MembershipRecord { configs: vec![[1, 2, 3].into()], nodes: (1..=3).map(|id| (id, member(id))).collect() };
    let mut all = entries();
    all[0].payload = openraft::EntryPayload::Membership(membership.try_into().unwrap());
    let last = all.len() as u64 - 1;
    runtime().block_on(async {
        log.blocking_append(all.clone()).await.unwrap();
        all.truncate(200);
        apply(&mut state, all).await;
    });
    reader.flush().unwrap();
    drop((state, reader));
    log.close();
    last
}

#[test]
fn a_recovery_keeps_all_entries_and_makes_a_cluster_of_one() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = home.path().join("data");
    let last = survivor_dir(&dir);
    // What all of its log comes to.
    let (mut state, all) = open(other.path());
    runtime().block_on(apply(&mut state, entries()));

    let seen = survivor(&dir).unwrap();
    assert_eq!((seen.applied.unwrap().index, seen.last.unwrap().index), (199, last));
    assert_eq!(seen.members, [1, 2, 3]);
    let chosen = RecoverOptions { data_dir: dir.clone(), cluster_id: 31, revision_floor: 0, incarnation: 41 };
    let held = LogStore::open(&dir, &seen.identity, Arc::new(|_| {})).unwrap();
    let error = recover(&chosen, |_| {}).unwrap_err();
    assert!(matches!(&error, OfflineError::Log(_)) && error.to_string().contains("in use"), "{error}");
    held.close();

    let done = recover(&chosen, |said| println!("{said}")).unwrap();
    assert_eq!(done.last.unwrap().index, last);
    assert_eq!((done.revision_before, done.epoch), (all.position().revision, 1));
    let old = done.old.expect("the old content is kept");
    assert_eq!(identity::read(&old).unwrap().unwrap().cluster_id, Some(CLUSTER));
    let marker = identity::open(&dir, 1, 0).unwrap();
    assert_eq!(marker, Identity { cluster_id: Some(31), node_id: 1, incarnation: 41 });
    let (_made, after) = reopened(&dir, 1);
    assert_eq!(lasting(&all), lasting(&after));
    assert_eq!(after.applied().membership.membership.configs, vec![[1].into()]);
    assert_eq!(after.applied().membership.membership.nodes[&1].peer_addr, "p:1");
    LogStore::open(&dir, &marker, Arc::new(|_| {})).unwrap();
}

#[test]
fn a_sound_directory_passes_the_check_and_its_counts_are_told() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let last = survivor_dir(&dir);
    let report = check(&dir, |_, _| {}).unwrap();
    assert_eq!(report.faults, [""; 0]);
    let looked = report.looked.join("\n");
    for words in ["identity: node 1", &format!("entries 0 to {last}"), "up to log entry 199", "kept answers"] {
        assert!(looked.contains(words), "no `{words}` in:\n{looked}");
    }
    assert_eq!(check(&dir, |_, _| {}).unwrap().looked, report.looked, "a check changes nothing");
    LogStore::open(&dir, &identity::read(&dir).unwrap().unwrap(), Arc::new(|_| {})).unwrap();
}

#[test]
fn rows_of_an_index_that_failed_are_no_damage_while_they_wait_to_be_cleared() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    survivor_dir(&dir);
    let (mut state, reader) = open(&dir);
    let document = |at: &str| {
        let mut document = put(at, r#"{"n":1}"#);
        if let Action::Write(WriteOp { change: Change::Put(value), .. }) = &mut document.action {
            value.kind = ContentKind::Json;
        }
        document
    };
    let declared = Json::parse(br#"{"indexes":[{"fields":["n"],"unique":true}]}"#).unwrap();
    let change = RulesChange::Set(Rules::read(&declared, "").unwrap());
    let rules = RulesOp { name: CollectionName::new("u").unwrap(), expect: Expect::ANY, change };
    let build = Action::Maintain(Maintenance::Indexes { rows_max: 10 });
    let commands = [document("u/1"), document("u/2"), Command::unnamed(Action::Rules(rules)), Command::unnamed(build)];
    runtime().block_on(apply(&mut state, vec![batch(200, 200 * 700, &commands)]));
    reader.flush().unwrap();
    drop((state, reader));
    assert_eq!(check(&dir, |_, _| {}).unwrap().faults, [""; 0]);
}

/// Damages a database behind the back of the state.
type Damage = fn(&rocksdb::DB);

/// The first row of a family.
fn first_row(db: &rocksdb::DB, family: u8) -> (Box<[u8]>, Box<[u8]>) {
    let from = [family];
    let mode = rocksdb::IteratorMode::From(&from, rocksdb::Direction::Forward);
    db.iterator(mode).next().unwrap().unwrap()
}

#[test]
fn rows_that_contradict_one_another_are_named() {
    let damages: [(&str, Damage); 14] = [
        ("which is missing", |db| db.delete(first_row(db, family::DEADLINE).0).unwrap()),
        ("deadlines, of which entries have", |db| db.put(deadline::row_key(5, b"nobody"), b"").unwrap()),
        ("the record has format version 99", |db| {
            let (row_key, mut row) = first_row(db, family::ENTRY);
            row[0] = 99;
            db.put(row_key, row).unwrap();
        }),
        ("the rows have digest", |db| {
            let name = SequenceName::new("extra").unwrap();
            db.put(sequence::row_key(&name), sequence::encode(7)).unwrap();
        }),
        ("asks for row \\x91app, which is missing", |db| db.delete(access::role_key(&role())).unwrap()),
        ("users by role, of which users have", |db| db.delete(access::role_user_key(&role(), &user())).unwrap()),
        ("asks for row \\x90ann, which is missing", |db| db.delete(access::user_key(&user())).unwrap()),
        ("tokens by user, of which there are by id", |db| db.delete(access::token_key(TokenId(5))).unwrap()),
        ("row \\x92", |db| db.put(access::token_key(TokenId(5)), b"x").unwrap()),
        ("behind the access revision", |db| {
            let row = UserRow { roles: Vec::new(), created: 0, revision: u64::MAX };
            db.put(access::user_key(&user()), codec::encode(&row)).unwrap();
        }),
        ("a row of the unknown family 0xee", |db| db.put([0xee, 1], b"x").unwrap()),
        ("buckets are said to hold", |db| db.delete(first_row(db, family::REQUEST).0).unwrap()),
        ("principals are said to have Some(((0, \"eve\"), 5)) of buckets, they have None", |db| {
            db.put(bucket_use::owner_key(0, "eve"), codec::encode(&OwnerUse { requests: 5 })).unwrap();
        }),
        ("principals are said to have Some(((0, \"eve\"), 5)) of refusals, they have None", |db| {
            db.put(bucket_use::refused_key(0, "eve"), codec::encode(&RefusedUse { refusals: 5 })).unwrap();
        }),
    ];
    for (words, damage) in damages {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("data");
        survivor_dir(&dir);
        let db = rocksdb::DB::open_default(dir.join("state/db-1")).unwrap();
        damage(&db);
        db.flush().unwrap();
        drop(db);
        let faults = check(&dir, |_, _| {}).unwrap().faults.join("\n");
        assert!(faults.contains(words), "no `{words}` in:\n{faults}");
    }
}
