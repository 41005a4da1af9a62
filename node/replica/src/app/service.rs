//! What this node answers to its peers.
//!
//! Owns the handlers behind [`PeerRequest`]. Never trusts a peer's claim to leadership or freshness: each question is
//! checked against this node's own Raft group.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use openraft::async_runtime::WatchReceiver;
use quorate_machine::command_codec;
use quorate_machine::level::Level;
use quorate_machine::types::{Command, Key, NodeDisk};
use quorate_node_core::backend::{AppError, Repaired};
use quorate_node_core::millis::wall_now;
use quorate_node_core::slow;
use quorate_store::identity::{self, Identity};
use quorate_store::raft::NodeId;
use quorate_store::raft::wire::{MemberRecord, MembershipRecord};
use quorate_threads::background;
use tokio::sync::SemaphorePermit;

use super::join_list::JoinList;
use super::last_room::{self, Verdict};
use super::need::{self, Need};
use super::proposer::{Submitted, Urgency};
use super::{App, Awake, Turn, members};
use crate::peer::message::{Forwarded, HelloAnswer, Lack, PeerRequest, PeerResponse, ProposalOutcome};
use crate::peer::{MembershipStatus, PeerInfo, PeerService};

/// How long a repair may take that another node passed on; it goes on after that.
const REPAIR_MAX: Duration = Duration::from_secs(600);

/// How long a forwarded command may wait here; the node that forwarded it has given up before.
const FORWARDED_MAX: Duration = Duration::from_secs(2);
/// Most bytes of entries in the answer to one group of forwarded commands, well below what a peer frame holds.
const FORWARDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The answering side of a node. Lives before the app does: a node must be able to say hello before it has a cluster.
pub struct Service {
    /// The data directory, where an adoption is recorded.
    pub data_dir: std::path::PathBuf,
    /// Who this node is.
    pub identity: Arc<arc_swap::ArcSwap<Identity>>,
    /// Where it is reached.
    pub member: MemberRecord,
    /// The highest feature level that this node agrees to.
    pub level_known: Level,
    /// Told that a leader sends entries.
    pub awake: Awake,
    /// Held while it becomes part of a cluster.
    pub adopting: tokio::sync::Mutex<()>,
    /// Whom to ask about members that this node does not know.
    pub join: JoinList,
    /// The app, once it runs.
    pub app: OnceLock<App>,
}

/// The service as the transport holds it.
pub struct ServiceHandle(pub Arc<Service>);

impl PeerService for ServiceHandle {
    fn handle(&self, from: PeerInfo, request: PeerRequest) -> BoxFuture<'static, PeerResponse> {
        let service = self.0.clone();
        Box::pin(async move {
            match request {
                PeerRequest::Hello => PeerResponse::Hello(service.hello()),
                PeerRequest::Adopt { cluster_id } => service.adopt(&from, cluster_id).await,
                other => match service.app.get() {
                    Some(app) => answer(app, &from, other).await,
                    None => refused("the node is starting"),
                },
            }
        })
    }

    fn known_incarnation(&self, node_id: NodeId) -> Option<u128> {
        self.0.app.get()?.peers().members().get(&node_id).map(|member| member.incarnation)
    }

    fn membership_status(&self, peer: NodeDisk) -> MembershipStatus {
        match self.0.app.get() {
            Some(app) => members::peer_status::of(app.peers(), app.state(), peer),
            None => MembershipStatus::Unknown,
        }
    }

    fn confirm_member(&self, peer: NodeDisk) -> BoxFuture<'static, bool> {
        let service = self.0.clone();
        Box::pin(async move {
            match service.app.get() {
                Some(app) => members::peer_status::confirm(app.peers(), app.node_id(), &service.join, peer).await,
                None => false,
            }
        })
    }

    fn left(&self, peer: NodeDisk) -> BoxFuture<'static, ()> {
        let Some(app) = self.0.app.get().cloned() else { return Box::pin(std::future::pending()) };
        let books = app.peers().follow();
        Box::pin(async move { app.peers().left(peer, books).await })
    }

    fn on_entries(&self) {
        self.0.awake.expect();
    }

    fn on_connection_end(&self, peer: NodeId) {
        if let Some(app) = self.0.app.get() {
            app.candidacy().on_connection_end(peer);
        }
    }
}

impl Service {
    fn hello(&self) -> HelloAnswer {
        let identity = self.identity.load();
        HelloAnswer {
            node_id: identity.node_id,
            member: self.member.clone(),
            cluster_id: identity.cluster_id,
            membership: self.app.get().and_then(membership),
            level_known: self.level_known,
        }
    }

    async fn adopt(&self, from: &PeerInfo, cluster_id: u128) -> PeerResponse {
        match self.record_cluster(cluster_id).await {
            Ok(()) => {
                tracing::info!(cluster = format!("{cluster_id:032x}"), by = from.node_id, "adopted");
                PeerResponse::Done
            }
            Err(reason) => PeerResponse::Refused { reason },
        }
    }

    /// Makes this node part of a cluster, durably. The same cluster again is fine, also while it is being done: a founder that
    /// hears nothing asks twice.
    pub async fn record_cluster(&self, cluster_id: u128) -> Result<(), String> {
        let _one_at_a_time = self.adopting.lock().await;
        let (data_dir, current) = (self.data_dir.clone(), self.identity.load_full());
        let adopted = background::blocking(move || identity::adopt(&data_dir, &current, cluster_id))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        self.identity.store(Arc::new(adopted));
        Ok(())
    }
}

/// The membership in force, once the group was initialized.
pub fn membership(app: &App) -> Option<MembershipRecord> {
    let metrics = app.raft().server_metrics();
    let metrics = metrics.borrow_watched();
    let membership = metrics.membership_config.membership();
    membership.nodes().next().is_some().then(|| membership.into())
}

async fn answer(app: &App, from: &PeerInfo, request: PeerRequest) -> PeerResponse {
    match request {
        PeerRequest::Forward { commands, is_urgent } => {
            let urgency = if is_urgent { Urgency::Urgent } else { Urgency::Usual };
            forward(app, from, commands, urgency).await
        }
        PeerRequest::ReadIndex if app.integrity().is_quarantined() => members::not_leader(app),
        PeerRequest::ReadIndex => match app.reads().index_as_leader().await {
            Some(index) => PeerResponse::ReadIndex { index },
            None => members::not_leader(app),
        },
        PeerRequest::Join { node_id, member, as_standby, invitation }
            if node_id == from.node_id && member == from.member =>
        {
            members::take_in::join(app, node_id, member.into(), as_standby, invitation).await
        }
        PeerRequest::Knows(node) => PeerResponse::Known { is_member: app.peers().knows(node) },
        PeerRequest::Join { node_id, .. } => {
            refused(&format!("node {} cannot enrol node {node_id}: a node joins by itself", from.node_id))
        }
        PeerRequest::Digests => {
            let trust = app.integrity().trust();
            PeerResponse::Digests { points: app.state().digests().into_iter().collect(), trust }
        }
        PeerRequest::Repair { node_id } => repair(app, node_id).await,
        // Whoever led once may not have heard yet that it does not: this node would take no entries of the one that leads.
        PeerRequest::BeginRepair if app.members().leader() != Some(from.node_id) => members::not_leader(app),
        PeerRequest::BeginRepair => app.begin_repair(from.node_id).await,
        PeerRequest::EndRepair => app.end_repair().await,
        PeerRequest::Members(question) => members::answer(app, from.node_id, question).await,
        PeerRequest::LockTurn { key, place, hold_ms } => lock_turn(app, &key, place, hold_ms).await,
        PeerRequest::LeaveLockQueue { key, place } => {
            app.lock_turns().leave(&key, place);
            PeerResponse::Done
        }
        PeerRequest::Room => PeerResponse::Room(app.space().room()),
        // This machine's own, right or wrong: where a majority is, whoever asks finds out.
        PeerRequest::Wall => PeerResponse::Wall { wall: wall_now() },
        PeerRequest::Archive => PeerResponse::Archive(super::archive::standing(app)),
        PeerRequest::Hello | PeerRequest::Adopt { .. } => refused("answered before the app runs"),
    }
}

async fn lock_turn(app: &App, key: &Key, place: u128, hold_ms: u32) -> PeerResponse {
    match app.lock_turns().turn_of_peer(key, place, Duration::from_millis(hold_ms.into())).await {
        Ok(Turn::Come) => PeerResponse::Turn { has_come: true },
        Ok(Turn::NotYet) => PeerResponse::Turn { has_come: false },
        Ok(Turn::NotLeader) => members::not_leader(app),
        Ok(Turn::Full) => refused("too many wait to lock entries"),
        Err(fault) => refused(&fault.to_string()),
    }
}

async fn repair(app: &App, node_id: NodeId) -> PeerResponse {
    if !app.members().is_leader() {
        return members::not_leader(app);
    }
    match app.repair(node_id, Instant::now() + REPAIR_MAX).await {
        Ok(Repaired::Done) => PeerResponse::Done,
        Ok(Repaired::NotNeeded) => PeerResponse::NotNeeded,
        Err(error) => refused(&error.to_string()),
    }
}

async fn forward(app: &App, from: &PeerInfo, commands: Vec<Forwarded>, urgency: Urgency) -> PeerResponse {
    // A leader that does not trust its state is about to hand over.
    if !app.members().is_leader() || app.integrity().is_quarantined() {
        return members::not_leader(app);
    }
    let came = Instant::now();
    let command = |forwarded: Forwarded| {
        let within = Duration::from_millis(forwarded.within_ms.into()).min(FORWARDED_MAX);
        (Bytes::from(forwarded.command), came + within)
    };
    let commands: Vec<(Bytes, Instant)> = commands.into_iter().map(command).collect();
    let urgency = match commands.as_slice() {
        [(command, _)] => app.writes().proposer.urgency_of_forwarded(command, urgency),
        _ => urgency,
    };
    let (submitted, _place) = take_forwarded(app, &commands, urgency, came + FORWARDED_MAX).await;
    let mut outcomes = Vec::with_capacity(submitted.len());
    let mut bytes = 0;
    for (proposed, (command, deadline)) in submitted.into_iter().zip(&commands) {
        let proposed = match proposed {
            Taken::Queued(submitted) => submitted.outcome(*deadline).await.unwrap_or(ProposalOutcome::NotProposed),
            Taken::Settled(proposed) => *proposed,
        };
        if let ProposalOutcome::Decided { reply, .. } = &proposed {
            app.writes().proposer.learn(command, reply);
        }
        if app.writes().slow.is_slow(came.elapsed()) {
            tell_slow(app, from.node_id, command, &proposed, came.elapsed());
        }
        bytes += proposed.bytes();
        // What does not fit is asked for again under its request id, in a smaller group.
        let fits = bytes <= FORWARDED_BYTES_MAX;
        outcomes.push(if fits { proposed } else { ProposalOutcome::Unknown });
    }
    PeerResponse::Forwarded { outcomes }
}

/// The line of a forwarded write that took too long here: with the request id that the node has told its client, so that the
/// lines of both nodes are found together. Decoded only here.
fn tell_slow(app: &App, from: NodeId, command: &[u8], proposed: &ProposalOutcome, took: Duration) {
    let Some(left_out) = app.writes().slow.admit() else { return };
    let request_id = command_codec::decode_command(command).ok().and_then(|command| command.request_id);
    let request_id = request_id.map(|id| slow::shown(&id.0));
    let index = if let ProposalOutcome::Decided { reply, .. } = proposed { Some(reply.index) } else { None };
    let (node, ms, bytes_in) = (app.node_id(), slow::ms(took), command.len());
    tracing::warn!(request_id, from, node, index, ms, bytes_in, left_out, "slow forwarded write");
}

/// A forwarded command on its way, or what became of it where it got no further.
enum Taken {
    Queued(Submitted),
    Settled(Box<ProposalOutcome>),
}

/// Queues forwarded commands, but for those that this node has no room for. What is judged by the state goes while the place is held.
async fn take_forwarded<'a>(
    app: &'a App,
    commands: &[(Bytes, Instant)],
    urgency: Urgency,
    by: Instant,
) -> (Vec<Taken>, Option<SemaphorePermit<'a>>) {
    let queue = |(command, deadline): &(Bytes, Instant)| match app.writes().proposer.submit(
        command.clone(),
        urgency,
        true,
        *deadline,
    ) {
        Ok(submitted) => Taken::Queued(submitted),
        Err(_full) => settled(ProposalOutcome::NotProposed),
    };
    let Some(lack) = app.space().lack() else { return (commands.iter().map(queue).collect(), None) };
    let no_space = |lack: &Lack| settled(ProposalOutcome::NoSpace { node_id: app.node_id(), lack: lack.clone() });
    let last = app.space().lack_of_last();
    // Decoded only here: with enough room a forwarded command stays opaque bytes. One that cannot be decoded is refused when it is
    // applied, and changes nothing.
    let decoded: Vec<Option<Command>> =
        commands.iter().map(|(command, _)| command_codec::decode_command(command).ok()).collect();
    let need_of =
        |command: &Option<Command>| command.as_ref().map_or(Need::Nothing, |command| need::of(&command.action));
    let needs: Vec<Need> = decoded.iter().map(need_of).collect();
    let is_judged = |need: Need| last.is_some() && matches!(need, Need::IfItFrees | Need::Little);
    let to_judge: Vec<Command> =
        needs.iter().zip(decoded).filter(|(need, _)| is_judged(**need)).filter_map(|(_, command)| command).collect();
    let (place, verdicts) = judge_forwarded(app, to_judge, by).await;
    let mut verdicts = verdicts.into_iter();
    let take = |(command, need): (&(Bytes, Instant), &Need)| match (need, &last) {
        (Need::Room, _) => no_space(&lack),
        (Need::IfItFrees | Need::Little, Some(last)) => match verdicts.next() {
            Some(Verdict::Propose) => queue(command),
            Some(Verdict::Answer(reply)) => settled(ProposalOutcome::Decided { reply: *reply, cost: 0 }),
            Some(Verdict::Refuse) => no_space(last),
            Some(Verdict::Again) | None => settled(ProposalOutcome::NotProposed),
        },
        _ => queue(command),
    };
    (commands.iter().zip(&needs).map(take).collect(), place)
}

/// No verdicts: they have to be asked for again.
async fn judge_forwarded(
    app: &App,
    commands: Vec<Command>,
    by: Instant,
) -> (Option<SemaphorePermit<'_>>, Vec<Verdict>) {
    if commands.is_empty() {
        return (None, Vec::new());
    }
    let judged = async {
        let place = app.space().place_for_removals(by).await?;
        Ok::<_, AppError>((place, last_room::judge(app.reads(), commands, by).await?))
    };
    match judged.await {
        Ok((place, verdicts)) => (Some(place), verdicts),
        Err(error) => {
            tracing::debug!(%error, "forwarded commands could not be judged");
            (None, Vec::new())
        }
    }
}

fn settled(outcome: ProposalOutcome) -> Taken {
    Taken::Settled(Box::new(outcome))
}

fn refused(reason: &str) -> PeerResponse {
    PeerResponse::Refused { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(dir: &std::path::Path) -> Arc<Service> {
        let identity = identity::open(dir, 1, 7).expect("a new directory");
        let member = MemberRecord { peer_addr: String::new(), client_addr: String::new(), incarnation: 7 };
        Arc::new(Service {
            data_dir: dir.to_owned(),
            identity: Arc::new(arc_swap::ArcSwap::from_pointee(identity)),
            member,
            level_known: 1,
            awake: Awake::default(),
            adopting: tokio::sync::Mutex::default(),
            join: JoinList::new(),
            app: OnceLock::new(),
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn adoptions_at_once_do_not_get_into_each_others_way_and_one_cluster_wins() {
        for round in 0..20 {
            let dir = tempfile::tempdir().expect("a directory");
            let service = service(dir.path());
            let adopt = |cluster: u128| {
                let service = Arc::clone(&service);
                tokio::spawn(async move { (cluster, service.record_cluster(cluster).await) })
            };
            let asked: Vec<_> = [5, 5, 6, 5, 6, 6].map(adopt).into_iter().collect();
            let mut adopted = std::collections::BTreeMap::new();
            for answer in futures::future::join_all(asked).await {
                let (cluster, done) = answer.expect("it ran");
                adopted.entry(cluster).or_insert_with(Vec::new).push(done);
            }
            let of = identity::read(dir.path()).expect("readable").expect("there").cluster_id.expect("adopted");
            for (cluster, done) in adopted {
                let is_right = done.iter().all(|done| done.is_ok() == (cluster == of));
                assert!(is_right, "round {round}: of {of} now, {cluster} was told {done:?}");
            }
        }
    }
}
