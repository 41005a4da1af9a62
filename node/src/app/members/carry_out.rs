//! The leader changes the members.
//!
//! Owns the order of the steps: what was left unfinished first, leadership handed over before its holder goes, votes before
//! membership. Never decides whether: that is `plan`.

use std::time::{Duration, Instant};

use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, Precondition};
use quorate_store::raft::{Member, NodeId};
use tokio::sync::MutexGuard;

use super::super::{App, AppError};
use super::plan::{Plan, Standing, Wish, plan};
use super::sight::Sight;
use crate::peer::members::MemberDone;

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
}

/// Judges a wish and does it.
pub async fn grant(app: &App, wish: Wish, dry_run: bool, force: bool, deadline: Instant) -> Result<MemberDone, Stop> {
    let _one_at_a_time = my_turn(app, deadline).await?;
    let mut sight = Sight::settled(app).await.ok_or(Stop::NotLeader)?;
    if sight.standing.is_joint() && !dry_run {
        finish(app, &sight, deadline).await?;
        sight = Sight::of(app).ok_or(Stop::NotLeader)?;
    }
    let plan = plan(&sight.standing, wish, force).map_err(Stop::Refused)?;
    if dry_run || !plan.changes {
        return Ok(done(&sight, &plan, dry_run));
    }
    // Whoever was deposed and does not know it must not say that it is done, nor hand anything over.
    app.inner.read_index.index_as_leader().await.ok_or(Stop::NotLeader)?;
    tracing::info!(?wish, voters = ?plan.voters, dropped = plan.dropped, "changing the members");
    carry_out(app, &sight, &plan, deadline).await?;
    Ok(done(&sight, &plan, false))
}

/// Waits for the change that is under way. Nobody's wish is done when they have given up.
pub async fn my_turn(app: &App, deadline: Instant) -> Result<MutexGuard<'_, ()>, Stop> {
    tokio::time::timeout_at(deadline.into(), app.inner.changes.lock()).await.map_err(|_| Stop::Late)
}

/// Says what is so after a plan, or would be.
pub fn done(sight: &Sight, plan: &Plan, dry_run: bool) -> MemberDone {
    let learners = sight.nodes.keys().copied();
    let learners = learners.filter(|id| !plan.voters.contains(id) && plan.dropped != Some(*id)).collect();
    MemberDone {
        changed: plan.changes && !dry_run,
        explanation: plan.explanation.clone(),
        voters: plan.voters.iter().copied().collect(),
        learners,
    }
}

async fn carry_out(app: &App, sight: &Sight, plan: &Plan, deadline: Instant) -> Result<(), Stop> {
    let standing = &sight.standing;
    let mut judged = Some(sight);
    if plan.voters != *standing.voters() {
        if !plan.voters.contains(&app.node_id()) {
            return Err(hand_over(app, standing, plan).await);
        }
        // Who loses its vote stays a learner for now, so that its own log tells it.
        propose(app, ChangeMembers::ReplaceAllVoters(plan.voters.clone()), judged.take(), deadline).await?;
    }
    match plan.dropped {
        Some(id) => propose(app, ChangeMembers::RemoveNodes([id].into()), judged, deadline).await,
        None => Ok(()),
    }
}

/// Lets one of those who stay lead, which then does the change: a leader cannot see to its own removal.
async fn hand_over(app: &App, standing: &Standing, plan: &Plan) -> Stop {
    let Some(successor) = standing.successor(&plan.voters) else {
        return Stop::Refused("no other voter is up to date to lead instead".into());
    };
    match app.transfer_leader(Some(successor), Instant::now() + HAND_OVER_MAX).await {
        Ok(_) | Err(AppError::NoLeader | AppError::Unknown) => Stop::NotLeader,
        Err(error) => Stop::Refused(error.to_string()),
    }
}

/// Ends a change that a leader before this one began.
pub async fn finish(app: &App, sight: &Sight, deadline: Instant) -> Result<(), Stop> {
    let standing = &sight.standing;
    tracing::info!(configs = ?standing.configs, "finishing a change of the members that was interrupted");
    propose(app, ChangeMembers::ReplaceAllVoters(standing.voters().clone()), Some(sight), deadline).await
}

/// Puts a change into the log and waits until it is committed, both steps of it. Where it was judged by a sight, only while
/// that holds. Says `NotLeader` only where nothing began.
pub async fn propose(
    app: &App,
    change: ChangeMembers<NodeId, Member>,
    judged: Option<&Sight>,
    deadline: Instant,
) -> Result<(), Stop> {
    let holds = |sight: &Sight| Precondition::LastMembershipLogId { last_membership_log_id: sight.membership_at };
    loop {
        let done = app.raft().change_membership_if(change.clone(), true, judged.map(holds)).await;
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
