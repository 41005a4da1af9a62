//! The other members by number: where they are, and questions to them.
//!
//! Owns the address book, kept in step with the membership. Never dials by itself: connections are the transport's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use quorate_store::raft::wire::MemberRecord;
use quorate_store::raft::{Membership, NodeId, Vote};
use quorate_store::state::snapshot::SnapshotHandle;

use crate::peer::message::{PeerRequest, PeerResponse};
use crate::peer::snapshot_stream::{self, SendError};
use crate::peer::{CallError, PeerNet};

/// Why a question to another node brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The membership has no such node.
    #[error("node {0} is not a member")]
    NotAMember(NodeId),
    /// The transport failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl QueryError {
    /// Whether the other node cannot have acted on the question.
    pub fn is_certainly_not_processed(&self) -> bool {
        match self {
            Self::NotAMember(_) | Self::Call(CallError::NotSent(_) | CallError::Refused(_)) => true,
            Self::Call(CallError::Lost(_)) => false,
        }
    }
}

/// The address book over the transport.
pub struct Peers {
    net: PeerNet,
    members: ArcSwap<BTreeMap<NodeId, MemberRecord>>,
}

impl Peers {
    /// An empty book.
    pub fn new(net: PeerNet) -> Self {
        Self { net, members: ArcSwap::default() }
    }

    /// Replaces the book by the members of a newer membership.
    pub fn learn(&self, membership: &Membership) {
        let members = membership.nodes().map(|(id, member)| (*id, MemberRecord::from(member))).collect();
        if **self.members.load() != members {
            self.members.store(members.into());
        }
    }

    /// The members as last learned.
    pub fn members(&self) -> Arc<BTreeMap<NodeId, MemberRecord>> {
        self.members.load_full()
    }

    /// Asks a member.
    pub async fn ask(&self, to: NodeId, question: PeerRequest, by: Instant) -> Result<PeerResponse, QueryError> {
        let addr = match self.members.load().get(&to) {
            Some(member) => member.peer_addr.clone(),
            None => return Err(QueryError::NotAMember(to)),
        };
        Ok(self.net.call(&addr, Some(to), question, by).await?)
    }

    /// Sends a member a snapshot, under a leader's vote. A vote that is higher says that it was not taken.
    pub async fn send_snapshot(&self, to: NodeId, vote: Vote, snapshot: Arc<SnapshotHandle>) -> Result<(), SendError> {
        let member = self.members.load().get(&to).cloned();
        let member = member.ok_or_else(|| SendError::Unreachable(format!("node {to} is not a member")))?;
        let theirs = snapshot_stream::send_to(&self.net, to, &member.into(), vote, snapshot).await?;
        if theirs == vote { Ok(()) } else { Err(SendError::Refused("another node leads by now".into())) }
    }

    /// Asks whoever listens at an address, as found in a join list, and shows a certificate of a node.
    pub async fn ask_whoever_is_at(
        &self,
        addr: &str,
        question: PeerRequest,
        by: Instant,
    ) -> Result<PeerResponse, QueryError> {
        Ok(self.net.call(addr, None, question, by).await?)
    }

    /// Asks the node that has to listen at an address.
    pub async fn ask_at(
        &self,
        addr: &str,
        to: NodeId,
        question: PeerRequest,
        by: Instant,
    ) -> Result<PeerResponse, QueryError> {
        Ok(self.net.call(addr, Some(to), question, by).await?)
    }
}
