//! Watches: the changes of some keys as they happen.
//!
//! Owns the stream, from its options to its events. Never holds up a write.

pub mod event;
pub mod open;
pub mod options;
pub mod read;
pub mod sse;
pub mod stream;
