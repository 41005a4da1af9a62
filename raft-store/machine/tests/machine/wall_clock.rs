//! A walk through many tasks, once the wall clock was walked back. What becomes of each is in the golden scripts `wall_clock*`.

use crate::machine_support::{Store, batch, tasks};
use quorate_machine::types::*;

const DAY: u64 = 86_400_000;
/// The right time at the first batch.
const BEGAN: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

fn task(verb: TaskVerb) -> Action {
    Action::Task(TaskOp { queue: QueueName::new("q").unwrap(), verb })
}

fn schedule(id: &str, start: Start, recurrence: Option<Recurrence>) -> Action {
    let retry = RetryPlan { max_attempts: 2, initial_ms: 400, max_ms: 400, factor_milli: 1_000 };
    let payload = Value { kind: ContentKind::Json, data: b"1".to_vec() };
    let (id, keep_ms, replace) = (Some(TaskId::new(id).unwrap()), 0, false);
    task(TaskVerb::Schedule(vec![NewTask { id, payload, start, recurrence, retry, keep_ms, replace }]))
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
