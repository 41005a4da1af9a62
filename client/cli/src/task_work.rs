//! `quorate task work QUEUE -- CMD`: a command for each task that is due.
//!
//! Owns what the command gets (the payload on standard input, the rest in its environment) and what its end means.

use std::collections::BTreeSet;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quorate_client::{TaskError, TaskRun};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::fail::Failed;
use crate::refined::Refined;
use crate::signals::Signals;
use crate::sys::{self, Pid};
use crate::work::{self, NotStarted, Work};
use crate::{Context, guarded, output, parse};

/// Of the standard error of a command that failed, so much of the end is kept as the error of the task.
const ERROR_BYTES: usize = 1_024;
/// How long after the end of a command its standard error may still come: what it left running may hold that open for ever.
const ERRORS_WITHIN: Duration = Duration::from_millis(200);
/// Beyond our own time to stop: the commands are ended by then, and their tasks given back.
const STOP_SLACK: Duration = Duration::from_secs(60);

/// Runs a command for each task, as long as it is not stopped.
///
/// The command gets the payload on standard input and QUORATE_TASK_ID, QUORATE_TASK_TOKEN, QUORATE_TASK_ATTEMPT,
/// QUORATE_TASK_PLANNED_AT (when it was to be done, the same in each attempt) and QUORATE_TASK_QUEUE in its environment. Exit code 0
/// completes the task; with any other it failed, and the end of its standard error is kept as the reason. The claim is extended while the
/// command runs; if it is lost all the same, the command and all that it started are ended. Ctrl-C and TERM stop: no more tasks are
/// claimed, and those that run may end. A second one, or the end of --stop-within, ends the commands, and gives their tasks back.
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
    /// How long a claim counts without being extended: about so long, and --grace, it takes until others get the tasks of a worker that died.
    #[arg(long = "for", default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
    lease: Duration,
    /// Who works, for people who look at the queue.
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// How long commands may go on after the stop before their tasks are given back.
    #[arg(long, default_value = "30s", value_parser = parse::duration, value_name = "TIME")]
    stop_within: Duration,
    /// How long a command may take to end itself once it has to, before it is killed. Nobody else gets its task meanwhile.
    #[arg(long, default_value = "5s", value_parser = parse::duration, value_name = "TIME")]
    grace: Duration,
    /// Stop once nothing was due for this time.
    #[arg(long, value_parser = parse::duration, value_name = "TIME")]
    until_idle: Option<Duration>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let Args { queue, concurrency, lease, worker, stop_within, grace, until_idle, command } = args;
    let patience = stop_within + grace + STOP_SLACK;
    let tasks = context.client.tasks(&queue).worker().concurrency(concurrency).lease(lease).stop_within(patience);
    // Nobody else begins the task while the command of a claim that was lost is being ended.
    let tasks = tasks.grace(grace + guarded::TO_KILL).on_trouble(|error| say!("{error}"));
    let tasks = tasks.given(worker, |tasks, name| tasks.name(name));
    let shop = Arc::new(Shop {
        queue,
        command,
        grace,
        silence: work::longest_silence(lease),
        connection: context.connection.clone(),
        running: watch::Sender::new(0),
        groups: Mutex::default(),
        orders: watch::Sender::new(Orders::default()),
    });
    let signals = tokio::spawn(heed(Signals::take()?, stop_within, shop.clone()));
    let (mut orders, seen) = (shop.orders.subscribe(), shop.running.subscribe());
    let stop = async move {
        tokio::select! {
            // An error means that the shop is gone, and we with it.
            told = orders.wait_for(|orders| orders.stop) => drop(told),
            () = idle(seen, until_idle) => {}
        }
    };
    let handler = move |run: TaskRun| {
        let shop = shop.clone();
        async move {
            shop.running.send_modify(|count| *count += 1);
            let done = shop.work(&run).await;
            shop.running.send_modify(|count| *count -= 1);
            done
        }
    };
    let report = tasks.run_until(stop, handler).await;
    signals.abort();
    let report = report?;
    let text = format!(
        "completed {}, failed {}, lost {}, given back {}",
        report.completed, report.failed, report.lost, report.released
    );
    let data = serde_json::json!({
        "completed": report.completed, "failed": report.failed, "lost": report.lost, "released": report.released,
    });
    output::answer(context.shared.output, &data, || text)
}

/// What the signals that we got ask of the commands.
#[derive(Debug, Clone, Copy, Default)]
struct Orders {
    /// Claim nothing more.
    stop: bool,
    /// End what runs.
    stop_now: bool,
    /// How often we were stopped and continued.
    continued: u64,
}

/// Takes signals for all commands.
async fn heed(mut signals: Signals, stop_within: Duration, shop: Arc<Shop>) {
    let mut until = None;
    loop {
        let late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let number = tokio::select! {
            number = signals.any() => number,
            () = late => {
                until = None;
                shop.orders.send_modify(|orders| orders.stop_now = true);
                continue;
            }
        };
        let is_stopping = shop.orders.borrow().stop;
        match number {
            libc::SIGTSTP => {
                // Nobody extends the claims meanwhile.
                shop.groups.lock().iter().for_each(|group| sys::tell_group(*group, libc::SIGSTOP));
                sys::stop_self();
                shop.orders.send_modify(|orders| orders.continued += 1);
            }
            libc::SIGCONT => shop.orders.send_modify(|orders| orders.continued += 1),
            _ if is_stopping => shop.orders.send_modify(|orders| orders.stop_now = true),
            _ => {
                until = Some(tokio::time::Instant::now() + stop_within);
                shop.orders.send_modify(|orders| orders.stop = true);
            }
        }
    }
}

/// Ready once no task began or ended for a time, if one is given, and none runs.
async fn idle(mut seen: watch::Receiver<usize>, time: Option<Duration>) {
    let Some(time) = time else { return std::future::pending().await };
    loop {
        let is_quiet = tokio::time::timeout(time, seen.changed()).await.is_err();
        if is_quiet && *seen.borrow() == 0 {
            return;
        }
    }
}

/// Where commands run.
struct Shop {
    queue: String,
    command: Vec<String>,
    grace: Duration,
    /// How long we may be silent while a command runs: nobody extends its claim meanwhile.
    silence: Duration,
    connection: Connection,
    running: watch::Sender<usize>,
    groups: Mutex<BTreeSet<Pid>>,
    orders: watch::Sender<Orders>,
}

/// How the wait for a command ended.
enum End {
    Itself(std::io::Result<ExitStatus>),
    Lost,
    Stopped,
}

impl Shop {
    async fn work(&self, run: &TaskRun) -> Result<(), TaskError> {
        let payload = run.task().payload()?;
        let mut work = self.start(run)?;
        self.groups.lock().insert(work.group());
        let errors = Errors::of(work.stderr());
        let end = self.watch(run, &mut work, &payload).await;
        self.groups.lock().remove(&work.group());
        match end {
            End::Itself(status) => {
                work.has_ended();
                judge(status, errors).await
            }
            End::Lost => {
                work.end().await?;
                Err(TaskError::new("the claim was lost"))
            }
            End::Stopped => {
                work.end().await?;
                Err(TaskError::give_back())
            }
        }
    }

    fn start(&self, run: &TaskRun) -> Result<Work, TaskError> {
        let [program, arguments @ ..] = self.command.as_slice() else {
            return Err(TaskError::dead("there is no command"));
        };
        let mut command = Command::new(program);
        self.connection.hand_on(command.as_std_mut());
        command
            .args(arguments)
            .env("QUORATE_TASK_ID", run.task().id())
            .env("QUORATE_TASK_TOKEN", run.task().task.token.to_string())
            .env("QUORATE_TASK_ATTEMPT", run.task().attempt().to_string())
            .env("QUORATE_TASK_PLANNED_AT", &run.task().task.planned_at)
            .env("QUORATE_TASK_QUEUE", &self.queue)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        // What is typed at a terminal does not reach it, so that a stop lets it end.
        Work::start(command, self.grace, false, Some(self.silence)).map_err(|not_started| match not_started {
            NotStarted::Guardian(error) => TaskError::new(format!("cannot guard {program}: {error}")),
            NotStarted::Command(error) => TaskError::new(format!("cannot run {program}: {error}")),
        })
    }

    async fn watch(&self, run: &TaskRun, work: &mut Work, payload: &[u8]) -> End {
        let mut orders = self.orders.subscribe();
        let stdin = work.stdin();
        let feed = async {
            // One that does not read it all is judged by its exit code.
            let _unread = feed(stdin, payload).await;
            std::future::pending::<()>().await;
        };
        tokio::pin!(feed);
        let mut continued = orders.borrow().continued;
        let mut beats = tokio::time::interval(work::beat_every(self.silence));
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beats.tick() => work.beat(),
                status = work.wait() => return End::Itself(status),
                () = &mut feed => {}
                () = run.lost() => return End::Lost,
                told = orders.changed() => {
                    let now = *orders.borrow_and_update();
                    if told.is_err() || now.stop_now {
                        return End::Stopped;
                    }
                    if now.continued != continued {
                        continued = now.continued;
                        // Whether the claim still holds is known once its keeper has had a turn.
                        tokio::task::yield_now().await;
                        if run.is_lost() {
                            return End::Lost;
                        }
                        work.go_on();
                    }
                }
            }
        }
    }
}

async fn judge(status: std::io::Result<ExitStatus>, errors: Errors) -> Result<(), TaskError> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::new(format!("{status}: {}", errors.end().await))),
        Err(error) => Err(TaskError::new(format!("cannot wait for the command: {error}"))),
    }
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, payload: &[u8]) -> std::io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    stdin.write_all(payload).await?;
    stdin.shutdown().await
}

/// The standard error of a command: passed on for as long as somebody holds it open, and the end of it kept.
struct Errors {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Errors {
    fn of(stderr: Option<tokio::process::ChildStderr>) -> Self {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let reader = tokio::spawn(pass_on(stderr, kept.clone()));
        Self { kept, reader }
    }

    /// The end of what the command said, which has ended.
    async fn end(self) -> String {
        // What comes later is of those that it left running.
        let _late = tokio::time::timeout(ERRORS_WITHIN, self.reader).await;
        String::from_utf8_lossy(&self.kept.lock()).trim().to_owned()
    }
}

async fn pass_on(stderr: Option<tokio::process::ChildStderr>, kept: Arc<Mutex<Vec<u8>>>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        crate::said::raw(&buffer[..count]);
        let mut kept = kept.lock();
        kept.extend_from_slice(&buffer[..count]);
        let over = kept.len().saturating_sub(ERROR_BYTES);
        kept.drain(..over);
    }
}
