//! A node without a cluster: remembers what it was asked, and fails on demand.

mod access;
mod coordination;
pub mod surroundings;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_machine::document::Criteria;
use quorate_machine::keyspace::audit::{AuditEffect, AuditLine, AuditOp, Refusal};
use quorate_machine::keyspace::changes::{Cause, KeyChange, ValueChange};
use quorate_machine::keyspace::entry::EntryRow;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::task::{QueueRow, TaskRow};
use quorate_machine::query::{
    AuditFound, AuditPage, AuditQuery, ChangesPage, ChangesQuery, ChangesRead, CollectionsPage, FaultsRead,
    FeedPosition, FindMoment, FindPin, FindQuery, FindRead, Finder, FullChange, KeyRead, ListPage, ListQuery, ListRead,
    PastRead, Queries, QueueView, QueuesPage, ReadPosition, StateFault, TasksPage, TasksQuery,
};
use quorate_machine::rules::{CollectionName, SequenceName};
use quorate_machine::types::{
    Action, BulkItem, Change, CollectionRow, Command, Entry, EntryMeta, Expect, Expiry, ItemOutcome, Key, Outcome,
    QueueName, Rejection, Reply, RequestId, Revision, Shown, TaskId, TaskReply, Value, WallMillis, WriteOp, Written,
};
use quorate_node_core::app::integrity::Repaired;
use quorate_node_core::app::{AppError, Consistency, LeaderHint};
use quorate_node_core::backend::{Backend, DigestAt};
use quorate_node_core::millis::wall_now;
use quorate_node_core::peer::members::{MemberReply, MemberRequest, MembersSeen};
use quorate_store::backup::{BackupEnd, BackupError};
use quorate_store::state::{ChangeSet, Feed};
use tokio::sync::Notify;

/// The wall clock of every position.
pub const WALL: u64 = 1_700_000_000_000;

#[derive(Clone)]
pub struct Fake {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    feed: Arc<Feed>,
}

/// A change of who is admitted that this node has not heard of yet.
type News = Box<dyn FnOnce(&mut access::Admitted) + Send>;

#[derive(Default)]
struct State {
    versions: BTreeMap<Vec<u8>, Vec<(u64, Option<Entry>)>>,
    revision: u64,
    oldest_revision: u64,
    commands: Vec<Command>,
    replies: BTreeMap<String, Reply>,
    barriers: Vec<Consistency>,
    /// Keys whose writes wait.
    held: Vec<Vec<u8>>,
    write_error: Option<AppError>,
    /// What the next commands that are not writes of one entry come to.
    outcomes: VecDeque<Outcome>,
    coordinated: coordination::Coordinated,
    admitted: access::Admitted,
    /// Each change of a value.
    log: Vec<KeyChange>,
    /// How many of them were told.
    told: usize,
    /// How many pieces a backup has.
    backup_pieces: usize,
    /// On which thread each read of entries was done.
    readers: Vec<ThreadId>,
    /// What was contained.
    contained: FaultsRead,
    /// Whether nobody can say how far this node is behind.
    lacks_leader: bool,
    /// The change of users and roles that it hears of once it asks how far it is behind.
    news: Option<News>,
    /// Commands of which nobody said what comes of them are refused.
    refuses_unscripted: bool,
}

impl Fake {
    pub fn new() -> Self {
        let state = State { revision: 1, oldest_revision: 1, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()), feed: Feed::new(1, 1 << 20) }
    }

    /// From now on a backup has so many pieces of 64 KiB.
    pub fn set_backup_pieces(&self, pieces: usize) {
        self.with(|state| state.backup_pieces = pieces);
    }

    /// From now on commands of which no test said what comes of them are refused, instead of ending the test.
    #[allow(dead_code, reason = "for requests that nobody wrote, in cluster-tests/src/parsers")]
    pub fn answer_unscripted(&self) {
        self.with(|state| state.refuses_unscripted = true);
    }

    /// From now on there is nobody to ask how far this node is behind.
    #[allow(dead_code, reason = "for one of the programs that this is part of")]
    pub fn lose_leader(&self) {
        self.with(|state| state.lacks_leader = true);
    }

    /// On which thread each read of entries was done, of one or of many.
    pub fn readers(&self) -> Vec<ThreadId> {
        self.with(|state| state.readers.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().expect("no test panics while it holds the state"))
    }

    /// Every command that reached the backend.
    pub fn commands(&self) -> Vec<Command> {
        self.with(|state| state.commands.clone())
    }

    /// From now on it was asked nothing yet.
    pub fn forget_commands(&self) {
        self.with(|state| state.commands.clear());
    }

    pub fn barriers(&self) -> Vec<Consistency> {
        self.with(|state| state.barriers.clone())
    }

    /// Lets writes of this key come and not end.
    pub fn hold(&self, key: &str) {
        self.with(|state| state.held.push(key.as_bytes().to_vec()));
    }

    /// Lets them end.
    pub fn release(&self, key: &str) {
        self.with(|state| state.held.retain(|held| held != key.as_bytes()));
        self.changed.notify_waiters();
    }

    async fn pass(&self, command: &Command) {
        let Action::Write(op) = &command.action else { return };
        loop {
            let changed = self.changed.notified();
            if !self.with(|state| state.held.iter().any(|held| held == op.key.as_bytes())) {
                return;
            }
            changed.await;
        }
    }

    pub fn fail_writes(&self, error: AppError) {
        self.with(|state| state.write_error = Some(error));
    }

    /// What the next command that is not a write of one entry comes to, or would come to.
    pub fn come_to(&self, outcome: Outcome) {
        self.with(|state| state.outcomes.push_back(outcome));
        self.changed.notify_waiters();
    }

    /// From now on this was contained.
    pub fn have_contained(&self, contained: FaultsRead) {
        self.with(|state| state.contained = contained);
    }

    /// Tells those who watch what they were not told yet.
    fn tell(&self) {
        let (changes, at) = self.with(|state| {
            let changes = state.log[state.told..].to_vec();
            state.told = state.log.len();
            (changes, state.at())
        });
        let before = changes.first().map_or(at.revision, |change| change.revision - 1);
        let names = Default::default();
        self.feed.tell(ChangeSet { changes, names: &names, before, after: at.revision, oldest: at.oldest_revision });
        self.changed.notify_waiters();
    }

    /// Puts an entry there without a command.
    pub fn seed(&self, key: &str, value: Value) -> u64 {
        let key = Key::new(key).expect("a key");
        self.with(|state| {
            state.apply(&WriteOp {
                key,
                expect: Expect::Any,
                condition: Criteria::default(),
                change: Change::Upsert(value),
                expiry: Expiry::Never,
                return_previous: false,
                session: None,
                guard: None,
            })
        });
        self.tell();
        self.with(|state| state.revision)
    }
}

impl State {
    /// One line for each command about the key.
    fn audit(&self, query: &AuditQuery) -> Vec<AuditFound> {
        let about = |command: &&Command| matches!(&command.action, Action::Write(op) if op.key == query.key);
        let line = |command: &Command| AuditFound {
            index: 7,
            wall: WALL,
            line: AuditLine {
                revision: 3,
                op: AuditOp::Upsert,
                key: Some(query.key.clone()),
                request_id: command.request_id.clone(),
                principal: command.principal.clone(),
                effect: AuditEffect::Refused(Refusal::CasMismatch),
            },
        };
        self.commands.iter().filter(about).map(line).collect()
    }

    fn at(&self) -> ReadPosition {
        ReadPosition {
            index: self.revision + 100,
            revision: self.revision,
            clock: 1_000,
            oldest_revision: self.oldest_revision,
        }
    }

    fn entry_at(&self, key: &[u8], revision: u64) -> Option<Entry> {
        let versions = self.versions.get(key)?;
        versions.iter().rev().find(|(since, _)| *since <= revision)?.1.clone()
    }

    fn reply(&self, outcome: Outcome) -> Reply {
        let at = self.at();
        Reply { index: at.index, revision: at.revision, clock: at.clock, replayed: false, outcome }
    }

    /// A few rules of the real machine, enough to see that the HTTP layer asks for the right thing.
    fn judge(&self, op: &WriteOp) -> Result<Option<Entry>, Box<Rejection>> {
        let current = self.entry_at(op.key.as_bytes(), u64::MAX);
        let needs_entry = !matches!(op.change, Change::Insert(_) | Change::Upsert(_));
        match (&op.expect, &current) {
            (_, None) if needs_entry => return Err(Box::new(Rejection::NotFound)),
            (Expect::Absent, Some(entry)) => {
                return Err(Box::new(Rejection::AlreadyExists { current: Shown::Whole(entry.clone()) }));
            }
            (&Expect::Cas(expected), entry) if entry.as_ref().map(|entry| entry.meta.cas) != Some(expected) => {
                return Err(Box::new(Rejection::CasMismatch {
                    expected: Some(expected),
                    current: current.map(Shown::Whole),
                }));
            }
            (Expect::AnyOf(list), Some(entry)) if !list.contains(&entry.meta.cas) => {
                return Err(Box::new(Rejection::CasMismatch { expected: None, current: current.map(Shown::Whole) }));
            }
            (Expect::NoneOf(list), Some(entry)) if list.contains(&entry.meta.cas) => {
                return Err(Box::new(Rejection::CasListed { current: Shown::Whole(entry.clone()) }));
            }
            (Expect::Present, None) => return Err(Box::new(Rejection::NotFound)),
            _ => {}
        }
        match (&op.change, current) {
            (Change::Lock(_), Some(current)) if current.meta.is_locked_at(self.at().clock) => {
                Err(Box::new(Rejection::Locked { current: Shown::Whole(current) }))
            }
            (Change::Insert(_), Some(current)) => {
                Err(Box::new(Rejection::AlreadyExists { current: Shown::Whole(current) }))
            }
            (Change::Insert(_) | Change::Upsert(_), current) => Ok(current),
            (_, None) => Err(Box::new(Rejection::NotFound)),
            (_, current) => Ok(current),
        }
    }

    fn execute(&mut self, action: &Action) -> Reply {
        let is_scripted = match action {
            Action::Write(_) | Action::Bulk(_) => true,
            _ => !self.outcomes.is_empty(),
        };
        if self.refuses_unscripted && !is_scripted {
            return self.reply(Outcome::Rejected(Rejection::NotFound));
        }
        match action {
            Action::Write(op) => self.apply(op),
            Action::Bulk(ops) => {
                let items = ops.iter().map(|op| self.item(op)).collect();
                self.reply(Outcome::Bulk(items))
            }
            other => {
                let outcome =
                    self.outcomes.pop_front().unwrap_or_else(|| panic!("nobody said what comes of {other:?}"));
                self.reply(outcome)
            }
        }
    }

    fn item(&mut self, op: &WriteOp) -> BulkItem {
        let outcome = match self.apply(op).outcome {
            Outcome::Written(written) => ItemOutcome::Written(written),
            Outcome::Rejected(rejection) => ItemOutcome::Rejected(rejection),
            _ => ItemOutcome::Deferred,
        };
        BulkItem { revision: self.revision, outcome }
    }

    fn apply(&mut self, op: &WriteOp) -> Reply {
        let previous = match self.judge(op) {
            Ok(previous) => previous,
            Err(rejection) => return self.reply(Outcome::Rejected(*rejection)),
        };
        self.revision += 1;
        let value = match &op.change {
            Change::Insert(value) | Change::Upsert(value) | Change::Replace(value) => Some(value.clone()),
            Change::Remove => None,
            _ => previous.as_ref().map(|entry| entry.value.clone()),
        };
        let before = previous.as_ref().map(|entry| entry.meta);
        let expires_at = match op.expiry {
            Expiry::Keep => before.and_then(|meta| meta.expires_at),
            Expiry::Never | Expiry::Usual => None,
            Expiry::After(ttl) => Some(self.at().clock + ttl),
        };
        let meta = EntryMeta {
            create_revision: before.map_or(self.revision, |meta| meta.create_revision),
            mod_revision: self.revision,
            version: before.map_or(1, |meta| meta.version + 1),
            cas: self.revision,
            expires_at,
            locked_until: match op.change {
                Change::Lock(ms) | Change::Extend(ms) => Some(self.at().clock + ms),
                _ => None,
            },
            session: None,
        };
        let entry = value.map(|value| Entry { meta, value });
        let meta = entry.as_ref().map(|entry| entry.meta);
        let cause = if meta.is_some() { Cause::Written } else { Cause::Removed };
        let (previous_revision, clock) = (before.map(|meta| meta.mod_revision), self.at().clock);
        let value =
            ValueChange { index: 0, of: 1, cause, locks: false, previous: previous_revision, clock, wall: WALL };
        self.log.push(KeyChange { key: op.key.clone(), revision: self.revision, value: Some(value) });
        self.versions.entry(op.key.as_bytes().to_vec()).or_default().push((self.revision, entry));
        let previous = previous.filter(|_| op.return_previous).map(Shown::Whole);
        self.reply(Outcome::Written(Written { meta, previous }))
    }
}

/// Queries.
impl Fake {
    pub fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
        Ok(self.with(|state| {
            state.readers.push(thread::current().id());
            KeyRead { at: state.at(), entry: state.entry_at(key.as_bytes(), u64::MAX) }
        }))
    }

    pub fn get_at(&self, key: &Key, revision: u64) -> Result<PastRead, StateFault> {
        Ok(self.with(|state| {
            state.readers.push(thread::current().id());
            match state.at() {
                at if revision < at.oldest_revision => PastRead::Compacted(at),
                at if revision > at.revision => PastRead::Future(at),
                at => PastRead::Found(KeyRead { at, entry: state.entry_at(key.as_bytes(), revision) }),
            }
        }))
    }

    pub fn list(&self, query: &ListQuery) -> Result<ListRead, StateFault> {
        self.with(|state| {
            state.readers.push(thread::current().id());
            let mut at = state.at();
            let revision = query.revision.unwrap_or(at.revision);
            if revision < at.oldest_revision {
                return Ok(ListRead::Compacted(at));
            }
            if revision > at.revision {
                return Ok(ListRead::Future(at));
            }
            at.revision = revision;
            let inside = |key: &[u8]| key >= &query.start[..] && query.end.as_ref().is_none_or(|end| key < &end[..]);
            let mut found: Vec<_> = state
                .versions
                .keys()
                .filter(|key| inside(key))
                .filter_map(|key| Some((Key::new(key.clone()).ok()?, state.entry_at(key, revision)?)))
                .collect();
            if query.reverse {
                found.reverse();
            }
            let more = found.len() > query.limit;
            found.truncate(query.limit);
            Ok(ListRead::Page(ListPage { at, entries: found, more }))
        })
    }

    pub fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
        match self.list(&ListQuery { limit: usize::MAX, ..query.clone() })? {
            ListRead::Page(page) => Ok((page.at, page.entries.len() as u64)),
            other => panic!("count is asked only within what can be read: {other:?}"),
        }
    }

    pub fn find(&self, query: &FindQuery) -> Result<FindRead, StateFault> {
        let found = self.with(|state| {
            let at = state.at();
            let now = FindPin { revision: at.revision, clock: at.clock, wall: WALL };
            let pin = match query.moment {
                FindMoment::Now(_) => now,
                FindMoment::Revision(revision) => FindPin { revision, ..now },
                FindMoment::Pinned(pin) => pin,
            };
            if pin.revision < at.oldest_revision {
                return Ok(FindRead::Compacted(at));
            }
            if pin.revision > at.revision {
                return Ok(FindRead::Future(at));
            }
            let after = query.after.as_ref();
            let after_entry = after.and_then(|key| state.entry_at(key.as_bytes(), pin.revision));
            let mut finder = Finder::new(query, pin, !Finder::takes_all(query), after_entry.as_ref())?;
            let mut keys: Vec<_> = state.versions.keys().filter(|key| key.starts_with(&query.prefix)).collect();
            if Finder::is_reverse(query) {
                keys.reverse();
            }
            if let Some(after) = after.filter(|_| !Finder::takes_all(query)) {
                // A cursor may be anybody's, so its key need not be there.
                let is_behind = |key: &[u8]| {
                    if Finder::is_reverse(query) { key < after.as_bytes() } else { key > after.as_bytes() }
                };
                keys.retain(|key| is_behind(key));
            }
            for key in keys {
                let entry = state.entry_at(key, pin.revision);
                let row = entry.as_ref().map(|Entry { meta, value }| EntryRow {
                    meta: *meta,
                    key: None,
                    is_relocked: false,
                    kind: value.kind,
                    data: &value.data,
                });
                if !finder.look(key, row)? {
                    break;
                }
            }
            finder.finish(at, None)
        });
        Ok(found?)
    }

    pub fn changes(&self, query: &ChangesQuery) -> Result<ChangesRead, StateFault> {
        self.with(|state| {
            let at = state.at();
            if !query.after.is_covered_from(at.oldest_revision) {
                return Ok(ChangesRead::Compacted(at));
            }
            let mut page = ChangesPage { at, changes: Vec::new(), to: FeedPosition::after(at.revision), more: false };
            for change in &state.log {
                let value = change.value.expect("only values change here");
                let position = FeedPosition { revision: change.revision, index: value.index };
                let wanted = if value.cause.is_removal() { query.removals } else { query.writes };
                if position <= query.after || !wanted || !query.range.contains(change.key.as_bytes()) {
                    continue;
                }
                if page.changes.len() == 2 {
                    page.more = true;
                    break;
                }
                let version = |revision| state.entry_at(change.key.as_bytes(), revision);
                page.to = position;
                page.changes.push(FullChange {
                    key: change.key.clone(),
                    revision: change.revision,
                    change: value,
                    entry: version(change.revision),
                    before: value.previous.and_then(version),
                });
            }
            if !page.more {
                page.to = FeedPosition::after(at.revision);
            }
            Ok(ChangesRead::Page(page))
        })
    }

    pub fn version(&self, key: &Key, revision: u64) -> Result<Option<Entry>, StateFault> {
        Ok(self.with(|state| {
            let entry = state.entry_at(key.as_bytes(), revision)?;
            let is_kept = state
                .entry_at(key.as_bytes(), state.oldest_revision)
                .is_none_or(|old| old.meta.mod_revision <= revision);
            Some(entry).filter(|entry| is_kept && entry.meta.mod_revision == revision)
        }))
    }

    pub fn collection_over(&self, _: &[u8]) -> Result<Option<CollectionRow>, StateFault> {
        Ok(None)
    }

    pub fn collection(&self, _: &CollectionName) -> Result<(ReadPosition, Option<CollectionRow>), StateFault> {
        Ok(self.with(|state| (state.at(), None)))
    }

    pub fn collections(&self, _: Option<&CollectionName>, _: usize, _: usize) -> Result<CollectionsPage, StateFault> {
        Ok(self.with(|state| CollectionsPage { at: state.at(), collections: Vec::new(), more: false }))
    }

    pub fn last_number(&self, _: &SequenceName) -> Result<(ReadPosition, u64), StateFault> {
        Ok(self.with(|state| (state.at(), 0)))
    }

    pub fn task(&self, _: &QueueName, _: &TaskId) -> Result<(ReadPosition, Option<TaskRow>), StateFault> {
        Ok(self.with(|state| (state.at(), None)))
    }

    pub fn tasks(&self, _: &TasksQuery) -> Result<TasksPage, StateFault> {
        Ok(self.with(|state| TasksPage { at: state.at(), tasks: Vec::new(), after: None }))
    }

    pub fn queue(&self, name: &QueueName) -> Result<(ReadPosition, QueueView), StateFault> {
        let view = QueueView { name: name.clone(), row: QueueRow::default(), first_due: None };
        Ok(self.with(|state| (state.at(), view)))
    }

    pub fn queues(&self, _: Option<&QueueName>, _: usize) -> Result<QueuesPage, StateFault> {
        Ok(self.with(|state| QueuesPage { at: state.at(), queues: Vec::new(), more: false }))
    }

    pub fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StateFault> {
        Ok(self.with(|state| AuditPage { at: state.at(), lines: state.audit(query), next: None }))
    }

    pub fn request(&self, owner: &str, id: &RequestId) -> Result<(ReadPosition, Option<KeptReply>), StateFault> {
        Ok(self.with(|state| {
            let of_id = |command: &&Command| command.request_id.as_ref() == Some(id);
            let asked = state.commands.iter().find(of_id).map(|command| command.principal.clone());
            let principal = asked.unwrap_or_default();
            let reply = state.replies.get(&id.0).filter(|_| *principal == *owner).cloned();
            (state.at(), reply.map(|reply| KeptReply { fingerprint: 0, reply }))
        }))
    }

    pub fn request_owners(&self, id: &RequestId, limit: usize) -> Result<Vec<String>, StateFault> {
        let of_id = |command: &&Command| command.request_id.as_ref() == Some(id) && !command.principal.is_empty();
        Ok(self.with(|state| {
            state.commands.iter().filter(of_id).map(|command| command.principal.clone()).take(limit).collect()
        }))
    }

    pub fn faults(&self) -> Result<FaultsRead, StateFault> {
        Ok(self.with(|state| state.contained.clone()))
    }
}

macro_rules! of_fake {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Queries for Fake {
            fn get(&self, key: &Key) -> Result<KeyRead, StateFault> {
                Self::get(self, key)
            }

            fn count(&self, query: &ListQuery) -> Result<(ReadPosition, u64), StateFault> {
                Self::count(self, query)
            }

            fn version(&self, key: &Key, revision: Revision) -> Result<Option<Entry>, StateFault> {
                Self::version(self, key, revision)
            }

            fn access_revision(&self) -> Revision {
                Self::access_revision(self)
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    Self::$name(self, $($argument),*)
                }
            )*
        }
    };
}

quorate_machine::each_query!(of_fake);

impl Backend for Fake {
    fn write(&self, command: Command, _: Instant) -> BoxFuture<'_, Result<Reply, AppError>> {
        Box::pin(async move {
            self.with(|state| state.commands.push(command.clone()));
            self.pass(&command).await;
            let reply = self.with(|state| {
                if let Some(error) = state.write_error.clone() {
                    return Err(error);
                }
                let Some(RequestId(id)) = command.request_id.clone() else { return Ok(state.execute(&command.action)) };
                if let Some(kept) = state.replies.get(&id) {
                    return Ok(Reply { replayed: true, ..kept.clone() });
                }
                if command.access_revision.is_some_and(|stamp| stamp != state.admitted.revision) {
                    return Ok(state.reply(Outcome::Rejected(Rejection::AccessChanged)));
                }
                let reply = state.execute(&command.action);
                let is_kept = match &reply.outcome {
                    Outcome::Task(done) => !matches!(&**done, TaskReply::Claimed(claimed) if claimed.tasks.is_empty()),
                    _ => true,
                };
                if is_kept {
                    state.replies.insert(id, reply.clone());
                }
                Ok(reply)
            });
            self.tell();
            reply
        })
    }

    fn is_dear(&self, _: &Action) -> bool {
        false
    }

    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> BoxFuture<'_, Result<(), AppError>> {
        Box::pin(async move {
            if self.with(|state| state.lacks_leader) {
                tokio::time::sleep_until(deadline.into()).await;
                return Err(AppError::TimeoutNotProposed);
            }
            if let Some(news) = self.with(|state| state.news.take()) {
                self.admit(news);
            }
            self.with(|state| state.barriers.push(consistency));
            Ok(())
        })
    }

    fn hand_over(&self, to: Option<u64>, _: Instant) -> BoxFuture<'_, Result<u64, AppError>> {
        Box::pin(async move { Ok(to.unwrap_or(2)) })
    }

    fn members_seen(&self, _: Instant) -> BoxFuture<'_, Result<MembersSeen, AppError>> {
        Box::pin(async move { Ok(surroundings::members_seen()) })
    }

    fn change_members(&self, asked: MemberRequest, _: Instant) -> BoxFuture<'_, Result<MemberReply, AppError>> {
        Box::pin(async move { surroundings::change_members(&asked) })
    }

    fn wait_key_change<'a>(&'a self, _: &'a Key, _: u64, wait: Duration) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // Looks again now and then, for the change between the read and the wait; tests do not mind.
            let _either = tokio::time::timeout(wait.min(Duration::from_millis(20)), self.changed.notified()).await;
        })
    }

    fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    fn wait_tasks<'a>(
        &'a self,
        _: &'a QueueName,
        _: u64,
        _: (u64, Instant),
        until: Instant,
    ) -> BoxFuture<'a, Result<bool, StateFault>> {
        Box::pin(async move {
            loop {
                let changed = self.changed.notified();
                if self.with(|state| !state.outcomes.is_empty()) {
                    return Ok(true);
                }
                if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                    return Ok(false);
                }
            }
        })
    }

    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault> {
        assert_eq!(command.request_id, None, "a dry run leaves nothing behind");
        Ok(self.with(|state| {
            let kept = (state.versions.clone(), state.revision, state.log.clone());
            let reply = state.execute(&command.action);
            (state.versions, state.revision, state.log) = kept;
            reply
        }))
    }

    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault> {
        self.with(|state| {
            let kept = (state.versions.clone(), state.revision, state.log.clone());
            let mut reply = None;
            while let Some(command) = next(reply.take()) {
                assert_eq!(command.request_id, None, "a dry run leaves nothing behind");
                reply = Some(state.execute(&command.action));
            }
            (state.versions, state.revision, state.log) = kept;
        });
        Ok(())
    }

    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> Result<BackupEnd, BackupError> {
        surroundings::back_up(self.with(|state| state.backup_pieces), self.position().revision, sink, begun)
    }

    fn digest(&self) -> DigestAt {
        DigestAt { at: self.position(), digest: 0xabc }
    }

    fn position(&self) -> ReadPosition {
        self.with(|state| state.at())
    }

    fn leader_hint(&self) -> LeaderHint {
        surroundings::leader_hint()
    }

    fn staleness_ms(&self) -> Option<u64> {
        Some(15)
    }

    fn wall_now(&self) -> WallMillis {
        wall_now()
    }

    fn status(&self) -> StatusAnswer {
        surroundings::status()
    }

    fn quarantine(&self) -> Option<String> {
        None
    }

    fn repair(&self, node: u64, _: Instant) -> BoxFuture<'_, Result<Repaired, AppError>> {
        Box::pin(async move { Ok(if node == 3 { Repaired::Done } else { Repaired::NotNeeded }) })
    }

    fn unready_reason(&self) -> Option<String> {
        None
    }
}
