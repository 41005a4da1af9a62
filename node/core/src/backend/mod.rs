//! The seam between protocols and the node: all calls beside queries of its state.
//!
//! Owns the trait and its implementation by the real [`App`]. Tests put a node in memory behind the same trait, so that every check
//! of the HTTP layer runs without a cluster.

mod coordination;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_feed::Feed;
use quorate_machine::query::{KeyRead, ListQuery, Queries, ReadPosition, StateFault};
use quorate_machine::types::{Action, Command, Entry, Key, QueueName, Reply, Revision, WallMillis};
use quorate_store::backup::{BackupEnd, BackupError};

use crate::app::backup::BackupFor;
use crate::app::integrity::Repaired;
use crate::app::{App, AppError, Consistency, LeaderHint};
use crate::peer::members::{MemberReply, MemberRequest, MembersSeen};

pub use coordination::{Coordination, IsDone, Seen};

/// The digest of all replicated state, and where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestAt {
    /// Position it belongs to.
    pub at: ReadPosition,
    /// The digest.
    pub digest: u128,
}

/// A node, shared by everything that serves its API.
pub type Node = Arc<dyn Backend>;

/// A node as its HTTP API sees it. See [`App`] and `StateReader` for what each method promises.
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
    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> Result<BackupEnd, BackupError>;
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

macro_rules! of_state {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Queries for App {
            fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
                self.state().get(key)
            }

            fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
                self.state().count(query)
            }

            fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
                self.state().version(key, revision)
            }

            fn access_revision(&self) -> Revision {
                self.state().access_revision()
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    self.state().$name($($argument),*)
                }
            )*
        }
    };
}

quorate_machine::each_query!(of_state);

impl Backend for App {
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Reply, AppError>> {
        Box::pin(App::write(self, command, deadline))
    }

    fn is_dear(&self, action: &Action) -> bool {
        App::is_dear(self, action)
    }

    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> BoxFuture<'_, Result<(), AppError>> {
        Box::pin(App::read_barrier(self, consistency, deadline))
    }

    fn hand_over(&self, to: Option<u64>, deadline: Instant) -> BoxFuture<'_, Result<u64, AppError>> {
        Box::pin(App::hand_over(self, to, deadline))
    }

    fn members_seen(&self, deadline: Instant) -> BoxFuture<'_, Result<MembersSeen, AppError>> {
        Box::pin(App::members_seen(self, deadline))
    }

    fn change_members(
        &self,
        context: MemberRequest,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<MemberReply, AppError>> {
        Box::pin(App::change_members(self, context, deadline))
    }

    fn wait_key_change<'a>(&'a self, key: &'a Key, seen: Revision, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.state().wait_key_change(key, seen, wait))
    }

    fn feed(&self) -> &Arc<Feed> {
        self.state().feed()
    }

    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        revision: Revision,
        wall: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>> {
        Box::pin(self.state().wait_tasks(queue, revision, wall, until))
    }

    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault> {
        self.state().dry_run(command, self.wall_now())
    }

    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault> {
        self.state().rehearse(self.wall_now(), next)
    }

    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> Result<BackupEnd, BackupError> {
        let done = self.backups().back_up(BackupFor::Client, sink, begun);
        match &done {
            Ok(_) => self.backups().ledger().note_completed(BackupFor::Client),
            Err(_) => self.backups().ledger().note_failed(BackupFor::Client),
        }
        done
    }

    fn digest(&self) -> DigestAt {
        let applied = self.state().applied();
        DigestAt { at: applied.at, digest: applied.digest }
    }

    fn position(&self) -> ReadPosition {
        self.state().position()
    }

    fn leader_hint(&self) -> LeaderHint {
        self.leader_hint()
    }

    fn staleness_ms(&self) -> Option<u64> {
        self.staleness_ms()
    }

    fn status(&self) -> StatusAnswer {
        self.status()
    }

    fn wall_now(&self) -> WallMillis {
        self.wall_now()
    }

    fn quarantine(&self) -> Option<String> {
        self.quarantine()
    }

    fn repair(&self, node: u64, deadline: Instant) -> BoxFuture<'_, Result<Repaired, AppError>> {
        Box::pin(App::repair(self, node, deadline))
    }

    fn unready_reason(&self) -> Option<String> {
        self.unready_reason()
    }
}
