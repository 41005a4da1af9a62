//! What a sound store does with entries, written for the eye: a map and the rules of writes.
//!
//! Owns the meaning of reads, writes, bulks and transactions on a state. Knows no time, so entries that live for a while are not
//! its business, nor when a lock on an entry ends by itself; and no named locks: whether a guard holds is judged where tokens are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::operation::{Change, Check, Step, Txn, Write};
use super::record::{Entry, Refused, StepSeen, TxnSeen, Written};

/// The entries, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// As they are shown: a locked one has no token.
    entries: BTreeMap<String, Entry>,
    /// The locks on them.
    locks: BTreeMap<String, Lock>,
}

/// A lock on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lock {
    /// What opens it.
    key: u64,
    /// The token that the entry has once it is unlocked.
    token: u64,
}

impl State {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entry of this key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Takes an entry away, and a lock on it.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        self.locks.remove(key);
        self.entries.remove(key)
    }

    /// Whether the entry is locked, as far as nothing ends by itself.
    pub fn is_locked(&self, key: &str) -> bool {
        self.locks.contains_key(key)
    }

    /// An entry and the lock on it, to be put back.
    fn kept(&self, key: &str) -> (String, Option<Entry>, Option<Lock>) {
        (key.to_owned(), self.entries.get(key).cloned(), self.locks.get(key).copied())
    }

    fn put_back(&mut self, (key, entry, lock): (String, Option<Entry>, Option<Lock>)) {
        self.remove(&key);
        self.locks.extend(lock.map(|lock| (key.clone(), lock)));
        self.entries.extend(entry.map(|entry| (key, entry)));
    }
}

/// Why a write would be refused, if it would.
pub fn refusal(state: &State, write: &Write) -> Option<Refused> {
    let refused = |code: &str, current: Option<&Entry>| Some(Refused { code: code.into(), current: current.cloned() });
    let Some(entry) = state.get(&write.key) else {
        return match (&write.change, write.cas) {
            (Change::Replace(_) | Change::Adjust { .. } | Change::Remove | Change::Lock(_) | Change::Unlock, _) => {
                refused("not_found", None)
            }
            (_, Some(_)) => refused("cas_mismatch", None),
            (_, None) => None,
        };
    };
    let lock = state.locks.get(&write.key);
    let has_key = lock.is_some() && write.cas == lock.map(|lock| lock.key);
    match &write.change {
        Change::Insert(_) => refused("already_exists", Some(entry)),
        Change::Lock(_) if lock.is_some() => refused("locked", Some(entry)),
        Change::Unlock if lock.is_none() => refused("not_lock_holder", Some(entry)),
        Change::Unlock if !has_key => refused("locked", Some(entry)),
        _ if lock.is_some() => {
            if has_key {
                None
            } else {
                refused("cas_mismatch", Some(entry))
            }
        }
        _ if write.cas.is_some() && write.cas != entry.cas => refused("cas_mismatch", Some(entry)),
        Change::Adjust { at_least: Some(least), .. } if !is_found(entry, *least) => {
            refused("condition_not_met", Some(entry))
        }
        _ => None,
    }
}

/// Carries out a write that is not refused. The key of a lock is its revision: nothing else is known of one that nobody was told.
pub fn apply(state: &mut State, write: &Write, revision: u64) -> Written {
    apply_told(state, write, revision, None)
}

/// The same where its client was told something: then that names the key of a lock, which follows from nothing that the model knows.
pub fn apply_told(state: &mut State, write: &Write, revision: u64, told: Option<&Written>) -> Written {
    if write.change.is_of_lock() {
        return relock(state, write, revision, told.and_then(|told| told.cas));
    }
    let value = match &write.change {
        Change::Adjust { amount, by, .. } => adjusted(state.get(&write.key), *amount, by),
        change => match change.value() {
            Some(value) => value.clone(),
            None => {
                state.remove(&write.key);
                return Written::default();
            }
        },
    };
    // Any write of who has the key ends the lock.
    state.locks.remove(&write.key);
    let before = state.get(&write.key);
    let entry = Entry {
        key: write.key.clone(),
        value,
        cas: Some(revision),
        create_revision: before.map_or(revision, |entry| entry.create_revision),
        mod_revision: revision,
        version: before.map_or(1, |entry| entry.version + 1),
    };
    let written = written(&entry);
    state.entries.insert(write.key.clone(), entry);
    written
}

/// The document after the patch.
fn adjusted(entry: Option<&Entry>, amount: i64, by: &str) -> Value {
    let mut document = entry.map_or_else(|| json!({}), |entry| entry.value.clone());
    document["n"] = (document["n"].as_i64().unwrap_or(0) + amount).into();
    document["by"] = by.into();
    document
}

/// Locks an entry or ends its lock. Its value stays, and so does all that is known of its versions.
fn relock(state: &mut State, write: &Write, revision: u64, told: Option<u64>) -> Written {
    let Some(entry) = state.entries.get_mut(&write.key) else { return Written::default() };
    let token = match write.change {
        Change::Lock(_) => {
            let key = told.unwrap_or(revision);
            state.locks.insert(write.key.clone(), Lock { key, token: revision });
            entry.cas = None;
            Some(key)
        }
        _ => {
            entry.cas = state.locks.remove(&write.key).map(|lock| lock.token).or(entry.cas);
            entry.cas
        }
    };
    Written { cas: token, ..written(entry) }
}

/// What the writer of an entry is told.
fn written(entry: &Entry) -> Written {
    Written { cas: entry.cas, create_revision: Some(entry.create_revision), version: Some(entry.version) }
}

/// Whether a check of a transaction holds.
pub fn holds(state: &State, check: &Check) -> bool {
    state.get(&check.key).and_then(|entry| entry.cas) == check.cas
}

/// Carries out a transaction, or says why a step was refused; then nothing is changed.
pub fn txn(state: &mut State, txn: &Txn, revision: u64) -> Result<TxnSeen, Refused> {
    let succeeded = txn.checks.iter().all(|check| holds(state, check));
    let mut undo = Vec::new();
    let mut steps = Vec::new();
    for step in txn.branch(succeeded) {
        match step {
            Step::Get(key) => steps.push(StepSeen::Entry(state.get(key).cloned())),
            Step::Write(write) => {
                if let Some(refused) = refusal(state, write) {
                    undo.into_iter().rev().for_each(|kept| state.put_back(kept));
                    return Err(refused);
                }
                undo.push(state.kept(&write.key));
                steps.push(StepSeen::Written(apply(state, write, revision)));
            }
        }
    }
    Ok(TxnSeen { succeeded, steps })
}

/// The entries below a prefix.
pub fn list<'a>(state: &'a State, prefix: &'a str) -> impl Iterator<Item = &'a Entry> {
    let below = state.entries.range(prefix.to_owned()..).map(|(_, entry)| entry);
    below.take_while(move |entry| entry.key.starts_with(prefix))
}

/// Whether a find of documents with `n` from here on finds the entry.
pub fn is_found(entry: &Entry, at_least: i64) -> bool {
    entry.value["n"].as_i64().is_some_and(|n| n >= at_least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Step;

    #[test]
    fn a_refused_transaction_leaves_everything_as_it_was() {
        let mut state = State::new();
        apply(&mut state, &Write::put("a", 1), 2);
        let before = state.clone();
        let steps =
            vec![Step::Write(Write::put("a", 2)), Step::Write(Write::put("b", 3)), Step::Write(Write::remove("c"))];
        let refused = txn(&mut state, &Txn { then: steps, ..Txn::default() }, 3).expect_err("c is not there");
        assert_eq!((refused.code.as_str(), &state), ("not_found", &before));
    }

    #[test]
    fn a_lock_on_an_entry_keeps_others_out_and_ends_with_a_write_of_its_holder() {
        let mut state = State::new();
        let code = |state: &State, write: Write| refusal(state, &write).map(|refused| refused.code);
        let (lock, unlock) = (Write::new("a", Change::Lock(9)), Write::new("a", Change::Unlock));
        assert_eq!(code(&state, lock.clone()).as_deref(), Some("not_found"));
        apply(&mut state, &Write::put("a", 1), 2);
        assert_eq!(code(&state, unlock.clone().cas(2)).as_deref(), Some("not_lock_holder"));
        assert_eq!(apply(&mut state, &lock, 3).cas, Some(3));
        assert_eq!(state.get("a").map(|entry| (entry.cas, entry.version)), Some((None, 1)));
        assert_eq!(code(&state, lock.clone()).as_deref(), Some("locked"));
        for cas in [None, Some(2)] {
            assert_eq!(code(&state, Write { cas, ..Write::put("a", 2) }).as_deref(), Some("cas_mismatch"));
        }
        assert_eq!(code(&state, unlock.clone().cas(2)).as_deref(), Some("locked"));
        assert_eq!(apply(&mut state, &unlock.clone().cas(3), 4).cas, Some(3));
        assert_eq!(state.get("a").and_then(|entry| entry.cas), Some(3));
        apply(&mut state, &lock, 5);
        assert_eq!(code(&state, Write::put("a", 2).cas(5)), None);
        apply(&mut state, &Write::put("a", 2).cas(5), 6);
        assert!(!state.is_locked("a") && state.get("a").and_then(|entry| entry.cas) == Some(6));
        let told = Written { cas: Some(77), ..Written::default() };
        assert_eq!(apply_told(&mut state, &lock, 7, Some(&told)).cas, Some(77));
        assert_eq!(code(&state, Write::put("a", 2).cas(7)).as_deref(), Some("cas_mismatch"));
        assert_eq!(code(&state, Write::put("a", 2).cas(77)), None);
        assert_eq!(apply(&mut state, &unlock.cas(77), 8).cas, Some(7));
    }

    #[test]
    fn a_patch_changes_what_is_there_and_its_condition_is_judged_on_that() {
        let mut state = State::new();
        let add = |amount, by: &str, at_least| Write::new("a", Change::Adjust { amount, by: by.into(), at_least });
        let code = |state: &State, write: Write| refusal(state, &write).map(|refused| refused.code);
        assert_eq!(code(&state, add(1, "x", None)).as_deref(), Some("not_found"));
        apply(&mut state, &Write::put("a", json!({"n": 5, "by": "w", "other": 1})), 2);
        assert_eq!(code(&state, add(-6, "x", Some(6))).as_deref(), Some("condition_not_met"));
        assert_eq!(code(&state, add(-5, "x", Some(5))), None);
        apply(&mut state, &add(-5, "x", Some(5)), 3);
        let value = state.get("a").map(|entry| entry.value.clone());
        assert_eq!(value, Some(json!({"n": 0, "by": "x", "other": 1})));
    }

    #[test]
    fn tokens_and_absence_are_judged_as_the_contract_says() {
        let mut state = State::new();
        let code = |state: &State, write: Write| refusal(state, &write).map(|refused| refused.code);
        assert_eq!(code(&state, Write::put("a", 1).cas(1)).as_deref(), Some("cas_mismatch"));
        assert_eq!(code(&state, Write::remove("a").cas(1)).as_deref(), Some("not_found"));
        assert_eq!(apply(&mut state, &Write::insert("a", 1), 4).version, Some(1));
        assert_eq!(code(&state, Write::insert("a", 1)).as_deref(), Some("already_exists"));
        assert_eq!(code(&state, Write::put("a", 1).cas(3)).as_deref(), Some("cas_mismatch"));
        assert_eq!(code(&state, Write::put("a", 1).cas(4)), None);
        assert_eq!(apply(&mut state, &Write::put("a", 2), 5).version, Some(2));
    }
}
