//! The public JSON of HTTP API v1. A field added here is a promise; one removed or renamed is a new version.
//!
//! Owns the wire types and the error catalogue. Never used on disk.

mod cluster;
mod error;
mod find;
mod kv;
mod stream;

pub use cluster::*;
pub use error::*;
pub use find::*;
pub use kv::*;
pub use stream::*;
