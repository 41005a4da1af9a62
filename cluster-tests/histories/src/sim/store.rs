//! The simulated store: the contract in its plainest form, with switches for bugs.
//!
//! Owns its state and what one request does to it. Knows the virtual time that it is told; a seed decides when a bug shows.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rand::RngExt;
use rand::rngs::StdRng;

use super::Mutant;
use crate::model::{self, State};
use crate::operation::{Change, Hold, Operation, Txn, Write, writes_of};
use crate::record::{Came, Decided, Entry, Event, Item, Micros, Refused, Seen, Written};

/// How far back a stale read may look, in changes.
const PAST_MAX: usize = 12;

/// The store.
pub struct Store {
    mutant: Option<Mutant>,
    dice: StdRng,
    pub(super) state: State,
    pub(super) revision: u64,
    index: u64,
    /// The newest states before this one, for reads that are stale.
    past: VecDeque<(u64, State)>,
    /// What each node knows, where that is less than everything.
    replicas: BTreeMap<u64, Replica>,
    requests: HashMap<String, Decided>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) locks: BTreeMap<Hold, Lock>,
    pub(super) tasks: BTreeMap<(String, String), Task>,
    pub(super) expiries: BTreeMap<String, Micros>,
    /// Every change of an entry, with its time.
    pub line: Vec<(Micros, Event)>,
    pub(super) now: Micros,
}

/// A node that is behind.
#[derive(Clone, Default)]
struct Replica {
    revision: u64,
    state: State,
    /// What it knew before.
    before: Option<(u64, State)>,
}

/// A session.
pub(super) struct Session {
    pub(super) ttl: Micros,
    pub(super) ends: Micros,
}

/// A lock or an election.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) holder: Option<(u64, String)>,
    pub(super) queue: VecDeque<(String, Micros)>,
}

/// A task.
pub(super) struct Task {
    pub(super) due: Micros,
    pub(super) lease: Micros,
    pub(super) token: u64,
    pub(super) attempt: u64,
    pub(super) is_done: bool,
    pub(super) is_lost: bool,
}

/// An answer that refuses.
pub(super) fn refused(code: &str) -> Seen {
    Seen::Refused(Refused { code: code.into(), current: None })
}

impl Store {
    /// An empty store with at most one bug.
    pub fn new(mutant: Option<Mutant>, dice: StdRng) -> Self {
        let (state, past, replicas, requests, sessions) = Default::default();
        let (locks, tasks, expiries, line) = Default::default();
        Self {
            mutant,
            dice,
            state,
            revision: 1,
            index: 1,
            past,
            replicas,
            requests,
            sessions,
            locks,
            tasks,
            expiries,
            line,
            now: 0,
        }
    }

    /// Whether the bug shows now.
    pub(super) fn is(&mut self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant) && self.dice.random_range(0..mutant.rarity()) == 0
    }

    /// Carries out a request at this time, at this node.
    pub fn perform(&mut self, now: Micros, node: u64, operation: &Operation, request_id: Option<&str>) -> Decided {
        self.now = self.now.max(now);
        self.index += 1;
        self.end_due();
        if let Some(kept) = request_id.and_then(|id| self.requests.get(id)).cloned()
            && !self.is(Mutant::DoubleApply)
        {
            return Decided { replayed: true, ..kept };
        }
        let decided = self.decide(node, operation);
        let is_empty = matches!(&decided.seen, Seen::Claimed(tasks) if tasks.is_empty());
        if let Some(id) = request_id.filter(|_| operation.is_kept() && !is_empty) {
            self.requests.insert(id.to_owned(), decided.clone());
        }
        decided
    }

    /// Writes although it was refused: what a failed write must never do.
    pub fn write_failed(&mut self, now: Micros, write: &Write) {
        self.now = self.now.max(now);
        if model::refusal(&self.state, write).is_none() {
            self.change(write);
        }
    }

    fn decide(&mut self, node: u64, operation: &Operation) -> Decided {
        let seen = match operation {
            Operation::Local { key, min_revision } => return self.read_local(node, key, min_revision.unwrap_or(1)),
            Operation::Get { .. } | Operation::List { .. } | Operation::Find { .. } => {
                // To know that nothing is newer, a node catches up.
                self.catch_up(node);
                return self.read(operation);
            }
            Operation::Write(write) => self.write(write).map_or_else(Seen::Refused, Seen::Written),
            Operation::Bulk { writes } => self.bulk(writes),
            Operation::Txn(txn) => self.txn(txn),
            Operation::OpenSession { ttl_ms } => self.open_session(ttl_ms * 1_000),
            Operation::Renew { session } => self.renew(session),
            Operation::EndSession { session } => match self.sessions.remove(session) {
                Some(_) => {
                    self.revision += 1;
                    self.leave_locks(&session.clone());
                    Seen::Session(session.clone())
                }
                None => refused("session_expired"),
            },
            Operation::Acquire { hold, session, wait_ms } => self.acquire(hold, session, wait_ms * 1_000),
            Operation::Release { hold, token } => return self.release(hold, *token),
            Operation::Schedule { queue, task, delay_ms } => {
                self.revision += 1;
                let (due, is_lost) = (self.now + delay_ms * 1_000, self.is(Mutant::TaskLost));
                let task_row = Task { due, lease: 0, token: 0, attempt: 0, is_done: false, is_lost };
                self.tasks.insert((queue.clone(), task.clone()), task_row);
                Seen::Done
            }
            Operation::Claim { queue, limit, lease_ms } => self.claim(queue, *limit, lease_ms * 1_000),
            Operation::Complete { queue, task, token } => self.settle(queue, task, *token, true),
            Operation::Fail { queue, task, token } => self.settle(queue, task, *token, false),
        };
        self.told(seen)
    }

    pub(super) fn told(&self, seen: Seen) -> Decided {
        Decided { revision: self.revision, index: self.index, replayed: false, seen }
    }

    // --- entries ----------------------------------------------------------------------------------------------------

    fn read(&mut self, operation: &Operation) -> Decided {
        let is_stale = self.is(Mutant::StaleRead);
        let is_behind = self.is(Mutant::FollowerBehind);
        let is_cut = self.is(Mutant::ListCutShort);
        let past = self.past.front().filter(|_| is_stale || is_behind);
        let (at, state) = past.map_or((self.revision, &self.state), |(at, past)| (*at, past));
        let revision = if is_behind { at } else { self.revision };
        let seen = match operation {
            Operation::Get { key } => Seen::Entry(state.get(key).cloned()),
            Operation::List { prefix } => {
                let mut entries: Vec<Entry> = model::list(state, prefix).cloned().collect();
                entries.truncate(entries.len() - usize::from(is_cut && !entries.is_empty()));
                Seen::Entries(entries)
            }
            Operation::Find { prefix, at_least } => {
                let found = model::list(state, prefix).filter(|entry| model::is_found(entry, *at_least));
                Seen::Entries(found.cloned().collect())
            }
            _ => unreachable!("only reads are read"),
        };
        Decided { revision, ..self.told(seen) }
    }

    /// The node knows everything from now on.
    fn catch_up(&mut self, node: u64) {
        let replica = self.replicas.entry(node).or_default();
        if replica.revision < self.revision {
            let state = std::mem::replace(&mut replica.state, self.state.clone());
            replica.before = Some((replica.revision.max(1), state));
            replica.revision = self.revision;
        }
    }

    fn read_local(&mut self, node: u64, key: &str, least: u64) -> Decided {
        let known = self.replicas.get(&node).map_or(0, |replica| replica.revision);
        let ignores = known > 0 && self.is(Mutant::MinRevisionIgnored);
        if known == 0 || (known < least && !ignores) || self.dice.random_range(0..4) == 0 {
            self.catch_up(node);
        }
        let (falls, is_ahead) = (self.is(Mutant::LocalFalls), self.is(Mutant::LocalAhead));
        let replica = &self.replicas[&node];
        let before = replica.before.as_ref().filter(|(revision, _)| falls && *revision >= least);
        let (revision, state) = before.map_or((replica.revision, &replica.state), |(at, state)| (*at, state));
        let shown = if is_ahead { &self.state } else { state };
        Decided { revision, ..self.told(Seen::Entry(shown.get(key).cloned())) }
    }

    fn write(&mut self, write: &Write) -> Result<Written, Refused> {
        if let Some(guard) = &write.guard
            && !self.holds(&guard.hold, guard.token)
            && !self.is(Mutant::GuardIgnored)
        {
            return Err(Refused { code: "guard_failed".into(), current: None });
        }
        match model::refusal(&self.state, write) {
            Some(refused) if refused.code == "cas_mismatch" && self.is(Mutant::CasIgnored) => {}
            Some(_)
                if write.change.value().is_some()
                    && self.state.is_locked(&write.key)
                    && self.is(Mutant::EntryLockIgnored) => {}
            Some(refused) if refused.code == "condition_not_met" && self.is(Mutant::ConditionIgnored) => {}
            Some(refused) if refused.code == "locked" && self.is(Mutant::EntryLockedTwice) => {}
            Some(refused) => return Err(refused),
            None => {}
        }
        if self.is(Mutant::LostWrite) {
            self.revision += 1;
            let mut lost = self.state.clone();
            return Ok(model::apply(&mut lost, write, self.revision));
        }
        Ok(self.change(write))
    }

    /// Changes an entry at a revision of its own.
    fn change(&mut self, write: &Write) -> Written {
        self.remember();
        if !self.is(Mutant::RevisionReused) {
            self.revision += 1;
        }
        let write = match &write.change {
            // As if the last change had not been seen: the sum loses something.
            Change::Adjust { amount, by, .. } if self.is(Mutant::PatchOfThePast) => {
                let change = Change::Adjust { amount: amount - 1, by: by.clone(), at_least: None };
                &Write { change, ..write.clone() }
            }
            _ => write,
        };
        let written = model::apply(&mut self.state, write, self.revision);
        if write.change.is_of_lock() {
            // No watch is shown this.
            return written;
        }
        self.expiries.remove(&write.key);
        if let Some(ttl_ms) = write.ttl_ms {
            let ttl = ttl_ms * 1_000 / if self.is(Mutant::EntryExpiresEarly) { 2 } else { 1 };
            self.expiries.insert(write.key.clone(), self.now + ttl);
        }
        self.note(&write.key, 0);
        written
    }

    pub(super) fn note(&mut self, key: &str, index: u32) {
        let event = Event { revision: self.revision, index, key: key.into(), entry: self.state.get(key).cloned() };
        self.line.push((self.now, event));
    }

    pub(super) fn remember(&mut self) {
        if matches!(self.mutant, Some(Mutant::StaleRead | Mutant::FollowerBehind)) {
            self.past.push_back((self.revision, self.state.clone()));
            if self.past.len() > PAST_MAX {
                self.past.pop_front();
            }
        }
    }

    fn bulk(&mut self, writes: &[Write]) -> Seen {
        let mut items = Vec::new();
        for write in writes {
            let came = self.write(write).map_or_else(Came::Refused, Came::Written);
            items.push(Item { revision: self.revision, came });
        }
        Seen::Items(items)
    }

    fn txn(&mut self, txn: &Txn) -> Seen {
        self.remember();
        let seen = match model::txn(&mut self.state, txn, self.revision + 1) {
            Ok(seen) => seen,
            Err(refused) => return Seen::Refused(refused),
        };
        let writes: Vec<&Write> = writes_of(txn.branch(seen.succeeded)).collect();
        let Some((last, rest)) = writes.split_last() else { return Seen::Txn(seen) };
        self.revision += 1;
        for (write, index) in rest.iter().zip(0..) {
            self.note(&write.key, index);
        }
        if !rest.is_empty() && self.is(Mutant::TornTransaction) {
            self.state.remove(&last.key);
        } else {
            self.note(&last.key, u32::try_from(rest.len()).expect("a small transaction"));
        }
        Seen::Txn(seen)
    }
}
