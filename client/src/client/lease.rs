//! What a session knows of itself: until when it certainly lives, and when to renew it.
//!
//! Owns the reckoning behind every token that is handed out. Pure: time comes in as an argument, nothing is sent. A session
//! lives at the nodes for its time to live from the moment at which a renewal *applies*, which is after it was sent; so it
//! certainly lives until the last confirmed one was *sent* and that time has passed, less a margin for clocks that differ. That
//! is reckoned by the monotonic clock, which stands still while the machine is suspended; where the wall clock shows that it may
//! have been, nothing is certain until a renewal that was sent after that is confirmed.

use std::time::{Duration, Instant};

use crate::call::loss::Loss;
use crate::call::moment::Moment;

/// Part of the time to live that is given away for clocks that do not run alike.
const MARGIN_PART: u32 = 10;
/// At least this much, for the scheduling of threads.
const MARGIN_MIN: Duration = Duration::from_millis(20);
/// A session is renewed at least so often in its time to live, whatever a node says.
const RENEWALS: u32 = 3;
/// Part of the time to live that one renewal may take before it is sent anew: between the first and the deadline fit three.
const ROUND_PART: u32 = 6;
/// A renewal may always take this long: less is no time to answer in.
const ROUND_MIN: Duration = Duration::from_millis(20);
/// A renewal that is longer on its way than this is lost.
const ROUND_MAX: Duration = Duration::from_secs(3);

/// Whether a session lives, as far as it can be known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// It does, and renewals are confirmed.
    Ok,
    /// It does, but no renewal was confirmed for half of its time to live, or since the machine may have been suspended.
    Suspect,
    /// It is over, or may be: what it held can be somebody else's. Final.
    Lost,
}

/// The reckoning of one session.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    ttl: Duration,
    renew_in: Duration,
    /// When the last request was sent that was confirmed: a renewal, or the creation.
    confirmed: Moment,
    /// Not before this, after a renewal that failed.
    again_at: Option<Instant>,
    /// Whether a renewal is on its way.
    renewing: bool,
    lost: Option<Loss>,
}

impl Lease {
    /// A session that was asked for at `sent`, and that the node wants renewed after `renew_in`.
    pub fn begin(ttl: Duration, renew_in: Duration, sent: Moment) -> Self {
        let renew_in = renew_in.min(ttl / RENEWALS);
        Self { ttl, renew_in, confirmed: sent, again_at: None, renewing: false, lost: None }
    }

    /// Its time to live.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// What it is now.
    pub fn state(&self, now: Moment) -> SessionState {
        if self.loss(now).is_some() {
            SessionState::Lost
        } else if now.monotonic >= self.suspect_at() || self.was_suspended(now) {
            SessionState::Suspect
        } else {
            SessionState::Ok
        }
    }

    /// Whether the wall clock moved on by so much more than the monotonic one since the last confirmation that it may be over. It is
    /// not lost for that: the wall clock may have been set, and a renewal tells.
    pub fn was_suspended(&self, now: Moment) -> bool {
        now.skipped_since(self.confirmed) > self.margin()
    }

    /// Why it is lost, if it is.
    pub fn loss(&self, now: Moment) -> Option<Loss> {
        self.lost.or_else(|| (now.monotonic >= self.deadline()).then_some(Loss::NotRenewed))
    }

    /// When it is lost unless it is renewed before.
    pub fn deadline(&self) -> Instant {
        self.confirmed.monotonic + self.ttl.saturating_sub(self.margin())
    }

    fn margin(&self) -> Duration {
        (self.ttl / MARGIN_PART).max(MARGIN_MIN)
    }

    fn suspect_at(&self) -> Instant {
        (self.confirmed.monotonic + self.ttl / 2).min(self.deadline())
    }

    /// When its state changes next, if nothing happens meanwhile.
    pub fn changes_at(&self, now: Moment) -> Option<Instant> {
        match self.state(now) {
            SessionState::Ok => Some(self.suspect_at()),
            SessionState::Suspect => Some(self.deadline()),
            SessionState::Lost => None,
        }
    }

    /// When to renew it; `None` while a renewal is on its way, and once it is lost.
    pub fn renewal_at(&self, now: Moment) -> Option<Instant> {
        if self.renewing || self.lost.is_some() {
            return None;
        }
        let renew_in = if self.was_suspended(now) { Duration::ZERO } else { self.renew_in };
        let due = self.confirmed.monotonic + renew_in;
        Some(self.again_at.map_or(due, |again| again.max(due)))
    }

    /// Whether it may as well be renewed now, since another one is: a quarter of the time early at most.
    pub fn may_join(&self, now: Moment) -> bool {
        self.renewal_at(now).is_some_and(|due| now.monotonic + self.renew_in / 4 >= due)
    }

    /// How long one renewal may take before it is sent anew, perhaps by another way.
    pub fn round(&self) -> Duration {
        (self.ttl / ROUND_PART).clamp(ROUND_MIN, ROUND_MAX)
    }

    /// A renewal goes out.
    pub fn on_sent(&mut self) {
        self.renewing = true;
    }

    /// A renewal that went out at `sent` was confirmed. Too late is never: who looked meanwhile was told that it is lost.
    pub fn on_confirmed(&mut self, sent: Moment, now: Moment) {
        self.renewing = false;
        self.again_at = None;
        self.lost = self.loss(now);
        if sent.monotonic > self.confirmed.monotonic {
            self.confirmed = sent;
        }
    }

    /// A renewal brought no answer.
    pub fn on_failed(&mut self, now: Moment) {
        self.renewing = false;
        self.again_at = Some(now.monotonic + self.round() / 8);
    }

    /// It is over.
    pub fn on_over(&mut self, loss: Loss, now: Moment) {
        self.renewing = false;
        self.lost = self.loss(now).or(Some(loss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(9);

    fn lease() -> (Lease, Moment) {
        let sent = Moment::now();
        (Lease::begin(TTL, TTL / 3, sent), sent)
    }

    fn after(start: Moment, millis: u64) -> Moment {
        start + Duration::from_millis(millis)
    }

    /// That moment on the monotonic clock.
    fn at(start: Moment, millis: u64) -> Instant {
        after(start, millis).monotonic
    }

    #[test]
    fn without_renewals_it_becomes_suspect_at_half_and_lost_before_its_time_is_over() {
        let (lease, start) = lease();
        let states = [0, 4_499, 4_500, 8_099, 8_100, 9_000].map(|millis| lease.state(after(start, millis)));
        use SessionState::{Lost, Ok, Suspect};
        assert_eq!(states, [Ok, Ok, Suspect, Suspect, Lost, Lost]);
        assert_eq!(lease.loss(after(start, 8_100)), Some(Loss::NotRenewed));
        assert_eq!(lease.changes_at(start), Some(at(start, 4_500)));
        assert_eq!(lease.changes_at(after(start, 4_500)), Some(at(start, 8_100)));
        assert_eq!(lease.changes_at(after(start, 8_100)), None);
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent_and_not_from_its_answer() {
        let (mut lease, start) = lease();
        lease.on_sent();
        lease.on_confirmed(after(start, 3_000), after(start, 8_000));
        assert_eq!(lease.deadline(), at(start, 11_100));
        assert_eq!(lease.state(after(start, 8_000)), SessionState::Suspect, "that answer is old news already");
        lease.on_confirmed(after(start, 2_000), after(start, 8_001));
        assert_eq!(lease.deadline(), at(start, 11_100), "an older one takes nothing back");
    }

    #[test]
    fn an_answer_after_the_deadline_brings_nothing_back() {
        let (mut lease, start) = lease();
        lease.on_sent();
        lease.on_confirmed(after(start, 8_000), after(start, 8_100));
        assert_eq!(lease.loss(after(start, 8_100)), Some(Loss::NotRenewed));
        assert_eq!(lease.renewal_at(after(start, 8_100)), None);
    }

    #[test]
    fn what_the_cluster_ends_is_lost_at_once_and_for_the_first_reason() {
        let (mut lease, start) = lease();
        lease.on_over(Loss::Expired, after(start, 1));
        lease.on_over(Loss::Ended, after(start, 2));
        assert_eq!(lease.state(after(start, 1)), SessionState::Lost);
        assert_eq!(lease.loss(after(start, 9_999)), Some(Loss::Expired));
    }

    #[test]
    fn renewals_are_due_at_a_third_one_at_a_time_and_soon_again_after_a_failure() {
        let (mut lease, start) = lease();
        assert_eq!(lease.renewal_at(start), Some(at(start, 3_000)));
        lease.on_sent();
        assert_eq!(lease.renewal_at(start), None);
        lease.on_failed(after(start, 4_500));
        let again = lease.renewal_at(after(start, 4_500)).expect("it is tried again");
        assert!(again > at(start, 4_500) && again < at(start, 4_800), "{:?}", again - start.monotonic);
        lease.on_sent();
        lease.on_confirmed(after(start, 4_600), after(start, 4_700));
        assert_eq!(lease.renewal_at(after(start, 4_700)), Some(at(start, 7_600)));
    }

    #[test]
    fn three_rounds_fit_between_the_first_renewal_and_the_deadline_of_any_session() {
        for ttl in [100, 250, 1_000, 10_000, 86_400_000].map(Duration::from_millis) {
            let start = Moment::now();
            let lease = Lease::begin(ttl, ttl, start);
            let first = lease.renewal_at(start).expect("it lives");
            assert!(first + lease.round() * 2 < lease.deadline(), "{ttl:?}");
            assert!(lease.deadline() < start.monotonic + ttl, "{ttl:?}");
        }
    }

    #[test]
    fn sessions_join_a_renewal_a_little_early_but_never_right_after_their_own() {
        let (lease, start) = lease();
        assert!(!lease.may_join(after(start, 2_000)));
        assert!(lease.may_join(after(start, 2_250)) && lease.may_join(after(start, 3_000)));
    }

    /// As after a suspend of so long: the wall clock went on, the monotonic one did not.
    fn resumed(moment: Moment, slept: Duration) -> Moment {
        Moment { wall: moment.wall + slept, ..moment }
    }

    #[test]
    fn after_a_suspend_nothing_is_certain_until_a_renewal_that_was_sent_after_it() {
        let (mut lease, start) = lease();
        let margin = TTL / MARGIN_PART;
        let now = resumed(after(start, 1_000), margin);
        assert_eq!(
            (lease.state(now), lease.renewal_at(now)),
            (SessionState::Ok, Some(at(start, 3_000))),
            "clocks differ"
        );
        let now = resumed(after(start, 1_000), margin + Duration::from_millis(1));
        assert_eq!((lease.state(now), lease.loss(now)), (SessionState::Suspect, None));
        assert!(lease.may_join(now) && lease.renewal_at(now) <= Some(now.monotonic), "it is renewed at once");
        lease.on_sent();
        lease.on_failed(now);
        assert!(lease.renewal_at(now) > Some(now.monotonic), "after a failure there is a pause");
        // Sent before, answered after: that says nothing of what came between.
        lease.on_sent();
        lease.on_confirmed(after(start, 1_500), resumed(after(start, 1_600), 60 * TTL));
        let now = resumed(after(start, 1_700), 60 * TTL);
        assert_eq!((lease.state(now), lease.changes_at(now)), (SessionState::Suspect, Some(at(start, 9_600))));
        lease.on_sent();
        lease.on_confirmed(now, resumed(after(start, 1_800), 60 * TTL));
        assert_eq!(lease.state(resumed(after(start, 1_900), 60 * TTL)), SessionState::Ok);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_ends_nothing_and_prolongs_nothing() {
        let (lease, start) = lease();
        let set_back = |millis| Moment { wall: start.wall - 60 * TTL, ..after(start, millis) };
        assert_eq!(lease.state(set_back(1_000)), SessionState::Ok);
        assert_eq!(lease.state(set_back(8_100)), SessionState::Lost);
    }

    #[test]
    fn a_session_is_suspect_where_the_machine_was_suspended_while_it_was_created() {
        let sent = Moment::now();
        let (lease, created) = (Lease::begin(TTL, TTL / 3, sent), resumed(after(sent, 1), TTL));
        assert_eq!((lease.state(created), lease.renewal_at(created)), (SessionState::Suspect, Some(sent.monotonic)));
    }
}
