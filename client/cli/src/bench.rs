//! `quorate bench`: closed-loop load and what it measured.
//!
//! Owns the phases: fill, warm up, measure, stop. Every client is a task that sends its next operation when the last one
//! was answered; so the rate is what the cluster can do, and latencies are true for this number of clients.

mod load;
mod mix;
mod progress;
mod report;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_client::{Client, Protocol, Reads};

use crate::fail::Failed;
use crate::{Context, output, parse};
use load::Plan;
use mix::Mix;
use progress::Progress;
use report::Report;
use tally::{Phase, Tally};

#[derive(Debug, clap::Args)]
#[command(after_help = "The keys are PREFIX0 … PREFIXn; they are overwritten and left behind.

Examples:
  quorate bench --clients 256                          # puts of 256 bytes
  quorate bench --clients 256 --mix get=100            # linearizable reads; fills the keys first
  quorate bench --mix put=10,get=80,cas=10 --duration 60s
  quorate bench --mix cas=100 --shared                 # all clients race for one entry
  quorate bench --mix update=100                       # each counts in a document of its own, on a condition
  quorate --output json bench --ops 100000 > result.json")]
pub struct Args {
    /// Clients, each with one operation in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// How long to measure.
    #[arg(long, default_value = "10s", value_parser = parse::positive_duration, value_name = "TIME")]
    duration: Duration,
    /// Measure this many operations instead.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    ops: Option<u64>,
    /// Load before the measurement.
    #[arg(long, default_value = "2s", value_parser = parse::duration, value_name = "TIME")]
    warmup: Duration,
    /// Bytes of each value.
    #[arg(long, default_value_t = 256, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(2..=1_572_864))]
    value_size: u32,
    /// How many different keys.
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Shares of the kinds of operations.
    #[arg(long, default_value = "put=100", value_name = "KIND=SHARE,…")]
    mix: Mix,
    /// Chooses keys and operations; the same seed makes the same choices.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// What all keys begin with.
    #[arg(long, default_value = "bench/", value_name = "TEXT")]
    prefix: String,
    /// Reads from whatever the asked node has.
    #[arg(long)]
    local_reads: bool,
    /// All cas operations on one entry, to measure a race; without it each client has its own.
    #[arg(long)]
    shared: bool,
    /// Do not write the keys before reading them.
    #[arg(long)]
    no_fill: bool,
    /// Where linearizable reads go.
    #[arg(long, value_enum, default_value_t = ReadsTo::Spread)]
    reads: ReadsTo,
    /// How operations travel.
    #[arg(long, value_enum, default_value_t = Way::Stream)]
    protocol: Way,
    /// Threads of the load generator. One is enough for what a few processors can serve; more of them wake each other.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ReadsTo {
    /// To all nodes in turn.
    Spread,
    /// To the leader.
    Leader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// As lines of a stream to each node that all clients share.
    Stream,
    /// Each as an HTTP/1.1 exchange; as many connections as there are operations under way.
    Http1,
}

impl Way {
    /// For people.
    fn name(self) -> &'static str {
        match self {
            Self::Stream => "streams",
            Self::Http1 => "HTTP/1.1",
        }
    }
}

impl Args {
    /// Threads that the runtime needs.
    pub fn workers(&self) -> usize {
        usize::from(self.threads)
    }
}

pub async fn run(context: &Context, args: Args) -> Result<(), Failed> {
    let client = client(context, &args)?;
    let seed = args.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    say!("seed {seed}");
    // Fails early and clearly where there is no cluster, and lets the client learn who leads.
    client.get(format!("{}0", args.prefix)).await?;
    let tally = Arc::new(Tally::new(args.ops));
    let plan = Arc::new(plan(&args, seed));
    let interrupted = {
        let tally = tally.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                tally.enter(Phase::Stopped);
            }
        })
    };
    if args.mix.reads() && !args.no_fill {
        let progress = Progress::fill(args.keys);
        load::fill(&client, &plan, &tally, args.clients, &progress).await?;
    }
    let clients = load::start(&client, &plan, &tally, args.clients);
    let span = measure(&args, &tally).await;
    let finished = load::finish(clients, context.shared.timeout).await;
    interrupted.abort();
    finished?;
    let report = Report::new(&args, seed, span, &tally);
    match context.shared.output.data() {
        Some(form) => output::show(form, &report),
        None => report.lines().into_iter().try_for_each(output::line),
    }?;
    if report.ops == 0 { Err(Failed::other("not one operation succeeded")) } else { Ok(()) }
}

fn client(context: &Context, args: &Args) -> Result<Client, Failed> {
    let reads = match args.reads {
        ReadsTo::Spread => Reads::Spread,
        ReadsTo::Leader => Reads::Leader,
    };
    let protocol = match args.protocol {
        Way::Stream => Protocol::Stream,
        Way::Http1 => Protocol::Http1,
    };
    Ok(context.connection.client().reads(reads).protocol(protocol).build()?)
}

fn plan(args: &Args, seed: u64) -> Plan {
    // Bounded by the parser.
    let value_size = args.value_size as usize;
    Plan {
        letters: load::letters(seed, value_size * 2),
        seed,
        mix: args.mix.clone(),
        prefix: args.prefix.clone(),
        keys: args.keys,
        value_size,
        local_reads: args.local_reads,
        shared: args.shared,
    }
}

/// What the measurement took.
struct Span {
    wall: Duration,
    /// Processor time of the load generator, where the system tells.
    cpu: Option<Duration>,
}

/// Goes through the phases; returns when the last one is over.
async fn measure(args: &Args, tally: &Tally) -> Span {
    let progress = Progress::measure(args.ops.is_none().then_some(args.warmup + args.duration), args.ops);
    watch(tally, &progress, Some(args.warmup)).await;
    let (started, cpu) = (Instant::now(), report::cpu_time());
    tally.enter(Phase::Measuring);
    watch(tally, &progress, args.ops.is_none().then_some(args.duration)).await;
    tally.enter(Phase::Stopped);
    let cpu = report::cpu_time().zip(cpu).map(|(end, begin)| end.saturating_sub(begin));
    Span { wall: started.elapsed(), cpu }
}

/// Shows the progress until the time is over or everything is stopped.
async fn watch(tally: &Tally, progress: &Progress, limit: Option<Duration>) {
    const TICK: Duration = Duration::from_millis(200);
    let started = Instant::now();
    loop {
        let left = limit.map_or(TICK, |limit| limit.saturating_sub(started.elapsed()));
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = tally.stopped() => return,
            () = tokio::time::sleep(left.min(TICK)) => progress.show(tally),
        }
    }
}
