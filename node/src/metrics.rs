//! What can be counted about this node, and its text form.
//!
//! Owns names, units and buckets of all metrics. Observing is a few atomic operations on handles resolved at start; no
//! label ever holds anything that came from outside, so there is a fixed number of series.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use quorate_client::api::{Role, StatusAnswer};

use crate::http::Route;

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
}

const ENDS: [&str; 5] = ["closed", "refused", "idle", "slow_head", "stalled"];

/// A number that is asked for at the time of a scrape.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Name without the `quorate_` prefix, snake case, unit last.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub help: &'static str,
    /// The number.
    pub value: f64,
}

/// Something that has numbers to show at each scrape (log store, proposer, RocksDB, ...).
pub trait MetricsSource: Send + Sync + 'static {
    /// Appends them; always the same names. Must not block.
    fn sample(&self, out: &mut Vec<Sample>);
}

/// All metrics of the node.
pub struct Metrics {
    registry: Registry,
    /// By route and status class.
    requests: Vec<[Counter; CLASSES.len()]>,
    /// By route.
    latencies: Vec<Histogram>,
    connections: Gauge<i64, AtomicI64>,
    ends: Vec<Counter>,
    log_fsync: Histogram,
    apply: Histogram,
    batch_commands: Histogram,
    batch_bytes: Histogram,
    forwarded: Counter,
    read_rounds: Counter,
    reads_per_round: Histogram,
    elections: Counter,
    sources: Arc<Sources>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("quorate");
        let requests = Family::<Labels, Counter>::default();
        let latencies = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let ends = Family::<Labels, Counter>::default();
        let sources = Arc::new(Sources::default());
        let metrics = Self {
            requests: Route::ALL.into_iter().map(|route| by_class(&requests, route)).collect(),
            latencies: Route::ALL.into_iter().map(|route| latency(&latencies, route)).collect(),
            ends: ENDS.into_iter().map(|end| ends.get_or_create_owned(&vec![("reason", end)])).collect(),
            connections: Gauge::default(),
            log_fsync: Histogram::new(LATENCY_BUCKETS),
            apply: Histogram::new(LATENCY_BUCKETS),
            batch_commands: Histogram::new(COUNT_BUCKETS),
            batch_bytes: Histogram::new(SIZE_BUCKETS),
            forwarded: Counter::default(),
            read_rounds: Counter::default(),
            reads_per_round: Histogram::new(COUNT_BUCKETS),
            elections: Counter::default(),
            sources: Arc::clone(&sources),
            registry: Registry::default(),
        };
        registry.register("http_requests", "Requests answered", requests);
        let help = "Time from a complete request head to the answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, latencies);
        registry.register("http_connections", "Open client connections", metrics.connections.clone());
        registry.register("http_connections_ended", "Client connections that ended, by reason", ends);
        let help = "Time of one fsync of the log";
        registry.register_with_unit("log_fsync_duration", help, Unit::Seconds, metrics.log_fsync.clone());
        let help = "Time to apply one group of entries";
        registry.register_with_unit("apply_duration", help, Unit::Seconds, metrics.apply.clone());
        registry.register("batch_commands", "Commands in one Raft entry", metrics.batch_commands.clone());
        registry.register_with_unit("batch_size", "Bytes of one Raft entry", Unit::Bytes, metrics.batch_bytes.clone());
        registry.register("forwarded_commands", "Commands sent on to the leader", metrics.forwarded.clone());
        registry.register("read_index_rounds", "Read-index rounds", metrics.read_rounds.clone());
        registry.register("read_index_reads", "Reads that shared one round", metrics.reads_per_round.clone());
        registry.register("elections_started", "Elections this node stood for", metrics.elections.clone());
        registry.register_collector(Box::new(sources));
        Arc::new(Self { registry, ..metrics })
    }

    /// Adds numbers to be asked for at each scrape.
    pub fn add_source(&self, source: impl MetricsSource) {
        self.sources.list.lock().push(Box::new(source));
    }

    /// A request was answered.
    pub fn observe_request(&self, route: Route, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.requests[route as usize][class].inc();
        self.latencies[route as usize].observe(took.as_secs_f64());
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

    /// The log was synced.
    pub fn observe_log_fsync(&self, took: Duration) {
        self.log_fsync.observe(took.as_secs_f64());
    }

    /// A group of entries was applied.
    pub fn observe_apply(&self, took: Duration) {
        self.apply.observe(took.as_secs_f64());
    }

    /// A batch was proposed.
    pub fn observe_batch(&self, commands: usize, bytes: usize) {
        self.batch_commands.observe(commands as f64);
        self.batch_bytes.observe(bytes as f64);
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

    /// The OpenMetrics text, with the node's own view of itself.
    pub fn encode(&self, status: &StatusAnswer, requests_in_flight: usize) -> Result<String, fmt::Error> {
        let mut gauges = status_samples(status);
        gauges.push(Sample {
            name: "http_requests_in_flight",
            help: "Requests being handled",
            value: requests_in_flight as f64,
        });
        *self.sources.status.lock() = gauges;
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

fn by_class(family: &Family<Labels, Counter>, route: Route) -> [Counter; CLASSES.len()] {
    CLASSES.map(|class| family.get_or_create_owned(&vec![("route", route.template()), ("code", class)]))
}

fn latency(family: &Family<Labels, Histogram, fn() -> Histogram>, route: Route) -> Histogram {
    family.get_or_create_owned(&vec![("route", route.template())])
}

fn status_samples(status: &StatusAnswer) -> Vec<Sample> {
    let gauge = |name, help, value: u64| Sample { name, help, value: value as f64 };
    let truth = |name, help, value: bool| Sample { name, help, value: f64::from(u8::from(value)) };
    vec![
        gauge("raft_term", "Raft term", status.term),
        gauge("raft_leader_id", "Node id of the leader, 0 for none", status.leader_id.unwrap_or(0)),
        truth("raft_is_leader", "Whether this node leads", status.role == Role::Leader),
        truth("ready", "Whether this node would answer a linearizable read", status.ready),
        gauge("raft_last_log_index", "Last log index on this node", status.last_log_index),
        gauge("raft_committed_index", "Last index known to be committed", status.committed_index),
        gauge("raft_applied_index", "Last index applied", status.applied_index),
        gauge("raft_snapshot_index", "Last index covered by the snapshot", status.snapshot_index),
        gauge("raft_purged_index", "Last index dropped from the log", status.purged_index),
        gauge("raft_members", "Members of the cluster", status.members.len() as u64),
        gauge("revision", "Cluster revision at the applied index", status.revision),
        gauge("oldest_revision", "Oldest revision that can be read", status.oldest_revision),
        gauge("cluster_clock_milliseconds", "Cluster clock at the applied index", status.cluster_clock_ms),
        gauge("warnings", "Things this node is worried about", status.warnings.len() as u64),
    ]
}

/// The pulled numbers.
#[derive(Default)]
struct Sources {
    list: Mutex<Vec<Box<dyn MetricsSource>>>,
    status: Mutex<Vec<Sample>>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut samples = self.status.lock().clone();
        for source in &*self.list.lock() {
            source.sample(&mut samples);
        }
        for Sample { name, help, value } in samples {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
