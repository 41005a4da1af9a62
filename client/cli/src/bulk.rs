//! `quorate bulk`.

use quorate_client::api::{BULK_OPS_MAX, BulkOutcome, BulkResult};
use quorate_client::{Bulk, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, output, parse, pretty};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The input has an operation on each line, or is the body of POST /v1/bulk. Each operation is applied or refused on its own, in order; \
an insert that finds its key is skipped, and so is an operation whose `if` does not hold. Exit code 3 if \
one was refused. For more than 10000 there is `quorate load`.

Example:
  quorate bulk - <<'END'
  {\"op\":\"insert\",\"key\":\"orders/o1\",\"value\":{\"status\":\"new\"}}
  {\"op\":\"update\",\"key\":\"stock/apples\",\"patch\":[{\"op\":\"inc\",\"path\":\"left\",\"value\":-1}]}
  END")]
pub struct Args {
    /// A file, `-` for standard input, or JSON itself.
    file: String,
    /// Say what would happen, write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// The body of the API; what the operations are is for the client to check.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
    #[serde(borrow)]
    ops: Vec<&'a RawValue>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    request_id: Option<String>,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let text = parse::file(&args.file)?;
    let body = body(&text)?;
    let bulk = body.ops.iter().fold(context.client.bulk(), |bulk, op| bulk.push_json(op.get()));
    let own_id = body.request_id.as_deref().map(str::parse::<RequestId>).transpose()?;
    let bulk = bulk
        .given(context.request_id().or(own_id), Bulk::request_id)
        .asked(args.dry_run || body.dry_run, Bulk::dry_run);
    let answer = bulk.await?;
    match context.shared.output.data() {
        Some(form) => output::show(form, &answer)?,
        None => {
            answer.results.iter().filter_map(item).try_for_each(output::line)?;
            let mut facts = format!("applied {}, skipped {}, failed {}", answer.applied, answer.skipped, answer.failed);
            facts.push_str(&format!("  revision {}", answer.revision));
            output::line(output::told(facts, answer.dry_run, answer.replayed))?;
        }
    }
    match answer.failed {
        0 => Ok(()),
        failed => Err(Failed::partly(format!("{failed} of {} operations failed", body.ops.len()))),
    }
}

/// One JSON object with `ops`, else lines.
fn body(text: &str) -> Result<Body<'_>, Failed> {
    #[derive(Deserialize)]
    struct Whole {
        #[serde(rename = "ops")]
        _ops: IgnoredAny,
    }
    if serde_json::from_str::<Whole>(text).is_ok() {
        return serde_json::from_str(text).map_err(|error| Failed::usage(format!("not a bulk: {error}")));
    }
    let mut ops = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let op = serde_json::from_str(line);
        ops.push(op.map_err(|error| Failed::usage(format!("line {number} is not JSON: {error}")))?);
        if ops.len() > BULK_OPS_MAX {
            return Err(Failed::usage(format!("more than {BULK_OPS_MAX} operations; use `quorate load`")));
        }
    }
    Ok(Body { ops, ..Body::default() })
}

/// An operation that did not take effect, or of which the entry as it was is to be shown.
pub fn item(item: &BulkResult) -> Option<String> {
    let BulkResult { n, key, detail, .. } = item;
    let verb = match (item.outcome, &item.prev) {
        (BulkOutcome::Applied, None) => return None,
        (BulkOutcome::Applied, Some(prev)) => return Some(format!("{n}: {key}  before: {}", output::value(prev))),
        (BulkOutcome::Skipped, _) => "skipped",
        (BulkOutcome::Failed, _) => "failed",
    };
    let faults = item.failed.iter().map(|fault| {
        let actual = fault
            .actual
            .as_ref()
            .map(|actual| format!("; found {}", pretty::compact(actual.0.get())))
            .unwrap_or_default();
        format!("\n  {}: {}{actual}", fault.pointer, fault.detail)
    });
    let detail = detail.as_deref().unwrap_or("no reason given");
    Some(format!("{n}: {key}  {verb}: {detail}{}", faults.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_as_lines_or_as_the_body_of_the_api() {
        let ops = |text: &str| body(text).map(|body| body.ops.len()).map_err(|error| error.to_string());
        assert_eq!(ops("{\"op\":\"remove\",\"key\":\"a\"}\n\n{\"op\":\"remove\",\"key\":\"b\"}"), Ok(2));
        assert_eq!(ops("{\"ops\":[{\"op\":\"remove\",\n\"key\":\"a\"}],\"dry_run\":true}"), Ok(1));
        assert!(ops("{\"op\":\"remove\"}\nhello").is_err_and(|error| error.contains("line 2")));
        assert!(ops("{\"ops\":[],\"dry\":true}").is_err_and(|error| error.contains("dry")));
    }
}
