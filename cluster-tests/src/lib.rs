//! Real clusters under test: processes, faults, load and what must hold afterwards.
//!
//! Owns starting `quorate-node` processes and hurting them. Never reaches into a node: everything goes through its
//! command line, its HTTP API, its files and signals, as it does for a user. But for [`crash`], which has no node but the storage of
//! one, and [`parsers`], which calls what reads bytes.

pub mod abuse;
pub mod cluster;
pub mod coordination;
pub mod crash;
pub mod eventually;
pub mod fill;
pub mod history;
pub mod host;
pub mod http;
pub mod kept;
pub mod load;
pub mod network;
pub mod node_process;
pub mod parsers;
pub mod ports;
pub mod secret;
pub mod seed;
pub mod stalls;
pub mod stats;
pub mod turns;
pub mod workload;
pub mod written;

pub use cluster::{Cluster, PATIENCE, Settings};
pub use coordination::Caller;
pub use eventually::{eventually, sooner_than};
pub use host::{Failures, Host};
pub use http::{Answer, Connection, Request};
pub use node_process::memory_of;
pub use secret::write_secret;
