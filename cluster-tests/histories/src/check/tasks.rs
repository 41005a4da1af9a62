//! C8: each task is completed once, given out to one worker at a time, and never before it is due.
//!
//! Owns following each task from its schedule to its end by what workers were told. Counts on ids that are scheduled once.

use std::collections::{BTreeMap, BTreeSet};

use crate::operation::Operation;
use crate::outages::Outages;
use crate::record::{Claimed, Micros, Record, Seen};
use crate::{Counterexample, History, Verdict};

/// How much earlier than promised a task may come: it is due by the wall clock of the leader, in whole milliseconds.
const TOLERANCE: Micros = 20_000;
/// The fault of a machine whose clock goes slow from then on, and which part of the time its wall clock loses at most.
const SLOW_CLOCK: &str = "Pace";
const SLOW_CLOCK_LOSES: Micros = 20;
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

/// That a task was given to somebody, between `call` and `end`.
struct Given<'h> {
    claimed: &'h Claimed,
    lease: Micros,
    /// The claim.
    id: u64,
    call: Micros,
    end: Micros,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let tasks = tasks(history);
    for ((queue, task), known) in &tasks {
        let name = format!("{queue}/{task}");
        let judged = known
            .check_due(&name, history)
            .and_then(|()| known.check_claims(&name))
            .and_then(|()| known.check_done(&name));
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
            (Operation::Claim { queue, lease_ms, .. }, _) => {
                for given in given(record, lease_ms * 1_000) {
                    tasks.entry((queue, &given.claimed.task)).or_default().claims.push(given);
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
    tasks.values_mut().for_each(Task::order_claims);
    tasks
}

/// What a claim gave, by all answers to it. Any try may have been the one that took it, also one without an answer.
fn given(claim: &Record, lease: Micros) -> impl Iterator<Item = Given<'_>> {
    let (id, call) = (claim.id, claim.call);
    let found = claim.answers().filter_map(|(end, decided)| match &decided.seen {
        Seen::Claimed(claimed) => Some((end, claimed)),
        _ => None,
    });
    found.flat_map(move |(end, claimed)| claimed.iter().map(move |claimed| Given { claimed, lease, id, call, end }))
}

impl Task<'_> {
    /// By token. What one claim was told of several times, it was given once, before the first time that it was told.
    fn order_claims(&mut self) {
        self.claims.sort_by_key(|given| (given.claimed.token, given.id, given.end));
        self.claims.dedup_by_key(|given| (given.id, given.claimed));
    }

    fn check_due(&self, name: &str, history: &History) -> Checked {
        let Some((scheduled, delay)) = self.scheduled else { return Ok(()) };
        let due = scheduled.call + delay;
        let is_early = |given: &&Given<'_>| given.end + TOLERANCE + clocks_apart(history, scheduled.end) < due;
        match self.claims.iter().find(is_early) {
            Some(given) => {
                let what = format!("{name} was given out {} ms early", (due - given.end) / 1_000);
                Err(Counterexample::new(what, [scheduled.id, given.id]))
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
                Err(Counterexample::new(what, [before.id, after.id]))
            };
            if before.claimed.token == after.claimed.token {
                return wrong("twice the same token");
            }
            if before.claimed.attempt >= after.claimed.attempt {
                return wrong("the attempts do not rise");
            }
            if after.end < before.call {
                return wrong("the greater token came first");
            }
            let settled =
                self.settled.iter().any(|(token, _, record)| *token == before.claimed.token && record.call < after.end);
            if !settled && after.end + TOLERANCE < before.call + before.lease - before.lease / 100 {
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
        match later.filter(|given| given.end < completed.call || given.call > completed.end) {
            Some(given) => {
                let what = format!("{name} was completed by {token}, but {} had it then or later", given.claimed.token);
                Err(Counterexample::new(what, [completed.id, given.id]))
            }
            None => Ok(()),
        }
    }
}

/// By how much the wall clock of whoever led at a moment may have been behind that of whoever leads later.
fn clocks_apart(history: &History, moment: Micros) -> Micros {
    let slow_since = history.faults.iter().filter(|fault| fault.kind == SLOW_CLOCK).map(|fault| fault.begin).min();
    slow_since.map_or(0, |since| moment.saturating_sub(since) / SLOW_CLOCK_LOSES)
}

/// Tasks that are due are given to who asks. Claims of which a try has an unknown outcome may have taken some, but
/// not more than they asked for.
fn check_found(history: &History, queue: &str, tasks: &BTreeMap<(&str, &str), Task<'_>>) -> Checked {
    let asked = |record: &Record| match &record.operation {
        Operation::Claim { queue: asked, limit, .. } if asked == queue => Some(u64::from(*limit)),
        _ => None,
    };
    let never_given = tasks.iter().filter(|((of, _), task)| *of == queue && task.claims.is_empty());
    let never_given: Vec<(&str, &Record, Micros)> = never_given
        .filter_map(|((_, name), task)| task.scheduled.map(|(record, delay)| (*name, record, delay)))
        .collect();
    let outages = Outages::of(history);
    let is_in_doubt = |claim: &Record| claim.tries.iter().any(|each| each.outcome.is_unknown());
    let claims = || history.records.iter().filter(|record| asked(record).is_some());
    let finds_nothing = |record: &&Record| matches!(record.decided().map(|decided| &decided.seen), Some(Seen::Claimed(tasks)) if tasks.is_empty());
    for claim in claims().filter(finds_nothing) {
        let is_due = |(_, record, delay): &&(&str, &Record, Micros)| {
            claim.call > record.end + delay + LATE + outages.between(record.end, claim.call)
        };
        let due: Vec<_> = never_given.iter().filter(is_due).collect();
        let hidden =
            claims().filter(|other| is_in_doubt(other) && other.call < claim.end).filter_map(asked).sum::<u64>();
        if let Some((name, scheduled, _)) = due.first().filter(|_| due.len() as u64 > hidden) {
            let what = format!("{} tasks are due and not found, {queue}/{name} among them", due.len());
            return Err(Counterexample::new(what, [scheduled.id, claim.id]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Decided, Fault, Outcome, Try};

    const SECOND: Micros = 1_000_000;

    fn record(id: u64, operation: Operation, call: Micros, tries: &[Option<Seen>]) -> Record {
        let decided = |seen: &Seen| Decided { revision: 1, index: 1, replayed: false, seen: seen.clone() };
        let outcome = |seen: &Option<Seen>| match seen {
            Some(seen) => Outcome::Decided(decided(seen)),
            None => Outcome::Unknown("no answer".into()),
        };
        let sent = |(number, seen): (usize, &Option<Seen>)| {
            let call = call + number as u64;
            Try { node: 1, call, end: call + 10, outcome: outcome(seen) }
        };
        let tries: Vec<Try> = tries.iter().enumerate().map(sent).collect();
        let (outcome, end) = (Outcome::of(&tries, true), call + 10);
        Record { id, process: id, operation, request_id: None, call, end, outcome, tries }
    }

    fn nothing() -> Option<Seen> {
        Some(Seen::Claimed(Vec::new()))
    }

    fn found(token: u64, attempt: u64) -> Option<Seen> {
        Some(Seen::Claimed(vec![Claimed { task: "t".into(), token, attempt }]))
    }

    /// A task that is due at once, claims of it one after the other, and one that finds nothing ten seconds later.
    fn judge(claims: &[&[Option<Seen>]]) -> Verdict {
        let claim = || Operation::Claim { queue: "q".into(), limit: 1, lease_ms: 1_000 };
        let schedule = Operation::Schedule { queue: "q".into(), task: "t".into(), delay_ms: 0 };
        let mut records = vec![record(0, schedule, 0, &[Some(Seen::Done)])];
        for tries in claims.iter().copied().chain([[nothing()].as_slice()]) {
            let id = records.len() as u64;
            let call = if records.len() == claims.len() + 1 { 10 * SECOND } else { 2 * id * SECOND };
            records.push(record(id, claim(), call, tries));
        }
        check(&History { records, ..History::default() })
    }

    #[test]
    fn what_a_later_try_of_a_claim_found_was_given_to_somebody() {
        assert!(matches!(judge(&[]), Verdict::Broken(_)), "nobody ever found it");
        assert!(matches!(judge(&[&[nothing(), nothing()]]), Verdict::Broken(_)));
        assert!(matches!(judge(&[&[nothing(), found(7, 1)]]), Verdict::Holds(_)));
        assert!(matches!(judge(&[&[nothing(), None]]), Verdict::Holds(_)), "the try without an answer may have it");
    }

    #[test]
    fn what_several_answers_to_one_claim_say_was_given_once() {
        assert!(matches!(judge(&[&[found(7, 1), found(7, 1)]]), Verdict::Holds(_)));
        assert!(matches!(judge(&[&[nothing(), found(7, 1)], &[nothing(), found(8, 2)]]), Verdict::Holds(_)));
        assert!(matches!(judge(&[&[nothing(), found(7, 1)], &[found(7, 1)]]), Verdict::Broken(_)), "one token for two");
    }

    #[test]
    fn a_task_comes_early_only_by_what_a_clock_has_lost() {
        let schedule = Operation::Schedule { queue: "q".into(), task: "t".into(), delay_ms: 1_000 };
        let claim = Operation::Claim { queue: "q".into(), limit: 1, lease_ms: 1_000 };
        let judge = |slow_since: Micros| {
            let records = vec![
                record(0, schedule.clone(), 2 * SECOND, &[Some(Seen::Done)]),
                record(1, claim.clone(), 3 * SECOND - 50_000, &[found(7, 1)]),
            ];
            let fault = Fault { kind: SLOW_CLOCK.into(), node: 1, begin: slow_since, end: slow_since };
            check(&History { records, faults: vec![fault], ..History::default() })
        };
        assert!(matches!(judge(SECOND), Verdict::Holds(_)), "it lost 50 ms by then");
        assert!(matches!(judge(SECOND * 17 / 10), Verdict::Broken(_)), "it lost 15 ms by then");
        assert!(matches!(judge(3 * SECOND), Verdict::Broken(_)), "it was right by then");
    }
}
