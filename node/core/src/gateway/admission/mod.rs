//! How much work is let in: classes for all requests, accounts for each caller.
//!
//! Owns the bounds and the refusals. Never knows what the work is.

pub mod accounts;
pub mod alive;
pub mod answer_memory;
pub mod body_memory;
pub mod bucket;
pub mod classes;
pub mod connections;
pub mod pace;
pub mod refusals;
pub mod request_class;
pub mod resource_samples;
pub mod seldom;
pub mod shares;
pub mod turns;
