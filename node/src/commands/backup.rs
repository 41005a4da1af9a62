//! `quorate-node backup`: whether a file is a whole backup, and what is in it.
//!
//! Owns the verbs. What is in a backup is read by [`super::backup_rows`].

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use quorate_api::{Name, TypedCriteria, typed_criteria};
use quorate_store::backup::{BackupEnd, BackupError, BackupHeader, BackupReader};

use super::CommandError;
use super::backup_rows;
use super::progress::Progress;

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// About backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Reads a backup from its first byte to its last, says whether it is whole and what it is of; needs no cluster
    Verify {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Says what a backup is of and how much of each kind is in it; reads all of it
    Show {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Lists the entries in a backup, as they were when it was taken
    List(ListArgs),
    /// Finds entries in a backup by what holds of them
    #[command(after_help = "\
Example:
  quorate-node backup find monday.backup orders/ --where 'status eq pending'")]
    Find {
        #[command(flatten)]
        list: ListArgs,
        /// Only where this holds: `FIELD OP VALUE`, or criteria in JSON, as `quorate find --where`; may be given several times.
        #[arg(short = 'w', long = "where", required = true, value_name = "CRITERIA", value_parser = typed_criteria)]
        matching: Vec<TypedCriteria>,
    },
    /// Writes the entries in a backup as lines of JSON, which `quorate import` reads
    ///
    /// What has expired is left out, and what belongs to a session, which ends with that.
    #[command(after_help = "\
Example:
  quorate-node backup export monday.backup orders/ > orders.ndjson")]
    Export {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Only keys that begin with this.
        #[arg(default_value = "", value_parser = shown)]
        prefix: Name,
    },
}

/// What lists and finds have in common.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  quorate-node backup list monday.backup orders/ --keys")]
pub struct ListArgs {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only keys that begin with this.
    #[arg(default_value = "", value_parser = shown)]
    prefix: Name,
    /// Keys only.
    #[arg(short, long, conflicts_with = "json")]
    keys: bool,
    /// Each entry as a line of JSON, as nodes show it.
    #[arg(long)]
    json: bool,
}

/// A name as lists show it.
fn shown(text: &str) -> Result<Name, Infallible> {
    Ok(Name::from_shown(text))
}

/// Runs the verb.
pub fn run(command: BackupCommand) -> Result<(), CommandError> {
    match command {
        BackupCommand::Verify { file } => {
            let (header, end) = verify(&file).map_err(|error| about(&file, &error))?;
            say!("The backup is whole: {} rows, {} bytes of them, in {} blocks", end.rows, end.row_bytes, end.blocks);
            say!("  digest of its rows  {:032x}", end.digest);
            show(&header);
            Ok(())
        }
        BackupCommand::Show { file } => {
            let (header, counts) = backup_rows::count(&file).map_err(|error| about(&file, &error))?;
            show(&header);
            counts.into_iter().for_each(|(kind, count)| say!("  {kind:<20}{count}"));
            Ok(())
        }
        BackupCommand::List(args) => list(&args, &[]),
        BackupCommand::Find { list: args, matching } => list(&args, &matching),
        BackupCommand::Export { file, prefix } => {
            let told = backup_rows::each(&file, &prefix, &[], |entry| backup_rows::line(entry).is_none_or(say_on));
            told.map_err(|error| about(&file, &error))
        }
    }
}

fn list(args: &ListArgs, matching: &[TypedCriteria]) -> Result<(), CommandError> {
    let matching: Vec<_> = matching.iter().flat_map(|TypedCriteria(list)| list.iter().cloned()).collect();
    let told = backup_rows::each(&args.file, &args.prefix, &matching, |entry| {
        say_on(match (args.keys, args.json) {
            (true, _) => entry.key.to_string(),
            (false, true) => backup_rows::json(entry),
            (false, false) => backup_rows::text(entry),
        })
    });
    told.map_err(|error| about(&args.file, &error))
}

/// Whether there is still somebody who reads.
fn say_on(line: String) -> bool {
    writeln!(io::stdout(), "{line}").is_ok()
}

fn about(file: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::Failed(format!("{}: {error}", file.display()))
}

fn verify(file: &Path) -> Result<(BackupHeader, BackupEnd), BackupError> {
    let source = File::open(file)?;
    let length = source.metadata()?.len();
    let mut progress = Progress::new("verifying");
    BackupReader::open(BufReader::with_capacity(READ_BYTES, source))?.verify(|at| progress.at(at, length))
}

/// Says what a backup is of.
pub fn show(header: &BackupHeader) {
    let BackupHeader { cluster_id, node_id, node_version, taken_at, log_id, vars, .. } = header;
    say!("  cluster             {cluster_id:032x}, epoch {}", vars.epoch);
    say!("  taken               {} by node {node_id}, version {node_version}", super::time(*taken_at));
    say!("  revision            {}", vars.revision);
    if let Some(id) = log_id {
        say!("  log                 entry {} of term {}", id.index, id.term);
    }
    say!("  clocks              wall {}, cluster {} ms", super::time(vars.wall), vars.clock);
    say!("  digest of the state {:032x}", vars.digest());
}
