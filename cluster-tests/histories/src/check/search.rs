//! C2: linearizability of each key alone, by search, after Wing, Gong and Lowe.
//!
//! Owns the cross-check of the witness: it believes no revision, only values and times. Looks at keys that only single
//! operations touch. Bounded: a key that needs more steps is left to the witness, which judges every key; where there are more than
//! a few of these, it says that it does not know.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::operation::{Change, Operation, Write};
use crate::record::{Outcome, Record, Refused, Seen};
use crate::timeline::views;
use crate::{Counterexample, History, Verdict};

/// Most steps for one key.
const STEPS_MAX: u64 = 2_000_000;
/// One of so many keys may need more: some get dozens of writes at once, of which each order is as good as any.
const GIVEN_UP_IN: u64 = 20;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let tokens = Tokens::of(history);
    let (mut checked, mut keys, mut given_up) = (0, 0, Vec::new());
    for (key, records) in by_key(history) {
        let calls: Option<Vec<Option<Call>>> = records.iter().map(|record| call_of(record, &tokens)).collect();
        // Something of this key is not for this checker.
        let Some(calls) = calls else { continue };
        keys += 1;
        match Search::new(calls.into_iter().flatten().collect()).run() {
            Found::Order(calls) => checked += calls,
            Found::None(records) => {
                return Verdict::Broken(Counterexample::new(format!("no order explains the values of {key}"), records));
            }
            Found::GaveUp => given_up.push(key),
        }
    }
    match given_up.first() {
        Some(key) if given_up.len() as u64 * GIVEN_UP_IN > keys => {
            Verdict::Unknown(format!("{} keys of {keys} take too long, {key} among them", given_up.len()))
        }
        _ => Verdict::Holds(checked),
    }
}

/// The single operations of each key that nothing else touches.
fn by_key(history: &History) -> BTreeMap<&str, Vec<&Record>> {
    let mut keys = BTreeMap::<_, Vec<_>>::new();
    let mut others = BTreeSet::new();
    for record in &history.records {
        match &record.operation {
            Operation::Get { key } => keys.entry(key.as_str()).or_default().push(record),
            Operation::Write(Write { key, guard: None, ttl_ms: None, .. }) => keys.entry(key).or_default().push(record),
            operation => others.extend(operation.writes().into_iter().map(|write| write.key.as_str())),
        }
    }
    keys.retain(|key, _| !others.contains(key));
    keys
}

/// Which value each token stands for. A number for each value makes comparing cheap.
struct Tokens {
    values: HashMap<String, u32>,
    by_token: HashMap<(String, u64), u32>,
}

impl Tokens {
    fn of(history: &History) -> Self {
        let mut tokens = Self { values: HashMap::new(), by_token: HashMap::new() };
        for entry in views(history) {
            let value = tokens.number(&entry.value);
            if let Some(cas) = entry.cas {
                tokens.by_token.insert((entry.key.clone(), cas), value);
            }
        }
        for record in &history.records {
            for value in record.operation.writes().into_iter().filter_map(|write| write.change.value()) {
                tokens.number(value);
            }
            let (Operation::Write(write), Some(decided)) = (&record.operation, record.decided()) else { continue };
            if let (Seen::Written(written), Some(value)) = (&decided.seen, write.change.value())
                && let Some(cas) = written.cas
            {
                let value = tokens.number(value);
                tokens.by_token.insert((write.key.clone(), cas), value);
            }
        }
        tokens
    }

    fn number(&mut self, value: &serde_json::Value) -> u32 {
        let next = u32::try_from(self.values.len()).expect("fewer values than that");
        *self.values.entry(value.to_string()).or_insert(next)
    }
}

/// What an operation does to the value of its key.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// It reads this.
    Read(Option<u32>),
    /// It leaves this, where the need is met.
    Set(Option<u32>, Precondition),
    /// It was refused, so the need was not met.
    Refused(Precondition),
}

/// What a write needs.
#[derive(Debug, Clone, Copy)]
enum Precondition {
    Nothing,
    Absent,
    Present,
    Value(u32),
}

impl Precondition {
    fn is_met(self, state: Option<u32>) -> bool {
        match self {
            Self::Nothing => true,
            Self::Absent => state.is_none(),
            Self::Present => state.is_some(),
            Self::Value(value) => state == Some(value),
        }
    }
}

/// An operation from its call to its end.
#[derive(Debug, Clone, Copy)]
struct Call {
    record: u64,
    act: Act,
    call: u64,
    end: u64,
    /// Whether nobody knows if it happened.
    is_open: bool,
}

impl Call {
    /// The value after it, if it can happen now.
    fn apply(&self, state: Option<u32>) -> Option<Option<u32>> {
        match self.act {
            Act::Read(value) => (value == state).then_some(state),
            Act::Set(value, need) if need.is_met(state) => Some(value),
            Act::Set(..) => self.is_open.then_some(state),
            Act::Refused(need) => (!need.is_met(state)).then_some(state),
        }
    }
}

/// The operation as the search sees it: `Some(None)` if it had no effect and tells nothing, `None` if nothing can be said of its
/// key.
fn call_of(record: &Record, tokens: &Tokens) -> Option<Option<Call>> {
    let call = |act, is_open| {
        let end = if is_open { u64::MAX } else { record.end };
        Some(Some(Call { record: record.id, act, call: record.call, end, is_open }))
    };
    let number = |value: &serde_json::Value| tokens.values[&value.to_string()];
    match (&record.operation, &record.outcome) {
        (_, Outcome::Failed(_)) | (Operation::Get { .. }, Outcome::Unknown(_)) => Some(None),
        (Operation::Get { .. }, Outcome::Decided(decided)) => {
            let Seen::Entry(entry) = &decided.seen else { return None };
            call(Act::Read(entry.as_ref().map(|entry| number(&entry.value))), false)
        }
        // A locked entry has no token, so that values alone do not say what is refused.
        (Operation::Write(write), _) if write.change.is_of_lock() => None,
        // Its value depends on what was there.
        (Operation::Write(Write { change: Change::Adjust { .. }, .. }), _) => None,
        (Operation::Write(write), outcome) => {
            let need = match (write.cas, &write.change) {
                (Some(cas), _) => Precondition::Value(*tokens.by_token.get(&(write.key.clone(), cas))?),
                (None, Change::Put(_)) => Precondition::Nothing,
                (None, Change::Insert(_)) => Precondition::Absent,
                (None, _) => Precondition::Present,
            };
            let set = Act::Set(write.change.value().map(number), need);
            match outcome {
                Outcome::Unknown(_) => call(set, true),
                Outcome::Decided(decided) => match &decided.seen {
                    Seen::Written(_) => call(set, false),
                    Seen::Refused(Refused { code, .. }) if code == "not_found" => {
                        call(Act::Refused(Precondition::Present), false)
                    }
                    Seen::Refused(Refused { code, .. }) if code == "already_exists" || code == "cas_mismatch" => {
                        call(Act::Refused(need), false)
                    }
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}

/// What the search found.
enum Found {
    /// An order of so many calls.
    Order(u64),
    /// There is none; these calls are where the longest try ended.
    None(Vec<u64>),
    /// It would take too long.
    GaveUp,
}

/// A depth-first search with a memory of where it has been.
struct Search {
    calls: Vec<Call>,
    is_done: Vec<u64>,
    seen: HashSet<(Vec<u64>, Option<u32>)>,
    /// The calls taken, each with the value before it.
    taken: Vec<(usize, Option<u32>)>,
    deepest: Vec<usize>,
    steps: u64,
}

impl Search {
    fn new(mut calls: Vec<Call>) -> Self {
        calls.sort_by_key(|call| (call.call, call.end));
        let words = calls.len().div_ceil(64);
        let (seen, taken, deepest) = Default::default();
        Self { calls, is_done: vec![0; words], seen, taken, deepest, steps: 0 }
    }

    fn run(mut self) -> Found {
        let must = self.calls.iter().filter(|call| !call.is_open).count();
        let (mut state, mut from, mut closed) = (None, 0, 0);
        while closed < must {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Found::GaveUp;
            }
            match self.next(state, from) {
                Some((at, after)) => {
                    self.set(at, true);
                    closed += usize::from(!self.calls[at].is_open);
                    self.taken.push((at, state));
                    (state, from) = (after, 0);
                    if self.taken.len() > self.deepest.len() {
                        self.deepest = self.taken.iter().map(|(at, _)| *at).collect();
                    }
                }
                None => {
                    let Some((at, before)) = self.taken.pop() else { return Found::None(self.witnesses()) };
                    self.set(at, false);
                    closed -= usize::from(!self.calls[at].is_open);
                    (state, from) = (before, at + 1);
                }
            }
        }
        Found::Order(self.calls.len() as u64)
    }

    /// The next call from `from` on that could be the next in the order, was not tried here before, and the value after it.
    fn next(&mut self, state: Option<u32>, from: usize) -> Option<(usize, Option<u32>)> {
        // Nothing may come before a call that ended before it was called.
        let first_end = (0..self.calls.len()).filter(|at| !self.is_set(*at)).map(|at| self.calls[at].end).min()?;
        for at in from..self.calls.len() {
            if self.calls[at].call > first_end {
                return None;
            }
            if self.is_set(at) {
                continue;
            }
            let Some(after) = self.calls[at].apply(state) else { continue };
            self.set(at, true);
            let is_new = self.seen.insert((self.is_done.clone(), after));
            self.set(at, false);
            if is_new {
                return Some((at, after));
            }
        }
        None
    }

    fn is_set(&self, at: usize) -> bool {
        self.is_done[at / 64] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, at: usize, to: bool) {
        let bit = 1 << (at % 64);
        if to { self.is_done[at / 64] |= bit } else { self.is_done[at / 64] &= !bit }
    }

    /// The last calls of the longest try, and those that could not follow.
    fn witnesses(&self) -> Vec<u64> {
        let tail = self.deepest.iter().rev().take(3).copied();
        let stuck = (0..self.calls.len()).filter(|at| !self.deepest.contains(at)).take(4);
        tail.chain(stuck).map(|at| self.calls[at].record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(record: u64, act: Act, call: u64, end: u64) -> Call {
        Call { record, act, call, end, is_open: end == u64::MAX }
    }

    fn set(value: u32) -> Act {
        Act::Set(Some(value), Precondition::Nothing)
    }

    #[test]
    fn overlapping_calls_may_come_in_any_order_and_others_may_not() {
        let concurrent =
            vec![call(0, set(1), 0, 10), call(1, Act::Read(Some(1)), 1, 2), call(2, Act::Read(None), 3, 4)];
        assert!(matches!(Search::new(concurrent).run(), Found::None(_)), "it was seen and then was not");
        let fine = vec![call(0, set(1), 0, 10), call(1, Act::Read(None), 1, 2), call(2, Act::Read(Some(1)), 3, 4)];
        assert!(matches!(Search::new(fine).run(), Found::Order(3)));
        let stale = vec![call(0, set(1), 0, 1), call(1, set(2), 2, 3), call(2, Act::Read(Some(1)), 4, 5)];
        assert!(matches!(Search::new(stale).run(), Found::None(_)));
    }

    #[test]
    fn a_call_of_unknown_fate_may_happen_late_or_never() {
        let late = vec![
            call(0, set(1), 0, u64::MAX),
            call(1, set(2), 5, 6),
            call(2, Act::Read(Some(2)), 7, 8),
            call(3, Act::Read(Some(1)), 9, 10),
        ];
        assert!(matches!(Search::new(late).run(), Found::Order(_)));
        let twice = vec![
            call(0, set(1), 0, u64::MAX),
            call(1, Act::Read(Some(1)), 5, 6),
            call(2, set(2), 7, 8),
            call(3, Act::Read(Some(1)), 9, 10),
        ];
        assert!(matches!(Search::new(twice).run(), Found::None(_)));
    }
}
