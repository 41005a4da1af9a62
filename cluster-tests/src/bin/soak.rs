//! Runs all scenarios again and again for a while, each time with other choices, and ends with a table of what was tried.
//!
//! Owns going on after a failure, and the tables: scenarios, and each fault by the workloads it met. Before each run stands the
//! command that repeats it, so that one that hangs is known. The last line is the sum as JSON, for `scripts/soak`. A run that fails
//! leaves its history, and with `QUORATE_KEEP=1` the data and logs of its nodes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use cluster_harness::drive::driver::Run;
use cluster_harness::drive::nemesis::BESIDE;
use cluster_harness::drive::scenarios::{Pace, SCENARIOS, Scenario};
use cluster_harness::stalls;
use cluster_histories::check::Report;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::{LocalSet, spawn_local};

/// Runs scenarios on real clusters, hurts them, and checks every promise. Ends with 0 where all runs were sound, 1 where one was
/// broken, came to no end or proved too little to tell. Histories stand in `QUORATE_HISTORIES`; those of sound runs are removed.
#[derive(Parser)]
struct Args {
    /// For how long.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Of all choices; a new one each time without it.
    #[arg(long)]
    seed: Option<u64>,
    /// One run only, of this seed, as a line about a failure says it.
    #[arg(long, value_name = "SEED")]
    run: Option<u64>,
    /// How long each run hurts its cluster, in seconds.
    #[arg(long, default_value_t = 30)]
    during: u64,
    /// Nodes of each cluster; without it three, and in every fourth run five.
    #[arg(long)]
    nodes: Option<u64>,
    /// Only these scenarios.
    #[arg(long, value_name = "NAME", value_parser = scenario)]
    only: Vec<&'static Scenario>,
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    let names = || SCENARIOS.map(|scenario| scenario.name).join(", ");
    cluster_harness::drive::scenarios::named(name)
        .ok_or_else(|| format!("there is no such scenario; there are {}", names()))
}

/// What was tried of one scenario.
#[derive(Default)]
struct Row {
    runs: u64,
    time: Duration,
    operations: usize,
    unknown: usize,
    faults: usize,
    broken: Vec<u64>,
    undecided: Vec<u64>,
    ended: Vec<u64>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(rand::random);
    println!("soak with --seed {seed}");
    if let Err(error) = stalls::watch() {
        println!(
            "nobody watches whether the machine stands still ({error}): a step that was long for that counts as a fault"
        );
    }
    let mut dice = StdRng::seed_from_u64(seed);
    let all: Vec<&Scenario> = SCENARIOS.iter().collect();
    let chosen = if args.only.is_empty() { all } else { args.only };
    let during = Duration::from_secs(args.during);
    let pace = Pace::soak(during);
    let (begun, limit) = (Instant::now(), Duration::from_secs(args.minutes * 60));
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut matrix = Matrix::default();
    for (number, scenario) in chosen.iter().cycle().enumerate() {
        if (number > 0 && args.run.is_some()) || (args.run.is_none() && begun.elapsed() >= limit) {
            break;
        }
        let nodes = args.nodes.unwrap_or(if number % 4 == 3 { 5 } else { 3 });
        let (seed, since, pace) = (args.run.unwrap_or_else(|| dice.random()), Instant::now(), pace.clone());
        let (scenario, row) = (**scenario, rows.entry(scenario.name).or_default());
        let (name, during) = (scenario.name, args.during);
        let again = format!("soak --only {name} --nodes {nodes} --during {during} --run {seed}");
        println!("{:5} s  {name:10} {nodes} nodes  begins: {again}", begun.elapsed().as_secs());
        // In a task of its own, so that a panic ends only this run.
        let work = async move { scenario.run(nodes, pace, &mut StdRng::seed_from_u64(seed)).await };
        let run = LocalSet::new().run_until(async move { spawn_local(work).await }).await;
        row.runs += 1;
        row.time += since.elapsed();
        let said = match run {
            Ok(run) => {
                matrix.take(&scenario, &run);
                row.take(seed, run, &again)
            }
            Err(error) => {
                row.ended.push(seed);
                format!("ENDED: {error}; {again}")
            }
        };
        println!("{:5} s  {name:10} {nodes} nodes  {said}", begun.elapsed().as_secs());
    }
    print_table(&rows);
    matrix.print();
    print_sum(seed, &rows);
    if rows.values().all(Row::is_sound) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Row {
    /// Whether each run came to its end and proved what it was to prove.
    fn is_sound(&self) -> bool {
        [&self.broken, &self.undecided, &self.ended].iter().all(|seeds| seeds.is_empty())
    }

    /// Counts a run that came to its end. Gives a line about it, with the command that repeats it where it failed.
    fn take(&mut self, seed: u64, run: Run, again: &str) -> String {
        let Run { history, report, path } = run;
        self.operations += history.records.len();
        self.unknown += history.records.iter().filter(|record| record.is_unknown()).count();
        self.faults += history.faults.len();
        let counts = format!("{} operations, {} faults", history.records.len(), history.faults.len());
        match Report::broken(&report).as_slice() {
            [] if report.unknown().is_empty() => match std::fs::remove_file(&path) {
                Ok(()) => format!("sound: {counts}"),
                Err(error) => format!("sound: {counts}; {} cannot be removed: {error}", path.display()),
            },
            [] => {
                self.undecided.push(seed);
                let said = report.describe(&history);
                format!("UNDECIDED: {counts}; {again}; check-history {}\n{said}", path.display())
            }
            _ => {
                self.broken.push(seed);
                let said = report.describe(&history);
                format!("BROKEN: {counts}; {again}; check-history {}\n{said}", path.display())
            }
        }
    }
}

fn print_table(rows: &BTreeMap<&str, Row>) {
    println!("\n| scenario | runs | minutes | operations | of unknown outcome | faults | broken | undecided | ended |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let seeds = |seeds: &[u64]| match seeds {
        [] => "0".to_owned(),
        some => format!("{} ({})", some.len(), some.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    for (name, row) in rows {
        println!(
            "| {name} | {} | {:.1} | {} | {} | {} | {} | {} | {} |",
            row.runs,
            row.time.as_secs_f64() / 60.0,
            row.operations,
            row.unknown,
            row.faults,
            seeds(&row.broken),
            seeds(&row.undecided),
            seeds(&row.ended)
        );
    }
}

/// One line of JSON that sums all up.
fn print_sum(seed: u64, rows: &BTreeMap<&str, Row>) {
    let sum = |count: fn(&Row) -> usize| rows.values().map(count).sum::<usize>();
    let line = serde_json::json!({
        "program": "soak",
        "seed": seed,
        "seeds": rows.values().map(|row| row.runs).sum::<u64>(),
        "operations": sum(|row| row.operations),
        "unknown": sum(|row| row.unknown),
        "faults": sum(|row| row.faults),
        "undecided": sum(|row| row.undecided.len()),
        "broken": sum(|row| row.broken.len() + row.ended.len()),
    });
    println!("{line}");
}

/// How often each fault met each workload.
#[derive(Default)]
struct Matrix(BTreeMap<String, BTreeMap<&'static str, u64>>);

impl Matrix {
    fn take(&mut self, scenario: &Scenario, run: &Run) {
        for kind in run.history.faults.iter().flat_map(|fault| fault.kind.split(BESIDE)) {
            let row = self.0.entry(kind.to_owned()).or_default();
            scenario.workloads().into_iter().for_each(|workload| *row.entry(workload).or_default() += 1);
        }
    }

    fn print(&self) {
        let mut workloads: Vec<_> = self.0.values().flat_map(BTreeMap::keys).copied().collect();
        workloads.sort_unstable();
        workloads.dedup();
        println!("\n| fault | {} |\n|---|{}", workloads.join(" | "), "---|".repeat(workloads.len()));
        for (fault, row) in &self.0 {
            let mut line = format!("| {fault} |");
            for workload in &workloads {
                write!(line, " {} |", row.get(workload).copied().unwrap_or(0)).expect("a string takes everything");
            }
            println!("{line}");
        }
        println!();
    }
}
