//! A change of the members, as somebody asked for it.
//!
//! Owns the answer. A change that began goes on without whoever asked for it. Never decides whether: that is `plan`.

use std::time::Instant;

use quorate_node_core::backend::members::{MemberChange, MemberReply, MemberRequest};
use quorate_threads::watchdog;

use super::super::App;
use super::carry_out::{Stop, grant};
use super::plan::Change;
use super::{not_leader, take_in};
use crate::peer::message::PeerResponse;

/// Does what is asked, or says what it would come to. Answers at the deadline at the latest; what began goes on.
pub async fn change(app: &App, ask: MemberRequest, deadline: Instant) -> PeerResponse {
    let on_the_way = watchdog::spawn(work(app.clone(), ask, deadline));
    match tokio::time::timeout_at(deadline.into(), on_the_way).await {
        Ok(Ok(Ok(done))) => PeerResponse::MembersChanged(done),
        Ok(Ok(Err(Stop::NotLeader))) => not_leader(app),
        Ok(Ok(Err(
            Stop::Refused(reason)
            | Stop::NotInvited(reason)
            | Stop::IdTaken(reason)
            | Stop::IdRemoved(reason)
            | Stop::DiskRemoved(reason),
        ))) => PeerResponse::Refused { reason },
        Ok(Ok(Err(Stop::Late))) | Err(_) => PeerResponse::TryAgain,
        Ok(Err(error)) => PeerResponse::Refused { reason: format!("the change ended early: {error}") },
    }
}

async fn work(app: App, ask: MemberRequest, deadline: Instant) -> Result<MemberReply, Stop> {
    let MemberRequest { change: wanted, dry_run, force } = ask;
    let wanted = match wanted {
        MemberChange::Add { id, peer_addr, promote } => {
            return take_in::add(&app, take_in::Newcomer { id, peer_addr, promote }, dry_run, force, deadline).await;
        }
        MemberChange::Promote { id } => Change::Promote(id),
        MemberChange::Demote { id } => Change::Demote(id),
        MemberChange::Remove { id } => Change::Remove(id),
        MemberChange::Replace { old, new } => Change::Replace { old, new },
    };
    grant(&app, wanted, dry_run, force, deadline).await
}
