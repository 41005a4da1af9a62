//! The Quorate server. `ARCHITECTURE.md` at the root of the repository has the whole picture.

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
