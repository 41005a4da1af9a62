//! Entries that cost much work: a recent command on them took much, or was refused for it.
//!
//! Owns for how long they are remembered, and which commands look into them: these have a queue of their own and go one at a time, so that no
//! crowd of them stands before others. Known to this node alone, and a hint: it chooses a queue and decides nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_machine::command_codec;
use quorate_machine::types::{
    Action, BulkItem, Check, Command, ItemOutcome, Key, Outcome, Rejection, Step, Txn, WriteOp,
};
use quorate_node_core::limits::DEAR_BYTES;
use tokio::time::Instant;

/// Time for which an entry is remembered after such a command.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Most entries remembered. Each had its command, at a cost to all nodes, within that time.
const KEYS_MAX: usize = 1_024;

/// Least part of each entry in what a command took. One with many operations costs its account as many, and each may be little work: it must
/// not have all commands on any of its entries go one at a time.
const PART_BYTES: usize = DEAR_BYTES / 16;

/// The entries.
#[derive(Debug, Default)]
pub struct DearEntries {
    /// A flag, set while there may be any. Mostly there are none, and no write has to look.
    any: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Until when each is remembered.
    until: BTreeMap<Key, Instant>,
    /// Until when the last of them is.
    latest: Option<Instant>,
}

impl DearEntries {
    /// Whether any are remembered. Cheap.
    pub fn may_be_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Tells whether an encoded command looks into one of them. Decodes nothing where there are none.
    pub fn are_looked_into_by(&self, command: &[u8]) -> bool {
        let looks = |command: Command| self.are_looked_into(&command.action);
        self.may_be_any() && command_codec::decode_command(command).is_ok_and(looks)
    }

    /// Tells whether a command looks into one of them.
    pub fn are_looked_into(&self, action: &Action) -> bool {
        if !self.may_be_any() {
            return false;
        }
        let (mut known, now) = (self.known.lock(), Instant::now());
        if known.latest.is_none_or(|latest| latest <= now) {
            *known = Known::default();
            self.any.store(false, Ordering::Relaxed);
            return false;
        }
        looks_into(action, &|key| known.until.get(key).is_some_and(|until| *until > now))
    }

    /// Remembers the entries for which a command was refused, if it was. `action` gives what it was.
    pub fn note(&self, outcome: &Outcome, action: impl FnOnce() -> Option<Action>) {
        if outcome.steps_in_vain() == 0 {
            return;
        }
        let keys: Vec<Key> = match outcome {
            Outcome::TxnRejected(rejected) => rejected.key.clone().into_iter().collect(),
            other => action().map_or_else(Vec::new, |action| refused(action, other)),
        };
        self.remember(keys);
    }

    /// Remembers the entries into which an encoded command looks that took so much, unless there are many.
    pub fn note_taken(&self, command: &[u8], bytes: usize) {
        let Ok(command) = command_codec::decode_command(command) else { return };
        let keys = looked_into(&command.action);
        if keys.len() * PART_BYTES <= bytes {
            self.remember(keys);
        }
    }

    /// Remembers the entry into which such a command looks, where it is one only: of several it is not known which it is.
    pub fn note_told(&self, command: &[u8]) {
        let Ok(command) = command_codec::decode_command(command) else { return };
        let keys = looked_into(&command.action);
        if keys.len() == 1 {
            self.remember(keys);
        }
    }

    fn remember(&self, keys: impl IntoIterator<Item = Key>) {
        let (mut known, now) = (self.known.lock(), Instant::now());
        known.until.retain(|_, until| *until > now);
        for key in keys {
            if known.until.len() < KEYS_MAX || known.until.contains_key(&key) {
                known.until.insert(key, now + REMEMBERED);
                known.latest = Some(now + REMEMBERED);
            }
        }
        self.any.store(!known.until.is_empty(), Ordering::Relaxed);
    }
}

/// The entries of which writes were refused as too dear.
fn refused(action: Action, outcome: &Outcome) -> Vec<Key> {
    let is_dear = |item: &BulkItem| matches!(item.outcome, ItemOutcome::Rejected(Rejection::TooDear(_)));
    match (action, outcome) {
        (Action::Write(op), Outcome::Rejected(_)) => vec![op.key],
        (Action::Bulk(ops), Outcome::Bulk(items)) => {
            ops.into_iter().zip(items).filter(|(_, item)| is_dear(item)).map(|(op, _)| op.key).collect()
        }
        _ => Vec::new(),
    }
}

/// Tells whether a command has conditions on an entry of these, or patches one. Passes over commands that look for their entries: such
/// requests have few places.
fn looks_into(action: &Action, is_of_these: &dyn Fn(&Key) -> bool) -> bool {
    match action {
        Action::Write(op) => of_write(op, is_of_these),
        Action::Bulk(ops) => ops.iter().any(|op| of_write(op, is_of_these)),
        Action::Txn(txn) => of_txn(txn, is_of_these),
        _ => false,
    }
}

/// All entries that a command has conditions on, or patches.
fn looked_into(action: &Action) -> BTreeSet<Key> {
    let keys = RefCell::new(BTreeSet::new());
    looks_into(action, &|key| {
        keys.borrow_mut().insert(key.clone());
        false
    });
    keys.into_inner()
}

fn of_write(op: &WriteOp, is_of_these: &dyn Fn(&Key) -> bool) -> bool {
    (!op.condition.is_empty() || op.change.patch().is_some()) && is_of_these(&op.key)
}

fn of_txn(txn: &Txn, is_of_these: &dyn Fn(&Key) -> bool) -> bool {
    let of_check = |check: &Check| !check.condition.is_empty() && is_of_these(&check.key);
    txn.checks.iter().any(of_check) || of_steps(&txn.then, is_of_these) || of_steps(&txn.otherwise, is_of_these)
}

fn of_steps(steps: &[Step], is_of_these: &dyn Fn(&Key) -> bool) -> bool {
    steps.iter().any(|step| match step {
        Step::Write(op) => of_write(op, is_of_these),
        Step::Txn(txn) => of_txn(txn, is_of_these),
        Step::Branch(branch) => of_steps(&branch.then, is_of_these) || of_steps(&branch.otherwise, is_of_these),
        Step::Get(_) | Step::List(_) | Step::Remove(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use quorate_machine::document::{Criteria, Json, TooDear};
    use quorate_machine::types::{Change, Expect, Expiry};

    use super::*;

    fn write(key: &str, is_conditional: bool) -> WriteOp {
        let terms = Json::parse(br#"[{"field":"a","op":"ncontains","value":7}]"#).expect("JSON");
        let condition = Criteria::read(&terms, "/if").expect("criteria");
        WriteOp {
            key: Key::new(key).expect("a key"),
            expect: Expect::ANY,
            condition: if is_conditional { condition } else { Criteria::default() },
            change: Change::Touch,
            expiry: Expiry::Keep,
            return_previous: false,
            session: None,
            guard: None,
        }
    }

    fn dear() -> Rejection {
        Rejection::TooDear(TooDear { limit: 1, actual: 2 })
    }

    #[tokio::test(start_paused = true)]
    async fn what_looks_into_an_entry_that_was_too_dear_is_known_for_a_while() {
        let entries = DearEntries::default();
        let again = Action::Write(write("a", true));
        assert!(!entries.are_looked_into(&again));
        entries.note(&Outcome::Rejected(Rejection::NotFound), || panic!("nobody asks what it was"));
        assert!(!entries.are_looked_into(&again));
        entries.note(&Outcome::Rejected(dear()), || Some(again.clone()));
        let nested = Txn { then: vec![Step::Write(write("a", true))], ..Txn::default() };
        let check =
            Check { key: Key::new("a").expect("a key"), expect: Expect::ANY, condition: write("a", true).condition };
        for (action, expected) in [
            (again.clone(), true),
            (Action::Write(write("a", false)), false),
            (Action::Write(write("b", true)), false),
            (Action::Bulk(vec![write("b", true), write("a", true)]), true),
            (Action::Txn(Txn { otherwise: vec![Step::Txn(nested)], ..Txn::default() }), true),
            (Action::Txn(Txn { checks: vec![check], ..Txn::default() }), true),
        ] {
            assert_eq!(entries.are_looked_into(&action), expected, "{action:?}");
            let encoded = command_codec::encode_command(&Command::unnamed(action));
            assert_eq!(entries.are_looked_into_by(&encoded), expected);
        }
        tokio::time::advance(REMEMBERED).await;
        assert!(!entries.are_looked_into(&again));
        assert!(!entries.may_be_any(), "no write looks any more");
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_much_is_known_by_all_that_it_looked_into() {
        let entries = DearEntries::default();
        let plain = Txn { then: vec![Step::Write(write("a", false))], ..Txn::default() };
        let note = |action| entries.note_taken(&command_codec::encode_command(&Command::unnamed(action)), DEAR_BYTES);
        note(Action::Txn(plain));
        assert!(!entries.may_be_any(), "it looked into nothing");
        note(Action::Bulk((0..17).map(|n| write(&format!("k{n}"), true)).collect()));
        assert!(!entries.may_be_any(), "each is little work");
        note(Action::Bulk(vec![write("a", true), write("b", false), write("c", true)]));
        let looks = |key| entries.are_looked_into(&Action::Write(write(key, true)));
        assert!(looks("a") && !looks("b") && looks("c"));
        tokio::time::advance(REMEMBERED).await;
        assert!(!looks("a"));
        let tell = |action| entries.note_told(&command_codec::encode_command(&Command::unnamed(action)));
        tell(Action::Bulk(vec![write("a", true), write("c", true)]));
        assert!(!looks("a") && !looks("c"), "nobody knows which of them");
        tell(Action::Bulk(vec![write("a", true), write("a", true)]));
        assert!(looks("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_bulk_only_what_was_too_dear_is_remembered() {
        let entries = DearEntries::default();
        let ops = vec![write("a", true), write("b", true)];
        let outcome = |rejection| BulkItem { revision: 1, outcome: ItemOutcome::Rejected(rejection) };
        let outcome = Outcome::Bulk(vec![outcome(Rejection::NotFound), outcome(dear())]);
        entries.note(&outcome, || Some(Action::Bulk(ops)));
        let looks = |key| entries.are_looked_into(&Action::Write(write(key, true)));
        assert!(!looks("a") && looks("b"));
    }
}
