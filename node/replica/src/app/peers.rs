//! The other members by number: where they are, and questions to them.
//!
//! Owns the address book, kept in step with the membership. Never dials by itself: connections are the transport's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use quorate_machine::types::NodeDisk;
use quorate_store::raft::wire::MemberRecord;
use quorate_store::raft::{Membership, NodeId, Vote};
use quorate_store::state::snapshot::SnapshotHandle;
use tokio::sync::watch;

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

fn disk((node_id, member): (&NodeId, &MemberRecord)) -> NodeDisk {
    NodeDisk { node_id: *node_id, incarnation: member.incarnation }
}

/// The address book over the transport.
pub struct Peers {
    net: PeerNet,
    members: ArcSwap<BTreeMap<NodeId, MemberRecord>>,
    /// Who stood in a book before and does not in the one of now.
    gone: Mutex<BTreeSet<NodeDisk>>,
    /// Counts the books.
    books: watch::Sender<u64>,
}

impl Peers {
    /// An empty book.
    pub fn new(net: PeerNet) -> Self {
        let (books, _) = watch::channel(0);
        Self { net, members: ArcSwap::default(), gone: Mutex::default(), books }
    }

    /// Replaces the book by the members of a newer membership.
    pub fn learn(&self, membership: &Membership) {
        let members = membership.nodes().map(|(id, member)| (*id, MemberRecord::from(member))).collect();
        let before = self.members.load_full();
        if *before != members {
            let mut gone = self.gone.lock();
            gone.extend(before.iter().map(disk));
            members.iter().for_each(|member| _ = gone.remove(&disk(member)));
            self.members.store(members.into());
            drop(gone);
            self.books.send_modify(|books| *books += 1);
        }
    }

    /// Whether a node stands in the book with this disk.
    pub fn knows(&self, node: NodeDisk) -> bool {
        self.members.load().get(&node.node_id).is_some_and(|member| member.incarnation == node.incarnation)
    }

    /// Whether it did, and does not any more.
    pub fn has_gone(&self, node: NodeDisk) -> bool {
        self.gone.lock().contains(&node)
    }

    /// Follows the book from now on.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.books.subscribe()
    }

    /// Returns once a node that stands in the book, now or later, does not any more.
    pub async fn left(&self, node: NodeDisk, mut books: watch::Receiver<u64>) {
        let mut was_there = false;
        loop {
            let is_there = self.knows(node);
            if was_there && !is_there {
                return;
            }
            was_there = is_there;
            if books.changed().await.is_err() {
                return std::future::pending().await;
            }
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

    /// Bounds the speed at which this node sends snapshots, bytes a second; 0 lifts the bound.
    pub fn limit_snapshots(&self, bytes_per_second: u64) {
        self.net.limit_snapshots(bytes_per_second);
    }

    /// Asks the node that has to listen at an address, as found in a join list; without an id, whoever shows a certificate of a node there.
    pub async fn ask_at(
        &self,
        addr: &str,
        to: Option<NodeId>,
        question: PeerRequest,
        by: Instant,
    ) -> Result<PeerResponse, QueryError> {
        Ok(self.net.call(addr, to, question, by).await?)
    }
}
