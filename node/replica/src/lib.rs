//! A replica: what a node can do with its log and its state, and how it speaks to other nodes.
//!
//! Owns no connection of a client: protocols reach it through `quorate_node_core::backend` alone. Modules point one way: `peer`, then `app`,
//! then `rebuild`.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]
// Tasks of a node are watched; those that stand for its surroundings in tests are not.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod app;
pub mod peer;
pub mod rebuild;
