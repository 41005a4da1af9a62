//! `etcd-conformance`: runs the cases against servers that run already, and keeps or compares what they do.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use etcd_conformance::cases;
use etcd_conformance::compare::{Known, Surprise, compare, flat, kept};
use etcd_conformance::transcript::to_text;

#[derive(Parser)]
#[command(about = "Runs calls of etcd's v3 API against servers, and keeps or compares what they answer.")]
struct Arguments {
    /// The servers of one cluster, host:port, with commas between
    #[arg(long, value_delimiter = ',', required = true)]
    at: Vec<SocketAddr>,
    /// Only cases whose group/name contains this
    #[arg(long, default_value = "")]
    only: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write what they answer into files of this directory, one for each group
    Record {
        /// Where to
        directory: PathBuf,
    },
    /// Compare what they answer with what etcd answered
    Compare {
        /// Print what differs as a known difference, which needs a reason
        #[arg(long)]
        propose: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let groups = cases::run(&arguments.at, &arguments.only).await;
    match arguments.command {
        Command::Record { directory } => {
            for (name, group) in &groups {
                let file = directory.join(format!("{name}.json"));
                std::fs::write(&file, to_text(group)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            }
            ExitCode::SUCCESS
        }
        Command::Compare { propose } => {
            let (etcd, known) = kept();
            let cases = flat(groups);
            let surprises = compare(&etcd, &cases, &known);
            report(&surprises, cases.len(), &known);
            if propose {
                println!("{}", serde_json::to_string_pretty(&proposed(&surprises)).expect("JSON"));
            }
            if surprises.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

fn report(surprises: &[Surprise], cases: usize, known: &[Known]) {
    for surprise in surprises {
        eprintln!("{}\n", surprise.text);
    }
    let whole: usize = known.iter().map(|known| known.cases.len()).sum();
    let steps: usize = known.iter().flat_map(|known| known.steps.values()).map(BTreeMap::len).sum();
    eprintln!(
        "{cases} cases, {} surprises; known: {whole} cases that differ as a whole, {steps} single answers",
        surprises.len()
    );
}

fn proposed(surprises: &[Surprise]) -> Known {
    let mut known = Known { reason: "say why".to_owned(), ..Known::default() };
    for (case, n, answer) in surprises.iter().filter_map(|surprise| surprise.step.clone()) {
        known.steps.entry(case).or_default().insert(n, answer);
    }
    known
}
