//! Checks a history that was recorded before, by all rules or some, and shows what contradicts what.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use cluster_histories::check::{CHECKERS, Checker, Report, named};
use cluster_histories::{History, Verdict};

/// Nothing contradicts anything, but it cannot be told of every rule.
const UNKNOWN: u8 = 2;
/// The history cannot be read.
const UNREADABLE: u8 = 3;

/// Checks a recorded history. Ends with 0 where every rule holds, 1 where one is broken, 2 where it cannot be told, 3 where the file
/// is no history.
#[derive(Parser)]
struct Args {
    /// The file, one line of JSON for each thing that happened.
    file: PathBuf,
    /// Only these rules.
    #[arg(long, value_name = "NAME", value_parser = checker)]
    only: Vec<&'static Checker>,
    /// Also show what was done to the cluster.
    #[arg(long)]
    faults: bool,
}

fn checker(name: &str) -> Result<&'static Checker, String> {
    let names = || CHECKERS.map(|checker| checker.name).join(", ");
    named(name).ok_or_else(|| format!("there is no such rule; there are {}", names()))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let history = match History::load(&args.file) {
        Ok(history) => history,
        Err(error) => {
            eprintln!("check-history: {error}");
            return ExitCode::from(UNREADABLE);
        }
    };
    let report = match args.only.as_slice() {
        [] => Report::of(&history),
        some => Report { verdicts: some.iter().map(|checker| (*checker, (checker.check)(&history))).collect() },
    };
    let header = &history.header;
    let (operations, faults) = (history.records.len(), history.faults.len());
    println!("{} with seed {}: {operations} operations, {faults} faults", header.name, header.seed);
    for fault in history.faults.iter().filter(|_| args.faults) {
        let [begin, end] = [fault.begin, fault.end].map(|micros| micros as f64 / 1e6);
        println!("{begin:.3}–{end:.3} s: {} of node {}", fault.kind, fault.node);
    }
    print!("{}", report.describe(&history));
    let is_unknown = report.verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Unknown(_)));
    match (report.broken().is_empty(), is_unknown) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(UNKNOWN),
        (true, false) => ExitCode::SUCCESS,
    }
}
