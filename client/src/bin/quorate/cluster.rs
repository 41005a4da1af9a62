//! Commands on the cluster as a whole.

use clap::Subcommand;
use quorate_client::NodeStatus;
use quorate_client::api::Role;
use serde_json::json;

use crate::Context;
use crate::fail::Failed;
use crate::members;
use crate::output::{self, Form};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the cluster: asks every endpoint
    ///
    /// Exit code 1 if no node answers.
    Status,
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
        Command::Status => {
            let nodes = context.client.status_of_all().await?;
            show(&nodes, context.shared.output)?;
            if nodes.iter().all(|node| node.status.is_err()) { Err(Failed::other("no node answers")) } else { Ok(()) }
        }
        Command::Member { command } => members::run(context, command).await,
        Command::Leader { command } => members::run_leader(context, command).await,
        Command::WaitReady { any } => wait_ready(context, any).await,
    }
}

fn show(nodes: &[NodeStatus], form: Form) -> Result<(), Failed> {
    if form == Form::Json {
        let views: Vec<_> = nodes.iter().map(view).collect();
        return output::json(&views);
    }
    if let Some(status) = nodes.iter().find_map(|node| node.status.as_ref().ok()) {
        let epoch = if status.epoch > 0 { format!(", epoch {}", status.epoch) } else { String::new() };
        output::line(format!("cluster {}{epoch}", status.cluster_id))?;
    }
    let heading = ["endpoint", "node", "role", "ready", "leader", "term", "applied", "log", "revision", "digest"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(nodes.iter().map(row));
    output::table(&rows)?;
    for (node, status) in nodes.iter().filter_map(|node| Some((node, node.status.as_ref().ok()?))) {
        for warning in &status.warnings {
            output::line(format!("{}: {warning}", node.address))?;
        }
    }
    Ok(())
}

fn view(node: &NodeStatus) -> serde_json::Value {
    match &node.status {
        Ok(status) => json!({"endpoint": node.address, "status": status}),
        Err(error) => json!({"endpoint": node.address, "error": error.to_string()}),
    }
}

fn row(node: &NodeStatus) -> Vec<String> {
    let status = match &node.status {
        Ok(status) => status,
        Err(error) => return vec![node.address.clone(), "-".into(), format!("no answer: {error}")],
    };
    vec![
        node.address.clone(),
        status.node_id.to_string(),
        role(status.role).into(),
        if status.ready { "yes" } else { "no" }.into(),
        status.leader_id.map_or("-".into(), |id| id.to_string()),
        status.term.to_string(),
        status.applied_index.to_string(),
        status.last_log_index.to_string(),
        status.revision.to_string(),
        format!("{}@{}", status.digest.get(..8).unwrap_or(&status.digest), status.applied_index),
    ]
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
        Role::Outside => "outside",
    }
}

async fn wait_ready(context: &Context, any: bool) -> Result<(), Failed> {
    let wait = context.shared.timeout;
    let nodes = context.client.wait_ready(any, wait).await?;
    let ready = nodes.iter().filter(|node| node.is_ready()).count();
    if ready == nodes.len() || (any && ready > 0) {
        return match context.shared.output {
            Form::Json => show(&nodes, Form::Json),
            Form::Text => output::line(format!("ready: {ready} of {} nodes", nodes.len())),
        };
    }
    show(&nodes, context.shared.output)?;
    Err(Failed::other(format!("only {ready} of {} nodes are ready after {wait:?}", nodes.len())))
}
