//! Entries and searches that cost much work: a recent command on them took much, or was refused for it.
//!
//! Owns for how long they are remembered, and which commands look into them: these have a queue of their own and go one at a time, so that no
//! crowd of them stands before others. A search is remembered by who asked and where it looked. Known to this node alone, and a hint: it
//! chooses a queue and decides nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_machine::command_codec;
use quorate_machine::keyspace::after_prefix;
use quorate_machine::types::{
    Action, Branch, BulkItem, Check, Command, ItemOutcome, Key, KeyRange, Outcome, Rejection, Step, Txn, WriteOp,
};
use quorate_node_core::limits::DEAR_BYTES;
use tokio::time::Instant;

/// Time for which an entry or a search is remembered after such a command.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Most entries remembered. Each had its command, at a cost to all nodes, within that time.
const KEYS_MAX: usize = 1_024;

/// Least part of each entry in what a command took. One with many operations costs its account as many, and each may be little work: it must
/// not have all commands on any of its entries go one at a time.
const PART_BYTES: usize = DEAR_BYTES / 16;

/// Most principals of whom searches are remembered. All their searches took more time than there is in which they are remembered.
const PRINCIPALS_MAX: usize = 1_024;

/// Most places in which the searches of one principal are dear. With more, all its searches are: each place would have one that goes before
/// others every time.
const PLACES_MAX: usize = 8;

/// The entries, and the searches.
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
    searches: Searches,
    /// Until when the last of them is.
    latest: Option<Instant>,
}

/// A search, also that of a step of a transaction for a range: the principal that asked for it, and what all keys begin with that it looks at.
type Search<'c> = (&'c str, &'c [u8]);

/// The searches that are remembered: by principal, until when each place is.
#[derive(Debug, Default)]
struct Searches(BTreeMap<String, BTreeMap<Vec<u8>, Instant>>);

impl Searches {
    /// Tells whether a search looks where one of the same principal was dear: at all of it, or at a part.
    fn has(&self, (principal, prefix): Search<'_>, now: Instant) -> bool {
        let places = self.0.get(principal).into_iter().flatten();
        let mut places = places.filter(|(_, until)| **until > now);
        places.any(|(place, _)| place.starts_with(prefix) || prefix.starts_with(place))
    }

    fn remember(&mut self, (principal, prefix): Search<'_>, until: Instant) {
        let has_room = self.0.len() < PRINCIPALS_MAX || self.0.contains_key(principal);
        if has_room {
            let places = self.0.entry(principal.to_owned()).or_default();
            let place: &[u8] = if places.len() < PLACES_MAX || places.contains_key(prefix) { prefix } else { &[] };
            places.insert(place.to_vec(), until);
        }
    }

    fn forget_until(&mut self, now: Instant) {
        self.0.retain(|_, places| {
            places.retain(|_, until| *until > now);
            !places.is_empty()
        });
    }
}

impl DearEntries {
    /// Whether any are remembered. Cheap.
    pub fn may_be_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Tells whether an encoded command looks into one of them. Decodes nothing where there are none.
    pub fn are_looked_into_by(&self, command: &[u8]) -> bool {
        let looks = |command: Command| self.are_looked_into(&command);
        self.may_be_any() && command_codec::decode_command(command).is_ok_and(looks)
    }

    /// Tells whether a command looks into one of them.
    pub fn are_looked_into(&self, command: &Command) -> bool {
        if !self.may_be_any() {
            return false;
        }
        let (mut known, now) = (self.known.lock(), Instant::now());
        if known.latest.is_none_or(|latest| latest <= now) {
            *known = Known::default();
            self.any.store(false, Ordering::Relaxed);
            return false;
        }
        searches_of(command).into_iter().any(|search| known.searches.has(search, now))
            || looks_into(&command.action, &|key| known.until.get(key).is_some_and(|until| *until > now))
    }

    /// Remembers the entries for which a command was refused, if it was, or where it searched. `command` gives what it was.
    pub fn note(&self, outcome: &Outcome, command: impl FnOnce() -> Option<Command>) {
        if outcome.steps_in_vain() == 0 {
            return;
        }
        if let Outcome::TxnRejected(rejected) = outcome {
            self.remember(rejected.key.clone(), None);
        } else if let Some(command) = command() {
            self.remember(refused(&command.action, outcome), searches_of(&command));
        }
    }

    /// Remembers where an encoded command searched that took so much, and the entries into which it looks, unless there are many.
    pub fn note_taken(&self, command: &[u8], bytes: usize) {
        let Ok(command) = command_codec::decode_command(command) else { return };
        let (keys, searches) = (looked_into(&command.action), searches_of(&command));
        if (keys.len() + searches.len()) * PART_BYTES <= bytes {
            self.remember(keys, searches);
        }
    }

    /// Remembers where an encoded command searched that took so much, unless in many places, and no entries.
    pub fn note_search(&self, command: &[u8], bytes: usize) {
        let Ok(command) = command_codec::decode_command(command) else { return };
        let searches = searches_of(&command);
        if !searches.is_empty() && searches.len() * PART_BYTES <= bytes {
            self.remember(None, searches);
        }
    }

    /// Remembers where such a command searches, where it is one place only, or the entry into which it looks: of several it is not known which it
    /// is.
    pub fn note_told(&self, command: &[u8]) {
        let Ok(command) = command_codec::decode_command(command) else { return };
        let (mut keys, searches) = (looked_into(&command.action), searches_of(&command));
        if !searches.is_empty() {
            keys.clear();
        }
        if keys.len() + searches.len() == 1 {
            self.remember(keys, searches);
        }
    }

    fn remember<'c>(&self, keys: impl IntoIterator<Item = Key>, searches: impl IntoIterator<Item = Search<'c>>) {
        let (mut known, now) = (self.known.lock(), Instant::now());
        known.until.retain(|_, until| *until > now);
        known.searches.forget_until(now);
        for key in keys {
            if known.until.len() < KEYS_MAX || known.until.contains_key(&key) {
                known.until.insert(key, now + REMEMBERED);
                known.latest = Some(now + REMEMBERED);
            }
        }
        for search in searches {
            known.searches.remember(search, now + REMEMBERED);
            known.latest = Some(now + REMEMBERED);
        }
        self.any.store(!known.until.is_empty() || !known.searches.0.is_empty(), Ordering::Relaxed);
    }
}

/// The searches of a command that looks for entries, each place once.
fn searches_of(command: &Command) -> Vec<Search<'_>> {
    let mut places = BTreeSet::new();
    match &command.action {
        Action::Where(op) => _ = places.insert(op.prefix.as_slice()),
        Action::Claim(op) => _ = places.insert(op.prefix.as_slice()),
        // Without users all callers are one, and the ranges of one of them would be dear for all.
        Action::Txn(txn) if !command.principal.is_empty() => places_of_txn(txn, &mut places),
        _ => {}
    }
    places.into_iter().map(|place| (command.principal.as_str(), place)).collect()
}

fn places_of_txn<'c>(txn: &'c Txn, places: &mut BTreeSet<&'c [u8]>) {
    places_of_steps(&txn.then, places);
    places_of_steps(&txn.otherwise, places);
}

fn places_of_steps<'c>(steps: &'c [Step], places: &mut BTreeSet<&'c [u8]>) {
    for step in steps {
        match step {
            Step::List(list) => places.extend(place_of(&list.range)),
            Step::Remove(removal) => places.extend(place_of(&removal.range)),
            Step::Txn(txn) => places_of_txn(txn, places),
            Step::Branch(Branch { comparisons, then, otherwise }) => {
                places.extend(comparisons.iter().filter_map(|comparison| place_of(&comparison.range)));
                places_of_steps(then, places);
                places_of_steps(otherwise, places);
            }
            Step::Get(_) | Step::Write(_) => {}
        }
    }
}

/// The beginning that all keys of a range share; nothing for one key alone, which is no search.
fn place_of(range: &KeyRange) -> Option<&[u8]> {
    let (start, end) = (range.start(), range.end());
    if range.key().is_some() {
        return None;
    }
    if after_prefix(start).as_deref() == end {
        return Some(start);
    }
    let in_common = start.iter().zip(end.unwrap_or_default()).take_while(|(one, other)| one == other).count();
    Some(&start[..in_common])
}

/// The entries of which writes were refused as too dear.
fn refused(action: &Action, outcome: &Outcome) -> Vec<Key> {
    let is_dear = |item: &BulkItem| matches!(item.outcome, ItemOutcome::Rejected(Rejection::TooDear(_)));
    match (action, outcome) {
        (Action::Write(op), Outcome::Rejected(_)) => vec![op.key.clone()],
        (Action::Bulk(ops), Outcome::Bulk(items)) => {
            ops.iter().zip(items).filter(|(_, item)| is_dear(item)).map(|(op, _)| op.key.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Tells whether a command has conditions on an entry of these, or patches one. Passes over commands that look for their entries: see
/// [`searches_of`].
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
    use quorate_machine::document::{Criteria, Json, Order, TooDear};
    use quorate_machine::types::{
        Change, ClaimOp, Compared, Comparison, ComparisonOperator, Expect, Expiry, ListOrder, ListShown, ListStep,
        RemoveStep, RevisionFilter, WhereChange, WhereOp,
    };

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
        let again = Command::unnamed(Action::Write(write("a", true)));
        assert!(!entries.are_looked_into(&again));
        entries.note(&Outcome::Rejected(Rejection::NotFound), || panic!("nobody asks what it was"));
        assert!(!entries.are_looked_into(&again));
        entries.note(&Outcome::Rejected(dear()), || Some(again.clone()));
        let nested = Txn { then: vec![Step::Write(write("a", true))], ..Txn::default() };
        let check =
            Check { key: Key::new("a").expect("a key"), expect: Expect::ANY, condition: write("a", true).condition };
        for (action, expected) in [
            (again.action.clone(), true),
            (Action::Write(write("a", false)), false),
            (Action::Write(write("b", true)), false),
            (Action::Bulk(vec![write("b", true), write("a", true)]), true),
            (Action::Txn(Txn { otherwise: vec![Step::Txn(nested)], ..Txn::default() }), true),
            (Action::Txn(Txn { checks: vec![check], ..Txn::default() }), true),
        ] {
            let command = Command::unnamed(action);
            assert_eq!(entries.are_looked_into(&command), expected, "{command:?}");
            let encoded = command_codec::encode_command(&command);
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
        let looks = |key| entries.are_looked_into(&Command::unnamed(Action::Write(write(key, true))));
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
        entries.note(&outcome, || Some(Command::unnamed(Action::Bulk(ops))));
        let looks = |key| entries.are_looked_into(&Command::unnamed(Action::Write(write(key, true))));
        assert!(!looks("a") && looks("b"));
    }

    /// A claim of somebody.
    fn claim(principal: &str, prefix: &str) -> Command {
        let op = ClaimOp {
            prefix: prefix.into(),
            criteria: Criteria::default(),
            order: Order::new(Vec::new()),
            limit: 1,
            lock_ms: 300,
            patch: None,
            guard: None,
        };
        Command { principal: principal.to_owned(), ..Command::unnamed(Action::Claim(op)) }
    }

    /// A deletion of all that is found.
    fn deletion(principal: &str, prefix: &str) -> Command {
        let op = WhereOp {
            prefix: prefix.into(),
            criteria: Criteria::default(),
            condition: Criteria::default(),
            change: WhereChange::Remove,
            limit: 1,
            after: None,
            guard: None,
        };
        Command { principal: principal.to_owned(), ..Command::unnamed(Action::Where(op)) }
    }

    #[tokio::test(start_paused = true)]
    async fn what_searches_where_a_search_of_the_same_principal_took_much_is_known_for_a_while() {
        let entries = DearEntries::default();
        assert!(!entries.are_looked_into(&claim("ann", "a/")));
        entries.note_taken(&command_codec::encode_command(&deletion("ann", "a/b")), DEAR_BYTES);
        for (command, expected) in [
            (claim("ann", "a/b"), true),
            (deletion("ann", "a/b/c"), true),
            (claim("ann", ""), true),
            (claim("ann", "a/c"), false),
            (claim("bob", "a/b"), false),
            (Command { principal: "ann".into(), ..Command::unnamed(Action::Write(write("a/b", true))) }, false),
        ] {
            assert_eq!(entries.are_looked_into(&command), expected, "{command:?}");
            assert_eq!(entries.are_looked_into_by(&command_codec::encode_command(&command)), expected);
        }
        tokio::time::advance(REMEMBERED).await;
        assert!(!entries.are_looked_into(&claim("ann", "a/b")));
        assert!(!entries.may_be_any(), "no write looks any more");
        entries.note_told(&command_codec::encode_command(&claim("bob", "b/")));
        assert!(entries.are_looked_into(&deletion("bob", "b/")));
        for command in [deletion("ann", "b/"), Command::unnamed(Action::Write(write("b/", true)))] {
            entries.note_search(&command_codec::encode_command(&command), DEAR_BYTES);
        }
        assert!(entries.are_looked_into(&claim("ann", "b/c")));
        assert!(!entries.are_looked_into(&Command::unnamed(Action::Write(write("b/", true)))), "no search");
        entries.note(&Outcome::Rejected(dear()), || Some(claim("ann", "c/")));
        assert!(entries.are_looked_into(&claim("ann", "c/")) && !entries.are_looked_into(&claim("bob", "c/")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_ranges_of_a_transaction_are_searches() {
        let entries = DearEntries::default();
        let range = |start: &str, end: &str| KeyRange::new(start.into(), Some(end.into()));
        let list = |range| {
            let (order, filter) = (ListOrder::BY_KEY, RevisionFilter::ALL);
            Step::List(ListStep { range, limit: 1, order, filter, shown: ListShown::Entries, at: None })
        };
        let txn = |steps: Vec<Step>| {
            let action = Action::Txn(Txn { then: steps, ..Txn::default() });
            Command { principal: "ann".into(), ..Command::unnamed(action) }
        };
        let remove = |range| Step::Remove(RemoveStep { range, return_previous: false });
        entries.note_taken(&command_codec::encode_command(&txn(vec![list(KeyRange::of_key(b"a"))])), DEAR_BYTES);
        assert!(!entries.may_be_any(), "one key is no search");
        let many = (b'a'..=b'z').map(|n| list(KeyRange::new(vec![n], Some(vec![n + 1])))).collect();
        entries.note_taken(&command_codec::encode_command(&txn(many)), DEAR_BYTES);
        assert!(!entries.may_be_any(), "each is little work");
        let nested = txn(vec![Step::Txn(Txn { otherwise: vec![list(range("a/1", "a/2"))], ..Txn::default() })]);
        entries.note_taken(&command_codec::encode_command(&nested), DEAR_BYTES);
        let comparison = |range| {
            let (operator, with) = (ComparisonOperator::Equal, Compared::Version(0));
            let comparisons = vec![Comparison { range, operator, with }];
            Step::Branch(Branch { comparisons, then: Vec::new(), otherwise: Vec::new() })
        };
        for (command, expected) in [
            (nested, true),
            (txn(vec![remove(range("a/1x", "a/1z"))]), true),
            (txn(vec![comparison(range("a/", "a0"))]), true),
            (txn(vec![list(range("a/2", "a/3"))]), false),
            (txn(vec![list(KeyRange::of_key(b"a/1"))]), false),
            (txn(vec![list(KeyRange::new(Vec::new(), None))]), true),
            (claim("ann", "a/1"), true),
            (claim("bob", "a/1"), false),
        ] {
            assert_eq!(entries.are_looked_into(&command), expected, "{command:?}");
        }
        let of_nobody = |steps| Command { principal: String::new(), ..txn(steps) };
        entries.note_taken(&command_codec::encode_command(&of_nobody(vec![list(range("b", "c"))])), DEAR_BYTES);
        assert!(!entries.are_looked_into(&of_nobody(vec![list(range("b", "c"))])), "it may be anybody's");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_searches_much_in_many_places_is_known_in_all() {
        let entries = DearEntries::default();
        let note = |n: usize| {
            entries.note_taken(&command_codec::encode_command(&claim("ann", &format!("{n}/"))), DEAR_BYTES);
        };
        (0..PLACES_MAX).for_each(note);
        assert!(!entries.are_looked_into(&claim("ann", "elsewhere/")));
        note(PLACES_MAX);
        assert!(entries.are_looked_into(&claim("ann", "elsewhere/")));
        assert!(!entries.are_looked_into(&claim("bob", "elsewhere/")));
        let kept = |entries: &DearEntries| entries.known.lock().searches.0["ann"].len();
        (0..100).for_each(note);
        assert_eq!(kept(&entries), PLACES_MAX + 1);
    }
}
