//! The waits of requests at a node in memory.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_machine::query::{Queries, StateFault};
use quorate_machine::types::{Key, QueueName, Revision, WallMillis};
use quorate_node_core::backend::{IsDone, LockPlace, Node, Waits};

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

impl Waits for MemoryNode {
    fn wait_applied(&self, index: u64) -> BoxFuture<'_, ()> {
        let is_applied = move |node: &mut Inner| !node.faults.is_behind() && node.state.position().index >= index;
        Box::pin(self.when(move || self.with(is_applied).then_some(())))
    }

    fn wait_key_change<'a>(&'a self, key: &'a Key, seen: Revision, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let is_changed = self.with(|node| node.values_changed.get(key).is_some_and(|at| *at > seen));
            if !is_changed {
                let _either = tokio::time::timeout(wait, changed).await;
            }
        })
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

    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        _: Revision,
        _: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>> {
        // The clock of this node stands until a test moves it.
        let is_due = || Ok(self.queue(queue)?.1.first_due.is_some_and(|due| due <= self.wall_now()));
        Box::pin(self.holds_by(until, is_due))
    }

    fn lock_place(&self, key: Key) -> Box<dyn LockPlace> {
        Box::new(Place { node: self.clone(), key })
    }
}
