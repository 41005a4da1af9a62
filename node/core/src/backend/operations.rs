//! Everything that operators ask of a node: its state of health, its members, its backups.
//!
//! Owns the trait and its words.

use std::io::{self, Write};
use std::time::Instant;

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_machine::query::ReadPosition;
use quorate_machine::types::Revision;

use super::error::AppError;
use super::members::{MemberReply, MemberRequest, MembersSeen};

/// The digest of all replicated state, and where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestAt {
    /// Position it belongs to.
    pub at: ReadPosition,
    /// The digest.
    pub digest: u128,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// The node has the leader's state and serves again.
    Done,
    /// The node trusts its state: nothing was done.
    NotNeeded,
}

/// The work of operators. See `App` for what each method promises.
pub trait Operations {
    /// The cluster as this node sees it.
    fn status(&self) -> StatusAnswer;
    /// The reason why this node does not trust its state, if it does not.
    fn quarantine(&self) -> Option<String>;
    /// Milliseconds since the leader was last heard.
    fn staleness_ms(&self) -> Option<u64>;
    /// The state's digest.
    fn digest(&self) -> DigestAt;
    /// Writes a backup of the state as of now to a sink, and tells `begun` its revision before the first byte. Blocks, so call it on a
    /// blocking thread.
    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> io::Result<()>;
    /// Hands leadership over; returns who leads then.
    fn hand_over(&self, to: Option<u64>, deadline: Instant) -> BoxFuture<'_, Result<u64, AppError>>;
    /// The members as the leader knows them.
    fn members_seen(&self, deadline: Instant) -> BoxFuture<'_, Result<MembersSeen, AppError>>;
    /// Changes the members.
    fn change_members(&self, request: MemberRequest, deadline: Instant)
    -> BoxFuture<'_, Result<MemberReply, AppError>>;
    /// Rebuilds the state of a member in quarantine from the leader's.
    fn repair(&self, node: u64, deadline: Instant) -> BoxFuture<'_, Result<Repaired, AppError>>;
}
