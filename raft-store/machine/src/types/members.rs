//! Commands about who may become a member, and what applying them answers.
//!
//! Owns their form in the log. Who *is* a member stands in the membership entries of the log, not here: an invitation says only who
//! may be made one. Never holds the secret of an invitation, only its hash.

use bincode::{Decode, Encode};

use super::{ClusterMillis, Key, Revision, SecretHash, TokenId, Waker, WallMillis};

/// A node with the disk that it has: what an invitation lets in, and what is never let in again once it was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct NodeDisk {
    /// Its number.
    pub node_id: u64,
    /// Random identity of its data directory.
    pub incarnation: u128,
}

/// What is asked about newcomers. Only from [`crate::level::TENANTS`] on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MembersOp {
    /// Makes an invitation. Those whose time is over are removed on the occasion.
    Invite(NewInvitation),
    /// Removes an invitation, also one that was used by a node that has not become a member yet.
    Revoke(TokenId),
    /// A node shows an invitation: it is used up, and the node may be made a member. The same node and disk may show it again.
    Admit {
        /// Which invitation.
        invitation: TokenId,
        /// Hash of the secret that the node has shown.
        hash: SecretHash,
        /// Who has shown it.
        newcomer: NodeDisk,
        /// It is to stay a learner.
        as_standby: bool,
    },
}

/// An invitation as its node made it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NewInvitation {
    /// Random, so that no two are alike.
    pub id: TokenId,
    /// What its secret is compared with.
    pub hash: SecretHash,
    /// Who is invited; anybody where it is `None`. An id of a removed node is taken in again only where it stands here.
    pub node_id: Option<u64>,
    /// Good only for a node that stays a learner.
    pub is_standby: bool,
    /// Milliseconds of cluster clock for which it may be used: 1 to [`crate::limits::INVITATION_MS_MAX`].
    pub for_ms: u64,
}

/// An invitation. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct InvitationRow {
    /// What its secret is compared with.
    pub hash: SecretHash,
    /// Who is invited; anybody where it is `None`.
    pub node_id: Option<u64>,
    /// Good only for a node that stays a learner.
    pub is_standby: bool,
    /// Cluster clock from which on it cannot be used any more.
    pub expires_at: ClusterMillis,
    /// Wall clock at which it was made.
    pub created: WallMillis,
    /// Revision at which it was made, or used.
    pub revision: Revision,
    /// Who used it and is not a member yet.
    pub used_by: Option<NodeDisk>,
}

impl InvitationRow {
    /// Whether its time is over.
    pub fn is_over_at(&self, clock: ClusterMillis) -> bool {
        self.expires_at <= clock
    }
}

/// A node that was a member and is none any more. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RemovedRow {
    /// Wall clock of the cluster when it was removed.
    pub removed: WallMillis,
    /// Revision that the removal took.
    pub revision: Revision,
}

/// What came of a [`MembersOp`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MembersReply {
    /// The invitation is there, and good for so many milliseconds of cluster clock.
    Invited {
        /// How long.
        for_ms: u64,
    },
    /// It is removed.
    Revoked,
    /// The node may be made a member.
    Admitted,
}

/// Why a [`MembersOp`] had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MembersFault {
    /// There is no such invitation; or its secret is another, which is not told apart.
    NoInvitation,
    /// Another invitation has the id.
    InvitationExists,
    /// Its time is over.
    InvitationOver,
    /// Another node, or this one with another disk, has used it.
    InvitationUsed,
    /// It is for another node. Holds which.
    InvitationOfAnother(u64),
    /// It is for a standby, and the node is to vote.
    OnlyStandby,
    /// The node was removed, with this disk: it never comes back.
    DiskRemoved,
    /// A node of this id was removed, and the invitation does not name the id.
    IdRemoved,
}

impl MembersOp {
    /// Under what its lines of audit stand: of an invitation, or of the node that is let in.
    pub fn subject(&self) -> Key {
        match self {
            Self::Invite(NewInvitation { id, .. }) | Self::Revoke(id) => Waker::Members.of(format!("invitation/{id}")),
            Self::Admit { newcomer, .. } => newcomer.subject(),
        }
    }
}

impl NodeDisk {
    /// Under what lines of audit about it stand.
    pub fn subject(&self) -> Key {
        Waker::Members.of(format!("node/{}", self.node_id))
    }
}
