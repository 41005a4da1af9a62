//! The seam between protocols and the node: all calls beside queries of its state.
//!
//! Owns the traits and the words that are said through them: [`Node`] for what every request needs, [`Waits`] for what requests wait for,
//! [`Operations`] for what operators ask. A replica is behind them in a node; tests put a node in memory there, so that
//! every check of a protocol runs without a cluster, and without a database.

mod error;
pub mod members;
mod operations;
mod sessions;
mod waits;

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use quorate_feed::Feed;
use quorate_machine::query::{Observed, Queries, ReadPosition, StateFault};
use quorate_machine::types::{Command, Reply, Revision, SessionId, WallMillis};

pub use error::AppError;
pub use operations::{DigestAt, Operations, Repaired};
pub use sessions::{Renewed, Renewer};
pub use waits::{IsDone, LockPlace, Seen, Waits};

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

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Its answer.
    pub reply: Reply,
    /// The bytes that each node counted for it while it was applied; see
    /// [`quorate_machine::limits::BATCH_EFFECT_BYTES_MAX`]. 0 where nothing was.
    pub cost: u32,
}

/// A node, shared by everything that serves its API.
pub type SharedNode = Arc<dyn Node>;

/// A node as its protocols see it. See `App` and `StateReader` for what each method promises.
pub trait Node: Queries + Waits + Operations + Send + Sync + 'static {
    /// Puts one command through the log.
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Decision, AppError>>;
    /// Renews sessions, together with those that others renew at the same time.
    fn renew(
        &self,
        renewer: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>>;
    /// Whether a command is known to take much work.
    fn is_dear(&self, command: &Command) -> bool;
    /// Evaluates commands one after the other without effect, each seeing what those before it would do. May take long: runs
    /// on a blocking thread.
    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault>;
    /// Evaluates a command without effect.
    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault>;
    /// Returns once reads are as fresh as asked for.
    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> BoxFuture<'_, Result<(), AppError>>;
    /// The owner of each session; nothing where there is certainly none any more.
    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>>;
    /// The feed of changes, as far as it is in memory.
    fn feed(&self) -> &Arc<Feed>;
    /// Where a read would be evaluated now.
    fn position(&self) -> ReadPosition;
    /// Term and leader for the headers.
    fn leader_hint(&self) -> LeaderHint;
    /// The cluster's wall clock, as far as this node knows: no single machine's.
    fn wall_now(&self) -> WallMillis;
    /// The reason to send no traffic here, if there is one.
    fn unready_reason(&self) -> Option<String>;
}
