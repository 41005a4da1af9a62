//! A client's write of one key.
//!
//! Owns the table of conditions and changes, and what a change does to rows. Deciding is a function of the command,
//! the current entry and the clock; only a decided change touches rows.

use std::borrow::Cow;

use super::lock;
use crate::document::{Criteria, Json, Patch, PatchFault, Steps, Subject};
use crate::failpoint;
use crate::keyspace::audit::{AuditEffect, AuditOp, Superseded};
use crate::keyspace::entry::EntryRow;
use crate::keyspace::session::{self, AttachedKind};
use crate::keyspace::{self, deadline, entry, history};
use crate::limits;
use crate::machine::collections::{Draws, IndexKey, understood};
use crate::machine::current::decode_current;
use crate::machine::expect::{check_absent, check_present};
use crate::machine::quotas::counts::Amount;
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller, successor};
use crate::mutants::Mutant;
use crate::rules::{RuleFault, Rules};
use crate::types::CollectionRow;
use crate::types::{
    Change, ClusterMillis, ContentKind, EntryMeta, Expect, Expiry, Key, Presence, Rejection, Revision, Shown, Tokens,
    WallMillis, WriteOp, Written,
};

/// A write that will take effect.
struct Planned {
    /// The row after it; `None` removes the key.
    row: Option<Vec<u8>>,
    meta: Option<EntryMeta>,
    /// The key of the lock on it, if there is one.
    key: Option<u64>,
    previous: Option<Shown>,
}

impl Planned {
    fn new(row: &EntryRow<'_>, previous: Option<Shown>) -> Self {
        Self { row: Some(entry::encode_row(row)), meta: Some(row.meta), key: row.key, previous }
    }
}

/// A write that takes effect unless there is no room for it, and what it is to be carried out with.
struct Prepared {
    row_key: Vec<u8>,
    planned: Planned,
    revision: Revision,
    /// The entry as it is for the write.
    before: Option<EntryMeta>,
    /// The entry that is there and past its deadline.
    expired: Option<EntryMeta>,
    /// Bytes of the row of the one or the other.
    row_bytes: Option<usize>,
    draws: Draws,
    index_keys: Vec<IndexKey>,
}

/// What a collection asks of a write into it.
#[derive(Default)]
struct Guide<'c> {
    collection: Option<&'c CollectionRow>,
    draws: Draws,
    /// The key that a lock gets by this write.
    lock_key: Option<u64>,
    /// The keys under which the value will stand, one for each index.
    index_keys: Vec<IndexKey>,
}

impl<V: View> Applier<'_, V> {
    /// Carries out a write, or says why not.
    pub(in crate::machine) fn write(&mut self, op: WriteOp, caller: Caller) -> Tried<Written> {
        let collection = self.collection_of(op.key.as_bytes())?;
        if let Some(collection) = &collection
            && collection.rules.precondition_required()
            && lacks_precondition(&op)
        {
            return Err(self.record_refusal(op, caller, Rejection::PreconditionRequired).into());
        }
        self.write_found(op, caller)
    }

    /// Gives the refusal back once there is a line of audit for it.
    fn record_refusal(&mut self, op: WriteOp, caller: Caller, rejection: Rejection) -> Rejection {
        self.record(op_kind(&op), Some(op.key), caller, AuditEffect::Refused((&rejection).into()));
        rejection
    }

    /// Writes whether or not the write says what it expects.
    pub(in crate::machine) fn write_found(&mut self, op: WriteOp, caller: Caller) -> Tried<Written> {
        failpoint::pass(op.key.as_bytes());
        match split(self.judge_write(&op))? {
            Ok(prepared) => Ok(self.commit(op, caller, prepared)?),
            Err(rejection) => Err(self.record_refusal(op, caller, rejection).into()),
        }
    }

    /// Decides a write, and writes nothing yet.
    fn judge_write(&mut self, op: &WriteOp) -> Tried<Prepared> {
        self.check_ties(op)?;
        let collection = self.collection_of(op.key.as_bytes())?;
        let prepared = self.prepare(op, collection.as_deref())?;
        self.check_limits(op, collection.as_deref(), &prepared)?;
        Ok(prepared)
    }

    /// Whether the guard holds, and the session, if it is to go with one, lives and takes one more.
    fn check_ties(&mut self, op: &WriteOp) -> Tried<()> {
        self.check_guard(op.guard.as_deref())?;
        let Some(id) = op.session else { return Ok(()) };
        let goes_already = session::attached_key(id, AttachedKind::Entry, op.key.as_bytes());
        if self.overlay.peek(&goes_already)?.is_none() {
            self.check_session(id)?;
        }
        Ok(())
    }

    /// Plans a write over the entry as it is.
    fn prepare(&mut self, op: &WriteOp, collection: Option<&CollectionRow>) -> Tried<Prepared> {
        let draws = match collection {
            Some(collection) => self.draws(collection)?,
            None => Draws::default(),
        };
        let mut guide = Guide { collection, draws, ..Guide::default() };
        let row_key = entry::row_key(op.key.as_bytes());
        let clock = self.vars.clock;
        let steps = self.steps_so_far();
        let (newest, next) = (self.vars.revision, self.next_revision()?);
        let (stored, row_bytes) = match self.overlay.get(&row_key)? {
            None => (None, None),
            Some(row) => (Some(decode_current(&row_key, row, newest)?), Some(row.len())),
        };
        let expired = stored.filter(|row| row.is_expired_at(clock)).map(|row| row.meta);
        let current = stored.filter(|row| !row.is_expired_at(clock));
        let before = current.map(|row| row.meta);
        // An expired entry that is written over is removed first, in a revision of its own.
        let revision = if expired.is_some() { successor(next)? } else { next };
        guide.lock_key = matches!(op.change, Change::Lock(_) | Change::Claim { .. })
            .then(|| keyspace::lock::key_of(&self.batch.seed, self.batch.index, revision, op.key.as_bytes()));
        let planned = split(plan(op, current.as_ref(), revision, (clock, self.vars.wall), &mut guide, &steps))?;
        // A refusal takes as much.
        self.take_bytes(row_bytes.unwrap_or(0));
        self.take_steps(&steps);
        let Guide { draws, index_keys, .. } = guide;
        Ok(Prepared { row_key, planned: planned?, revision, before, expired, row_bytes, draws, index_keys })
    }

    /// Whether other entries, the session and quotas leave room for what a write puts there.
    fn check_limits(&mut self, op: &WriteOp, collection: Option<&CollectionRow>, prepared: &Prepared) -> Tried<()> {
        let Prepared { planned, before, expired, row_bytes, index_keys, .. } = prepared;
        let Some(row) = &planned.row else { return Ok(()) };
        if let Some(collection) = collection
            && op.change.brings_value()
        {
            self.check_unique(collection, &op.key, index_keys)?;
        }
        if let Some(EntryMeta { session: Some(id), .. }) = planned.meta {
            // What is expired and not removed yet makes room, too.
            let replaced = before.or(*expired);
            let had = replaced.and_then(|meta| meta.session) == Some(id);
            self.check_session_bytes(id, row_bytes.filter(|_| had).unwrap_or(0), row.len())?;
        }
        // A lock adds a few bytes for as long as it holds.
        if !op.change.is_of_lock() {
            self.check_entry(op.key.as_bytes(), *row_bytes, row.len())?;
        }
        Ok(())
    }

    /// Carries out a write that is admitted.
    fn commit(&mut self, op: WriteOp, caller: Caller, prepared: Prepared) -> Result<Written, Fault> {
        let Prepared { row_key, planned, revision, before, expired, draws, index_keys, .. } = prepared;
        self.keep_draws(&draws)?;
        if let Some(meta) = expired {
            self.expire(op.key.clone(), &row_key, &meta)?;
        }
        let effect = if op.change.is_of_lock() {
            self.take_revision()?;
            self.relock(&op.key, &row_key, before.as_ref(), planned.row, planned.meta.as_ref())?;
            let before = before
                .ok_or_else(|| Fault::Invariant(format!("the lock of {} changed, which is not there", op.key)))?;
            self.remember_lock(&op.key, &before)?
        } else {
            let removed = planned.meta.is_none();
            let after = (planned.row, planned.meta.as_ref());
            let previous = self.supersede(&op.key, &row_key, before.as_ref(), after, &index_keys)?;
            AuditEffect::Changed { previous, removed }
        };
        assert_eq!(self.vars.revision, revision, "the revision of a write differs from the planned one");
        self.record(op_kind(&op), Some(op.key), caller, effect);
        let meta = planned.meta.map(|meta| lock::told_to_holder(meta, planned.key));
        Ok(Written { meta, previous: planned.previous })
    }

    /// Removes an entry that is past its deadline; `row_key` and `meta` are its own.
    pub(in crate::machine) fn expire(&mut self, key: Key, row_key: &[u8], meta: &EntryMeta) -> Result<(), Fault> {
        self.remove_as(key, row_key, meta, AuditOp::Expire, Caller::default())
    }

    /// Removes an entry for this reason; `row_key` and `meta` are its own.
    pub(in crate::machine) fn remove_as(
        &mut self,
        key: Key,
        row_key: &[u8],
        meta: &EntryMeta,
        op: AuditOp,
        caller: Caller,
    ) -> Result<(), Fault> {
        let previous = self.supersede(&key, row_key, Some(meta), (None, None), &[])?;
        self.record(op, Some(key), caller, AuditEffect::Changed { previous, removed: true });
        Ok(())
    }

    /// Takes the next revision and puts `row` in place of the current version, which `before` is the meta of and which
    /// moves to the history. Keeps the deadlines in step. `row_key` is that of the key's entry, `index_keys` are those of a new value.
    fn supersede(
        &mut self,
        key: &Key,
        row_key: &[u8],
        before: Option<&EntryMeta>,
        (row, after): (Option<Vec<u8>>, Option<&EntryMeta>),
        index_keys: &[IndexKey],
    ) -> Result<Option<Superseded>, Fault> {
        let key = key.as_bytes();
        if let Some(collection) = self.collection_of(key)? {
            let old_row = self.overlay.peek(row_key)?.map(Cow::into_owned);
            self.reindex(&collection, key, (old_row.as_deref(), row.as_deref()), index_keys)?;
        }
        self.take_revision()?;
        let removed = row.is_none();
        let (counted_after, new_bytes) =
            (Amount::of_entry(key, row.as_ref().map(Vec::len)), row.as_ref().map_or(0, Vec::len));
        let old_row = self.overlay.replace(row_key, row)?;
        let (counted_before, old_bytes) =
            (Amount::of_entry(key, old_row.as_ref().map(Vec::len)), old_row.as_ref().map_or(0, Vec::len));
        self.count_in_prefixes(row_key, key, counted_before, counted_after)?;
        let superseded = match (old_row, before) {
            (None, None) => None,
            (Some(old_row), Some(before)) => {
                let revision = before.mod_revision;
                let row = self.overlay.insert_new(history::row_key(key, revision), old_row)?;
                Some(Superseded { revision, row })
            }
            (row, before) => {
                let key = key.escape_ascii();
                return Err(Fault::Invariant(format!("entry {key} is {before:?}, its row {row:?}")));
            }
        };
        if removed {
            self.overlay.insert_new(history::row_key(key, self.vars.revision), history::TOMBSTONE.to_vec())?;
        }
        let times = |meta: Option<&EntryMeta>| meta.map_or((None, None), |meta| (meta.expires_at, meta.locked_until));
        let ((expired, unlocked), (expires, unlocks)) = (times(before), times(after));
        self.move_row(key, expired, expires, deadline::row_key)?;
        let unlocks = unlocks.filter(|_| !Mutant::ClaimsHaveNoEnd.acts());
        self.move_lock(key, unlocked, unlocks)?;
        let session = |meta: Option<&EntryMeta>| meta.and_then(|meta| meta.session);
        let (left, joined) = (session(before), session(after));
        left.map_or(Ok(()), |id| self.count_session_bytes(id, old_bytes, 0))?;
        if left != joined {
            let stays = Mutant::EntriesStayOnTheirSession.acts() && joined.is_some();
            left.filter(|_| !stays).map_or(Ok(()), |id| self.detach(id, AttachedKind::Entry, key))?;
            joined.map_or(Ok(()), |id| self.attach(id, AttachedKind::Entry, key, Vec::new()))?;
        }
        joined.map_or(Ok(()), |id| self.count_session_bytes(id, 0, new_bytes))?;
        Ok(superseded)
    }

    /// Keeps the row of a pending time in step with the time.
    pub(in crate::machine) fn move_row(
        &mut self,
        key: &[u8],
        before: Option<ClusterMillis>,
        after: Option<ClusterMillis>,
        row_key: fn(ClusterMillis, &[u8]) -> Vec<u8>,
    ) -> Result<(), Fault> {
        if before == after {
            return Ok(());
        }
        if let Some(before) = before {
            self.take_work(&row_key(before, key))?;
        }
        if let Some(after) = after {
            self.overlay.insert_absent(row_key(after, key), Vec::new())?;
        }
        Ok(())
    }
}

impl Guide<'_> {
    /// The value as the rules of the collection make it.
    fn conform<'a>(
        &mut self,
        value: NewValue<'a>,
        current: Option<&EntryRow<'a>>,
        wall: WallMillis,
        steps: &Steps,
    ) -> Result<NewValue<'a>, Rejection> {
        let (Some(collection), Some((kind, data))) = (self.collection, &value) else { return Ok(value) };
        let rules = &collection.rules;
        if !rules.needs_documents() && rules.indexes().is_empty() {
            return Ok(value);
        }
        let json = Some(data).filter(|_| *kind == ContentKind::Json);
        steps.take_parsing(json.map_or(b"".as_slice(), |data| &data[..]))?;
        let Some(document) = json.and_then(|data| stored(data)) else {
            let fault = RuleFault::not_an_object();
            if rules.needs_documents() {
                return Err(Rejection::RulesBroken([fault].into()));
            }
            // A value that is stored as JSON and is none gets no keys, and so faults where it would be indexed.
            if json.is_none() {
                self.index_keys = index_keys(&rules.indexed_values(None, steps), rules)?;
            }
            return Ok(value);
        };
        let before = current.filter(|row| rules.needs_documents() && row.kind == ContentKind::Json);
        steps.take_parsing(before.map_or(b"".as_slice(), |row| row.data))?;
        let before = before.and_then(|row| stored(row.data));
        let draws = &mut self.draws;
        let conformed = rules
            .conform(before.as_ref(), document, wall, &mut |name| draws.next(name), steps)?
            .map_err(|faults| Rejection::RulesBroken(faults.into()))?;
        if !rules.indexes().is_empty() {
            let values = steps.judge(rules.indexed_values(Some(&conformed.document), steps))?;
            self.index_keys = index_keys(&values, rules)?;
        }
        if !conformed.is_changed {
            return Ok(value);
        }
        let text = conformed.document.to_text().into_bytes();
        check_size(&text)?;
        Ok(Some((ContentKind::Json, text.into())))
    }
}

/// Makes the keys under which a document with these values stands, one for each index.
fn index_keys(values: &[Vec<Option<&Json<'_>>>], rules: &Rules) -> Result<Vec<IndexKey>, Rejection> {
    let mut keys = Vec::with_capacity(values.len());
    for (rule, values) in rules.indexes().iter().zip(values) {
        let bytes = rule.key_from(values).map_err(|fault| Rejection::RulesBroken([fault].into()))?;
        keys.push(IndexKey { bytes, is_bound: rule.is_bound_by(values) });
    }
    Ok(keys)
}

/// Whether a write says nothing of what it expects, where it could. An insert and a replacement say whether there is an entry.
fn lacks_precondition(op: &WriteOp) -> bool {
    let could = matches!(op.change, Change::Put(_) | Change::Patch(_) | Change::Remove);
    could && op.expect == Expect::ANY && op.condition.is_empty()
}

/// What the write comes to at `revision`, given the entry as it is for it.
fn plan(
    op: &WriteOp,
    current: Option<&EntryRow>,
    revision: Revision,
    (clock, wall): (ClusterMillis, WallMillis),
    guide: &mut Guide<'_>,
    steps: &Steps,
) -> Tried<Planned> {
    check_command(op)?;
    current.map_or(Ok(()), |row| lock::check(op, row, clock))?;
    check_expect(&op.expect, op.change.needs_entry(), current, clock)?;
    let condition = understood(guide.collection, &op.condition, wall);
    let document = document(&condition, op.change.patch().is_some(), current, steps)?;
    let is_locked = current.is_some_and(|row| row.meta.is_locked_at(clock));
    let meta = current.map(|row| &row.meta);
    check_condition(
        &condition,
        current,
        &Subject { key: &op.key, meta, is_locked, document: document.as_ref(), clock, wall },
        steps,
    )?;
    let value = new_value(op, current, document, wall, steps)?;
    let value = if op.change.brings_value() { guide.conform(value, current, wall, steps)? } else { value };
    let previous = current.filter(|_| op.return_previous).map(EntryRow::to_shown);
    let Some((kind, data)) = value else {
        return Ok(Planned { row: None, meta: None, key: None, previous });
    };
    if let (true, Some(row)) = (op.change.is_of_lock(), current) {
        let (meta, key) = lock::relocked(&op.change, row, revision, clock, guide.lock_key);
        return Ok(Planned::new(&EntryRow { meta, key, is_relocked: true, kind, data: &data }, previous));
    }
    let meta = EntryMeta {
        create_revision: current.map_or(revision, |row| row.meta.create_revision),
        mod_revision: revision,
        version: current.map_or(Ok(1), |row| successor(row.meta.version))?,
        cas: revision,
        expires_at: match op.expiry {
            Expiry::Keep => current.and_then(|row| row.meta.expires_at),
            Expiry::Never => None,
            Expiry::After(ms) => Some(clock.saturating_add(ms)),
            Expiry::Usual => guide.collection.and_then(|row| row.rules.ttl_ms()).map(|ms| clock.saturating_add(ms)),
        },
        locked_until: match op.change {
            Change::Claim { ms, .. } => Some(clock.saturating_add(ms)),
            _ => None,
        },
        session: match op.change {
            Change::Put(_) => op.session,
            _ => op.session.or_else(|| current.and_then(|row| row.meta.session)),
        },
    };
    let key = guide.lock_key.filter(|_| meta.locked_until.is_some());
    Ok(Planned::new(&EntryRow { meta, key, is_relocked: false, kind, data: &data }, previous))
}

/// What is wrong with the command whatever the state. The texts of refusals in this file are kept in the request
/// table, so they are replicated state: a build that words them otherwise would differ from its peers.
fn check_command(op: &WriteOp) -> Result<(), Rejection> {
    if let Expiry::After(ms) = op.expiry
        && ms > limits::TTL_MS_MAX
    {
        return Err(Rejection::Unsupported(format!("a TTL of {ms} ms; the longest is {} ms", limits::TTL_MS_MAX)));
    }
    if let Tokens::AnyOf(tokens) | Tokens::NoneOf(tokens) = &op.expect.tokens
        && tokens.len() > limits::EXPECT_TOKENS_MAX
    {
        let (given, max) = (tokens.len(), limits::EXPECT_TOKENS_MAX);
        return Err(Rejection::Unsupported(format!("a list of {given} tokens; the longest has {max}")));
    }
    match &op.change {
        Change::Put(value) => check_size(&value.data),
        Change::Lock(ms) | Change::Extend(ms) | Change::Claim { ms, .. } if !(1..=limits::LOCK_MS_MAX).contains(ms) => {
            Err(Rejection::Unsupported(format!("a lock for {ms} ms; the longest is {} ms", limits::LOCK_MS_MAX)))
        }
        _ => Ok(()),
    }
}

fn check_size(data: &[u8]) -> Result<(), Rejection> {
    if data.len() > limits::VALUE_BYTES_MAX {
        return Err(Rejection::TooLarge { limit: limits::VALUE_BYTES_MAX as u64, actual: data.len() as u64 });
    }
    Ok(())
}

/// Whether the current entry is what is expected, and there where there has to be one. Its token is looked at before its presence.
pub(in crate::machine) fn check_expect(
    expect: &Expect,
    needs_entry: bool,
    current: Option<&EntryRow>,
    clock: ClusterMillis,
) -> Result<(), Rejection> {
    match current {
        None if needs_entry || expect.presence == Presence::Present => Err(Rejection::NotFound),
        None => check_absent(&expect.tokens),
        Some(row) => check_present(expect, |token| row.has_token(token, clock), || row.to_shown()),
    }
}

/// The value as JSON, where a condition or a patch looks into it and it is JSON. Parsed once for both.
pub(in crate::machine) fn document<'a>(
    condition: &Criteria,
    is_patched: bool,
    current: Option<&EntryRow<'a>>,
    steps: &Steps,
) -> Result<Option<Json<'a>>, Rejection> {
    let is_needed = is_patched || condition.needs_document();
    let Some(row) = current.filter(|row| is_needed && row.kind == ContentKind::Json) else { return Ok(None) };
    steps.take_parsing(row.data)?;
    if is_patched {
        steps.take_writing(row.data)?;
    }
    Ok(stored(row.data))
}

/// A value as JSON, numbers beyond the greatest double included: none is taken, but whatever is stored is read.
fn stored(data: &[u8]) -> Option<Json<'_>> {
    Json::parse_stored(data).ok()
}

/// Whether criteria hold.
pub(in crate::machine) fn check_condition(
    condition: &Criteria,
    current: Option<&EntryRow>,
    subject: &Subject<'_>,
    steps: &Steps,
) -> Result<(), Rejection> {
    match condition.unmet_within(subject, "/if", steps)? {
        None => Ok(()),
        Some(unmet) => {
            Err(Rejection::ConditionNotMet { unmet: unmet.into(), current: current.map(EntryRow::to_shown) })
        }
    }
}

type NewValue<'a> = Option<(ContentKind, Cow<'a, [u8]>)>;

/// The value after the write; `None` removes the key. The condition was checked: a change that needs an entry has one.
fn new_value<'a>(
    op: &'a WriteOp,
    current: Option<&EntryRow<'a>>,
    document: Option<Json<'a>>,
    wall: WallMillis,
    steps: &Steps,
) -> Result<NewValue<'a>, Rejection> {
    match (&op.change, current) {
        (Change::Put(value), _) => Ok(Some((value.kind, value.data.as_slice().into()))),
        (Change::Remove, _) => Ok(None),
        (change, Some(row)) => match change.patch() {
            Some(patch) => {
                patched(patch, row, document, wall, steps).map(|data| Some((ContentKind::Json, data.into())))
            }
            None => Ok(Some((row.kind, row.data.into()))),
        },
        (_, None) => Err(Rejection::NotFound),
    }
}

fn patched(
    patch: &Patch,
    row: &EntryRow<'_>,
    document: Option<Json<'_>>,
    wall: WallMillis,
    steps: &Steps,
) -> Result<Vec<u8>, Rejection> {
    let Some(document) = document else {
        return Err(Rejection::NotADocument { current: row.to_shown() });
    };
    patch.apply_to_text_within(document, wall, "/patch", steps).map_err(|refusal| match refusal.fault {
        PatchFault::NotADocument => Rejection::NotADocument { current: row.to_shown() },
        PatchFault::TooDear(dear) => Rejection::TooDear(dear),
        PatchFault::TooLarge { limit, actual } => Rejection::TooLarge { limit, actual },
        _ => Rejection::PatchFailed { refusal: Box::new(refusal), current: row.to_shown() },
    })
}

/// The name of a write in its line of audit. A put has three, by what it expects.
fn op_kind(op: &WriteOp) -> AuditOp {
    match &op.change {
        Change::Put(_) => match op.expect.presence {
            Presence::Absent => AuditOp::Insert,
            Presence::Any => AuditOp::Upsert,
            Presence::Present => AuditOp::Replace,
        },
        Change::Patch(_) => AuditOp::Update,
        Change::Remove => AuditOp::Remove,
        Change::Touch => AuditOp::Touch,
        Change::Lock(_) => AuditOp::Lock,
        Change::Extend(_) => AuditOp::Extend,
        Change::Unlock => AuditOp::Unlock,
        Change::Claim { .. } => AuditOp::Claim,
    }
}
