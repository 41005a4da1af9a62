//! What the core commands should do, written for the eye: no rows, no indexes, no sums, only what there is.
//!
//! Owns what becomes of entries, sessions, locks, barriers and latches under writes, bulks, transactions and the commands of
//! coordination, and what happens as time passes. Looks at one step at a time, from a picture of before to one of after.
//! Shares with the machine the vocabulary and what documents are. Knows nothing of collections, what is found, tasks and
//! access: of a command that touches those it says nothing, but for which entries a claim gets (`claims`).

pub mod claims;
pub mod coordination;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt::Debug;

use quorate_machine::document::{Json, Subject};
use quorate_machine::keyspace::lock;
use quorate_machine::limits;
use quorate_machine::types::{
    self, Action, Branch, Change, Check, Compared, Comparison, ComparisonOperator, ContentKind, Entry, EntryMeta,
    Expect, Expiry, Guard, ItemOutcome, Key, KeyRange, ListOrderBy, ListShown, ListStep, Listed, LockName, Maintenance,
    Outcome, Presence, Refusal, Rejection, RemoveStep, Removed, Shown, Step, StepReply, Tokens, Txn, TxnReply, Value,
    WriteOp,
};

use crate::names;
use crate::picture::Picture;

/// Stands for the key of a lock that the very command at hand began: nothing of it can name that.
const KEY_OF_NOW: u64 = 0;

/// What a command comes to, as far as it is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Comes {
    /// Each of its parts took effect, or was refused for this reason.
    Parts(Vec<Result<Option<EntryMeta>, Refusal>>),
    /// All of it was refused, or took effect.
    Whole(Result<(), Refusal>),
    /// A transaction took effect: its checks and its steps, in words.
    Steps(Vec<String>),
}

/// What should come of a command of somebody, in the state that it leaves; `None` where the model says nothing.
pub fn predict(before: &Picture, action: &Action, principal: &str) -> Option<(Comes, Picture)> {
    if action_touches_collections(before, action) {
        return None;
    }
    let mut model = Model { now: before.clone(), principal: principal.to_owned(), joint: None, told: Vec::new() };
    let comes = match action {
        Action::Write(op) => Comes::Parts(vec![model.write(op)]),
        Action::Bulk(ops) => Comes::Parts(ops.iter().map(|op| model.write(op)).collect()),
        Action::Txn(txn) => match model.txn(txn) {
            Ok(()) => Comes::Steps(std::mem::take(&mut model.told)),
            Err(refusal) => Comes::Whole(Err(refusal)),
        },
        Action::Session(op) => Comes::Whole(model.session(op)),
        Action::Lock(op) => Comes::Whole(model.lock(op)),
        Action::Barrier(op) => Comes::Whole(model.barrier(op)),
        Action::Latch(op) => Comes::Whole(model.latch(op)),
        _ => return None,
    };
    Some((comes, model.now))
}

fn action_touches_collections(picture: &Picture, action: &Action) -> bool {
    let is_in = |key: &Key| picture.collection_of(key).is_some();
    match action {
        Action::Write(op) => is_in(&op.key),
        Action::Bulk(ops) => ops.iter().any(|op| is_in(&op.key)),
        Action::Txn(txn) => {
            let writes = txn.all_writes().any(|op| is_in(&op.key));
            writes
                || checks_of(txn).iter().any(|check| is_in(&check.key))
                || removes_of(&txn.then, &txn.otherwise, &is_in)
        }
        _ => false,
    }
}

/// Whether a step may remove one of these keys.
fn removes_of(then: &[Step], otherwise: &[Step], is_in: &dyn Fn(&Key) -> bool) -> bool {
    then.iter().chain(otherwise).any(|step| match step {
        Step::Get(_) | Step::Write(_) | Step::List(_) => false,
        Step::Remove(step) => names::keys().iter().any(|key| step.range.contains(key.as_bytes()) && is_in(key)),
        Step::Txn(txn) => removes_of(&txn.then, &txn.otherwise, is_in),
        Step::Branch(branch) => removes_of(&branch.then, &branch.otherwise, is_in),
    })
}

fn checks_of(txn: &Txn) -> Vec<&Check> {
    let nested = txn.then.iter().chain(&txn.otherwise).filter_map(|step| match step {
        Step::Txn(txn) => Some(checks_of(txn)),
        _ => None,
    });
    txn.checks.iter().chain(nested.flatten()).collect()
}

/// What the machine's answer comes to, in the terms of the model.
pub fn came(outcome: &Outcome) -> Option<Comes> {
    Some(match outcome {
        Outcome::Written(written) => Comes::Parts(vec![Ok(written.meta)]),
        Outcome::Bulk(items) => {
            let part = |item: &ItemOutcome| match item {
                ItemOutcome::Written(written) => Ok(written.meta),
                ItemOutcome::Rejected(rejection) => Err(Refusal::from(rejection)),
                ItemOutcome::Deferred => panic!("a small bulk is deferred"),
            };
            Comes::Parts(items.iter().map(|item| part(&item.outcome)).collect())
        }
        Outcome::Txn(done) => {
            let mut told = Vec::new();
            tell_txn(done, &mut told);
            Comes::Steps(told)
        }
        Outcome::Session(_) | Outcome::Lock(_) | Outcome::Barrier(_) | Outcome::Latch(_) => Comes::Whole(Ok(())),
        Outcome::TxnRejected(rejected) => Comes::Whole(Err((&rejected.why).into())),
        Outcome::Rejected(rejection) => Comes::Whole(Err(rejection.into())),
        _ => return None,
    })
}

/// What a transaction is answered, in words.
fn tell_txn(done: &TxnReply, told: &mut Vec<String>) {
    let failed = done.failed.as_ref().map(|failed| (failed.at as usize, Refusal::from(&failed.why)));
    told.push(format!("checks {failed:?}"));
    tell_steps(&done.results, told);
}

fn tell_steps(results: &[StepReply], told: &mut Vec<String>) {
    for result in results {
        match result {
            StepReply::Txn(done) => tell_txn(done, told),
            StepReply::Branched(done) => {
                told.push(format!("branch {}", done.succeeded));
                tell_steps(&done.results, told);
            }
            other => told.push(without_keys(other)),
        }
    }
}

/// What is answered in words, without the keys of locks: nobody can know them before.
pub fn without_keys(told: &impl Debug) -> String {
    let words = format!("{told:?}");
    let is_key = |word: &str| word.parse::<u64>().is_ok_and(|number| number >= lock::KEY_MARK);
    let blanked = words.split(' ').map(|word| if is_key(word.trim_end_matches(',')) { "a key," } else { word });
    blanked.collect::<Vec<_>>().join(" ")
}

/// Checks that a command of which the model says nothing leaves alone what is not its own: sessions, locks, barriers and latches, and
/// entries but for what is found, and for what is over where that is to go.
pub fn check_beside(before: &Picture, action: &Action, after: &Picture) {
    // What is due already is done by the entry, whatever it has.
    let is_due = before.vars.next_timer.is_some_and(|at| at <= before.vars.clock);
    let is_left_alone = match action {
        Action::Write(_) | Action::Bulk(_) | Action::Txn(_) | Action::Session(_) | Action::Lock(_) => return,
        Action::Barrier(_) | Action::Latch(_) | Action::Faults(_) => return,
        _ if is_due => return,
        Action::Where(_) | Action::Claim(_) => false,
        _ => true,
    };
    assert_same_parties(before, after);
    let mut entries = before.entries.clone();
    if let Action::Maintain(Maintenance::ExpireDue { limit }) = action {
        entries.retain(|key, entry| after.entries.contains_key(key) || !entry.is_expired_at(before.vars.clock));
        assert!(before.entries.len() - entries.len() <= *limit as usize, "more than {limit} entries went");
    }
    assert!(!is_left_alone || entries == after.entries, "{entries:?} became {:?} by {action:?}", after.entries);
}

/// Compares what should be with what is.
pub fn compare(predicted: (Comes, Picture), outcome: &Outcome, after: &Picture) {
    let (comes, now) = predicted;
    compare_answers(comes, outcome, Some(after));
    assert_same(&now, after);
}

/// Compares answers alone; where it is told what is there afterwards, also what opens the locks that are told.
pub fn compare_answers(comes: Comes, outcome: &Outcome, after: Option<&Picture>) {
    let mut came = came(outcome).unwrap_or_else(|| panic!("an answer of another kind: {outcome:?}"));
    check_lock_keys(&comes, &mut came, after);
    let is_single = |comes: &Comes| match comes {
        Comes::Parts(parts) if parts.len() == 1 => parts[0].as_ref().err().copied(),
        Comes::Whole(Err(refusal)) => Some(*refusal),
        _ => None,
    };
    match (is_single(&comes), is_single(&came)) {
        (None, None) => assert_eq!(comes, came, "the model's answer on the left, the machine's on the right"),
        (left, right) => assert_eq!(left, right, "the model's refusal on the left, the machine's on the right"),
    }
}

/// Who locks an entry is told its key in place of the cas, and the model does not know it: it is that of the entry. Puts the cas in
/// its place.
fn check_lock_keys(comes: &Comes, came: &mut Comes, after: Option<&Picture>) {
    let (Comes::Parts(comes), Comes::Parts(came)) = (comes, came) else { return };
    let after = after.filter(|_| came.len() == 1);
    for (comes, came) in comes.iter().zip(came) {
        let (Ok(Some(comes)), Ok(Some(came))) = (comes, came) else { continue };
        let has_key = came.cas >= lock::KEY_MARK;
        if has_key && comes.locked_until.is_some() {
            let keys = after.map(|after| &after.lock_keys);
            let is_its = keys.is_none_or(|keys| keys.values().any(|key| *key == came.cas));
            assert!(is_its, "the key {} is of no lock: {keys:?}", came.cas);
            came.cas = comes.cas;
        }
    }
}

/// Compares two states in what the model knows of them.
pub fn assert_same(model: &Picture, real: &Picture) {
    let (one, other) = (&model.entries, &real.entries);
    assert_eq!(one, other, "entries of the model on the left");
    assert_eq!(model.vars.revision, real.vars.revision, "the revision of the model on the left");
    assert_same_parties(model, real);
}

/// Compares sessions and what they do with each other in two states.
fn assert_same_parties(model: &Picture, real: &Picture) {
    let lives = |picture: &Picture| -> Vec<_> {
        picture.sessions.iter().map(|(id, row)| (*id, row.ttl_ms, row.expires_at)).collect()
    };
    assert_eq!(lives(model), lives(real), "sessions of the model on the left");
    assert_eq!(model.holders, real.holders, "holders of the model on the left");
    assert_eq!(model.waiters, real.waiters, "waiters of the model on the left");
    let heads = |picture: &Picture| -> Vec<_> {
        let told = |head: &quorate_machine::keyspace::lock_queue::LockHead| {
            (head.slots, head.holders, head.waiters, head.not_before)
        };
        picture.heads.iter().map(|(lock, head)| (lock.clone(), told(head))).collect()
    };
    assert_eq!(heads(model), heads(real), "locks of the model on the left");
    assert_eq!(model.barriers, real.barriers, "barriers of the model on the left");
    assert_eq!(model.parties, real.parties, "parties of barriers of the model on the left");
    assert_eq!(model.latches, real.latches, "latches of the model on the left");
}

/// What there is while a command is carried out.
struct Model {
    now: Picture,
    /// Whose command it is; empty for nobody in particular.
    principal: String,
    /// Within a transaction or the end of a session: the revision that its changes share, once there is one.
    joint: Option<Option<u64>>,
    /// What checks and steps of a transaction are answered.
    told: Vec<String>,
}

type Written = Result<Option<EntryMeta>, Refusal>;

impl Model {
    fn clock(&self) -> u64 {
        self.now.vars.clock
    }

    fn take_revision(&mut self) -> u64 {
        let revision = self.joint.flatten().unwrap_or(self.now.vars.revision + 1);
        self.joint = self.joint.map(|_| Some(revision));
        self.now.vars.revision = revision;
        revision
    }

    fn guard(&self, guard: Option<&Guard>) -> Result<(), Refusal> {
        let holds = |guard: &Guard| self.now.holders.contains_key(&(guard.lock.clone(), guard.token));
        if guard.is_none_or(holds) { Ok(()) } else { Err(Refusal::GuardFailed) }
    }

    fn write(&mut self, op: &WriteOp) -> Written {
        self.guard(op.guard.as_deref())?;
        let stored = self.now.entries.get(&op.key).cloned();
        if let Some(id) = op.session
            && stored.as_ref().and_then(|entry| entry.meta.session) != Some(id)
            && !self.now.sessions.contains_key(&id)
        {
            return Err(Refusal::SessionExpired);
        }
        let clock = self.clock();
        let current = stored.clone().filter(|entry| !entry.is_expired_at(clock));
        self.judge(op, current.as_ref())?;
        let value = self.value(op, current.as_ref())?;
        if stored.is_some() && current.is_none() {
            self.take_revision();
            self.now.entries.remove(&op.key);
            self.now.lock_keys.remove(&op.key);
        }
        let revision = self.take_revision();
        let Some(value) = value else {
            self.now.entries.remove(&op.key);
            return Ok(None);
        };
        let meta = match (&current, op.change.is_of_lock()) {
            (Some(entry), true) => relocked(op, entry.meta, revision, clock),
            _ => written(op, current.as_ref(), revision, clock),
        };
        match op.change {
            Change::Extend(_) => None,
            Change::Lock(_) | Change::Claim { .. } => self.now.lock_keys.insert(op.key.clone(), KEY_OF_NOW),
            _ => self.now.lock_keys.remove(&op.key),
        };
        self.now.entries.insert(op.key.clone(), Entry { meta, value });
        Ok(Some(meta))
    }

    /// Why it is refused before anything is looked into, if it is.
    fn judge(&self, op: &WriteOp, current: Option<&Entry>) -> Result<(), Refusal> {
        let is_too_long = matches!(op.expiry, Expiry::After(ms) if ms > limits::TTL_MS_MAX);
        let is_no_lock = match op.change {
            Change::Lock(ms) | Change::Extend(ms) | Change::Claim { ms, .. } => ms == 0 || ms > limits::LOCK_MS_MAX,
            _ => false,
        };
        if is_too_long || is_no_lock {
            return Err(Refusal::Unsupported);
        }
        if let Some(entry) = current {
            judge_lock(op, entry, &self.now)?;
        }
        self.expected(&op.key, &op.expect, op.change.needs_entry(), current)?;
        self.condition(&op.key, &op.condition, current)
    }

    fn expected(&self, key: &Key, expect: &Expect, needs_entry: bool, current: Option<&Entry>) -> Result<(), Refusal> {
        let Expect { presence, tokens } = expect;
        let among = |entry: &Entry, tokens: &[u64]| tokens.iter().any(|token| self.now.has_token(key, entry, *token));
        match (current, tokens) {
            (None, _) if needs_entry || *presence == Presence::Present => Err(Refusal::NotFound),
            (None, Tokens::One(_) | Tokens::AnyOf(_)) => Err(Refusal::CasMismatch),
            (None, Tokens::Any | Tokens::NoneOf(_)) => Ok(()),
            (Some(entry), Tokens::One(wanted)) if !among(entry, &[*wanted]) => Err(Refusal::CasMismatch),
            (Some(entry), Tokens::AnyOf(tokens)) if !among(entry, tokens) => Err(Refusal::CasMismatch),
            (Some(entry), Tokens::NoneOf(tokens)) if among(entry, tokens) => Err(Refusal::CasListed),
            (Some(_), _) if *presence == Presence::Absent => Err(Refusal::AlreadyExists),
            (Some(_), _) => Ok(()),
        }
    }

    fn condition(
        &self,
        key: &Key,
        condition: &quorate_machine::document::Criteria,
        current: Option<&Entry>,
    ) -> Result<(), Refusal> {
        let document = current.filter(|entry| entry.value.kind == ContentKind::Json);
        let document = document.and_then(|entry| Json::parse_stored(&entry.value.data).ok());
        let is_locked = current.is_some_and(|entry| entry.meta.is_locked_at(self.clock()));
        let (meta, clock, wall) = (current.map(|entry| &entry.meta), self.clock(), self.now.vars.wall);
        let subject = Subject { key, meta, is_locked, document: document.as_ref(), clock, wall };
        if condition.is_empty() || condition.hold(&subject) { Ok(()) } else { Err(Refusal::ConditionNotMet) }
    }

    /// The value after the write; `None` for a removal.
    fn value(&self, op: &WriteOp, current: Option<&Entry>) -> Result<Option<Value>, Refusal> {
        match (&op.change, current) {
            (Change::Put(value), _) => Ok(Some(value.clone())),
            (Change::Remove, _) => Ok(None),
            (change, Some(entry)) => {
                let Some(patch) = change.patch() else { return Ok(Some(entry.value.clone())) };
                let document = Json::parse_stored(&entry.value.data).ok();
                let document = document.filter(|_| entry.value.kind == ContentKind::Json);
                let Some(document @ Json::Object(_)) = document else { return Err(Refusal::NotADocument) };
                let data = patch.apply_to_text(document, self.now.vars.wall, "/patch");
                let data = data.map_err(|_| Refusal::PatchFailed)?;
                Ok(Some(Value { kind: ContentKind::Json, data }))
            }
            (_, None) => panic!("a change that needs an entry has none"),
        }
    }

    fn txn(&mut self, txn: &Txn) -> Result<(), Refusal> {
        if txn.fault().is_some() {
            return Err(Refusal::Unsupported);
        }
        let mut keys: Vec<_> = txn.all_writes().map(|op| op.key.clone()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            if self.now.entries.get(&key).is_some_and(|entry| entry.is_expired_at(self.clock())) {
                self.take_revision();
                self.now.entries.remove(&key);
            }
        }
        let before = self.now.clone();
        self.joint = Some(None);
        let done = self.branch(txn);
        self.joint = None;
        if done.is_err() {
            self.now = before;
        }
        done
    }

    fn branch(&mut self, txn: &Txn) -> Result<(), Refusal> {
        let holds = |check: &Check| {
            let current = self.now.live(&check.key);
            self.expected(&check.key, &check.expect, false, current)
                .and_then(|()| self.condition(&check.key, &check.condition, current))
        };
        let failed = txn.checks.iter().enumerate().find_map(|(at, check)| Some((at, holds(check).err()?)));
        self.told.push(format!("checks {failed:?}"));
        self.steps(txn.branch(failed.is_none()), &mut VecDeque::new())
    }

    /// How a branch is decided, and those within it that are reached by that.
    fn decide(&self, branch: &Branch) -> VecDeque<bool> {
        let holds = branch.comparisons.iter().all(|comparison| self.compares(comparison));
        let mut decided = VecDeque::from([holds]);
        for step in branch.branch(holds) {
            if let Step::Branch(within) = step {
                decided.extend(self.decide(within));
            }
        }
        decided
    }

    fn steps(&mut self, steps: &[Step], decided: &mut VecDeque<bool>) -> Result<(), Refusal> {
        for step in steps {
            let told = match step {
                Step::Get(key) => StepReply::Got(self.now.live(key).cloned().map(Shown::Whole)),
                Step::List(step) => StepReply::Listed(self.list(step)?),
                Step::Write(op) => {
                    let previous = self.now.live(&op.key).filter(|_| op.return_previous).cloned().map(Shown::Whole);
                    let meta = self.write(op)?;
                    // Who locks it is told the key in place of the token.
                    let has_key = self.now.lock_keys.contains_key(&op.key);
                    let told =
                        |meta: EntryMeta| EntryMeta { cas: if has_key { lock::KEY_MARK } else { meta.cas }, ..meta };
                    StepReply::Written(types::Written { meta: meta.map(told), previous })
                }
                Step::Remove(step) => StepReply::Removed(self.remove(step)?),
                Step::Txn(txn) => {
                    self.branch(txn)?;
                    continue;
                }
                Step::Branch(branch) => {
                    if decided.is_empty() {
                        *decided = self.decide(branch);
                    }
                    let holds = decided.pop_front().expect("it is decided");
                    self.told.push(format!("branch {holds}"));
                    self.steps(branch.branch(holds), decided)?;
                    continue;
                }
            };
            self.told.push(without_keys(&told));
        }
        Ok(())
    }

    fn list(&self, step: &ListStep) -> Result<Listed, Refusal> {
        let newest = self.now.vars.revision - u64::from(self.joint.flatten().is_some());
        match step.at {
            Some(at) if at < self.now.vars.oldest_revision => return Err(Refusal::TxnCompacted),
            Some(at) if at > newest => return Err(Refusal::Txn),
            // What was there then is looked up once the transaction is through.
            Some(_) => return Ok(Listed { entries: Vec::new(), count: 0, more: false, left_out: false }),
            None => {}
        }
        let mut found: Vec<_> = self.live_in(&step.range).map(|(key, entry)| (key.clone(), entry.clone())).collect();
        let count = found.len() as u64;
        found.retain(|(_, entry)| step.filter.passes(&entry.meta));
        let rank = |(key, entry): &(Key, Entry)| match step.order.by {
            ListOrderBy::Key => key.as_bytes().to_vec(),
            ListOrderBy::Version => entry.meta.version.to_be_bytes().to_vec(),
            ListOrderBy::CreateRevision => entry.meta.create_revision.to_be_bytes().to_vec(),
            ListOrderBy::ModRevision => entry.meta.mod_revision.to_be_bytes().to_vec(),
            ListOrderBy::Value => entry.value.data.clone(),
        };
        match step.order.descending {
            false => found.sort_by_key(rank),
            true => found.sort_by_key(|entry| Reverse(rank(entry))),
        }
        let limit = if step.limit == 0 { usize::MAX } else { step.limit as usize };
        let more = step.shown != ListShown::Count && found.len() > limit;
        found.truncate(if step.shown == ListShown::Count { 0 } else { limit });
        if step.shown == ListShown::Keys {
            found.iter_mut().for_each(|(_, entry)| entry.value.data.clear());
        }
        let entries = found.into_iter().map(|(key, entry)| (key, Shown::Whole(entry))).collect();
        Ok(Listed { entries, count, more, left_out: false })
    }

    fn remove(&mut self, step: &RemoveStep) -> Result<Removed, Refusal> {
        let found: Vec<_> = self.live_in(&step.range).map(|(key, entry)| (key.clone(), entry.clone())).collect();
        if found.iter().any(|(_, entry)| self.joint == Some(Some(entry.meta.mod_revision))) {
            return Err(Refusal::Txn);
        }
        let mut removed = Removed { count: found.len() as u64, entries: Vec::new() };
        for (key, entry) in found {
            self.write(&WriteOp::removal(key.clone(), false))?;
            removed.entries.extend(step.return_previous.then_some((key, Shown::Whole(entry))));
        }
        Ok(removed)
    }

    fn live_in(&self, range: &KeyRange) -> impl Iterator<Item = (&Key, &Entry)> {
        let within = self.now.entries.iter().filter(|(key, _)| range.contains(key.as_bytes()));
        within.filter(|(_, entry)| !entry.is_expired_at(self.now.vars.clock))
    }

    /// Said in the words of etcd's interface, not with the machine's own function.
    fn compares(&self, comparison: &Comparison) -> bool {
        let of = |entry: Option<&Entry>| {
            let meta = entry.map(|entry| entry.meta);
            let (actual, wanted) = match &comparison.with {
                Compared::Value(wanted) => {
                    let Some(entry) = entry else { return false };
                    return stands(comparison.operator, &entry.value.data, wanted);
                }
                Compared::Version(wanted) => (meta.map_or(0, |meta| meta.version), *wanted),
                Compared::CreateRevision(wanted) => (meta.map_or(0, |meta| meta.create_revision), *wanted),
                Compared::ModRevision(wanted) => (meta.map_or(0, |meta| meta.mod_revision), *wanted),
                Compared::Lease(wanted) => {
                    (meta.and_then(|meta| meta.session).map_or(0, |id| id.lease() as u64), *wanted)
                }
            };
            stands(comparison.operator, &(actual as i64), &wanted)
        };
        let mut found = self.live_in(&comparison.range).map(|(_, entry)| entry).peekable();
        if found.peek().is_none() { of(None) } else { found.all(|entry| of(Some(entry))) }
    }
}

fn stands<T: PartialOrd>(operator: ComparisonOperator, actual: &T, wanted: &T) -> bool {
    match operator {
        ComparisonOperator::Equal => actual == wanted,
        ComparisonOperator::NotEqual => actual != wanted,
        ComparisonOperator::Greater => actual > wanted,
        ComparisonOperator::Less => actual < wanted,
    }
}

/// The table of locks.
fn judge_lock(op: &WriteOp, entry: &Entry, now: &Picture) -> Result<(), Refusal> {
    let locked = entry.meta.is_locked_at(now.vars.clock);
    let key = match &op.expect.tokens {
        Tokens::One(token) => now.has_token(&op.key, entry, *token),
        Tokens::AnyOf(tokens) => tokens.iter().any(|token| now.has_token(&op.key, entry, *token)),
        _ => false,
    };
    match op.change {
        Change::Lock(_) | Change::Claim { .. } if locked => Err(Refusal::Locked),
        Change::Unlock | Change::Extend(_) if !locked => Err(Refusal::NotLocked),
        Change::Unlock | Change::Extend(_) if !key => Err(Refusal::Locked),
        _ if op.expect.presence == Presence::Absent => Ok(()),
        _ if locked && !key => Err(Refusal::CasMismatch),
        _ => Ok(()),
    }
}

fn relocked(op: &WriteOp, meta: EntryMeta, revision: u64, clock: u64) -> EntryMeta {
    match op.change {
        Change::Lock(ms) | Change::Claim { ms, .. } => {
            EntryMeta { cas: revision, locked_until: Some(clock + ms), ..meta }
        }
        Change::Extend(ms) => EntryMeta { locked_until: Some(clock + ms), ..meta },
        _ => EntryMeta { locked_until: None, ..meta },
    }
}

fn written(op: &WriteOp, current: Option<&Entry>, revision: u64, clock: u64) -> EntryMeta {
    let old = current.map(|entry| entry.meta);
    EntryMeta {
        create_revision: old.map_or(revision, |meta| meta.create_revision),
        mod_revision: revision,
        version: old.map_or(1, |meta| meta.version + 1),
        cas: revision,
        expires_at: match op.expiry {
            Expiry::Keep => old.and_then(|meta| meta.expires_at),
            Expiry::Never | Expiry::Usual => None,
            Expiry::After(ms) => Some(clock + ms),
        },
        locked_until: match op.change {
            Change::Claim { ms, .. } => Some(clock + ms),
            _ => None,
        },
        session: match op.change {
            Change::Put(_) => op.session,
            _ => op.session.or(old.and_then(|meta| meta.session)),
        },
    }
}

/// Whether a refusal was no decision at all: nothing may have changed.
pub fn is_undecided(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected(Rejection::RequestIdReused | Rejection::AccessChanged))
}

/// Checks that who waited for a lock got it in the order of their places, by tokens in that order.
fn check_order(lock: &LockName, before: &Picture, after: &Picture) {
    let left = after.waiters.keys().find(|(of, _)| of == lock).map(|(_, place)| *place);
    let mut last = 0;
    for ((_, place), row) in before.waiters.iter().filter(|((of, _), _)| of == lock) {
        let session = row.party.session;
        let held = after.holders.iter().find(|((of, _), held)| of == lock && held.session == session);
        let Some(((_, token), _)) = held else { continue };
        assert!(left.is_none_or(|left| left > *place), "{lock:?} was given to place {place}, and {left:?} waits");
        assert!(*token > last, "{lock:?} was given to place {place} by token {token}, and before it by {last}");
        last = *token;
    }
}

/// Checks what time alone has done: all that is over went, and nothing else.
pub fn time_passed(before: &Picture, after: &Picture) {
    let clock = after.vars.clock;
    for (id, row) in &before.sessions {
        let lives = row.expires_at > clock;
        assert_eq!(after.sessions.contains_key(id), lives, "session {id} at {clock}: {row:?}");
    }
    assert!(after.sessions.keys().all(|id| before.sessions.contains_key(id)), "time begins no session");
    for (key, entry) in &before.entries {
        let stays = entry.meta.session.is_none_or(|id| after.sessions.contains_key(&id));
        let kept = after.entries.get(key);
        assert_eq!(kept, Some(entry).filter(|_| stays), "{key} at {clock}");
    }
    for (at, row) in &before.holders {
        let lives = after.sessions.contains_key(&row.session);
        assert_eq!(after.holders.contains_key(at), lives, "{at:?} at {clock}: {row:?}");
    }
    for (at, row) in &after.holders {
        let (lock, token) = at;
        let waited = |of: &(quorate_machine::types::LockName, u64)| {
            before.waiters.iter().any(|(place, waiter)| place.0 == of.0 && waiter.party.session == row.session)
        };
        let is_granted = *token > before.vars.revision && waited(at);
        assert!(before.holders.contains_key(at) || is_granted, "{lock:?} was given to nobody who waited: {row:?}");
    }
    for (at, row) in &before.waiters {
        let lives = after.sessions.contains_key(&row.party.session);
        let holds = after.holders.iter().any(|((lock, _), held)| *lock == at.0 && held.session == row.party.session);
        let waits = after.waiters.get(at) == Some(row);
        let is_over = row.until <= clock;
        assert!(!waits || (lives && !is_over), "{at:?} waits on at {clock}: {row:?}");
        assert!(waits || holds || !lives || is_over, "{at:?} does not wait any more at {clock}: {row:?}");
    }
    before.heads.keys().for_each(|lock| check_order(lock, before, after));
    for (lock, head) in &after.heads {
        assert!(head.not_before.is_none_or(|until| until > clock), "{lock:?} is held back at {clock}: {head:?}");
    }
    assert_eq!(before.latches, after.latches, "time opens no latch");
}
