//! The numbers of the node's parts that are asked for at each scrape of the metrics.
//!
//! Owns their names. Never holds what would keep a part alive beyond its own end, but for the two stores, which close by
//! themselves.

use std::sync::Arc;

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver;
use quorate_machine::limits::REQUEST_TABLE_BYTES_MAX;
use quorate_node_core::metrics::{Metrics, MetricsSource, Sample, Value};
use quorate_store::durations::{BUCKETS_MICROS, DurationCounts};
use quorate_store::log::{LogStats, LogStore};
use quorate_store::space::{Space, SpaceGuard};
use quorate_store::state::{StateReader, StateStats};

use super::integrity::Integrity;
use super::proposer::Backlog;
use super::read_index::Readers;
use super::renewals::RenewalCounts;
use super::wall::WallClocks;
use super::{LockQueues, Raft, View, WaitingCount};
use crate::peer::PeerNet;
use crate::peer::counters::{ChannelCounts, PeerCounters};

/// Where the numbers come from.
pub struct NodeSamples {
    /// The log.
    pub log: LogStore,
    /// The state.
    pub state: StateReader,
    /// The transport.
    pub net: PeerNet,
    /// Writes that wait for a group.
    pub backlog: Backlog,
    /// Reads that wait for a question.
    pub readers: Readers,
    /// The data disk.
    pub space: Arc<SpaceGuard>,
    /// Renewals of sessions.
    pub renewals: Arc<RenewalCounts>,
    /// Requests that wait for something to change.
    pub waiting: WaitingCount,
    /// Who waits to lock entries.
    pub lock_queues: LockQueues,
    /// Who leads.
    pub view: Arc<View>,
    /// Whether the state is trusted.
    pub integrity: Arc<Integrity>,
    /// What is known of the members' wall clocks.
    pub wall_clocks: Arc<WallClocks>,
}

/// Most locks in use that are looked at for one scrape: some milliseconds.
const LOCKS_COUNTED_MAX: usize = 100_000;

/// Most queues of tasks, for the same reason.
const QUEUES_COUNTED_MAX: usize = 10_000;

impl MetricsSource for NodeSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        log_samples(&self.log.stats(), out);
        match self.state.stats() {
            Ok(stats) => state_samples(&stats, out),
            Err(fault) => tracing::warn!(%fault, "the state has no numbers for the metrics"),
        }
        let (commands, bytes) = self.backlog.now();
        out.push(Sample::gauge("write_queue_commands", "Commands that wait for a group", commands as u64));
        out.push(Sample::gauge("write_queue_bytes", "Bytes of the commands that wait for a group", bytes as u64));
        let readers = self.readers.now() as u64;
        out.push(Sample::gauge("read_queue_readers", "Reads that wait for the next question to the leader", readers));
        let silence = self.view.silence().as_secs_f64();
        let help =
            "Time since a leader was heard, since the start where none was yet; on the leader since a quorum answered";
        out.push(Sample::seconds("raft_leader_silence_seconds", help, silence));
        self.space_samples(out);
        self.coordination_samples(out);
        self.task_samples(out);
        integrity_samples(&self.integrity, out);
        let help = "By how much this node's wall clock is ahead of the one in the middle; negative where it is behind";
        out.push(Sample::seconds("wall_clock_ahead_seconds", help, self.wall_clocks.own_ahead_seconds()));
        peer_samples(&self.net.counters(), out);
    }
}

impl NodeSamples {
    fn space_samples(&self, out: &mut Vec<Sample>) {
        let is_low = self.space.state() != Space::Ok;
        out.extend(gauges([
            ("disk_free_bytes", "Free bytes on the data disk", self.space.free()),
            ("disk_size_bytes", "Bytes of the data disk", self.space.size()),
            ("disk_needed_bytes", "Free bytes below which writes are refused", self.space.needed()),
            ("disk_low", "Whether writes are refused since the data disk is nearly full", u64::from(is_low)),
        ]));
    }

    fn task_samples(&self, out: &mut Vec<Sample>) {
        match self.state.task_counts(QUEUES_COUNTED_MAX) {
            Ok(counts) => {
                let by_state = [
                    ("scheduled", counts.scheduled),
                    ("claimed", counts.claimed),
                    ("dead", counts.dead),
                    ("done", counts.done),
                ];
                let help = "Tasks by state, of the first 10000 queues";
                let samples =
                    by_state.map(|(state, count)| Sample::gauge("tasks", help, count).labelled("state", state));
                out.extend(samples);
                out.push(Sample::gauge("task_queues", "Queues of tasks, at most 10000", counts.queues));
            }
            Err(fault) => tracing::warn!(%fault, "tasks could not be counted for the metrics"),
        }
    }

    fn coordination_samples(&self, out: &mut Vec<Sample>) {
        match self.state.coordination_counts(LOCKS_COUNTED_MAX) {
            Ok(counts) => out.extend(gauges([
                ("sessions", "Sessions of the cluster", counts.sessions),
                ("lock_holders", "Holders of locks and elections, of the first 100000", counts.holders),
                ("lock_waiters", "Places in queues of locks and elections, of the first 100000", counts.waiters),
            ])),
            Err(fault) => tracing::warn!(%fault, "locks could not be counted for the metrics"),
        }
        match self.state.kept_for_a_while() {
            Ok(kept) => {
                let limit_help = "Bytes of outcomes kept for retries at which new requests are refused";
                out.extend(gauges([
                    ("request_table_bytes", "Bytes of outcomes kept for retries", kept.requests),
                    ("request_table_limit_bytes", limit_help, REQUEST_TABLE_BYTES_MAX),
                    ("refusal_bytes", "Bytes of the record of refusals, kept as long", kept.refusals),
                    ("refusals_dropped", "Refused commands of that time that are not recorded", kept.dropped),
                ]));
            }
            Err(fault) => tracing::warn!(%fault, "what is kept for a while could not be read for the metrics"),
        }
        let (commands, sessions) = self.renewals.now();
        let (waiting, places) = (self.waiting.now() as u64, self.lock_queues.places() as u64);
        out.extend(gauges([
            ("waiting_requests", "Requests that wait here for a lock or the like", waiting),
            ("entry_lock_waiters", "Requests in the queues for locks of entries, at the leader", places),
        ]));
        let unknown = "Ids of no session that were to be renewed here: answered without a command";
        out.extend(counters([
            ("renewal_commands", "Commands of this node that renewed sessions", commands),
            ("renewed_sessions", "Sessions in those commands", sessions),
            ("renewals_unknown", unknown, self.renewals.unknown()),
        ]));
    }
}

fn integrity_samples(integrity: &Integrity, out: &mut Vec<Sample>) {
    let now = integrity.samples();
    let compared = "Last log index at which a majority was seen to hold the state of this node";
    let split = "Other nodes whose state differs from this node's while no majority says who is right";
    out.extend(gauges([
        ("quarantined", "Whether this node does not trust its state", u64::from(now.quarantined)),
        ("digest_compared_index", compared, now.compared_index),
        ("digest_diverged_nodes", "Other nodes whose state is not that of the majority", now.diverged_nodes),
        ("digest_split_nodes", split, now.split_nodes),
    ]));
}

/// Name, help and number of each.
type Rows<const N: usize> = [(&'static str, &'static str, u64); N];

/// Numbers that go up and down.
fn gauges<const N: usize>(rows: Rows<N>) -> [Sample; N] {
    rows.map(|(name, help, value)| Sample::gauge(name, help, value))
}

/// Numbers that only go up.
fn counters<const N: usize>(rows: Rows<N>) -> [Sample; N] {
    rows.map(|(name, help, value)| Sample::counter(name, help, value))
}

/// What the stores counted, as a histogram in seconds.
fn durations(name: &'static str, help: &'static str, counts: &DurationCounts) -> Sample {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let bounds = BUCKETS_MICROS.into_iter().map(seconds).chain([f64::INFINITY]);
    let buckets = bounds.zip(counts.buckets).collect();
    Sample { name, help, label: None, value: Value::Histogram { sum: seconds(counts.micros_total), buckets } }
}

fn log_samples(stats: &LogStats, out: &mut Vec<Sample>) {
    out.push(durations("log_fsync_duration_seconds", "Time of one fsync of the log", &stats.fsync));
    out.extend(counters([
        ("log_groups", "Groups of log operations that shared one write and sync", stats.groups),
        ("log_entries", "Entries appended to the log", stats.entries),
        ("log_written_bytes", "Bytes the log gave to the disk", stats.bytes),
    ]));
    out.extend(gauges([
        ("log_disk_bytes", "Bytes of the log's segments, the unused parts too", stats.disk_bytes),
        ("log_queue_bytes", "Bytes that wait to be written to the log", stats.queue_bytes),
        ("log_tail_bytes", "Memory of the newest log entries", stats.tail_bytes),
    ]));
}

fn state_samples(stats: &StateStats, out: &mut Vec<Sample>) {
    let help = "Time to apply one group of log entries and write what they change";
    out.push(durations("apply_duration_seconds", help, &stats.apply));
    out.extend(counters([
        ("applied_entries", "Log entries applied", stats.applied_entries),
        ("state_snapshots_built", "Snapshots built", stats.snapshots_built),
        ("state_snapshots_installed", "Snapshots of other nodes installed", stats.snapshots_installed),
        ("contained_faults", "Faults contained by this node since its start: each is a bug", stats.contained_faults),
        ("faulted_commands", "Commands that ever faulted in this cluster", stats.faults.commands),
    ]));
    out.extend(gauges([
        ("parked_work", "Pieces of work that are set aside because they faulted", stats.faults.parked),
        ("state_stalled", "Whether RocksDB holds writes up", u64::from(stats.is_stalled)),
        ("state_durable_index", "Applied index that would survive a crash", stats.durable_index),
        ("state_rows_estimate", "Rows of all kinds, by estimate", stats.rows_estimate),
        ("state_memtable_bytes", "Bytes of all memtables", stats.memtable_bytes),
        ("state_table_bytes", "Bytes of the live table files", stats.table_bytes),
        ("state_block_cache_bytes", "Bytes of blocks in memory", stats.block_cache_bytes),
        ("state_compaction_debt_bytes", "Bytes that compaction lags behind", stats.compaction_debt_bytes),
        ("state_snapshot_bytes", "Bytes of the current snapshot", stats.snapshot_bytes),
        ("state_watched_keys", "Waits for changes of keys, watches too", stats.watched_keys),
        ("watches", "Watches of keys", stats.watches),
    ]));
}

fn peer_samples(counters: &PeerCounters, out: &mut Vec<Sample>) {
    type Count = fn(&ChannelCounts) -> u64;
    let counts: [(&str, &str, Count); 8] = [
        ("peer_sent_bytes", "Bytes sent to peers", |channel| channel.bytes_sent),
        ("peer_received_bytes", "Bytes received from peers", |channel| channel.bytes_received),
        ("peer_frames_sent", "Frames sent to peers", |channel| channel.frames_sent),
        ("peer_frames_received", "Frames received from peers", |channel| channel.frames_received),
        ("peer_connects", "Connections established to peers", |channel| channel.connects),
        ("peer_connect_failures", "Connections to peers that failed", |channel| channel.connect_failures),
        ("peer_accepted", "Connections of peers that passed the handshake", |channel| channel.accepted),
        ("peer_refused", "Connections of peers that were refused", |channel| channel.refused),
    ];
    for (name, help, count) in counts {
        let of_channels = counters.channels.iter().map(|(channel, counts)| (channel.name(), count(counts)));
        out.extend(of_channels.map(|(channel, value)| Sample::counter(name, help, value).labelled("channel", channel)));
    }
}

/// Counts the terms in which this node stood for election, and other leaders, until openraft stops. A candidate that wins at once may only be
/// seen as the leader it became, so both count.
pub async fn count_elections(raft: Raft, metrics: Arc<Metrics>) {
    let mut server = raft.server_metrics();
    let mut counted = None;
    let mut leader = None;
    loop {
        let (term, stood, leads) = {
            let current = server.borrow_watched();
            let stood = matches!(current.state, ServerState::Candidate | ServerState::Leader);
            (current.vote.leader_id.term, stood, current.current_leader)
        };
        if stood && counted != Some(term) {
            counted = Some(term);
            metrics.observe_election();
        }
        if leads.is_some() && leads != leader {
            leader = leads;
            metrics.observe_leader_change();
        }
        if server.changed().await.is_err() {
            return;
        }
    }
}
