//! The command line against nodes that fail as told.

#[allow(dead_code, reason = "the tests on clusters use the rest")]
mod agent;
mod agents;
mod bench;
mod changes;
mod commands;
mod contexts;
mod contract;
mod exports;
#[allow(dead_code, reason = "the tests of the client use the rest")]
#[path = "../../../tests/client/fake.rs"]
mod fake;
mod held;
mod load;
mod shell;
mod tasks;

/// Longest time for what should be there at once: a machine that is busy takes its time.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
