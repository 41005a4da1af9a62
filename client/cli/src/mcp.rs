//! `quorate mcp`: a server of the Model Context Protocol for coding agents.
//!
//! Owns the flags, and what ends it. What it offers is the crate `quorate-mcp`'s.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "mcp")]
use quorate_mcp::{HttpSettings, ServeError, Settings, serve_http, serve_stdio};

use crate::fail::Failed;
#[cfg(feature = "mcp")]
use crate::signals::Signals;
use crate::{Context, parse};

/// Give a coding agent claims, locks, entries and tasks, by the Model Context Protocol.
///
/// The agent's program starts it and talks to it over standard input and output; with --http agents connect over HTTP instead. What an agent
/// holds hangs on one session, which is opened at first need and ends when the agent disconnects: locks, claims and leaderships are free at
/// once. An agent that is killed holds them for --ttl longer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the configuration of an agent's program:
  {\"mcpServers\": {\"quorate\": {\"command\": \"quorate\", \"args\": [\"mcp\", \"--name\", \"ann\"]}}}

Examples:
  quorate mcp --name ann --prefix shop/
  (umask 077 && openssl rand -hex 32 > mcp.token)
  quorate mcp --http 127.0.0.1:7180 --http-token-file mcp.token
  quorate mcp --http 10.0.0.7:7180 --http-token-file /etc/quorate/mcp-token --allow-host mcp.example")]
// Help and completion know them in any case.
#[cfg_attr(not(feature = "mcp"), allow(dead_code))]
pub struct Args {
    /// Who the agent is, for others who look at its locks; without it what its program calls itself.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How long what it holds is kept after it died or was cut off; like 30s, 5m.
    #[arg(long, default_value = "30s", value_parser = ttl, value_name = "TIME")]
    ttl: Duration,
    /// Let it use only keys and names that begin so.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PREFIX")]
    prefix: String,
    /// Leave out all tools that change something.
    #[arg(long)]
    read_only: bool,
    /// About how many bytes of values an answer has; longer values are read in parts.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1_024..=1_048_576), value_name = "BYTES")]
    answer_bytes: u32,
    /// Listen for agents here instead, over HTTP.
    #[arg(long, requires = "http_token_file", value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The token that agents have to send as `Authorization: Bearer`, in a file that only you may read: other users of this machine reach
    /// its own addresses too.
    #[arg(long, requires = "http", value_name = "FILE")]
    http_token_file: Option<PathBuf>,
    /// A name by which agents reach us, besides the address and localhost; others are refused.
    #[arg(long = "allow-host", requires = "http", value_name = "HOST")]
    hosts: Vec<String>,
    /// An origin of web pages that may connect, with its scheme and port, or `:*`; none without it.
    #[arg(long = "allow-origin", requires = "http", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// After how long without a message an agent over HTTP counts as gone; 1m at least.
    #[arg(long, default_value = "30m", requires = "http", value_parser = parse::positive_duration, value_name = "TIME")]
    idle: Duration,
}

/// Renewals and the locks of claims need some time.
fn ttl(text: &str) -> Result<Duration, String> {
    const MIN: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_secs(86_400);
    let ttl = parse::duration(text)?;
    if (MIN..=MAX).contains(&ttl) { Ok(ttl) } else { Err("expected a time from 1s to 1d".into()) }
}

/// Says that there is no server here, and how to come by one.
#[cfg(not(feature = "mcp"))]
pub async fn run(_context: &Context, _args: Args) -> Result<(), Failed> {
    Err(Failed::usage(
        "this program was built without the feature `mcp` of quorate-cli, as the first `scripts/cluster up` of a checkout does; \
         `scripts/cluster up --full` builds it in",
    ))
}

/// Runs the server until the agent has gone, or a signal comes.
#[cfg(feature = "mcp")]
pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let mut signals = Signals::take()?;
    let stop = async {
        signals.next().await;
    };
    let settings = Settings {
        client: context.client.clone(),
        name: args.name,
        ttl: args.ttl,
        prefix: args.prefix,
        read_only: args.read_only,
        answer_bytes: args.answer_bytes as usize,
    };
    let served = match args.http {
        None => serve_stdio(settings, stop).await,
        Some(address) => {
            let token_file =
                args.http_token_file.ok_or_else(|| Failed::usage("--http takes --http-token-file FILE"))?;
            let (hosts, origins) = (args.hosts, args.origins);
            let http = HttpSettings { address, token_file, hosts, origins, idle: args.idle };
            serve_http(settings, http, |address| say!("serving agents on http://{address}/"), stop).await
        }
    };
    served.map_err(|error| match error {
        ServeError::Settings(_) | ServeError::File { .. } => Failed::usage(error.to_string()),
        error => Failed::other(error.to_string()),
    })
}
