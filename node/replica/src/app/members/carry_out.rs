//! The leader changes the members.
//!
//! Owns the order of the steps: what was left unfinished first, leadership handed over before its holder goes; and that nobody who
//! leaves is ever a member without a vote in between, as which it could ask for its vote again. Never decides whether: that is `plan`.

use std::time::{Duration, Instant};

use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, EntryPayload, Precondition};
use quorate_node_core::backend::AppError;
use quorate_node_core::backend::members::MemberReply;
use quorate_store::raft::{Member, Membership, NodeId};
use tokio::sync::MutexGuard;

use super::super::App;
use super::cluster_view::ClusterView;
use super::plan::{Change, MembershipState, Plan, Way, plan};

/// Pause before a change is proposed again that another one, or a leader that is too new, was in the way of.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// How long the hand-over may take that goes before the removal of the leader.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);

/// Why a change ended early.
#[derive(Debug)]
pub enum Stop {
    /// This node does not lead, or not any more: ask again.
    NotLeader,
    /// Not done in time: ask again.
    Late,
    /// No, and why.
    Refused(String),
    /// Not without an invitation, or not with this one, and why.
    NotInvited(String),
    /// No: a member has this id with another disk, and why.
    IdTaken(String),
    /// No: this node id was removed, and why.
    IdRemoved(String),
    /// No: the node was removed with this disk, and why that never comes back.
    DiskRemoved(String),
}

/// Judges a request and does it.
pub async fn grant(
    app: &App,
    wanted: Change,
    dry_run: bool,
    force: bool,
    deadline: Instant,
) -> Result<MemberReply, Stop> {
    let _one_at_a_time = my_turn(app, deadline).await?;
    let mut view = ClusterView::settled(app).await.ok_or(Stop::NotLeader)?;
    if view.membership.is_joint() && !dry_run {
        finish(app, &view, deadline).await?;
        view = ClusterView::of(app).ok_or(Stop::NotLeader)?;
    }
    let plan = plan(&view.membership, wanted, force).map_err(Stop::Refused)?;
    if dry_run || !plan.changes {
        return Ok(done(&view, &plan, dry_run));
    }
    // Whoever was deposed and does not know it must not say that it is done, nor hand anything over.
    app.reads().index_as_leader().await.ok_or(Stop::NotLeader)?;
    tracing::info!(?wanted, voters = ?plan.voters, dropped = plan.dropped, "changing the members");
    carry_out(app, &view, &plan, deadline).await?;
    Ok(done(&view, &plan, false))
}

/// Waits for the change that is under way. Nobody's request is done when they have given up.
pub async fn my_turn(app: &App, deadline: Instant) -> Result<MutexGuard<'_, ()>, Stop> {
    tokio::time::timeout_at(deadline.into(), app.members().changes.lock()).await.map_err(|_| Stop::Late)
}

/// Says what is so after a plan, or would be.
pub fn done(view: &ClusterView, plan: &Plan, dry_run: bool) -> MemberReply {
    let learners = view.nodes.keys().copied();
    let learners = learners.filter(|id| !plan.voters.contains(id) && plan.dropped != Some(*id)).collect();
    MemberReply {
        changed: plan.changes && !dry_run,
        explanation: plan.explanation.clone(),
        voters: plan.voters.iter().copied().collect(),
        learners,
    }
}

/// What is put into the log.
#[derive(Debug, Clone)]
pub enum Proposal {
    /// A change, jointly where it is one of votes: as two entries, of which the second follows the first by itself.
    Change {
        /// Which.
        change: ChangeMembers<NodeId, Member>,
        /// Whether a voter that loses its vote stays a learner.
        retain: bool,
    },
    /// All members as they are to be: one entry. For at most one vote more or less.
    Whole(Membership),
}

impl From<ChangeMembers<NodeId, Member>> for Proposal {
    fn from(change: ChangeMembers<NodeId, Member>) -> Self {
        Self::Change { change, retain: true }
    }
}

async fn carry_out(app: &App, view: &ClusterView, plan: &Plan, deadline: Instant) -> Result<(), Stop> {
    let membership = &view.membership;
    if plan.voters != *membership.voters() && !plan.voters.contains(&app.node_id()) {
        return Err(hand_over(app, membership, plan).await);
    }
    let voters = plan.voters.clone();
    let proposal = match plan.way(membership) {
        Way::Drop(id) => ChangeMembers::RemoveNodes([id].into()).into(),
        Way::Votes => ChangeMembers::ReplaceAllVoters(voters).into(),
        Way::Exchange => Proposal::Change { change: ChangeMembers::ReplaceAllVoters(voters), retain: false },
        Way::VoteAndDrop(id) => {
            let mut nodes = view.nodes.clone();
            nodes.remove(&id);
            let whole = Membership::new(vec![voters], nodes);
            Proposal::Whole(whole.map_err(|error| Stop::Refused(error.to_string()))?)
        }
    };
    propose(app, proposal, Some(view), deadline).await
}

/// Lets one of those who stay lead, which then does the change: a leader cannot see to its own removal.
async fn hand_over(app: &App, membership: &MembershipState, plan: &Plan) -> Stop {
    let Some(successor) = membership.successor(&plan.voters) else {
        return Stop::Refused("no other voter is up to date to lead instead".into());
    };
    match app.transfer_leader(Some(successor), Instant::now() + HAND_OVER_MAX).await {
        Ok(_) | Err(AppError::NoLeader | AppError::Unknown) => Stop::NotLeader,
        Err(error) => Stop::Refused(error.to_string()),
    }
}

/// Ends a change that a leader before this one began.
pub async fn finish(app: &App, view: &ClusterView, deadline: Instant) -> Result<(), Stop> {
    let membership = &view.membership;
    tracing::info!(configs = ?membership.configs, "finishing a change of the members that was interrupted");
    let change = ChangeMembers::ReplaceAllVoters(membership.voters().clone());
    propose(app, Proposal::Change { change, retain: !membership.is_exchange() }, Some(view), deadline).await
}

/// Puts a change into the log and waits until it is committed, both steps of it. Where it was judged by a view, only while
/// that holds. Says `NotLeader` only where nothing began.
pub async fn propose(
    app: &App,
    proposal: Proposal,
    judged: Option<&ClusterView>,
    deadline: Instant,
) -> Result<(), Stop> {
    let holds = |view: &ClusterView| Precondition::LastMembershipLogId { last_membership_log_id: view.membership_at };
    loop {
        let holds = judged.map(holds);
        let done = match proposal.clone() {
            Proposal::Change { change, retain } => app.raft().change_membership_if(change, retain, holds).await,
            Proposal::Whole(membership) => app.raft().append_membership(membership, EntryPayload::Blank, holds).await,
        };
        let error = match done {
            Ok(_) => return Ok(()),
            // It may be in the log.
            Err(RaftError::Fatal(_)) => return Err(Stop::Late),
            Err(RaftError::APIError(error)) => error,
        };
        match error {
            ClientWriteError::ChangeMembershipError(
                ChangeMembershipError::InProgress(_) | ChangeMembershipError::UncommittedLeaderLog(_),
            ) if Instant::now() < deadline => tokio::time::sleep(TRY_AGAIN).await,
            ClientWriteError::ChangeMembershipError(
                ChangeMembershipError::InProgress(_) | ChangeMembershipError::UncommittedLeaderLog(_),
            ) => return Err(Stop::Late),
            ClientWriteError::ChangeMembershipError(error) => return Err(Stop::Refused(error.to_string())),
            // The members are others by now: to be asked for again.
            ClientWriteError::PreconditionFailed(_) => return Err(Stop::NotLeader),
            // Leadership moved, maybe in the middle: what was begun may be finished by the next leader.
            _ => return Err(Stop::Late),
        }
    }
}
