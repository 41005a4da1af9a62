//! The simulated store: the contract in its plainest form, with switches for bugs.
//!
//! Owns its state and what one request does to it. Knows the virtual time that it is told; a seed decides when a bug shows.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rand::RngExt;
use rand::rngs::StdRng;

use super::Mutant;
use crate::history::model::{self, State};
use crate::history::operation::{Hold, Operation, Txn, Write, writes_of};
use crate::history::record::{Came, Claimed, Decided, Entry, Event, Item, Micros, Refused, Seen, Written};

/// How far back a stale read may look, in changes.
const PAST_MAX: usize = 12;

/// The store.
pub struct Store {
    mutant: Option<Mutant>,
    dice: StdRng,
    state: State,
    revision: u64,
    index: u64,
    /// The newest states before this one, for reads that are stale.
    past: VecDeque<(u64, State)>,
    requests: HashMap<String, Decided>,
    sessions: BTreeMap<String, Session>,
    locks: BTreeMap<Hold, Lock>,
    tasks: BTreeMap<(String, String), Task>,
    expiries: BTreeMap<String, Micros>,
    /// Every change of an entry, with its time.
    pub line: Vec<(Micros, Event)>,
    now: Micros,
}

struct Session {
    ttl: Micros,
    ends: Micros,
}

#[derive(Default)]
struct Lock {
    holder: Option<(u64, String)>,
    queue: VecDeque<(String, Micros)>,
}

struct Task {
    due: Micros,
    lease: Micros,
    token: u64,
    attempt: u64,
    is_done: bool,
    is_lost: bool,
}

fn refused(code: &str) -> Seen {
    Seen::Refused(Refused { code: code.into(), current: None })
}

impl Store {
    /// An empty store with at most one bug.
    pub fn new(mutant: Option<Mutant>, dice: StdRng) -> Self {
        let (state, past, requests, sessions) = Default::default();
        let (locks, tasks, expiries, line) = Default::default();
        Self {
            mutant,
            dice,
            state,
            revision: 1,
            index: 1,
            past,
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
    fn is(&mut self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant) && self.dice.random_range(0..mutant.rarity()) == 0
    }

    /// Carries out a request at this time.
    pub fn perform(&mut self, now: Micros, operation: &Operation, request_id: Option<&str>) -> Decided {
        self.now = self.now.max(now);
        self.index += 1;
        self.end_due();
        if let Some(kept) = request_id.and_then(|id| self.requests.get(id)).cloned()
            && !self.is(Mutant::DoubleApply)
        {
            return Decided { replayed: true, ..kept };
        }
        let decided = self.decide(operation);
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

    fn decide(&mut self, operation: &Operation) -> Decided {
        if operation.is_read() {
            return self.read(operation);
        }
        let seen = match operation {
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
            _ => unreachable!("reads were answered before"),
        };
        self.told(seen)
    }

    fn told(&self, seen: Seen) -> Decided {
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

    fn write(&mut self, write: &Write) -> Result<Written, Refused> {
        if let Some(guard) = &write.guard
            && !self.holds(&guard.hold, guard.token)
            && !self.is(Mutant::GuardIgnored)
        {
            return Err(Refused { code: "guard_failed".into(), current: None });
        }
        match model::refusal(&self.state, write) {
            Some(refused) if refused.code == "cas_mismatch" && self.is(Mutant::CasIgnored) => {}
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
        let written = model::apply(&mut self.state, write, self.revision);
        self.expiries.remove(&write.key);
        if let Some(ttl_ms) = write.ttl_ms {
            let ttl = ttl_ms * 1_000 / if self.is(Mutant::EntryExpiresEarly) { 2 } else { 1 };
            self.expiries.insert(write.key.clone(), self.now + ttl);
        }
        self.note(&write.key, 0);
        written
    }

    fn note(&mut self, key: &str, index: u32) {
        let event = Event { revision: self.revision, index, key: key.into(), entry: self.state.get(key).cloned() };
        self.line.push((self.now, event));
    }

    fn remember(&mut self) {
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

    // --- sessions, locks --------------------------------------------------------------------------------------------

    /// Ends all that is due.
    fn end_due(&mut self) {
        let due: Vec<String> =
            self.expiries.iter().filter(|(_, at)| **at <= self.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.expiries.remove(&key);
            self.remember();
            self.revision += 1;
            self.state.remove(&key);
            self.note(&key, 0);
        }
        let over = |session: &Session| session.ends <= self.now;
        let over: Vec<String> =
            self.sessions.iter().filter(|(_, session)| over(session)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.sessions.remove(&id);
            self.revision += 1;
            self.leave_locks(&id);
        }
    }

    fn lifetime(&mut self, ttl: Micros) -> Micros {
        if self.is(Mutant::SessionEndsEarly) {
            ttl / 2
        } else if self.is(Mutant::SessionNeverEnds) {
            Micros::MAX / 2
        } else {
            ttl
        }
    }

    fn open_session(&mut self, ttl: Micros) -> Seen {
        self.revision += 1;
        let (id, ends) = (self.revision.to_string(), self.now + self.lifetime(ttl));
        self.sessions.insert(id.clone(), Session { ttl, ends });
        Seen::Session(id)
    }

    fn renew(&mut self, id: &str) -> Seen {
        let Some(ttl) = self.sessions.get(id).map(|session| session.ttl) else { return refused("session_expired") };
        let ends = self.now + self.lifetime(ttl);
        self.sessions.insert(id.to_owned(), Session { ttl, ends });
        Seen::Session(id.to_owned())
    }

    fn holds(&self, hold: &Hold, token: u64) -> bool {
        self.locks.get(hold).and_then(|lock| lock.holder.as_ref()).is_some_and(|(held, _)| *held == token)
    }

    fn acquire(&mut self, hold: &Hold, session: &str, wait: Micros) -> Seen {
        if !self.sessions.contains_key(session) {
            return refused("session_expired");
        }
        let steals = self.is(Mutant::LockGivenTwice);
        let reuses = self.is(Mutant::TokenReused);
        let until = self.now + wait;
        let lock = self.locks.entry(hold.clone()).or_default();
        match &lock.holder {
            Some((token, holder)) if holder == session => Seen::Held { token: *token },
            Some((token, _)) if reuses => {
                let token = *token;
                lock.holder = Some((token, session.to_owned()));
                Seen::Held { token }
            }
            Some(_) if !steals && wait == 0 => refused("locked"),
            Some(_) if !steals => {
                lock.queue.retain(|(waiting, _)| waiting != session);
                lock.queue.push_back((session.to_owned(), until));
                Seen::Waiting
            }
            _ => {
                self.revision += 1;
                let token = self.revision;
                lock.holder = Some((token, session.to_owned()));
                lock.queue.retain(|(waiting, _)| waiting != session);
                Seen::Held { token }
            }
        }
    }

    fn release(&mut self, hold: &Hold, token: u64) -> Decided {
        if !self.holds(hold, token) {
            return self.told(refused("not_lock_holder"));
        }
        self.revision += 1;
        let told = self.told(Seen::Done);
        self.hand_on(hold);
        told
    }

    fn leave_locks(&mut self, session: &str) {
        let held = |lock: &Lock| lock.holder.as_ref().is_some_and(|(_, holder)| holder == session);
        let held: Vec<Hold> = self.locks.iter().filter(|(_, lock)| held(lock)).map(|(hold, _)| hold.clone()).collect();
        for lock in self.locks.values_mut() {
            lock.queue.retain(|(waiting, _)| waiting != session);
        }
        held.iter().for_each(|hold| self.hand_on(hold));
    }

    /// Gives the lock to the next in the queue.
    fn hand_on(&mut self, hold: &Hold) {
        let Some(lock) = self.locks.get_mut(hold) else { return };
        lock.queue.retain(|(_, until)| *until > self.now);
        lock.holder = lock.queue.pop_front().map(|(session, _)| {
            self.revision += 1;
            (self.revision, session)
        });
    }

    // --- tasks ------------------------------------------------------------------------------------------------------

    fn claim(&mut self, queue: &str, limit: u32, lease: Micros) -> Seen {
        let (early, twice) = (self.is(Mutant::TaskEarly), self.is(Mutant::TaskGivenTwice));
        let (now, token) = (self.now, self.revision + 1);
        let free =
            |task: &Task| !task.is_done && !task.is_lost && (early || task.due <= now) && (twice || task.lease <= now);
        let mut claimed = Vec::new();
        for ((of, id), task) in &mut self.tasks {
            if of == queue && claimed.len() < limit as usize && free(task) {
                task.attempt += 1;
                (task.token, task.lease) = (token, now + lease);
                claimed.push(Claimed { task: id.clone(), token, attempt: task.attempt });
            }
        }
        self.revision += u64::from(!claimed.is_empty());
        Seen::Claimed(claimed)
    }

    fn settle(&mut self, queue: &str, id: &str, token: u64, completes: bool) -> Seen {
        let stale = self.is(Mutant::StaleCompletion);
        let now = self.now;
        let Some(task) = self.tasks.get_mut(&(queue.to_owned(), id.to_owned())) else { return refused("not_found") };
        let has = task.token == token && task.lease > now && !task.is_done;
        if !has && !(stale && completes) {
            return refused("not_lock_holder");
        }
        self.revision += 1;
        (task.is_done, task.lease) = (completes || task.is_done, 0);
        Seen::Done
    }
}
