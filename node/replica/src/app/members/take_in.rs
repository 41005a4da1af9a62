//! New nodes: those that ask to join, and those that an operator names.
//!
//! Owns how a node becomes a learner and, once it caught up, a voter. Never exchanges the disk of a member, gives a vote only where
//! `plan` lets it, and takes nobody in whom `admission` does not.

use std::time::{Duration, Instant};

use openraft::ChangeMembers;
use quorate_machine::types::NodeDisk;
use quorate_node_core::backend::members::MemberReply;
use quorate_store::raft::wire::MemberRecord;
use quorate_store::raft::{Member, Membership, NodeId};

use super::super::App;
use super::super::peers::QueryError;
use super::admission::{self, Credential};
use super::carry_out::{Proposal, Stop, done, finish, grant, my_turn, propose};
use super::cluster_view::ClusterView;
use super::not_leader;
use super::plan::{Change, Health, Nodes, Plan, plan};
use crate::peer::CallError;
use crate::peer::handshake::Refusal;
use crate::peer::message::{HelloAnswer, Invitation, PeerRequest, PeerResponse};

/// How long a joining node may take to catch up before it has to ask again.
const JOIN_MAX: Duration = Duration::from_secs(60);
/// For one question to a node that is to be taken in.
const ASK: Duration = Duration::from_secs(2);

/// A node that an operator names.
#[derive(Debug)]
pub struct Newcomer {
    /// Its id.
    pub id: NodeId,
    /// Where it listens for peers.
    pub peer_addr: String,
    /// Whether it is to vote once it caught up.
    pub promote: bool,
}

/// A node asks to be taken in: as a learner, then as a voter unless it is a standby. Where it comes in the place of one that is gone,
/// that one goes.
pub async fn join(
    app: &App,
    node_id: NodeId,
    member: Member,
    as_standby: bool,
    invitation: Option<Invitation>,
) -> PeerResponse {
    let deadline = Instant::now() + JOIN_MAX;
    let peer_addr = member.peer_addr.clone();
    let joined = async {
        let credential = Credential::Shown { invitation: invitation.as_ref(), as_standby };
        learn(app, node_id, member, &credential, deadline).await?;
        if as_standby {
            return Ok(());
        }
        if !ClusterView::wait_caught_up(app, node_id, deadline).await.ok_or(Stop::NotLeader)? {
            return Err(Stop::Late);
        }
        // Who starts a node that is no standby means it to vote, so what is only unwise passes.
        take_place(app, node_id, &peer_addr, deadline).await.map_err(|stop| match stop {
            Stop::Refused(reason) => {
                tracing::warn!(
                    node_id,
                    reason,
                    "a node that joins gets no vote yet; it stays a learner and asks again"
                );
                Stop::Late
            }
            other => other,
        })
    };
    match joined.await {
        Ok(()) => PeerResponse::Done,
        Err(Stop::NotLeader) => not_leader(app),
        Err(Stop::Late) => PeerResponse::TryAgain,
        Err(Stop::Refused(reason)) => PeerResponse::Refused { reason },
        Err(Stop::NotInvited(reason)) => PeerResponse::NotInvited { reason },
        Err(Stop::IdTaken(reason)) => PeerResponse::IdTaken { reason },
        Err(Stop::IdRemoved(reason)) => PeerResponse::IdRemoved { reason },
        Err(Stop::DiskRemoved(_)) => PeerResponse::Membership { is_member: false },
    }
}

/// Gives a node that has caught up its vote: in the place of the one before it at its address, where there was one.
async fn take_place(app: &App, id: NodeId, peer_addr: &str, deadline: Instant) -> Result<(), Stop> {
    let view = ClusterView::settled(app).await.ok_or(Stop::NotLeader)?;
    for change in steps(id, &predecessors(&view, id, peer_addr), view.membership.voters()) {
        grant(app, change, false, true, deadline).await?;
    }
    Ok(())
}

/// How a node gets its vote that comes after these, which are gone. Its vote is last: who votes asks for nothing more, so that whatever a
/// leader leaves that ends before would stay for ever.
fn steps(id: NodeId, gone: &[NodeId], voters: &Nodes) -> Vec<Change> {
    let exchanged = gone.iter().copied().find(|old| voters.contains(old) && !voters.contains(&id));
    let others = gone.iter().copied().filter(|old| Some(*old) != exchanged);
    let vote = exchanged.map_or(Change::Promote(id), |old| Change::Replace { old, new: id });
    others.map(Change::Remove).chain([vote]).collect()
}

/// Members that are not heard of, at the address at which a node was heard: nobody is there any more to be them. Their place lost its
/// disk, and came back under another id.
fn predecessors(view: &ClusterView, id: NodeId, peer_addr: &str) -> Vec<NodeId> {
    let is_gone = |other: &NodeId| *other != id && !view.membership.is_heard(*other);
    let there = view.nodes.iter().filter(|(_, member)| member.peer_addr == peer_addr);
    there.map(|(other, _)| *other).filter(is_gone).collect()
}

/// An operator names a node that waits to be taken in.
pub async fn add(
    app: &App,
    newcomer: Newcomer,
    dry_run: bool,
    force: bool,
    deadline: Instant,
) -> Result<MemberReply, Stop> {
    let Newcomer { id, peer_addr, promote } = newcomer;
    let view = ClusterView::settled(app).await.ok_or(Stop::NotLeader)?;
    let known = view.nodes.get(&id).map(|known| known.peer_addr.clone());
    let said = match &known {
        Some(known) if *known != peer_addr => {
            return Err(Stop::Refused(format!("node {id} is a member already, and its peers reach it at {known}")));
        }
        Some(_) => format!("node {id} is a member already"),
        None => format!("node {id} becomes a learner: it gets all data and has no vote"),
    };
    // Before anything is done: what is refused is refused whole.
    let prospect = prospect(&view, id, promote, force)?;
    if known.is_none() {
        let member = introduce(app, id, &peer_addr).await?;
        if !dry_run {
            adopt(app, id, &peer_addr).await?;
            learn(app, id, member.into(), &Credential::Operator, deadline).await?;
        }
    }
    let mut done = match promote && !dry_run {
        true => promote_newcomer(app, id, force, deadline).await?,
        false => done(&view, &prospect, dry_run),
    };
    if known.is_none() && !promote {
        done.learners.push(id);
        done.learners.sort_unstable();
    }
    done.changed |= known.is_none() && !dry_run;
    done.explanation.insert(0, said);
    Ok(done)
}

/// What the votes come to with a newcomer that has caught up.
fn prospect(view: &ClusterView, id: NodeId, promote: bool, force: bool) -> Result<Plan, Stop> {
    let mut membership = view.membership.clone();
    if !promote {
        let voters = membership.voters().clone();
        return Ok(Plan { voters, dropped: None, changes: false, explanation: vec![] });
    }
    let is_trusted = !membership.is_distrusted(id);
    membership.health.insert(id, Health { is_heard: true, lag: 0, is_trusted });
    plan(&membership, Change::Promote(id), force).map_err(Stop::Refused)
}

/// Gives a node its vote once it has caught up.
async fn promote_newcomer(app: &App, id: NodeId, force: bool, deadline: Instant) -> Result<MemberReply, Stop> {
    if !ClusterView::wait_caught_up(app, id, deadline).await.ok_or(Stop::NotLeader)? {
        return Err(Stop::Late);
    }
    grant(app, Change::Promote(id), false, force, deadline).await.map_err(|stop| match stop {
        Stop::Refused(reason) => Stop::Refused(format!("node {id} is a learner now and gets no vote: {reason}")),
        other => other,
    })
}

/// Who listens at an address, as it says itself.
async fn introduce(app: &App, id: NodeId, peer_addr: &str) -> Result<MemberRecord, Stop> {
    let asked = app.peers().ask_at(peer_addr, Some(id), PeerRequest::Hello, Instant::now() + ASK).await;
    let hello: HelloAnswer = match asked {
        Ok(PeerResponse::Hello(hello)) => hello,
        Ok(other) => return Err(Stop::Refused(format!("node {id} answered something else: {other:?}"))),
        Err(QueryError::Call(CallError::Refused(refusal))) => return Err(Stop::Refused(refusal.reason)),
        Err(error) => {
            return Err(Stop::Refused(format!("node {id} does not answer at {peer_addr} ({error}): start it first")));
        }
    };
    if hello.member.peer_addr != peer_addr {
        let own = hello.member.peer_addr;
        return Err(Stop::Refused(format!("node {id} says that its peers reach it at {own}, not at {peer_addr}")));
    }
    Ok(hello.member)
}

/// Makes a node one of this cluster, durably on its side.
async fn adopt(app: &App, id: NodeId, peer_addr: &str) -> Result<(), Stop> {
    let cluster_id = app.members().cluster_id().ok_or(Stop::NotLeader)?;
    match app.peers().ask_at(peer_addr, Some(id), PeerRequest::Adopt { cluster_id }, Instant::now() + ASK).await {
        Ok(PeerResponse::Done) => Ok(()),
        Ok(PeerResponse::Refused { reason }) | Err(QueryError::Call(CallError::Refused(Refusal { reason, .. }))) => {
            Err(Stop::Refused(format!("node {id} refuses to be taken in: {reason}")))
        }
        Ok(_) | Err(_) => Err(Stop::Late),
    }
}

/// Makes a node a learner, unless it is a member.
async fn learn(
    app: &App,
    id: NodeId,
    member: Member,
    credential: &Credential<'_>,
    deadline: Instant,
) -> Result<(), Stop> {
    let _one_at_a_time = my_turn(app, deadline).await?;
    let view = ClusterView::of(app).ok_or(Stop::NotLeader)?;
    match view.nodes.get(&id) {
        Some(known) if known.incarnation != member.incarnation => Err(Stop::IdTaken(format!(
            "node {id} is a member of this cluster with another disk (incarnation {:032x}); \
             remove it from the cluster, or join under a new node id",
            known.incarnation
        ))),
        Some(_) => Ok(()),
        None => {
            let newcomer = NodeDisk { node_id: id, incarnation: member.incarnation };
            admission::admit(app, newcomer, credential, deadline).await?;
            if matches!(credential, Credential::Shown { as_standby: true, .. })
                && let Some((view, gone)) = gone_standbys(app, &view, id, &member.peer_addr, deadline).await?
            {
                tracing::info!(id, %member, ?gone, "taking in a standby in the place of one that is gone");
                return propose(app, in_place(&view, id, member, &gone)?, Some(&view), deadline).await;
            }
            tracing::info!(id, %member, "taking in a node as a learner");
            propose(app, ChangeMembers::AddNodes([(id, member)].into()).into(), Some(&view), deadline).await
        }
    }
}

/// Standbys before a new one at its address that are not heard of any more, if there are any, and a view with no change under way. A
/// standby asks for nothing more once it is a member, so they go in the very step that takes it in. Who votes is none of them: its vote
/// is for the [autopilot](super::autopilot) or an operator to give away.
async fn gone_standbys(
    app: &App,
    view: &ClusterView,
    id: NodeId,
    peer_addr: &str,
    deadline: Instant,
) -> Result<Option<(ClusterView, Vec<NodeId>)>, Stop> {
    // Nobody comes in the place of another who does not answer there.
    let is_taken = view.nodes.values().any(|member| member.peer_addr == peer_addr);
    if !is_taken || introduce(app, id, peer_addr).await.is_err() {
        return Ok(None);
    }
    let mut view = ClusterView::settled(app).await.ok_or(Stop::NotLeader)?;
    if view.membership.is_joint() {
        finish(app, &view, deadline).await?;
        view = ClusterView::settled(app).await.ok_or(Stop::NotLeader)?;
    }
    let mut gone = predecessors(&view, id, peer_addr);
    gone.retain(|old| !view.membership.voters().contains(old));
    Ok((!gone.is_empty()).then_some((view, gone)))
}

/// The members with a learner more, and without these.
fn in_place(view: &ClusterView, id: NodeId, member: Member, gone: &[NodeId]) -> Result<Proposal, Stop> {
    let mut nodes = view.nodes.clone();
    nodes.retain(|other, _| !gone.contains(other));
    nodes.insert(id, member);
    let whole = Membership::new(view.membership.configs.clone(), nodes);
    whole.map(Proposal::Whole).map_err(|error| Stop::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vote_comes_last_and_takes_the_place_of_one_that_voted() {
        let voters = Nodes::from([1, 2, 3, 203]);
        let replace = |old| Change::Replace { old, new: 303 };
        assert_eq!(steps(303, &[103, 3, 203], &voters), [Change::Remove(103), Change::Remove(203), replace(3)]);
        assert_eq!(steps(303, &[103], &voters), [Change::Remove(103), Change::Promote(303)]);
        assert_eq!(steps(303, &[], &voters), [Change::Promote(303)]);
        assert_eq!(steps(203, &[3], &voters), [Change::Remove(3), Change::Promote(203)], "it votes already");
    }
}
