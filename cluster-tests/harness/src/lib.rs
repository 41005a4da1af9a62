//! Real clusters under test: processes, faults, load and what must hold afterwards.
//!
//! Owns starting `quorate-node` processes and hurting them. Never reaches into a node: everything goes through its
//! command line, its HTTP API, its files and signals, as it does for a user. Never a test by itself: those stand in crates above it, as does what
//! simulates clusters, which takes clients and their driving from here.

pub mod cluster;
pub mod coordination;
pub mod drive;
pub mod eventually;
pub mod fill;
pub mod host;
pub mod http;
pub mod load;
pub mod network;
pub mod node_process;
pub mod ports;
pub mod secret;
pub mod seed;
pub mod stalls;
pub mod stats;
pub mod turns;
pub mod written;

pub use cluster::{Cluster, PATIENCE, Settings};
pub use coordination::Caller;
pub use eventually::{eventually, sooner_than};
pub use host::{Failures, Host};
pub use http::{Answer, Connection, Request};
pub use node_process::memory_of;
pub use secret::write_secret;
