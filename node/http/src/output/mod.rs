//! What answers are made of.
//!
//! Owns their JSON, status and headers. Never decides what an answer says.

pub mod completed;
pub mod refusal;
pub mod render;
pub mod response;
