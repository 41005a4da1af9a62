//! Sessions that callers keep alive, and their owners.
//!
//! Owns the order of the two looks for an owner. Never ends a session.

use std::sync::Arc;
use std::time::Instant;

use quorate_machine::query::Observed;
use quorate_machine::types::SessionId;
use quorate_node_core::backend::{AppError, Consistency, Renewed, Renewer};
use quorate_node_core::timings::{self, Part};

use super::reads::ReadPath;
use super::renewals::Renewals;

/// Sessions that are looked for before others have the thread: about a tenth of a millisecond.
const OWNERS_AT_ONCE: usize = 64;

/// The sessions, as callers at this node see them.
pub struct Sessions {
    pub(super) renewals: Renewals,
    /// Shows the state that they are of.
    pub(super) reads: Arc<ReadPath>,
}

impl Sessions {
    /// Renews sessions, at most [`quorate_machine::limits::SESSIONS_RENEWED_MAX`], together with those that others renew at the
    /// same time. Tried again until the deadline, also where the outcome of a try is unknown: to renew again is harmless.
    pub async fn renew(
        &self,
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> Result<Renewed, AppError> {
        self.reads.check_disk()?;
        timings::on(Part::Log, self.renewals.renew(renewer, sessions, deadline)).await
    }

    /// The owner of each session; `None` without such a session. Needs no log entry. A session that this node does not know is looked for
    /// again after a read index, which concurrent callers share: a node that is behind may not have it yet.
    pub async fn owners_of(
        &self,
        sessions: &[SessionId],
        deadline: Instant,
    ) -> Result<Observed<Vec<Option<String>>>, AppError> {
        self.reads.check_disk()?;
        let mut seen = self.look_for_owners(sessions).await?;
        let missing: Vec<usize> = (0..sessions.len()).filter(|at| seen.found[*at].is_none()).collect();
        if missing.is_empty() {
            return Ok(seen);
        }
        self.reads.barrier(Consistency::Linearizable, deadline).await?;
        let ids: Vec<SessionId> = missing.iter().map(|at| sessions[*at]).collect();
        let again = self.look_for_owners(&ids).await?;
        self.renewals.count_unknown(again.found.iter().filter(|owner| owner.is_none()).count());
        for (at, owner) in missing.into_iter().zip(again.found) {
            seen.found[at] = owner;
        }
        Ok(Observed { at: again.at, wall: again.wall, found: seen.found })
    }

    /// Looks for some at a time, and has others in between: a caller that asks for many does not hold them up. The answer is as of the
    /// last look: a session that was gone before it stays gone.
    async fn look_for_owners(&self, sessions: &[SessionId]) -> Result<Observed<Vec<Option<String>>>, AppError> {
        let (first, others) = sessions.split_at(sessions.len().min(OWNERS_AT_ONCE));
        let mut seen = self.reads.state().session_owners(first)?;
        for ids in others.chunks(OWNERS_AT_ONCE) {
            tokio::task::yield_now().await;
            let mut next = self.reads.state().session_owners(ids)?;
            seen.found.append(&mut next.found);
            seen = Observed { found: seen.found, ..next };
        }
        Ok(seen)
    }
}
