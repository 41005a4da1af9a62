//! `quorate update-where` and `quorate delete-where`.

use std::time::Duration;

use futures::TryStreamExt;
use quorate_client::ChangeWhere;
use quorate_client::api::{Name, WhereAnswer};

use crate::criteria::{Only, Where};
use crate::fail::Failed;
use crate::fence::Fence;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, bulk, output, parse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The patch is an object (merge patch), or a list of update operators or JSON Patch operations, as of `quorate patch`. Without --where \
every document with the prefix is changed. Exit code 3 if one could not be.

Examples:
  quorate update-where orders/ '{\"status\":\"late\"}' --where 'status eq pending' --where 'due lt {\"now\":true}' --all
  quorate update-where stock/ '[{\"op\":\"inc\",\"path\":\"price\",\"value\":1}]' --dry-run")]
pub struct UpdateArgs {
    /// Only keys that begin with this; an empty word for every key.
    #[arg(value_parser = parse::name)]
    prefix: Name,
    /// The patch: JSON, `-` or @PATH.
    patch: String,
    /// New time to live, like 30s. Without it the expiry stays.
    #[arg(long, value_parser = parse::ttl, value_name = "TIME", allow_hyphen_values = true)]
    ttl: Option<Duration>,
    #[command(flatten)]
    shared: Shared,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --where every entry with the prefix is deleted. Exit code 3 if one could not be.

Examples:
  quorate delete-where sessions/ --where 'user eq ann' --dry-run
  quorate delete-where orders/ --where 'status eq void' --all")]
pub struct DeleteArgs {
    /// Only keys that begin with this; an empty word for every key.
    #[arg(value_parser = parse::name)]
    prefix: Name,
    #[command(flatten)]
    shared: Shared,
}

/// What both understand.
#[derive(Debug, clap::Args)]
struct Shared {
    #[command(flatten)]
    criteria: Where,
    #[command(flatten)]
    only: Only,
    /// Most entries to change, up to 1000; with --all, in one step.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Everything, step by step: one changes at most 1000 entries and looks at 10000.
    #[arg(short, long)]
    all: bool,
    /// With an empty prefix and no condition: every entry there is.
    #[arg(long)]
    everything: bool,
    /// Say what would happen, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fence: Fence,
}

impl Shared {
    /// A variable that nobody set is an empty prefix.
    fn check(&self, prefix: &Name) -> Result<(), Failed> {
        let is_bounded = !prefix.is_empty() || self.criteria.iter().chain(self.only.iter()).next().is_some();
        if is_bounded || self.dry_run || self.everything {
            return Ok(());
        }
        Err(Failed::usage(
            "without a prefix and a condition that is every entry there is: say --everything, or look first with --dry-run",
        ))
    }
}

pub async fn update(context: &Context, args: UpdateArgs) -> Result<(), Failed> {
    args.shared.check(&args.prefix)?;
    let change = context.client.patch_where(args.prefix, parse::patch(&args.patch)?);
    run(context, change.given(args.ttl, ChangeWhere::ttl), &args.shared, "changed").await
}

pub async fn delete(context: &Context, args: DeleteArgs) -> Result<(), Failed> {
    args.shared.check(&args.prefix)?;
    run(context, context.client.delete_where(args.prefix), &args.shared, "deleted").await
}

async fn run(context: &Context, change: ChangeWhere<'_>, shared: &Shared, verb: &str) -> Result<(), Failed> {
    let change = shared.criteria.iter().fold(change, |change, one| change.matching_json(one));
    let change = shared.only.iter().fold(change, |change, one| change.only_if_json(one));
    let change = change
        .given(shared.limit, ChangeWhere::limit)
        .asked(shared.dry_run, ChangeWhere::dry_run)
        .given(shared.fence.guard()?, ChangeWhere::guarded_by)
        .given(context.request_id(), ChangeWhere::request_id);
    let form = context.shared.output;
    let sum = if shared.all { all(change, form).await? } else { change.await? };
    match form.data() {
        Some(_) if shared.all => {}
        Some(form) => output::show(form, &sum)?,
        None => show(&sum, shared, verb)?,
    }
    match sum.failed {
        0 => Ok(()),
        failed => Err(Failed::partly(format!("{failed} of {} entries could not be {verb}", sum.matched))),
    }
}

/// Goes on to the end. The answer is that of the last part, with the sums of all; in JSON each part is shown.
async fn all(change: ChangeWhere<'_>, form: Form) -> Result<WhereAnswer, Failed> {
    let id = change.id().clone();
    let mut parts = std::pin::pin!(change.parts());
    let mut sum: Option<WhereAnswer> = None;
    loop {
        let mut part = match (parts.try_next().await, &sum) {
            (Ok(Some(part)), _) => part,
            (Ok(None), _) => break,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(sum)) => return Err(stopped(&error.into(), sum, id.as_str())),
        };
        if form != Form::Text {
            output::show(form, &part)?;
        } else {
            part.results.drain(..).filter_map(|item| bulk::item(&item)).try_for_each(output::line)?;
        }
        if let Some(before) = &sum {
            part.matched += before.matched;
            part.applied += before.applied;
            part.skipped += before.skipped;
            part.failed += before.failed;
            part.examined += before.examined;
            part.replayed &= before.replayed;
            part.left_out |= before.left_out;
        }
        sum = Some(part);
    }
    sum.ok_or_else(|| Failed::other("there is no part to this change"))
}

/// What is told where a part fails behind others that took effect.
fn stopped(error: &Failed, sum: &WhereAnswer, id: &str) -> Failed {
    let WhereAnswer { matched, applied, .. } = sum;
    Failed::stopped(format!(
        "{error}\n  so far: {applied} of {matched} entries that match are changed, of what follows some may be\n  \
         next: the same command with `--request-id {id}` does again what is missing, within 15 minutes"
    ))
}

fn show(sum: &WhereAnswer, shared: &Shared, verb: &str) -> Result<(), Failed> {
    sum.results.iter().filter_map(bulk::item).try_for_each(output::line)?;
    let WhereAnswer { matched, applied, skipped, failed, revision, .. } = sum;
    let facts = format!("matched {matched}, {verb} {applied}, skipped {skipped}, failed {failed}  revision {revision}");
    output::line(output::told(facts, sum.dry_run, sum.replayed))?;
    if sum.left_out {
        say!("(which entries were skipped or failed is not kept for a retry)");
    }
    if sum.cursor.is_some() && !shared.all {
        say!("(there may be more, after {} entries looked at; --all goes on to the end)", sum.examined);
    }
    Ok(())
}
