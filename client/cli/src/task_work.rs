//! `quorate task work QUEUE -- CMD`: a command for each task that is due.
//!
//! Owns what the command gets (the payload on standard input, the rest in its environment) and what its end means.

use std::process::Stdio;
use std::time::Duration;

use quorate_client::{TaskError, TaskRun};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::fail::Failed;
use crate::form::Form;
use crate::guarded::{self, Signals};
use crate::output;
use crate::{Context, parse};

/// Of the standard error of a command that failed, so much of the end is kept as the error of the task.
const ERROR_BYTES: usize = 1_024;

/// Runs a command for each task, as long as it is not stopped.
///
/// The command gets the payload on standard input and QUORATE_TASK_ID, QUORATE_TASK_TOKEN, QUORATE_TASK_ATTEMPT,
/// QUORATE_TASK_PLANNED_AT (when it was to be done, the same in each attempt) and QUORATE_TASK_QUEUE in its environment. Exit code 0
/// completes the task; with any other it failed, and the end of its standard error is kept as the reason. The claim is extended while the command runs; if it is lost all the same, the command is killed. Ctrl-C
/// and TERM stop: no more tasks are claimed, and those that run may end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorate task work mail --concurrency 4 -- ./send-mail")]
pub struct Args {
    /// The queue.
    queue: String,
    /// Tasks at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    concurrency: usize,
    /// How long a claim holds without being extended: about so long it takes until others get the tasks of a worker that died.
    #[arg(long, default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
    lease: Duration,
    /// Who works, for people who look at the queue.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// How long commands may go on after the stop before their tasks are given back.
    #[arg(long, default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
    stop_within: Duration,
    /// Stop once nothing was due for this time.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    until_idle: Option<Duration>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs the command.
pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let Args { queue, concurrency, lease, worker, stop_within, until_idle, command } = args;
    let mut tasks =
        context.client.tasks(&queue).worker().concurrency(concurrency).lease(lease).stop_within(stop_within);
    tasks = tasks.on_trouble(|error| eprintln!("{error}"));
    if let Some(name) = worker {
        tasks = tasks.name(name);
    }
    let (running, seen) = tokio::sync::watch::channel(0_usize);
    let mut signals = Signals::take()?;
    let stop = async move {
        tokio::select! {
            _ = signals.next() => {}
            () = idle(seen, until_idle) => {}
        }
    };
    let running = std::sync::Arc::new(running);
    let handler = move |run: TaskRun| {
        let (queue, command, running) = (queue.clone(), command.clone(), running.clone());
        async move {
            running.send_modify(|count| *count += 1);
            let done = work(&run, &queue, &command).await;
            running.send_modify(|count| *count -= 1);
            done
        }
    };
    let report = tasks.run_until(stop, handler).await?;
    let text = format!(
        "completed {}, failed {}, lost {}, given back {}",
        report.completed, report.failed, report.lost, report.released
    );
    match context.shared.output {
        Form::Json => output::json(&serde_json::json!({
            "completed": report.completed, "failed": report.failed, "lost": report.lost, "released": report.released,
        })),
        Form::Text => output::line(text),
    }
}

/// Ready once no task began or ended for a time, if one is given, and none runs.
async fn idle(mut seen: tokio::sync::watch::Receiver<usize>, time: Option<Duration>) {
    let Some(time) = time else { return std::future::pending().await };
    loop {
        let is_quiet = tokio::time::timeout(time, seen.changed()).await.is_err();
        if is_quiet && *seen.borrow() == 0 {
            return;
        }
    }
}

async fn work(run: &TaskRun, queue: &str, command: &[String]) -> Result<(), TaskError> {
    let payload = run.task().payload()?;
    let [program, arguments @ ..] = command else { return Err(TaskError::dead("there is no command")) };
    let mut program_of = Command::new(program);
    program_of
        .args(arguments)
        .env("QUORATE_TASK_ID", run.task().id())
        .env("QUORATE_TASK_TOKEN", run.task().task.token.to_string())
        .env("QUORATE_TASK_ATTEMPT", run.task().attempt().to_string())
        .env("QUORATE_TASK_PLANNED_AT", &run.task().task.planned_at)
        .env("QUORATE_TASK_QUEUE", queue)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    guarded::end_with_us(&mut program_of);
    let mut child = program_of.spawn().map_err(|error| TaskError::new(format!("cannot run {program}: {error}")))?;
    let group = Group(child.id().and_then(|id| libc::pid_t::try_from(id).ok()));
    let ended = async {
        let (fed, errors) = tokio::join!(feed(child.stdin.take(), &payload), tail(child.stderr.take()));
        // A command that does not read its input may be done all the same.
        drop(fed);
        (child.wait().await, errors)
    };
    let (status, errors) = tokio::select! {
        ended = ended => {
            group.has_ended();
            ended
        }
        () = run.lost() => return Err(TaskError::new("the claim was lost")),
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::new(format!("{status}: {errors}"))),
        Err(error) => Err(TaskError::new(format!("cannot wait for {program}: {error}"))),
    }
}

/// A command and all that it started: killed when this is dropped, unless the command has ended by itself. What is typed at a
/// terminal does not reach it, so that a stop lets it end.
struct Group(Option<libc::pid_t>);

impl Group {
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            // SAFETY: kill takes no pointers. The command was not waited for yet, so the id is still its own.
            unsafe { libc::kill(-id, libc::SIGKILL) };
        }
    }
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, payload: &[u8]) -> std::io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    stdin.write_all(payload).await?;
    stdin.shutdown().await
}

/// Passes the standard error on and gives the end of it.
async fn tail(stderr: Option<tokio::process::ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        eprint!("{}", String::from_utf8_lossy(&buffer[..count]));
        kept.extend_from_slice(&buffer[..count]);
        let over = kept.len().saturating_sub(ERROR_BYTES);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}
