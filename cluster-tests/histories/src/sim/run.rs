//! Simulated clients of the simulated store, in virtual time.
//!
//! Owns when requests are sent, arrive and are answered, which answers get lost, and the history of all that. The clients are those
//! of the real workloads.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Mutant;
use super::store::Store;
use crate::History;
use crate::file::{Header, Requirement};
use crate::operation::Operation;
use crate::record::{Event, Fault, Micros, Moment, Outcome, Record, Shown, Try};
use crate::workload::accounts::Accounts;
use crate::workload::counters::Counters;
use crate::workload::fleeting::Fleeting;
use crate::workload::locks::Locks;
use crate::workload::registers::Registers;
use crate::workload::set::Set;
use crate::workload::tasks::Tasks;
use crate::workload::{Next, Script, Workload};

/// How long clients are at work.
const WORK: Micros = 10_000_000;
/// When the only fault is over.
const HEALED: Micros = 4_000_000;
/// From when on no answer gets lost and nothing is refused before it is proposed.
const WELL: Micros = 8_000_000;
/// How long a client waits for an answer.
const PATIENCE: Micros = 20_000;

/// Runs the workloads against a store with at most one bug.
pub fn simulate(seed: u64, mutant: Option<Mutant>) -> History {
    let mut run = Run::new(seed, mutant);
    while let Some(((now, _), step)) = run.agenda.pop_first() {
        match step {
            Step::Wake(client) => run.wake(now, client),
            Step::Arrive(open, attempt) => run.arrive(now, open, attempt),
            Step::Answer(open, attempt) => run.answer(now, open, attempt),
        }
    }
    run.finish()
}

/// Something that is to happen.
enum Step {
    Wake(usize),
    Arrive(usize, usize),
    Answer(usize, usize),
}

struct Client {
    script: Box<dyn Script>,
    process: u64,
    /// Sends the same request several times.
    storms: bool,
}

/// An operation on its way.
struct Open {
    client: usize,
    record: Record,
    missing: usize,
}

struct Run {
    mutant: Option<Mutant>,
    dice: StdRng,
    store: Store,
    clients: Vec<Client>,
    agenda: BTreeMap<(Micros, u64), Step>,
    steps: u64,
    opens: Vec<Open>,
    processes: u64,
    history: History,
}

fn workloads() -> Vec<(Box<dyn Workload>, usize, bool)> {
    vec![
        (Box::new(Registers { name: "registers" }), 4, false),
        (Box::new(Registers { name: "storm" }), 3, true),
        (Box::new(Accounts), 2, false),
        (Box::new(Counters), 2, false),
        (Box::new(Set), 2, false),
        (Box::new(Fleeting), 3, false),
        (Box::new(Locks), 6, false),
        (Box::new(Tasks), 4, false),
    ]
}

impl Run {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let store = Store::new(mutant, StdRng::seed_from_u64(dice.random()));
        let requirements =
            ["get", "put", "cas", "txn", "list"].map(|kind| Requirement { kind: kind.into(), at_least: 10 }).into();
        let header =
            Header { name: "simulated".into(), seed, failover_ms: 0, slack_ms: 0, requirements, faults_min: 1 };
        let faults = vec![Fault { kind: "none, for the phases".into(), node: 1, begin: 2_000_000, end: HEALED }];
        let history = History { header, faults, healed: Some(HEALED), ..History::default() };
        let (clients, agenda, opens) = Default::default();
        let mut run = Self { mutant, dice, store, clients, agenda, steps: 0, opens, processes: 0, history };
        for (workload, count, storms) in workloads() {
            for number in 0..count {
                let process = run.next_process();
                run.clients.push(Client { script: workload.script(number, count), process, storms });
                run.plan(0, Step::Wake(run.clients.len() - 1));
            }
        }
        run
    }

    fn next_process(&mut self) -> u64 {
        self.processes += 1;
        self.processes
    }

    fn plan(&mut self, at: Micros, step: Step) {
        self.steps += 1;
        self.agenda.insert((at, self.steps), step);
    }

    fn wake(&mut self, now: Micros, client: usize) {
        if now >= WORK {
            return;
        }
        match self.clients[client].script.next(now, &mut self.dice) {
            Next::Pause(pause) => self.plan(now + pause, Step::Wake(client)),
            Next::Do(operation) => {
                let storms = self.clients[client].storms && operation.is_kept();
                let attempts = if storms { self.dice.random_range(1..4) } else { 1 };
                self.send(now, client, operation, attempts);
            }
        }
    }

    fn send(&mut self, now: Micros, client: usize, operation: Operation, attempts: usize) {
        let id = self.opens.len() as u64;
        let request_id = operation.is_kept().then(|| format!("r{id}"));
        let process = self.clients[client].process;
        let outcome = Outcome::Failed("it was never sent".into());
        let record = Record { id, process, operation, request_id, call: now, end: now, outcome, tries: Vec::new() };
        self.opens.push(Open { client, record, missing: attempts });
        let mut call = now;
        for attempt in 0..attempts {
            let node = self.dice.random_range(1..4);
            let waiting = Outcome::Unknown("no answer".into());
            let arrives = call + self.dice.random_range(200..6_000);
            self.opens[id as usize].record.tries.push(Try { node, call, end: call + PATIENCE, outcome: waiting });
            let is_cut = self.mutant == Some(Mutant::NeverRecovers) && call > HEALED;
            match if call < WELL { self.dice.random_range(0..100) } else { 99 } {
                _ if is_cut => self.plan(call + PATIENCE, Step::Answer(id as usize, attempt)),
                // The request or its answer is lost, or it arrives long after.
                0 => self.plan(call + PATIENCE, Step::Answer(id as usize, attempt)),
                1 => {
                    let late = call + self.dice.random_range(1_000..300_000);
                    self.plan(late, Step::Arrive(id as usize, attempt));
                    self.plan(call + PATIENCE, Step::Answer(id as usize, attempt));
                }
                _ => {
                    self.plan(arrives, Step::Arrive(id as usize, attempt));
                    let answered = arrives + self.dice.random_range(200..3_000);
                    self.opens[id as usize].record.tries[attempt].end = answered;
                    self.plan(answered, Step::Answer(id as usize, attempt));
                }
            }
            call += self.dice.random_range(0..15_000);
        }
    }

    fn arrive(&mut self, now: Micros, open: usize, attempt: usize) {
        let record = &mut self.opens[open].record;
        // Refused before it is proposed, for certain: the disk has no room.
        let may_fail = record.tries.len() == 1 && !record.operation.is_read() && record.call < WELL;
        let fails = may_fail && self.dice.random_range(0..100) == 0;
        let outcome = if fails {
            if let Operation::Write(write) = &record.operation
                && self.mutant == Some(Mutant::FailedWriteApplied)
            {
                self.store.write_failed(now, write);
            }
            Outcome::Failed("no room".into())
        } else {
            Outcome::Decided(self.store.perform(
                now,
                record.tries[attempt].node,
                &record.operation,
                record.request_id.as_deref(),
            ))
        };
        // Nobody listens to an answer that comes too late.
        if record.tries[attempt].end > now {
            let is_late = record.tries[attempt].end == record.tries[attempt].call + PATIENCE;
            record.tries[attempt].outcome =
                if is_late { Outcome::Unknown("the answer was lost".into()) } else { outcome };
        }
    }

    fn answer(&mut self, now: Micros, open: usize, _attempt: usize) {
        self.opens[open].missing -= 1;
        if self.opens[open].missing > 0 {
            return;
        }
        let client = self.opens[open].client;
        settle(&mut self.opens[open].record);
        let record = &self.opens[open].record;
        self.clients[client].script.learn(record);
        if record.is_unknown() {
            self.clients[client].process = self.next_process();
        }
        let pause = self.dice.random_range(1_000..20_000);
        self.plan(now + pause, Step::Wake(client));
    }

    /// Asks again for half of what is not known, reads everything, and adds what watches were shown.
    fn finish(mut self) -> History {
        let mut now = WORK + 1_000_000;
        for open in 0..self.opens.len() {
            let is_asked_again = self.mutant != Some(Mutant::NeverRecovers) && self.dice.random_range(0..2) == 0;
            let record = &mut self.opens[open].record;
            if !record.is_unknown() || !is_asked_again || !record.operation.is_kept() {
                continue;
            }
            let decided = self.store.perform(now + 500, 1, &record.operation, record.request_id.as_deref());
            let outcome = Outcome::Decided(decided);
            record.tries.push(Try { node: 1, call: now, end: now + 1_000, outcome });
            settle(record);
            now += 2_000;
        }
        for operation in workloads().iter().flat_map(|(workload, ..)| workload.last_reads()) {
            let id = self.opens.len() as u64;
            let outcome = Outcome::Decided(self.store.perform(now + 500, 1, &operation, None));
            let tries = vec![Try { node: 1, call: now, end: now + 1_000, outcome: outcome.clone() }];
            let record =
                Record { id, process: 0, operation, request_id: None, call: now, end: now + 1_000, outcome, tries };
            self.opens.push(Open { client: 0, record, missing: 0 });
            now += 2_000;
        }
        self.history.moments = self.watches();
        self.history.records = self.opens.into_iter().map(|open| open.record).collect();
        self.history
    }

    fn watches(&mut self) -> Vec<Moment> {
        let last = self.store.line.last().map_or(1, |(_, event)| event.revision);
        let wanted = [("", 1), ("accounts/", 1), ("registers/", last / 3), ("", last / 2)];
        let line = std::mem::take(&mut self.store.line);
        let mut moments = Vec::new();
        for (watch, (prefix, from)) in wanted.into_iter().enumerate() {
            let begun = Shown::Begun { prefix: prefix.into(), from };
            let concerns = |event: &Event| event.revision >= from && event.key.starts_with(prefix);
            let events = line.iter().filter(|(_, event)| concerns(event)).cloned().collect();
            let mut at = 0;
            let mut put = |time: Micros, shown| {
                at = at.max(time);
                moments.push(Moment { watch: watch as u64, at, shown });
            };
            put(0, begun);
            for (time, event) in self.mutate(events) {
                put(time + 1_000, Shown::Event(event));
            }
            put(0, Shown::Progress(last));
        }
        moments
    }

    /// What becomes of the events of one watch.
    fn mutate(&mut self, mut events: Vec<(Micros, Event)>) -> Vec<(Micros, Event)> {
        if events.len() < 10 {
            return events;
        }
        let at = self.dice.random_range(2..events.len() - 2);
        match self.mutant {
            Some(Mutant::EventSkipped) => drop(events.remove(at)),
            Some(Mutant::EventRepeated) => events.insert(at, events[at].clone()),
            Some(Mutant::EventsReordered) => events.swap(at, at + 1),
            Some(Mutant::EventsTorn) => {
                if let Some(second) = events.iter().position(|(_, event)| event.index > 0) {
                    events.remove(second);
                }
            }
            Some(Mutant::EventMisnumbered) => {
                if let Some(entry) = events[at..].iter_mut().find_map(|(_, event)| event.entry.as_mut()) {
                    entry.version += 1;
                }
            }
            _ => {}
        }
        events
    }
}

/// Puts together what is known of an operation once all its answers are there.
fn settle(record: &mut Record) {
    record.outcome = Outcome::of(&record.tries, !record.operation.is_read());
    let decided = record.tries.iter().filter(|each| each.outcome.decided().is_some()).map(|each| each.end).min();
    record.end = decided.or(record.tries.iter().map(|each| each.end).max()).unwrap_or(record.call);
}
