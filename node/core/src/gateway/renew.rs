//! Renewals as every protocol has them.
//!
//! Owns the order: whose the sessions are is looked at first, and only those that live go through the log. So ids of no session,
//! however many, cost a look into the state of this node. Never decides when a session is over.

use std::collections::BTreeMap;
use std::time::Instant;

use quorate_machine::types::SessionId;

use crate::backend::Renewed;
use crate::gateway::call::Call;
use crate::gateway::failure::{Effect, Failure};

/// Renews sessions of the caller's; each may have ended.
pub async fn renew(call: &Call, sessions: &[SessionId], deadline: Instant) -> Result<Renewed, Failure> {
    let failed = |error| Failure::from_app(error, Effect::Write);
    let seen = call.api.node.owners_of(sessions, deadline).await.map_err(failed)?;
    call.caller().check_renewal(sessions, &seen.found)?;
    let live: Vec<_> =
        sessions.iter().zip(&seen.found).filter(|(_, owner)| owner.is_some()).map(|(id, _)| *id).collect();
    if let Some(account) = call.account() {
        account.pay(sessions.len() - live.len());
    }
    if live.is_empty() {
        let at = seen.at;
        let each = vec![None; sessions.len()];
        return Ok(Renewed { index: at.index, revision: at.revision, clock: at.clock, each });
    }
    let done = call.api.node.renew(call.caller().renewer(), live.clone(), deadline).await.map_err(failed)?;
    call.api.confirm(done.revision);
    let renewed: BTreeMap<_, _> = live.into_iter().zip(&done.each).collect();
    let each = sessions.iter().map(|id| renewed.get(id).copied().copied().flatten()).collect();
    Ok(Renewed { each, ..done })
}
