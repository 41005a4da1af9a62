//! What the machine should do, written for the eye: every version of every key in a list, requests in another.
//!
//! Shares no code with the machine but the vocabulary and the parser of JSON.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_machine::document::path::Field;
use quorate_machine::document::{self, Excerpt, Json, Operand, Predicate, Term, Unmet};
use quorate_machine::keyspace::lock;
use quorate_machine::limits;
use quorate_machine::types::*;

#[derive(Debug, Clone)]
pub struct Model {
    pub revision: Revision,
    /// Within a transaction: the revision that its writes share, once there is one.
    shared: Option<Option<Revision>>,
    clock: u64,
    /// Versions of each key with the revision they came at; `None` is a removal.
    versions: BTreeMap<Vec<u8>, Vec<(Revision, Option<Entry>)>>,
    /// What opens the lock on the newest version of a key, also one that ended by itself.
    lock_keys: BTreeMap<Vec<u8>, u64>,
    /// Bucket, command, reply.
    requests: Vec<(u64, Command, Reply)>,
    changed: Vec<(Key, Revision)>,
    /// Log index and randomness of the batch at hand.
    index: u64,
    seed: Seed,
    /// Locks that ended by themselves and were forgotten, by their ends and keys.
    forgotten: BTreeSet<(u64, Vec<u8>)>,
    compaction: Compaction,
}

/// Ends of the batches that changed something, and up to which one was compacted.
#[derive(Debug, Clone, Default)]
struct Compaction {
    batch_ends: Vec<Revision>,
    oldest: Revision,
    dropped: usize,
}

impl Default for Model {
    fn default() -> Self {
        let compaction = Compaction { oldest: 1, ..Compaction::default() };
        let (versions, lock_keys, requests, changed, forgotten) = Default::default();
        let (revision, shared, clock, index, seed) = (1, None, 0, 0, Seed::default());
        Self { revision, shared, clock, versions, lock_keys, requests, changed, index, seed, forgotten, compaction }
    }
}

impl Model {
    pub fn apply(&mut self, index: u64, (clock, seed): (u64, Seed), commands: &[Command]) -> Vec<Reply> {
        (self.clock, self.index, self.seed) = (self.clock.max(clock), index, seed);
        let before = self.revision;
        let replies = commands.iter().map(|command| self.command(index, before, command)).collect();
        if self.revision > before {
            self.compaction.batch_ends.push(self.revision);
        }
        replies
    }

    pub fn take_changed(&mut self) -> Vec<(Key, Revision)> {
        std::mem::take(&mut self.changed)
    }

    pub fn oldest_revision(&self) -> Revision {
        self.compaction.oldest
    }

    pub fn read_at(&self, key: &[u8], revision: Revision) -> Option<Entry> {
        let versions = self.versions.get(key)?;
        versions.iter().rev().find(|(at, _)| *at <= revision)?.1.clone()
    }

    fn command(&mut self, index: u64, batch_start: Revision, command: &Command) -> Reply {
        let bucket = self.clock / limits::REQUEST_BUCKET_MS;
        if let Some(id) = &command.request_id {
            let is_meant = |kept: &Command| kept.request_id.as_ref() == Some(id) && kept.principal == command.principal;
            let kept = self.requests.iter().rev().find(|(_, kept, _)| is_meant(kept));
            if let Some((kept_in, kept, reply)) = kept
                && kept_in + 1 >= bucket
            {
                if kept == command {
                    return self.replayed(command, reply);
                }
                return self.reply(index, Outcome::Rejected(Rejection::RequestIdReused));
            }
        }
        let outcome = match &command.action {
            Action::Write(op) => match self.write(op) {
                Ok(written) => Outcome::Written(written),
                Err(rejection) => Outcome::Rejected(rejection),
            },
            Action::Bulk(ops) => Outcome::Bulk(ops.iter().map(|op| self.item(op)).collect()),
            Action::Txn(txn) => self.txn(txn),
            Action::Maintain(Maintenance::ExpireDue { limit }) => self.expire(*limit as usize),
            Action::Maintain(Maintenance::Compact { revision, groups_max }) => {
                self.compact((*revision).min(batch_start), *groups_max as usize)
            }
            Action::Maintain(Maintenance::RaiseLevel { .. }) => Outcome::Maintained { removed: 0, more: false },
            other => panic!("the model knows no {other:?}"),
        };
        let reply = self.reply(index, outcome);
        if command.request_id.is_some() {
            self.requests.push((bucket, command.clone(), reply.clone()));
        }
        reply
    }

    /// The first answer again; without the value it showed where that version was compacted since.
    fn replayed(&self, command: &Command, first: &Reply) -> Reply {
        let reply = Reply { replayed: true, ..first.clone() };
        let mut reply = reply;
        let _ = command;
        let Compaction { batch_ends, dropped, .. } = &self.compaction;
        let compacted = batch_ends[..*dropped].last().copied().unwrap_or(1);
        // No two keys of the model have a version of the same revision and the same value under test, but in a
        // transaction; so the version is looked for under every key, and is gone only where it is under none.
        reply.outcome.each_shown(&mut |shown| {
            // No value of the model is empty: it is of a listing of keys, and needs no version.
            if shown.value_bytes() == 0 {
                return;
            }
            let is_kept = self.versions.values().any(|versions| {
                let of = versions.iter().position(|(at, _)| *at == shown.meta().mod_revision);
                of.is_some_and(|at| {
                    let is_same = |(_, entry): &&(Revision, Option<Entry>)| {
                        entry.as_ref().is_some_and(|entry| entry.meta.mod_revision == shown.meta().mod_revision)
                    };
                    let superseded = versions[at..].iter().find(|version| !is_same(version));
                    versions[at].1.as_ref().map(|entry| &entry.value) == shown.entry().map(|entry| &entry.value)
                        && superseded.is_none_or(|(superseded, _)| *superseded > compacted)
                })
            });
            if !is_kept {
                *shown = shown.to_bare();
            }
        });
        reply
    }

    fn item(&mut self, op: &WriteOp) -> BulkItem {
        let outcome = match self.write(op) {
            Ok(written) => ItemOutcome::Written(written),
            Err(rejection) => ItemOutcome::Rejected(rejection),
        };
        BulkItem { revision: self.revision, outcome }
    }

    fn txn(&mut self, txn: &Txn) -> Outcome {
        if let Some(fault) = txn.fault() {
            return Outcome::Rejected(Rejection::Unsupported(fault.to_string()));
        }
        let mut written: Vec<&Key> = txn.all_writes().map(|op| &op.key).collect();
        written.sort();
        written.dedup();
        for key in written {
            let newest = self.read_at(key.as_bytes(), self.revision);
            if newest.is_some_and(|entry| entry.is_expired_at(self.clock)) {
                self.push(key, |_| None);
            }
        }
        let before = self.clone();
        self.shared = Some(None);
        let done = self.branch(txn, "");
        self.shared = None;
        match done {
            Ok(done) => Outcome::Txn(done),
            Err(rejected) => {
                *self = before;
                Outcome::TxnRejected(rejected)
            }
        }
    }

    fn branch(&mut self, txn: &Txn, place: &str) -> Result<TxnReply, Box<StepRejected>> {
        let checked = txn.checks.iter().enumerate().find_map(|(at, check)| Some((at, self.check(check)?)));
        let failed = checked.map(|(at, why)| CheckFailed { at: at as u32, why });
        let results = self.steps((failed.is_none(), txn.branch(failed.is_none())), &mut VecDeque::new(), place)?;
        Ok(TxnReply { failed, results })
    }

    fn decide(&self, branch: &Branch, decided: &mut VecDeque<bool>) {
        let holds = branch.comparisons.iter().all(|comparison| self.compares(comparison));
        decided.push_back(holds);
        for step in branch.branch(holds) {
            if let Step::Branch(within) = step {
                self.decide(within, decided);
            }
        }
    }

    fn steps(
        &mut self,
        (succeeded, steps): (bool, &[Step]),
        decided: &mut VecDeque<bool>,
        place: &str,
    ) -> Result<Vec<StepReply>, Box<StepRejected>> {
        let name = if succeeded { "then" } else { "else" };
        let mut results = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let pointer = format!("{place}/{name}/{at}");
            results.push(match step {
                Step::Get(key) => StepReply::Got(self.live(key).map(Shown::Whole)),
                Step::Write(op) => {
                    let done = self.write(op);
                    let refused = |why| Box::new(StepRejected { pointer, key: Some(op.key.clone()), why });
                    StepReply::Written(done.map_err(refused)?)
                }
                Step::Txn(txn) => StepReply::Txn(self.branch(txn, &pointer)?),
                Step::List(step) => StepReply::Listed(self.list(step, &pointer)?),
                Step::Remove(step) => StepReply::Removed(self.remove(step, &pointer)?),
                Step::Branch(branch) => {
                    if decided.is_empty() {
                        self.decide(branch, decided);
                    }
                    let succeeded = decided.pop_front().unwrap();
                    let results = self.steps((succeeded, branch.branch(succeeded)), decided, &pointer)?;
                    StepReply::Branched(Branched { succeeded, results })
                }
            });
        }
        Ok(results)
    }

    fn live_in(&self, range: &KeyRange) -> Vec<(Key, Entry)> {
        let within = self.versions.keys().filter(|key| range.contains(key)).map(|key| Key::new(key.clone()).unwrap());
        within.filter_map(|key| self.live(&key).map(|entry| (key, entry))).collect()
    }

    fn list(&self, step: &ListStep, pointer: &str) -> Result<Listed, Box<StepRejected>> {
        if let Some(at) = step.at {
            let before = if self.shared == Some(None) { self.revision } else { self.revision - 1 };
            let why = match at {
                at if at < self.oldest_revision() => TxnRefusal::Compacted,
                at if at > before => TxnRefusal::Future,
                _ => return Ok(Listed { entries: Vec::new(), count: 0, more: false, left_out: false }),
            };
            return Err(Box::new(StepRejected { pointer: pointer.to_owned(), key: None, why: Rejection::Txn(why) }));
        }
        let mut found = self.live_in(&step.range);
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
            true => found.sort_by_key(|entry| std::cmp::Reverse(rank(entry))),
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

    fn remove(&mut self, step: &RemoveStep, pointer: &str) -> Result<Removed, Box<StepRejected>> {
        let mut removed = Removed { count: 0, entries: Vec::new() };
        let found = self.live_in(&step.range);
        let is_own = |entry: &Entry| self.shared == Some(Some(entry.meta.mod_revision));
        if let Some((key, _)) = found.iter().find(|(_, entry)| is_own(entry)) {
            let (key, why) = (Some(key.clone()), Rejection::Txn(TxnRefusal::KeyTwice));
            return Err(Box::new(StepRejected { pointer: pointer.to_owned(), key, why }));
        }
        for (key, _) in found {
            let op = WriteOp::removal(key.clone(), step.return_previous);
            match self.write(&op) {
                Ok(written) => {
                    removed.count += 1;
                    removed.entries.extend(written.previous.map(|previous| (key, previous)));
                }
                Err(why) => return Err(Box::new(StepRejected { pointer: pointer.to_owned(), key: Some(key), why })),
            }
        }
        Ok(removed)
    }

    fn compares(&self, comparison: &Comparison) -> bool {
        let holds = |entry: Option<&Entry>| {
            let ordering = comparison.with.ordering(entry.map(|entry| (&entry.meta, entry.value.data.as_slice())));
            ordering.is_some_and(|ordering| comparison.operator.holds(ordering))
        };
        let found = self.live_in(&comparison.range);
        if found.is_empty() { holds(None) } else { found.iter().all(|(_, entry)| holds(Some(entry))) }
    }

    fn live(&self, key: &Key) -> Option<Entry> {
        self.read_at(key.as_bytes(), self.revision).filter(|entry| !entry.is_expired_at(self.clock))
    }

    fn check(&self, check: &Check) -> Option<Rejection> {
        let current = self.live(&check.key);
        let shown = current.clone().map(Shown::Whole);
        match (check.expect.presence, &current) {
            (Presence::Absent, Some(_)) => return Some(Rejection::AlreadyExists { current: shown.unwrap() }),
            (Presence::Present, None) => return Some(Rejection::NotFound),
            _ => {}
        }
        let has = |cas| current.as_ref().is_some_and(|entry| self.tokens(&check.key, entry).contains(&cas));
        match check.expect.tokens {
            Tokens::Any => {}
            Tokens::One(cas) if has(cas) => {}
            Tokens::One(cas) => return Some(Rejection::CasMismatch { expected: Some(cas), current: shown }),
            Tokens::AnyOf(_) | Tokens::NoneOf(_) => panic!("the model knows no lists in checks"),
        }
        let (key, change, expiry) = (check.key.clone(), Change::Touch, Expiry::Keep);
        let (expect, condition) = (Expect::ANY, check.condition.clone());
        let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
        let unmet = unmet(&op, current.as_ref())?;
        Some(Rejection::ConditionNotMet { unmet: [unmet].into(), current: shown })
    }

    /// What a write may name to mean the entry as it is.
    fn tokens(&self, key: &Key, entry: &Entry) -> Vec<u64> {
        let (key, cas) = (self.lock_keys.get(key.as_bytes()).copied(), entry.meta.cas);
        match key {
            Some(key) if entry.meta.is_locked_at(self.clock) => vec![key],
            key => key.into_iter().chain([cas]).collect(),
        }
    }

    /// What opens the locks that hold, by their cas.
    pub fn keys_by_cas(&self) -> BTreeMap<u64, u64> {
        let held = |(key, lock_key): (&Vec<u8>, &u64)| {
            let entry = self.read_at(key, self.revision)?;
            entry.meta.is_locked_at(self.clock).then_some((entry.meta.cas, *lock_key))
        };
        self.lock_keys.iter().filter_map(held).collect()
    }

    fn take_revision(&mut self) {
        match &mut self.shared {
            None => self.revision += 1,
            Some(shared) => {
                self.revision = shared.unwrap_or(self.revision + 1);
                *shared = Some(self.revision);
            }
        }
    }

    fn reply(&self, index: u64, outcome: Outcome) -> Reply {
        Reply { index, revision: self.revision, clock: self.clock, replayed: false, outcome }
    }

    fn push(&mut self, key: &Key, entry: impl FnOnce(Revision) -> Option<Entry>) {
        self.take_revision();
        let entry = entry(self.revision);
        self.lock_keys.remove(key.as_bytes());
        self.versions.entry(key.as_bytes().to_vec()).or_default().push((self.revision, entry));
        self.changed.push((key.clone(), self.revision));
    }

    fn write(&mut self, op: &WriteOp) -> Result<Written, Rejection> {
        if let Expiry::After(ms) = op.expiry
            && ms > limits::TTL_MS_MAX
        {
            let longest = limits::TTL_MS_MAX;
            return Err(Rejection::Unsupported(format!("a TTL of {ms} ms; the longest is {longest} ms")));
        }
        let stored = self.read_at(op.key.as_bytes(), self.revision);
        let expired = stored.as_ref().is_some_and(|entry| entry.is_expired_at(self.clock));
        let current = stored.filter(|_| !expired);
        if let Tokens::AnyOf(tokens) | Tokens::NoneOf(tokens) = &op.expect.tokens
            && tokens.len() > limits::EXPECT_TOKENS_MAX
        {
            let (given, max) = (tokens.len(), limits::EXPECT_TOKENS_MAX);
            return Err(Rejection::Unsupported(format!("a list of {given} tokens; the longest has {max}")));
        }
        if let Change::Lock(ms) | Change::Extend(ms) = op.change
            && !(1..=30_000).contains(&ms)
        {
            return Err(Rejection::Unsupported(format!("a lock for {ms} ms; the longest is 30000 ms")));
        }
        let tokens = current.as_ref().map_or_else(Vec::new, |entry| self.tokens(&op.key, entry));
        if let Some(refusal) = current.as_ref().and_then(|entry| lock_refusal(op, entry, &tokens, self.clock)) {
            return Err(refusal);
        }
        let value = changed_value(op, current.as_ref(), &tokens);
        // A condition is looked at once it is known that there is something to look at.
        let reachable = !matches!(&value, Err(why) if !matches!(why, Rejection::NotADocument { .. }));
        if let Some(unmet) = unmet(op, current.as_ref()).filter(|_| reachable) {
            let current = current.map(Shown::Whole);
            return Err(Rejection::ConditionNotMet { unmet: [unmet].into(), current });
        }
        let value = value?;
        if op.change.is_of_lock() {
            return Ok(self.relock(op, current.unwrap()));
        }
        if expired {
            self.push(&op.key, |_| None);
        }
        let expires_at = match op.expiry {
            Expiry::Keep => current.as_ref().and_then(|entry| entry.meta.expires_at),
            Expiry::Never | Expiry::Usual => None,
            Expiry::After(ms) => Some(self.clock + ms),
        };
        let old = current.as_ref().map(|entry| entry.meta);
        self.push(&op.key, |revision| {
            let create_revision = old.map_or(revision, |meta| meta.create_revision);
            let version = old.map_or(1, |meta| meta.version + 1);
            let (mod_revision, cas, locked_until) = (revision, revision, None);
            let meta =
                EntryMeta { create_revision, mod_revision, version, cas, expires_at, locked_until, session: None };
            value.map(|value| Entry { meta, value })
        });
        let after = self.read_at(op.key.as_bytes(), self.revision);
        Ok(Written {
            meta: after.map(|entry| entry.meta),
            previous: current.filter(|_| op.return_previous).map(Shown::Whole),
        })
    }

    /// Changes the lock of the current version, which stays the same version.
    fn relock(&mut self, op: &WriteOp, before: Entry) -> Written {
        self.take_revision();
        self.changed.push((op.key.clone(), self.revision));
        let (revision, clock) = (self.revision, self.clock);
        // Who reads it as of before sees the lock of then.
        let versions = self.versions.get_mut(op.key.as_bytes()).unwrap();
        versions.push((revision, versions.last().unwrap().1.clone()));
        let key = op.key.as_bytes();
        match op.change {
            Change::Lock(_) => {
                let lock_key = lock::key_of(&self.seed, self.index, revision, key);
                self.lock_keys.insert(key.to_vec(), lock_key);
            }
            Change::Unlock => _ = self.lock_keys.remove(key),
            _ => {}
        }
        let lock_key = self.lock_keys.get(key).copied();
        let meta = &mut self.current_mut(op.key.as_bytes()).meta;
        meta.locked_until = match op.change {
            Change::Lock(ms) | Change::Extend(ms) => Some(clock + ms),
            _ => None,
        };
        if let Change::Lock(_) = op.change {
            meta.cas = revision;
        }
        // Who locks it is told the key in place of the token.
        let meta = EntryMeta { cas: lock_key.unwrap_or(meta.cas), ..*meta };
        Written { meta: Some(meta), previous: op.return_previous.then_some(Shown::Whole(before)) }
    }

    fn current_mut(&mut self, key: &[u8]) -> &mut Entry {
        self.versions.get_mut(key).unwrap().last_mut().unwrap().1.as_mut().unwrap()
    }

    /// Forgets locks that ended, the first to end first; gives how many, and how many there were.
    fn forget_locks(&mut self, limit: usize) -> (usize, usize) {
        let mut ended: Vec<(u64, Vec<u8>)> = Vec::new();
        for (key, versions) in &self.versions {
            if let Some((_, Some(entry))) = versions.last()
                && let Some(until) = entry.meta.locked_until.filter(|until| *until <= self.clock)
                && !self.forgotten.contains(&(until, key.clone()))
            {
                ended.push((until, key.clone()));
            }
        }
        ended.sort();
        for (until, key) in ended.iter().take(limit) {
            // The entry says it by itself, and is not touched.
            self.forgotten.insert((*until, key.clone()));
        }
        (ended.len().min(limit), ended.len())
    }

    fn expire(&mut self, limit: usize) -> Outcome {
        let mut due: Vec<(u64, Vec<u8>)> = Vec::new();
        for (key, versions) in &self.versions {
            if let Some((_, Some(entry))) = versions.last()
                && entry.is_expired_at(self.clock)
            {
                due.push((entry.meta.expires_at.unwrap(), key.clone()));
            }
        }
        due.sort();
        for (_, key) in due.iter().take(limit) {
            self.push(&Key::new(key.as_slice()).unwrap(), |_| None);
        }
        if due.len() > limit {
            return Outcome::Maintained { removed: limit as u32, more: true };
        }
        let (forgotten, ended) = self.forget_locks(limit - due.len());
        Outcome::Maintained { removed: (due.len() + forgotten) as u32, more: ended > forgotten }
    }

    fn compact(&mut self, target: Revision, groups_max: usize) -> Outcome {
        let Compaction { batch_ends, oldest, dropped } = &mut self.compaction;
        if target <= *oldest {
            return Outcome::Maintained { removed: 0, more: false };
        }
        let due = batch_ends[*dropped..].iter().filter(|end| **end <= target).count();
        let removed = due.min(groups_max);
        *dropped += removed;
        let last_dropped = batch_ends[..*dropped].last().copied().unwrap_or(1);
        *oldest = if removed == due { target } else { last_dropped.max(*oldest) };
        Outcome::Maintained { removed: removed as u32, more: due > removed }
    }
}

/// The table of locks, row for row.
fn lock_refusal(op: &WriteOp, entry: &Entry, own: &[u64], clock: u64) -> Option<Rejection> {
    let current = Shown::Whole(entry.clone());
    let locked = entry.meta.locked_until.is_some_and(|until| clock < until);
    let key = match &op.expect.tokens {
        Tokens::One(cas) => own.contains(cas),
        Tokens::AnyOf(tokens) => tokens.iter().any(|token| own.contains(token)),
        Tokens::Any | Tokens::NoneOf(_) => false,
    };
    let given = if let Tokens::One(cas) = op.expect.tokens { Some(cas) } else { None };
    match op.change {
        Change::Lock(_) => locked.then_some(Rejection::Locked { current }),
        Change::Unlock | Change::Extend(_) if !locked => Some(Rejection::NotLocked { current }),
        Change::Unlock | Change::Extend(_) => (!key).then_some(Rejection::Locked { current }),
        _ if op.expect.presence == Presence::Absent => None,
        _ => (locked && !key).then_some(Rejection::CasMismatch { expected: given, current: Some(current) }),
    }
}

/// The first predicate of the condition that does not hold. Knows the two forms that are tried: an upper bound of the
/// version, and equality of a member with a digit.
fn unmet(op: &WriteOp, current: Option<&Entry>) -> Option<Unmet> {
    op.condition.terms().iter().enumerate().find_map(|(at, term)| {
        let Term::Predicate(predicate) = term else { panic!("the model knows no groups") };
        let (actual, holds) = judge(predicate, current);
        let actual = actual.map(|text| Excerpt { text, is_whole: true });
        (!holds).then(|| Unmet { pointer: format!("/if/{at}"), actual })
    })
}

fn judge(predicate: &Predicate, current: Option<&Entry>) -> (Option<String>, bool) {
    let Operand::One(document::Value::Json(wanted)) = predicate.operand() else { panic!("a list in {predicate:?}") };
    let wanted = wanted.to_text();
    let Some(entry) = current else { return (None, false) };
    match predicate.field() {
        Field::Meta(_) => (Some(entry.meta.version.to_string()), entry.meta.version <= wanted.parse::<u64>().unwrap()),
        Field::Document(path) => {
            let document = Json::parse(&entry.value.data).ok().filter(|_| entry.value.kind == ContentKind::Json);
            let Some(Json::Object(document)) = document else { return (None, false) };
            let found = document.get(&path.names()[0]).map(Json::to_text);
            let holds = found.as_ref() == Some(&wanted);
            (found, holds)
        }
    }
}

/// The value after the write; `None` for a removal. `own` are the tokens that mean the entry as it is.
fn changed_value(op: &WriteOp, current: Option<&Entry>, own: &[u64]) -> Result<Option<Value>, Rejection> {
    use Change::*;
    let Expect { presence, tokens } = &op.expect;
    match (current, tokens, &op.change) {
        (None, _, Put(_)) if *presence == Presence::Present => Err(Rejection::NotFound),
        (None, &Tokens::One(expected), Put(_)) => {
            Err(Rejection::CasMismatch { expected: Some(expected), current: None })
        }
        (None, Tokens::AnyOf(_), Put(_)) => Err(Rejection::CasMismatch { expected: None, current: None }),
        (None, Tokens::Any | Tokens::NoneOf(_), Put(value)) => Ok(Some(value.clone())),
        (None, _, _) => Err(Rejection::NotFound),
        (Some(entry), Tokens::AnyOf(tokens), _) if !tokens.iter().any(|token| own.contains(token)) => {
            Err(Rejection::CasMismatch { expected: None, current: Some(Shown::Whole(entry.clone())) })
        }
        (Some(entry), Tokens::NoneOf(tokens), _) if tokens.iter().any(|token| own.contains(token)) => {
            Err(Rejection::CasListed { current: Shown::Whole(entry.clone()) })
        }
        (Some(entry), &Tokens::One(expected), _) if !own.contains(&expected) => {
            Err(Rejection::CasMismatch { expected: Some(expected), current: Some(Shown::Whole(entry.clone())) })
        }
        (Some(entry), ..) if *presence == Presence::Absent => {
            Err(Rejection::AlreadyExists { current: Shown::Whole(entry.clone()) })
        }
        (Some(_), _, Put(value)) => Ok(Some(value.clone())),
        (Some(entry), _, Touch | Lock(_) | Extend(_) | Unlock | Claim { .. }) => Ok(Some(entry.value.clone())),
        (Some(_), _, Remove) => Ok(None),
        (Some(entry), _, Patch(patch)) => {
            let document = Json::parse(&entry.value.data).ok().filter(|_| entry.value.kind == ContentKind::Json);
            let Some(Json::Object(document)) = document else {
                return Err(Rejection::NotADocument { current: Shown::Whole(entry.clone()) });
            };
            let document::Patch::Merge(patch) = patch else { panic!("the model knows merge patches only") };
            let data = text(&merge(plain(&Json::Object(document)), plain(patch)));
            Ok(Some(Value { kind: ContentKind::Json, data: data.into() }))
        }
    }
}

/// A value as a merge patch sees it: an object, or something else.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Object(Vec<(String, Plain)>),
    Other(String),
}

fn plain(json: &Json<'_>) -> Plain {
    match json {
        Json::Object(object) => Plain::Object(object.iter().map(|(name, value)| (name.into(), plain(value))).collect()),
        other => Plain::Other(other.to_text()),
    }
}

fn text(value: &Plain) -> String {
    match value {
        Plain::Object(members) => {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{}", text(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        Plain::Other(text) => text.clone(),
    }
}

/// RFC 7396, section 2, as it is written there; what stays keeps its place.
fn merge(target: Plain, patch: Plain) -> Plain {
    let Plain::Object(patch) = patch else { return patch };
    let mut target = if let Plain::Object(target) = target { target } else { Vec::new() };
    for (name, value) in patch {
        let at = target.iter().position(|(found, _)| *found == name);
        match (at, value) {
            (None, value) if value == Plain::Other("null".into()) => {}
            (None, value) => target.push((name, merge(Plain::Object(Vec::new()), value))),
            (Some(at), value) if value == Plain::Other("null".into()) => drop(target.remove(at)),
            (Some(at), value) => target[at].1 = merge(target[at].1.clone(), value),
        }
    }
    Plain::Object(target)
}
