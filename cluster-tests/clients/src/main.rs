//! `client-conformance`: runs the suite that all clients share, `sdk/conformance`, with the Rust client.
//!
//! Owns the order of files and what is printed of each. What a file may say is told in the README of the suite.
//!
//! Order of reading: `suite` (the form of a file), `variables`, `compare`, `cluster` (the nodes, and what is done to them), `run` (the
//! steps of one file), `things` (what steps make and name), `calls` (what the client is asked), `failure` (what it answers otherwise).

mod calls;
mod cluster;
mod compare;
mod failure;
mod names;
mod run;
mod suite;
mod things;
mod variables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use cluster::Cluster;
use suite::File;

/// Exit code where the suite could not be run at all; 1 says that a file failed.
const COULD_NOT_RUN: u8 = 2;

/// What this runner and its client can do of what a file may need.
const CAPABILITIES: [&str; 6] = ["cancel", "cancel_release", "clock", "foreign", "stderr", "suspend"];

#[derive(Parser)]
#[command(about = "Runs files of the suite that all clients share with the Rust client.")]
struct Arguments {
    /// Only files that say `quick: true`
    #[arg(long)]
    quick: bool,
    /// All files of the suite if none is named
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run_all(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("client-conformance: {why}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

/// Whether all files went well.
fn run_all(arguments: &Arguments) -> Result<bool, String> {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/conformance");
    let paths = if arguments.files.is_empty() { suite::paths(&suite)? } else { arguments.files.clone() };
    let files = paths.iter().map(|path| File::read(path)).collect::<Result<Vec<_>, _>>()?;
    let cluster = Cluster::start(&suite.join("cluster.py"))?;
    let mut went_well = true;
    for file in files.iter().filter(|file| file.is_quick || !arguments.quick) {
        went_well &= report(&cluster, file)?;
    }
    Ok(went_well)
}

/// Runs a file and prints its line; whether it went well.
fn report(cluster: &Cluster, file: &File) -> Result<bool, String> {
    let missing = file.missing(&CAPABILITIES);
    if !missing.is_empty() {
        println!("not tried {}: {}", file.base, missing.join(", "));
        return Ok(true);
    }
    let started = Instant::now();
    let outcome = run::file(cluster, file)?;
    match &outcome {
        Ok(()) => println!("ok {} {}", file.base, started.elapsed().as_millis()),
        Err(why) => println!("FAILED {}: {}", file.base, why.replace('\n', " ")),
    }
    Ok(outcome.is_ok())
}
