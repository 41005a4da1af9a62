//! The members as operators see and change them: a request on its way to the leader, and its answer.
//!
//! Owns the words only. Nodes send them to each other as they are. Whether a request is granted, the leader judges.

use bincode::{Decode, Encode};
use quorate_machine::types::MembersFault;

/// A change of the members that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MemberRequest {
    /// What is wanted.
    pub change: MemberChange,
    /// Only say what it would come to.
    pub dry_run: bool,
    /// Do it also where it is only unwise.
    pub force: bool,
}

/// What can be wanted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MemberChange {
    /// Take in a node as a learner.
    Add {
        /// Its id.
        id: u64,
        /// Where it listens for peers.
        peer_addr: String,
        /// Give it a vote once it caught up.
        promote: bool,
    },
    /// Give a learner a vote.
    Promote {
        /// Which.
        id: u64,
    },
    /// Make a voter a learner.
    Demote {
        /// Which.
        id: u64,
    },
    /// Let a member go.
    Remove {
        /// Which.
        id: u64,
    },
    /// Let a learner vote in place of a voter, which goes.
    Replace {
        /// Who goes.
        old: u64,
        /// Who votes instead.
        new: u64,
    },
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MemberReply {
    /// Whether anything was to be done.
    pub changed: bool,
    /// What it means, sentences for people.
    pub explanation: Vec<String>,
    /// Who votes now, or would after a dry run.
    pub voters: Vec<u64>,
    /// Who is a member without a vote then.
    pub learners: Vec<u64>,
}

/// The members as their leader knows them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MembersSeen {
    /// Who knows it.
    pub leader: u64,
    /// Whether a change is under way.
    pub changing: bool,
    /// Voters that are a majority.
    pub majority: u64,
    /// What the voters can lose, a sentence for people.
    pub prospect: String,
    /// By id.
    pub members: Vec<MemberSeen>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct MemberSeen {
    /// Its id.
    pub id: u64,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Whether it votes.
    pub votes: bool,
    /// Whether it answered lately.
    pub is_heard: bool,
    /// Entries that it is behind.
    pub lag: u64,
    /// Milliseconds since it last answered; `None` for never since this leader leads.
    pub last_contact_ms: Option<u64>,
}

/// The fault of a list of newcomers, for people.
pub fn explain_members(fault: MembersFault) -> String {
    match fault {
        MembersFault::NoInvitation => "there is no such invitation; it may have been used or revoked".to_owned(),
        MembersFault::InvitationExists => "there is an invitation with this id; ask for another".to_owned(),
        MembersFault::InvitationOver => "the time of the invitation is over; make another".to_owned(),
        MembersFault::InvitationUsed => {
            "another node has used the invitation, or this one with another disk".to_owned()
        }
        MembersFault::InvitationOfAnother(id) => format!("the invitation is for node {id}"),
        MembersFault::OnlyStandby => {
            "the invitation is for a standby: start the node with --standby, or invite it as a voter".to_owned()
        }
        MembersFault::DiskRemoved => "the node was removed with this disk, which never comes back".to_owned(),
        MembersFault::IdRemoved => {
            "a node of this id was removed; only an invitation that names the id lets it in".to_owned()
        }
    }
}
