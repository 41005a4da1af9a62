//! openraft's traits over the log and the state, and the judgement of what both are started from.
//!
//! Owns the two adapters. Never holds domain logic: commands are opaque bytes here.

pub mod log_storage;
pub mod start;
pub mod state_machine;
