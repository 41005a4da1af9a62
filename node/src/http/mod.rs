//! The public HTTP API: from an accepted connection to an answer and back.
//!
//! Owns every route; each resource declares its own, with the types, policy and description of each operation. Knows nothing of
//! Raft or RocksDB: everything it asks of the node goes through [`Backend`](crate::backend::Backend). The order of reading: `router`
//! (all routes), `service` (the way of every request), the resources, then what they use: `call`, `input`, `output`. What another
//! protocol would share is in [`gateway`](crate::gateway).

mod accept;
mod access;
mod access_log;
mod batch;
mod call;
mod context;
mod coordination;
mod described;
mod enter;
mod input;
mod keys;
mod operator;
mod output;
mod router;
mod routes;
mod service;
mod tasks;
mod watch;

pub use accept::{ServeSettings, serve};
pub use router::{all as all_routes, document as openapi_document};
pub use routes::{Guard, Operation, Policy, Route};
