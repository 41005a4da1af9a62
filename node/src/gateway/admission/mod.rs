//! How much work is let in: classes for all requests, accounts for each caller.
//!
//! Owns the bounds and the refusals. Never knows what the work is.

pub mod accounts;
pub mod answer_room;
pub mod body_room;
pub mod bucket;
pub mod classes;
