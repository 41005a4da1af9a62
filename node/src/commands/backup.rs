//! `quorate-node backup`: whether a file is a whole backup, and what is in it.
//!
//! Owns the verbs. What is in a backup is read by [`super::backup_rows`].

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use quorate_api::{EntryView, Name, TypedCriteria, typed_criteria};
use quorate_store::backup::{BackupEnd, BackupError, BackupHeader, BackupReader};

use super::CommandError;
use super::archive::KeyArgs;
use super::backup_rows;
use super::progress::Progress;

/// About backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Reads a backup from its first byte to its last, says whether it is whole and what it is of; needs no cluster
    Verify {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        keys: KeyArgs,
    },
    /// Says what a backup is of and how much of each kind is in it; reads all of it
    Show {
        /// The backup.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        keys: KeyArgs,
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
        #[command(flatten)]
        keys: KeyArgs,
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
    #[command(flatten)]
    opened: KeyArgs,
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
        BackupCommand::Verify { file, keys } => {
            let (header, end) = verify(&file, keys.open(&file)?).map_err(|error| about(&file, &error))?;
            say!("The backup is whole: {} rows, {} bytes of them, in {} blocks", end.rows, end.row_bytes, end.blocks);
            say!("  digest of its rows  {:032x}", end.digest);
            show(&header);
            Ok(())
        }
        BackupCommand::Show { file, keys } => {
            let (header, counts) = backup_rows::count(keys.open(&file)?).map_err(|error| about(&file, &error))?;
            show(&header);
            counts.into_iter().for_each(|(kind, count)| say!("  {kind:<20}{count}"));
            Ok(())
        }
        BackupCommand::List(args) => list(&args, &[]),
        BackupCommand::Find { list: args, matching } => list(&args, &matching),
        BackupCommand::Export { file, keys, prefix } => {
            let show = |entry: &EntryView| backup_rows::line(entry).is_none_or(say_on);
            let told = backup_rows::each(keys.open(&file)?, &prefix, &[], show);
            told.map_err(|error| about(&file, &error))
        }
    }
}

fn list(args: &ListArgs, matching: &[TypedCriteria]) -> Result<(), CommandError> {
    let matching: Vec<_> = matching.iter().flat_map(|TypedCriteria(list)| list.iter().cloned()).collect();
    let source = args.opened.open(&args.file)?;
    let told = backup_rows::each(source, &args.prefix, &matching, |entry| {
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

fn verify(file: &Path, source: impl Read) -> Result<(BackupHeader, BackupEnd), BackupError> {
    let length = fs::metadata(file)?.len();
    let mut progress = Progress::new("verifying");
    BackupReader::open(source)?.verify(|at| progress.at(at, length))
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
