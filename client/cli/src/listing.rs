//! `quorate list`.

use futures::TryStreamExt;
use quorate_client::List;
use quorate_client::api::{EntryView, ListAnswer, Name};

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, cas_text, output, parse};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  quorate list stock/
  quorate list stock/ --keys --all
  quorate list stock/ --keys --sizes --all | sort -k 2 -n      # the largest values last
  quorate list old/ --keys --all | xargs -d '\\n' -n 1 quorate delete
  quorate list stock/ --count")]
pub struct Args {
    /// Only keys that begin with this.
    #[arg(default_value = "", value_parser = parse::name)]
    prefix: Name,
    /// The same, as other programs have it: with the prefix behind it or before it.
    #[arg(long = "prefix", hide = true, value_name = "PREFIX", value_parser = parse::name, num_args = 0..=1, default_missing_value = "")]
    by_flag: Option<Name>,
    /// Most entries to show, up to 1000; the last line says if there are more.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Everything, page by page.
    #[arg(short, long, conflicts_with = "limit")]
    all: bool,
    /// Keys only.
    #[arg(short, long)]
    keys: bool,
    /// The size of each value, too; with --keys in its place.
    #[arg(long)]
    sizes: bool,
    /// Only how many there are.
    #[arg(long, conflicts_with_all = ["limit", "all", "keys", "sizes", "reverse"])]
    count: bool,
    /// From the end backwards.
    #[arg(long)]
    reverse: bool,
    /// Only the keys of one of several parts, for workers that share a prefix: 0/4, 1/4, 2/4, 3/4.
    #[arg(long, value_name = "I/N", value_parser = parse::part, conflicts_with = "count")]
    part: Option<(u32, u32)>,
    /// As it was at this revision.
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// Whatever the asked node has: fast, maybe stale.
    #[arg(long)]
    local: bool,
}

/// Entries of a page with `--all`, of finds too.
pub const PAGE_ENTRIES: u32 = 1_000;

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let prefix = args.by_flag.as_ref().filter(|prefix| !prefix.is_empty()).unwrap_or(&args.prefix);
    let list = list(context, prefix, &args);
    let form = context.shared.output;
    if args.count {
        let answer = list.count().await?;
        return output::answer(form, &answer, || answer.count.to_string());
    }
    if !args.all {
        let page = list.page().await?;
        return match form.data() {
            Some(form) => output::show(form, &page),
            None => show(&page, args.keys),
        };
    }
    let mut pages = std::pin::pin!(list.pages());
    while let Some(page) = pages.try_next().await? {
        match form.data() {
            Some(form) => output::items(form, &page.entries)?,
            None => show(&page, args.keys)?,
        }
    }
    Ok(())
}

fn list<'a>(context: &'a Context, prefix: &Name, args: &Args) -> List<'a> {
    let list = context.client.list(prefix);
    list.given(args.limit.or(args.all.then_some(PAGE_ENTRIES)), List::limit)
        .given(args.revision, List::revision)
        .given(args.part, |list, (index, of)| list.part(index, of))
        .asked(args.keys, List::keys_only)
        .asked(args.sizes, List::sizes)
        .asked(args.reverse, List::reverse)
        .asked(args.local, List::local)
}

fn show(page: &ListAnswer, keys: bool) -> Result<(), Failed> {
    rows(&page.entries, keys)?;
    if page.cursor.is_some() {
        say!("(more; --all shows everything, --limit up to 1000)");
    }
    Ok(())
}

/// Entries, a line each; of finds too.
pub fn rows(entries: &[EntryView], keys: bool) -> Result<(), Failed> {
    entries.iter().try_for_each(|entry| output::line(row(entry, keys)))
}

fn row(entry: &EntryView, keys: bool) -> String {
    let size = entry.value_bytes.map(|bytes| format!("  {bytes} bytes")).unwrap_or_default();
    if keys {
        return format!("{}{size}", entry.key);
    }
    format!("{}  {}  cas {}{size}", entry.key, output::value(entry), cas_text::shown(entry.cas, "none"))
}
