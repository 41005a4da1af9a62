//! What answers are made of.
//!
//! Owns their JSON, and how long they may wait for their peers. Never decides what an answer says.

pub mod completed;
pub mod refusal;
pub mod render;
pub mod response;
