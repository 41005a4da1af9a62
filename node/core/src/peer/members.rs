//! What nodes say to each other about the members: the request of an operator on its way to the leader, and its answer.
//!
//! Owns the words only. Whether a request is granted, the leader's `app::members` judges.

use bincode::{Decode, Encode};

/// A question about the members.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum MemberQuestion {
    /// Who are they (leader only).
    List,
    /// Change them (leader only). Idempotent.
    Change {
        /// What is wanted.
        ask: MemberRequest,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Let another node lead (leader only).
    HandOver {
        /// Who; without it the best follower.
        to: Option<u64>,
        /// Milliseconds that the asker waits.
        within_ms: u64,
    },
    /// Am I one still? Whoever is asked asks the leader.
    AmI,
    /// Is that node one still? Only the leader answers.
    Is {
        /// Which.
        node_id: u64,
    },
}

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
