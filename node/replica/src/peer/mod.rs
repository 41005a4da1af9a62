//! Node-to-node traffic: one binary protocol over TCP for Raft, for the questions nodes ask each other, and for
//! snapshots.
//!
//! Owns everything between a message and the socket. Never decides what a message means: Raft's are handed to
//! [`raft_rpc::RaftRpc`], the node's own to [`service::PeerService`].
//!
//! Each peer has four *channels*, a TCP connection each, so that none waits behind another: `control` (votes, heartbeats,
//! leader transfer), `append` (log replication), `app` (questions), `snapshot` (opened for one transfer).
//!
//! Reading order: `message` and `raft_codec` say what is sent (`members` its words about members), `frame` and `handshake` how, `stream` over what; `channel`, `connection`,
//! `client`, `raft_client`, `append_stream` are the asking side; `server`, `serve_app`, `serve_raft`,
//! `serve_snapshot` the answering side ([`quorate_node_core::evicting_limit`] bounds its connections, `peer_membership` says whose they are); `snapshot_stream` is the protocol of the snapshot channel.

pub mod counters;
pub mod frame;
pub mod limits;
pub mod members;
pub mod message;
mod net_inner;
pub mod raft_codec;

pub mod client;
pub mod gate;
pub mod handshake;
mod inbound;
mod peer_membership;
pub mod raft_client;
pub mod raft_rpc;
pub mod server;
pub mod service;
pub mod snapshot_stream;

mod append_stream;
mod channel;
mod connection;
mod serve_app;
mod serve_raft;
mod serve_snapshot;
mod stream;
mod writer;

pub use client::{CallError, PeerNet, PeerTimings};
pub use handshake::{Levels, LocalPeer};
pub use raft_rpc::{RaftCell, RaftRpc};
pub use server::serve;
pub use service::{MembershipStatus, PeerInfo, PeerService};
