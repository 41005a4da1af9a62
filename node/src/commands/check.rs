//! `quorate-node check`: whether a data directory is sound.

use std::path::PathBuf;

use quorate_store::offline;

use super::CommandError;
use super::progress::Progress;

/// Which directory.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The data directory; no node may run on it
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

/// Runs the verb.
pub fn run(args: &CheckArgs) -> Result<(), CommandError> {
    let mut progress = Progress::new("checking");
    let report = offline::check(&args.data_dir, |what, count| progress.counted(what, count))?;
    drop(progress);
    report.looked.iter().for_each(|line| say!("{line}"));
    match report.faults.len() {
        0 => {
            say!("The data directory is sound.");
            Ok(())
        }
        count => Err(CommandError::Failed(format!("{count} faults:\n{}", report.faults.join("\n")))),
    }
}
