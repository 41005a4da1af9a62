//! Tries the parsers on changes of their corpora for as long as wanted, and keeps every input that makes one break a promise.
//!
//! Owns going round the targets and telling how far it is. What is checked, and by which promises, is the library's.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use parser_fuzzing::memory::Counting;
use parser_fuzzing::{TARGETS, Target, named, replay};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Each target runs so long before it is the next one's turn.
const TURN: Duration = Duration::from_secs(5);

/// Tries what reads bytes of others. Ends with 0 where every promise held, 1 where one was broken.
#[derive(Parser)]
struct Args {
    /// For how long.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Of all choices; a new one each time without it.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these targets.
    #[arg(long, value_name = "TARGET", value_parser = target)]
    only: Vec<&'static Target>,
    /// Only this file, once.
    #[arg(long, value_name = "FILE", requires = "only")]
    replay: Option<PathBuf>,
    /// Where inputs are kept that fail.
    #[arg(long, value_name = "DIR", default_value = "fuzz/artifacts")]
    failures: PathBuf,
}

fn target(name: &str) -> Result<&'static Target, String> {
    let names = || TARGETS.map(|target| target.name).join(", ");
    named(name).ok_or_else(|| format!("there is no such target; there are {}", names()))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen = if args.only.is_empty() { TARGETS.iter().collect() } else { args.only.clone() };
    let done = match &args.replay {
        Some(path) => replay_one(chosen[0], path),
        None => run(&args, &chosen),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz-parsers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn replay_one(target: &Target, path: &PathBuf) -> std::io::Result<usize> {
    let outcome = replay::check(target, &std::fs::read(path)?);
    match &outcome {
        Ok(()) => println!("{}: every promise held", target.name),
        Err(why) => println!("{}: {why}", target.name),
    }
    Ok(usize::from(outcome.is_err()))
}

/// Goes round until the time is up. Gives how many inputs failed.
fn run(args: &Args, chosen: &[&Target]) -> std::io::Result<usize> {
    let seed = args.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    println!("fuzz-parsers with --seed {seed}");
    let (mut dice, begun) = (StdRng::seed_from_u64(seed), Instant::now());
    let limit = Duration::from_secs_f64(args.minutes * 60.0);
    let (mut tries, mut failed) = (0, 0);
    for target in chosen.iter().cycle() {
        let Some(left) = limit.checked_sub(begun.elapsed()) else { break };
        let replayed = replay::run(target, dice.random::<u32>().into(), left.min(TURN), &args.failures)?;
        tries += replayed.tries;
        if let Some((path, why)) = replayed.failure {
            failed += 1;
            println!("{}: {why}\n  again: fuzz-parsers --only {0} --replay {}", target.name, path.display());
        }
        println!(
            "{:5} s  {:10} {:8} inputs, {tries} in all, {failed} failed",
            begun.elapsed().as_secs(),
            target.name,
            replayed.tries
        );
    }
    println!("{tries} inputs of {} parsers in {} s, {failed} failed", chosen.len(), begun.elapsed().as_secs());
    // Inputs are no operations of a client, so they are not counted as such.
    println!("{}", serde_json::json!({"program": "fuzz-parsers", "inputs": tries, "broken": failed}));
    Ok(failed)
}
