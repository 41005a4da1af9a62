//! `quorate top`: what the nodes are doing, again and again.
//!
//! Owns the table and its rhythm. What a number is reckoned from is `rates`'s; never asks anything but `/metrics`.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::time::Instant;

use crate::fail::Failed;
use crate::form::Form;
use crate::rates::{Look, Rates};
use crate::{Context, output, parse};

/// Puts the cursor into the first corner and clears what is behind it.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time between two looks.
    #[arg(long, default_value = "1s", value_parser = parse::duration, value_name = "TIME")]
    every: Duration,
    /// Show one interval and end.
    #[arg(long)]
    once: bool,
}

/// Shows the rates until it is interrupted, or once.
pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let form = context.shared.output;
    let is_screen = form == Form::Text && !args.once && std::io::stdout().is_terminal();
    let mut before = look(context).await?;
    loop {
        tokio::time::sleep_until(Instant::from_std(before.at) + args.every).await;
        let now = look(context).await?;
        let rates = now.since(&before);
        if is_screen {
            output::raw(CLEAR)?;
        }
        show(&rates, form)?;
        std::io::stdout().flush()?;
        if args.once {
            let nobody = rates.iter().all(|node| node.numbers.is_err());
            return if nobody { Err(Failed::other("no node answers")) } else { Ok(()) };
        }
        before = now;
    }
}

async fn look(context: &Context) -> Result<Look, Failed> {
    let nodes = context.client.metrics_of_all().await?;
    let nodes = nodes.into_iter().map(|node| (node.address, node.scrape.map_err(|error| error.to_string())));
    Ok(Look { at: std::time::Instant::now(), nodes: nodes.collect() })
}

const HEADING: [&str; 17] = [
    "node", "role", "ready", "ops/s", "entries", "search", "coord", "tasks", "errors", "p50", "p99", "lag", "watches",
    "sessions", "queue", "cpu", "memory",
];

fn show(rates: &[Rates], form: Form) -> Result<(), Failed> {
    if form != Form::Text {
        return output::show(form, &rates.iter().map(Rates::json).collect::<Vec<_>>());
    }
    let mut rows = vec![HEADING.map(str::to_owned).to_vec()];
    rows.extend(rates.iter().map(row));
    output::table(&rows)?;
    for node in rates {
        if let Err(why) = &node.numbers {
            output::line(format!("{}: {why}", node.address))?;
        }
    }
    Ok(())
}

fn row(node: &Rates) -> Vec<String> {
    let Ok(now) = &node.numbers else { return vec![node.address.clone(), "no metrics".into()] };
    let rate = |number: f64| format!("{number:.0}");
    vec![
        node.address.clone(),
        if now.leads { "leader" } else { "follower" }.into(),
        if now.ready { "yes" } else { "no" }.into(),
        rate(now.entries + now.search + now.coordination + now.tasks),
        rate(now.entries),
        rate(now.search),
        rate(now.coordination),
        rate(now.tasks),
        rate(now.errors),
        took(now.p50_seconds),
        took(now.p99_seconds),
        rate(now.lag_entries),
        rate(now.watches),
        rate(now.sessions),
        rate(now.queued_writes),
        format!("{:.0}%", now.cpu_share * 100.0),
        output::bytes(now.memory_bytes as u64),
    ]
}

fn took(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".into(),
        Some(seconds) if seconds < 0.01 => format!("{:.1}ms", seconds * 1e3),
        Some(seconds) if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1}s"),
    }
}
