//! The peer transport over real sockets, with a fake Raft and a fake node behind it.

mod appends;
mod calls;
mod frames;
mod handshakes;
mod snapshots;
mod support;
mod tls;
