//! What can be counted about this node, and its text form.
//!
//! Owns names, units and buckets of what is counted as it happens; what is only asked for at a scrape comes from a
//! [`MetricsSource`]. Observing is a few atomic operations, and for a histogram a short lock, on handles resolved at start;
//! no label ever holds anything that came from outside, so there is a fixed number of series.

mod process;
mod sample;
mod status;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use quorate_api::{StatusAnswer, WatchEndCode};

pub use sample::{MetricsSource, Sample, Value};

use process::Process;
use sample::Sources;

type Labels = Vec<(&'static str, &'static str)>;

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Seconds: fine where a local fsync or a quorum round lies, coarse towards the deadlines.
const LATENCY_BUCKETS: [f64; 16] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 5.0, 20.0];
const COUNT_BUCKETS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
const SIZE_BUCKETS: [f64; 8] = [256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

/// Why a client connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum ConnectionEnd {
    /// By the peer, an error of its, or after `Connection: close`.
    Closed,
    /// Never served: there were too many.
    Refused,
    /// No request for too long.
    Idle,
    /// Silent at first, or half a head.
    SlowHead,
    /// The answer was not read.
    Stalled,
    /// No handshake of TLS came about, or TLS was spoken where none is.
    Handshake,
    /// It had to make room for another one, and had not shown who it is.
    PushedOut,
}

const ENDS: [&str; 7] = ["closed", "refused", "idle", "slow_head", "stalled", "tls_handshake", "pushed_out"];

/// Where the events of watches come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum WatchSource {
    /// Changes of late, in memory.
    Memory,
    /// The state's database, for those that fell behind.
    Disk,
    /// Entries that were there when a watch began.
    Initial,
}

const WATCH_SOURCES: [&str; 3] = ["memory", "disk", "initial"];
const WATCH_ENDS: [WatchEndCode; 12] = [
    WatchEndCode::Compacted,
    WatchEndCode::SlowConsumer,
    WatchEndCode::NoLeader,
    WatchEndCode::Stopping,
    WatchEndCode::Quarantined,
    WatchEndCode::PermissionDenied,
    WatchEndCode::Unauthenticated,
    WatchEndCode::TooDear,
    WatchEndCode::NotReady,
    WatchEndCode::Timeout,
    WatchEndCode::TooManyRequests,
    WatchEndCode::Internal,
];

/// What the HTTP server holds at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLoad {
    /// Requests being handled.
    pub requests: usize,
    /// Bytes of their bodies.
    pub body_bytes: usize,
    /// Bytes of long answers that were not taken yet.
    pub answer_bytes: usize,
}

/// All metrics of the node.
pub struct Metrics {
    registry: Registry,
    /// By route and status class.
    numbers: HashMap<&'static str, usize>,
    requests: Vec<[Counter; CLASSES.len()]>,
    /// By route.
    latencies: Vec<Histogram>,
    connections: Gauge<i64, AtomicI64>,
    ends: Vec<Counter>,
    batch_commands: Histogram,
    batch_bytes: Histogram,
    batch_durations: Histogram,
    forwarded: Counter,
    read_rounds: Counter,
    reads_per_round: Histogram,
    elections: Counter,
    leader_changes: Counter,
    slow_requests: Counter,
    watch_events: Vec<Counter>,
    watch_ends: Vec<Counter>,
    sources: Arc<Sources>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Registers everything. Requests are counted by route, under the number that a route has in this list.
    pub fn new(routes: &[&'static str]) -> Arc<Self> {
        let mut registry = Registry::with_prefix("quorate");
        let requests = Family::<Labels, Counter>::default();
        let latencies = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let ends = Family::<Labels, Counter>::default();
        let (watch_events, watch_ends) = (Family::<Labels, Counter>::default(), Family::<Labels, Counter>::default());
        let sources = Arc::new(Sources::default());
        let metrics = Self {
            numbers: routes.iter().enumerate().map(|(number, route)| (*route, number)).collect(),
            requests: routes.iter().map(|route| by_class(&requests, route)).collect(),
            latencies: routes.iter().map(|route| latency(&latencies, route)).collect(),
            ends: ENDS.into_iter().map(|end| ends.get_or_create_owned(&vec![("reason", end)])).collect(),
            connections: Gauge::default(),
            batch_commands: Histogram::new(COUNT_BUCKETS),
            batch_bytes: Histogram::new(SIZE_BUCKETS),
            batch_durations: Histogram::new(LATENCY_BUCKETS),
            forwarded: Counter::default(),
            read_rounds: Counter::default(),
            reads_per_round: Histogram::new(COUNT_BUCKETS),
            elections: Counter::default(),
            leader_changes: Counter::default(),
            slow_requests: Counter::default(),
            watch_events: WATCH_SOURCES
                .into_iter()
                .map(|source| watch_events.get_or_create_owned(&vec![("source", source)]))
                .collect(),
            watch_ends: WATCH_ENDS
                .into_iter()
                .map(|code| watch_ends.get_or_create_owned(&vec![("code", code.name())]))
                .collect(),
            sources: Arc::clone(&sources),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Requests answered", requests);
        let help = "Time from a complete request head to the answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, latencies);
        let help = "Requests that took longer than `slow_request_ms`, waits that were asked for aside";
        registry.register("http_slow_requests", help, metrics.slow_requests.clone());
        registry.register("http_connections", "Open client connections", metrics.connections.clone());
        registry.register("http_connections_ended", "Client connections that ended, by reason", ends);
        registry.register("batch_commands", "Commands in one Raft entry", metrics.batch_commands.clone());
        registry.register_with_unit("batch_size", "Bytes of one Raft entry", Unit::Bytes, metrics.batch_bytes.clone());
        let help = "Time from the proposal of a Raft entry to its replies";
        registry.register_with_unit("batch_duration", help, Unit::Seconds, metrics.batch_durations.clone());
        registry.register("forwarded_commands", "Commands sent on to the leader", metrics.forwarded.clone());
        registry.register("read_index_rounds", "Read-index rounds", metrics.read_rounds.clone());
        registry.register("read_index_reads", "Reads that shared one round", metrics.reads_per_round.clone());
        registry.register("elections_started", "Elections this node stood for", metrics.elections.clone());
        let help = "Times that this node heard of another leader";
        registry.register("raft_leader_changes", help, metrics.leader_changes.clone());
        registry.register("watch_events", "Events sent to watches, by where they were read", watch_events);
        registry.register("watch_ends", "Watches that this node ended, by reason", watch_ends);
        sources.add(Process::new());
        registry.register_collector(Box::new(sources));
        Arc::new(Self { registry, ..metrics })
    }

    /// Adds numbers to be asked for at each scrape.
    pub fn add_source(&self, source: impl MetricsSource) {
        self.sources.add(source);
    }

    /// The number of a route, where it is counted.
    pub fn number_of(&self, route: &str) -> Option<usize> {
        self.numbers.get(route).copied()
    }

    /// A request on the route of this number was answered.
    pub fn observe_request(&self, route: usize, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.requests[route][class].inc();
        self.latencies[route].observe(took.as_secs_f64());
    }

    /// A client connection was accepted; count it until the guard goes.
    pub fn connection_opened(self: &Arc<Self>) -> OpenConnection {
        self.connections.inc();
        OpenConnection(Arc::clone(self))
    }

    /// A client connection ended.
    pub fn on_connection_end(&self, end: ConnectionEnd) {
        self.ends[end as usize].inc();
    }

    /// A batch was proposed.
    pub fn observe_batch(&self, commands: usize, bytes: usize) {
        self.batch_commands.observe(commands as f64);
        self.batch_bytes.observe(bytes as f64);
    }

    /// A batch that was proposed has its replies.
    pub fn observe_batch_done(&self, took: Duration) {
        self.batch_durations.observe(took.as_secs_f64());
    }

    /// A request took too long.
    pub fn observe_slow_request(&self) {
        self.slow_requests.inc();
    }

    /// Another node leads than before.
    pub fn observe_leader_change(&self) {
        self.leader_changes.inc();
    }

    /// Commands were sent on to the leader.
    pub fn observe_forwarded(&self, commands: usize) {
        self.forwarded.inc_by(commands as u64);
    }

    /// A read-index round ended that served this many reads.
    pub fn observe_read_round(&self, reads: usize) {
        self.read_rounds.inc();
        self.reads_per_round.observe(reads as f64);
    }

    /// This node stood for election.
    pub fn observe_election(&self) {
        self.elections.inc();
    }

    /// Events were read for a watch.
    pub fn observe_watch_events(&self, source: WatchSource, count: usize) {
        self.watch_events[source as usize].inc_by(count as u64);
    }

    /// This node ended a watch.
    pub fn observe_watch_end(&self, code: WatchEndCode) {
        let at = WATCH_ENDS.iter().position(|known| *known == code);
        self.watch_ends[at.expect("all codes are in the list")].inc();
    }

    /// The OpenMetrics text, with the node's own view of itself. Asks all sources, so it may take some milliseconds.
    pub fn encode(&self, status: &StatusAnswer, load: HttpLoad) -> Result<String, fmt::Error> {
        self.sources.set_status(status::samples(status, load));
        let mut out = String::with_capacity(32 * 1024);
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

/// Counts one connection.
#[derive(Debug)]
pub struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

fn by_class(family: &Family<Labels, Counter>, route: &'static str) -> [Counter; CLASSES.len()] {
    CLASSES.map(|class| family.get_or_create_owned(&vec![("route", route), ("code", class)]))
}

fn latency(family: &Family<Labels, Histogram, fn() -> Histogram>, route: &'static str) -> Histogram {
    family.get_or_create_owned(&vec![("route", route)])
}
