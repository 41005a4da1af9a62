//! `quorate-node backup verify`: whether a file is a whole backup, and of what.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use quorate_store::backup::{BackupEnd, BackupError, BackupHeader, BackupReader};

use super::CommandError;
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
}

/// Runs the verb.
pub fn run(command: BackupCommand) -> Result<(), CommandError> {
    let BackupCommand::Verify { file } = command;
    let (header, end) = verify(&file).map_err(|error| CommandError::Failed(format!("{}: {error}", file.display())))?;
    say!("The backup is whole: {} rows, {} bytes of them, in {} blocks", end.rows, end.row_bytes, end.blocks);
    say!("  digest of its rows  {:032x}", end.digest);
    show(&header);
    Ok(())
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
