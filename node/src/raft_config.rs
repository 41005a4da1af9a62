//! openraft's configuration, each value with its reason.
//!
//! Owns the mapping from our [`Config`]. Never exposes an option that could break a promise.

use std::sync::Arc;

use openraft::{ConfigError, SnapshotPolicy};
use quorate_node_core::millis::millis;

use crate::config::Config;

/// Builds and validates. A node that took part in something before its process began stands for no election until it is told to.
pub fn build(config: &Config, took_part: bool) -> Result<Arc<openraft::Config>, ConfigError> {
    let raft = openraft::Config {
        cluster_name: "quorate".into(),
        heartbeat_interval: millis(config.heartbeat),
        // openraft takes the longest of these times for the lease, and waits for one of them once the lease is over.
        election_timeout_min: millis(config.election_min - config.lease()),
        election_timeout_max: millis(config.lease()),
        // It may have promised a leader to elect nobody else for a moment.
        enable_elect: !took_part,
        // A node behind a bad link must not depose a healthy leader.
        enable_pre_vote: Some(true),
        // A leader restarted in its own term could give a used log id to new content: let it stand for election.
        enable_leader_restore: Some(false),
        // A follower whose log shrank has lost its disk; it must not be taken back silently.
        allow_log_reversion: None,
        // Under a partial partition a leader without quorum falls silent now and then, so that others can elect.
        quorum_loss_probe_interval: Some(millis(config.election_max) * 4),
        // Entries are batches of many commands; the log reader caps the bytes.
        max_payload_entries: 256,
        // Replication starts with the append, not at the end of openraft's loop: a group waits for fewer steps.
        broadcast_submitted_on_append: Some(true),
        // The state store takes a snapshot only when enough was applied and it is this node's turn; asking it four times
        // as often keeps its turn from being missed by much.
        snapshot_policy: SnapshotPolicy::LogsSinceLast((config.snapshot_every_entries / 4).max(1)),
        // `quorate_node_replica::app::log_trimmer` purges instead if there is an archive: entries stay until it has them.
        max_in_snapshot_log_to_keep: if config.archive.is_some() { u64::MAX } else { config.keep_log_entries },
        // A purge is a record of the log like any other: not one for each entry.
        purge_batch_size: 64.min(config.keep_log_entries.max(1)),
        // The transport enforces its own idle timeout for each chunk; this one only must not cut a long transfer short.
        install_snapshot_timeout: 600_000,
        backoff: "20ms 40ms 80ms 160ms 300ms".into(),
        ..openraft::Config::default()
    };
    raft.validate().map(Arc::new)
}
