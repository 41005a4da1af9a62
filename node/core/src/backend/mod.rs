//! The seam between protocols and the node: all calls beside queries of its state.
//!
//! Owns the traits and the words that are said through them. A replica is behind them in a node; tests put a node in memory there, so that
//! every check of a protocol runs without a cluster, and without a database.

mod coordination;
mod error;
pub mod members;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_feed::Feed;
use quorate_machine::query::{Queries, ReadPosition, StateFault};
use quorate_machine::types::{Action, Command, Key, QueueName, Reply, Revision, WallMillis};

use members::{MemberReply, MemberRequest, MembersSeen};

pub use coordination::{Coordination, IsDone, LockPlace, Renewed, Renewer, Seen};
pub use error::AppError;

/// The digest of all replicated state, and where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestAt {
    /// Position it belongs to.
    pub at: ReadPosition,
    /// The digest.
    pub digest: u128,
}

/// How fresh a read has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// Sees every write acknowledged before the read began.
    #[default]
    Linearizable,
    /// The state of this node, however old.
    Local,
    /// At least this revision; waits for it.
    AtLeast(Revision),
}

/// Headers of every answer, from the node's current view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaderHint {
    /// Raft term.
    pub term: u64,
    /// The leader, if known.
    pub leader_id: Option<u64>,
}

/// The outcome of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// The node has the leader's state and serves again.
    Done,
    /// The node trusts its state: nothing was done.
    NotNeeded,
}

/// A node, shared by everything that serves its API.
pub type Node = Arc<dyn Backend>;

/// A node as its protocols see it. See `App` and `StateReader` for what each method promises.
pub trait Backend: Queries + Coordination + Send + Sync + 'static {
    /// Puts one command through the log.
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Reply, AppError>>;
    /// Whether a command does this that is known to take much work.
    fn is_dear(&self, action: &Action) -> bool;
    /// Returns once reads are as fresh as asked for.
    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> BoxFuture<'_, Result<(), AppError>>;
    /// Hands leadership over; returns who leads then.
    fn hand_over(&self, to: Option<u64>, deadline: Instant) -> BoxFuture<'_, Result<u64, AppError>>;
    /// The members as the leader knows them.
    fn members_seen(&self, deadline: Instant) -> BoxFuture<'_, Result<MembersSeen, AppError>>;
    /// Changes the members.
    fn change_members(&self, context: MemberRequest, deadline: Instant)
    -> BoxFuture<'_, Result<MemberReply, AppError>>;
    /// Waits for a change of a key after `seen`, at most `wait`; may return early.
    fn wait_key_change<'a>(&'a self, key: &'a Key, seen: Revision, wait: Duration) -> BoxFuture<'a, ()>;
    /// The feed of changes, as far as it is in memory.
    fn feed(&self) -> &Arc<Feed>;
    /// Waits until a task looks due here at or after `revision`, by a wall clock that stood at a time at an instant. False: it is
    /// `until`.
    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        revision: Revision,
        wall: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>>;
    /// Evaluates a command without effect.
    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault>;
    /// Evaluates commands one after the other without effect, each seeing what those before it would do. May take long: runs
    /// on a blocking thread.
    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault>;
    /// Writes a backup of the state as of now; `begun` is told its revision before the first byte. Blocks for as long as the
    /// sink does: runs on a blocking thread.
    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> io::Result<()>;
    /// The state's digest.
    fn digest(&self) -> DigestAt;
    /// Where a read would be evaluated now.
    fn position(&self) -> ReadPosition;
    /// Term and leader for the headers.
    fn leader_hint(&self) -> LeaderHint;
    /// Milliseconds since the leader was last heard.
    fn staleness_ms(&self) -> Option<u64>;
    /// The cluster as this node sees it.
    fn status(&self) -> StatusAnswer;
    /// The cluster's wall clock, as far as this node knows: no single machine's.
    fn wall_now(&self) -> WallMillis;
    /// Why this node does not trust its state, if so.
    fn quarantine(&self) -> Option<String>;
    /// Rebuilds the state of a member in quarantine from the leader's.
    fn repair(&self, node: u64, deadline: Instant) -> BoxFuture<'_, Result<Repaired, AppError>>;
    /// Why no traffic should be sent here, if so.
    fn unready_reason(&self) -> Option<String>;
}
