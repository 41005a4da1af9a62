//! The public JSON of HTTP API v1. A field added here is a promise; one removed or renamed is a new version.
//!
//! Owns the wire types and the error catalogue. Never used on disk.

mod bulk;
mod claim;
mod cluster;
mod collections;
mod error;
mod find;
mod kv;
mod sequences;
mod stream;
mod txn;
mod watch;

pub use bulk::*;
pub use claim::*;
pub use cluster::*;
pub use collections::*;
pub use error::*;
pub use find::*;
pub use kv::*;
pub use sequences::*;
pub use stream::*;
pub use txn::*;
pub use watch::*;
