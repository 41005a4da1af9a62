//! `quorate audit`: who changed a key, and when.

use quorate_client::api::{AuditView, Name, code_name};

use crate::fail::Failed;
use crate::{Context, output, parse};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The key.
    #[arg(value_parser = parse::name)]
    key: Name,
    /// The first revision wanted.
    #[arg(long, value_name = "REVISION")]
    from: Option<u64>,
}

/// Shows the whole trail, a page at a time.
pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let mut cursor = None;
    loop {
        let page = context.client.access().audit(&args.key, args.from, cursor.as_deref()).await?;
        match context.shared.output.data() {
            Some(form) => output::items(form, &page.lines)?,
            None => page.lines.iter().try_for_each(|line| output::line(text(line)))?,
        }
        let Some(next) = page.cursor else { return Ok(()) };
        cursor = Some(next);
    }
}

fn text(line: &AuditView) -> String {
    let who = line.principal.as_deref().unwrap_or("-");
    let id = line.request_id.as_deref().unwrap_or("-");
    let refusal = line.refusal.map(|why| format!(" {}", code_name(why))).unwrap_or_default();
    let AuditView { time, revision, op, effect, .. } = line;
    format!("{time}  revision {revision}  {who}  {op} {effect}{refusal}  {id}")
}
