//! Messages between nodes beside Raft's own. bincode through `quorate_machine::codec`.
//!
//! Owns their form in memory and in bytes. Never keeps a thread that others share over a large one.

use std::fmt;

use bincode::{Decode, Encode};
use quorate_machine::codec::{self, CodecError};
use quorate_machine::level::Level;
use quorate_machine::types::{Key, NodeDisk, Reply, WallMillis};
use quorate_node_core::backend::members::{MemberReply, MembersSeen};
use quorate_store::raft::wire::{MemberRecord, MembershipRecord};
use quorate_threads::background;

use super::members::MemberQuestion;

/// Bytes of what has no values, roughly.
const PLAIN: usize = 128;

/// A question from one node to another.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PeerRequest {
    /// Who are you? The only question that may be asked before both are of one cluster.
    Hello,
    /// Become part of this cluster: record its id durably. Idempotent; refused under another id.
    Adopt {
        /// The cluster.
        cluster_id: u128,
    },
    /// Add me to your cluster (leader only).
    Join {
        /// The node that asks.
        node_id: u64,
        /// How to reach it, and its disk.
        member: MemberRecord,
        /// It is to stay a learner.
        as_standby: bool,
        /// The text of the invitation that it was given, with its secret.
        invitation: Option<Invitation>,
    },
    /// A log index that a linearizable read has to wait for (leader only).
    ReadIndex,
    /// Encoded commands to put into the log, each under a request id or made by a node that will not retry it (leader only).
    Forward {
        /// The commands.
        commands: Vec<Forwarded>,
        /// They go before all that are not.
        is_urgent: bool,
    },
    /// Digests of the state by log index.
    Digests,
    /// Rebuild the state of a member in quarantine from yours (leader only).
    Repair {
        /// The member.
        node_id: u64,
    },
    /// Your state is about to be replaced: take no more entries. Idempotent, and to be said again now and then.
    BeginRepair,
    /// That is over: take entries again, and trust your state if it was replaced.
    EndRepair,
    /// Something about the members.
    Members(MemberQuestion),
    /// Whether it is the turn of somebody who waits to lock an entry; waits for that (leader only). The place in the queue is taken by
    /// the first question, and kept for a moment after each.
    LockTurn {
        /// The entry.
        key: Key,
        /// The place.
        place: u128,
        /// Milliseconds to wait.
        hold_ms: u32,
    },
    /// Nobody waits at this place any more.
    LeaveLockQueue {
        /// The entry.
        key: Key,
        /// The place.
        place: u128,
    },
    /// Whether a node is a member with this disk as far as you know. No leader is asked.
    Knows(NodeDisk),
    /// How much room your data disk has.
    Room,
    /// What your wall clock shows.
    Wall,
    /// How far back your log goes, and where you archive.
    Archive,
}

impl PeerRequest {
    /// Encodes it for a peer, which calls [`Self::decode`].
    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = match self {
            Self::Forward { commands, .. } => commands.iter().map(|one| PLAIN + one.command.len()).sum(),
            _ => PLAIN,
        };
        background::copy_in_place(bytes, || codec::encode_sized(self, bytes))
    }

    /// Reverses [`Self::encode`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        background::copy_in_place(bytes.len(), || codec::decode(bytes))
    }
}

/// The text of an invitation.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Invitation(pub String);

/// Silent, so that no log line has it by accident.
impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invitation(..)")
    }
}

/// A command that a node sends on to the leader.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Forwarded {
    /// As of `command_codec::encode_command`.
    pub command: Vec<u8>,
    /// Milliseconds after which nobody waits for it any more: it is not to be put into the log then.
    pub within_ms: u32,
}

/// How far a node is in becoming a member.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HelloAnswer {
    /// The answering node.
    pub node_id: u64,
    /// Its addresses and disk.
    pub member: MemberRecord,
    /// Its cluster, once adopted.
    pub cluster_id: Option<u128>,
    /// The membership in its state or log, once Raft was initialized.
    pub membership: Option<MembershipRecord>,
    /// The highest feature level that it agrees to.
    pub level_known: Level,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PeerResponse {
    /// To [`PeerRequest::Hello`].
    Hello(HelloAnswer),
    /// Done: to [`PeerRequest::Adopt`] and [`PeerRequest::Join`].
    Done,
    /// To [`PeerRequest::ReadIndex`].
    ReadIndex {
        /// The log index to wait for before reading.
        index: u64,
    },
    /// To [`PeerRequest::Forward`]: one for each command.
    Forwarded {
        /// In the order of the commands.
        outcomes: Vec<ProposalOutcome>,
    },
    /// To [`PeerRequest::Digests`].
    Digests {
        /// Log index and digest there, of late.
        points: Vec<(u64, u128)>,
        /// Whether the node trusts its state.
        trust: StateTrust,
    },
    /// To [`PeerRequest::BeginRepair`].
    RepairBegun {
        /// Last log index of the node.
        last_index: u64,
    },
    /// The state is trusted: to [`PeerRequest::BeginRepair`] and [`PeerRequest::Repair`].
    NotNeeded,
    /// I am not the leader; nothing was done.
    NotLeader {
        /// Who is, as far as I know.
        leader: Option<u64>,
    },
    /// Not now, but soon: to [`PeerRequest::Join`] and [`MemberQuestion::Change`].
    TryAgain,
    /// No, and why; nothing was done.
    Refused {
        /// A sentence for people.
        reason: String,
    },
    /// To [`MemberQuestion::List`].
    Members(MembersSeen),
    /// To [`MemberQuestion::Change`].
    MembersChanged(MemberReply),
    /// To [`MemberQuestion::HandOver`]: not now, and why; nothing was done.
    NotReady {
        /// A sentence for people.
        reason: String,
    },
    /// To [`MemberQuestion::HandOver`]: who leads now.
    Leads {
        /// Its id.
        leader: u64,
    },
    /// To [`MemberQuestion::AmI`] and [`MemberQuestion::Is`], by a leader that a quorum has just confirmed; and to
    /// [`PeerRequest::Join`], by such a leader, where who asks was removed with its disk.
    Membership {
        /// Whether it is one.
        is_member: bool,
    },
    /// To [`PeerRequest::LockTurn`].
    Turn {
        /// Whether it is the turn of the place; else it waits on.
        has_come: bool,
    },
    /// To [`PeerRequest::Join`]: not without an invitation, or not with this one, and why.
    NotInvited {
        /// A sentence for people.
        reason: String,
    },
    /// To [`PeerRequest::Knows`].
    Known {
        /// Whether it is one.
        is_member: bool,
    },
    /// To [`PeerRequest::Join`]: not under this id, which was removed, and why.
    IdRemoved {
        /// A sentence for people.
        reason: String,
    },
    /// To [`PeerRequest::Room`].
    Room(DiskRoom),
    /// To [`PeerRequest::Wall`].
    Wall {
        /// Unix milliseconds.
        wall: WallMillis,
    },
    /// To [`PeerRequest::Archive`].
    Archive(ArchiveStanding),
    /// To [`PeerRequest::Join`]: not under this id, which is that of a member with another disk, and why.
    IdTaken {
        /// A sentence for people.
        reason: String,
    },
}

impl PeerResponse {
    /// Encodes it for a peer, which calls [`Self::decode`].
    pub(super) fn encode(&self) -> Vec<u8> {
        let bytes = match self {
            Self::Forwarded { outcomes } => outcomes.iter().map(ProposalOutcome::bytes).sum(),
            _ => PLAIN,
        };
        background::copy_in_place(bytes, || codec::encode_sized(self, bytes))
    }

    /// Reverses [`Self::encode`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        background::copy_in_place(bytes.len(), || codec::decode(bytes))
    }
}

/// What a node knows and has of what is archived.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ArchiveStanding {
    /// The first entry of its log.
    pub log_from: u64,
    /// Where it archives, as it was configured, once it has found the place.
    pub location: Option<String>,
}

/// What a node thinks of its own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum StateTrust {
    /// It serves it.
    Trusted,
    /// Others hold something else, and no majority has said who is right.
    Undecided,
    /// A majority holds something else.
    Contradicted,
}

/// How much room a data disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DiskRoom {
    /// Free bytes.
    pub free: u64,
    /// Free bytes below which the node takes nothing that grows the state.
    pub needed: u64,
}

impl DiskRoom {
    /// Whether it is too little.
    pub fn is_low(self) -> bool {
        self.free < self.needed
    }
}

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ProposalOutcome {
    /// It was decided.
    Decided {
        /// Its answer.
        reply: Reply,
        /// The bytes that were counted for it while it was applied.
        cost: u32,
    },
    /// It was not put into the log and never will be by this try.
    NotProposed,
    /// It was put into a log and may or may not be committed.
    Unknown,
    /// It was not put into the log, and will not be before the leader has more room.
    NoSpace {
        /// The leader.
        node_id: u64,
        /// What it lacks.
        lack: Lack,
    },
    /// It was not decided, and never will be by this try: it is much work, for which all that came with it would wait. It is to come again by
    /// itself.
    Dear,
}

impl ProposalOutcome {
    /// Roughly the bytes that it takes in an answer.
    pub fn bytes(&self) -> usize {
        let Self::Decided { reply, .. } = self else { return PLAIN };
        let outcome = &reply.outcome;
        PLAIN * (1 + outcome.parts()) + outcome.value_bytes() + outcome.detail_bytes()
    }
}

/// Why a node takes nothing that grows the state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Lack {
    /// Its data disk is nearly full.
    Disk {
        /// Free bytes on it.
        free: u64,
        /// Free bytes that writes need.
        needed: u64,
    },
    /// The state is as large as it may be.
    Quota {
        /// Bytes that it has.
        used: u64,
        /// Bytes that it may have.
        quota: u64,
    },
    /// The data disks of other members are nearly full, and without them there is no quorum.
    Members {
        /// Those members.
        full: Vec<(u64, DiskRoom)>,
    },
}
