//! Connections of clients: where they come from, TLS, and when one is given up.
//!
//! Owns sockets and their deadlines. Never knows what is asked on them.

pub mod door;
pub mod gather;
pub mod handshake;
pub mod handshake_queue;
pub mod mismatch;
pub mod monitor;
pub mod origin;
