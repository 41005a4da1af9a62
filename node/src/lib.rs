//! The Quorate server. `ARCHITECTURE.md` at the root of the repository has the whole picture.

pub mod app;
pub mod config;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod peer;
