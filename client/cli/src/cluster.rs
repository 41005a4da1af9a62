//! Commands on the cluster as a whole.

use clap::Subcommand;
use quorate_client::{MemberStatus, NodeStatus};

use crate::Context;
use crate::fail::Failed;
use crate::form::Form;
use crate::members;
use crate::output;
use crate::status;

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
    },
}

/// Runs a command on the cluster.
pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    match command {
        Command::Member { command } => members::run(context, command).await,
        Command::Leader { command } => members::run_leader(context, command).await,
        Command::WaitReady { any } => wait_ready(context, any).await,
    }
}

/// The nodes behind the endpoints, as `quorate status` shows members.
fn show(nodes: Vec<NodeStatus>, form: Form) -> Result<(), Failed> {
    status::show(&nodes.into_iter().map(MemberStatus::from).collect::<Vec<_>>(), form)
}

async fn wait_ready(context: &Context, any: bool) -> Result<(), Failed> {
    let wait = context.shared.timeout;
    let nodes = context.client.wait_ready(any, wait).await?;
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
