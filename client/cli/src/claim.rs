//! `quorate claim`.

use std::time::Duration;

use quorate_client::Claim;
use quorate_client::api::{EntryView, Name};

use crate::criteria::Where;
use crate::fail::Failed;
use crate::fence::Fence;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, bulk, cas_text, entries, output, parse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The cas that it prints with each entry is the key to its lock: write or remove the entry with it, or end the lock with `quorate entry \
unlock`. Nobody else gets the entry before the lock ends. Exit code 3 if there is nothing to claim.

Example:
  quorate claim jobs/ --where 'due lte {\"now\":true}' --order-by -priority --patch '[{\"op\":\"inc\",\"path\":\"tries\",\"value\":1}]'
  quorate delete jobs/j1 --cas 17            # done")]
pub struct Args {
    /// Only keys that begin with this.
    #[arg(value_parser = parse::name)]
    prefix: Name,
    #[command(flatten)]
    criteria: Where,
    /// Fields that decide which come first, separated by commas; `-` before those of which the greatest do.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', allow_hyphen_values = true)]
    order_by: Vec<String>,
    /// Most entries to claim, up to 100.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// How long the locks hold by themselves, at most 30s; more stands for 15s.
    #[arg(long = "for", default_value = "15s", value_parser = parse::positive_duration, value_name = "TIME")]
    time: Duration,
    /// Change each entry in the same step: JSON, `-` or @PATH, as `quorate patch` takes it.
    #[arg(long, value_name = "PATCH")]
    patch: Option<String>,
    /// Say what would be claimed, lock and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fence: Fence,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let claims = claim(context, &args)?.await?;
    match context.shared.output.data() {
        Some(form) => output::show(form, &claims.answer)?,
        None => claims.answer.entries.iter().try_for_each(|entry| output::line(row(entry)))?,
    }
    if context.shared.output == Form::Text {
        claims.answer.failed.iter().filter_map(bulk::item).try_for_each(output::line)?;
    }
    if claims.answer.left_out {
        say!("(which entries were passed over, because the patch does not fit them, is not kept for a retry)");
    }
    if let Some(entry) = claims.answer.entries.first() {
        entries::told_of_less(args.time, entry.lock_ms);
    }
    if claims.is_empty() && !claims.answer.failed.is_empty() {
        let passed = claims.answer.failed.len();
        return Err(Failed::condition(format!("nothing is claimed: the patch does not fit {passed} entries")));
    }
    if claims.is_empty() && claims.answer.left_out {
        return Err(Failed::condition("nothing is claimed: the patch does not fit what was found"));
    }
    if claims.is_empty() {
        let more = if claims.answer.more { " among those looked at; there are more" } else { "" };
        return Err(Failed::condition(format!("there is nothing to claim{more}")));
    }
    Ok(())
}

fn claim<'a>(context: &'a Context, args: &Args) -> Result<Claim<'a>, Failed> {
    let claim = context.client.claim(&args.prefix).limit(args.limit);
    let claim = args.criteria.iter().fold(claim, |claim, one| claim.matching_json(one));
    let claim = args.order_by.iter().fold(claim, |claim, field| claim.order_by(field));
    let patch = args.patch.as_deref().map(parse::patch).transpose()?;
    Ok(claim
        .lock_time(args.time)
        .given(patch, Claim::patch)
        .asked(args.dry_run, Claim::dry_run)
        .given(args.fence.guard()?, Claim::guarded_by)
        .given(context.request_id(), Claim::request_id))
}

fn row(entry: &EntryView) -> String {
    let cas = cas_text::shown(entry.cas, "none");
    let left = entry.lock_ms.map(|left| format!(", locked for {}", output::millis(left))).unwrap_or_default();
    format!("{}  {}  cas {cas}{left}", entry.key, output::value(entry))
}
