//! A node in memory: the real machine and its queries, and a log of one entry at a time.
//!
//! Owns the log, the state, the feed, and clocks that stand until a test moves them. `surroundings` answers for the other members; `faults`
//! makes it fail.

mod faults;
mod surroundings;
mod waits;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use quorate_api::StatusAnswer;
use quorate_feed::{ChangeSet, Feed};
use quorate_machine::command_codec;
use quorate_machine::machine::Vars;
use quorate_machine::memory::MemoryState;
use quorate_machine::query::{Observed, Queries, ReadPosition, StateFault};
use quorate_machine::types::{
    Action, Batch, Change, Command, Expiry, Key, Maintenance, Outcome, Reply, Revision, SessionId, SessionOp,
    SessionReply, Step, Txn, Value, WallMillis, WriteOp,
};
use quorate_node_core::backend::members::{MemberReply, MemberRequest, MembersSeen};
use quorate_node_core::backend::{
    AppError, Consistency, Decision, DigestAt, LeaderHint, Node, Operations, Renewed, Renewer, Repaired,
};
use quorate_node_core::limits::DEAR_BYTES;
use tokio::sync::Notify;

use faults::Faults;

/// The wall clock at the start.
pub const WALL: WallMillis = 1_700_000_000_000;
/// The cluster clock at the start.
pub const CLOCK: u64 = 1_000;
/// The log index before the first command: 100 more than the revision, as long as each command takes one.
const INDEX: u64 = 101;
/// Entries expired by one command.
const EXPIRE_LIMIT: u32 = 64;

#[derive(Clone)]
pub struct MemoryNode {
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Notify>,
    feed: Arc<Feed>,
}

struct Inner {
    state: MemoryState,
    /// The revision at which the value of each key changed last.
    values_changed: BTreeMap<Key, Revision>,
    faults: Faults,
    /// Every command that came, and until when each could be proposed.
    asked: Vec<(Command, Instant)>,
    barriers: Vec<Consistency>,
}

impl MemoryNode {
    pub fn new() -> Self {
        let vars = Vars { clock: CLOCK, wall: WALL, ..Vars::default() };
        let feed = Feed::new(vars.revision, 1 << 20);
        let inner = Inner {
            state: MemoryState::new(vars, INDEX),
            values_changed: BTreeMap::new(),
            faults: Faults::default(),
            asked: Vec::new(),
            barriers: Vec::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)), changed: Arc::new(Notify::new()), feed }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().expect("no test panics while it holds the node"))
    }

    /// Every command that a request wrote or tried to write.
    pub fn commands(&self) -> Vec<Command> {
        self.with(|node| node.asked.iter().map(|(command, _)| command.clone()).collect())
    }

    /// How many commands requests wrote or tried to write.
    pub fn asked(&self) -> usize {
        self.with(|node| node.asked.len())
    }

    /// From now on it was asked nothing yet.
    pub fn forget_commands(&self) {
        self.with(|node| node.asked.clear());
    }

    /// The write of one entry that came last.
    pub fn last_op(&self) -> WriteOp {
        match self.commands().pop().expect("a command came").action {
            Action::Write(op) => op,
            other => panic!("not a write: {other:?}"),
        }
    }

    /// Until when each command could be proposed.
    pub fn deadlines(&self) -> Vec<Instant> {
        self.with(|node| node.asked.iter().map(|(_, deadline)| *deadline).collect())
    }

    /// How fresh each read was asked to be.
    pub fn barriers(&self) -> Vec<Consistency> {
        self.with(|node| node.barriers.clone())
    }

    /// Does something that no client of this server asked for, as an entry of the log: faults do not touch it.
    pub fn act(&self, action: Action) -> Reply {
        self.act_as("", action)
    }

    /// The same for a principal.
    pub fn act_as(&self, principal: &str, action: Action) -> Reply {
        let command = Command { principal: principal.to_owned(), ..Command::unnamed(action) };
        let reply = self.with(|node| node.put_in_log(&[command], &self.feed)).remove(0);
        self.changed.notify_waiters();
        reply
    }

    /// Puts an entry there that no client wrote; gives its revision.
    pub fn seed(&self, key: &str, value: Value) -> Revision {
        let change = Change::Put(value);
        let key = Key::new(key).expect("a key");
        let reply = self.act(Action::Write(WriteOp { change, expiry: Expiry::Never, ..WriteOp::removal(key, false) }));
        assert!(matches!(reply.outcome, Outcome::Written(_)), "{reply:?}");
        reply.revision
    }

    /// Several writes that share one revision, which nobody asked for; gives it.
    pub fn together(&self, ops: &[WriteOp]) -> Revision {
        let then = ops.iter().cloned().map(Step::Write).collect();
        let reply = self.act(Action::Txn(Txn { then, ..Txn::default() }));
        assert!(matches!(reply.outcome, Outcome::Txn(_)), "{reply:?}");
        reply.revision
    }

    /// Compacts to a revision, which is the oldest that can be read from then on.
    pub fn compact_to(&self, revision: Revision) {
        self.maintain(Maintenance::Compact { revision, groups_max: u32::MAX });
    }

    /// Lets time go by: both clocks move, and what is due happens.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).expect("a time that a test waits for");
        self.with(|node| {
            let Vars { clock, wall, .. } = *node.state.vars();
            node.put_batch(clock + ms, wall + ms, &[], &self.feed);
        });
        self.maintain(Maintenance::ExpireDue { limit: EXPIRE_LIMIT });
    }

    /// Takes steps of housekeeping until nothing of it is left; readers see all of them or none.
    pub fn maintain(&self, what: Maintenance) {
        self.with(|node| {
            loop {
                let step = Command::unnamed(Action::Maintain(what));
                match node.put_in_log(&[step], &self.feed).remove(0).outcome {
                    Outcome::Maintained { more: true, .. } => {}
                    Outcome::Maintained { more: false, .. } => break,
                    other => panic!("housekeeping came to {other:?}"),
                }
            }
        });
        self.changed.notify_waiters();
    }

    /// Looks after each change until something is found.
    async fn when<T>(&self, mut look: impl FnMut() -> Option<T> + Send) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look() {
                return found;
            }
            changed.await;
        }
    }

    /// Waits for a condition, at most until `end`. Tells whether it came to hold.
    async fn holds_by(
        &self,
        end: Instant,
        mut holds: impl FnMut() -> Result<bool, StateFault> + Send,
    ) -> Result<bool, StateFault> {
        let decided = self.when(|| holds().map(|holds| holds.then_some(true)).transpose());
        tokio::time::timeout_at(end.into(), decided).await.unwrap_or(Ok(false))
    }

    /// Decides a command that came from a client.
    fn decide(&self, command: Command) -> Result<Reply, AppError> {
        let decided = self.with(|node| {
            if let Some(end) = node.faults.end_of_write(node.asked.len()) {
                let at = node.state.position();
                return end.map(|outcome| Reply {
                    index: at.index,
                    revision: at.revision,
                    clock: at.clock,
                    replayed: false,
                    outcome,
                });
            }
            Ok(node.put_in_log(&[command], &self.feed).remove(0))
        });
        self.changed.notify_waiters();
        decided
    }
}

impl Inner {
    /// Applies commands where the clocks stand; one reply for each.
    fn put_in_log(&mut self, commands: &[Command], feed: &Feed) -> Vec<Reply> {
        let Vars { clock, wall, .. } = *self.state.vars();
        self.put_batch(clock, wall, commands, feed)
    }

    fn put_batch(&mut self, clock: u64, wall: WallMillis, commands: &[Command], feed: &Feed) -> Vec<Reply> {
        let commands = commands.iter().map(command_codec::encode_command).collect();
        let entry = Batch { clock, wall, seed: [7; 16], commands };
        let step = self.state.apply(&entry).expect("the machine has no fault of its own");
        assert_eq!(step.contained, [], "a fault was contained, which is a bug");
        let of_values = step.changed.iter().filter(|change| change.value.is_some());
        self.values_changed.extend(of_values.map(|change| (change.key.clone(), change.revision)));
        let at = self.state.position();
        let (changes, names, before) = (step.changed, &step.woken, step.before);
        feed.tell(ChangeSet { changes, names, before, after: at.revision, oldest: at.oldest_revision });
        step.replies
    }
}

macro_rules! of_node {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)*) => {
        impl Queries for MemoryNode {
            fn access_revision(&self) -> Revision {
                self.with(|node| node.state.access_revision())
            }

            $(
                fn $name(&self, $($argument: $type),*) -> Result<$answer, StateFault> {
                    self.before_query(stringify!($name));
                    if let Some(answer) = self.scripted(stringify!($name)) {
                        return Ok(answer);
                    }
                    self.with(|node| node.state.$name($($argument),*))
                }
            )*
        }
    };
}

quorate_machine::every_query!(of_node);

impl Node for MemoryNode {
    fn write(&self, command: Command, deadline: Instant) -> BoxFuture<'_, Result<Decision, AppError>> {
        Box::pin(async move {
            self.with(|node| node.asked.push((command.clone(), deadline)));
            self.pass(&command).await;
            let cost = if self.with(|node| node.faults.is_dear()) { DEAR_BYTES as u32 } else { 0 };
            Ok(Decision { reply: self.decide(command)?, cost })
        })
    }

    fn renew(
        &self,
        _: Renewer,
        sessions: Vec<SessionId>,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Renewed, AppError>> {
        Box::pin(async move {
            let action = Action::Session(SessionOp::Renew(sessions));
            let reply = self.write(Command::unnamed(action), deadline).await?.reply;
            match reply.outcome {
                Outcome::Session(SessionReply::Renewed(each)) => {
                    Ok(Renewed { index: reply.index, revision: reply.revision, clock: reply.clock, each })
                }
                other => Err(AppError::Fault(format!("a renewal was answered as something else: {other:?}"))),
            }
        })
    }

    fn is_dear(&self, _: &Command) -> bool {
        self.with(|node| node.faults.is_dear())
    }

    fn rehearse(&self, next: &mut dyn FnMut(Option<Reply>) -> Option<Command>) -> Result<(), StateFault> {
        Ok(self.with(|node| node.state.moment().rehearse(node.state.vars().wall, next))?)
    }

    fn dry_run(&self, command: &Command) -> Result<Reply, StateFault> {
        assert_eq!(command.request_id, None, "a dry run leaves nothing behind");
        Ok(self.with(|node| node.state.moment().dry_run(command, node.state.vars().wall))?)
    }

    fn read_barrier(&self, consistency: Consistency, deadline: Instant) -> BoxFuture<'_, Result<(), AppError>> {
        Box::pin(async move {
            if self.with(|node| node.faults.lacks_leader()) {
                tokio::time::sleep_until(deadline.into()).await;
                return Err(AppError::TimeoutNotProposed);
            }
            if let Some(news) = self.with(|node| node.faults.take_news()) {
                self.act(news);
            }
            self.with(|node| {
                node.barriers.push(consistency);
                node.faults.end_of_read()
            })
        })
    }

    fn owners_of<'a>(
        &'a self,
        sessions: &'a [SessionId],
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Observed<Vec<Option<String>>>, AppError>> {
        Box::pin(async move {
            let mut seen = self.session_owners(sessions)?;
            // A command of any session has to reach the log where the log refuses all commands.
            if self.with(|node| node.faults.refuses_all()) {
                seen.found.iter_mut().for_each(|owner| *owner = Some(String::new()));
            }
            if seen.found.iter().all(Option::is_some) {
                return Ok(seen);
            }
            self.read_barrier(Consistency::Linearizable, deadline).await?;
            Ok(self.session_owners(sessions)?)
        })
    }

    fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    fn position(&self) -> ReadPosition {
        self.with(|node| node.state.position())
    }

    fn leader_hint(&self) -> LeaderHint {
        surroundings::leader_hint()
    }

    fn wall_now(&self) -> WallMillis {
        self.with(|node| node.state.vars().wall)
    }

    fn unready_reason(&self) -> Option<String> {
        self.with(|node| node.faults.unready_reason())
    }
}

impl Operations for MemoryNode {
    fn status(&self) -> StatusAnswer {
        surroundings::status()
    }

    fn quarantine(&self) -> Option<String> {
        None
    }

    fn staleness_ms(&self) -> Option<u64> {
        Some(self.with(|node| node.faults.silence_ms()))
    }

    fn digest(&self) -> DigestAt {
        self.with(|node| DigestAt { at: node.state.position(), digest: node.state.vars().digest() })
    }

    fn back_up(&self, sink: &mut dyn Write, begun: &mut dyn FnMut(Revision)) -> io::Result<()> {
        let (pieces, revision) = self.with(|node| (node.faults.backup_pieces(), node.state.position().revision));
        surroundings::back_up(pieces, revision, sink, begun)
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

    fn repair(&self, _: u64, _: Instant) -> BoxFuture<'_, Result<Repaired, AppError>> {
        Box::pin(async move { Ok(Repaired::NotNeeded) })
    }
}
