//! Ways from a handler to the node and back: a command, a long read, a wait.
//!
//! Owns what they have in common. Never knows the resource they serve.

pub mod command;
pub mod scan;
pub mod wait;
