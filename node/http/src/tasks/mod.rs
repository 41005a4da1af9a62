//! Timed tasks and their queues.
//!
//! Owns their routes. Never decides when a task is due: `apply` does.

pub mod answer;
pub mod body;
pub mod claim;
pub mod queues;
