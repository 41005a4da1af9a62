//! Commands on the cluster as a whole.

use std::time::{Duration, Instant};

use clap::Subcommand;
use quorate_client::{Error, MemberStatus, NodeStatus};
use serde_json::json;

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, members, output, status, waiting};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show and change the members of the cluster
    Member {
        #[command(subcommand)]
        command: members::Command,
    },
    /// Say who leads
    Leader {
        #[command(subcommand)]
        command: members::Leader,
    },
    /// Wait until the nodes answer linearizable reads
    ///
    /// Waits as long as --timeout says; exit code 1 if they are not ready then.
    WaitReady {
        /// One of the endpoints is enough.
        #[arg(long)]
        any: bool,
        /// That a node answers is enough, whatever it says: for those who ask whether its process lives, not whether it serves.
        #[arg(long)]
        live: bool,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    match command {
        Command::Member { command } => members::run(context, command).await,
        Command::Leader { command } => members::run_leader(context, command).await,
        Command::WaitReady { any, live: false } => wait_ready(context, any).await,
        Command::WaitReady { any, live: true } => {
            waiting::until_nodes(context, "answer", answers, wait_live(context, any)).await
        }
    }
}

/// The nodes behind the endpoints, as `quorate status` shows members.
fn show(nodes: Vec<NodeStatus>, form: Form) -> Result<(), Failed> {
    status::show(&nodes.into_iter().map(MemberStatus::from).collect::<Vec<_>>(), form)
}

async fn wait_ready(context: &Context, any: bool) -> Result<(), Failed> {
    let wait = context.shared.timeout;
    let ready = context.client.wait_ready(any, wait);
    let nodes = waiting::until_nodes(context, "be ready", NodeStatus::is_ready, ready).await?;
    let ready = nodes.iter().filter(|node| node.is_ready()).count();
    if ready == nodes.len() || (any && ready > 0) {
        return match context.shared.output.data() {
            Some(form) => show(nodes, form),
            None => output::line(format!("ready: {ready} of {} nodes", nodes.len())),
        };
    }
    let all = nodes.len();
    show(nodes, context.shared.output)?;
    Err(Failed::other(format!("only {ready} of {all} nodes are ready after {wait:?}")))
}

/// Between two looks whether the nodes answer.
const LIVE_PAUSE: Duration = Duration::from_millis(100);

/// Whether a node answered: a refusal is an answer.
fn answers(node: &NodeStatus) -> bool {
    matches!(node.status, Ok(_) | Err(Error::Rejected(_)))
}

/// Waits until the nodes answer.
async fn wait_live(context: &Context, any: bool) -> Result<(), Failed> {
    let (wait, started) = (context.shared.timeout, Instant::now());
    loop {
        let nodes = context.client.status_of_all().await?;
        let (live, all) = (nodes.iter().filter(|node| answers(node)).count(), nodes.len());
        if live == all || (any && live > 0) {
            let answer = json!({"live": live, "nodes": all});
            return output::answer(context.shared.output, &answer, || format!("live: {live} of {all} nodes"));
        }
        if started.elapsed() >= wait {
            return Err(Failed::other(format!("only {live} of {all} nodes answer after {wait:?}")));
        }
        tokio::time::sleep(LIVE_PAUSE).await;
    }
}
