//! Who is in the cluster and who votes: what an operator may ask, and what the leader does about it.
//!
//! Owns the way of a request to the leader and the words of its answer. `plan` judges, `cluster_view` tells it how things stand,
//! `carry_out` does what it lets pass, `take_in` is for new nodes, of which `admission` says who may come, `peer_status` is what a peer is, `reconciler` for what nobody asks for, `removed` for a node
//! that is no member any more, `unsettled` for one that may never have been one. Never changes the members but through the leader, one change at a time.

pub mod admission;
pub mod autopilot;
pub mod carry_out;
mod change;
pub mod cluster_view;
pub mod peer_status;
pub mod plan;
pub mod reconciler;
pub mod removed;
pub mod take_in;
pub mod unsettled;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quorate_node_core::backend::AppError;
use quorate_node_core::backend::members::{MemberReply, MemberRequest, MembersSeen};
use quorate_node_core::millis::millis;
use quorate_store::identity::Identity;
use quorate_store::raft::NodeId;
use tokio::sync::Mutex;

use super::App;
use super::peers::{Peers, QueryError};
use super::view::{View, wait_for_leader};
use crate::peer::members::MemberQuestion;
use crate::peer::message::{PeerRequest, PeerResponse};

use admission::JoinPolicy;
use cluster_view::ClusterView;

/// Ids of this node, the other members, and the leader among them.
pub struct Members {
    identity: Arc<ArcSwap<Identity>>,
    view: Arc<View>,
    peers: Arc<Peers>,
    /// Whether newcomers need an invitation, while this node leads.
    join_policy: JoinPolicy,
    /// Held while the leader changes the members: one change at a time.
    changes: Mutex<()>,
}

impl Members {
    /// The members as the node of that identity knows them.
    pub fn new(identity: Arc<ArcSwap<Identity>>, view: Arc<View>, peers: Arc<Peers>, join_policy: JoinPolicy) -> Self {
        Self { identity, view, peers, join_policy, changes: Mutex::default() }
    }

    /// Ids of this node, its disk and its cluster.
    pub fn identity(&self) -> Arc<Identity> {
        self.identity.load_full()
    }

    /// This node's number.
    pub fn node_id(&self) -> NodeId {
        self.identity.load().node_id
    }

    /// The id of the cluster; `None` until one has taken this node in.
    pub fn cluster_id(&self) -> Option<u128> {
        self.identity.load().cluster_id
    }

    /// The other members.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Leadership, as far as this node knows.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The leader, as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        self.view.now().leader
    }

    /// Whether this node leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.leader() == Some(self.node_id())
    }
}

impl App {
    /// The members as the leader knows them.
    pub async fn members_seen(&self, deadline: Instant) -> Result<MembersSeen, AppError> {
        match self.ask_leader(deadline, |_| MemberQuestion::List).await? {
            PeerResponse::Members(seen) => Ok(seen),
            other => Err(confused(&other)),
        }
    }

    /// Has the leader change the members, or say what it would come to. Asking again for the same goes on where it ended.
    pub async fn change_members(&self, ask: MemberRequest, deadline: Instant) -> Result<MemberReply, AppError> {
        let question = |within_ms| MemberQuestion::Change { ask: ask.clone(), within_ms };
        match self.ask_leader(deadline, question).await? {
            PeerResponse::MembersChanged(done) => Ok(done),
            PeerResponse::Refused { reason } => Err(AppError::Refused(reason)),
            other => Err(confused(&other)),
        }
    }

    /// Has the leader hand leadership to the best follower, or to `to`. Returns who leads then.
    pub async fn hand_over(&self, to: Option<NodeId>, deadline: Instant) -> Result<NodeId, AppError> {
        let question = |within_ms| MemberQuestion::HandOver { to, within_ms };
        match self.ask_leader(deadline, question).await? {
            PeerResponse::Leads { leader } => Ok(leader),
            PeerResponse::Refused { reason } => Err(AppError::Refused(reason)),
            PeerResponse::NotReady { reason } => Err(AppError::NotReady(reason)),
            other => Err(confused(&other)),
        }
    }

    /// Asks whoever leads, this node or another, until one answers or the deadline passes. The question is told how many
    /// milliseconds are left. Only for what may be asked twice.
    async fn ask_leader(
        &self,
        deadline: Instant,
        question: impl Fn(u64) -> MemberQuestion,
    ) -> Result<PeerResponse, AppError> {
        let mut may_be_done = false;
        loop {
            let seen = self.members().view().subscribe();
            let question = question(millis(deadline.saturating_duration_since(Instant::now())));
            match self.ask_who_leads(question, deadline).await {
                None | Some(Ok(PeerResponse::NotLeader { .. })) => {}
                Some(Ok(PeerResponse::TryAgain)) => may_be_done = true,
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => {
                    quorate_node_core::debug!(%error, "no answer from the leader about members");
                    may_be_done |= !error.is_certainly_not_processed();
                }
            }
            if !wait_for_leader(seen, deadline).await {
                return Err(if may_be_done { AppError::Unknown } else { self.members().view().no_leader_error() });
            }
        }
    }

    async fn ask_who_leads(&self, question: MemberQuestion, by: Instant) -> Option<Result<PeerResponse, QueryError>> {
        match self.members().leader()? {
            leader if leader == self.node_id() => Some(Ok(answer(self, self.node_id(), question).await)),
            leader => Some(self.peers().ask(leader, PeerRequest::Members(question), by).await),
        }
    }
}

/// Answers a question about members, `from` itself or a peer.
pub async fn answer(app: &App, from: NodeId, question: MemberQuestion) -> PeerResponse {
    let by = |within_ms| Instant::now() + Duration::from_millis(within_ms);
    match question {
        MemberQuestion::List => match ClusterView::of(app) {
            Some(view) => PeerResponse::Members(view.shown()),
            None => not_leader(app),
        },
        MemberQuestion::Change { ask, within_ms } => change::change(app, ask, by(within_ms)).await,
        MemberQuestion::HandOver { to, within_ms } => hand_over(app, to, by(within_ms)).await,
        MemberQuestion::AmI => removed::is_member_somewhere(app, from).await,
        MemberQuestion::Is { node_id } => removed::is_member(app, node_id).await,
    }
}

async fn hand_over(app: &App, to: Option<NodeId>, deadline: Instant) -> PeerResponse {
    if !app.members().is_leader() {
        return not_leader(app);
    }
    match app.transfer_leader(to, deadline).await {
        Ok(leader) => PeerResponse::Leads { leader },
        Err(AppError::NoLeader) => not_leader(app),
        Err(AppError::Unknown) => PeerResponse::TryAgain,
        Err(AppError::NotReady(reason)) => PeerResponse::NotReady { reason },
        Err(error) => PeerResponse::Refused { reason: error.to_string() },
    }
}

/// Not here; whoever is said to lead may know.
pub fn not_leader(app: &App) -> PeerResponse {
    PeerResponse::NotLeader { leader: app.members().leader() }
}

fn confused(answer: &PeerResponse) -> AppError {
    AppError::Fault(format!("the leader answered something else: {answer:?}"))
}
