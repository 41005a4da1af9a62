//! `quorate export`: entries as lines of JSON, all of one revision.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use quorate_client::List;
use quorate_client::api::{ExportLine, Name, NoExportLine};
use serde_json::json;

use crate::fail::Failed;
use crate::listing::PAGE_ENTRIES;
use crate::refined::Refined;
use crate::{Context, output, parse, said};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One line for each entry: `key`, `value` (JSON) or `value_base64` (bytes), and `ttl_ms` where it expires. `quorate import` reads the \
same. All entries are of one revision, however long it takes; it must stay readable for so long (see --history-keep-ms of the \
nodes). What has expired is left out, and what belongs to a session, which ends with that; both are counted. Tokens, revisions, locks, \
sessions, tasks and rules are not exported: for all of them there is `quorate backup`.

Examples:
  quorate export all.ndjson
  quorate export - --prefix orders/ | gzip > orders.ndjson.gz")]
pub struct Args {
    /// The file, or `-` for standard output. It is only there once it is whole, and nobody but you may read it.
    #[arg(value_name = "FILE")]
    file: String,
    /// Only keys that begin with this.
    #[arg(short, long, default_value = "", value_name = "PREFIX", value_parser = parse::name)]
    prefix: Name,
    /// As it was at this revision.
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    if args.file == "-" {
        let done = export(context, &args, std::io::stdout().lock()).await?;
        // Standard output is taken.
        say!("exported {} entries of revision {}{}", done.entries, done.revision, done.left_out());
        return Ok(());
    }
    let path = PathBuf::from(&args.file);
    if path.exists() {
        return Err(Failed::usage(format!("{} is there already; an export replaces nothing", path.display())));
    }
    // Another export may be on its way to the same file.
    let part = PathBuf::from(format!("{}.part-{:08x}", args.file, rand::random::<u32>()));
    let written = to_file(context, &args, &part, &path).await;
    if written.is_err() {
        // The first fault is the one to tell.
        let _gone = fs::remove_file(&part);
    }
    let done = written?;
    let Exported { entries, of_sessions, expired, revision } = done;
    match context.shared.output.data() {
        Some(form) => output::show(
            form,
            &json!({
                "file": args.file, "entries": entries, "of_sessions": of_sessions, "expired": expired, "revision": revision.to_string(),
            }),
        ),
        None => output::line(format!("{}: {entries} entries of revision {revision}{}", args.file, done.left_out())),
    }
}

#[derive(Default)]
struct Exported {
    entries: u64,
    /// Left out: they end with their session.
    of_sessions: u64,
    /// Left out: a page of a past revision shows them as they were.
    expired: u64,
    revision: u64,
}

impl Exported {
    fn left_out(&self) -> String {
        let said = |count: u64, what: &str| (count > 0).then(|| format!(", left out {count} that {what}"));
        [said(self.of_sessions, "belong to sessions"), said(self.expired, "have expired")]
            .into_iter()
            .flatten()
            .collect()
    }
}

async fn to_file(context: &Context, args: &Args, part: &Path, path: &Path) -> Result<Exported, Failed> {
    let cannot = |error: std::io::Error| Failed::other(format!("cannot write {}: {error}", path.display()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part).map_err(cannot)?;
    let done = export(context, args, BufWriter::with_capacity(1 << 20, &file)).await?;
    file.sync_all().map_err(cannot)?;
    // Not a rename: it would replace a file that has come meanwhile.
    fs::hard_link(part, path).and_then(|()| fs::remove_file(part)).map_err(cannot)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(cannot)?;
    Ok(done)
}

async fn export(context: &Context, args: &Args, mut out: impl Write) -> Result<Exported, Failed> {
    let list = context.client.list(&args.prefix).limit(PAGE_ENTRIES).given(args.revision, List::revision);
    let bar = said::bar(None, "exporting {pos} entries  {per_sec}");
    let mut done = Exported::default();
    let mut pages = std::pin::pin!(list.pages());
    while let Some(page) = pages.try_next().await? {
        done.revision = page.revision;
        for entry in &page.entries {
            match ExportLine::of(entry) {
                Ok(line) => {
                    done.entries += 1;
                    writeln!(out, "{}", line.text())?;
                }
                Err(NoExportLine::OfSession) => done.of_sessions += 1,
                Err(NoExportLine::Expired) => done.expired += 1,
                Err(why @ NoExportLine::NoValue) => {
                    return Err(Failed::other(format!("`{}` cannot be exported: {why}", entry.key)));
                }
            }
        }
        bar.set_position(done.entries);
    }
    bar.finish_and_clear();
    out.flush()?;
    Ok(done)
}
