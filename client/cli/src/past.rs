//! `quorate history`, `diff` and `revert`: what an entry was.

use quorate_client::api::{AuditView, EntryView, Name};
use quorate_client::{Value, Version, Write};
use serde::Serialize;

use crate::fail::Failed;
use crate::fence::Fence;
use crate::pretty::{differences, pretty};
use crate::refined::Refined;
use crate::{Context, output, parse, rewrite};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Goes back as far as history was not compacted. `quorate audit` shows refused writes too, and no values.

Examples:
  quorate history orders/o1
  quorate history orders/o1 -n 3 -o yaml")]
pub struct HistoryArgs {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// The last so many versions.
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --from it is the last change of the entry, up to --to.

Examples:
  quorate diff orders/o1
  quorate diff orders/o1 --from 4711
  quorate diff orders/o1 --from 4711 --to 4720")]
pub struct DiffArgs {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// As it was at this revision.
    #[arg(long, value_name = "REVISION")]
    from: Option<u64>,
    /// As it was at this one; as it is without it.
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes the value of then on the cas of now, so no change is lost unseen: exit code 3 if the entry changes meanwhile. An entry that was \
deleted is created again. Session and time to live stay as they are now.

Examples:
  quorate history orders/o1
  quorate revert orders/o1 --to 4711
  quorate revert orders/o1 --to 4711 --dry-run")]
pub struct RevertArgs {
    /// Which entry.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// To what it was at this revision.
    #[arg(long, value_name = "REVISION")]
    to: u64,
    /// Say what would happen, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    fence: Fence,
}

/// A version of an entry, as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    change: &'a AuditView,
    /// `None` where it was deleted.
    entry: Option<&'a EntryView>,
}

pub async fn history(context: &Context, args: HistoryArgs) -> Result<(), Failed> {
    let versions = context.client.history(&args.key).last(args.limit as usize).await?;
    if versions.is_empty() {
        return Err(Failed::not_found(format!("nothing is known of the past of `{}`", args.key)));
    }
    for Version { change, entry, .. } in versions {
        let shown = Shown { change: &change, entry: entry.as_ref() };
        output::each(context.shared.output, &shown, || text(&shown))?;
    }
    Ok(())
}

fn text(version: &Shown<'_>) -> String {
    let AuditView { revision, time, op, principal, .. } = version.change;
    let who = principal.as_deref().unwrap_or("-");
    let value = version.entry.map_or_else(|| "(deleted)".to_owned(), output::value);
    format!("revision {revision}  {time}  {who}  {op}  {value}")
}

pub async fn diff(context: &Context, args: DiffArgs) -> Result<(), Failed> {
    let at = async |revision: Option<u64>| -> Result<Option<EntryView>, Failed> {
        let get = context.client.get(&args.key);
        Ok(match revision {
            Some(revision) => get.revision(revision).await?,
            None => get.await?,
        })
    };
    let to = at(args.to).await?;
    let from = match (args.from, &to) {
        (Some(from), _) => at(Some(from)).await?,
        (None, Some(to)) if to.mod_revision > 1 => at(Some(to.mod_revision - 1)).await?,
        (None, Some(_)) => None,
        (None, None) => return Err(Failed::not_found(format!("there is no entry `{}`; say --from", args.key))),
    };
    if let Some(form) = context.shared.output.data() {
        let (field, key) = args.key.in_json("key");
        return output::show(form, &serde_json::json!({field: key, "from": from, "to": to}));
    }
    let (before, after) = (shown(from.as_ref())?, shown(to.as_ref())?);
    let mark = |entry: &Option<EntryView>| {
        entry.as_ref().map_or_else(|| "nothing".to_owned(), |entry| format!("revision {}", entry.mod_revision))
    };
    output::line(format!("{}  {} to {}", args.key, mark(&from), mark(&to)))?;
    differences(&before, &after).into_iter().try_for_each(output::line)
}

fn shown(entry: Option<&EntryView>) -> Result<String, Failed> {
    Ok(pretty(&String::from_utf8_lossy(&rewrite::bytes(entry)?)))
}

pub async fn revert(context: &Context, args: RevertArgs) -> Result<(), Failed> {
    let Some(then) = context.client.get(&args.key).revision(args.to).await? else {
        let (key, to) = (&args.key, args.to);
        return Err(Failed::not_found(format!("`{key}` was not there at revision {to}; `quorate delete` deletes it")));
    };
    let now = context.client.get(&args.key).await?;
    let bytes = rewrite::bytes(Some(&then))?;
    let is_same = now.as_ref().is_some_and(|now| now.content_type == then.content_type);
    if is_same && rewrite::bytes(now.as_ref())? == bytes {
        return rewrite::tell_unchanged(context, &args.key);
    }
    let value = match &then.value {
        Some(json) => Value::json_text(json.0.get().to_owned()),
        None => Value::bytes(bytes),
    };
    let write = rewrite::on(context, &args.key, now.as_ref(), value, &args.fence)?;
    let answer = context.with_write_id(write.asked(args.dry_run, Write::dry_run)).await?;
    rewrite::tell(context, &answer)
}
