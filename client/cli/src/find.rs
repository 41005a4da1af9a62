//! `quorate find` and `quorate count`.

use futures::TryStreamExt;
use quorate_client::Find;
use quorate_client::api::{FindAnswer, Name};

use crate::criteria::Where;
use crate::fail::Failed;
use crate::listing::{self, PAGE_ENTRIES};
use crate::refined::Refined;
use crate::{Context, output, parse};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  quorate find orders/ --where 'status eq pending'
  quorate find orders/ --where 'total gte 100' --where 'customer.name starts A' --fields status,total
  quorate find jobs/ --where 'execute_at lte {\"now\":true}' --order-by -priority,execute_at --limit 10
  quorate find orders/ --where '[{\"any\":[{\"field\":\"status\",\"op\":\"eq\",\"value\":\"new\"},{\"field\":\"paid\",\"op\":\"nexists\"}]}]'
  quorate find orders/ --where 'status in [\"new\",\"paid\"]' --count")]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Fields that decide the order, separated by commas; `-` before those of which the greatest come first.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', allow_hyphen_values = true)]
    order_by: Vec<String>,
    /// Most entries to show, up to 1000; the last line says if there are more.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Everything, page by page.
    #[arg(short, long, conflicts_with = "limit")]
    all: bool,
    /// Show only these fields of each document, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Keys only.
    #[arg(short, long, conflicts_with = "fields")]
    keys: bool,
    /// Only how many there are; the same as `quorate count`.
    #[arg(long, conflicts_with_all = ["order_by", "limit", "all", "fields", "keys"])]
    count: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  quorate count orders/
  quorate count orders/ --where 'status eq pending'")]
pub struct CountArgs {
    #[command(flatten)]
    filter: Filter,
}

/// What finds and counts have in common.
#[derive(Debug, clap::Args)]
struct Filter {
    /// Only keys that begin with this.
    #[arg(default_value = "", value_parser = parse::name)]
    prefix: Name,
    #[command(flatten)]
    criteria: Where,
    /// As it was at this revision.
    #[arg(long, value_name = "N")]
    revision: Option<u64>,
    /// Whatever the asked node has: fast, maybe stale.
    #[arg(long)]
    local: bool,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    if args.count {
        return show_count(context, &args.filter).await;
    }
    let find = find(context, &args);
    let form = context.shared.output;
    if !args.all {
        let page = find.page().await?;
        return match form.data() {
            Some(form) => output::show(form, &page),
            None => {
                show(&page, args.keys)?;
                tell_rest(&page);
                Ok(())
            }
        };
    }
    let mut pages = std::pin::pin!(find.pages());
    while let Some(page) = pages.try_next().await? {
        match form.data() {
            Some(form) => output::items(form, &page.entries)?,
            None => show(&page, args.keys)?,
        }
    }
    Ok(())
}

pub async fn run_count(context: &Context, args: CountArgs) -> Result<(), Failed> {
    show_count(context, &args.filter).await
}

async fn show_count(context: &Context, filter: &Filter) -> Result<(), Failed> {
    let answer = filter.find(context).count().await?;
    output::answer(context.shared.output, &answer, || answer.count.to_string())
}

impl Filter {
    fn find<'a>(&self, context: &'a Context) -> Find<'a> {
        let find = context.client.find(&self.prefix);
        let find = self.criteria.iter().fold(find, |find, criterion| find.matching_json(criterion));
        find.given(self.revision, Find::revision).asked(self.local, Find::local)
    }
}

fn find<'a>(context: &'a Context, args: &Args) -> Find<'a> {
    let find = args.order_by.iter().fold(args.filter.find(context), |find, field| find.order_by(field));
    find.given(args.limit.or(args.all.then_some(PAGE_ENTRIES)), Find::limit)
        .asked(!args.fields.is_empty(), |find| find.fields(&args.fields))
        .asked(args.keys, Find::keys_only)
}

fn show(page: &FindAnswer, keys: bool) -> Result<(), Failed> {
    listing::rows(&page.entries, keys)
}

/// The end of a page need not be the end.
fn tell_rest(page: &FindAnswer) {
    if page.cursor.is_some() {
        say!("(there may be more, after {} entries looked at; --all shows everything)", page.examined);
    }
}
