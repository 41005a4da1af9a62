//! One state of the model: a replica's rows and scalars, the leader's clock, what is in flight, and what each client knows.
//!
//! Owns applying one step by the real [`Applier`], and judging what it did from the rows before and after, and from what was
//! promised until then. What is promised it counts by itself: it asks the machine for nothing but its rows and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quorate_machine::document::Criteria;
use quorate_machine::keyspace::{lock_queue, session};
use quorate_machine::machine::{self, Applier, Fault, MemoryView, Vars, View};
use quorate_machine::types::{
    Acquire, Action, Batch, Change, Command, ContentKind, Expect, Expiry, Guard, Key, LockName, LockOp, LockSpace,
    Name, Outcome, Rejection, Reply, RequestId, Revision, SessionId, SessionOp, SessionReply, Value, WriteOp,
};
use quorate_machine::{codec, command_codec, mutants};

use crate::{Bounds, Request, Step};

/// How long a session lives without a renewal.
const TTL_MS: u64 = 100;
/// How much time passes at once: after one a session must still live, after two it is over.
const TICK_MS: u64 = TTL_MS - 1;

/// What must hold always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// At most as many valid tokens as slots.
    Slots,
    /// Tokens only grow.
    Growing,
    /// No guarded write under an old token.
    Guard,
    /// Nothing ends early.
    Early,
    /// One outcome for one request id.
    Once,
    /// Nothing faults, time does not go back.
    Sound,
}

/// What must be met sometimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seen {
    /// A client got the lock that waited for it.
    HandOver,
    /// An election was won after somebody else had won it.
    Election,
    /// A session ended because nobody renewed it.
    Expiry,
    /// A guarded write was refused.
    OldToken,
    /// A kept outcome was answered.
    Repeat,
    /// The leader changed while a lock was held.
    NewLeader,
}

/// A command that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sent {
    id: String,
    ask: Request,
    token: Revision,
}

/// A client, and what it knows.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Client {
    session: SessionId,
    /// Its session must not end before this cluster clock.
    due: u64,
    /// The last token of the lock that it had; it may be old.
    pub token: Option<Revision>,
    /// What it sent and nobody applied yet.
    pub in_flight: Option<Sent>,
    /// What was applied last of it.
    pub applied: Option<Sent>,
    asked: usize,
}

/// An entry, what it was applied to, and what it answered.
#[derive(Debug, Clone)]
struct Entry {
    rows: Arc<MemoryView>,
    vars: Vars,
    batch: Batch,
    replies: Vec<Reply>,
}

/// The entry that was applied last: what comes next is applied together with it, too. Two states do not differ by it.
#[derive(Debug, Clone, Default)]
struct Last(Option<Entry>);

impl PartialEq for Last {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    rows: Arc<MemoryView>,
    vars: Vars,
    index: u64,
    /// The clock of whoever leads: volatile.
    clock: u64,
    /// The clients.
    pub clients: Vec<Client>,
    /// The first answer under each request id.
    answers: BTreeMap<String, Reply>,
    /// The newest token of the lock and of the election.
    newest: [Revision; 2],
    seen: BTreeSet<Seen>,
    broken: Option<(Rule, String)>,
    /// The entry that was applied last.
    last: Last,
    /// How many steps led here.
    pub steps: usize,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // The digest is of all rows.
        (self.vars.digest(), self.vars.revision, self.vars.clock, self.vars.wall, self.index, self.clock).hash(hasher);
        (&self.clients, self.newest, &self.seen, &self.broken, self.steps).hash(hasher);
        self.answers.iter().for_each(|(id, reply)| (id, reply.index).hash(hasher));
    }
}

impl World {
    /// Every client has a session, and nothing else is there.
    pub fn new(bounds: Bounds) -> Self {
        let mut world = Self {
            rows: Arc::default(),
            vars: Vars::default(),
            index: 0,
            clock: 0,
            clients: Vec::new(),
            answers: BTreeMap::new(),
            newest: [0; 2],
            seen: BTreeSet::new(),
            broken: None,
            last: Last::default(),
            steps: 0,
        };
        for _ in 0..bounds.clients {
            let op = SessionOp::Create { ttl_ms: TTL_MS, owner: String::new(), labels: Vec::new() };
            let reply = world.apply(bounds, &[Command::unnamed(Action::Session(op))]);
            let Some(Outcome::Session(SessionReply::Created { id, .. })) = reply.map(|reply| reply.outcome) else {
                panic!("a session that is not created: {world:?}");
            };
            let client = Client { session: id, due: TTL_MS, token: None, in_flight: None, applied: None, asked: 0 };
            world.clients.push(client);
        }
        world
    }

    /// Whether a rule still holds.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.broken.as_ref().is_none_or(|(broken, _)| *broken != rule)
    }

    /// Whether a rule was broken: then nothing that follows counts.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Whether something was met.
    pub fn has_seen(&self, what: Seen) -> bool {
        self.seen.contains(&what)
    }

    /// Whether the leader would take something with it.
    pub fn has_volatile_clock(&self) -> bool {
        self.clock > self.vars.clock
    }

    /// One step, and what must hold of it.
    pub fn take(&mut self, bounds: Bounds, step: Step) {
        match step {
            Step::Do(at, ask) => {
                let sent = self.send(at, ask);
                self.deliver(bounds, at, sent);
            }
            Step::Delay(at, ask) => self.clients[at].in_flight = Some(self.send(at, ask)),
            Step::Deliver(at) => {
                let sent = self.clients[at].in_flight.take().expect("only offered where something is in flight");
                self.deliver(bounds, at, sent);
            }
            Step::Repeat(at) => {
                let sent = self.clients[at].applied.clone().expect("only offered where something was applied");
                self.deliver(bounds, at, sent);
            }
            Step::Tick => {
                self.clock += TICK_MS;
                self.judged(bounds, None);
            }
            Step::Wait => self.clock += TICK_MS,
            Step::NewLeader => self.change_leader(),
        }
    }

    /// Only what is on disk is left: the scalars in their stored form too.
    fn change_leader(&mut self) {
        self.vars = codec::decode(&codec::encode(&self.vars)).expect("scalars that were encoded");
        self.clock = self.vars.clock;
        if !self.holders(0).is_empty() {
            self.seen.insert(Seen::NewLeader);
        }
    }

    fn send(&mut self, at: usize, ask: Request) -> Sent {
        let client = &mut self.clients[at];
        client.asked += 1;
        Sent { id: format!("{at}-{}", client.asked), ask, token: client.token.unwrap_or_default() }
    }

    fn deliver(&mut self, bounds: Bounds, at: usize, sent: Sent) {
        self.judged(bounds, Some((at, &sent)));
        self.clients[at].applied = Some(sent);
    }

    /// Applies a command, or none, and judges what that did.
    fn judged(&mut self, bounds: Bounds, sent: Option<(usize, &Sent)>) {
        let (before, clock) = ([0, 1].map(|lock| self.holders(lock)), self.vars.clock);
        let living: Vec<_> = self.clients.iter().map(|client| self.lives(client)).collect();
        let commands: Vec<_> = sent.iter().map(|(at, sent)| self.command(bounds, *at, sent)).collect();
        let reply = self.apply(bounds, &commands);
        if self.vars.clock < clock {
            self.breaks(Rule::Sound, format!("the clock went from {clock} to {}", self.vars.clock));
        }
        if let (Some(reply), Some((at, sent))) = (&reply, sent) {
            self.judge_answer(at, sent, reply);
        }
        for (at, lived) in living.into_iter().enumerate() {
            self.judge_session(at, lived);
        }
        let released = sent.filter(|(_, sent)| sent.ask == Request::Release).map(|(_, sent)| sent.token);
        for (lock, before) in before.iter().enumerate() {
            self.judge_lock(bounds, lock, before, released.filter(|_| lock == 0), sent.map(|(at, _)| at));
        }
    }

    fn judge_answer(&mut self, at: usize, sent: &Sent, reply: &Reply) {
        match self.answers.get(&sent.id) {
            None => drop(self.answers.insert(sent.id.clone(), reply.clone())),
            Some(first) if *reply == (Reply { replayed: true, ..first.clone() }) => {
                self.seen.insert(Seen::Repeat);
                return;
            }
            Some(first) => {
                let why = format!("{sent:?} was answered {first:?} and then {reply:?}");
                return self.breaks(Rule::Once, why);
            }
        }
        match &reply.outcome {
            Outcome::Session(SessionReply::Renewed(renewed)) if renewed[0].is_some() => {
                let due = self.vars.clock + TTL_MS;
                self.clients[at].due = self.clients[at].due.max(due);
            }
            Outcome::Written(_) if !self.holders(0).contains_key(&sent.token) => {
                self.breaks(Rule::Guard, format!("{sent:?} was written, and {:?} hold the lock", self.holders(0)));
            }
            Outcome::Rejected(Rejection::GuardFailed { .. }) => drop(self.seen.insert(Seen::OldToken)),
            _ => {}
        }
    }

    fn judge_session(&mut self, at: usize, lived: bool) {
        let client = &self.clients[at];
        if !lived || self.lives(client) {
            return;
        }
        if self.vars.clock < client.due {
            let why = format!("session {} ended at {}, and not at {}", client.session, self.vars.clock, client.due);
            return self.breaks(Rule::Early, why);
        }
        self.seen.insert(Seen::Expiry);
    }

    fn judge_lock(
        &mut self,
        bounds: Bounds,
        lock: usize,
        before: &BTreeMap<Revision, SessionId>,
        released: Option<Revision>,
        caller: Option<usize>,
    ) {
        let holders = self.holders(lock);
        let slots = if lock == 0 { bounds.slots as usize } else { 1 };
        if holders.len() > slots {
            self.breaks(Rule::Slots, format!("{slots} slots are held by {holders:?}"));
        }
        for (token, session) in before.iter().filter(|(token, _)| !holders.contains_key(token)) {
            let is_over = !self.clients.iter().any(|client| client.session == *session && self.lives(client));
            if !is_over && released != Some(*token) {
                self.breaks(Rule::Early, format!("session {session} lives and lost {token}"));
            }
        }
        let newest = self.newest[lock];
        for (token, session) in holders.iter().filter(|(token, _)| before.get(token) != holders.get(token)) {
            if *token <= newest {
                self.breaks(Rule::Growing, format!("{token} was given to {session} after {newest}"));
            }
            self.newest[lock] = self.newest[lock].max(*token);
            let owner = self.clients.iter().position(|client| client.session == *session);
            if lock == 1 && newest > 0 {
                self.seen.insert(Seen::Election);
            }
            if lock == 0 && owner != caller {
                self.seen.insert(Seen::HandOver);
            }
            if let Some(owner) = owner.filter(|_| lock == 0) {
                self.clients[owner].token = Some(*token);
            }
        }
    }

    fn breaks(&mut self, rule: Rule, why: String) {
        self.broken.get_or_insert((rule, why));
    }

    fn lives(&self, client: &Client) -> bool {
        self.rows.0.contains_key(&session::row_key(client.session))
    }

    /// Who holds the lock (0) or the election (1), by token.
    fn holders(&self, lock: usize) -> BTreeMap<Revision, SessionId> {
        let (start, end) = lock_queue::holders_of(&name(lock));
        let rows = self.rows.scan(&start, &end, usize::MAX).expect("rows in memory");
        let holder = |(row_key, row): (Vec<u8>, Vec<u8>)| {
            let (_, token) = lock_queue::decode_holder(&row_key).expect("a row of a holder");
            let party: lock_queue::HolderRow = codec::decode(&row).expect("a holder");
            (token, party.session)
        };
        rows.into_iter().map(holder).collect()
    }

    fn command(&self, bounds: Bounds, at: usize, sent: &Sent) -> Command {
        let session = self.clients[at].session;
        let acquire = |lock, slots| {
            let request = Acquire { slots: Some(slots), wait_ms: 10 * TTL_MS, ..Acquire::of(lock, session) };
            Action::Lock(LockOp::Acquire(request))
        };
        let action = match sent.ask {
            Request::Renew => Action::Session(SessionOp::Renew(vec![session])),
            Request::Acquire => acquire(name(0), bounds.slots),
            Request::Campaign => acquire(name(1), 1),
            Request::Release => Action::Lock(LockOp::Release { lock: name(0), token: sent.token }),
            Request::Write => Action::Write(WriteOp {
                key: Key::new("guarded").expect("a key"),
                expect: Expect::ANY,
                condition: Criteria::default(),
                change: Change::Put(Value { kind: ContentKind::Bytes, data: sent.id.clone().into() }),
                expiry: Expiry::Never,
                return_previous: false,
                session: None,
                guard: Some(Box::new(Guard { lock: name(0), token: sent.token })),
            }),
        };
        Command { request_id: Some(RequestId(sent.id.clone())), ..Command::unnamed(action) }
    }

    /// Applies a batch at the leader's clock; its last answer.
    fn apply(&mut self, bounds: Bounds, commands: &[Command]) -> Option<Reply> {
        let commands = commands.iter().map(command_codec::encode_command).collect();
        let seed = [7; 16];
        let batch = Batch { clock: self.clock, wall: self.clock, seed, commands };
        let (applied, together) = mutants::with(bounds.mutant, || {
            let applied = machine::catching(|| {
                let mut applier = Applier::new(&*self.rows, self.vars.clone());
                let replies = applier.apply_batch(self.index + 1, &batch)?;
                Ok((replies, applier.finish()))
            });
            (applied, self.together(&batch))
        });
        match applied {
            Err(fault) => {
                self.breaks(Rule::Sound, fault.to_string());
                None
            }
            Ok((mut replies, applied)) => {
                if together.is_some_and(|together| together != Ok((replies.clone(), applied.vars.clone()))) {
                    self.breaks(Rule::Sound, "an entry comes to something else together with the one before it".into());
                }
                let (rows, vars) = (Arc::clone(&self.rows), self.vars.clone());
                self.last = Last(Some(Entry { rows, vars, batch, replies: replies.clone() }));
                Arc::make_mut(&mut self.rows).write(applied.writes);
                self.vars = applied.vars;
                self.index += 1;
                replies.pop()
            }
        }
    }

    /// What a batch comes to in one call with the entry before it, if there is one: its answers and the scalars, of which the digest is of
    /// all rows.
    fn together(&self, batch: &Batch) -> Option<Result<(Vec<Reply>, Vars), Fault>> {
        let before = self.last.0.as_ref()?;
        Some(machine::catching(|| {
            let mut applier = Applier::new(&*before.rows, before.vars.clone());
            let replies = applier.apply_batch(self.index, &before.batch)?;
            if replies != before.replies {
                return Err(Fault::Invariant("the entry before it comes to something else".into()));
            }
            let replies = applier.apply_batch(self.index + 1, batch)?;
            Ok((replies, applier.finish().vars))
        }))
    }
}

/// The lock (0) or the election (1).
fn name(lock: usize) -> LockName {
    let space = if lock == 0 { LockSpace::Lock } else { LockSpace::Election };
    LockName { space, name: Name::new("l").expect("a name") }
}
