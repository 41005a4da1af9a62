//! Runs the crossing for as long as it is told to: `crossing [--minutes N] [--seed S] [--known]`.
//!
//! `--known` looks for what is known to be wrong and not mended yet, too. Ends with 1 where a run failed or a pair of the table was not met.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// An option of the command line, with what it is where it is not given.
fn option(name: &str, usual: f64) -> Result<f64, String> {
    let args: Vec<String> = std::env::args().collect();
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(usual) };
    let given = args.get(at + 1).ok_or_else(|| format!("{name} needs a number"))?;
    given.parse().map_err(|_| format!("{name} {given}: not a number"))
}

#[expect(clippy::disallowed_methods, reason = "it bounds how long it takes")]
fn explored() -> Result<bool, String> {
    let (minutes, seed) = (option("--minutes", 1.0)?, option("--seed", 1.0)? as u64);
    let with_known = std::env::args().any(|arg| arg == "--known");
    let (start, length) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let explored = quorate_crossing::explore(seed, with_known, |_, _| start.elapsed() < length);
    let met = explored.met;
    println!("{}", met.pairs.table());
    let a_minute = met.commands as f64 * 60.0 / start.elapsed().as_secs_f64();
    println!("{} commands, {a_minute:.0} a minute", met.commands);
    let (missing, impossible) = (met.pairs.missing(), met.pairs.impossible());
    missing.iter().for_each(|(kind, state)| println!("not met: {kind} × {state}"));
    impossible.iter().for_each(|(kind, state)| println!("met, and said not to be: {kind} × {state}"));
    explored.failures.iter().for_each(|failure| println!("\n{failure}"));
    Ok(missing.is_empty() && impossible.is_empty() && explored.failures.is_empty())
}

fn main() -> ExitCode {
    match explored() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            println!("{words}");
            ExitCode::FAILURE
        }
    }
}
