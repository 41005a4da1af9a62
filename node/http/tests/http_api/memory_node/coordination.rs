//! Sessions, locks, elections, barriers and latches of a node in memory: how requests wait for them.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{Observed, Queries, StateFault};
use quorate_machine::types::{Action, Command, Key, Outcome, SessionId, SessionOp, SessionReply};
use quorate_node_core::backend::{AppError, Backend, Consistency, Coordination, IsDone, LockPlace, Renewed, Renewer};

use super::{Inner, MemoryNode};

/// A place without a queue: the first caller that finds no lock has the turn.
struct Place {
    node: MemoryNode,
    key: Key,
}

impl LockPlace for Place {
    fn turn(&mut self, until: Instant) -> BoxFuture<'_, Result<bool, StateFault>> {
        let is_free = || {
            let read = self.node.get(&self.key)?;
            Ok(!read.entry.is_some_and(|entry| entry.meta.is_locked_at(read.at.clock)))
        };
        Box::pin(self.node.holds_by(until, is_free))
    }
}

impl Coordination for MemoryNode {
    fn renew(
        &self,
        _: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>> {
        Box::pin(async move {
            let action = Action::Session(SessionOp::Renew(sessions));
            let reply = self.write(Command::unnamed(action), deadline).await?;
            match reply.outcome {
                Outcome::Session(SessionReply::Renewed(each)) => {
                    Ok(Renewed { index: reply.index, revision: reply.revision, clock: reply.clock, each })
                }
                other => Err(AppError::Fault(format!("a renewal was answered as something else: {other:?}"))),
            }
        })
    }

    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>> {
        Box::pin(async move {
            let mut seen = self.session_owners(sessions)?;
            // A command of any session has to reach the log where the log refuses all commands.
            if self.with(|node| node.faults.refuses_all()) {
                seen.found.iter_mut().for_each(|owner| *owner = Some(String::new()));
            }
            if seen.found.iter().all(Option::is_some) {
                return Ok(seen);
            }
            self.read_barrier(Consistency::Linearizable, deadline).await?;
            Ok(self.session_owners(sessions)?)
        })
    }

    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()> {
        let is_applied = move |node: &mut Inner| !node.faults.is_behind() && node.state.position().index >= index;
        Box::pin(self.when(move || self.with(is_applied).then_some(())))
    }

    fn wait_woken<'a>(
        &'a self,
        _: &'a Key,
        wait: Duration,
        is_done: IsDone<'a>,
    ) -> BoxFuture<'a, Result<(), StateFault>> {
        Box::pin(async move {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !is_done()? {
                let _either = tokio::time::timeout(wait, changed).await;
            }
            Ok(())
        })
    }

    fn lock_place(&self, key: Key) -> Box<dyn LockPlace> {
        Box::new(Place { node: self.clone(), key })
    }
}
