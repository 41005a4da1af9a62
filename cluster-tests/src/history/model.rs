//! What a sound store does with entries, written for the eye: a map and the rules of writes.
//!
//! Owns the meaning of reads, writes, bulks and transactions on a state. Knows no time, so entries that live for a while are not
//! its business, and no locks: whether a guard holds is judged where tokens are.

use std::collections::BTreeMap;

use super::operation::{Change, Check, Step, Txn, Write};
use super::record::{Entry, Refused, StepSeen, TxnSeen, Written};

/// The entries, by key.
pub type State = BTreeMap<String, Entry>;

/// Why a write would be refused, if it would.
pub fn refusal(state: &State, write: &Write) -> Option<Refused> {
    let refused = |code: &str, current: Option<&Entry>| Some(Refused { code: code.into(), current: current.cloned() });
    let Some(entry) = state.get(&write.key) else {
        return match (&write.change, write.cas) {
            (Change::Replace(_) | Change::Remove, _) => refused("not_found", None),
            (_, Some(_)) => refused("cas_mismatch", None),
            (_, None) => None,
        };
    };
    match &write.change {
        Change::Insert(_) => refused("already_exists", Some(entry)),
        _ if write.cas.is_some() && write.cas != entry.cas => refused("cas_mismatch", Some(entry)),
        _ => None,
    }
}

/// Carries out a write that is not refused.
pub fn apply(state: &mut State, write: &Write, revision: u64) -> Written {
    let before = state.get(&write.key);
    let Some(value) = write.change.value() else {
        state.remove(&write.key);
        return Written::default();
    };
    let entry = Entry {
        key: write.key.clone(),
        value: value.clone(),
        cas: Some(revision),
        create_revision: before.map_or(revision, |entry| entry.create_revision),
        mod_revision: revision,
        version: before.map_or(1, |entry| entry.version + 1),
    };
    let written = written(&entry);
    state.insert(write.key.clone(), entry);
    written
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
                    undo.into_iter().rev().for_each(|(key, entry)| put_back(state, key, entry));
                    return Err(refused);
                }
                undo.push((write.key.clone(), state.get(&write.key).cloned()));
                steps.push(StepSeen::Written(apply(state, write, revision)));
            }
        }
    }
    Ok(TxnSeen { succeeded, steps })
}

fn put_back(state: &mut State, key: String, entry: Option<Entry>) {
    match entry {
        Some(entry) => state.insert(key, entry),
        None => state.remove(&key),
    };
}

/// The entries below a prefix.
pub fn list<'a>(state: &'a State, prefix: &'a str) -> impl Iterator<Item = &'a Entry> {
    let below = state.range(prefix.to_owned()..).map(|(_, entry)| entry);
    below.take_while(move |entry| entry.key.starts_with(prefix))
}

/// Whether a find of documents with `n` from here on finds the entry.
pub fn is_found(entry: &Entry, at_least: i64) -> bool {
    entry.value["n"].as_i64().is_some_and(|n| n >= at_least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::operation::Step;

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
