//! Timed tasks against a model: random commands at random times, compared answer by answer and with all invariants of the rows.

use std::collections::BTreeMap;

use crate::machine_support::{Store, batch};
use proptest::prelude::*;
use quorate_machine::types::{
    Action, AfterFailure, Batch, Command, ContentKind, NewTask, Outcome, QueueName, Recurrence, Rejection, RequestId,
    Requeue, RetryPlan, Start, TaskId, TaskOp, TaskReply, TaskState, TaskVerb, Ticket, Value,
};

const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// The pauses after failures.
const PAUSE: u64 = 400;
/// The wall clock when the cluster clock began.
const BEGAN: u64 = 1_000_000_000;
/// A wall clock that is ahead by no more waits.
const WAITS_MS: u64 = 5_000;

/// What is asked, with the token of a claim as one of those seen so far.
#[derive(Debug, Clone)]
enum Request {
    Schedule { id: usize, delay: u64, every: Option<u64>, max: u32, keep: u64, replace: bool, alone: bool },
    Claim { limit: u32, lease: u64, again: bool },
    Extend { claim: prop::sample::Index, lease: u64 },
    Complete { claim: prop::sample::Index },
    Fail { claim: prop::sample::Index, then: AfterFailure },
    Cancel { id: usize },
    Requeue { id: usize },
    RequeueOldest { limit: u32 },
}

/// How long nothing happens: often so that something is due to the millisecond, or one before.
fn pauses() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => Just(1), 2 => Just(99), 3 => Just(100), 1 => Just(1_000), 2 => 0..900_u64]
}

/// By how much the stamps of the wall clock jump: mostly not at all.
fn jumps() -> impl Strategy<Value = i64> {
    let far = 6_000..200_000_i64;
    prop_oneof![
        20 => Just(0),
        1 => far.clone(),
        1 => far.prop_map(|by| -by),
        1 => -5_100..5_100_i64,
    ]
}

fn asks() -> impl Strategy<Value = Request> {
    use prop::sample::Index;
    let hundreds = |range: std::ops::Range<u64>| range.prop_map(|count| 100 * count);
    let id = || 0..IDS.len();
    let then = prop_oneof![
        3 => Just(AfterFailure::Retry),
        1 => (0..900_u64).prop_map(AfterFailure::RetryIn),
        1 => Just(AfterFailure::Die),
        1 => Just(AfterFailure::GiveBack),
    ];
    let every = prop::option::weighted(0.2, 300..900_u64);
    prop_oneof![
        4 => (id(), hundreds(0..15), every, 1..4_u32, prop_oneof![Just(0), Just(2_000_u64)], any::<(bool, bool)>())
            .prop_map(|(id, delay, every, max, keep, (replace, alone))| {
                Request::Schedule { id, delay, every, max, keep, replace, alone }
            }),
        5 => (1..4_u32, hundreds(10..25), any::<bool>()).prop_map(|(limit, lease, again)| Request::Claim { limit, lease, again }),
        2 => (any::<Index>(), hundreds(10..25)).prop_map(|(claim, lease)| Request::Extend { claim, lease }),
        4 => any::<Index>().prop_map(|claim| Request::Complete { claim }),
        3 => (any::<Index>(), then).prop_map(|(claim, then)| Request::Fail { claim, then }),
        1 => id().prop_map(|id| Request::Cancel { id }),
        1 => id().prop_map(|id| Request::Requeue { id }),
        1 => (1..3_u32).prop_map(|limit| Request::RequeueOldest { limit }),
    ]
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Waits,
    Claimed { token: u64, until: u64 },
    Dead,
    Done { until: u64 },
}

#[derive(Debug, Clone)]
struct Known {
    stage: Stage,
    due: u64,
    planned: u64,
    wait: Wait,
    /// Its place among those with the same time.
    turn: u64,
    /// When it died last.
    died: u64,
    attempts: u32,
    max: u32,
    every: Option<u64>,
    keep: u64,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wait {
    /// The time that was asked for.
    Asked,
    /// The next occurrence.
    Occurrence,
    /// Another attempt.
    Attempt,
    /// Nothing: it was put back.
    Nothing,
}

/// One queue as it should be.
#[derive(Debug, Default)]
struct Model {
    tasks: BTreeMap<String, Known>,
    turn: u64,
    completed: u64,
}

impl Model {
    fn wait(&mut self, id: &str, due: u64) {
        self.turn += 1;
        let task = self.tasks.get_mut(id).expect("a task");
        (task.stage, task.due, task.turn) = (Stage::Waits, due, self.turn);
    }

    fn die(&mut self, id: &str, wall: u64) {
        self.turn += 1;
        let task = self.tasks.get_mut(id).expect("a task");
        (task.stage, task.turn, task.died) = (Stage::Dead, self.turn, wall);
    }

    fn recur(&mut self, id: &str, every: u64, wall: u64) {
        let task = self.tasks.get_mut(id).expect("a task");
        task.attempts = 0;
        if task.planned > wall + every + WAITS_MS {
            // It was taken by a clock that was walked back since.
            while task.planned > wall + every {
                task.planned -= every;
            }
        } else {
            task.planned += every;
            while task.planned <= wall {
                task.planned += every;
            }
        }
        task.wait = Wait::Occurrence;
        let due = task.planned;
        self.wait(id, due);
    }

    /// What waits by a clock that was ahead, `before` at most, waits by the right one.
    fn walk_back(&mut self, before: u64, wall: u64) {
        let waits = self.tasks.iter().filter(|(_, task)| task.stage == Stage::Waits && task.due > wall);
        let mut waiting: Vec<_> = waits.map(|(id, task)| (task.due, task.turn, id.clone())).collect();
        waiting.sort();
        for (.., id) in waiting {
            self.reckon_anew(&id, before, wall);
        }
    }

    fn reckon_anew(&mut self, id: &str, before: u64, wall: u64) {
        let task = self.tasks.get_mut(id).expect("a task");
        match (task.wait, task.every) {
            (Wait::Occurrence, Some(every)) if task.due > wall + every => {
                while task.planned > wall + every {
                    task.planned -= every;
                }
                let due = task.planned;
                self.wait(id, due);
            }
            (Wait::Attempt, _) if task.due > wall + PAUSE && task.due <= before + PAUSE => self.wait(id, wall + PAUSE),
            (Wait::Nothing, _) if task.due > wall && task.due <= before => {
                task.planned = wall;
                self.wait(id, wall);
            }
            _ => {}
        }
    }

    fn fail(&mut self, id: &str, then: AfterFailure, wall: u64) {
        let task = self.tasks.get_mut(id).expect("a task");
        if then == AfterFailure::GiveBack {
            task.attempts -= 1;
            let due = task.due;
            self.wait(id, due);
            return self.reckon_anew(id, due, wall);
        }
        if then == AfterFailure::Die || task.attempts >= task.max {
            return match task.every {
                Some(every) => self.recur(id, every, wall),
                None => self.die(id, wall),
            };
        }
        let pause = match then {
            AfterFailure::RetryIn(ms) => ms,
            _ => PAUSE,
        };
        self.tasks.get_mut(id).expect("a task").wait = Wait::Attempt;
        self.wait(id, wall + pause);
    }

    /// What the time alone does.
    fn pass(&mut self, clock: u64, wall: u64) {
        let over = |task: &Known| match task.stage {
            Stage::Claimed { until, .. } if until <= clock => Some((until, 4)),
            Stage::Done { until } if until <= clock => Some((until, 5)),
            _ => None,
        };
        let mut due: Vec<_> = self.tasks.iter().filter_map(|(id, task)| Some((over(task)?, id.clone()))).collect();
        due.sort();
        for ((_, kind), id) in due {
            match kind {
                4 => self.fail(&id, AfterFailure::Retry, wall),
                _ => drop(self.tasks.remove(&id)),
            }
        }
    }

    fn claim(&mut self, limit: u32, lease: u64, token: u64, clock: u64, wall: u64) -> Vec<(String, u32)> {
        let waits = self.tasks.iter().filter(|(_, task)| task.stage == Stage::Waits && task.due <= wall);
        let mut due: Vec<_> = waits.map(|(id, task)| (task.due, task.turn, id.clone())).collect();
        due.sort();
        due.truncate(limit as usize);
        let claim = |(.., id): (u64, u64, String)| {
            let task = self.tasks.get_mut(&id).expect("a task");
            task.attempts += 1;
            task.stage = Stage::Claimed { token, until: clock + lease };
            (id, task.attempts)
        };
        due.into_iter().map(claim).collect()
    }

    fn holds(&self, id: &str, token: u64) -> bool {
        matches!(self.tasks.get(id), Some(Known { stage: Stage::Claimed { token: held, .. }, .. }) if *held == token)
    }
}

/// Runs commands on the machine and the model side by side.
struct Run {
    store: Store,
    model: Model,
    clock: u64,
    /// What the leader stamps.
    stamped: u64,
    /// What the state makes of it.
    wall: u64,
    claims: Vec<(String, u64)>,
    claim_ids: u64,
}

impl Run {
    fn new() -> Self {
        let (store, model) = (Store::default(), Model::default());
        let (clock, claims) = (1_000, vec![("a".into(), 1)]);
        Self { store, model, clock, stamped: BEGAN + clock, wall: 0, claims, claim_ids: 0 }
    }

    fn verb(&self, ask: &Request) -> TaskVerb {
        let id = |at: usize| TaskId::new(IDS[at]).unwrap();
        let ticket = |claim: &prop::sample::Index| {
            let (id, token) = claim.get(&self.claims);
            Ticket { id: TaskId::new(id.as_str()).unwrap(), token: *token }
        };
        match ask {
            Request::Schedule { id: at, delay, every, max, keep, replace, alone } => {
                let retry = RetryPlan { max_attempts: *max, initial_ms: PAUSE, max_ms: PAUSE, factor_milli: 1_000 };
                let task = NewTask {
                    id: Some(id(*at)),
                    payload: Value { kind: ContentKind::Json, data: b"1".to_vec() },
                    start: Start::In(*delay),
                    recurrence: every.map(Recurrence::Every),
                    retry,
                    keep_ms: *keep,
                    replace: *replace,
                };
                if *alone { TaskVerb::ScheduleOne(task) } else { TaskVerb::Schedule(vec![task]) }
            }
            Request::Claim { limit, lease, .. } => {
                TaskVerb::Claim { limit: *limit, lease_ms: *lease, worker: String::new(), session: None }
            }
            Request::Extend { claim, lease } => TaskVerb::Extend { ticket: ticket(claim), lease_ms: *lease },
            Request::Complete { claim } => TaskVerb::Complete(ticket(claim)),
            Request::Fail { claim, then } => TaskVerb::Fail { ticket: ticket(claim), error: "no".into(), then: *then },
            Request::Cancel { id: at } => TaskVerb::Cancel(id(*at)),
            Request::Requeue { id: at } => TaskVerb::Requeue(Requeue::One(id(*at))),
            Request::RequeueOldest { limit } => TaskVerb::Requeue(Requeue::Oldest(*limit)),
        }
    }

    fn apply(&mut self, verb: TaskVerb, request_id: Option<String>) -> (Outcome, u64) {
        let action = Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb });
        let command =
            Command { request_id: request_id.map(RequestId), principal: String::new(), action, access_revision: None };
        let batch = Batch { wall: self.stamped, ..batch(self.clock, &[command]) };
        let (replies, _) = self.store.apply(std::slice::from_ref(&batch)).unwrap();
        self.store.check();
        let reply = replies.concat().remove(0);
        (reply.outcome, reply.revision)
    }

    fn step(&mut self, ask: &Request, pass: u64, jump: i64) {
        self.clock += pass;
        self.stamped = (self.stamped + pass).saturating_add_signed(jump);
        let before = self.wall;
        if self.stamped > self.wall || self.wall - self.stamped > WAITS_MS {
            self.wall = self.stamped;
        }
        let wall = self.wall;
        self.model.pass(self.clock, wall);
        if wall < before {
            self.model.walk_back(before, wall);
        }
        let verb = self.verb(ask);
        self.claim_ids += 1;
        let id = matches!(ask, Request::Claim { .. }).then(|| format!("claim-{}", self.claim_ids));
        let (outcome, revision) = self.apply(verb.clone(), id.clone());
        if let (Request::Claim { again: true, .. }, Outcome::Task(done)) = (ask, &outcome)
            && matches!(&**done, TaskReply::Claimed(claimed) if !claimed.tasks.is_empty())
        {
            let (again, again_at) = self.apply(verb.clone(), id);
            assert_eq!((&again, again_at), (&outcome, revision), "a retry gives the same tasks");
        }
        self.compare(ask, &verb, outcome, revision, wall);
        self.compare_rows();
    }

    fn compare(&mut self, ask: &Request, verb: &TaskVerb, outcome: Outcome, revision: u64, wall: u64) {
        let model = &mut self.model;
        let done = match &outcome {
            Outcome::Task(done) => Some(&**done),
            Outcome::Rejected(_) => None,
            other => panic!("{other:?}"),
        };
        let refused = |why: Rejection| assert_eq!(outcome, Outcome::Rejected(why), "{ask:?}");
        match verb {
            TaskVerb::Schedule(_) | TaskVerb::ScheduleOne(_) => {
                let Request::Schedule { id, delay, every, max, keep, replace, alone } = ask else { unreachable!() };
                let (name, due) = (IDS[*id].to_owned(), wall + delay);
                let free = match model.tasks.get(&name) {
                    None => true,
                    Some(task) => *replace && matches!(task.stage, Stage::Waits | Stage::Dead),
                };
                // What would be lost without a word is refused.
                let is_other = match model.tasks.get(&name).map(|task| &task.stage) {
                    None | Some(Stage::Waits) => false,
                    Some(Stage::Dead) => !*replace,
                    Some(Stage::Claimed { .. } | Stage::Done { .. }) => *replace,
                };
                if *alone && is_other {
                    let Outcome::Rejected(Rejection::TaskInUse(task)) = &outcome else { panic!("{outcome:?}") };
                    assert_eq!(task.id.as_str(), name);
                    return;
                }
                let Some(TaskReply::Scheduled(list)) = done else { panic!("{outcome:?}") };
                assert_eq!(list[0].created, free, "{ask:?}");
                if free {
                    let (stage, planned, wait) = (Stage::Waits, due, Wait::Asked);
                    let (every, max, keep) = (*every, *max, *keep);
                    let task = Known { stage, due, planned, wait, turn: 0, died: 0, attempts: 0, max, every, keep };
                    model.tasks.insert(name.clone(), task);
                    model.wait(&name, due);
                }
            }
            TaskVerb::Claim { limit, lease_ms, .. } => {
                let expected = model.claim(*limit, *lease_ms, revision, self.clock, wall);
                let Some(TaskReply::Claimed(claimed)) = done else { panic!("{outcome:?}") };
                let found: Vec<_> = claimed.tasks.iter().map(|task| (task.id.to_string(), task.attempt)).collect();
                assert_eq!(found, expected, "in the order in which they are due, and none early");
                self.claims.extend(found.into_iter().map(|(id, _)| (id, revision)));
            }
            TaskVerb::Extend { ticket, lease_ms } => match model.holds(ticket.id.as_str(), ticket.token) {
                false => refused(Rejection::NotHolder),
                true => {
                    let task = model.tasks.get_mut(ticket.id.as_str()).expect("a task");
                    task.stage = Stage::Claimed { token: ticket.token, until: self.clock + lease_ms };
                }
            },
            TaskVerb::Complete(ticket) => match model.holds(ticket.id.as_str(), ticket.token) {
                false => refused(Rejection::NotHolder),
                true => {
                    model.completed += 1;
                    let task = model.tasks.get_mut(ticket.id.as_str()).expect("a task");
                    match (task.every, task.keep) {
                        (Some(every), _) => model.recur(ticket.id.as_str(), every, wall),
                        (None, 0) => drop(model.tasks.remove(ticket.id.as_str())),
                        (None, keep) => task.stage = Stage::Done { until: self.clock + keep },
                    }
                }
            },
            TaskVerb::Fail { ticket, then, .. } => match model.holds(ticket.id.as_str(), ticket.token) {
                false => refused(Rejection::NotHolder),
                true => model.fail(ticket.id.as_str(), *then, wall),
            },
            TaskVerb::Cancel(id) => match model.tasks.remove(id.as_str()) {
                None => refused(Rejection::NotFound),
                Some(_) => assert!(done.is_some(), "{outcome:?}"),
            },
            TaskVerb::Requeue(Requeue::One(id)) => match model.tasks.get_mut(id.as_str()) {
                Some(task) if task.stage == Stage::Dead => {
                    (task.attempts, task.planned, task.wait) = (0, wall, Wait::Nothing);
                    model.wait(id.as_str(), wall);
                }
                _ => refused(Rejection::NotFound),
            },
            TaskVerb::Requeue(Requeue::Oldest(limit)) => {
                let dead = model.tasks.iter().filter(|(_, task)| task.stage == Stage::Dead);
                let mut dead: Vec<_> = dead.map(|(id, task)| (task.died, task.turn, id.clone())).collect();
                dead.sort();
                let taken = dead.len().min(*limit as usize);
                for (.., id) in &dead[..taken] {
                    let task = model.tasks.get_mut(id).expect("a task");
                    (task.attempts, task.planned, task.wait) = (0, wall, Wait::Nothing);
                    model.wait(id, wall);
                }
                let expected = TaskReply::Requeued { count: taken as u32, more: dead.len() > taken };
                assert_eq!(done, Some(&expected));
            }
            TaskVerb::Plan(_) => unreachable!("nobody asks for it here"),
        }
    }

    /// Every task is as far as the model has it.
    fn compare_rows(&self) {
        let rows = crate::machine_support::tasks::all(&self.store);
        let found: BTreeMap<_, _> = rows
            .into_iter()
            .map(|(_, id, row)| {
                let stage = match row.head.state {
                    TaskState::Scheduled => Stage::Waits,
                    TaskState::Claimed { token, until, .. } => Stage::Claimed { token, until },
                    TaskState::Dead { .. } => Stage::Dead,
                    TaskState::Done { until } => Stage::Done { until },
                    TaskState::Unplanned => panic!("nothing recurs by a pattern"),
                };
                (id.to_string(), (stage, row.head.due, row.head.attempts))
            })
            .collect();
        let tasks = self.model.tasks.iter();
        let expected: BTreeMap<_, _> =
            tasks.map(|(id, task)| (id.clone(), (task.stage.clone(), task.due, task.attempts))).collect();
        assert_eq!(found, expected, "rows on the left, the model on the right, at clock {}", self.clock);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_does_what_its_model_does(steps in prop::collection::vec((asks(), pauses(), jumps()), 1..60)) {
        let mut run = Run::new();
        for (ask, pass, jump) in &steps {
            run.step(ask, *pass, *jump);
        }
    }
}
