//! Whether, and how soon, to try again.
//!
//! Owns the policy and the bookkeeping of one call's attempts. Pure: knows neither the clock nor the network. Retries are
//! safe by construction: what is tried again is a read, or a write under one request id, or was certainly not applied.

use std::time::Duration;

use crate::api::{Applied, ErrorCode, Problem, Retry};
use crate::call::error::Failure;
use crate::call::request::Intent;

/// How eagerly a call is retried, within its deadline.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use quorate_client::{Client, RetryPolicy};
///
/// let policy = RetryPolicy::default().backoff(Duration::from_millis(50), Duration::from_secs(1)).attempts_max(20);
/// assert_eq!((policy.backoff_min, policy.attempts_max), (Duration::from_millis(50), 20));
/// let client = Client::builder().retry(policy).build()?;
/// # Ok::<(), quorate_client::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Pause after all nodes failed once. The first failure is retried at another node at once.
    pub backoff_min: Duration,
    /// Longest pause. Short, since a new leader is there within a second.
    pub backoff_max: Duration,
    /// Most attempts of one call; 1 for no retries.
    pub attempts_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { backoff_min: Duration::from_millis(10), backoff_max: Duration::from_millis(250), attempts_max: 1_000 }
    }
}

impl RetryPolicy {
    /// No second attempt.
    pub fn never() -> Self {
        Self::default().attempts_max(1)
    }

    /// The pauses: after all nodes failed once, and the longest.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        (self.backoff_min, self.backoff_max) = (min, max);
        self
    }

    /// Most attempts of one call; 1 for no retries.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// The pause after so many failures of one call over `nodes` nodes. `roll` in 0..1 is the jitter.
    pub(crate) fn pause(&self, failures: u32, nodes: usize, roll: f64) -> Duration {
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX).max(1);
        if !failures.is_multiple_of(nodes) {
            return Duration::ZERO;
        }
        let rounds = failures / nodes;
        let full = self.backoff_min.saturating_mul(1 << rounds.saturating_sub(1).min(16)).min(self.backoff_max);
        full.mul_f64(0.5 + 0.5 * roll.clamp(0.0, 1.0))
    }
}

/// A node that has too much to do says when to come again. Another one may have room sooner.
const ADVICE_MAX: Duration = Duration::from_secs(1);

/// Before a wait that no node could serve within a call's deadline goes on with another call: a policy of few tries would have it
/// spin otherwise.
pub(crate) const WAIT_PAUSE: Duration = Duration::from_millis(50);
/// A node holds a question that waits back for at most this long: if it has died silently, another is asked soon.
pub(crate) const WAIT_HELD_MAX: Duration = Duration::from_secs(5);
/// Silence beyond that, after which another node is asked.
pub(crate) const WAIT_ATTEMPT: Duration = Duration::from_secs(1);

/// Whether a problem document ends the call. If not, another attempt may find a better moment or a better node.
pub(crate) fn is_final(problem: &Problem) -> bool {
    // A full disk does not clear up within a deadline: the caller should hear of it now.
    let futile = problem.retry != Retry::SameRequestId || problem.code == ErrorCode::QuotaExceeded;
    futile && problem.applied != Applied::Unknown
}

/// What to do after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another attempt after this pause.
    Again(Duration),
    /// No further attempt.
    GiveUp,
}

/// The attempts of one call so far.
#[derive(Debug)]
pub(crate) struct Attempts {
    failures: u32,
    /// Whether an attempt may have been applied. Stays set: a later attempt's `not applied` speaks for itself only.
    fate_open: bool,
}

impl Attempts {
    /// None yet.
    pub fn none() -> Self {
        Self { failures: 0, fate_open: false }
    }

    /// How many failed.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the call may have been applied by one of them.
    pub fn fate_open(&self) -> bool {
        self.fate_open
    }

    /// Whether a final problem document decides the whole call. What went through the log does, since request ids make all
    /// attempts one; a refusal before it was proposed says nothing about earlier attempts.
    pub fn settled_by(&self, problem: &Problem) -> bool {
        !self.fate_open || problem.index.is_some()
    }

    /// Counts a failure and decides.
    pub fn on_failure(
        &mut self,
        failure: &Failure,
        intent: &Intent,
        policy: &RetryPolicy,
        nodes: usize,
        roll: f64,
    ) -> Next {
        self.failures += 1;
        self.fate_open |= failure.leaves_fate_open() && !matches!(intent, Intent::Read);
        let unsafe_again = self.fate_open && matches!(intent, Intent::Once);
        if unsafe_again || self.failures >= policy.attempts_max {
            return Next::GiveUp;
        }
        match &failure.kind {
            crate::call::error::FailureKind::Problem(problem) if problem.code == ErrorCode::TooManyRequests => {
                let pause = policy.pause(self.failures * u32::try_from(nodes).unwrap_or(1), nodes, roll);
                let advice = Duration::from_millis(problem.retry_after_ms.unwrap_or(0)).min(ADVICE_MAX);
                Next::Again(pause.max(advice))
            }
            // Certificates do not get better within a deadline, but another node may have good ones.
            crate::call::error::FailureKind::Tls(_) if self.failures as usize >= nodes => Next::GiveUp,
            _ => Next::Again(policy.pause(self.failures, nodes, roll)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::error::FailureKind;
    use crate::call::request::RequestId;

    fn failure(kind: FailureKind) -> Failure {
        Failure { address: "n".into(), kind }
    }

    fn refused() -> Failure {
        failure(FailureKind::Connect(std::io::ErrorKind::ConnectionRefused.into()))
    }

    fn problem(code: ErrorCode, applied: Applied) -> Box<Problem> {
        Box::new(Problem::new(code, applied, "test"))
    }

    #[test]
    fn other_nodes_are_tried_at_once_and_rounds_back_off_within_bounds() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.pause(1, 3, 1.0), Duration::ZERO);
        assert_eq!(policy.pause(2, 3, 1.0), Duration::ZERO);
        assert_eq!(policy.pause(3, 3, 1.0), Duration::from_millis(10));
        assert_eq!(policy.pause(3, 3, 0.0), Duration::from_millis(5));
        assert_eq!(policy.pause(6, 3, 1.0), Duration::from_millis(20));
        assert_eq!(policy.pause(3_000_000, 3, 1.0), policy.backoff_max);
        assert_eq!(policy.pause(1, 1, 1.0), Duration::from_millis(10));
    }

    #[test]
    fn an_ambiguous_attempt_keeps_the_fate_open_whatever_comes_after() {
        let (policy, write) = (RetryPolicy::default(), Intent::Write(RequestId::random()));
        let mut attempts = Attempts::none();
        attempts.on_failure(&refused(), &write, &policy, 3, 0.5);
        assert!(!attempts.fate_open());
        attempts.on_failure(&failure(FailureKind::Broken("reset".into())), &write, &policy, 3, 0.5);
        attempts.on_failure(&refused(), &write, &policy, 3, 0.5);
        assert!(attempts.fate_open());
        let mut decided = problem(ErrorCode::CasMismatch, Applied::No);
        assert!(!attempts.settled_by(&decided), "a refusal that did not go through the log settles nothing");
        decided.index = Some(7);
        assert!(attempts.settled_by(&decided));
    }

    #[test]
    fn a_call_without_an_id_is_repeated_only_while_certainly_not_applied() {
        let policy = RetryPolicy::default();
        let mut attempts = Attempts::none();
        assert!(matches!(attempts.on_failure(&refused(), &Intent::Once, &policy, 3, 0.5), Next::Again(_)));
        let broken = failure(FailureKind::Broken("reset".into()));
        assert_eq!(attempts.on_failure(&broken, &Intent::Once, &policy, 3, 0.5), Next::GiveUp);
        let mut reads = Attempts::none();
        assert!(matches!(reads.on_failure(&broken, &Intent::Read, &policy, 3, 0.5), Next::Again(_)));
        assert!(!reads.fate_open());
    }

    #[test]
    fn an_overloaded_node_is_given_a_pause_even_the_first_time() {
        let overloaded = failure(FailureKind::Problem(problem(ErrorCode::TooManyRequests, Applied::No)));
        let next = Attempts::none().on_failure(&overloaded, &Intent::Read, &RetryPolicy::default(), 3, 1.0);
        assert_eq!(next, Next::Again(Duration::from_millis(10)));
        for (advice, pause) in [(3, 10), (400, 400), (9_000, 1_000)] {
            let mut told = problem(ErrorCode::TooManyRequests, Applied::No);
            told.retry_after_ms = Some(advice);
            let told = failure(FailureKind::Problem(told));
            let next = Attempts::none().on_failure(&told, &Intent::Read, &RetryPolicy::default(), 3, 1.0);
            assert_eq!(next, Next::Again(Duration::from_millis(pause)), "told to wait {advice} ms");
        }
    }

    #[test]
    fn final_are_refusals_but_never_an_unknown_fate() {
        assert!(is_final(&problem(ErrorCode::CasMismatch, Applied::No)));
        assert!(is_final(&problem(ErrorCode::QuotaExceeded, Applied::No)));
        assert!(!is_final(&problem(ErrorCode::NoLeader, Applied::No)));
        assert!(!is_final(&problem(ErrorCode::Timeout, Applied::Unknown)));
        assert!(!is_final(&problem(ErrorCode::Internal, Applied::Unknown)));
    }
}
