//! Whom the leader takes in: by an invitation, by an operator's word, or anybody.
//!
//! Owns that judgement and its words. What an invitation is good for, the replicated state decides: it is used up there in the step that
//! lets the newcomer in. Never lets a disk in that was removed, and an id that was removed only by an invitation that names it.

use std::time::Instant;

use quorate_machine::types::{Action, Command, InvitationRow, MembersFault, MembersOp, NodeDisk, Outcome, Rejection};
use quorate_node_core::backend::Consistency;
use quorate_node_core::backend::members::explain_members;
use quorate_node_core::token_text::TokenText;

use super::super::App;
use super::carry_out::Stop;
use crate::peer::message::Invitation;

/// Whether newcomers need an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinPolicy {
    /// They do.
    Token,
    /// Whoever can connect is taken in, but for nodes that were removed.
    Open,
}

/// What a newcomer comes with.
#[derive(Debug)]
pub enum Credential<'t> {
    /// An operator named it.
    Operator,
    /// It asks by itself.
    Shown {
        /// What it was given for that.
        invitation: Option<&'t Invitation>,
        /// It is to stay a learner.
        as_standby: bool,
    },
}

/// Lets a newcomer in that is no member, or says why not. May be asked again: who was let in needs nothing more.
pub async fn admit(app: &App, newcomer: NodeDisk, credential: &Credential<'_>, deadline: Instant) -> Result<(), Stop> {
    // Who was removed a moment ago is known here once that is applied.
    app.reads().barrier(Consistency::Linearizable, deadline).await.map_err(|_| Stop::Late)?;
    let state = app.state();
    let fault = |fault: quorate_machine::query::StateFault| Stop::Refused(fault.to_string());
    if state.was_removed(newcomer).map_err(fault)? {
        return Err(Stop::DiskRemoved(explain(newcomer, MembersFault::DiskRemoved)));
    }
    let was_removed = state.was_id_removed(newcomer.node_id).map_err(fault)?;
    match (state.admission(newcomer).map_err(fault)?, credential) {
        (Some(row), Credential::Shown { as_standby, .. }) if row.is_standby && !as_standby => {
            Err(Stop::NotInvited(explain(newcomer, MembersFault::OnlyStandby)))
        }
        (Some(InvitationRow { .. }), _) => Ok(()),
        (None, Credential::Operator) if was_removed => Err(Stop::Refused(explain(newcomer, MembersFault::IdRemoved))),
        (None, Credential::Operator) => Ok(()),
        (None, Credential::Shown { invitation: Some(Invitation(text)), as_standby }) => {
            show(app, newcomer, text, *as_standby, deadline).await
        }
        (None, Credential::Shown { invitation: None, .. }) if was_removed => {
            Err(Stop::IdRemoved(explain(newcomer, MembersFault::IdRemoved)))
        }
        (None, Credential::Shown { invitation: None, .. }) => match app.members().join_policy {
            JoinPolicy::Open => Ok(()),
            JoinPolicy::Token => Err(Stop::NotInvited(uninvited(newcomer.node_id))),
        },
    }
}

/// Has the state use an invitation up.
async fn show(app: &App, newcomer: NodeDisk, text: &str, as_standby: bool, deadline: Instant) -> Result<(), Stop> {
    let Some(token) = TokenText::read_invitation(text) else {
        return Err(Stop::NotInvited("what the node shows is no invitation: it has the form `qj_ID_SECRET`".into()));
    };
    let (invitation, hash) = (token.id, token.hash());
    let op = MembersOp::Admit { invitation, hash, newcomer, as_standby };
    // Whatever becomes of this try, it may be repeated: the same node with the same disk is let in again.
    let decision = app.writes().write(Command::unnamed(Action::Members(op)), deadline).await.map_err(|_| Stop::Late)?;
    match decision.reply.outcome {
        Outcome::Members(_) => {
            tracing::info!(node = newcomer.node_id, %invitation, "a newcomer was let in by its invitation");
            Ok(())
        }
        Outcome::Rejected(Rejection::Members(fault)) => {
            let why = format!("node {} is not taken in: {}", newcomer.node_id, explain_members(fault));
            // The invitation is as good as before, for an id that was never used.
            Err(if fault == MembersFault::IdRemoved { Stop::IdRemoved(why) } else { Stop::NotInvited(why) })
        }
        Outcome::Deferred => Err(Stop::Late),
        other => Err(Stop::Refused(format!("the invitation came to something else: {other:?}"))),
    }
}

fn uninvited(node_id: u64) -> String {
    format!(
        "this cluster takes in nobody without an invitation: make one by `quorate member invite --id {node_id}`, write it into a file, and \
         start node {node_id} with --join-token-file FILE"
    )
}

/// Why a newcomer is not let in, for people.
fn explain(newcomer: NodeDisk, fault: MembersFault) -> String {
    let NodeDisk { node_id, incarnation } = newcomer;
    match fault {
        MembersFault::IdRemoved => format!(
            "node {node_id} was removed from this cluster: give this machine a node id that was never used, or invite the id anew by \
             `quorate member invite --id {node_id}`, and start the node with --join-token-file FILE"
        ),
        MembersFault::DiskRemoved => format!(
            "node {node_id} was removed from this cluster with its disk {incarnation:032x}, which never comes back: start with an empty \
             data directory, and with an invitation by `quorate member invite --id {node_id}`"
        ),
        fault => format!("node {node_id} is not taken in: {}", explain_members(fault)),
    }
}
