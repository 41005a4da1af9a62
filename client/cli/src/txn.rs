//! `quorate txn`.

use quorate_client::api::{OpKind, TxnAnswer, TxnBlockResult, TxnFailed, TxnRead, TxnResult, TxnWritten};

use crate::fail::Failed;
use crate::refined::Refined;
use crate::{Context, cas_text, output, parse};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The input is the body of POST /v1/txn. If all checks of `if` hold, the steps of `then` are taken, otherwise those of `else`; all of \
them take effect, or none. A check has a `key` and one or more of `cas`, `exists` and `if`. A step is an operation, or a transaction \
of its own: {\"op\":\"txn\",\"if\":[…],\"then\":[…]}. Exit code 3 if a check does not hold and there is no `else`.

Example:
  quorate txn - <<'END'
  {\"if\":   [{\"key\":\"stock/apples\",\"if\":[{\"field\":\"left\",\"op\":\"gt\",\"value\":0}]}],
   \"then\": [{\"op\":\"update\",\"key\":\"stock/apples\",\"patch\":[{\"op\":\"inc\",\"path\":\"left\",\"value\":-1}]},
            {\"op\":\"insert\",\"key\":\"orders/o1\",\"value\":{\"item\":\"apples\"}}],
   \"else\": [{\"op\":\"get\",\"key\":\"stock/apples\"}]}
  END")]
pub struct Args {
    /// A file, `-` for standard input, or JSON itself.
    file: String,
    /// Say what would happen, write nothing.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let txn = context.client.txn_json(&parse::file(&args.file)?);
    let txn = txn.given(context.request_id(), |txn, id| txn.request_id(id)).asked(args.dry_run, |txn| txn.dry_run());
    let answer = txn.await?;
    match context.shared.output.data() {
        Some(form) => output::show(form, &answer)?,
        None => show(&answer)?,
    }
    if !answer.succeeded && answer.results.is_empty() {
        return Err(Failed::condition("a check does not hold, and there is no `else`"));
    }
    Ok(())
}

fn show(answer: &TxnAnswer) -> Result<(), Failed> {
    let branch = format!("{}  revision {}", branch(answer.succeeded), answer.revision);
    output::line(output::told(branch, answer.dry_run, answer.replayed))?;
    answer.failed.iter().try_for_each(|check| output::line(failed(check, 1)))?;
    answer.results.iter().try_for_each(|step| result(step, 1))
}

fn branch(succeeded: bool) -> &'static str {
    if succeeded { "the checks hold" } else { "a check does not hold" }
}

fn failed(check: &TxnFailed, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let current = match &check.current {
        Some(entry) => {
            format!("; found {}  cas {}", output::value(entry), cas_text::shown(entry.cas, "none (locked)"))
        }
        None => String::new(),
    };
    format!("{indent}{}: {}  {}{current}", check.pointer, check.key, check.detail)
}

fn result(step: &TxnResult, depth: usize) -> Result<(), Failed> {
    let indent = "  ".repeat(depth);
    match step {
        TxnResult::Read(TxnRead { key, entry, .. }) => match entry {
            Some(entry) => {
                let cas = cas_text::shown(entry.cas, "none (locked)");
                output::line(format!("{indent}get: {key}  {}  cas {cas}", output::value(entry)))
            }
            None => output::line(format!("{indent}get: {key}  (nothing)")),
        },
        TxnResult::Written(written) => output::line(format!("{indent}{}", line(written))),
        TxnResult::Txn(TxnBlockResult { succeeded, results, failed: checks, .. }) => {
            output::line(format!("{indent}txn: {}", branch(*succeeded)))?;
            checks.iter().try_for_each(|check| output::line(failed(check, depth + 1)))?;
            results.iter().try_for_each(|step| result(step, depth + 1))
        }
    }
}

fn line(written: &TxnWritten) -> String {
    let mut facts = Vec::new();
    facts.extend(written.cas.as_ref().map(|cas| format!("cas {cas}")));
    facts.extend(written.version.map(|version| format!("version {version}")));
    facts.extend(written.ttl_ms.map(|ttl| format!("expires in {}", output::millis(ttl))));
    facts.extend(written.lock_ms.map(|left| format!("locked for {}", output::millis(left))));
    facts.extend(written.prev.as_ref().map(|prev| format!("before: {}", output::value(prev))));
    format!("{}: {}  {}", name(written.op), written.key, facts.join(", ")).trim_end().to_owned()
}

/// As it is written in JSON.
fn name(op: OpKind) -> String {
    match serde_json::to_value(op) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("the kind of an operation is always a JSON string, not {other:?}"),
    }
}
