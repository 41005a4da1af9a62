//! Simulates whole clusters, one for each seed: real nodes with a network, disks and clocks that the seed decides about.
//!
//! Owns the seeds: each runs in a process of its own, so that nothing of one can be felt in another, and a seed that failed can be
//! run again by itself. Ends with what was tried. Never changes what a node does.

mod address;
mod aside;
mod clock;
mod cure;
mod disk;
mod facts;
mod host;
mod host_network;
mod load;
mod lowered;
mod network;
mod objects;
mod outcome;
mod pipe;
mod run;
mod scenario;
mod socket;
mod watch;
mod world;
mod wound;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use quorate_threads::watchdog;
use serde_json::json;

use load::Load;
use outcome::Outcome;
use scenario::Scenario;

/// Simulates clusters of real nodes whose network, disks and clocks follow from a seed. Ends with 0 where every promise held in all
/// of them, 1 where one did not: then the seed is told, which shows the same again.
#[derive(Parser)]
struct Args {
    /// Run this seed alone, in this process, and say what happens
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "minutes"])]
    only: Option<u64>,
    /// Say nothing but the outcome, as JSON; with --only
    #[arg(long, requires = "only")]
    quiet: bool,
    /// Say how many API clients ask in this seed, as JSON, and run nothing; with --only
    #[arg(long, requires = "only", conflicts_with_all = ["scenario", "load"])]
    plan: bool,
    /// Play this story instead of what chance makes up
    #[arg(long, value_name = "NAME")]
    scenario: Option<Scenario>,
    /// Ask for this alone, again and again; with --only
    #[arg(long, value_name = "KIND", requires_all = ["only", "rounds"], conflicts_with = "scenario")]
    load: Option<Load>,
    /// How often each client asks, with --load
    #[arg(long, requires = "load")]
    rounds: Option<u64>,
    /// The first seed; a new one each time without it
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// For how long, instead of so many seeds
    #[arg(long)]
    minutes: Option<u64>,
    /// Begin no other seed once one has broken a promise, and tell of each seed
    #[arg(long, conflicts_with = "only")]
    until_broken: bool,
    /// How many at a time [default: one for each processor]
    #[arg(long)]
    jobs: Option<usize>,
    /// Where failures are left
    #[arg(long, value_name = "DIR", env = "QUORATE_HISTORIES", default_value_os_t = std::env::temp_dir())]
    failures: PathBuf,
}

/// A seed that takes longer than this hangs. Large values take a development build most of a minute on a processor of its own.
const SEED_MAX: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let args = Args::parse();
    match args.only {
        Some(seed) if args.plan => plan(seed),
        Some(seed) => one(seed, &args),
        None => many(&args),
    }
}

/// Data of nodes needs no disk here: what a crash leaves of it is decided above the files.
fn data_dir() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("quorate-simulation-");
    if memory.is_dir() { builder.tempdir_in(memory) } else { builder.tempdir() }
}

impl Args {
    /// The options besides the seed on which it depends what happens.
    fn story(&self) -> Vec<String> {
        let scenario = self.scenario.and_then(|scenario| scenario.to_possible_value());
        let load = self.load.and_then(|load| load.to_possible_value());
        let options = [
            ("--scenario", scenario.map(|value| value.get_name().to_owned())),
            ("--load", load.map(|value| value.get_name().to_owned())),
            ("--rounds", self.rounds.map(|rounds| rounds.to_string())),
        ];
        options.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?])).flatten().collect()
    }
}

/// Says what chance makes up for a seed, as far as a test picks seeds by it.
fn plan(seed: u64) -> ExitCode {
    println!("{}", json!({"api_clients": run::api_clients(seed)}));
    ExitCode::SUCCESS
}

fn one(seed: u64, args: &Args) -> ExitCode {
    let dir = data_dir().expect("a temporary directory can be made");
    note_panics();
    let (mut outcome, history) = match (args.scenario, args.load) {
        (Some(scenario), _) => (scenario::play(scenario, seed, dir.path(), !args.quiet), None),
        (None, Some(load)) => (load::carry(load, args.rounds.unwrap_or(1), seed, dir.path()), None),
        (None, None) => run::run(seed, dir.path(), !args.quiet),
    };
    outcome.broken.append(&mut PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    let long =
        watchdog::faults().into_iter().map(|(what, _times, longest)| (what.to_owned(), longest.as_millis() as u64));
    outcome.long_steps.extend(long);
    if let Some(history) = history {
        std::fs::create_dir_all(&args.failures).expect("the directory for failures can be made");
        let path = args.failures.join(format!("simulate-{seed}.jsonl"));
        history.save(&path).expect("the history can be written");
        eprintln!("its history: check-history {}", path.display());
    }
    if !args.quiet {
        outcome.tell(&args.story());
    }
    println!("{}", serde_json::to_string(&outcome).expect("it can be said in JSON"));
    // Nothing is left to be done, and databases would take their time to close.
    drop(dir);
    if outcome.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What panicked so far. A real node ends then; here the runtime of a host would only lose one task of many.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
}

#[derive(Default)]
struct Sum {
    seeds: u64,
    operations: u64,
    unknown: u64,
    faults: u64,
    torn: u64,
    member_changes: u64,
    millis: u64,
    kinds: BTreeMap<String, u64>,
    broken: Vec<u64>,
    undecided: Vec<u64>,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.operations += outcome.operations;
        self.unknown += outcome.unknown;
        self.faults += outcome.faults;
        self.torn += outcome.torn;
        self.member_changes += outcome.member_changes;
        self.millis += outcome.millis;
        outcome.kinds.iter().for_each(|kind| *self.kinds.entry(kind.clone()).or_default() += 1);
        if !outcome.broken.is_empty() || !outcome.long_steps.is_empty() {
            self.broken.push(outcome.seed);
        }
        if !outcome.undecided.is_empty() {
            self.undecided.push(outcome.seed);
        }
    }
}

/// Says how far it is: on a terminal all the time, elsewhere by a line in each minute.
struct Progress {
    bar: ProgressBar,
    begun: Instant,
    minutes_told: AtomicU64,
}

impl Progress {
    fn new(args: &Args) -> Self {
        let bar = ProgressBar::new(if args.minutes.is_some() { 0 } else { args.seeds });
        let style = ProgressStyle::with_template("{elapsed} {pos} seeds {msg}").expect("the template is fine");
        bar.set_style(style);
        Self { bar, begun: Instant::now(), minutes_told: AtomicU64::new(0) }
    }

    /// Tells of one seed of a hunt: when it ended, how long it took, and what came of it.
    fn tell_seed(&self, outcome: &Outcome, took: Duration) {
        let (seconds, took) = (self.begun.elapsed().as_secs(), took.as_secs());
        let came = if outcome.broken.is_empty() { "nothing found" } else { "found" };
        self.bar.suspend(|| println!("{seconds:5} s  seed {}, {took} s: {came}", outcome.seed));
    }

    fn tell(&self, sum: &Sum) {
        let done = format!("{} operations, {} faults, {} broken", sum.operations, sum.faults, sum.broken.len());
        let seconds = self.begun.elapsed().as_secs();
        if self.bar.is_hidden() && self.minutes_told.fetch_max(seconds / 60, Ordering::Relaxed) < seconds / 60 {
            println!("{seconds:5} s  {} seeds, {done}", sum.seeds);
        }
        self.bar.set_message(done);
        self.bar.inc(1);
    }
}

fn many(args: &Args) -> ExitCode {
    let first = args.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    println!("simulate with --seed {first}");
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = Progress::new(args);
    let (next, is_broken, sum) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(Sum::default()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    if args.until_broken && is_broken.load(Ordering::Relaxed) {
                        return;
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if until.map_or(number >= args.seeds, |until| Instant::now() >= until) {
                        return;
                    }
                    let begun = Instant::now();
                    let outcome = without_the_machine(in_process(first.wrapping_add(number), args), args);
                    if args.until_broken {
                        progress.tell_seed(&outcome, begun.elapsed());
                    }
                    progress.bar.suspend(|| outcome.tell(&args.story()));
                    // A step that is too long is another matter: the machine may be what is slow.
                    is_broken.fetch_or(!outcome.broken.is_empty(), Ordering::Relaxed);
                    let mut sum = sum.lock().expect("nobody panics with it in hand");
                    sum.add(&outcome);
                    progress.tell(&sum);
                }
            });
        }
    });
    progress.bar.finish_and_clear();
    let sum = sum.into_inner().expect("nobody panics with it in hand");
    println!("{} faults by kind, in how many seeds: {:?}", sum.faults, sum.kinds);
    let (broken, undecided) = (sum.broken.len(), sum.undecided.len());
    let hours = sum.millis as f64 / 3_600_000.0;
    println!(
        "{}",
        json!({"program": "simulate", "seeds": sum.seeds, "operations": sum.operations, "unknown": sum.unknown, "faults": sum.faults,
               "torn_groups": sum.torn, "member_changes": sum.member_changes, "virtual_hours": (hours * 100.0).round() / 100.0,
               "broken": broken, "broken_seeds": sum.broken, "undecided": undecided, "undecided_seeds": sum.undecided})
    );
    if broken + undecided == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a seed a second time where steps were too long and nothing else was wrong: the same is done in it, so what is long for its work is long
/// again. A machine that stands still for a moment does so elsewhere then.
fn without_the_machine(mut outcome: Outcome, args: &Args) -> Outcome {
    if outcome.long_steps.is_empty() || !outcome.broken.is_empty() {
        return outcome;
    }
    let again = in_process(outcome.seed, args);
    for (what, ms) in std::mem::take(&mut outcome.long_steps) {
        match again.long_steps.get(&what) {
            Some(_) => _ = outcome.long_steps.insert(what, ms),
            None => {
                println!("seed {}: a step of {what} took {ms} ms, and not when the same was done again", outcome.seed)
            }
        }
    }
    outcome.broken = again.broken;
    outcome
}

/// Runs a seed in a process of its own.
fn in_process(seed: u64, args: &Args) -> Outcome {
    let itself = std::env::current_exe().expect("a program knows where it is");
    let failed = |why: String| Outcome { seed, broken: vec![why], ..Outcome::default() };
    let mut command = Command::new(itself);
    command.args(["--only", &seed.to_string(), "--quiet", "--failures"]).arg(&args.failures);
    command.args(args.story());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => return failed(format!("it could not be started: {error}")),
    };
    let id = child.id() as libc::pid_t;
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if waiting.recv_timeout(SEED_MAX) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: a signal to a child that was not waited for yet, so that its number is still its own.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output();
    drop(done);
    watchdog.join().expect("it only waits");
    match output {
        Err(error) => failed(format!("it could not be waited for: {error}")),
        Ok(output) => match serde_json::from_slice::<Outcome>(&output.stdout) {
            Ok(outcome) if outcome.is_sound() == output.status.success() => outcome,
            _ => {
                let said = String::from_utf8_lossy(&output.stderr);
                failed(format!("it ended with {} and said: {}", output.status, said.trim()))
            }
        },
    }
}
