//! The wall clock that batches bring: what was far ahead is walked back, and everything that goes by it goes on at the right time.

use crate::machine_support::{Store, batch, tasks};
use quorate_machine::document::Criteria;
use quorate_machine::keyspace::{audit, family};
use quorate_machine::types::*;

const DAY: u64 = 86_400_000;
/// The right time at the first batch.
const BEGAN: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

/// Applies one command in a batch with this stamp.
fn at(store: &mut Store, wall: u64, action: Action) -> Outcome {
    let batch = Batch { wall, ..batch(store.vars.clock + 1, &[Command::unnamed(action)]) };
    let (replies, _) = store.apply(&[batch]).unwrap();
    store.check();
    replies.concat().remove(0).outcome
}

fn task(verb: TaskVerb) -> Action {
    Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb })
}

fn schedule(id: &str, start: Start, recurrence: Option<Recurrence>) -> Action {
    let retry = RetryPlan { max_attempts: 2, initial_ms: 400, max_ms: 400, factor_milli: 1_000 };
    let payload = Value { kind: ContentKind::Json, data: b"1".to_vec() };
    let (id, keep_ms, replace) = (Some(TaskId::new(id).unwrap()), 0, false);
    task(TaskVerb::Schedule(vec![NewTask { id, payload, start, recurrence, retry, keep_ms, replace }]))
}

fn claim(store: &mut Store, wall: u64) -> Vec<ClaimedTask> {
    let verb = TaskVerb::Claim { limit: 9, lease_ms: DAY, worker: String::new(), session: None };
    match at(store, wall, task(verb)) {
        Outcome::Task(done) => match *done {
            TaskReply::Claimed(claimed) => claimed.tasks,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn ids(tasks: &[ClaimedTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// A cluster whose wall clock was a day ahead for one batch.
fn once_ahead(with: Action) -> Store {
    let mut store = Store::default();
    at(&mut store, BEGAN, task(TaskVerb::Claim { limit: 1, lease_ms: 5_000, worker: String::new(), session: None }));
    // The cluster clock goes on as ever.
    let ahead = Batch { wall: BEGAN + DAY, ..batch(2, &[Command::unnamed(with)]) };
    store.apply(&[ahead]).unwrap();
    assert_eq!(store.vars.wall, BEGAN + DAY);
    store
}

#[test]
fn what_is_scheduled_after_a_wrong_moment_is_due_at_the_right_time() {
    let nothing = task(TaskVerb::Claim { limit: 1, lease_ms: 5_000, worker: String::new(), session: None });
    let mut store = once_ahead(nothing);
    at(&mut store, BEGAN + 1_000, schedule("soon", Start::In(1_000), None));
    at(&mut store, BEGAN + 1_000, schedule("later", Start::At(BEGAN + DAY / 2), None));
    assert_eq!(ids(&claim(&mut store, BEGAN + 1_999)), Vec::<&str>::new());
    assert_eq!(ids(&claim(&mut store, BEGAN + 2_000)), ["soon"], "and not what is to come in half a day");
    assert_eq!(ids(&claim(&mut store, BEGAN + DAY / 2)), ["later"]);
}

#[test]
fn an_attempt_that_fails_after_a_wrong_moment_comes_again_after_its_pause() {
    let mut store = once_ahead(schedule("it", Start::At(BEGAN), None));
    let claimed = claim(&mut store, BEGAN + 10_000);
    assert_eq!(ids(&claimed), ["it"]);
    let ticket = Ticket { id: claimed[0].id.clone(), token: store.vars.revision };
    at(&mut store, BEGAN + 10_000, task(TaskVerb::Fail { ticket, error: "no".into(), then: AfterFailure::Retry }));
    assert_eq!(ids(&claim(&mut store, BEGAN + 10_399)), Vec::<&str>::new());
    assert_eq!(ids(&claim(&mut store, BEGAN + 10_400)), ["it"]);
}

#[test]
fn a_task_that_recurs_goes_on_from_now_when_an_occurrence_was_taken_too_early() {
    let mut store = Store::default();
    let every = Some(Recurrence::Every(MINUTE));
    at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), every));
    // By a clock that is a day ahead two occurrences are taken: the first, and the one of tomorrow.
    for wall in [BEGAN + DAY, BEGAN + DAY + MINUTE] {
        let claimed = claim(&mut store, wall);
        assert_eq!(ids(&claimed), ["it"]);
        let ticket = Ticket { id: claimed[0].id.clone(), token: store.vars.revision };
        // The second is completed when the clock is right again.
        let done = if wall == BEGAN + DAY { wall } else { BEGAN + 10_000 };
        let complete =
            Batch { wall: done, ..batch(store.vars.clock, &[Command::unnamed(task(TaskVerb::Complete(ticket)))]) };
        store.apply(&[complete]).unwrap();
        store.check();
    }
    let clock = store.vars.clock;
    let mut claim_at = |wall| {
        let verb = TaskVerb::Claim { limit: 9, lease_ms: 5_000, worker: String::new(), session: None };
        let batch = Batch { wall, ..batch(clock, &[Command::unnamed(task(verb))]) };
        match store.apply(&[batch]).unwrap().0.concat().remove(0).outcome {
            Outcome::Task(done) => matches!(*done, TaskReply::Claimed(claimed) if claimed.tasks.len() == 1),
            other => panic!("{other:?}"),
        }
    };
    assert!(!claim_at(BEGAN + MINUTE - 1));
    assert!(claim_at(BEGAN + MINUTE), "the next one by the right clock, and not the one of the day after tomorrow");
}

#[test]
fn now_and_the_times_of_the_trail_are_right_again() {
    let key = || Key::new("k").unwrap();
    let write = |change| {
        Action::Write(WriteOp {
            key: key(),
            expect: Expect::ANY,
            condition: Criteria::default(),
            change,
            expiry: Expiry::Never,
            return_previous: false,
            session: None,
            guard: None,
        })
    };
    let put = || write(Change::Put(Value { kind: ContentKind::Json, data: b"{}".to_vec() }));
    let of_trail = |store: &Store| {
        let rows = store.rows(family::AUDIT);
        rows.iter().map(|(_, row)| audit::decode(row).unwrap().wall).collect::<Vec<_>>()
    };
    let mut store = once_ahead(put());
    at(&mut store, BEGAN + 2_000, put());
    assert_eq!(store.vars.wall, BEGAN + 2_000);
    // A little behind it stands still, and then goes on.
    at(&mut store, BEGAN + 1_500, put());
    assert_eq!(store.vars.wall, BEGAN + 2_000);
    at(&mut store, BEGAN + 2_001, put());
    assert_eq!(store.vars.wall, BEGAN + 2_001);
    assert_eq!(of_trail(&store), [BEGAN + DAY, BEGAN + 2_000, BEGAN + 2_000, BEGAN + 2_001]);
}

/// Claims the one task that is due, and tells what came of it.
fn work(store: &mut Store, wall: u64, done: fn(Ticket) -> TaskVerb) {
    let claimed = claim(store, wall);
    assert_eq!(ids(&claimed), ["it"]);
    let ticket = Ticket { id: claimed[0].id.clone(), token: store.vars.revision };
    at(store, wall, task(done(ticket)));
}

fn fail(ticket: Ticket, then: AfterFailure) -> TaskVerb {
    TaskVerb::Fail { ticket, error: "no".into(), then }
}

/// What is known of the tasks, in order of their ids.
fn heads(store: &Store) -> Vec<TaskHead> {
    tasks::all(store).into_iter().map(|(_, _, row)| row.head).collect()
}

/// As the leader does: says when the one task is due.
fn plan(store: &mut Store, wall: u64, due: u64) {
    let (id, seen) = (TaskId::new("it").unwrap(), heads(store)[0].revision);
    at(store, wall, task(TaskVerb::Plan(PlanTask { id, seen, due: Some(due) })));
}

#[test]
fn a_task_that_was_completed_by_a_wrong_clock_comes_again_within_its_period() {
    let mut store = Store::default();
    at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), Some(Recurrence::Every(MINUTE))));
    work(&mut store, BEGAN + DAY, TaskVerb::Complete);
    work(&mut store, BEGAN + DAY + MINUTE, TaskVerb::Complete);
    assert_eq!(heads(&store)[0].due, BEGAN + DAY + 2 * MINUTE);
    assert_eq!(ids(&claim(&mut store, BEGAN + 10_000)), Vec::<&str>::new());
    assert_eq!(ids(&claim(&mut store, BEGAN + MINUTE - 1)), Vec::<&str>::new(), "its own times are kept to");
    work(&mut store, BEGAN + MINUTE, TaskVerb::Complete);
    assert_eq!(heads(&store)[0].due, BEGAN + 2 * MINUTE);
}

#[test]
fn an_occurrence_that_died_by_a_wrong_clock_is_followed_by_the_next_within_the_period() {
    let mut store = Store::default();
    at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), Some(Recurrence::Every(MINUTE))));
    work(&mut store, BEGAN + DAY, |ticket| fail(ticket, AfterFailure::Die));
    at(&mut store, BEGAN + 10_000, task(TaskVerb::Cancel(TaskId::new("another").unwrap())));
    assert_eq!(heads(&store)[0].due, BEGAN + MINUTE);
}

#[test]
fn a_cron_that_was_planned_by_a_wrong_clock_is_planned_anew() {
    let mut store = Store::default();
    let cron = Recurrence::Cron { pattern: "*/5 * * * *".into(), zone: "UTC".into() };
    at(&mut store, BEGAN, schedule("it", Start::Planned, Some(cron)));
    plan(&mut store, BEGAN, BEGAN);
    work(&mut store, BEGAN + DAY, TaskVerb::Complete);
    plan(&mut store, BEGAN + DAY, BEGAN + DAY + 5 * MINUTE);
    assert_eq!(ids(&claim(&mut store, BEGAN + 10_000)), Vec::<&str>::new());
    let head = heads(&store).remove(0);
    assert_eq!((head.state, head.due, store.vars.unplanned), (TaskState::Unplanned, BEGAN + 10_000, 1));
    plan(&mut store, BEGAN + 10_000, BEGAN + 5 * MINUTE);
    work(&mut store, BEGAN + 5 * MINUTE, TaskVerb::Complete);
}

#[test]
fn an_attempt_that_failed_by_a_wrong_clock_comes_again_after_its_pause() {
    for recurrence in [None, Some(Recurrence::Every(MINUTE))] {
        let mut store = Store::default();
        at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), recurrence));
        work(&mut store, BEGAN + DAY, |ticket| fail(ticket, AfterFailure::Retry));
        assert_eq!(heads(&store)[0].due, BEGAN + DAY + 400);
        assert_eq!(ids(&claim(&mut store, BEGAN + 10_000)), Vec::<&str>::new());
        assert_eq!(ids(&claim(&mut store, BEGAN + 10_399)), Vec::<&str>::new());
        work(&mut store, BEGAN + 10_400, TaskVerb::Complete);
    }
}

#[test]
fn a_dead_task_that_was_put_back_by_a_wrong_clock_is_due_at_once() {
    let mut store = Store::default();
    at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), None));
    work(&mut store, BEGAN, |ticket| fail(ticket, AfterFailure::Die));
    at(&mut store, BEGAN + DAY, task(TaskVerb::Requeue(Requeue::One(TaskId::new("it").unwrap()))));
    assert_eq!(ids(&claim(&mut store, BEGAN + 10_000)), ["it"]);
}

#[test]
fn an_occurrence_that_was_taken_by_a_wrong_clock_and_is_given_back_comes_within_its_period() {
    let mut store = Store::default();
    at(&mut store, BEGAN, schedule("it", Start::At(BEGAN), Some(Recurrence::Every(MINUTE))));
    work(&mut store, BEGAN + DAY, TaskVerb::Complete);
    let claimed = claim(&mut store, BEGAN + DAY + MINUTE);
    let ticket = Ticket { id: claimed[0].id.clone(), token: store.vars.revision };
    at(&mut store, BEGAN + 10_000, task(fail(ticket, AfterFailure::GiveBack)));
    assert_eq!(heads(&store)[0].due, BEGAN + MINUTE);
}

#[test]
fn times_that_were_asked_for_stay_when_the_clock_is_walked_back() {
    let mut store = Store::default();
    at(&mut store, BEGAN, schedule("asked", Start::At(BEGAN), None));
    let claimed = claim(&mut store, BEGAN);
    let ticket = Ticket { id: claimed[0].id.clone(), token: store.vars.revision };
    // An hour is no pause of its plan.
    let hour = 60 * MINUTE;
    at(&mut store, BEGAN, task(fail(ticket, AfterFailure::RetryIn(hour))));
    at(&mut store, BEGAN, schedule("every", Start::At(BEGAN + 2 * DAY), Some(Recurrence::Every(MINUTE))));
    at(&mut store, BEGAN, schedule("once", Start::At(BEGAN + 2 * DAY), None));
    at(&mut store, BEGAN + MINUTE, schedule("the delay", Start::In(hour), None));
    at(&mut store, BEGAN + 10_000, schedule("zero", Start::In(0), None));
    let due: Vec<_> = heads(&store).into_iter().map(|head| head.due).collect();
    let asked = [BEGAN + hour, BEGAN + 2 * DAY, BEGAN + 2 * DAY, BEGAN + MINUTE + hour, BEGAN + 10_000];
    assert_eq!(due, asked);
}

/// A few at a time, and the same however entries are grouped.
#[test]
fn many_tasks_that_wait_are_looked_at_over_some_batches() {
    let mut store = Store::default();
    let mut batches = Vec::new();
    let mut apply = |store: &mut Store, wall: u64, action: Action| {
        let batch = Batch { wall, ..batch(store.vars.clock + 1, &[Command::unnamed(action)]) };
        store.apply(std::slice::from_ref(&batch)).unwrap();
        store.check();
        batches.push(batch);
    };
    let claim = || task(TaskVerb::Claim { limit: 1, lease_ms: DAY, worker: String::new(), session: None });
    let due_of_it = |store: &Store| {
        let all = tasks::all(store);
        all.into_iter().find(|(_, id, _)| id.as_str() == "it").unwrap().2.head.due
    };
    apply(&mut store, BEGAN, schedule("it", Start::At(BEGAN), Some(Recurrence::Every(MINUTE))));
    // They are due before it, by the wrong clock, and are looked at before it.
    for nth in 0..300 {
        apply(&mut store, BEGAN, schedule(&format!("other {nth}"), Start::At(BEGAN + DAY + 30_000), None));
    }
    apply(&mut store, BEGAN + DAY, claim());
    let ticket = Ticket { id: TaskId::new("it").unwrap(), token: store.vars.revision };
    apply(&mut store, BEGAN + DAY, task(TaskVerb::Complete(ticket)));
    apply(&mut store, BEGAN + 10_000, claim());
    assert_eq!(due_of_it(&store), BEGAN + DAY + MINUTE, "one batch looks at so many");
    assert_eq!(store.vars.next_timer, Some(store.vars.clock), "and the next goes on");
    apply(&mut store, BEGAN + 10_000, claim());
    assert_eq!((due_of_it(&store), store.vars.next_timer), (BEGAN + MINUTE, None));
    let walk = batches.split_off(batches.len() - 4);
    let (mut one, mut other) = (Store::default(), Store::default());
    for store in [&mut one, &mut other] {
        store.apply(&batches).unwrap();
    }
    one.apply(&walk).unwrap();
    for batch in &walk {
        other.apply(std::slice::from_ref(batch)).unwrap();
    }
    assert!(one == other && one == store, "it depends on how entries are grouped");
}
