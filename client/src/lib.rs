//! Quorate for its users: the public JSON types, a Rust client, and (in `src/bin/quorate`) the command line.
//!
//! Knows nothing of RocksDB, openraft or how a node stores anything.

pub mod api;
