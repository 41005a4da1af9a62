//! Drives a cluster by etcd's protocol as `quorate bench` drives Quorate: closed loop, the same keys, values and clients, the same JSON.
//!
//! Owns the comparison's other side, and nothing else: it measures, `scripts/bench` starts and judges. It speaks gRPC with as little as
//! that takes (see [`http2`]), and what the clients of a connection have to say goes out at once: or it would take more of the machine
//! than what it measures.

mod clients;
mod http2;

use std::error::Error;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use hdrhistogram::Histogram;
use quorate_etcd_api::Message;
use quorate_etcd_api::maintenance::{StatusRequest, StatusResponse};

use crate::clients::{Client, Work};
use crate::http2::Connection;

/// Measures a cluster by etcd's protocol and prints one JSON object.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// host:port of the members, separated by commas
    #[arg(long)]
    endpoints: String,
    /// What every client does, over and over
    #[arg(long, value_enum)]
    op: Op,
    /// Clients, each with one request in flight
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Clients on each connection
    #[arg(long, default_value_t = 16)]
    clients_per_connection: usize,
    /// Seconds to measure
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds to run before measuring
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
    /// Bytes of each value
    #[arg(long, default_value_t = 256)]
    value_size: usize,
    /// How many different keys; for cas each client has one of its own
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Do not write the keys before reading them
    #[arg(long)]
    no_fill: bool,
    /// Which members to connect to
    #[arg(long, value_enum, default_value_t = Target::All)]
    target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Op {
    /// Overwrite a random key
    Put,
    /// Read a random key, linearizably
    Get,
    /// Overwrite its own key on its last revision
    Cas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// All members in turn
    All,
    /// The leader only
    Leader,
}

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let all: Vec<&str> = args.endpoints.split(',').collect();
    let endpoints = if args.target == Target::Leader { vec![leader(&all).await?] } else { all };
    if args.op == Op::Get && !args.no_fill {
        const WRITERS: usize = 64;
        let work = |number| Work::Fill { next: number, step: WRITERS };
        run(&endpoints, WRITERS, &args, work, Window::ALWAYS).await?;
    }
    let window = Window::after(Duration::from_secs_f64(args.warmup), Duration::from_secs_f64(args.seconds));
    let work = |number| match args.op {
        Op::Put => Work::Put,
        Op::Get => Work::Get,
        Op::Cas => Work::Cas { key: format!("bench/own/{number}"), revision: 0 },
    };
    let total = run(&endpoints, args.clients, &args, work, window).await?;
    println!("{}", report(&args, &total));
    Ok(())
}

/// When clients begin something new, and what of it counts.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// What was sent before is not counted.
    pub begin: Option<Instant>,
    /// Nothing is sent afterwards.
    pub end: Option<Instant>,
}

impl Window {
    const ALWAYS: Self = Self { begin: None, end: None };

    fn after(warmup: Duration, measured: Duration) -> Self {
        let begin = Instant::now() + warmup;
        Self { begin: Some(begin), end: Some(begin + measured) }
    }
}

/// What clients saw.
pub struct Outcome {
    /// How long what was done took.
    pub micros: Histogram<u64>,
    /// How often a compare-and-swap was refused.
    pub mismatches: u64,
}

impl Outcome {
    fn new() -> Self {
        let micros = Histogram::new_with_max(600_000_000, 3).expect("three digits up to ten minutes are possible");
        Self { micros, mismatches: 0 }
    }
}

/// Has clients do their work, on as many connections as they need, over the members in turn.
async fn run(
    endpoints: &[&str],
    clients: usize,
    args: &Args,
    work: impl Fn(usize) -> Work,
    window: Window,
) -> Result<Outcome, Failure> {
    let (mut tasks, numbers) = (Vec::new(), (0..clients).collect::<Vec<_>>());
    for (endpoint, numbers) in endpoints.iter().cycle().zip(numbers.chunks(args.clients_per_connection.max(1))) {
        let of_connection = numbers.iter().map(|&number| Client::new(number, work(number), args.value_size, args.keys));
        let connection = Connection::open(endpoint).await?;
        tasks.push(tokio::spawn(clients::drive(connection, of_connection.collect(), window, Outcome::new())));
    }
    let mut total = Outcome::new();
    for task in tasks {
        let outcome = task.await??;
        total.micros.add(&outcome.micros)?;
        total.mismatches += outcome.mismatches;
    }
    Ok(total)
}

async fn leader<'a>(endpoints: &[&'a str]) -> Result<&'a str, Failure> {
    for endpoint in endpoints {
        let mut connection = Connection::open(endpoint).await?;
        connection.call("/etcdserverpb.Maintenance/Status", &StatusRequest {}.encode_to_vec())?;
        connection.flush().await?;
        let mut answers = Vec::new();
        connection.answers(&mut answers).await?;
        let status = StatusResponse::decode(answers.swap_remove(0).message)?;
        if status.header.is_some_and(|header| header.member_id == status.leader) {
            return Ok(endpoint);
        }
    }
    Err("no member says that it leads".into())
}

/// The form of `quorate --output json bench`; times in microseconds.
fn report(args: &Args, total: &Outcome) -> serde_json::Value {
    let at = |quantile: f64| total.micros.value_at_quantile(quantile);
    let kind = match args.op {
        Op::Put => "put",
        Op::Get => "get",
        Op::Cas => "cas",
    };
    let (ops, ops_per_s) = (total.micros.len(), total.micros.len() as f64 / args.seconds);
    let latencies = serde_json::json!({
        "ops": ops,
        "ops_per_s": ops_per_s,
        "mean": total.micros.mean(),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": total.micros.max(),
    });
    serde_json::json!({
        "clients": args.clients,
        "mix": format!("{kind}=100"),
        "value_size": args.value_size,
        "keys": args.keys,
        "seconds": args.seconds,
        "ops": ops,
        "ops_per_s": ops_per_s,
        "mismatches": total.mismatches,
        "errors": {},
        "kinds": { kind: latencies },
    })
}
