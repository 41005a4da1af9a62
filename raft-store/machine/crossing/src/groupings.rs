//! Runs in which much is read and written at once: large values, ranges beyond every bound, quotas that are being counted.
//!
//! Owns what is asked for beside the commands of [`crate::generate`], and bounds that are lowered so that small states reach them. What
//! must hold is that entries come to the same in whatever groups they are applied, which the twins of the store see, and the
//! invariants of its rows; what a command should come to is not predicted here.

use std::panic::{self, AssertUnwindSafe};

use quorate_machine::document::{Criteria, Patch};
use quorate_machine::limits;
use quorate_machine::machine::Bounds;
use quorate_machine::types::{
    Action, AfterFailure, Batch, Change, Command, Expect, Expiry, Key, KeyRange, ListOrder, ListShown, ListStep,
    Maintenance, NewTask, QueueName, QuotaBounds, QuotaOp, QuotaSubject, RemoveStep, RequestId, RetryPlan,
    RevisionFilter, SessionId, SessionOp, Start, Step, TaskOp, TaskState, TaskVerb, Ticket, Txn, Value, WhereChange,
    WhereOp, WriteOp,
};

use crate::chance::Chance;
use crate::generate::{self, Sent, Theme, What};
use crate::names::Texts;
use crate::picture::Picture;
use crate::run::{Failure, Met, words};
use crate::store::{Store, batch};

/// Entries of one run.
pub const STEPS: usize = 160;

/// Keys that large values are written to.
const KEYS: u64 = 96;

/// After so many entries all rows are checked.
const CHECK_EVERY: usize = 16;

/// Takes so many entries from an empty state.
pub fn run(first: u64, seeds: &[u64], texts: &Texts) -> Result<Met, Failure> {
    let mut chance = Chance::new(first ^ 0x6706);
    let bounds = bounds(&mut chance);
    let sizes = sizes(&mut chance, bounds);
    let store = Store { seed: first, bounds, ..Store::default() };
    let mut run = Run { store, sizes, sent: Sent::new(), met: Met::default(), theme: Theme::of(first), ended: None };
    for (nth, seed) in seeds.iter().enumerate() {
        let done = panic::catch_unwind(AssertUnwindSafe(|| {
            run.step(*seed, texts);
            if nth % CHECK_EVERY == 0 {
                run.store.check();
            }
        }));
        if let Err(panic) = done {
            return Err(run.failed(&seeds[..=nth], panic.as_ref()));
        }
    }
    let settled = panic::catch_unwind(AssertUnwindSafe(|| {
        run.store.check();
        run.store.twins.settle();
    }));
    match settled {
        Ok(()) => {
            run.met.groups = run.store.twins.groups();
            Ok(std::mem::take(&mut run.met))
        }
        Err(panic) => Err(run.failed(seeds, panic.as_ref())),
    }
}

/// Those of a node in one run of five, lower ones else.
fn bounds(chance: &mut Chance) -> Bounds {
    if chance.percent(20) {
        return Bounds::default();
    }
    let page_rows = *chance.pick(&[1, 2, 3, 8, 64, usize::MAX]);
    let page_bytes = *chance.pick(&[1, 200, 3_000, 40_000, limits::PAGE_BYTES]);
    let batch_bytes = *chance.pick(&[4_000, 20_000, 100_000, limits::BATCH_EFFECT_BYTES_MAX]);
    let txn_bytes = *chance.pick(&[3_000, 30_000, 150_000, limits::TXN_EFFECT_BYTES_MAX]);
    Bounds { page_rows, page_bytes, batch_bytes, ..Bounds::of_txn(txn_bytes) }
}

/// The sizes of values: some that fit the bounds many times, some that hardly fit once.
fn sizes(chance: &mut Chance, bounds: Bounds) -> [u64; 3] {
    let most = limits::VALUE_BYTES_MAX as u64;
    let large = if bounds == Bounds::default() { *chance.pick(&[most, most / 3]) } else { 1 << chance.between(7, 15) };
    [1, chance.between(2, 300), large]
}

struct Run {
    store: Store,
    sizes: [u64; 3],
    sent: Sent,
    met: Met,
    theme: Theme,
    /// A session of a chosen id that was ended last.
    ended: Option<SessionId>,
}

impl Run {
    fn failed(&mut self, seeds: &[u64], panic: &(dyn std::any::Any + Send)) -> Failure {
        self.store.twins.forget();
        Failure { seeds: seeds.to_vec(), words: words(panic), commands: self.met.commands }
    }

    fn step(&mut self, seed: u64, texts: &Texts) {
        let mut chance = Chance::new(seed);
        let mut commands = Vec::new();
        if chance.percent(35) {
            let picture = Picture::of(&self.store);
            let step = generate::step(seed, self.theme, 0, &picture, texts, &self.sent);
            if let What::Batch(generated) = step.what {
                commands.extend(generated);
            }
        }
        for _ in 0..chance.weighted(&[10, 60, 20, 10]) {
            commands.push(self.command(&mut chance));
        }
        // Until it is counted, a quota refuses nothing.
        if chance.percent(40) && Picture::of(&self.store).quota_state.has_work() {
            commands.push(Command::unnamed(Action::Maintain(Maintenance::Count)));
        }
        for command in &commands {
            if let Some(id) = &command.request_id {
                self.sent.insert(id.0.clone(), command.clone());
            }
        }
        let clock = self.store.vars.clock + self.time(&mut chance);
        let (wall, random) = (1_000_000 + clock, chance.draw().to_be_bytes());
        let entry = Batch { wall, seed: [random, random].concat().try_into().unwrap(), ..batch(clock, &commands) };
        let (replies, contained) = self.store.apply_contained(&[entry]);
        assert_eq!(contained, [], "contained while {commands:?} were applied");
        self.met.commands += commands.len() as u64;
        replies[0].iter().for_each(|reply| self.met.reached.note(reply));
        let picture = Picture::of(&self.store);
        self.met.reached.counting += u64::from(picture.quota_state.has_work());
        self.met.reached.left_over += u64::from(self.store.vars.next_timer.is_some_and(|next| next <= clock));
    }

    fn time(&self, chance: &mut Chance) -> u64 {
        match chance.weighted(&[70, 20, 7, 3]) {
            0 => 0,
            1 => chance.between(1, 300),
            2 => chance.between(1_000, 40_000),
            _ => *chance.pick(&[limits::REQUEST_BUCKET_MS, 2 * limits::REQUEST_BUCKET_MS]),
        }
    }

    fn command(&mut self, chance: &mut Chance) -> Command {
        let restarts = self.ended.is_some() && chance.percent(60);
        let action = match chance.weighted(&[32, 8, 10, 8, 10, 8, 8, 12, 8]) {
            _ if restarts => Action::Session(self.session(chance)),
            0 => Action::Write(self.write(chance)),
            1 => Action::Bulk((0..chance.between(1, 12)).map(|_| self.write(chance)).collect()),
            2 => Action::Txn(self.over_ranges(chance)),
            3 => Action::Txn(self.reads(chance)),
            4 => Action::Where(self.of_all(chance)),
            5 => Action::Quota(quota(chance)),
            6 => Action::Session(self.session(chance)),
            7 => Action::Task(self.task(chance)),
            _ => return Command::unnamed(Action::Maintain(maintenance(chance, self.store.vars.revision))),
        };
        let request_id = chance.percent(60).then(|| RequestId(format!("g{}", chance.draw())));
        Command { request_id, ..Command::unnamed(action) }
    }

    fn value(&mut self, chance: &mut Chance) -> Value {
        let size = self.sizes[chance.weighted(&[2, 5, 3])].max(16);
        self.met.reached.large += u64::from(size > 64 << 10);
        // A document, so that it can be patched.
        let filler = "x".repeat((size as usize).saturating_sub(12));
        crate::names::json(&format!(r#"{{"n":1,"x":"{filler}"}}"#))
    }

    fn write(&mut self, chance: &mut Chance) -> WriteOp {
        let key = key(chance.below(KEYS));
        let session = chance.percent(10).then(|| self.some_session(chance)).flatten();
        let change = match chance.weighted(&[60, 25, 10, 5]) {
            0 => Change::Put(self.value(chance)),
            1 => Change::Remove,
            2 => Change::Patch(patch(chance)),
            _ => Change::Lock(10_000),
        };
        let expiry = if chance.percent(10) { Expiry::After(chance.between(1, 2_000)) } else { Expiry::Never };
        let expect = Expect::ANY;
        let return_previous = chance.percent(40);
        WriteOp { key, expect, condition: Criteria::default(), change, expiry, return_previous, session, guard: None }
    }

    /// A session that lives: of a chosen id more often than not.
    fn some_session(&self, chance: &mut Chance) -> Option<SessionId> {
        let living: Vec<_> = Picture::of(&self.store).sessions.into_keys().collect();
        let chosen: Vec<_> = living.iter().copied().filter(|id| id.is_chosen()).collect();
        let among = if chosen.is_empty() || chance.percent(30) { &living } else { &chosen };
        chance.maybe(among).copied()
    }

    /// Removes and lists ranges, beside a write behind them.
    fn over_ranges(&mut self, chance: &mut Chance) -> Txn {
        let then = (0..chance.between(1, 2)).map(|nth| {
            let range = range(chance, nth);
            match chance.percent(55) {
                true => Step::Remove(RemoveStep { range, return_previous: chance.percent(50) }),
                false => Step::List(ListStep {
                    range,
                    at: None,
                    limit: chance.below(20),
                    order: ListOrder::BY_KEY,
                    filter: RevisionFilter::ALL,
                    shown: if chance.percent(50) { ListShown::Entries } else { ListShown::Keys },
                }),
            }
        });
        Txn { checks: Vec::new(), then: then.collect(), otherwise: Vec::new() }
    }

    /// A write, then as many reads as a bound takes.
    fn reads(&mut self, chance: &mut Chance) -> Txn {
        let written = chance.below(KEYS);
        let write = WriteOp { key: key(written), ..self.write(chance) };
        let gets = (0..chance.between(1, 24)).map(|_| Step::Get(key(chance.below(KEYS))));
        let then = std::iter::once(Step::Write(write)).chain(gets).collect();
        Txn { checks: Vec::new(), then, otherwise: Vec::new() }
    }

    fn of_all(&mut self, chance: &mut Chance) -> WhereOp {
        let change = match chance.percent(75) {
            true => WhereChange::Patch { patch: patch(chance), expiry: Expiry::Keep },
            false => WhereChange::Remove,
        };
        WhereOp {
            prefix: chance.pick(&["", "g/", "g/0", "g/3"]).as_bytes().to_vec(),
            criteria: Criteria::default(),
            condition: Criteria::default(),
            change,
            limit: *chance.pick(&[1, 5, 50, 1_000]),
            after: None,
            guard: None,
        }
    }

    fn session(&mut self, chance: &mut Chance) -> SessionOp {
        // Whoever restarts with a fixed id begins again at once what it ended.
        if let Some(id) = self.ended.take().filter(|_| chance.percent(80)) {
            return SessionOp::CreateAs { id, ttl_ms: 5_000, owner: String::new(), labels: Vec::new() };
        }
        match self.some_session(chance).filter(|_| chance.percent(60)) {
            Some(id) => {
                self.ended = Some(id).filter(|id| id.is_chosen());
                SessionOp::End(id)
            }
            None => match SessionId::chosen(chance.between(1, 3) as i64).filter(|_| chance.percent(70)) {
                Some(id) => SessionOp::CreateAs { id, ttl_ms: 5_000, owner: String::new(), labels: Vec::new() },
                None => SessionOp::Create { ttl_ms: 5_000, owner: String::new(), labels: Vec::new() },
            },
        }
    }

    fn task(&mut self, chance: &mut Chance) -> TaskOp {
        let queue = QueueName::new("q").expect("it is a name");
        let picture = Picture::of(&self.store);
        let tickets = picture.tasks.iter().filter_map(|((_, id), row)| match row.head.state {
            TaskState::Claimed { token, .. } => Some(Ticket { id: id.clone(), token }),
            _ => None,
        });
        let claimed: Vec<_> = tickets.collect();
        let verb = match (chance.weighted(&[5, 4, 3]), chance.maybe(&claimed)) {
            (2, Some(ticket)) if chance.percent(50) => TaskVerb::Complete(ticket.clone()),
            (2, Some(ticket)) => TaskVerb::Fail {
                ticket: ticket.clone(),
                error: String::new(),
                then: AfterFailure::RetryIn(chance.below(900)),
            },
            (0, _) => {
                let tasks = (0..chance.between(1, 16)).map(|_| NewTask {
                    id: None,
                    payload: self.value(chance),
                    start: Start::In(0),
                    recurrence: None,
                    retry: RetryPlan::default(),
                    keep_ms: 0,
                    replace: false,
                });
                TaskVerb::Schedule(tasks.collect())
            }
            _ => TaskVerb::Claim {
                limit: chance.between(1, 30) as u32,
                lease_ms: chance.between(1_000, 20_000),
                worker: String::new(),
                session: self.some_session(chance),
            },
        };
        TaskOp { queue, verb }
    }
}

fn key(nth: u64) -> Key {
    Key::new(format!("g/{nth:02}")).expect("it is a key")
}

fn range(chance: &mut Chance, nth: u64) -> KeyRange {
    // Two steps of one transaction do not remove the same keys.
    let (first, last) = if nth == 0 { (0, KEYS / 2) } else { (KEYS / 2, KEYS) };
    let (one, other) = (chance.between(first, last), chance.between(first, last));
    let (start, end) = if chance.percent(50) { (first, last) } else { (one.min(other), one.max(other)) };
    KeyRange::new(key(start).as_bytes().to_vec(), Some(key(end).as_bytes().to_vec()))
}

fn patch(chance: &mut Chance) -> Patch {
    let text = format!(r#"[{{"op":"set","path":"n","value":{}}}]"#, chance.below(1_000));
    crate::names::patch(&text)
}

fn quota(chance: &mut Chance) -> QuotaOp {
    let subject = QuotaSubject::Prefix(chance.pick(&["g/", "g/0", "g/3", "g", "q", "c/"]).as_bytes().to_vec());
    if chance.percent(35) {
        return QuotaOp::Remove(subject);
    }
    let bounds = QuotaBounds {
        bytes: *chance.pick(&[None, Some(2_000), Some(50_000), Some(1_000_000_000)]),
        entries: *chance.pick(&[None, Some(10), Some(40), Some(1_000)]),
        tasks: *chance.pick(&[None, Some(3), Some(100)]),
        ..QuotaBounds::default()
    };
    QuotaOp::Set { subject, bounds }
}

fn maintenance(chance: &mut Chance, newest: u64) -> Maintenance {
    match chance.weighted(&[50, 30, 20]) {
        0 => Maintenance::Count,
        1 => Maintenance::ExpireDue { limit: *chance.pick(&[1, 3, 1_000]) },
        _ => Maintenance::Compact { revision: newest.saturating_sub(chance.below(20)), groups_max: 50 },
    }
}
