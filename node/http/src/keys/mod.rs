//! Entries: one, a range, or all that match; sequences, collections and the history of a key.
//!
//! Owns the routes under `/v1/kv` and what they share. Never decides whether the condition of a write holds:
//! `apply` does. Those of a read are judged here, on the entry that was read.

pub mod audit;
pub mod claim;
pub mod collections;
pub mod find;
pub mod find_body;
pub mod kv;
pub mod list;
pub mod matching;
pub mod op_body;
pub mod prefer;
pub mod read;
pub mod requests;
pub mod sequences;
pub mod write;
