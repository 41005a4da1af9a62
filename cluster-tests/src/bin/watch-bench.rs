//! Measures watches on a cluster of its own: what idle ones cost, and how far busy ones lag.
//!
//! Owns the load and the figures, and nothing else: prints one JSON object, judges nothing. The nodes are the ones built beside this
//! program, so a release build measures a release.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use cluster_harness::{Cluster, Connection, Request, Settings};
use hdrhistogram::Histogram;
use quorate_client::api::ListAnswer;
use quorate_client::{Client, Value};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Whatever takes longer counts as this long.
const SLOWEST_MICROS: u64 = 60_000_000;

/// Measures watches and prints one JSON object.
#[derive(Debug, Parser)]
struct Args {
    /// Idle watches, each of a prefix of its own, on one follower; 0 leaves that part out
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
    /// How often idle watches are opened: writes without them and with them are measured in turns
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Busy watches of one prefix; 0 leaves that part out
    #[arg(long, default_value_t = 100)]
    busy: usize,
    /// All busy watches on one follower, instead of on all nodes in turn
    #[arg(long)]
    one_node: bool,
    /// Writes a second that the busy watches see
    #[arg(long, default_value_t = 5_000)]
    rate: u64,
    /// Writers at a time
    #[arg(long, default_value_t = 64)]
    writers: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Bytes of each value
    #[arg(long, default_value_t = 256)]
    value_size: usize,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    raise_file_limit();
    // All of them come from one address.
    let settings = Settings::default()
        // Some are for addresses that have none.
        .flag("--connections-max", (args.idle + args.busy) * 11 / 10 + 1_000)
        .flag("--account-connections-max", 0);
    let cluster = Cluster::start_with(settings).await;
    let mut report = serde_json::Map::new();
    if args.idle > 0 {
        report.insert("idle".into(), idle(&cluster, &args).await);
    }
    if args.busy > 0 {
        report.insert("busy".into(), busy(&cluster, &args).await);
    }
    println!("{}", serde_json::Value::Object(report));
}

// --- idle watches ---------------------------------------------------------------------------------------------------

/// Writes as fast as they go without watches and with them, in turns, and the memory of their node before and after.
async fn idle(cluster: &Cluster, args: &Args) -> serde_json::Value {
    let node = cluster.follower().await;
    // What the first writes warm up is not counted for the watches.
    write_all_out(cluster, args).await;
    let (mut without, mut with, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut ended = 0;
    for _ in 0..args.rounds {
        without.push(write_all_out(cluster, args).await);
        let before = resident_bytes(cluster.process_id(node));
        let stop = Arc::new(AtomicBool::new(false));
        let watches = open_idle(cluster, node, args.idle, &stop).await;
        let after = resident_bytes(cluster.process_id(node));
        with.push(write_all_out(cluster, args).await);
        memory.push(json!({
            "before": before,
            "after": after,
            "after_load": resident_bytes(cluster.process_id(node)),
            "each": after.saturating_sub(before) / args.idle as u64,
        }));
        stop.store(true, Ordering::Relaxed);
        ended += watches.iter().filter(|watch| watch.is_finished()).count();
        watches.iter().for_each(JoinHandle::abort);
    }
    json!({
        "watches": args.idle,
        "ended_by_themselves": ended,
        "resident_bytes": memory,
        "writes_a_second_without": without,
        "writes_a_second_with": with,
        "median_with_by_median_without": median(&with) / median(&without),
    })
}

/// Opens that many and waits until they are at rest.
async fn open_idle(cluster: &Cluster, node: u64, count: usize, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let mut watches = Vec::new();
    for number in 0..count {
        let stream = open(cluster.client_address(node), &format!("prefix=idle/{number}/")).await;
        let stream = stream.unwrap_or_else(|error| panic!("watch {number}: {error}"));
        watches.push(tokio::spawn(drain(stream, Arc::clone(stop))));
    }
    // A heartbeat of each.
    tokio::time::sleep(Duration::from_secs(6)).await;
    watches
}

fn median(figures: &[u64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2] as f64
}

/// Writes without a pause; gives how many were acknowledged a second.
async fn write_all_out(cluster: &Cluster, args: &Args) -> u64 {
    let written = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs_f64(args.seconds);
    let client = client(cluster);
    let writers = (0..args.writers).map(|writer| {
        let (client, written, value) = (client.clone(), Arc::clone(&written), value(args));
        tokio::spawn(async move {
            for turn in 0u64.. {
                if Instant::now() >= end {
                    break;
                }
                client.put(format!("load/{writer}/{}", turn % 1_000), value.clone()).await.expect("a write");
                written.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer ends");
    }
    (written.load(Ordering::Relaxed) as f64 / args.seconds) as u64
}

/// Reads and forgets.
async fn drain(mut stream: TcpStream, stop: Arc<AtomicBool>) {
    let mut buffer = [0u8; 1_024];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

// --- busy watches ---------------------------------------------------------------------------------------------------

/// Writes at a steady rate that all watches see; how late they see them, and whether they see all.
async fn busy(cluster: &Cluster, args: &Args) -> serde_json::Value {
    let nodes = if args.one_node { vec![cluster.follower().await] } else { cluster.ids() };
    let base = Instant::now();
    let start = revision(cluster).await;
    let mut watches = Vec::new();
    for number in 0..args.busy {
        let node = cluster.client_address(nodes[number % nodes.len()]);
        let stream = open(node, &format!("prefix=busy/&from={}", start + 1)).await;
        watches.push(Seen::follow(stream.unwrap_or_else(|error| panic!("watch {number}: {error}")), base));
    }
    let (sent, latencies) = write_steadily(cluster, args, base).await;
    let last = *sent.keys().next_back().expect("something was written");
    let mut lags = Histogram::<u64>::new_with_max(SLOWEST_MICROS, 3).expect("three digits");
    let (mut missing, mut repeated, mut behind) = (0u64, 0u64, 0usize);
    let patience = Instant::now() + Duration::from_secs(20);
    for (seen, task) in watches {
        while seen.last.load(Ordering::Relaxed) < last && Instant::now() < patience && !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        behind += usize::from(seen.last.load(Ordering::Relaxed) < last);
        seen.stop.store(true, Ordering::Relaxed);
        task.abort();
        let received = std::mem::take(&mut *seen.received.lock().expect("nobody panics with it"));
        repeated += received.windows(2).filter(|pair| pair[0].0 >= pair[1].0).count() as u64;
        let received: BTreeMap<_, _> = received.into_iter().collect();
        missing += sent.keys().filter(|revision| !received.contains_key(revision)).count() as u64;
        for (revision, at) in received {
            if let Some(sent) = sent.get(&revision) {
                lags.record(at.saturating_sub(*sent).max(1)).expect("it grows");
            }
        }
    }
    json!({
        "watches": args.busy,
        "writes": sent.len(),
        "writes_a_second": (sent.len() as f64 / args.seconds) as u64,
        "write_micros": percentiles(&latencies),
        "sent_to_seen_micros": percentiles(&lags),
        "missing_events": missing,
        "repeated_or_out_of_order": repeated,
        "watches_that_did_not_get_to_the_end": behind,
    })
}

/// Writes at the rate asked for; when each revision was sent, in microseconds after `base`, and how long writes took.
async fn write_steadily(cluster: &Cluster, args: &Args, base: Instant) -> (BTreeMap<u64, u64>, Histogram<u64>) {
    let turns = Arc::new(AtomicU64::new(0));
    let (begin, count) = (Instant::now(), (args.rate as f64 * args.seconds) as u64);
    let (client, rate) = (client(cluster), args.rate);
    let writers = (0..args.writers.max(256)).map(|_| {
        let (client, turns, value) = (client.clone(), Arc::clone(&turns), value(args));
        tokio::spawn(async move {
            let (mut sent, mut took) = (Vec::new(), Vec::new());
            loop {
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                if turn >= count {
                    return (sent, took);
                }
                tokio::time::sleep_until(begin + Duration::from_secs_f64(turn as f64 / rate as f64)).await;
                let at = Instant::now();
                let written = client.put(format!("busy/{}", turn % 1_000), value.clone()).await.expect("a write");
                took.push(at.elapsed().as_micros() as u64);
                sent.push((written.revision, at.duration_since(base).as_micros() as u64));
            }
        })
    });
    let mut all = BTreeMap::new();
    let mut latencies = Histogram::new_with_max(SLOWEST_MICROS, 3).expect("three digits");
    for writer in writers.collect::<Vec<_>>() {
        let (sent, took) = writer.await.expect("a writer ends");
        all.extend(sent);
        took.into_iter().for_each(|micros| latencies.record(micros.max(1)).expect("it grows"));
    }
    (all, latencies)
}

/// What a watch has seen so far: revisions with the time in microseconds.
#[derive(Debug, Default)]
struct Seen {
    last: AtomicU64,
    stop: AtomicBool,
    received: std::sync::Mutex<Vec<(u64, u64)>>,
}

impl Seen {
    /// Reads no JSON, only ids: a hundred readers of all of it would measure themselves.
    fn follow(mut stream: TcpStream, base: Instant) -> (Arc<Self>, JoinHandle<()>) {
        let seen = Arc::new(Self::default());
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                let mut text = Vec::with_capacity(256 * 1024);
                while !seen.stop.load(Ordering::Relaxed) {
                    match stream.read_buf(&mut text).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) => seen.take(&mut text, base),
                    }
                }
            }
        });
        (seen, task)
    }

    /// Takes the ids of events out of the lines that are whole.
    fn take(&self, text: &mut Vec<u8>, base: Instant) {
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { return };
        let now = base.elapsed().as_micros() as u64;
        let mut received = self.received.lock().expect("nobody panics with it");
        for line in text[..end].split(|byte| *byte == b'\n') {
            let Some(id) = line.strip_prefix(b"id: ") else { continue };
            // One with a dot is of an event, one without of a heartbeat.
            let Some(dot) = id.iter().position(|byte| *byte == b'.') else { continue };
            let revision = std::str::from_utf8(&id[..dot]).ok().and_then(|digits| digits.parse().ok());
            let revision = revision.expect("a revision is a number");
            received.push((revision, now));
            self.last.store(revision, Ordering::Relaxed);
        }
        text.drain(..=end);
    }
}

// --- what both need -------------------------------------------------------------------------------------------------

async fn open(node: SocketAddr, query: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(node).await?;
    stream.write_all(&Request::get(format!("/v1/watch?{query}")).to_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let status = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    if status.contains("200") { Ok(stream) } else { Err(io::Error::other(status)) }
}

async fn revision(cluster: &Cluster) -> u64 {
    let node = cluster.client_address(cluster.leader().await);
    let mut connection = Connection::open(node).await.expect("it takes connections");
    let answer = connection.exchange(&Request::get("/v1/kv?limit=1&prefix=none")).await.expect("it answers");
    answer.expect_success().json::<ListAnswer>().revision
}

fn client(cluster: &Cluster) -> Client {
    cluster.client_without(None)
}

fn value(args: &Args) -> Value {
    Value::json_text(format!("\"{}\"", "x".repeat(args.value_size.saturating_sub(2))))
}

fn percentiles(histogram: &Histogram<u64>) -> serde_json::Value {
    let at = |quantile| histogram.value_at_quantile(quantile);
    json!({"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999), "max": histogram.max()})
}

/// Memory of a process that is in RAM.
fn resident_bytes(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel says it");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1_024
}

/// Each watch is a socket here and one in its node, which inherits the limit.
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local of the right type.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: as above.
        let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
        assert_eq!(raised, 0, "the limit of open files: {}", io::Error::last_os_error());
    }
}
