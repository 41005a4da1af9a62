//! What the tests of bounds share: writes, and what a batch came to.

use quorate_machine::document::Criteria;
use quorate_machine::machine::{Applied, Write};
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

/// A write of bytes that nothing forbids.
pub fn put(key: impl Into<Vec<u8>>, data: Vec<u8>, session: Option<SessionId>) -> Command {
    Command::unnamed(Action::Write(WriteOp {
        key: Key::new(key).unwrap(),
        expect: Expect::ANY,
        condition: Criteria::default(),
        change: Change::Put(Value { kind: ContentKind::Bytes, data }),
        expiry: Expiry::Never,
        return_previous: false,
        session,
        guard: None,
    }))
}
