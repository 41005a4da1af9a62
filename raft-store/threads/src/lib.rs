//! Threads of a node: how tasks are started and watched on those that all share, and where work goes that may block.
//!
//! Knows neither Raft, nor storage, nor requests: everything that runs in a node stands on it.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

pub mod background;
pub mod uptime;
pub mod watchdog;
