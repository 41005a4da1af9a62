//! Quorate's storage: a deterministic state machine, the log and the database under it, and the openraft adapters
//! around it. `ARCHITECTURE.md` at the root of the repository has the whole picture.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

#[macro_use]
mod failpoints;

pub mod adapters;
pub mod backup;
pub mod clean_stop;
pub mod durable;
pub mod durations;
pub mod high_water_mark;
pub mod identity;
pub mod log;
pub mod meta;
pub mod offline;
pub mod quarantine;
pub mod raft;
pub mod space;
pub mod state;
