//! The cluster as this node sees it, for people and scripts.
//!
//! Owns the conversion from openraft's metrics to the public [`StatusAnswer`]. Never used to decide anything.

use openraft::Instant as _;
use openraft::ServerState;
use openraft::async_runtime::WatchReceiver;
use quorate_api::{DigestAnswer, MemberView, Role, StatusAnswer};
use quorate_store::raft::TypeConfig;

use super::App;
use super::request_table;
use super::snapshot::index;

impl App {
    /// Milliseconds since this node last heard a leader (on the leader: since a quorum answered it); `None` for never.
    pub fn staleness_ms(&self) -> Option<u64> {
        self.members().view().silence_ms()
    }

    /// Applied index and digest of this node.
    pub fn digest(&self) -> DigestAnswer {
        let applied = self.state().applied();
        DigestAnswer {
            node_id: self.node_id(),
            index: applied.at.index,
            revision: applied.at.revision,
            digest: format!("{:032x}", applied.digest),
        }
    }

    /// The cluster as this node sees it.
    pub fn status(&self) -> StatusAnswer {
        let metrics = self.raft().metrics().borrow_watched().clone();
        let applied = self.state().applied();
        let identity = self.members().identity();
        let unready = self.unready_reason();
        let members = member_views(&metrics);
        let leader = metrics.current_leader.and_then(|id| members.iter().find(|member| member.id == id));
        StatusAnswer {
            cluster_id: identity.cluster_id.map(|id| format!("{id:032x}")).unwrap_or_default(),
            node_id: identity.node_id,
            incarnation: format!("{:032x}", identity.incarnation),
            version: env!("CARGO_PKG_VERSION").into(),
            role: role(&metrics),
            ready: unready.is_none(),
            warnings: self.warnings(unready),
            leader_id: metrics.current_leader,
            leader_client_addr: leader.map(|member| member.client_addr.clone()),
            term: metrics.current_term,
            last_log_index: metrics.last_log_index.unwrap_or(0),
            committed_index: index(&metrics.local_committed),
            applied_index: applied.at.index,
            snapshot_index: index(&metrics.snapshot),
            purged_index: index(&metrics.purged),
            revision: applied.at.revision,
            oldest_revision: applied.at.oldest_revision,
            cluster_clock_ms: applied.at.clock,
            digest: format!("{:032x}", applied.digest),
            entries: applied.sizes.entries,
            stored_bytes: applied.sizes.live_bytes,
            history_bytes: applied.sizes.history_bytes,
            quota_bytes: self.space().quota_bytes(),
            epoch: applied.epoch,
            epoch_revision: applied.epoch_revision,
            members,
            level: applied.level,
            level_known: self.upkeep().level_known,
            disk_free_bytes: Some(self.space().free()),
            disk_size_bytes: Some(self.space().size()),
        }
    }

    fn warnings(&self, unready: Option<String>) -> Vec<String> {
        let quota = self.space().quota_warning();
        let faults = self.faults_warning();
        let tables = self.table_warnings();
        let split = self.integrity().split_warning();
        let own = unready.into_iter().chain(split).chain(self.space().disk_warnings()).chain(faults);
        let clocks = self.wall_clocks().warnings();
        let upkeep = self.upkeep().warnings(quorate_node_core::millis::wall_now());
        own.chain(quota).chain(tables).chain(upkeep).chain(clocks).collect()
    }

    /// That something faulted, as long as somebody can do something about it.
    fn faults_warning(&self) -> Option<String> {
        let (commands, parked) = match self.state().open_faults() {
            Ok(open) => open,
            Err(fault) => return Some(format!("what was contained cannot be read: {fault}")),
        };
        (commands > 0 || parked > 0).then(|| {
            format!("a bug was met: {commands} commands faulted, {parked} pieces of work are set aside; see /v1/cluster/faults")
        })
    }

    fn table_warnings(&self) -> impl Iterator<Item = String> {
        let state = self.state();
        let warnings = [request_table::warning(state), request_table::refusals_warning(state)];
        warnings.into_iter().filter_map(|warning| {
            warning.unwrap_or_else(|fault| Some(format!("what is kept for a while cannot be read: {fault}")))
        })
    }
}

fn member_views(metrics: &openraft::RaftMetrics<TypeConfig>) -> Vec<MemberView> {
    let voters: Vec<u64> = metrics.membership_config.voter_ids().collect();
    let matched = |id| metrics.replication.as_ref().and_then(|map| map.get(&id)).map(index);
    let contact = |id| {
        let heard = metrics.heartbeat.as_ref().and_then(|map| map.get(&id)).and_then(Option::as_ref);
        heard.map(|instant| elapsed_ms(**instant))
    };
    let view = |(id, member): (&u64, &quorate_store::raft::Member)| MemberView {
        id: *id,
        peer_addr: member.peer_addr.clone(),
        client_addr: member.client_addr.clone(),
        voter: voters.contains(id),
        matched_index: matched(*id),
        last_contact_ms: contact(*id),
    };
    metrics.membership_config.nodes().map(view).collect()
}

fn role(metrics: &openraft::RaftMetrics<TypeConfig>) -> Role {
    match metrics.state {
        ServerState::Leader => Role::Leader,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Learner if metrics.membership_config.get_node(&metrics.id).is_some() => Role::Learner,
        ServerState::Learner | ServerState::Shutdown => Role::Outside,
    }
}

fn elapsed_ms(since: openraft_rt_tokio::TokioInstant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
