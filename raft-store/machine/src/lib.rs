//! Quorate's deterministic state machine: the vocabulary of the log, the rows of the state, and what applying one to the
//! other means.
//!
//! Knows no clock, no randomness, no I/O, no database and no network: everything arrives as an argument, so every node
//! that applies the same log holds the same bytes. `quorate-store` puts RocksDB and openraft round it.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
#![warn(clippy::print_stdout)]

pub mod access;
pub mod codec;
pub mod command_codec;
pub mod document;
mod entry;
pub mod failpoint;
pub mod keyspace;
pub mod level;
pub mod limits;
pub mod machine;
pub mod memory;
pub mod mutants;
pub mod query;
pub mod requirements;
pub mod rules;
pub mod trailer;
pub mod types;
pub mod versions;
