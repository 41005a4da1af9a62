//! Timed tasks in the machine's tests: the text form of their rows, and how scripts ask for them.

use quorate_machine::codec;
use quorate_machine::keyspace::family;
use quorate_machine::keyspace::task::{self, QueueRow, TaskRow};
use quorate_machine::types::{
    AfterFailure, ContentKind, NewTask, PlanTask, QueueName, Recurrence, Requeue, RetryPlan, SessionId, Start,
    TaskHead, TaskId, TaskOp, TaskReply, TaskState, TaskSummary, TaskVerb, Ticket, Value,
};

use super::Store;

/// Every task with its queue and id.
pub fn all(store: &Store) -> Vec<(QueueName, TaskId, TaskRow)> {
    let rows = store.rows(family::TASK).into_iter();
    rows.map(|(row_key, row)| {
        let (queue, id) = task::decode_key(&row_key).unwrap();
        (queue, id, codec::decode(&row).unwrap())
    })
    .collect()
}

pub fn done(done: &TaskReply) -> String {
    match done {
        TaskReply::Scheduled(tasks) => {
            let lines = tasks.iter().map(|task| {
                let what = match (task.created, task.replaced) {
                    (true, false) => "created",
                    (true, true) => "replaced",
                    _ => "there",
                };
                format!("\n  {what} {}", summary(&task.task))
            });
            format!("scheduled{}", lines.collect::<String>())
        }
        TaskReply::Claimed(claimed) => {
            let next = claimed.next_due.map_or(String::new(), |due| format!(" next={due}"));
            let lines = claimed.tasks.iter().map(|task| {
                let payload = task.payload.as_ref().map_or("without payload".into(), |value| format!("{value:?}"));
                let error = task.last_error.as_ref().map_or(String::new(), |error| format!(" error={error:?}"));
                let (attempt, max) = (task.attempt, task.max_attempts);
                let (due, planned, left) = (task.due, task.planned, task.lease_left_ms);
                format!("\n  {} {attempt}/{max} due={due} planned={planned} left={left}{error} {payload}", task.id)
            });
            let lines: String = lines.collect();
            format!("tasks at {}, due left {}{next}{lines}", claimed.wall, claimed.due_left)
        }
        TaskReply::Changed(task) => format!("task {}", summary(task)),
        TaskReply::Requeued { count, more } => format!("requeued {count} more={more}"),
        TaskReply::Planned => "planned".into(),
    }
}

/// `ID STATE due=MS ATTEMPTS/MOST`
pub fn summary(task: &TaskSummary) -> String {
    let TaskSummary { id, state, due, attempts, max_attempts } = task;
    let state = state.as_ref().map_or("gone".into(), self::state);
    format!("{id} {state} due={due} {attempts}/{max_attempts}")
}

fn state(state: &TaskState) -> String {
    match state {
        TaskState::Scheduled => "scheduled".into(),
        TaskState::Claimed { token, until, worker, session } => {
            let session = session.map_or(String::new(), |id| format!(" with {id}"));
            format!("claimed({token} until {until} by {worker:?}{session})")
        }
        TaskState::Dead { at } => format!("dead({at})"),
        TaskState::Unplanned => "unplanned".into(),
        TaskState::Done { until } => format!("done({until})"),
    }
}

pub fn row(row_key: &[u8], value: &[u8]) -> String {
    let id = || String::from_utf8_lossy(value).into_owned();
    match row_key[0] {
        family::TASK => {
            let (queue, of) = task::decode_key(row_key).unwrap();
            let TaskRow { head, payload } = codec::decode(value).unwrap();
            let TaskHead { due, number, planned, attempts, last_error, keep_ms, created, revision, runs, .. } = &head;
            let error = last_error.as_ref().map_or(String::new(), |error| format!(" error={error:?}"));
            let state = state(&head.state);
            let recurrence = head.recurrence.as_ref().map_or(String::new(), |recurrence| format!(" {recurrence:?}"));
            format!(
                "task {queue}/{of} = r{revision} {state} due={due} n={number} planned={planned} attempts={attempts} \
                 keep={keep_ms} created={created} runs={runs}{error}{recurrence} {payload:?}"
            )
        }
        family::TASK_DUE => format!("due {:?} = {}", task::decode_due(row_key).unwrap(), id()),
        family::TASK_DEAD => format!("dead {:?} = {}", task::decode_dead(row_key).unwrap(), id()),
        family::QUEUE => {
            format!("queue {} = {:?}", task::decode_queue(row_key).unwrap(), codec::decode::<QueueRow>(value).unwrap())
        }
        _ => format!("unplanned {:?}", task::decode_unplanned(row_key).unwrap()),
    }
}

/// `task QUEUE VERB …` in a script.
pub fn op(words: &[&str]) -> TaskOp {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| option(name).map(|text| text.parse::<u64>().unwrap());
    let id = |at: usize| TaskId::new(words[at]).unwrap();
    let ticket = || Ticket { id: id(3), token: words[4].parse().unwrap() };
    let queue = QueueName::new(words[1]).unwrap();
    let limit = || u32::try_from(number("limit").unwrap_or(1)).unwrap();
    let lease_ms = number("lease").unwrap_or(30_000);
    let verb = match words[2] {
        "schedule" => {
            let parts = words[3..].split(|word| *word == ";");
            TaskVerb::Schedule(parts.filter(|part| !part.is_empty()).map(new_task).collect())
        }
        "schedule-one" => TaskVerb::ScheduleOne(new_task(&words[3..])),
        "claim" => TaskVerb::Claim {
            limit: limit(),
            lease_ms,
            worker: option("worker").unwrap_or_default().into(),
            session: option("session").map(|id| SessionId(id.parse().unwrap())),
        },
        "extend" => TaskVerb::Extend { ticket: ticket(), lease_ms },
        "complete" => TaskVerb::Complete(ticket()),
        "fail" => {
            let then = match (words.contains(&"die"), words.contains(&"back"), number("retry")) {
                (true, ..) => AfterFailure::Die,
                (_, true, _) => AfterFailure::GiveBack,
                (.., Some(ms)) => AfterFailure::RetryIn(ms),
                _ => AfterFailure::Retry,
            };
            TaskVerb::Fail { ticket: ticket(), error: option("error").unwrap_or("failed").into(), then }
        }
        "cancel" => TaskVerb::Cancel(id(3)),
        "requeue" if option("limit").is_some() => TaskVerb::Requeue(Requeue::Oldest(limit())),
        "requeue" => TaskVerb::Requeue(Requeue::One(id(3))),
        "plan" => TaskVerb::Plan(PlanTask { id: id(3), seen: words[4].parse().unwrap(), due: number("due") }),
        other => panic!("{other}"),
    };
    TaskOp { queue, verb }
}

/// `ID|- PAYLOAD [at=MS|in=MS] [every=MS|cron=PATTERN] [max=N] [first=MS] [longest=MS] [factor=MILLI] [keep=MS] [replace]`
fn new_task(words: &[&str]) -> NewTask {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| option(name).map(|text| text.parse::<u64>().unwrap());
    let recurrence = match (number("every"), option("cron")) {
        (Some(ms), _) => Some(Recurrence::Every(ms)),
        (_, Some(pattern)) => Some(Recurrence::Cron { pattern: pattern.replace('_', " "), zone: "UTC".into() }),
        _ => None,
    };
    let start = match (number("at"), number("in")) {
        _ if option("cron").is_some() => Start::Planned,
        (Some(at), _) => Start::At(at),
        (_, ms) => Start::In(ms.unwrap_or(0)),
    };
    let usual = RetryPlan::default();
    let small = |name: &str, usual: u32| number(name).map_or(usual, |number| u32::try_from(number).unwrap());
    NewTask {
        id: (words[0] != "-").then(|| TaskId::new(words[0]).unwrap()),
        payload: match words[1].strip_prefix("size:") {
            Some(size) => Value { kind: ContentKind::Bytes, data: vec![b'x'; size.parse().unwrap()] },
            None => Value { kind: ContentKind::Json, data: words[1].into() },
        },
        start,
        recurrence,
        retry: RetryPlan {
            max_attempts: small("max", usual.max_attempts),
            initial_ms: number("first").unwrap_or(usual.initial_ms),
            max_ms: number("longest").unwrap_or(usual.max_ms),
            factor_milli: small("factor", usual.factor_milli),
        },
        keep_ms: number("keep").unwrap_or(10_000),
        replace: words.contains(&"replace"),
    }
}
