//! C6: locks and elections have one holder at a time, their tokens only grow, and a guarded write applies only while its token
//! holds.
//!
//! Owns two views of that: by revisions, since a token is the revision of its grant, and by time, which believes no revision.
//! Counts on exclusive locks of one slot.

use std::collections::BTreeMap;

use super::sessions::{Life, lives};
use crate::operation::{Guard, Hold, Operation, Write, writes_of};
use crate::record::{Record, Seen};
use crate::{Counterexample, History, Verdict};

type Checked = Result<(), Box<Counterexample>>;

/// All that is known of one lock or election.
#[derive(Default)]
struct Lock<'h> {
    /// The grants: token, session, and who was told.
    grants: Vec<(u64, &'h str, &'h Record)>,
    /// Who gave which token back, or tried to.
    releases: Vec<(u64, &'h Record)>,
    /// Guarded writes that took effect: token, revision, who.
    guarded: Vec<(u64, u64, &'h Record)>,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let lives = lives(history);
    let mut checked = 0;
    for (hold, lock) in locks(history) {
        let judged = lock
            .check_tokens(hold)
            .and_then(|()| lock.check_guards(hold))
            .and_then(|()| lock.check_times(hold, &lives));
        if let Err(found) = judged {
            return Verdict::Broken(found);
        }
        checked += lock.grants.len() + lock.guarded.len();
    }
    Verdict::Holds(checked as u64)
}

fn locks(history: &History) -> BTreeMap<&Hold, Lock<'_>> {
    let mut locks = BTreeMap::<_, Lock<'_>>::new();
    for record in &history.records {
        let decided = record.decided();
        match (&record.operation, decided.map(|decided| &decided.seen)) {
            (Operation::Acquire { hold, session, .. }, Some(Seen::Held { token })) => {
                locks.entry(hold).or_default().grants.push((*token, session, record));
            }
            (Operation::Release { hold, token }, _) => {
                locks.entry(hold).or_default().releases.push((*token, record));
            }
            (Operation::Write(write), Some(Seen::Written(_))) => note_guard(&mut locks, [write], record),
            (Operation::Txn(txn), Some(Seen::Txn(seen))) => {
                note_guard(&mut locks, writes_of(txn.branch(seen.succeeded)), record);
            }
            _ => {}
        }
    }
    locks
}

fn note_guard<'h>(
    locks: &mut BTreeMap<&'h Hold, Lock<'h>>,
    writes: impl IntoIterator<Item = &'h Write>,
    record: &'h Record,
) {
    let revision = record.decided().map_or(0, |decided| decided.revision);
    for Guard { hold, token } in writes.into_iter().filter_map(|write| write.guard.as_ref()) {
        locks.entry(hold).or_default().guarded.push((*token, revision, record));
    }
}

impl Lock<'_> {
    /// A token has one session, and later grants have greater ones.
    fn check_tokens(&self, hold: &Hold) -> Checked {
        let mut owners: BTreeMap<u64, (&str, u64)> = BTreeMap::new();
        for (token, session, record) in &self.grants {
            let (owner, witness) = *owners.entry(*token).or_insert((session, record.id));
            if owner != *session {
                let what = format!("{hold}: sessions {owner} and {session} both have token {token}");
                return Err(Counterexample::new(what, [witness, record.id]));
            }
        }
        let mut by_end = self.grants.clone();
        by_end.sort_by_key(|(.., record)| record.end);
        for (token, _, record) in &self.grants {
            let before =
                by_end.iter().take_while(|(.., other)| other.end < record.call).max_by_key(|(token, ..)| *token);
            if let Some((greater, _, other)) = before.filter(|(before, ..)| before > token) {
                let what = format!("{hold}: token {token} was given after the greater one {greater}");
                return Err(Counterexample::new(what, [other.id, record.id]));
            }
        }
        let mut released = BTreeMap::new();
        for (token, record) in self.releases.iter().filter(|(_, record)| is_done(record)) {
            if let Some(other) = released.insert(*token, record.id) {
                return Err(Counterexample::new(
                    format!("{hold}: token {token} was given back twice"),
                    [other, record.id],
                ));
            }
        }
        Ok(())
    }

    /// A guarded write applies after its grant, before the next one and before its token was given back.
    fn check_guards(&self, hold: &Hold) -> Checked {
        let tokens: BTreeMap<u64, u64> = self.grants.iter().map(|(token, _, record)| (*token, record.id)).collect();
        let released = self.releases.iter().filter(|(_, record)| is_done(record));
        let released: BTreeMap<u64, &Record> = released.map(|(token, record)| (*token, *record)).collect();
        for (token, revision, record) in &self.guarded {
            let wrong = |why: String, other: u64| {
                let what = format!("{hold}: a write guarded by {token} took effect at revision {revision}, {why}");
                Err(Counterexample::new(what, [other, record.id]))
            };
            if revision <= token {
                return wrong("before the token was given".into(), record.id);
            }
            if let Some((next, other)) = tokens.range(token + 1..).next().filter(|(next, _)| *next < revision) {
                return wrong(format!("after {next} was given"), *other);
            }
            if let Some(other) = released.get(token)
                && other.decided().is_some_and(|decided| decided.revision < *revision)
            {
                return wrong("after it was given back".into(), other.id);
            }
        }
        Ok(())
    }

    /// No two hold it at one time, as far as that is certain.
    fn check_times(&self, hold: &Hold, lives: &BTreeMap<&str, Life>) -> Checked {
        let mut held: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
        for (token, session, record) in &self.grants {
            let until = lives.get(session).map_or(0, |life| life.certain_until);
            let released =
                self.releases.iter().filter(|(released, _)| released == token).map(|(_, record)| record.call).min();
            let until = released.map_or(until, |released| released.min(until));
            let interval = held.entry(*token).or_insert((record.end, until, record.id));
            interval.0 = interval.0.min(record.end);
        }
        let mut intervals: Vec<_> = held.into_iter().filter(|(_, (from, until, _))| from < until).collect();
        intervals.sort_by_key(|(_, (from, ..))| *from);
        let mut longest: Option<(u64, u64, u64)> = None;
        for (token, (from, until, record)) in intervals {
            if let Some((other, other_until, other_record)) = longest
                && from < other_until
            {
                let what = format!(
                    "{hold}: tokens {other} and {token} were held at the same time, at {:.6} s",
                    from as f64 / 1e6
                );
                return Err(Counterexample::new(what, [other_record, record]));
            }
            if longest.is_none_or(|(_, other_until, _)| until > other_until) {
                longest = Some((token, until, record));
            }
        }
        Ok(())
    }
}

fn is_done(record: &Record) -> bool {
    record.decided().is_some_and(|decided| decided.seen == Seen::Done)
}
