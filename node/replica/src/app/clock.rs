//! The leader's cluster clock: where the stamps of a batch come from.
//!
//! Owns the anchor of the cluster clock: a replicated value, and how long this node has led since it read it. Time in which it led
//! nobody does not count: while no quorum hears it, or while what it proposed does not get through. Whoever renews something waits
//! in such a time, so nothing may end by it. Never runs while another node leads: an anchor belongs to one leadership and dies with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quorate_machine::types::ClusterMillis;
use quorate_store::raft::CommittedLeaderId;

/// A batch that takes longer than this stops the clock until it is through.
const PATIENCE: Duration = Duration::from_secs(1);

/// One leadership's anchor.
///
/// Invariant: `counted_until` never goes back, and `led` only grows: stamps never go back.
struct Anchor {
    leadership: CommittedLeaderId,
    base: ClusterMillis,
    /// How long this node has led since.
    led: Duration,
    /// Up to when that is known.
    counted_until: Instant,
    /// When a quorum heard this node last.
    heard: Instant,
    /// When each batch was stamped that is not through.
    under_way: BTreeMap<u64, Instant>,
}

impl Anchor {
    fn new(leadership: CommittedLeaderId, base: ClusterMillis, now: Instant) -> Self {
        Self { leadership, base, led: Duration::ZERO, counted_until: now, heard: now, under_way: BTreeMap::new() }
    }

    /// Counts the time until then.
    fn count_until(&mut self, until: Instant) {
        self.led += until.saturating_duration_since(self.counted_until);
        self.skip_until(until);
    }

    /// Leaves out the time until then.
    fn skip_until(&mut self, until: Instant) {
        self.counted_until = self.counted_until.max(until);
    }

    /// Counts what may be counted by now. That a quorum heard this node at `heard` is news of which nothing counts that was before,
    /// where it came after the lease was over: who was away answers old questions one after the other.
    fn advance(&mut self, now: Instant, heard: Option<Instant>, lease: Duration) {
        self.count_until(self.countable(now, lease));
        let Some(heard) = heard.filter(|heard| *heard > self.heard) else { return };
        if now > self.heard + lease {
            self.skip_until(now);
        }
        self.heard = heard;
    }

    /// Up to when time counts, for all that is known now.
    fn countable(&self, now: Instant, lease: Duration) -> Instant {
        let oldest = self.under_way.values().min();
        let through = oldest.map_or(now, |stamped| *stamped + PATIENCE);
        now.min(self.heard + lease).min(through)
    }

    /// A batch is through, or given up. What it held up does not count.
    fn end(&mut self, ticket: u64, now: Instant, lease: Duration) {
        self.count_until(self.countable(now, lease));
        let stamped = self.under_way.remove(&ticket);
        if stamped.is_some_and(|stamped| now > stamped + PATIENCE) {
            self.skip_until(now);
        }
    }

    fn value(&self) -> ClusterMillis {
        // A u64 of milliseconds lasts for 500 million years.
        self.base.saturating_add(u64::try_from(self.led.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Stamps for batches.
pub struct Clock {
    /// How long a leader that was heard can be sure that it leads.
    lease: Duration,
    anchor: Arc<Mutex<Option<Anchor>>>,
    tickets: AtomicU64,
}

/// A batch under way: dropped once it is through.
pub struct UnderWay {
    ticket: u64,
    leadership: CommittedLeaderId,
    lease: Duration,
    anchor: Arc<Mutex<Option<Anchor>>>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(anchor) = self.anchor.lock().as_mut().filter(|anchor| anchor.leadership == self.leadership) {
            anchor.end(self.ticket, Instant::now(), self.lease);
        }
    }
}

impl Clock {
    /// A clock that no leadership has anchored.
    pub fn new(lease: Duration) -> Self {
        Self { lease, anchor: Arc::default(), tickets: AtomicU64::new(0) }
    }

    /// How often it has to be seen whether a quorum hears this node: what nobody saw for a lease does not count.
    pub fn look_every(&self) -> Duration {
        self.lease / 8
    }

    /// The cluster clock under this leadership, which a quorum heard then; `None` until [`Self::anchor`] was called for it.
    pub fn cluster_now(&self, leadership: &CommittedLeaderId, heard: Option<Instant>) -> Option<ClusterMillis> {
        let mut anchor = self.anchor.lock();
        let anchor = anchor.as_mut().filter(|anchor| anchor.leadership == *leadership)?;
        anchor.advance(Instant::now(), heard, self.lease);
        Some(anchor.value())
    }

    /// Continues from `base`, the replicated clock as read after this leadership was confirmed. Later calls for the same
    /// leadership change nothing.
    pub fn anchor(&self, leadership: CommittedLeaderId, base: ClusterMillis) {
        let mut anchor = self.anchor.lock();
        if anchor.as_ref().is_none_or(|anchor| anchor.leadership != leadership) {
            *anchor = Some(Anchor::new(leadership, base, Instant::now()));
        }
    }

    /// A batch was stamped under this leadership and is proposed now.
    pub fn propose(&self, leadership: CommittedLeaderId) -> UnderWay {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        if let Some(anchor) = self.anchor.lock().as_mut().filter(|anchor| anchor.leadership == leadership) {
            anchor.under_way.insert(ticket, Instant::now());
        }
        UnderWay { ticket, leadership, lease: self.lease, anchor: self.anchor.clone() }
    }
}

#[cfg(test)]
mod tests {
    use openraft::vote::RaftLeaderId;

    use super::*;

    const LEASE: Duration = Duration::from_millis(400);

    fn at(anchor: &mut Anchor, now: Instant, heard: Instant) -> ClusterMillis {
        anchor.advance(now, Some(heard), LEASE);
        anchor.value()
    }

    fn leads_since(now: Instant) -> Anchor {
        Anchor::new(CommittedLeaderId::new(1, 1), 1_000, now)
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn time_counts_while_a_quorum_hears_the_leader() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        for step in 1..=100 {
            let now = begin + ms(50 * step);
            assert_eq!(at(&mut anchor, now, now - ms(40)), 1_000 + 50 * step);
        }
    }

    #[test]
    fn an_outage_does_not_count_when_the_same_leader_is_heard_again() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        assert_eq!(at(&mut anchor, begin + ms(100), begin + ms(90)), 1_100);
        for step in 1..240 {
            let now = anchor.value();
            let seen = at(&mut anchor, begin + ms(100 + 50 * step), begin + ms(90));
            assert!((now..=1_490).contains(&seen), "{seen} ms, though nobody hears the leader");
        }
        assert_eq!(at(&mut anchor, begin + ms(12_100), begin + ms(12_100)), 1_490);
        assert_eq!(at(&mut anchor, begin + ms(12_150), begin + ms(12_140)), 1_540, "it goes on from there");
    }

    #[test]
    fn an_outage_that_nobody_looked_at_does_not_count() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        assert_eq!(at(&mut anchor, begin + ms(12_010), begin + ms(12_000)), 1_400, "no more than the lease");
        assert_eq!(at(&mut anchor, begin + ms(12_020), begin), 1_410, "news that are old change nothing");
    }

    #[test]
    fn answers_that_waited_for_the_end_of_an_outage_do_not_make_it_count() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        for answer in 1..=40 {
            let seen = at(&mut anchor, begin + ms(12_000 + answer), begin + ms(300 * answer));
            assert!(seen <= 1_440, "{seen} ms after {answer} answers");
        }
    }

    #[test]
    fn a_batch_that_does_not_get_through_stops_the_clock() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        anchor.under_way.insert(7, begin + ms(100));
        for step in 1..=100 {
            let now = begin + ms(100 * step);
            assert_eq!(at(&mut anchor, now, now), 1_000 + (100 * step).min(1_100), "after {} ms", 100 * step);
        }
        anchor.end(7, begin + ms(10_050), LEASE);
        assert_eq!(at(&mut anchor, begin + ms(10_100), begin + ms(10_100)), 2_150);
    }

    #[test]
    fn a_batch_that_takes_its_time_costs_none() {
        let begin = Instant::now();
        let mut anchor = leads_since(begin);
        for batch in 0..10 {
            let stamped = begin + ms(300 * batch);
            anchor.under_way.insert(batch, stamped);
            assert_eq!(at(&mut anchor, stamped + ms(290), stamped + ms(290)), 1_290 + 300 * batch);
            anchor.end(batch, stamped + ms(299), LEASE);
        }
    }

    #[test]
    fn another_leadership_has_another_anchor() {
        let clock = Clock::new(LEASE);
        let (first, second) = (CommittedLeaderId::new(1, 1), CommittedLeaderId::new(3, 1));
        clock.anchor(first, 10);
        let stuck = clock.propose(first);
        assert_eq!(clock.cluster_now(&second, None), None);
        clock.anchor(second, 5_000);
        drop(stuck);
        assert!(clock.cluster_now(&second, None).is_some_and(|now| now >= 5_000));
        assert_eq!(clock.cluster_now(&first, None), None);
    }
}
