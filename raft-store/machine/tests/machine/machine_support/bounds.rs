//! What the tests of bounds share: writes, and what a batch came to.

use quorate_machine::document::{Criteria, Json, Order};
use quorate_machine::limits;
use quorate_machine::machine::{Applied, Write};
use quorate_machine::rules::{CollectionName, Rules};
use quorate_machine::types::*;

use super::Store;

/// Keeps what the next batch came to, and gives the bytes of keys and values that it writes. The store's twins apply it in other groups.
pub fn keep(store: &mut Store, batch: &Batch, replies: &[Reply], applied: Applied) -> usize {
    let bytes = applied.writes.iter().map(|write| match write {
        Write::Put { key, value } => key.len() + value.len(),
        Write::Delete { key } => key.len(),
        Write::DeleteRange { start, end } => start.len() + end.len(),
    });
    let bytes = bytes.sum();
    store.keep_next(batch, replies, applied);
    bytes
}

/// A write that nothing forbids, of an entry that does not expire.
pub fn write(key: impl Into<Vec<u8>>, change: Change) -> WriteOp {
    WriteOp { change, expiry: Expiry::Never, ..WriteOp::removal(Key::new(key).unwrap(), false) }
}

/// A change to these bytes.
pub fn bytes(data: impl Into<Vec<u8>>) -> Change {
    Change::Put(Value { kind: ContentKind::Bytes, data: data.into() })
}

/// A change to this document.
pub fn json(text: impl Into<Vec<u8>>) -> Change {
    Change::Put(Value { kind: ContentKind::Json, data: text.into() })
}

/// A write of bytes that nothing forbids.
pub fn put(key: impl Into<Vec<u8>>, data: Vec<u8>, session: Option<SessionId>) -> Command {
    Command::unnamed(Action::Write(WriteOp { session, ..write(key, bytes(data)) }))
}

/// A claim of as many as may be, by keys.
pub fn claim(prefix: &str, criteria: Criteria) -> ClaimOp {
    let (prefix, order, limit) = (prefix.into(), Order::new(Vec::new()), limits::CLAIM_LIMIT_MAX);
    ClaimOp { prefix, criteria, order, limit, lock_ms: 1_000, patch: None, guard: None }
}

/// A change of as many as may be.
pub fn found(prefix: &str, criteria: Criteria, change: WhereChange) -> WhereOp {
    let (prefix, condition, limit) = (prefix.into(), Criteria::default(), limits::WHERE_LIMIT_MAX);
    WhereOp { prefix, criteria, condition, change, limit, after: None, guard: None }
}

/// Declares a collection.
pub fn declare(name: &str, rules: &str) -> Action {
    let rules = Rules::read(&Json::parse(rules.as_bytes()).unwrap(), "").unwrap();
    let name = CollectionName::new(name).unwrap();
    Action::Rules(RulesOp { name, expect: Expect::ANY, change: RulesChange::Set(rules) })
}
