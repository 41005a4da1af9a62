//! `quorate node`: single nodes, each asked about itself.
//!
//! Owns which nodes are meant: one by its id or address, or all members. Nothing is passed on from one node to another.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::NodeClient;
use quorate_client::api::NodeLogAnswer;

use crate::Context;
use crate::fail::Failed;
use crate::output;
use crate::parse;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what nodes log, or have them log something else
    #[command(after_help = "\
A filter is a level (error, warn, info, debug), or levels of modules. It holds until the node starts again, or as long as --for says. \
Release builds have lines of the level debug of Quorate alone, not of openraft.

Examples:
  quorate node log
  quorate node log quorate_node=debug,info --node 2 --for 10m
  quorate node log --reset")]
    Log {
        /// What to log.
        #[arg(conflicts_with = "reset")]
        filter: Option<String>,
        /// What is configured.
        #[arg(long)]
        reset: bool,
        /// For so long; then as configured.
        #[arg(long = "for", value_name = "TIME", value_parser = parse::positive_duration, requires = "filter")]
        time: Option<Duration>,
        #[command(flatten)]
        which: Which,
    },
    /// Show the last lines of the logs of nodes
    ///
    /// Names and values of entries are left out of them. A node keeps some thousand lines in memory.
    #[command(after_help = "Example:
  quorate node lines --node 2 --last 50")]
    Lines {
        /// How many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        last: u32,
        #[command(flatten)]
        which: Which,
    },
    /// Show how nodes are configured, without secrets
    #[command(after_help = "Example:
  quorate node config --node 2")]
    Config {
        #[command(flatten)]
        which: Which,
    },
}

/// Which nodes.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// One node, by its id or its client address; all members without it.
    #[arg(long, value_name = "ID|ADDR")]
    node: Option<String>,
}

/// Runs a command on nodes.
pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    match command {
        Command::Log { filter, reset, time, which } => log(context, filter, reset, time, &which).await,
        Command::Lines { last, which } => lines(context, last as usize, &which).await,
        Command::Config { which } => config(context, &which).await,
    }
}

async fn log(
    context: &Context,
    filter: Option<String>,
    reset: bool,
    time: Option<Duration>,
    which: &Which,
) -> Result<(), Failed> {
    for (_, node) in nodes(context, which).await? {
        let answer = match filter.is_some() || reset {
            true => node.set_log(filter.as_deref(), time).await?,
            false => node.log().await?,
        };
        output::answer(context.shared.output, &answer, || text(&answer))?;
    }
    Ok(())
}

fn text(answer: &NodeLogAnswer) -> String {
    let NodeLogAnswer { node_id, filter, configured, .. } = answer;
    match filter == configured {
        true => format!("node {node_id} logs {filter}"),
        false => format!("node {node_id} logs {filter}, configured is {configured}"),
    }
}

async fn lines(context: &Context, last: usize, which: &Which) -> Result<(), Failed> {
    for (_, node) in nodes(context, which).await? {
        let answer = node.log_lines(last).await?;
        match context.shared.output.data() {
            Some(form) => output::show(form, &answer)?,
            None => {
                answer.lines.iter().try_for_each(|line| output::line(format!("node {}: {line}", answer.node_id)))?
            }
        }
    }
    Ok(())
}

async fn config(context: &Context, which: &Which) -> Result<(), Failed> {
    for (_, node) in nodes(context, which).await? {
        let answer = node.config().await?;
        match context.shared.output.data() {
            Some(form) => output::show(form, &answer)?,
            None => {
                output::line(format!("node {}, version {}", answer.node_id, answer.version))?;
                answer.settings.iter().try_for_each(|(name, value)| output::line(format!("  {name} = {value}")))?;
            }
        }
    }
    Ok(())
}

/// The nodes that are meant, with their ids where they are known. A member that does not answer is there too: it fails when it is asked.
async fn nodes(context: &Context, which: &Which) -> Result<Vec<(Option<u64>, NodeClient)>, Failed> {
    let members = context.client.overview().await?;
    let is_meant = |id: Option<u64>, address: &str| match &which.node {
        None => true,
        Some(meant) => address == meant || id.is_some_and(|id| id.to_string() == *meant),
    };
    let mut nodes = Vec::new();
    for member in members.iter().filter(|member| is_meant(member.node_id, &member.address)) {
        nodes.push((member.node_id, context.client.node(&member.address)?));
    }
    match (&which.node, nodes.is_empty()) {
        (Some(meant), true) => {
            Err(Failed::usage(format!("no member has the id or the address `{meant}`; see quorate status")))
        }
        _ => Ok(nodes),
    }
}
