//! `POST /v1/tasks/{queue}/claim`: tasks that are due, at once or as soon as there are some.
//!
//! Owns the waiting. Whether a task is due only the cluster decides; between two tries the request sleeps until this node sees
//! something that may be due. All tries have one request id: those that found nothing leave nothing behind.

use std::time::{Duration, Instant};

use quorate_api::{Problem, TaskClaim, TaskClaimAnswer, TaskClaimed};
use quorate_machine::types::{
    Action, ClaimedTask, Outcome as Decided, QueueName, Reply, RequestId, TaskOp, TaskReply, TasksClaimed,
};
use quorate_node_core::gateway::admission::paced::hold_awake;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{propose, wait};
use quorate_node_core::timings::{self, Part};
use utoipa_axum::routes;

use crate::command;
use crate::context::{Context, RequestContext};
use crate::described::{Common, QueuePath};
use crate::input::json_body::Json;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};
use crate::tasks::{answer, body, queues};

/// While it waits it looks so often whether this node can still serve it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Point), routes!(post))
}

/// Claims tasks that are due, in the order in which they are, each for `lease_ms`.
///
/// A claim counts as an attempt. It ends with `complete` or `fail`, or by itself: then the task is tried again after a pause, and the
/// `token` is worth nothing any more. With `wait_ms` the answer comes as soon as something is due. A claim whose answer was lost is
/// to be sent again with the same request id: it gives the same tasks, with what is left of the lease.
#[utoipa::path(post, path = "/v1/tasks/{queue}/claim", tag = "tasks", operation_id = "claim_tasks",
    params(
        QueuePath,
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds; `wait_ms` comes on top."),
    ),
    request_body(content = TaskClaim, content_type = "application/json",
        example = json!({"limit": 10, "lease_ms": 60000, "worker": "mailer-3", "wait_ms": 0, "request_id": "mailer-3-17"})),
    responses(
        (status = 200, description = "What was claimed; nothing, where `count` is 0.", body = TaskClaimAnswer, example = json!({"tasks": [{"id": "welcome-7", "token": "21", "attempt": 1, "max_attempts": 20, "execute_at": "2026-11-21T08:00:00.000Z", "planned_at": "2026-11-21T08:00:00.000Z", "lease_ms": 60000, "payload": {"to": "ann"}}], "count": 1, "waited_ms": 0, "revision": "21", "index": 33})),
        (status = 409, description = "`session_expired`: the claim was to hang on a session that is none, or not any more. `request_id_reused`.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn post(context: Context, Json(mut request): Json<TaskClaim>) -> Outcome {
    let queue = queues::queue_of(context.name())?;
    let id = request.request_id.take();
    let (verb, wait) = context.with_request_id(id, body::claim(request))?;
    // A retry is given the same tasks once more, as often as it asks.
    context.check_values()?;
    let claim = Claim { op: TaskOp { queue, verb }, began: Instant::now() };
    let first = claim.attempt(&context).await?;
    if first.is_done() || wait.is_zero() {
        return claim.answer(&first);
    }
    let mut last = claim.wait(&context, first, claim.began + wait).await?;
    if !last.is_done() {
        // What was scheduled or planned while it waited is news.
        let (_, queue) = context.api.node.queue(claim.queue()).map_err(|fault| Failure::from_fault(&fault))?;
        last.done.next_due = queue.first_due;
    }
    claim.answer(&last)
}

/// A claim that may be tried again.
struct Claim {
    op: TaskOp,
    began: Instant,
}

/// What came of a try.
struct Tried {
    reply: Reply,
    done: TasksClaimed,
    /// When it was decided.
    at: Instant,
    /// How long the request had waited before it.
    waited: Duration,
}

impl Tried {
    fn is_done(&self) -> bool {
        !self.done.tasks.is_empty()
    }
}

impl Claim {
    fn queue(&self) -> &QueueName {
        &self.op.queue
    }

    async fn attempt(&self, context: &RequestContext) -> Result<Tried, Failure> {
        let waited = self.began.elapsed();
        // The time that a claim waits is none of the time that it may take.
        let deadline = context.deadline + waited;
        let id = RequestId(context.request_id());
        let reply = propose::propose(&context.caller(), Action::Task(self.op.clone()), id, deadline).await?;
        let at = Instant::now();
        let done = match &reply.outcome {
            Decided::Task(done) => match &**done {
                TaskReply::Claimed(done) => done.clone(),
                _ => return Err(propose::confused(&reply)),
            },
            Decided::Rejected(why) => return Err(Failure::from_rejection(self.queue().as_str(), &reply, why)),
            _ => return Err(propose::confused(&reply)),
        };
        Ok(Tried { reply, done, at, waited })
    }

    /// Tries again when it is this request's turn and something may be due. Gives the first try that found something, or the last.
    async fn wait(&self, context: &RequestContext, mut tried: Tried, until: Instant) -> Result<Tried, Failure> {
        // Who would be one too many to wait asks again.
        let Some(_waiting) = context.wait() else {
            wait::instead(context, until).await;
            return Ok(tried);
        };
        // All who wait for the queue wait for the head of the line.
        let _awake = hold_awake();
        let mut line = context.api.admission.task_lines.enter(self.queue());
        while timings::on(Part::Wait, line.come_to_head(until)).await {
            loop {
                if !timings::on(Part::Wait, self.wait_until_due(context, &tried, until)).await? {
                    return Ok(tried);
                }
                tried = self.attempt(context).await?;
                if tried.is_done() {
                    line.found(tried.done.due_left);
                    return Ok(tried);
                }
                if !line.found_nothing() {
                    break;
                }
            }
        }
        Ok(tried)
    }

    /// Sleeps until something looks due here. False: the time is over, or this node cannot serve any more.
    async fn wait_until_due(&self, context: &RequestContext, tried: &Tried, until: Instant) -> Result<bool, Failure> {
        let backend = &context.api.node;
        let wall = (tried.done.wall, tried.at);
        loop {
            let slice = until.min(Instant::now() + LOOK_EVERY);
            let waited = backend.wait_tasks(self.queue(), tried.reply.revision, wall, slice).await;
            if waited.map_err(|fault| Failure::from_fault(&fault))? {
                return Ok(true);
            }
            if slice >= until || backend.unready_reason().is_some() {
                return Ok(false);
            }
        }
    }

    fn answer(&self, tried: &Tried) -> Outcome {
        let Tried { reply, done, waited, .. } = tried;
        let answer = TaskClaimAnswer {
            tasks: done.tasks.iter().map(|task| claimed(reply, task)).collect(),
            count: done.tasks.len() as u64,
            next_at: done.next_due.map(answer::time),
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            revision: reply.revision,
            index: reply.index,
            replayed: reply.replayed,
        };
        command::answer(&answer, reply.revision, None)
    }
}

fn claimed(reply: &Reply, task: &ClaimedTask) -> TaskClaimed {
    let (payload, payload_base64) = answer::payload(task.payload.as_ref());
    TaskClaimed {
        id: task.id.to_string(),
        token: reply.revision,
        attempt: task.attempt,
        max_attempts: task.max_attempts,
        execute_at: answer::time(task.due),
        planned_at: answer::time(task.planned),
        lease_ms: task.lease_left_ms,
        last_error: task.last_error.clone(),
        payload,
        payload_base64,
    }
}
