//! Every run of the state machine up to a depth keeps what is promised; `QUORATE_MODEL_DEPTH` asks for a deeper one.

use quorate_model::Bounds;
use stateright::{Checker, Model};

/// What a continuous build has time for.
const STEPS: usize = 5;

/// Tries every run. What is `too_far` takes more steps than there are.
fn exhaust(clients: usize, slots: u32, steps: usize, too_far: &[&str]) {
    let bounds = Bounds { clients, slots, steps, mutant: None };
    let checker = bounds.checker().threads(2).spawn_bfs().join();
    let (all, unique, depth) = (checker.state_count(), checker.unique_state_count(), checker.max_depth());
    println!("{clients} clients, {slots} slots, {steps} steps: {all} states, {unique} of them unique, depth {depth}");
    assert!(checker.is_done());
    for property in bounds.properties().into_iter().filter(|property| !too_far.contains(&property.name)) {
        let found = checker.discovery(property.name);
        let is_failure = property.expectation != stateright::Expectation::Sometimes;
        let last = found.as_ref().map(|path| path.last_state());
        assert_eq!(found.is_none(), is_failure, "{}: {last:?}", property.name);
    }
    // The initial state has depth 1.
    assert_eq!(depth, steps + 1, "the check ended before its bound");
}

#[test]
fn every_run_keeps_what_is_promised() {
    let steps = std::env::var("QUORATE_MODEL_DEPTH").map_or(STEPS, |steps| steps.parse().unwrap());
    exhaust(2, 1, steps, &[]);
    // A third client makes four times as many runs of them.
    exhaust(3, 2, steps - 1, if steps > STEPS { &[] } else { &["a leader is elected after another"] });
}
