//! Requests that wait for tasks of one queue on this node: who tries next.
//!
//! Owns the order, first come first served, so that a task that is due wakes one of them and not all. One stands at the head and
//! tries; when it goes with tasks it says how many more are due, and as many others try at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use quorate_machine::types::QueueName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The lines of all queues.
#[derive(Debug, Default)]
pub struct TaskLines {
    lines: Mutex<BTreeMap<QueueName, Arc<Line>>>,
}

/// One line.
#[derive(Debug)]
struct Line {
    /// Its permits are the places at the head: one, and those that were added.
    head: Arc<Semaphore>,
    /// Places that were added and are to go away again.
    added: AtomicUsize,
    /// Requests in the line, those at its head too.
    waiting: AtomicUsize,
}

/// A request in a line. Leaves it when dropped.
pub struct InLine<'l> {
    lines: &'l TaskLines,
    queue: QueueName,
    line: Arc<Line>,
    place: Option<OwnedSemaphorePermit>,
}

impl TaskLines {
    /// Enters the line of a queue at its end.
    pub fn enter(&self, queue: &QueueName) -> InLine<'_> {
        let mut lines = self.lines.lock();
        let line = lines.entry(queue.clone()).or_insert_with(|| {
            let head = Arc::new(Semaphore::new(1));
            Arc::new(Line { head, added: AtomicUsize::new(0), waiting: AtomicUsize::new(0) })
        });
        line.waiting.fetch_add(1, Ordering::Relaxed);
        InLine { lines: self, queue: queue.clone(), line: Arc::clone(line), place: None }
    }
}

impl InLine<'_> {
    /// Waits for a place at the head. False: it is `until`.
    pub async fn come_to_head(&mut self, until: Instant) -> bool {
        let place = tokio::time::timeout_at(until.into(), Arc::clone(&self.line.head).acquire_owned()).await;
        // The semaphore is never closed, so without a place the time is over.
        self.place = place.ok().and_then(Result::ok);
        self.place.is_some()
    }

    /// Found nothing. Whoever stands at a place that was added goes to the end of the line; the last one stays at the head.
    /// Whether it stays.
    pub fn found_nothing(&mut self) -> bool {
        !self.give_up_added_place()
    }

    /// Goes with tasks; so many more are due, so as many may stand at the head next, one of them in its own place.
    pub fn found(self, more: u32) {
        let others = self.line.waiting.load(Ordering::Relaxed).saturating_sub(1);
        let more = others.min(more as usize);
        self.line.added.fetch_add(more, Ordering::Relaxed);
        self.line.head.add_permits(more);
    }

    /// Whether it stood at a place that was added.
    fn give_up_added_place(&mut self) -> bool {
        let Some(place) = self.place.take() else { return false };
        let fewer = |added: usize| added.checked_sub(1);
        if self.line.added.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok() {
            place.forget();
            return true;
        }
        self.place = Some(place);
        false
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.give_up_added_place();
        let mut lines = self.lines.lines.lock();
        if self.line.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            lines.remove(&self.queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test]
    async fn one_at_a_time_comes_to_the_head_or_as_many_as_there_are_tasks() {
        let lines = TaskLines::default();
        let queue = QueueName::new("q").expect("a name");
        let mut waiting: Vec<_> = (0..4).map(|_| lines.enter(&queue)).collect();
        let mut first = waiting.remove(0);
        assert!(first.come_to_head(soon()).await);
        assert!(first.found_nothing(), "the head stays where it is");
        assert!(!waiting[0].come_to_head(Instant::now()).await, "there is one head");
        first.found(2);
        assert!(waiting[0].come_to_head(soon()).await && waiting[1].come_to_head(soon()).await);
        assert!(!waiting[2].come_to_head(Instant::now()).await, "two are due, so two try");
        assert!(!waiting[0].found_nothing(), "the place that was added goes away");
        assert!(waiting[1].found_nothing(), "the last one stays at the head");
        drop(waiting);
        assert!(lines.lines.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_a_head_behind() {
        let lines = TaskLines::default();
        let queue = QueueName::new("q").expect("a name");
        let (mut one, mut other) = (lines.enter(&queue), lines.enter(&queue));
        assert!(one.come_to_head(soon()).await);
        drop(one);
        assert!(other.come_to_head(soon()).await);
        other.found(7);
        let mut next = lines.enter(&queue);
        assert!(next.come_to_head(soon()).await, "more tasks than requests add no places");
    }
}
