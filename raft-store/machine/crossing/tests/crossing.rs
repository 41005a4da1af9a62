//! Every command meets every state of its target, and nothing goes wrong.

use std::time::{Duration, Instant};

/// Runs that each test run makes.
const RUNS: u64 = 100;

/// How long pairs are waited for.
const LONGEST: Duration = Duration::from_secs(240);

#[test]
fn nothing_goes_wrong_where_features_meet() {
    let explored = quorate_crossing::explore(1, false, |runs, so_far| so_far.failures.is_empty() && runs < RUNS);
    assert!(explored.failures.is_empty(), "{}", explored.failures.join("\n\n"));
    let impossible = explored.met.pairs.impossible();
    assert!(impossible.is_empty(), "met, and said not to be: {impossible:#?}");
}

#[test]
#[ignore = "takes minutes: the rarest pairs, such as waiters of an election, are met that seldom"]
#[expect(clippy::disallowed_methods, reason = "it bounds how long it takes")]
fn every_command_meets_every_state_of_its_target() {
    let start = Instant::now();
    let explored = quorate_crossing::explore(1, false, |runs, so_far| {
        let lacks = runs % 20 != 0 || !so_far.met.pairs.missing().is_empty();
        so_far.failures.is_empty() && lacks && start.elapsed() < LONGEST
    });
    assert!(explored.failures.is_empty(), "{}", explored.failures.join("\n\n"));
    let missing = explored.met.pairs.missing();
    assert!(missing.is_empty(), "not met: {missing:#?}");
}
