//! Node-to-node traffic.

pub mod message;
