//! The node's view of the cluster and of itself, as numbers.
//!
//! Owns the conversion from the status that the API shows. Never asks anybody: what only the leader knows is 0 elsewhere.

use quorate_api::{MemberView, Role, StatusAnswer};

use super::HttpLoad;
use super::sample::Sample;

/// A member that was silent for longer does not count as reached: many heartbeats, and more than an election takes.
const REACHED_MS: u64 = 2_000;

/// The numbers of a scrape.
pub(super) fn samples(status: &StatusAnswer, load: HttpLoad) -> Vec<Sample> {
    let build = Sample::gauge("build_info", "Version of this binary; always 1", 1);
    let mut out = vec![build.labelled("version", env!("CARGO_PKG_VERSION"))];
    raft(status, &mut out);
    membership(status, &mut out);
    out.extend([
        truth("ready", "Whether this node would answer a linearizable read", status.ready),
        Sample::gauge("warnings", "Things this node is worried about", status.warnings.len() as u64),
        Sample::gauge("revision", "Cluster revision at the applied index", status.revision),
        Sample::gauge("oldest_revision", "Oldest revision that can be read", status.oldest_revision),
        Sample::gauge("entries", "Entries at the applied index", status.entries),
        Sample::gauge("stored_bytes", "Bytes of all that is stored, without history", status.stored_bytes),
        Sample::gauge("history_bytes", "Bytes of history", status.history_bytes),
        Sample::gauge("quota_bytes", "Bytes that may be stored, 0 for no quota", status.quota_bytes),
        Sample::seconds(
            "cluster_clock_seconds",
            "Cluster clock at the applied index",
            status.cluster_clock_ms as f64 / 1e3,
        ),
        Sample::gauge("feature_level", "Feature level of the cluster", status.level.into()),
        Sample::gauge("feature_level_known", "Highest feature level this binary knows", status.level_known.into()),
        Sample::gauge("http_requests_in_flight", "Requests being handled", load.requests as u64),
        Sample::gauge("http_request_bodies_bytes", "Bytes of request bodies in memory", load.body_bytes as u64),
        Sample::gauge(
            "http_answers_bytes",
            "Bytes of long answers that their readers have not taken",
            load.answer_bytes as u64,
        ),
    ]);
    out
}

fn raft(status: &StatusAnswer, out: &mut Vec<Sample>) {
    out.extend([
        Sample::gauge("raft_term", "Raft term", status.term),
        Sample::gauge("raft_leader_id", "Node id of the leader, 0 for none", status.leader_id.unwrap_or(0)),
        truth("raft_is_leader", "Whether this node leads", status.role == Role::Leader),
        Sample::gauge("raft_last_log_index", "Last log index on this node", status.last_log_index),
        Sample::gauge("raft_committed_index", "Last index known to be committed", status.committed_index),
        Sample::gauge("raft_applied_index", "Last index applied", status.applied_index),
        Sample::gauge("raft_snapshot_index", "Last index covered by the snapshot", status.snapshot_index),
        Sample::gauge("raft_purged_index", "Last index dropped from the log", status.purged_index),
    ]);
}

fn membership(status: &StatusAnswer, out: &mut Vec<Sample>) {
    let voters = || status.members.iter().filter(|member| member.voter);
    let (mut reached, mut lag) = (0, 0);
    if status.role == Role::Leader {
        reached = voters().filter(|member| member.id == status.node_id || is_reached(member)).count();
        // Of those that are there: one that is down is told by the number of those reached.
        let behind = |member: &MemberView| Some(status.last_log_index.saturating_sub(member.matched_index?));
        lag = status.members.iter().filter(|member| is_reached(member)).filter_map(behind).max().unwrap_or(0);
    }
    out.extend([
        Sample::gauge("raft_members", "Members of the cluster", status.members.len() as u64),
        Sample::gauge("raft_voters", "Members that vote", voters().count() as u64),
        Sample::gauge(
            "raft_voters_reached",
            "Voters that answered the leader lately; 0 where this node does not lead",
            reached as u64,
        ),
        Sample::gauge(
            "raft_follower_lag_entries",
            "Entries that the slowest follower in reach lacks; 0 where this node does not lead",
            lag,
        ),
    ]);
}

fn is_reached(member: &MemberView) -> bool {
    member.last_contact_ms.is_some_and(|silence| silence <= REACHED_MS)
}

fn truth(name: &'static str, help: &'static str, value: bool) -> Sample {
    Sample::gauge(name, help, u64::from(value))
}
