//! What the node behind the transport has to offer.
//!
//! Owns the trait and what is known of the asking peer. Never implements it: that is the node's business.

use futures::future::BoxFuture;
use quorate_store::raft::wire::MemberRecord;

use super::message::{PeerRequest, PeerResponse};
use crate::net::PeerAddress;

/// Who asks, as the handshake established it.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    /// Its number.
    pub node_id: u64,
    /// Its disk.
    pub incarnation: u128,
    /// Its cluster at the time it connected.
    pub cluster_id: Option<u128>,
    /// Its addresses as it says them itself.
    pub member: MemberRecord,
    /// Where the connection comes from.
    pub remote: PeerAddress,
}

/// Answers the questions of peers.
pub trait PeerService: Send + Sync + 'static {
    /// Answers one question. Runs in a task of its own; the number of unanswered ones is bounded per connection. Until
    /// both nodes are of one cluster only `Hello`, `Adopt` and `Join` come here.
    fn handle(&self, from: PeerInfo, request: PeerRequest) -> BoxFuture<'static, PeerResponse>;

    /// The disk by which the membership knows a node, if it does. Called at each handshake, so it must not block.
    fn known_incarnation(&self, node_id: u64) -> Option<u128>;

    /// The leader sent entries; more may follow. Called for each such request, so it must not block.
    fn on_entries(&self) {}
}
