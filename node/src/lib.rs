//! The Quorate server. `ARCHITECTURE.md` at the root of the repository has the whole picture.

// Where it cannot fail, `expect` says why; where it can, the error has a way to go. Tests may.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

pub mod config;
pub mod limits;

pub mod app;
pub mod http;
pub mod metrics;
pub mod peer;
pub mod raft_config;
pub mod server;

/// Exit code of a node that cannot trust or write its storage.
pub const EXIT_STORAGE: i32 = 3;
