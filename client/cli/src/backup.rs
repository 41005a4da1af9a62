//! `quorate backup`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use quorate_client::{Error, SavedBackup};
use serde_json::json;

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, output, said};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is only there once it is whole and on disk: until then it has `.part-…` behind its name. Writes go on meanwhile; the backup \
has everything that was acknowledged before it began.

`quorate-node backup verify FILE` checks a backup at any time, `quorate-node restore` makes a new cluster of it.

Examples:
  quorate backup monday.backup
  quorate backup --local survivor.backup     # of one node, where there is no quorum")]
pub struct Args {
    /// The file; it must not be there yet.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Whatever the asked node has, without asking the others.
    #[arg(long)]
    local: bool,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let bar = said::bar(None, "backing up {bytes}  {bytes_per_sec}");
    let (shown, started) = (RefCell::new(bar.clone()), Instant::now());
    let file = args.file.clone();
    let backup = context.client.backup(args.file).on_progress(move |bytes| shown.borrow().set_position(bytes));
    let saved = backup.asked(args.local, |backup| backup.local()).save().await;
    bar.finish_and_clear();
    let SavedBackup { path, bytes, rows, revision, .. } = saved.map_err(|error| match error {
        // The temporary name means nothing to the user, who named the file.
        Error::File { source, .. } => Failed::other(format!("cannot write {}: {source}", file.display())),
        error => error.into(),
    })?;
    let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match context.shared.output.data() {
        Some(form) => output::show(
            form,
            &json!({
                "file": path.display().to_string(), "bytes": bytes, "rows": rows, "revision": revision.to_string(), "elapsed_ms": elapsed,
            }),
        ),
        None => output::line(format!(
            "{}: {bytes} bytes, {rows} rows, revision {revision}, in {}",
            path.display(),
            output::millis(elapsed)
        )),
    }
}
