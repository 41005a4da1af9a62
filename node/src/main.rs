//! The `quorate-node` program: arguments, logging, signals, exit code.
//!
//! Owns nothing else: the node itself is [`quorate_node::server`].

mod allocator;

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use quorate_node::commands::{self, Command, CommandError};
use quorate_node::config::{Args, Config};
use quorate_node::dev;
use quorate_node::server::{self, Ended, Surroundings};
use quorate_node_core::logging;
use quorate_node_port::threads::{self, ClientThreads};
use quorate_threads::watchdog;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a node that ended for another reason than those that have a code of their own.
const EXIT_FAILED: i32 = 1;

/// Tells the process that takes the place of one that was refused that its data directory has the next id.
const GOES_ON: &str = "QUORATE_GOES_ON";

/// Exit code for arguments or a configuration that make no sense.
const EXIT_USAGE: u8 = 2;

/// Exit code of verbs where an archive does not reach the point that was asked for.
const EXIT_NOT_COVERED: u8 = 5;

/// The Quorate server: one node of a cluster.
///
/// Each setting is taken from its flag, else from its environment variable, else from the file, else the default. In the
/// file a setting is called as its flag, with `_` for `-`: `node_id = 1`.
#[derive(Debug, Parser)]
#[command(name = "quorate-node", version, max_term_width = 110, args_conflicts_with_subcommands = true)]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    settings: Args,
}

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    if std::env::var_os("QUORATE_NEXT_LEVEL").is_some() {
        quorate_machine::level::know_next();
    }
    let line = Line::parse();
    match line.command {
        Some(command) => done(commands::run(command, Line::command())),
        None => serve(line.settings),
    }
}

fn done(result: Result<(), CommandError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("quorate-node: {error}");
    match error {
        CommandError::Usage(_) => ExitCode::from(EXIT_USAGE),
        CommandError::Failed(_) => ExitCode::FAILURE,
        CommandError::NotCovered(_) => ExitCode::from(EXIT_NOT_COVERED),
    }
}

fn serve(settings: Args) -> ExitCode {
    if let Err(error) = allocator::give_back_aside() {
        eprintln!("quorate-node: no thread that gives memory back: {error}");
        return ExitCode::FAILURE;
    }
    let given = settings.clone();
    let config = match Config::try_from(settings) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("quorate-node: {error}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if let Err(error) = logging::start(config.log_filter.clone(), config.log_format) {
        eprintln!("quorate-node: no thread for the log: {error}");
        return ExitCode::FAILURE;
    }
    end_on_panic();
    #[cfg(debug_assertions)]
    if let Ok(key) = std::env::var("QUORATE_PANIC_ON_KEY") {
        quorate_machine::failpoint::panic_on(key.into_bytes());
    }
    if let Err(error) = take_small_pages() {
        tracing::warn!(%error, "the kernel may use huge pages: connections that are quiet take twice the memory");
    }
    if let Err(error) = raise_file_limit() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let (runtime, client_threads) = match threads::runtime(config.worker_threads)
        .and_then(|own| Ok((own, ClientThreads::start(config.client_threads)?)))
    {
        Ok(runtimes) => runtimes,
        Err(error) => {
            logging::say_last(&format!("quorate-node: no runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let goes_on = std::env::var_os(GOES_ON).is_some();
    let ended = match config.of_directory(goes_on) {
        Ok(config) => runtime.block_on(run(config, given, client_threads.handles())),
        Err(error) => Err(server::ServerError(error.to_string()).into()),
    };
    match &ended {
        // One that goes on under another id has said so in its log.
        Ok(()) | Err(Ended::Renumbered(_)) => logging::flush(),
        // Beside the log, in one plain sentence: this is what somebody sees who starts a node by hand.
        Err(error) => logging::say_last(&format!("quorate-node: {error}")),
    }
    drop(client_threads);
    drop(runtime);
    let code = match ended {
        Ok(()) => 0,
        Err(Ended::Failed(_)) => EXIT_FAILED,
        Err(Ended::Storage(_)) => quorate_node::EXIT_STORAGE,
        Err(Ended::NoRoom(_)) => quorate_node::EXIT_NO_ROOM,
        Err(Ended::Removed(_)) => quorate_node::EXIT_REMOVED,
        Err(Ended::Renumbered(_)) => start_anew(),
    };
    // A database that a snapshot replaced may still be closing on a thread of its own. RocksDB's exit handlers would take
    // away what it uses, and the process would abort.
    quorate_node_core::end_now(code)
}

/// Takes the place of this process with the same arguments, so that nothing of the node that it was is left. Returns only where that
/// cannot be done: whoever started it does it then, as after any failure.
fn start_anew() -> i32 {
    let program = std::env::current_exe().unwrap_or_else(|_| "quorate-node".into());
    let mut command = std::process::Command::new(program);
    let error = command.args(std::env::args_os().skip(1)).env(GOES_ON, "true").exec();
    logging::say_last(&format!(
        "quorate-node: it cannot start itself anew under its next node id, start it again: {error}"
    ));
    EXIT_FAILED
}

async fn run(config: Config, given: Args, client_threads: Vec<Handle>) -> Result<(), Ended> {
    let stop = CancellationToken::new();
    let hangups = signal(SignalKind::hangup()).map_err(|error| server::ServerError(format!("signals: {error}")))?;
    watchdog::spawn(follow_log_setting(hangups, given));
    let signalled = stop.clone();
    let signals = signal(SignalKind::terminate()).and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
    let (mut terminate, mut interrupt) = signals.map_err(|error| server::ServerError(format!("signals: {error}")))?;
    watchdog::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        }
        signalled.cancel();
        // A second signal ends a stop that hangs.
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        quorate_node_core::end_now(EXIT_FAILED);
    });
    let surroundings = Surroundings { on_started: dev::greeting(&config), client_threads, ..Surroundings::default() };
    server::run_in(surroundings, config, stop).await
}

/// Reads at each SIGHUP again what is to be logged. Whatever was asked for meanwhile is over by that.
async fn follow_log_setting(mut hangups: Signal, given: Args) {
    while hangups.recv().await.is_some() {
        match (Config::log_filter_now(given.clone()), logging::control()) {
            (Ok(filter), Some(control)) => {
                control.configure(filter);
                tracing::info!(filter = control.filters().current, "SIGHUP: logging as configured");
            }
            (Err(error), _) => tracing::error!(%error, "SIGHUP: the log stays as it is"),
            (Ok(_), None) => {}
        }
    }
}

/// The allocator asks for huge pages, and one small thing that lives long keeps all of such a page in RAM: ten thousand
/// idle watches took twice the memory. No effect on throughput was seen.
fn take_small_pages() -> std::io::Result<()> {
    // SAFETY: takes no pointers.
    let done = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Every connection and every database file takes a descriptor, and a database that gets none ends the node: take all
/// that the system allows.
fn raise_file_limit() -> std::io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read or write the struct they are given.
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
        }
    };
    if raised { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A broken invariant in any task ends the process: a node with one task missing is worse than no node. Not where it is
/// contained, which the state machine and reads of it do.
fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::force_capture();
        if quorate_machine::machine::is_catching() {
            tracing::error!("a bug was met and contained: {panic}\n{trace}");
            return;
        }
        tracing::error!("a bug ended this process: {panic}\n{trace}");
        quorate_node_core::end_now(101);
    }));
}
