//! `quorate node`: single nodes, each asked about itself.
//!
//! Owns which nodes are meant: one by its id or address, or all members. Nothing is passed on from one node to another.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::NodeClient;
use quorate_client::api::{
    NodeCaller, NodeCallerKind, NodeCallersAnswer, NodeLogAnswer, NodeResource, NodeResourceKind,
};

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, output, parse};

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
    /// Show who holds most of the limited resources of nodes
    ///
    /// Waits, watches, requests that arrive, memory for bodies and unread answers, values under way, operations of streams, connections,
    /// places of the classes, and the time of the processors that callers owe.
    #[command(after_help = "\
A caller is a user or, where nobody says who they are, an address. `share` is what one caller may hold, of bodies and \
places once half is taken, and `refused` counts since the node started. For processors, a caller holds the time until it has paid for what it \
took beyond its share. --output json has twenty callers of each resource.

Examples:
  quorate node callers
  quorate node callers --node 2 --top 20")]
    Callers {
        /// How many callers of each resource.
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
        top: u32,
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

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    match command {
        Command::Log { filter, reset, time, which } => log(context, filter, reset, time, &which).await,
        Command::Lines { last, which } => lines(context, last as usize, &which).await,
        Command::Config { which } => config(context, &which).await,
        Command::Callers { top, which } => callers(context, top as usize, &which).await,
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

async fn callers(context: &Context, top: usize, which: &Which) -> Result<(), Failed> {
    for (_, node) in nodes(context, which).await? {
        let answer = node.callers().await?;
        match context.shared.output.data() {
            Some(Form::Table) => output::items(Form::Table, &answer.resources)?,
            Some(form) => output::show(form, &answer)?,
            None => {
                output::line(format!("node {}", answer.node_id))?;
                output::table(&rows(&answer, top))?;
                answer.resources.iter().filter_map(pressure).try_for_each(output::line)?;
            }
        }
    }
    Ok(())
}

/// A row for each resource with the caller that holds most of it, and one for each of those after it.
fn rows(answer: &NodeCallersAnswer, top: usize) -> Vec<Vec<String>> {
    let heading = ["resource", "taken", "bound", "share", "refused", "caller", "holds"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for resource in &answer.resources {
        let amount = |amount: u64| match resource.resource {
            NodeResourceKind::Bodies | NodeResourceKind::Answers => output::bytes(amount),
            NodeResourceKind::Processors => output::millis(amount),
            _ => amount.to_string(),
        };
        let refused = (resource.refused + resource.share_refused).to_string();
        let [taken, bound, share] = [resource.taken, resource.bound, resource.share].map(amount);
        let mut first = vec![resource.resource.name().to_owned(), taken, bound, share, refused];
        let mut callers = resource.callers.iter().take(top).map(|caller| [known_as(caller), amount(caller.held)]);
        first.extend(callers.next().unwrap_or_else(|| ["-", "-"].map(str::to_owned)));
        rows.push(first);
        rows.extend(callers.map(|caller| vec![String::new(); 5].into_iter().chain(caller).collect::<Vec<_>>()));
    }
    rows
}

/// Tells that callers are held up, where they are or the node is late.
fn pressure(resource: &NodeResource) -> Option<String> {
    let (held_up, late) = (resource.held_up?, resource.late?);
    let threads = if late { "late" } else { "not late" };
    let name = resource.resource.name();
    (late || held_up > 0)
        .then(|| format!("{name}: the threads are {threads}; connections and requests held up: {held_up}"))
}

fn known_as(caller: &NodeCaller) -> String {
    let name = caller.name.as_deref().unwrap_or_default();
    match caller.kind {
        NodeCallerKind::User => format!("user {name}"),
        NodeCallerKind::Address => format!("address {name}"),
        NodeCallerKind::LocalUser => format!("user {name} of the machine"),
        NodeCallerKind::Strangers => "strangers".to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_has_a_row_and_each_caller_after_the_first_one_too() {
        let caller = |kind, name: Option<&str>, held| NodeCaller { kind, name: name.map(str::to_owned), held };
        let resource = |resource, callers| NodeResource {
            resource,
            bound: 4 * 1024 * 1024,
            share: 1024 * 1024,
            taken: 3 * 1024,
            refused: 2,
            share_refused: 5,
            held_up: None,
            late: None,
            callers,
        };
        let callers = vec![
            caller(NodeCallerKind::User, Some("ann"), 2_048),
            caller(NodeCallerKind::Strangers, None, 1_000),
            caller(NodeCallerKind::LocalUser, Some("1000"), 24),
        ];
        let debts = vec![caller(NodeCallerKind::User, Some("bob"), 350)];
        let processors =
            NodeResource { held_up: Some(7), late: Some(true), ..resource(NodeResourceKind::Processors, debts) };
        let told = "processors: the threads are late; connections and requests held up: 7";
        assert_eq!(pressure(&processors).as_deref(), Some(told));
        assert_eq!(pressure(&NodeResource { held_up: Some(0), late: Some(false), ..processors.clone() }), None);
        let waits = resource(NodeResourceKind::Waits, Vec::new());
        assert_eq!(pressure(&waits), None);
        let resources = vec![resource(NodeResourceKind::Bodies, callers), waits, processors];
        let rows = rows(&NodeCallersAnswer { node_id: 1, resources }, 2);
        assert_eq!(rows.len(), 5, "{rows:?}");
        let [taken, bound, share, holds] = [3 * 1024, 4 * 1024 * 1024, 1024 * 1024, 2_048].map(output::bytes);
        assert_eq!(rows[1], ["bodies", &taken, &bound, &share, "7", "user ann", &holds]);
        assert_eq!(rows[2], ["", "", "", "", "", "strangers", &output::bytes(1_000)]);
        assert_eq!(rows[3], ["waits", "3072", "4194304", "1048576", "7", "-", "-"]);
        assert_eq!(rows[4], ["processors", "3.0s", "1h9m", "17m28s", "7", "user bob", "350ms"]);
    }
}
