//! The Quorate server. `ARCHITECTURE.md` at the root of the repository has the whole picture.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

pub mod commands;
pub mod config;
pub mod dev;
mod node_tls;
pub mod raft_config;
pub mod server;

/// Exit code of a node that cannot trust its storage, or cannot write it for another reason than that it is full.
pub const EXIT_STORAGE: i32 = 3;

/// Exit code of a node whose disk is full: it may be started again, and waits then until there is room.
pub const EXIT_NO_ROOM: i32 = 5;

/// Exit code of a node that was removed from its cluster: to start it again changes nothing.
pub const EXIT_REMOVED: i32 = 4;
