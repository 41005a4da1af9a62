//! The peer transport over real sockets, with a fake Raft and a fake node behind it.

// Tasks of a node are watched; those that stand for its surroundings are not.
#![allow(clippy::disallowed_methods)]

mod appends;
mod calls;
mod frames;
mod handshakes;
mod snapshots;
mod support;
mod tls;
