//! etcd's v3 API on the client port: gRPC, and the JSON gateway below `/v3`.
//!
//! An adapter over [`gateway`](quorate_node_core::gateway), beside `quorate-node-http`: the same state, the same way to the log, the same
//! admission, permissions and audit. Owns what etcd's messages mean in terms of entries, sessions and transactions. What is not the
//! same as in etcd stands in `docs/etcd.md`. The order of reading: `router`, `method`, `service` and `message` (the way of every call), the groups of calls
//! (`kv`, `lease`, `watch`, `cluster`, `maintenance`, `auth`, `users`, `roles`, `lock`, `election`), then what they use.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

mod auth;
mod cluster;
mod contend;
mod election;
mod header;
mod health;
mod kv;
mod lease;
mod lock;
mod maintenance;
mod message;
mod method;
mod paged;
mod parts;
mod past;
mod range;
mod roles;
mod roused;
mod router;
mod service;
mod status;
mod txn;
mod users;
mod watch;
mod watcher;

pub use method::Served;
pub use router::{route_templates, router, served_at, unknown};
pub use service::grpc;
