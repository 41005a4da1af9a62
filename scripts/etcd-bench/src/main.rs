//! Drives an etcd cluster as `quorate bench` drives Quorate: closed loop, the same keys, values and clients, the same JSON.
//!
//! Owns the comparison's other side, and nothing else: it measures, `scripts/bench` starts and judges. Its connections gather what their
//! clients write at about the same time, as those of gRPC's Go library do: or it would take more of the machine than what it measures.

#[path = "../../../node/src/connection/gather.rs"]
mod gather;

use std::error::Error;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use etcd_client::{Channel, Client, Compare, CompareOp, KvClient, Txn, TxnOp, TxnOpResponse};
use gather::Gathering;
use hdrhistogram::Histogram;
use http::uri::{Authority, Scheme};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpStream;
use tonic::body::Body;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

/// Measures an etcd cluster and prints one JSON object.
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
    /// Clients on each connection; the etcd client multiplexes
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
    let connections = connect(&args).await?;
    if args.op == Op::Get && !args.no_fill {
        fill(&args, &connections).await?;
    }
    let begin = Instant::now() + Duration::from_secs_f64(args.warmup);
    let end = begin + Duration::from_secs_f64(args.seconds);
    let clients = (0..args.clients).map(|number| {
        let kv = connections[number / args.clients_per_connection.max(1) % connections.len()].clone();
        tokio::spawn(Worker::new(number, kv, &args).run(begin, end))
    });
    let clients: Vec<_> = clients.collect();
    let mut total = Outcome::new();
    for client in clients {
        let outcome = client.await??;
        total.micros.add(&outcome.micros)?;
        total.mismatches += outcome.mismatches;
    }
    println!("{}", report(&args, &total));
    Ok(())
}

/// As many connections as the clients need, over the members that are wanted.
async fn connect(args: &Args) -> Result<Vec<KvClient>, Failure> {
    let all: Vec<&str> = args.endpoints.split(',').collect();
    let endpoints = if args.target == Target::Leader { vec![leader(&all).await?] } else { all };
    let wanted = args.clients.div_ceil(args.clients_per_connection.max(1)).max(1);
    let mut connections = Vec::new();
    for endpoint in endpoints.iter().cycle().take(wanted) {
        connections.push(open(endpoint).await?.kv_client());
    }
    Ok(connections)
}

/// A connection of its own, with nothing between the calls of a client and HTTP/2.
async fn open(endpoint: &str) -> Result<Client, Failure> {
    let stream = TcpStream::connect(endpoint).await?;
    stream.set_nodelay(true)?;
    let io = TokioIo::new(Gathering::new(stream));
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
    tokio::spawn(connection);
    let authority: Authority = endpoint.parse()?;
    let service = service_fn(move |mut request: http::Request<Body>| {
        let (mut sender, authority) = (sender.clone(), authority.clone());
        async move {
            let mut uri = std::mem::take(request.uri_mut()).into_parts();
            (uri.scheme, uri.authority) = (Some(Scheme::HTTP), Some(authority));
            *request.uri_mut() = uri.try_into()?;
            sender.ready().await?;
            let answer = sender.send_request(request).await?;
            Ok::<_, Failure>(answer.map(Body::new))
        }
    });
    Ok(Client::from_channel(Channel::Custom(BoxCloneSyncService::new(service)), None).await?)
}

async fn leader<'a>(endpoints: &[&'a str]) -> Result<&'a str, Failure> {
    for endpoint in endpoints {
        let status = open(endpoint).await?.status().await?;
        if status.header().is_some_and(|header| header.member_id() == status.leader()) {
            return Ok(endpoint);
        }
    }
    Err("no member says that it leads".into())
}

fn key(number: usize) -> String {
    format!("bench/{number:08}")
}

/// Writes every key once, so that reads find them.
async fn fill(args: &Args, connections: &[KvClient]) -> Result<(), Failure> {
    const WRITERS: usize = 64;
    let fillers = (0..WRITERS).map(|writer| {
        let (mut kv, keys, value) =
            (connections[writer % connections.len()].clone(), args.keys, vec![b'x'; args.value_size]);
        tokio::spawn(async move {
            for number in (writer..keys).step_by(WRITERS) {
                kv.put(key(number), value.clone(), None).await?;
            }
            Ok::<_, etcd_client::Error>(())
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await??;
    }
    Ok(())
}

/// What a client saw.
struct Outcome {
    micros: Histogram<u64>,
    mismatches: u64,
}

impl Outcome {
    fn new() -> Self {
        let micros = Histogram::new_with_max(600_000_000, 3).expect("three digits up to ten minutes are possible");
        Self { micros, mismatches: 0 }
    }
}

/// One closed-loop client.
struct Worker {
    kv: KvClient,
    op: Op,
    random: StdRng,
    value: Vec<u8>,
    keys: usize,
    /// For cas: the key that only this client writes, and the revision of its last change as far as known.
    own: (String, i64),
    outcome: Outcome,
}

impl Worker {
    fn new(number: usize, kv: KvClient, args: &Args) -> Self {
        let own = (format!("bench/own/{number}"), 0);
        let random = StdRng::seed_from_u64(number as u64);
        let value = vec![b'x'; args.value_size];
        Self { kv, op: args.op, random, value, keys: args.keys, own, outcome: Outcome::new() }
    }

    async fn run(mut self, begin: Instant, end: Instant) -> Result<Outcome, etcd_client::Error> {
        loop {
            let sent = Instant::now();
            if sent >= end {
                return Ok(self.outcome);
            }
            let done = self.once().await?;
            if sent < begin {
                continue;
            }
            if done {
                self.outcome.micros.saturating_record(sent.elapsed().as_micros().max(1) as u64);
            } else {
                self.outcome.mismatches += 1;
            }
        }
    }

    /// One operation; `false` for a cas that was refused.
    async fn once(&mut self) -> Result<bool, etcd_client::Error> {
        match self.op {
            Op::Put => {
                let key = key(self.random.random_range(0..self.keys));
                self.kv.put(key, self.value.clone(), None).await.map(|_| true)
            }
            Op::Get => {
                let key = key(self.random.random_range(0..self.keys));
                self.kv.get(key, None).await.map(|_| true)
            }
            Op::Cas => self.cas().await,
        }
    }

    /// Replaces its own key on the revision it knows; learns the true one from a refusal.
    async fn cas(&mut self) -> Result<bool, etcd_client::Error> {
        let (key, revision) = (self.own.0.as_str(), self.own.1);
        let expected = Compare::mod_revision(key, CompareOp::Equal, revision);
        let put = TxnOp::put(key, self.value.clone(), None);
        let txn = Txn::new().when([expected]).and_then([put]).or_else([TxnOp::get(key, None)]);
        let answer = self.kv.txn(txn).await?;
        let written = answer.succeeded();
        self.own.1 = if written {
            answer.header().map_or(0, etcd_client::ResponseHeader::revision)
        } else {
            match answer.op_responses().first() {
                Some(TxnOpResponse::Get(found)) => found.kvs().first().map_or(0, etcd_client::KeyValue::mod_revision),
                _ => 0,
            }
        };
        Ok(written)
    }
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
