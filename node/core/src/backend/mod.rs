//! What the HTTP layer asks of the node.
//!
//! Owns the trait and its implementation by the real [`App`]. Tests put a fake behind the same trait, so that every check
//! of the HTTP layer runs without a cluster.

mod access;
mod coordination;
mod quotas;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_machine::query::{
    AuditPage, AuditQuery, ChangesQuery, ChangesRead, CollectionsPage, FaultsRead, FindQuery, FindRead, KeyRead,
    ListQuery, ListRead, PastRead, QueueView, QueuesPage, ReadPosition, StateFault, TasksPage, TasksQuery,
};
use quorate_store::backup::{BackupEnd, BackupError};
use quorate_store::keyspace::request::KeptReply;
use quorate_store::keyspace::task::TaskRow;
use quorate_store::rules::{CollectionName, SequenceName};
use quorate_store::state::Feed;
use quorate_store::types::{
    CollectionRow, Command, Entry, Key, QueueName, Reply, RequestId, Revision, TaskId, WallMillis,
};

use crate::app::backup::BackupFor;
use crate::app::integrity::Repaired;
use crate::app::{App, AppError, Consistency, LeaderHint};
use crate::peer::members::{MemberReply, MemberRequest, MembersSeen};

pub use access::Access;
pub use coordination::{Coordination, IsDone, Seen};
pub use quotas::Quotas;

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
pub trait Backend: Access + Coordination + Quotas + Send + Sync + 'static {
    /// Puts one command through the log.
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Reply, AppError>>;
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
    /// Reads one key.
    fn get(&self, key: &Key) -> Result<KeyRead, StateFault>;
    /// Reads one key in the past.
    fn get_at(&self, key: &Key, revision: Revision) -> Result<PastRead, StateFault>;
    /// Lists a range. May take long: runs on a blocking thread.
    fn list(&self, query: &ListQuery) -> Result<ListRead, StateFault>;
    /// Counts a range. May take long: runs on a blocking thread.
    fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault>;
    /// Finds entries. May take long: runs on a blocking thread.
    fn find(&self, query: &FindQuery) -> Result<FindRead, StateFault>;
    /// The feed of changes, as far as it is in memory.
    fn feed(&self) -> &Arc<Feed>;
    /// Reads the feed of changes from disk. May take long: runs on a blocking thread.
    fn changes(&self, query: &ChangesQuery) -> Result<ChangesRead, StateFault>;
    /// The version that a key got at a revision, if it can still be read.
    fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault>;
    /// Reads the collection that all keys with this prefix belong to.
    fn collection_over(&self, prefix: &[u8]) -> Result<Option<CollectionRow>, StateFault>;
    /// Reads a collection.
    fn collection(&self, name: &CollectionName) -> Result<(ReadPosition, Option<CollectionRow>), StateFault>;
    /// Lists collections after a name. May take long: runs on a blocking thread.
    fn collections(
        &self,
        after: Option<&CollectionName>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<CollectionsPage, StateFault>;
    /// The last number that a sequence gave.
    fn last_number(&self, name: &SequenceName) -> Result<(ReadPosition, u64), StateFault>;
    /// Reads a task.
    fn task(&self, queue: &QueueName, id: &TaskId) -> Result<(ReadPosition, Option<TaskRow>), StateFault>;
    /// Lists tasks. May take long: runs on a blocking thread.
    fn tasks(&self, query: &TasksQuery) -> Result<TasksPage, StateFault>;
    /// Reads a queue.
    fn queue(&self, name: &QueueName) -> Result<(ReadPosition, QueueView), StateFault>;
    /// Lists queues after a name. May take long: runs on a blocking thread.
    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Result<QueuesPage, StateFault>;
    /// Waits until a task looks due here at or after `revision`, by a wall clock that stood at a time at an instant. False: it is
    /// `until`.
    fn wait_tasks<'a>(
        &'a self,
        queue: &'a QueueName,
        revision: Revision,
        wall: (WallMillis, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>>;
    /// Reads the audit trail of a key. May take long: runs on a blocking thread.
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StateFault>;
    /// The kept answer of a request id of `owner`, and who asked.
    fn request(&self, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), StateFault>;
    /// Who has a kept answer under this request id: at most `limit` names.
    fn request_owners(&self, id: &RequestId, limit: usize) -> Result<Vec<String>, StateFault>;
    /// Evaluates a command without effect.
    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault>;
    /// Evaluates commands one after the other without effect, each seeing what those before it would do. May take long: runs
    /// on a blocking thread.
    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault>;
    /// Writes a backup of the state as of now; `begun` is told its revision before the first byte. Blocks for as long as the
    /// sink does: runs on a blocking thread.
    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> Result<BackupEnd, BackupError>;
    /// What was contained.
    fn faults(&self) -> Result<FaultsRead, StateFault>;
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

impl Backend for App {
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Reply, AppError>> {
        Box::pin(App::write(self, command, deadline))
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

    fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
        self.state().get(key)
    }

    fn get_at(&self, key: &Key, revision: Revision) -> Result<PastRead, StateFault> {
        self.state().get_at(key, revision)
    }

    fn list(&self, query: &ListQuery) -> Result<ListRead, StateFault> {
        self.state().list(query)
    }

    fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
        self.state().count(query)
    }

    fn find(&self, query: &FindQuery) -> Result<FindRead, StateFault> {
        self.state().find(query)
    }

    fn feed(&self) -> &Arc<Feed> {
        self.state().feed()
    }

    fn changes(&self, query: &ChangesQuery) -> Result<ChangesRead, StateFault> {
        self.state().changes(query)
    }

    fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
        self.state().version(key, revision)
    }

    fn collection_over(&self, prefix: &[u8]) -> Result<Option<CollectionRow>, StateFault> {
        self.state().collection_over(prefix)
    }

    fn collection(&self, name: &CollectionName) -> Result<(ReadPosition, Option<CollectionRow>), StateFault> {
        self.state().collection(name)
    }

    fn collections(
        &self,
        after: Option<&CollectionName>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<CollectionsPage, StateFault> {
        self.state().collections(after, limit, bytes_max)
    }

    fn last_number(&self, name: &SequenceName) -> Result<(ReadPosition, u64), StateFault> {
        self.state().last_number(name)
    }

    fn task(&self, queue: &QueueName, id: &TaskId) -> Result<(ReadPosition, Option<TaskRow>), StateFault> {
        self.state().task(queue, id)
    }

    fn tasks(&self, query: &TasksQuery) -> Result<TasksPage, StateFault> {
        self.state().tasks(query)
    }

    fn queue(&self, name: &QueueName) -> Result<(ReadPosition, QueueView), StateFault> {
        self.state().queue(name)
    }

    fn queues(&self, after: Option<&QueueName>, limit: usize) -> Result<QueuesPage, StateFault> {
        self.state().queues(after, limit)
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

    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StateFault> {
        self.state().audit(query)
    }

    fn request(&self, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), StateFault> {
        self.state().request(owner, id)
    }

    fn request_owners(&self, id: &RequestId, limit: usize) -> Result<Vec<String>, StateFault> {
        self.state().request_owners(id, limit)
    }

    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault> {
        self.state().dry_run(command, self.wall_now())
    }

    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault> {
        self.state().rehearse(self.wall_now(), next)
    }

    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> Result<BackupEnd, BackupError> {
        let done = self.back_up(BackupFor::Client, sink, begun);
        match &done {
            Ok(_) => self.backups().note_completed(BackupFor::Client),
            Err(_) => self.backups().note_failed(BackupFor::Client),
        }
        done
    }

    fn faults(&self) -> Result<FaultsRead, StateFault> {
        self.state().faults()
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
