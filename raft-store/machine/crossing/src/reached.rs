//! Cases that only runs in groups meet.
//!
//! Owns the list, and how a reply shows that one was met. Never sends a command.

use quorate_machine::types::{Outcome, Rejection, Reply};

/// Counts of the cases that only large states and low bounds bring about. Each must be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    /// Commands refused because they would read, write and answer too much.
    pub too_much: u64,
    /// Commands put off because those before them took all that a batch may.
    pub deferred: u64,
    /// Changes of all that matches that stopped at a bound.
    pub partial: u64,
    /// Writes beyond a quota.
    pub beyond_quota: u64,
    /// Steps of counting for a quota that left more to count.
    pub counting: u64,
    /// Sessions that ended with more than one batch has room for.
    pub left_over: u64,
    /// Values of more than 64 KiB.
    pub large: u64,
}

impl Reached {
    /// Adds what another run reached.
    pub fn add(&mut self, other: &Self) {
        let Self { too_much, deferred, partial, beyond_quota, counting, left_over, large } = other;
        self.too_much += too_much;
        self.deferred += deferred;
        self.partial += partial;
        self.beyond_quota += beyond_quota;
        self.counting += counting;
        self.left_over += left_over;
        self.large += large;
    }

    /// The cases that were not met.
    pub fn missing(&self) -> Vec<&'static str> {
        let Self { too_much, deferred, partial, beyond_quota, counting, left_over, large } = self;
        let all = [
            (too_much, "too much"),
            (deferred, "deferred"),
            (partial, "partial"),
            (beyond_quota, "beyond a quota"),
            (counting, "counting"),
            (left_over, "left over"),
            (large, "large"),
        ];
        all.into_iter().filter(|(count, _)| **count == 0).map(|(_, name)| name).collect()
    }

    /// Notes what a reply shows of it.
    pub fn note(&mut self, reply: &Reply) {
        match &reply.outcome {
            Outcome::Deferred => self.deferred += 1,
            Outcome::Where(done) if done.after.is_some() => self.partial += 1,
            Outcome::Rejected(why) => self.note_refusal(why),
            Outcome::TxnRejected(rejected) => self.note_refusal(&rejected.why),
            _ => {}
        }
    }

    fn note_refusal(&mut self, why: &Rejection) {
        match why {
            Rejection::TooMuch { .. } => self.too_much += 1,
            Rejection::BeyondQuota(_) => self.beyond_quota += 1,
            _ => {}
        }
    }
}
