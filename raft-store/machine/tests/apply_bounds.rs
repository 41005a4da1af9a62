//! Bounds of one apply: what it writes, whatever it is asked for, and that each row it writes can be read again.

mod machine_support;

use machine_support::{Store, batch};
use quorate_machine::document::Criteria;
use quorate_machine::keyspace::audit::{self, AuditEffect, AuditGroup, AuditLine, AuditOp, Refusal};
use quorate_machine::keyspace::family;
use quorate_machine::level::HARDENED;
use quorate_machine::limits;
use quorate_machine::machine::{Applier, Vars, Write};
use quorate_machine::types::{
    Action, Batch, Change, Command, ContentKind, Expect, Expiry, Key, Outcome, Reply, SessionDone, SessionId,
    SessionOp, Value, WriteOp,
};

/// An empty store at the level at which everything is bounded.
fn hardened() -> Store {
    Store { vars: Vars { level: HARDENED, ..Vars::default() }, ..Store::default() }
}

/// Applies one batch and gives its replies and the bytes of keys and values that it writes.
fn measured(store: &mut Store, batch: &Batch) -> (Vec<Reply>, usize) {
    store.index += 1;
    let mut applier = Applier::new(&store.view, store.vars.clone());
    let replies = applier.apply_batch(store.index, batch).unwrap();
    let applied = applier.finish();
    let bytes = applied.writes.iter().map(|write| match write {
        Write::Put { key, value } => key.len() + value.len(),
        Write::Delete { key } => key.len(),
        Write::DeleteRange { start, end } => start.len() + end.len(),
    });
    let bytes = bytes.sum();
    store.view.write(applied.writes);
    store.vars = applied.vars;
    (replies, bytes)
}

fn put(key: impl Into<Vec<u8>>, data: Vec<u8>, session: Option<SessionId>) -> Command {
    Command::unnamed(Action::Write(WriteOp {
        key: Key::new(key).unwrap(),
        expect: Expect::Any,
        condition: Criteria::default(),
        change: Change::Upsert(Value { kind: ContentKind::Bytes, data }),
        expiry: Expiry::Never,
        return_previous: false,
        session,
        guard: None,
    }))
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
        Outcome::Session(SessionDone::Created { id, .. }) => id,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_of_entries_with_long_keys_that_end_at_once_make_no_batch_beyond_the_bound() {
    let mut store = hardened();
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
