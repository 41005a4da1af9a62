//! The public HTTP API: from a request to an answer.
//!
//! Owns every route; each resource declares its own, with the types, policy and description of each operation. Knows nothing of
//! Raft or RocksDB: everything it asks of the node goes through [`Node`](quorate_node_core::backend::Node). The order of reading: `router`
//! (all routes), `service` (the way of every request), the resources, then what they use: `input`, `output`, `headers`. What another
//! protocol would share is in [`gateway`](quorate_node_core::gateway).

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

mod access;
mod batch;
mod command;
mod context;
mod coordinate;
mod coordination;
mod cors;
mod described;
mod headers;
mod input;
mod keys;
mod operator;
mod output;
mod quotas;
mod router;
mod routes;
mod service;
mod tasks;
mod watch;

pub use operator::errors::markdown as error_catalogue;
pub use router::{all as all_routes, document as openapi_document, nothing, router, templates as route_templates};
pub use routes::{Operation, Policy, Route};
