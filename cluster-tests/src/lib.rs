//! What clusters of real processes are put through: tests, attacks, long searches and measurements.
//!
//! Owns the attacks (`abuse`, for its program and for tests), data that each later build has to open (`kept`), and the programs and tests beside
//! them. Never starts or hurts a node by itself: that is the harness's.

pub mod abuse;
pub mod kept;
