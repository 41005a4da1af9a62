//! `quorate task`: queues of timed tasks.
//!
//! Owns the commands but for `work`, which is `task_work`.

use std::time::Duration;

use clap::{Args, Subcommand};
use quorate_client::api::{Moment, QueueStats, TaskAnswer, TaskClaimed, TaskFail, TaskScheduled, TaskView};
use quorate_client::{ClaimTasks, RequestId, ScheduleTask, TaskQueue};

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, output, parse, pretty, task_work, waiting};

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Schedule a task
    Schedule(ScheduleArgs),
    /// Claim tasks that are due
    Claim(ClaimArgs),
    /// Let a claim hold longer
    Extend {
        #[command(flatten)]
        ticket: Ticket,
        /// How long from now; like 30s, 5m.
        #[arg(long = "for", default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
        lease: Duration,
    },
    /// Say that a task is done
    Complete {
        #[command(flatten)]
        ticket: Ticket,
    },
    /// Say that an attempt at a task failed
    Fail(FailArgs),
    /// Take a task away
    Cancel {
        /// The queue.
        queue: String,
        /// The task.
        id: String,
    },
    /// List tasks of a queue
    List {
        /// The queue; all queues without it.
        queue: Option<String>,
        /// scheduled, claimed, dead, done, unplanned or all.
        #[arg(long, default_value = "scheduled")]
        state: String,
        /// Most tasks.
        #[arg(short = 'n', long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Go on where another list ended.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show a task, or what a queue counts; exit code 3 if there is no such task
    Show {
        /// The queue.
        queue: String,
        /// The task; without it the queue.
        id: Option<String>,
    },
    /// Schedule dead tasks again
    Requeue {
        /// The queue.
        queue: String,
        /// The task; without it those that died first.
        id: Option<String>,
        /// Most tasks.
        #[arg(short = 'n', long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "id")]
        limit: u32,
    },
    /// Run a command for each task that is due
    Work(task_work::Args),
}

/// A claim of a task.
#[derive(Debug, Args)]
pub struct Ticket {
    /// The queue.
    queue: String,
    /// The task.
    id: String,
    /// The token of the claim.
    token: u64,
}

/// Schedules a task: at once, unless something else is said.
///
/// With an id it is safe to schedule the same task again: while the id is in use, nothing happens. Where that task is dead, this fails.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  quorate task schedule mail '{\"to\":\"ann\"}' --id welcome-7 --delay 10m
  quorate task schedule reports '{}' --id daily --cron '0 3 * * *' --zone Europe/Berlin")]
pub struct ScheduleArgs {
    /// The queue.
    queue: String,
    /// What the task is about: JSON, `-` or @PATH.
    #[arg(default_value = "null")]
    payload: String,
    #[command(flatten)]
    meaning: parse::Meaning,
    /// Its id.
    #[arg(long)]
    id: Option<String>,
    /// When it is due: RFC 3339, or Unix milliseconds.
    #[arg(long, value_parser = parse::moment, value_name = "TIME", conflicts_with = "delay")]
    at: Option<Moment>,
    /// It is due after this time; like 500ms, 10s, 2h.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    delay: Option<Duration>,
    /// It comes again every so often.
    #[arg(long, value_parser = parse::duration, value_name = "TIME", conflicts_with = "cron")]
    every: Option<Duration>,
    /// It comes again by this pattern: minute, hour, day of month, month, day of week.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["at", "delay"])]
    cron: Option<String>,
    /// The time zone of the pattern.
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// Most attempts.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How long the id stays in use after the task was completed.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    keep: Option<Duration>,
    /// Take the place of a task with this id that waits or is dead.
    #[arg(long)]
    replace: bool,
    /// Say what would be scheduled, change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Claims tasks. Exit code 3 if nothing is due.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// The queue.
    queue: String,
    /// Most tasks.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// How long the claim holds; like 30s, 5m.
    #[arg(long = "for", default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
    lease: Duration,
    /// Wait so long for something to be due.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    wait: Option<Duration>,
    /// Who works on them, for people.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
}

/// Says that an attempt failed.
#[derive(Debug, Args)]
pub struct FailArgs {
    #[command(flatten)]
    ticket: Ticket,
    /// Why.
    #[arg(long, default_value = "failed")]
    error: String,
    /// Try again after this time.
    #[arg(long, value_parser = parse::duration, value_name = "TIME", conflicts_with_all = ["dead", "release"])]
    retry_in: Option<Duration>,
    /// Do not try again.
    #[arg(long, conflicts_with = "release")]
    dead: bool,
    /// Give it back as if it had not been claimed.
    #[arg(long)]
    release: bool,
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let queue = |name: &str| context.client.tasks(name);
    let id = || context.request_id().unwrap_or_else(RequestId::random);
    match command {
        Command::Schedule(args) => {
            let answer = schedule(queue(&args.queue), args, context.request_id())?.await?;
            show(context, &answer, scheduled)
        }
        Command::Claim(args) => claim(context, args).await,
        Command::Extend { ticket, lease } => {
            let answer = queue(&ticket.queue).extend(&ticket.id, ticket.token, lease, id()).await?;
            show(context, &answer, |answer| changed(answer, "extended"))
        }
        Command::Complete { ticket } => {
            let answer = queue(&ticket.queue).complete(&ticket.id, ticket.token, id()).await?;
            show(context, &answer, |answer| changed(answer, "completed"))
        }
        Command::Fail(args) => {
            let FailArgs { ticket: Ticket { queue: name, id: task, token }, error, retry_in, dead, release } = args;
            let retry_in_ms = retry_in.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            let failure =
                TaskFail { id: task, token, error: Some(error), retry_in_ms, dead, release, request_id: None };
            let answer = queue(&name).fail(&failure, id()).await?;
            show(context, &answer, |answer| changed(answer, if release { "given back" } else { "failed" }))
        }
        Command::Cancel { queue: name, id: task } => {
            let answer = queue(&name).cancel(&task, id()).await?;
            show(context, &answer, |answer| changed(answer, "cancelled"))
        }
        Command::List { queue: Some(name), state, limit, cursor } => {
            let page = queue(&name).list(&state, limit, cursor.as_deref()).await?;
            match context.shared.output.data() {
                Some(form) => output::show(form, &page),
                None => {
                    page.tasks.iter().try_for_each(|task| output::line(row(task)))?;
                    page.cursor.map_or(Ok(()), |cursor| output::line(format!("more: --cursor {cursor}")))
                }
            }
        }
        Command::List { queue: None, cursor, .. } => {
            let page = context.client.task_queues(cursor.as_deref()).await?;
            match context.shared.output.data() {
                Some(form) => output::show(form, &page),
                None => {
                    page.queues.iter().try_for_each(|queue| output::line(counts(queue)))?;
                    page.cursor.map_or(Ok(()), |cursor| output::line(format!("more: --cursor {cursor}")))
                }
            }
        }
        Command::Show { queue: name, id: None } => show(context, &queue(&name).stats().await?, counts),
        Command::Show { queue: name, id: Some(task) } => match queue(&name).get(&task).await? {
            Some(task) => show(context, &task, row),
            None => Err(Failed::not_found(format!("the queue `{name}` has no task `{task}`"))),
        },
        Command::Requeue { queue: name, id: Some(task), .. } => {
            let answer = queue(&name).requeue(&task, id()).await?;
            show(context, &answer, |answer| format!("requeued: {}", answer.count))
        }
        Command::Requeue { queue: name, id: None, limit } => {
            let answer = queue(&name).requeue_oldest(limit, id()).await?;
            let more = if answer.more { ", there are more" } else { "" };
            show(context, &answer, |answer| format!("requeued: {}{more}", answer.count))
        }
        Command::Work(args) => task_work::run(context, args).await,
    }
}

fn show<T: serde::Serialize>(context: &Context, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failed> {
    output::answer(context.shared.output, answer, || text(answer))
}

fn schedule(queue: TaskQueue, args: ScheduleArgs, id: Option<RequestId>) -> Result<ScheduleTask, Failed> {
    let task = queue.schedule(parse::value(&args.payload, args.meaning)?);
    Ok(task
        .given(args.id, ScheduleTask::id)
        .given(args.at, ScheduleTask::at)
        .given(args.delay, ScheduleTask::delay)
        .given(args.every, ScheduleTask::every)
        .given(args.cron, ScheduleTask::cron)
        .given(args.zone, ScheduleTask::zone)
        .given(args.max_attempts, ScheduleTask::max_attempts)
        .given(args.keep, ScheduleTask::keep)
        .asked(args.replace, ScheduleTask::replace)
        .asked(args.dry_run, ScheduleTask::dry_run)
        .given(id, ScheduleTask::request_id))
}

async fn claim(context: &Context, args: ClaimArgs) -> Result<(), Failed> {
    let claim = context.client.tasks(&args.queue).claim().limit(args.limit).lease(args.lease);
    let claim = claim
        .given(args.wait, ClaimTasks::wait)
        .given(args.worker, ClaimTasks::worker)
        .given(context.request_id(), ClaimTasks::request_id);
    let claimed_now = match args.wait {
        Some(_) => waiting::for_task(context, &args.queue, claim.into_future()).await,
        None => claim.await,
    };
    let answer = claimed_now?.answer;
    match context.shared.output.data() {
        Some(form) => output::show(form, &answer)?,
        None => answer.tasks.iter().try_for_each(|task| output::line(claimed(task)))?,
    }
    match answer.next_at {
        _ if answer.count > 0 => Ok(()),
        Some(next) => Err(Failed::condition(format!("nothing is due; the next task is at {next}"))),
        None => Err(Failed::condition("nothing is due")),
    }
}

fn scheduled(answer: &TaskScheduled) -> String {
    let verb = match (answer.created, answer.replaced) {
        (_, true) => "replaced",
        (true, false) => "scheduled",
        (false, false) => "there already, nothing done",
    };
    let when = answer.execute_at.as_ref().map_or(String::new(), |at| format!(", due {at}"));
    output::told(format!("{verb}: {}  {}{when}", answer.id, state(answer.state)), answer.dry_run, answer.replayed)
}

fn claimed(task: &TaskClaimed) -> String {
    let payload = payload(task.payload.as_ref(), task.payload_base64.as_ref());
    let (attempt, of, lease) = (task.attempt, task.max_attempts, output::millis(task.lease_ms));
    format!("{}  token {}  attempt {attempt} of {of}, for {lease}  {payload}", task.id, task.token)
}

fn changed(answer: &TaskAnswer, verb: &str) -> String {
    let when = answer.execute_at.as_ref().map_or(String::new(), |at| format!(", due {at}"));
    let lease = answer.lease_ms.map_or(String::new(), |lease| format!(", for {}", output::millis(lease)));
    output::told(format!("{verb}: {}  {}{when}{lease}", answer.id, state(answer.state)), false, answer.replayed)
}

fn row(task: &TaskView) -> String {
    let mut facts = vec![state(task.state)];
    facts.extend(task.execute_at.as_ref().map(|at| format!("due {at}")));
    facts.push(format!("attempt {} of {}", task.attempts, task.max_attempts));
    facts.extend(task.every_ms.map(|every| format!("every {}", output::millis(every))));
    facts.extend(task.cron.as_ref().map(|cron| format!("cron `{cron}`")));
    facts.extend(task.worker.as_ref().map(|worker| format!("by {worker}")));
    facts.extend(task.lease_ms.map(|left| format!("for {}", output::millis(left))));
    facts.extend(task.died_at.as_ref().map(|at| format!("died {at}")));
    facts.extend(task.last_error.as_ref().map(|error| format!("last error: {}", error.escape_debug())));
    format!("{}  {}  {}", task.id, payload(task.payload.as_ref(), task.payload_base64.as_ref()), facts.join(", "))
}

fn payload(json: Option<&quorate_client::api::JsonText>, base64: Option<&String>) -> String {
    match (json, base64) {
        (Some(json), _) => pretty::compact(json.0.get()),
        (None, Some(base64)) => format!("base64:{base64}"),
        (None, None) => "(no payload)".to_owned(),
    }
}

fn counts(queue: &QueueStats) -> String {
    let QueueStats { scheduled, claimed, dead, unplanned, done, completed_total, failed_total, .. } = queue;
    let next = queue.next_at.as_ref().map_or(String::new(), |at| format!(", next {at}"));
    let unplanned = if *unplanned > 0 { format!(", {unplanned} unplanned") } else { String::new() };
    format!(
        "{}  {scheduled} scheduled, {claimed} claimed, {dead} dead, {done} done{unplanned}{next}; so far {completed_total} completed, \
         {failed_total} failed",
        queue.queue
    )
}

fn state(state: quorate_client::api::TaskState) -> String {
    format!("{state:?}").to_lowercase()
}
