//! The public HTTP API: from an accepted connection to an answer and back.
//!
//! Owns every route; each resource declares its own, with the types, policy and description of each operation. Knows nothing of
//! Raft or RocksDB: everything it asks of the node goes through [`Backend`](crate::backend::Backend). The order of reading: `router`
//! (all routes), `service` (the way of every request), the resources, then what they use: `call`, `auth`, `admission`, `input`,
//! `output`, `problem`.

mod accept;
mod access;
mod access_log;
mod admission;
mod api;
mod auth;
mod batch;
mod call;
mod connection;
mod context;
mod coordination;
mod described;
mod input;
mod keys;
mod operator;
mod output;
mod problem;
mod router;
mod routes;
mod service;
mod tasks;
mod text;
mod watch;

pub use accept::{ServeSettings, serve};
pub use admission::accounts::AccountLimits;
pub use admission::classes::{ClassLimits, RequestClass};
pub use api::{Api, ApiSettings};
pub use auth::audit::{AuditFile, AuditSamples};
pub use auth::authenticator::AuthSettings;
pub use auth::root::RootToken;
pub use auth::secret::TokenText;
pub use router::{all as all_routes, document as openapi_document};
pub use routes::{Guard, Operation, Policy, Route};
