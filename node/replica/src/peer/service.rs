//! What the node behind the transport has to offer.
//!
//! Owns the trait and what is known of the asking peer: who it is, and whether it is a member. Never implements it: that is the node's business.

use futures::future::BoxFuture;
use quorate_machine::types::NodeDisk;
use quorate_node_core::net::PeerAddress;
use quorate_store::raft::wire::MemberRecord;

use super::message::{PeerRequest, PeerResponse};

/// Who asks, as the handshake established it.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    /// The version of the protocol that both speak.
    pub protocol: u16,
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

/// What a peer is to the cluster of this node, as far as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipStatus {
    /// A member with this disk; or this node knows of no members yet, and has nothing to lose.
    Member,
    /// It was one with this disk, and is none any more.
    Removed,
    /// This node does not know it: it wants to join, or became a member while this node was away.
    Unknown,
}

impl PeerInfo {
    /// Who it is, with its disk.
    pub fn disk(&self) -> NodeDisk {
        NodeDisk { node_id: self.node_id, incarnation: self.incarnation }
    }
}

/// Answers the questions of peers.
pub trait PeerService: Send + Sync + 'static {
    /// Answers one question. Runs in a task of its own; the number of unanswered ones is bounded per connection. Until
    /// both nodes are members of one cluster only what anybody may ask comes here, see `serve_app`.
    fn handle(&self, from: PeerInfo, request: PeerRequest) -> BoxFuture<'static, PeerResponse>;

    /// The disk by which the membership knows a node, if it does. Called at each handshake, so it must not block.
    fn known_incarnation(&self, node_id: u64) -> Option<u128>;

    /// What a peer is to the cluster of this node. Called for each question, so it must not block.
    fn membership_status(&self, peer: NodeDisk) -> MembershipStatus;

    /// Whether other members know a peer as one of them that this node does not know.
    fn confirm_member(&self, peer: NodeDisk) -> BoxFuture<'static, bool>;

    /// Returns once a peer that is a member, from now on or later, is none any more.
    fn left(&self, peer: NodeDisk) -> BoxFuture<'static, ()>;

    /// The leader sent entries; more may follow. Called for each such request, so it must not block.
    fn on_entries(&self) {}

    /// The connection on which a peer votes and tells that it leads has ended, at whichever end. It must not block.
    fn on_connection_end(&self, _peer: u64) {}
}
