//! `/v1/tasks`: queues of timed tasks.
//!
//! Owns the handlers but for claiming, and what of a path is the queue and what the task. What is due and what becomes of a task is
//! decided where commands are applied.

use quorate_api::{
    Problem, QueueList, QueueStats, ScheduleRequest, TaskAnswer, TaskCancel, TaskComplete, TaskExtend, TaskFail,
    TaskList, TaskRequeue, TaskScheduled, TaskSpecs, TaskView, TasksRequeued, TasksScheduled, path,
};
use quorate_machine::query::{ReadPosition, TaskFilter, TasksQuery};
use quorate_machine::types::{
    Action, Outcome as Decided, QueueName, Rejection, Reply, Requeue, ScheduledTask, TaskId, TaskOp, TaskReply,
    TaskState, TaskSummary, TaskVerb,
};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::{evaluate, scan};
use quorate_node_core::gateway::text::quoted;
use quorate_node_core::gateway::{decide, propose, text};
use quorate_node_core::limits;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::coordinate;
use crate::described::{Common, Page, QueuePath, Reused};
use crate::input::cursor::TaskCursor;
use crate::input::extract::Query;
use crate::input::json_body::{Json, JsonBytes};
use crate::input::{json, json_body};
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};
use crate::tasks::{answer, body};

/// What stands between the queue and the task in a path.
const TASK_MARK: &str = "/task/";

/// The two forms of the answer to a schedule.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described")]
pub enum ScheduleAnswer {
    /// To one task.
    One(TaskScheduled),
    /// To several.
    Several(TasksScheduled),
}

pub fn routes() -> Routes {
    const SCAN: Policy = Policy::data(RequestClass::Scan);
    const POINT: Policy = Policy::data(RequestClass::Point);
    Routes::new()
        .add(SCAN, routes!(queues))
        .add(SCAN, routes!(list))
        .add(SCAN, routes!(requeue))
        .add(POINT, routes!(schedule))
        .add(POINT, routes!(extend))
        .add(POINT, routes!(complete))
        .add(POINT, routes!(fail))
        .add(POINT, routes!(cancel))
        .add(POINT, routes!(stats))
        .add(POINT, routes!(get))
}

/// Lists the queues, by name, with what they count.
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", operation_id = "queues",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = QueueList, example = json!({"queues": [{"queue": "mail", "scheduled": 3, "claimed": 1, "dead": 0, "unplanned": 0, "done": 2, "completed_total": 40, "failed_total": 1, "died_total": 0, "cancelled_total": 0, "next_at": "2026-11-21T08:00:00.000Z"}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn queues(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| QueueName::new(text).ok())?;
    context.costs_page(limit)?;
    context.admit_read(&requirement::on_prefix(Permission::Read, b"")).await?;
    let page = scan(&context, move |backend| backend.queues(after.as_ref(), limit)).await?;
    let last = page.queues.last().map(|view| view.name.to_string());
    let ReadPosition { revision, index, .. } = page.at;
    let queues = page.queues.iter().map(answer::queue).collect();
    let answer = QueueList { queues, cursor: last.filter(|_| page.more), revision, index };
    command::answer(&answer, revision, None)
}

/// Schedules a task, or several at once.
///
/// An `id` makes it safe to schedule the same task again: while the id is in use, also for `keep_ms` after the task was completed, the
/// answer says `created: false` and tells of the task that is there. What would be lost without a word is refused (409
/// `already_exists`): the task that is there is dead, or `replace` is asked for and it is worked on or was completed. In a list each task
/// says by `created` and `state` what came of it. Nothing is due before its time; what is due first is given out first. A recurring task
/// (`every_ms`, `cron`) is one task: its next time is set when an occurrence ends, and times that passed meanwhile are left out.
#[utoipa::path(post, path = "/v1/tasks/{queue}", tag = "tasks", operation_id = "schedule_tasks",
    params(QueuePath),
    request_body(content = ScheduleRequest, content_type = "application/json",
        example = json!({"id": "welcome-7", "payload": {"to": "ann"}, "delay_ms": 60000, "max_attempts": 5, "request_id": "signup-7"})),
    responses(
        (status = 200, description = "What came of it.", body = ScheduleAnswer, example = json!({"id": "welcome-7", "created": true, "state": "scheduled", "execute_at": "2026-11-21T08:00:00.000Z", "attempts": 0, "max_attempts": 5, "revision": "21", "index": 33})),
        (status = 201, description = "The same of one task that is new: `Location` is its path.", body = ScheduleAnswer, example = json!({"id": "welcome-7", "created": true, "state": "scheduled", "execute_at": "2026-11-21T08:00:00.000Z", "attempts": 0, "max_attempts": 5, "revision": "21", "index": 33})),
        (status = 409, description = "`already_exists`: the task that has the id is dead, or is not one that `replace` takes away; `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; what is scheduled can still be worked off.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn schedule(context: Context, JsonBytes(text): JsonBytes) -> Outcome {
    let queue = queue_of(context.name())?;
    let request = schedule_of(&text)?;
    let (dry_run, is_list) = (request.dry_run(), matches!(request, ScheduleRequest::Several(_)));
    context.take_request_id(request.request_id())?;
    let verb = match request {
        // The next time of a pattern is reckoned as it is read.
        ScheduleRequest::One(spec) if spec.cron.is_some() => {
            TaskVerb::ScheduleOne(evaluate(&context, move |_| Ok(body::new_task(&spec))).await??)
        }
        ScheduleRequest::One(spec) => TaskVerb::ScheduleOne(body::new_task(&spec)?),
        ScheduleRequest::Several(TaskSpecs { tasks, .. }) => {
            TaskVerb::Schedule(evaluate(&context, move |_| Ok(body::new_tasks(&tasks))).await??)
        }
    };
    let count = if let TaskVerb::Schedule(tasks) = &verb { tasks.len() } else { 1 };
    context.costs(count, count)?;
    let segment = path::encode_segment(queue.as_str());
    let reply = decide(&context, queue, verb, dry_run).await?;
    let done = match &reply.outcome {
        Decided::Task(done) => match &**done {
            TaskReply::Scheduled(done) => done,
            _ => return Err(propose::confused(&reply)),
        },
        _ => return Err(propose::confused(&reply)),
    };
    let Reply { revision, index, replayed, .. } = reply;
    let mut tasks: Vec<_> = done.iter().map(scheduled).collect();
    match tasks.pop() {
        Some(one) if !is_list => {
            let location = format!("/v1/tasks/{segment}/task/{}", path::encode(&one.id));
            let (revision, index) = (Some(revision), Some(index));
            let answer = TaskScheduled { revision, index, replayed, dry_run, ..one };
            let shown = command::answer(&answer, reply.revision, None)?;
            Ok(if answer.created && !dry_run { created(shown, location) } else { shown })
        }
        last => {
            tasks.extend(last);
            let created = tasks.iter().filter(|task| task.created).count() as u64;
            let answer = TasksScheduled { tasks, created, revision, index, replayed, dry_run };
            command::answer(&answer, revision, None)
        }
    }
}

/// Several tasks where there is a field `tasks`, else one.
fn schedule_of(text: &[u8]) -> Result<ScheduleRequest, Failure> {
    let is_list = json::fields(text).is_ok_and(|fields| fields.iter().any(|(name, _)| name == "tasks"));
    background::in_place(text.len(), || match is_list {
        true => json_body::frame(text).map(ScheduleRequest::Several),
        false => json_body::frame(text).map(Box::new).map(ScheduleRequest::One),
    })
}

/// Lists tasks of a queue.
///
/// Those that wait in the order in which they are due, dead ones with the newest last, others by id. A page ends at `limit` tasks, at
/// 4 MiB, or after 10,000 that are in another state; while there is a `cursor`, there may be more.
#[utoipa::path(get, path = "/v1/tasks/{queue}", tag = "tasks", operation_id = "tasks",
    params(
        QueuePath,
        ("state" = Option<String>, Query, description = "`scheduled` (default), `claimed`, `dead`, `done`, `unplanned` or `all`.", example = "dead"),
        Page,
    ),
    responses(
        (status = 200, description = "A page.", body = TaskList, example = json!({"tasks": [{"id": "welcome-7", "state": "dead", "execute_at": "2026-11-21T08:00:00.000Z", "created_at": "2026-11-21T07:00:00.000Z", "attempts": 5, "max_attempts": 5, "backoff": {"initial_ms": 1000, "max_ms": 300000, "factor": 2.0}, "runs": 0, "last_error": "no such mailbox", "died_at": "2026-11-21T08:10:00.000Z", "payload": {"to": "ann"}}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let queue = queue_of(context.name())?;
    let mut query = Query::parse(context.head.uri.query());
    let (limit, filter) = (query.page_limit(limits::LIST_ENTRIES_DEFAULT), filter(&mut query));
    let after = query.cursor(|text| TaskCursor::decode(text).map(|cursor| cursor.after));
    query.finish()?;
    // Those in another state are looked at too.
    context.costs_a_find()?;
    context.admit_read(&requirement::on_name(Permission::Read, queue.as_str().as_bytes())).await?;
    let (bytes_max, rows_max) = (limits::LIST_BYTES_MAX, limits::TASK_ROWS_MAX);
    let parsed = TasksQuery { queue, filter, after, limit, bytes_max, rows_max };
    let page = scan(&context, move |backend| backend.tasks(&parsed)).await?;
    let ReadPosition { revision, index, clock, .. } = page.at;
    let tasks = page.tasks.iter().map(|(id, row)| answer::task(id, row, clock)).collect();
    let cursor = page.after.map(|after| TaskCursor { after }.encode());
    command::answer(&TaskList { tasks, cursor, revision, index }, revision, None)
}

/// Shows what a queue counts. It costs nothing, however many tasks there are.
#[utoipa::path(get, path = "/v1/tasks/{queue}/stats", tag = "tasks", operation_id = "queue_stats",
    params(QueuePath),
    responses(
        (status = 200, description = "The queue; all zero where nothing was ever scheduled into it.", body = QueueStats, example = json!({"queue": "mail", "scheduled": 3, "claimed": 1, "dead": 0, "unplanned": 0, "done": 2, "completed_total": 40, "failed_total": 1, "died_total": 0, "cancelled_total": 0, "next_at": "2026-11-21T08:00:00.000Z", "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn stats(context: Context) -> Outcome {
    let queue = queue_of(context.name())?;
    context.admit_read(&requirement::on_name(Permission::Read, queue.as_str().as_bytes())).await?;
    let (at, view) = context.api.node.queue(&queue).map_err(|fault| Failure::from_fault(&fault))?;
    let answer = QueueStats { revision: Some(at.revision), index: Some(at.index), ..answer::queue(&view) };
    command::answer(&answer, at.revision, None)
}

/// Shows a task.
#[utoipa::path(get, path = "/v1/tasks/{queue}/task/{id}", tag = "tasks", operation_id = "task",
    params(
        QueuePath,
        ("id" = String, Path, description = "The task, percent-encoded; slashes may stand as they are.", example = "welcome-7", min_length = 1, max_length = 256),
    ),
    responses(
        (status = 200, description = "The task.", body = TaskView, example = json!({"id": "welcome-7", "state": "scheduled", "execute_at": "2026-11-21T08:00:00.000Z", "created_at": "2026-11-21T07:00:00.000Z", "attempts": 0, "max_attempts": 5, "backoff": {"initial_ms": 1000, "max_ms": 300000, "factor": 2.0}, "runs": 0, "payload": {"to": "ann"}, "revision": "20", "index": 31})),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let (queue, id) = context.name().split_once(TASK_MARK).unwrap_or((context.name(), ""));
    let queue = queue_of(queue)?;
    let id = text::percent_decode(id).map_err(|why| Failure::invalid("path:id", why))?;
    let id = TaskId::new(id).map_err(|why| Failure::invalid("path:id", why.to_string()))?;
    context.admit_read(&requirement::on_name(Permission::Read, queue.as_str().as_bytes())).await?;
    let (at, row) = context.api.node.task(&queue, &id).map_err(|fault| Failure::from_fault(&fault))?;
    let row = row.ok_or_else(|| command::missing(no_task(&queue, "task", Some(&id)), at))?;
    let view = answer::task(&id, &row, at.clock);
    let answer = TaskView { revision: Some(at.revision), index: Some(at.index), ..view };
    command::answer(&answer, at.revision, None)
}

/// Lets a claim hold for `lease_ms` from now, any number of times.
#[utoipa::path(post, path = "/v1/tasks/{queue}/extend", tag = "tasks", operation_id = "extend_task",
    params(QueuePath),
    request_body(content = TaskExtend, content_type = "application/json", example = json!({"id": "welcome-7", "token": "21", "lease_ms": 60000})),
    responses(
        (status = 200, description = "The claim holds.", body = TaskAnswer, example = json!({"id": "welcome-7", "state": "claimed", "attempts": 1, "max_attempts": 5, "lease_ms": 60000, "revision": "22", "index": 34})),
        (status = 409, description = "`not_lock_holder`: the claim is over; `request_id_reused`", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn extend(context: Context, Json(mut request): Json<TaskExtend>) -> Outcome {
    let id = request.request_id.take();
    act(&context, context.with_request_id(id, body::extend(&request))?).await
}

/// Completes a task: it is done, once, whoever else had it before. One that recurs waits for its next time.
#[utoipa::path(post, path = "/v1/tasks/{queue}/complete", tag = "tasks", operation_id = "complete_task",
    params(QueuePath),
    request_body(content = TaskComplete, content_type = "application/json", example = json!({"id": "welcome-7", "token": "21"})),
    responses(
        (status = 200, description = "It is done.", body = TaskAnswer, example = json!({"id": "welcome-7", "state": "done", "attempts": 1, "max_attempts": 5, "revision": "22", "index": 34})),
        (status = 409, description = "`not_lock_holder`: the claim is over, and somebody else does the task or did it; `request_id_reused`", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn complete(context: Context, Json(mut request): Json<TaskComplete>) -> Outcome {
    let id = request.request_id.take();
    act(&context, context.with_request_id(id, body::complete(&request))?).await
}

/// Ends an attempt without success. The task is tried again after a pause, as long as it has attempts left; else it is dead and keeps
/// the error. `release` gives it back instead, and the attempt does not count.
#[utoipa::path(post, path = "/v1/tasks/{queue}/fail", tag = "tasks", operation_id = "fail_task",
    params(QueuePath),
    request_body(content = TaskFail, content_type = "application/json", example = json!({"id": "welcome-7", "token": "21", "error": "mailbox full", "retry_in_ms": 60000})),
    responses(
        (status = 200, description = "The task as it is now.", body = TaskAnswer, example = json!({"id": "welcome-7", "state": "scheduled", "execute_at": "2026-11-21T08:01:00.000Z", "attempts": 1, "max_attempts": 5, "revision": "22", "index": 34})),
        (status = 409, description = "`not_lock_holder`: the claim is over; `request_id_reused`", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn fail(context: Context, Json(mut request): Json<TaskFail>) -> Outcome {
    let id = request.request_id.take();
    act(&context, context.with_request_id(id, body::fail(request))?).await
}

/// Takes a task away, whatever its state. Whoever works on it learns of it when the claim is extended or the task completed.
#[utoipa::path(post, path = "/v1/tasks/{queue}/cancel", tag = "tasks", operation_id = "cancel_task",
    params(QueuePath),
    request_body(content = TaskCancel, content_type = "application/json", example = json!({"id": "welcome-7"})),
    responses(
        (status = 200, description = "It is gone.", body = TaskAnswer, example = json!({"id": "welcome-7", "state": "gone", "attempts": 0, "max_attempts": 5, "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn cancel(context: Context, Json(mut request): Json<TaskCancel>) -> Outcome {
    let id = request.request_id.take();
    act(&context, context.with_request_id(id, body::cancel(&request))?).await
}

/// Schedules dead tasks again, at once and as if they had never been tried: one by its `id`, or those that died first.
#[utoipa::path(post, path = "/v1/tasks/{queue}/requeue", tag = "tasks", operation_id = "requeue_tasks",
    params(QueuePath),
    request_body(content = TaskRequeue, content_type = "application/json", example = json!({"limit": 100})),
    responses(
        (status = 200, description = "They are scheduled.", body = TasksRequeued, example = json!({"count": 1, "more": false, "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: there is no dead task with this id.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn requeue(context: Context, Json(mut request): Json<TaskRequeue>) -> Outcome {
    let id = request.request_id.take();
    act(&context, context.with_request_id(id, body::requeue(&request))?).await
}

/// Has something done with a task, and tells of it.
async fn act(context: &RequestContext, verb: TaskVerb) -> Outcome {
    let queue = queue_of(context.name())?;
    let lease_ms = match &verb {
        TaskVerb::Extend { lease_ms, .. } => Some(*lease_ms),
        _ => None,
    };
    let is_requeue = matches!(verb, TaskVerb::Requeue(_));
    let reply = decide(context, queue, verb, false).await?;
    let Decided::Task(done) = &reply.outcome else { return Err(propose::confused(&reply)) };
    let Reply { revision, index, replayed, .. } = reply;
    match &**done {
        TaskReply::Changed(_) if is_requeue => {
            command::answer(&TasksRequeued { count: 1, more: false, revision, index, replayed }, revision, None)
        }
        TaskReply::Requeued { count, more } => {
            let answer = TasksRequeued { count: (*count).into(), more: *more, revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        TaskReply::Changed(task) => command::answer(&changed(&reply, task, lease_ms), revision, None),
        _ => Err(propose::confused(&reply)),
    }
}

async fn decide(context: &RequestContext, queue: QueueName, verb: TaskVerb, dry_run: bool) -> Result<Reply, Failure> {
    let id = match &verb {
        TaskVerb::Extend { ticket, .. } | TaskVerb::Complete(ticket) | TaskVerb::Fail { ticket, .. } => {
            ticket.id.to_string()
        }
        _ => queue.to_string(),
    };
    let task = match &verb {
        TaskVerb::Extend { ticket, .. } | TaskVerb::Complete(ticket) | TaskVerb::Fail { ticket, .. } => {
            Some(&ticket.id)
        }
        TaskVerb::Cancel(id) | TaskVerb::Requeue(Requeue::One(id)) => Some(id),
        _ => None,
    };
    let what = if matches!(verb, TaskVerb::Requeue(_)) { "dead task" } else { "task" };
    let missing = no_task(&queue, what, task);
    let reply = decide::decide(context, Action::Task(TaskOp { queue, verb }), dry_run).await?;
    match &reply.outcome {
        Decided::Rejected(why @ Rejection::NotFound) => Err(Failure::from_rejection(&id, &reply, why).saying(missing)),
        Decided::Rejected(why) => Err(Failure::from_rejection(&id, &reply, why)),
        _ => Ok(reply),
    }
}

fn no_task(queue: &QueueName, what: &str, id: Option<&TaskId>) -> String {
    let which = id.map_or("with this id".to_owned(), |id| quoted(id.as_str()));
    format!("the queue {} has no {what} {which}", quoted(queue.as_str()))
}

/// The queue in a path: one segment, so that what follows is no part of it.
pub fn queue_of(rest: &str) -> Result<QueueName, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:queue", why))?;
    QueueName::new(text).map_err(|why| Failure::invalid("path:queue", why.to_string()))
}

fn filter(query: &mut Query<'_>) -> TaskFilter {
    match query.text("state").as_deref() {
        None | Some("scheduled") => TaskFilter::Scheduled,
        Some("claimed") => TaskFilter::Claimed,
        Some("dead") => TaskFilter::Dead,
        Some("done") => TaskFilter::Done,
        Some("unplanned") => TaskFilter::Unplanned,
        Some("all") => TaskFilter::All,
        Some(_) => {
            query.faults.add("query:state", "none of `scheduled`, `claimed`, `dead`, `done`, `unplanned` and `all`");
            TaskFilter::All
        }
    }
}

fn scheduled(done: &ScheduledTask) -> TaskScheduled {
    let ScheduledTask { task, created, replaced } = done;
    TaskScheduled {
        id: task.id.to_string(),
        created: *created,
        replaced: *replaced,
        state: answer::state(task.state.as_ref()),
        execute_at: (task.state != Some(TaskState::Unplanned)).then(|| answer::time(task.due)),
        attempts: task.attempts,
        max_attempts: task.max_attempts,
        revision: None,
        index: None,
        replayed: false,
        dry_run: false,
    }
}

fn changed(reply: &Reply, task: &TaskSummary, lease_ms: Option<u64>) -> TaskAnswer {
    TaskAnswer {
        id: task.id.to_string(),
        state: answer::state(task.state.as_ref()),
        execute_at: (task.state == Some(TaskState::Scheduled)).then(|| answer::time(task.due)),
        attempts: task.attempts,
        max_attempts: task.max_attempts,
        lease_ms,
        revision: reply.revision,
        index: reply.index,
        replayed: reply.replayed,
    }
}
