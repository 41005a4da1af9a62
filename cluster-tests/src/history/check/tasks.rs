//! C8: each task is completed once, given out to one worker at a time, and never before it is due.
//!
//! Owns following each task from its schedule to its end by what workers were told. Counts on ids that are scheduled once.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::operation::Operation;
use crate::history::record::{Claimed, Micros, Record, Seen};
use crate::history::{Counterexample, History, Verdict};

/// How much earlier than promised a task may come: it is due by the wall clock of the leader, in whole milliseconds.
const TOLERANCE: Micros = 20_000;
/// How much later a claim has to find it, beside failovers.
const LATE: Micros = 2_000_000;

type Checked = Result<(), Box<Counterexample>>;

/// All that is known of one task.
#[derive(Default)]
struct Task<'h> {
    scheduled: Option<(&'h Record, Micros)>,
    claims: Vec<Given<'h>>,
    /// Completions and returns that were asked for, by token, and whether they were to complete it.
    settled: Vec<(u64, bool, &'h Record)>,
}

/// That a task was given to somebody.
struct Given<'h> {
    claimed: &'h Claimed,
    lease: Micros,
    record: &'h Record,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let tasks = tasks(history);
    for ((queue, task), known) in &tasks {
        let name = format!("{queue}/{task}");
        let judged =
            known.check_due(&name).and_then(|()| known.check_claims(&name)).and_then(|()| known.check_done(&name));
        if let Err(found) = judged {
            return Verdict::Broken(found);
        }
    }
    let queues: BTreeSet<&str> = tasks.keys().map(|(queue, _)| *queue).collect();
    let found = queues.into_iter().try_for_each(|queue| check_found(history, queue, &tasks));
    Verdict::of(found.map(|()| tasks.len() as u64))
}

fn tasks(history: &History) -> BTreeMap<(&str, &str), Task<'_>> {
    let mut tasks = BTreeMap::<_, Task<'_>>::new();
    for record in &history.records {
        match (&record.operation, record.decided().map(|decided| &decided.seen)) {
            (Operation::Schedule { queue, task, delay_ms }, Some(Seen::Done)) => {
                tasks.entry((queue.as_str(), task.as_str())).or_default().scheduled = Some((record, delay_ms * 1_000));
            }
            (Operation::Claim { queue, lease_ms, .. }, Some(Seen::Claimed(claimed))) => {
                for claimed in claimed {
                    let given = Given { claimed, lease: lease_ms * 1_000, record };
                    tasks.entry((queue, &claimed.task)).or_default().claims.push(given);
                }
            }
            (Operation::Complete { queue, task, token }, _) => {
                tasks.entry((queue, task)).or_default().settled.push((*token, true, record));
            }
            (Operation::Fail { queue, task, token }, _) => {
                tasks.entry((queue, task)).or_default().settled.push((*token, false, record));
            }
            _ => {}
        }
    }
    tasks.values_mut().for_each(|task| task.claims.sort_by_key(|given| given.claimed.token));
    tasks
}

impl Task<'_> {
    fn check_due(&self, name: &str) -> Checked {
        let Some((scheduled, delay)) = self.scheduled else { return Ok(()) };
        let due = scheduled.call + delay;
        match self.claims.iter().find(|given| given.record.end + TOLERANCE < due) {
            Some(given) => {
                let what = format!("{name} was given out {} ms early", (due - given.record.end) / 1_000);
                Err(Counterexample::new(what, [scheduled.id, given.record.id]))
            }
            None => Ok(()),
        }
    }

    /// Tokens and attempts rise, and nobody else has it while a lease holds.
    fn check_claims(&self, name: &str) -> Checked {
        for pair in self.claims.windows(2) {
            let [before, after] = [&pair[0], &pair[1]];
            let wrong = |why: &str| {
                let what = format!("{name} was claimed by {} and {}: {why}", before.claimed.token, after.claimed.token);
                Err(Counterexample::new(what, [before.record.id, after.record.id]))
            };
            if before.claimed.token == after.claimed.token {
                return wrong("twice the same token");
            }
            if before.claimed.attempt >= after.claimed.attempt {
                return wrong("the attempts do not rise");
            }
            if after.record.end < before.record.call {
                return wrong("the greater token came first");
            }
            let settled = self
                .settled
                .iter()
                .any(|(token, _, record)| *token == before.claimed.token && record.call < after.record.end);
            if !settled && after.record.end + TOLERANCE < before.record.call + before.lease - before.lease / 100 {
                return wrong("the first still had it");
            }
        }
        Ok(())
    }

    /// It is completed once, by the last who had it.
    fn check_done(&self, name: &str) -> Checked {
        let is_done = |record: &Record| record.decided().is_some_and(|decided| decided.seen == Seen::Done);
        let mut done = self.settled.iter().filter(|(_, completes, record)| *completes && is_done(record));
        let Some((token, _, completed)) = done.next() else { return Ok(()) };
        if let Some((_, _, again)) = done.next() {
            return Err(Counterexample::new(format!("{name} was completed twice"), [completed.id, again.id]));
        }
        let later = self.claims.iter().find(|given| given.claimed.token > *token);
        match later.filter(|given| given.record.end < completed.call || given.record.call > completed.end) {
            Some(given) => {
                let what = format!("{name} was completed by {token}, but {} had it then or later", given.claimed.token);
                Err(Counterexample::new(what, [completed.id, given.record.id]))
            }
            None => Ok(()),
        }
    }
}

/// Tasks that are due are given to who asks. Claims of unknown fate may have taken some, but not more than they asked for.
fn check_found(history: &History, queue: &str, tasks: &BTreeMap<(&str, &str), Task<'_>>) -> Checked {
    let asked = |record: &Record| match &record.operation {
        Operation::Claim { queue: asked, limit, .. } if asked == queue => Some(u64::from(*limit)),
        _ => None,
    };
    let never_given = tasks.iter().filter(|((of, _), task)| *of == queue && task.claims.is_empty());
    let never_given: Vec<(&str, &Record, Micros)> = never_given
        .filter_map(|((_, name), task)| task.scheduled.map(|(record, delay)| (*name, record, delay)))
        .collect();
    let claims = || history.records.iter().filter(|record| asked(record).is_some());
    let finds_nothing = |record: &&Record| matches!(record.decided().map(|decided| &decided.seen), Some(Seen::Claimed(tasks)) if tasks.is_empty());
    for claim in claims().filter(finds_nothing) {
        let is_due = |(_, record, delay): &&(&str, &Record, Micros)| {
            claim.call > record.end + delay + LATE + history.faulty_between(record.end, claim.call)
        };
        let due: Vec<_> = never_given.iter().filter(is_due).collect();
        let hidden =
            claims().filter(|other| other.is_unknown() && other.call < claim.end).filter_map(asked).sum::<u64>();
        if let Some((name, scheduled, _)) = due.first().filter(|_| due.len() as u64 > hidden) {
            let what = format!("{} tasks are due and not found, {queue}/{name} among them", due.len());
            return Err(Counterexample::new(what, [scheduled.id, claim.id]));
        }
    }
    Ok(())
}
