//! Quorate for its users: the public JSON types, a Rust client, and (in `src/bin/quorate`) the command line.
//!
//! Knows nothing of RocksDB, openraft or how a node stores anything.
//!
//! ```no_run
//! # async fn example() -> Result<(), quorate_client::Error> {
//! use quorate_client::{Client, Value};
//!
//! let client = Client::new("127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103")?;
//! client.put("stock/apples", Value::json(&5)?).await?;
//! let left = client.update("stock/apples", |left: Option<u64>| left.filter(|n| *n > 0).map(|n| n - 1)).await?;
//! println!("{left:?}");
//! # Ok(())
//! # }
//! ```
//!
//! Order of reading: `client` (settings, and the way of every call), `kv`, `list`, `update`, `cluster` (what can be called),
//! `request` (a call before it is sent), then the leaves: `endpoints` (which node), `retry` (whether again), `transport`
//! (how), `error` (what it means when it fails).

pub mod api;
mod client;
mod cluster;
mod endpoints;
mod error;
mod kv;
mod list;
mod request;
mod retry;
mod transport;
mod update;

pub use client::{Client, ClientBuilder, DEFAULT_ENDPOINTS, ENDPOINTS_ENV};
pub use cluster::NodeStatus;
pub use endpoints::Reads;
pub use error::{Error, Failure, FailureKind, GaveUp};
pub use kv::{Change, Document, Get, Value, Write};
pub use list::List;
pub use request::RequestId;
pub use retry::RetryPolicy;
pub use transport::Protocol;
pub use update::{TRIES_MAX, Updated};
