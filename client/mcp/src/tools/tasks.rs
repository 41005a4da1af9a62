//! Timed tasks.

use std::sync::Arc;
use std::time::Duration;

use quorate_client::api::{Moment, TaskAnswer, TaskFail};
use quorate_client::{ClaimedTasks, Error, RequestId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entries::content;
use super::fields;
use super::reads::limit;
use crate::agent::Agent;
use crate::input::{self, Digits, Json};
use crate::refusal::Refusal;
use crate::shown;
use crate::taking::take;
use crate::tool::Outcome;

const LEASE_DEFAULT: Duration = Duration::from_secs(600);
const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(86_400);
/// What a task is scheduled at most ahead, or comes back after: a hundred years.
const AHEAD_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);
const LIST_DEFAULT: u32 = 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Schedule {
    /// The queue.
    queue: String,
    /// What is to be done: any JSON.
    payload: Json,
    /// Its id; while it is in use nothing more is scheduled, so a second call is safe.
    id: Option<String>,
    /// When: RFC 3339. At once if nothing is said.
    at: Option<String>,
    /// Or in so many seconds.
    delay_s: Option<f64>,
    /// Again every so many seconds.
    every_s: Option<f64>,
    /// Or by a cron pattern, `0 3 * * *`.
    cron: Option<String>,
    /// The time zone of the pattern, `Europe/Berlin`; UTC if nothing is said.
    zone: Option<String>,
    /// Attempts before it is dead; 20 if nothing is said.
    max_attempts: Option<u32>,
}

pub async fn schedule(agent: Arc<Agent>, input: Schedule) -> Outcome {
    let queue = agent.scope().name(input.queue)?;
    let mut task = agent.client().tasks(&queue).schedule(content(&agent, &input.payload)?);
    if let Some(id) = input.id {
        task = task.id(id);
    }
    if let Some(at) = input.at {
        task = task.at(Moment::from(at));
    }
    if let Some(seconds) = input.delay_s {
        task = task.delay(input::time("delay_s", seconds, Duration::ZERO, AHEAD_MAX)?);
    }
    if let Some(seconds) = input.every_s {
        task = task.every(input::time("every_s", seconds, Duration::from_millis(100), AHEAD_MAX)?);
    }
    if let Some(cron) = input.cron {
        task = task.cron(cron);
    }
    if let Some(zone) = input.zone {
        task = task.zone(zone);
    }
    if let Some(attempts) = input.max_attempts {
        task = task.max_attempts(attempts);
    }
    let answer = task.await.map_err(|error| agent.refused(&error))?;
    Ok(fields(json!({
        "queue": queue,
        "id": answer.id,
        "created": answer.created,
        "state": answer.state,
        "execute_at": answer.execute_at,
    })))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Claim {
    /// The queue.
    queue: String,
    /// Wait so long for a task that is due: 0 if nothing is said, 50 at most.
    wait_s: Option<f64>,
    /// How long it is yours unless you extend it: 600 if nothing is said, 86400 at most.
    lease_s: Option<f64>,
}

pub async fn claim(agent: Arc<Agent>, input: Claim) -> Outcome {
    let queue = agent.scope().name(input.queue)?;
    let (wait, lease) = (input::wait(input.wait_s, Duration::ZERO)?, lease(input.lease_s)?);
    let session = agent.session().await?;
    let claim = agent.client().tasks(&queue).claim().limit(1).lease(lease).wait(wait).worker(agent.owner());
    let claim = take(claim.session(session.id()).into_future(), give_back);
    let claimed = agent.unless_gone(claim).await?.map_err(|error| agent.refused(&error))?;
    let Some(task) = claimed.answer.tasks.first() else {
        return Ok(fields(json!({"queue": queue, "task": null, "next_at": claimed.answer.next_at})));
    };
    agent.keep_task(&queue, &task.id, task.token);
    Ok(fields(json!({"queue": queue, "task": agent.budget().claimed_task(task)})))
}

async fn give_back(claimed: Result<ClaimedTasks, Error>) {
    for task in claimed.into_iter().flatten() {
        // The end of the session or of the lease gives it back otherwise.
        let _ = task.release().await;
    }
}

fn lease(seconds: Option<f64>) -> Result<Duration, Refusal> {
    seconds.map_or(Ok(LEASE_DEFAULT), |seconds| input::time("lease_s", seconds, LEASE_MIN, LEASE_MAX))
}

/// A task that was claimed.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Ticket {
    /// The queue.
    queue: String,
    /// The task.
    id: String,
    /// The token of the claim instead of your own.
    token: Option<Digits>,
}

impl Ticket {
    /// Queue, id and token.
    fn checked(self, agent: &Agent) -> Result<(String, String, u64), Refusal> {
        let (queue, id) = (agent.scope().name(self.queue)?, self.id);
        let token = self.token.map(|digits| digits.0).or_else(|| agent.task_token(&queue, &id));
        let Some(token) = token else {
            let why = format!("you have no claim of the task `{id}` of the queue `{queue}`");
            return Err(Refusal::new("not_lock_holder", why).next("claim it with task_claim first"));
        };
        Ok((queue, id, token))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Complete {
    #[serde(flatten)]
    ticket: Ticket,
}

pub async fn complete(agent: Arc<Agent>, input: Complete) -> Outcome {
    let (queue, id, token) = input.ticket.checked(&agent)?;
    let answer = agent.client().tasks(&queue).complete(&id, token, RequestId::random()).await;
    let answer = answer.map_err(|error| agent.refused(&error))?;
    agent.forget_task(&queue, &id);
    Ok(answered(&queue, &answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Fail {
    #[serde(flatten)]
    ticket: Ticket,
    /// Why, for who looks at it.
    error: Option<String>,
    /// Try again after so many seconds; a pause that grows with each attempt if nothing is said.
    retry_in_s: Option<f64>,
    /// Never try again: it stays as dead until somebody looks at it.
    #[serde(default)]
    dead: bool,
    /// Give it back instead: no attempt is counted.
    #[serde(default)]
    release: bool,
}

pub async fn fail(agent: Arc<Agent>, input: Fail) -> Outcome {
    const RETRY_MAX: Duration = Duration::from_secs(7 * 86_400);
    let (queue, id, token) = input.ticket.checked(&agent)?;
    let pause =
        input.retry_in_s.map(|seconds| input::time("retry_in_s", seconds, Duration::ZERO, RETRY_MAX)).transpose()?;
    let failure = TaskFail {
        id: id.clone(),
        token,
        error: input.error,
        retry_in_ms: pause.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)),
        dead: input.dead,
        release: input.release,
        request_id: None,
    };
    let answer = agent.client().tasks(&queue).fail(&failure, RequestId::random()).await;
    let answer = answer.map_err(|error| agent.refused(&error))?;
    agent.forget_task(&queue, &id);
    Ok(answered(&queue, &answer))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Extend {
    #[serde(flatten)]
    ticket: Ticket,
    /// How long it is yours from now: 600 if nothing is said, 86400 at most.
    lease_s: Option<f64>,
}

pub async fn extend(agent: Arc<Agent>, input: Extend) -> Outcome {
    let (queue, id, token) = input.ticket.checked(&agent)?;
    let answer = agent.client().tasks(&queue).extend(&id, token, lease(input.lease_s)?, RequestId::random()).await;
    Ok(answered(&queue, &answer.map_err(|error| agent.refused(&error))?))
}

fn answered(queue: &str, answer: &TaskAnswer) -> Map<String, Value> {
    fields(json!({
        "queue": queue,
        "id": answer.id,
        "state": answer.state,
        "attempts": answer.attempts,
        "execute_at": answer.execute_at,
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    /// The queue; without it all queues and what they count.
    queue: Option<String>,
    /// Only the task of this id.
    id: Option<String>,
    /// With id: reads its payload from this byte on, in parts: go on with `next_offset`.
    offset: Option<usize>,
    /// scheduled, claimed, dead, done, unplanned or all; `all` if nothing is said.
    state: Option<String>,
    /// At most so many: 20 if nothing is said, 100 at most.
    limit: Option<u32>,
    /// The `cursor` of the page before.
    cursor: Option<String>,
}

pub async fn list(agent: Arc<Agent>, input: List) -> Outcome {
    let Some(queue) = input.queue else { return queues(&agent, input.cursor.as_deref()).await };
    let queue = agent.scope().name(queue)?;
    if let Some(id) = input.id {
        return one(&agent, queue, id, input.offset).await;
    }
    let state = input.state.as_deref().unwrap_or("all");
    let limit = limit(input.limit, LIST_DEFAULT)?;
    let page = agent.client().tasks(&queue).list(state, limit, input.cursor.as_deref()).await;
    let page = page.map_err(|error| agent.refused(&error))?;
    let mut budget = agent.shared_budget();
    let tasks: Vec<_> = page.tasks.iter().map(|task| budget.task(task)).collect();
    let mut shown = fields(json!({"queue": queue, "tasks": tasks}));
    if let Some(cursor) = page.cursor {
        shown.insert("cursor".into(), cursor.into());
    }
    Ok(shown)
}

async fn one(agent: &Agent, queue: String, id: String, offset: Option<usize>) -> Outcome {
    let task = agent.client().tasks(&queue).get(&id).await.map_err(|error| agent.refused(&error))?;
    let Some(task) = task else {
        return Ok(fields(json!({"queue": queue, "id": id, "found": false})));
    };
    Ok(match offset {
        Some(offset) => shown::payload_part(&task, offset, agent.answer_bytes()),
        None => fields(json!({"queue": queue, "task": agent.budget().task(&task)})),
    })
}

async fn queues(agent: &Agent, cursor: Option<&str>) -> Outcome {
    let page = agent.client().task_queues(cursor).await.map_err(|error| agent.refused(&error))?;
    let inside = page.queues.into_iter().filter(|queue| agent.scope().has(&queue.queue));
    let queues = inside.map(|queue| {
        json!({
            "queue": queue.queue,
            "scheduled": queue.scheduled,
            "claimed": queue.claimed,
            "dead": queue.dead,
            "done": queue.done,
            "next_at": queue.next_at,
        })
    });
    let mut shown = fields(json!({"queues": queues.collect::<Vec<_>>()}));
    if let Some(cursor) = page.cursor {
        shown.insert("cursor".into(), cursor.into());
    }
    Ok(shown)
}
