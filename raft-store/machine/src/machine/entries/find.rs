//! Commands about what is found: claims, and changes of all that match.
//!
//! Owns which entries a command finds and in which order, and its bounds. What is done to each is `write`'s.

use std::collections::{BTreeMap, BTreeSet};

use super::lock;
use crate::codec;
use crate::document::path::{Field, Path};
use crate::document::{Criteria, Order, ReadyCriteria, Steps, Subject, TooDear};
use crate::keyspace::after_prefix;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::collection;
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::index;
use crate::limits;
use crate::machine::collections::{document_within, understood};
use crate::machine::current::decode_current;
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller, stored_key};
use crate::rules::{Selection, select};
use crate::types::{
    Change, ClaimOp, ClaimReply, Expiry, Key, Outcome, Rejection, Shown, WallMillis, WhereChange, WhereItem, WhereOp,
    WhereReply, WriteOp,
};
use crate::types::{CollectionRow, IndexStage};

/// Rows read at a time.
const PAGE_ROWS: usize = 128;

/// What was found for a claim.
#[derive(Default)]
struct Found {
    keys: Vec<Key>,
    /// Entries looked at, without those that an earlier round dealt with.
    examined: u64,
    more: bool,
    index: Option<Vec<Path>>,
}

/// Takes entries that match until there are enough, in the order in which they come or in the order asked for.
struct Taker<'o> {
    op: &'o ClaimOp,
    /// How many are enough.
    limit: usize,
    /// Those that an earlier round claimed or was refused: they are not to be taken.
    dealt_with: &'o BTreeSet<&'o [u8]>,
    /// As the collection understands them.
    criteria: &'o Criteria,
    ready: ReadyCriteria<'o>,
    /// What they take of the bound for each entry that is looked at, beside its value.
    weight: usize,
    comes_in_order: bool,
    best: BTreeMap<Vec<u8>, Key>,
    keys: Vec<Key>,
    examined: u64,
    /// How many of those an earlier round dealt with.
    again: u64,
    bytes: usize,
    /// Most bytes that are looked at.
    bytes_max: usize,
    /// An entry that takes too much to be judged.
    dear: Option<TooDear>,
}

impl Taker<'_> {
    fn is_done(&self) -> bool {
        self.keys.len() >= self.limit || self.is_at_bound() || self.dear.is_some()
    }

    fn is_at_bound(&self) -> bool {
        self.examined >= limits::COMMAND_ENTRIES_MAX || self.bytes >= self.bytes_max
    }

    fn keys(self) -> Vec<Key> {
        if self.comes_in_order { self.keys } else { self.best.into_values().collect() }
    }
}

impl<V: View> Applier<'_, V> {
    /// Locks what is found, in order, and patches it where that is asked for, all at one revision. What the patch does not
    /// fit is passed over: one entry that is not as expected must not keep all others from being claimed.
    pub(in crate::machine) fn claim(&mut self, op: &ClaimOp, caller: Caller) -> Result<Outcome, Fault> {
        if let Some(why) = claim_fault(op) {
            return Ok(self.refuse_claim(caller, Rejection::Unsupported(why)));
        }
        if let Err(rejection) = split(self.check_guard(op.guard.as_deref()))? {
            return Ok(self.refuse_claim(caller, rejection));
        }
        let mut done = ClaimReply::default();
        match self.sharing_revision(|applier| split(applier.claim_rounds(op, &caller, &mut done)))? {
            Ok(()) => Ok(Outcome::Claimed(done)),
            Err(rejection) => Ok(self.refuse_claim(caller, rejection)),
        }
    }

    fn refuse_claim(&mut self, caller: Caller, rejection: Rejection) -> Outcome {
        self.record(AuditOp::Claim, None, caller, AuditEffect::Refused((&rejection).into()));
        Outcome::Rejected(rejection)
    }

    /// Finds and claims until there are enough, or no more is found or may be taken: in one round, but for what is passed
    /// over. That an order would need too much is said as long as nothing is claimed.
    fn claim_rounds(&mut self, op: &ClaimOp, caller: &Caller, done: &mut ClaimReply) -> Tried<()> {
        loop {
            let limit = op.limit as usize - done.entries.len();
            let dealt_with = done.entries.len() + done.refused.len();
            let found = self.find(op, limit, &keys_of(done), caller);
            let found = match split(found)? {
                Ok(found) => found,
                Err(rejection) if done.entries.is_empty() => return Err(rejection.into()),
                // Patches made claimed entries longer: fewer may be looked at now, or one takes more steps.
                Err(_) => {
                    done.more = true;
                    return Ok(());
                }
            };
            let examined = u32::try_from(found.examined).expect("a claim looks at limits::COMMAND_ENTRIES_MAX entries");
            // Each round sees again what those before it saw, and counts what none of them dealt with.
            done.examined = done.examined.max(examined.saturating_add(dealt_with as u32));
            (done.more, done.index) = (found.more, found.index);
            let refused_before = done.refused.len();
            for key in found.keys {
                let is_begun = !done.entries.is_empty() || !done.refused.is_empty();
                if is_begun && self.has_taken_all() {
                    done.more = true;
                    return Ok(());
                }
                self.begin_steps();
                match split(self.claim_one(op, &key, caller))? {
                    Ok(shown) => done.entries.push((key, shown)),
                    Err(why) => {
                        self.take_bytes(why.value_bytes());
                        let n = u32::try_from(done.refused.len()).expect("bounded by limits::CLAIM_REFUSED_MAX");
                        done.refused.push(WhereItem { n, key, why });
                    }
                }
                if done.refused.len() >= limits::CLAIM_REFUSED_MAX {
                    done.more = true;
                    return Ok(());
                }
            }
            // What is locked by now is not found again, so the next round finds what comes behind.
            if done.refused.len() == refused_before || done.more {
                return Ok(());
            }
            if self.has_taken_all() {
                done.more = true;
                return Ok(());
            }
        }
    }

    fn claim_one(&mut self, op: &ClaimOp, key: &Key, caller: &Caller) -> Tried<Shown> {
        let change = Change::Claim { ms: op.lock_ms, patch: op.patch.clone() };
        self.write(WriteOp { change, ..WriteOp::removal(key.clone(), false) }, caller.clone())?;
        let row_key = entry::row_key(key.as_bytes());
        let newest = self.vars.revision;
        let shown = match self.overlay.get(&row_key)? {
            Some(row) => lock::shown_to_holder(&decode_current(&row_key, row, newest)?),
            None => return Err(Fault::Invariant(format!("{key} was claimed and is not there")).into()),
        };
        self.take_bytes(shown.value_bytes());
        Ok(shown)
    }

    /// The entries that a claim is about.
    fn find(&mut self, op: &ClaimOp, limit: usize, dealt_with: &BTreeSet<&[u8]>, caller: &Caller) -> Tried<Found> {
        let collection = self.collection_of(&op.prefix)?;
        // Who has rights on a part of a collection must not learn of the rest by what an index makes them walk past.
        let may_walk_past = !caller.is_judged() || self.is_whole_collection(&op.prefix)?;
        let criteria = understood(collection.as_deref(), &op.criteria, self.vars.wall);
        let usable = collection.as_ref().filter(|_| may_walk_past);
        let selected = usable.and_then(|collection| selected(op, collection, &criteria, self.vars.wall));
        let comes_in_order = match &selected {
            Some((selection, ..)) => selection.in_order,
            None => op.order.by_key().is_some(),
        };
        let mut taker = Taker {
            op,
            limit,
            dealt_with,
            criteria: &criteria,
            ready: criteria.ready(),
            weight: weight_of(&op.criteria),
            comes_in_order,
            best: BTreeMap::new(),
            keys: Vec::new(),
            examined: 0,
            again: 0,
            bytes: 0,
            bytes_max: self.bounds.batch_bytes,
            dear: None,
        };
        let is_whole = match &selected {
            Some((selection, fields, _)) => self.walk_index(selection, *fields, &mut taker)?,
            None => self.walk_entries(&mut taker)?,
        };
        let (examined, again, bytes) = (taker.examined, taker.again, taker.bytes);
        self.take_bytes(bytes.saturating_add(examined as usize * limits::LOOK_BYTES));
        // Entries before it may be claimed; an order is not known without it.
        if let Some(dear) = taker.dear.filter(|_| !comes_in_order || taker.keys.is_empty()) {
            return Err(Rejection::from(dear).into());
        }
        let more = taker.dear.is_some() || (!is_whole && taker.is_at_bound());
        if more && !comes_in_order {
            return Err(Rejection::TooManyToOrder(limits::COMMAND_ENTRIES_MAX).into());
        }
        let index = selected.map(|(.., paths)| paths);
        Ok(Found { keys: taker.keys(), examined: examined - again, more, index })
    }

    /// Whether the keys with this prefix are all those of a collection: collections do not lie within each other.
    fn is_whole_collection(&self, prefix: &[u8]) -> Result<bool, Fault> {
        let Some(name) = prefix.strip_suffix(b"/") else { return Ok(false) };
        Ok(self.decoded::<CollectionRow>(&collection::row_key(name))?.is_some())
    }

    /// Looks at the entries of a selection. Whether that is all of them.
    fn walk_index(&mut self, selection: &Selection, fields: usize, taker: &mut Taker<'_>) -> Result<bool, Fault> {
        let mut ranges: Vec<_> =
            selection.ranges.iter().map(|(start, end)| index::between(selection.id, start, end)).collect();
        if selection.reverse {
            ranges.reverse();
        }
        for (start, end) in ranges {
            let is_whole = self.walk(start, end, selection.reverse, taker, |row_key| {
                index::decode_key(row_key, fields).map(|(_, key)| key)
            })?;
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks at the entries of the prefix, in order of key. Whether that is all of them.
    fn walk_entries(&mut self, taker: &mut Taker<'_>) -> Result<bool, Fault> {
        let (start, end) = entries_with(&taker.op.prefix);
        let reverse = taker.op.order.by_key() == Some(true);
        self.walk(start, end, reverse, taker, entry::decode_key)
    }

    fn walk(
        &mut self,
        mut start: Vec<u8>,
        mut end: Vec<u8>,
        reverse: bool,
        taker: &mut Taker<'_>,
        key_of: impl Fn(&[u8]) -> Result<&[u8], crate::codec::CodecError>,
    ) -> Result<bool, Fault> {
        let most = self.bounds.page((2 * taker.limit).clamp(16, PAGE_ROWS));
        loop {
            let page = self.overlay.scan_page(&start, &end, reverse, most)?;
            let Some((last, _)) = page.last() else { return Ok(true) };
            match reverse {
                false => start = [last.as_slice(), &[0]].concat(),
                true => end.clone_from(last),
            }
            for (row_key, _) in &page {
                if taker.is_done() {
                    return Ok(false);
                }
                let key = key_of(row_key).map_err(|error| Fault::row(row_key, error))?;
                if key.starts_with(&taker.op.prefix) {
                    self.look(key, taker)?;
                } else {
                    taker.examined += 1;
                }
            }
        }
    }

    /// Looks at one entry.
    fn look(&mut self, key: &[u8], taker: &mut Taker<'_>) -> Result<(), Fault> {
        let (newest, clock, wall) = (self.vars.revision, self.vars.clock, self.vars.wall);
        let row_key = entry::row_key(key);
        let Some(row) = self.overlay.peek(&row_key)? else {
            return Err(Fault::Invariant(format!("key {} is indexed and not there", key.escape_ascii())));
        };
        let row = decode_current(&row_key, &row, newest)?;
        taker.examined += 1;
        taker.bytes += row.data.len() + taker.weight;
        if taker.dealt_with.contains(key) {
            taker.again += 1;
            return Ok(());
        }
        if row.is_expired_at(clock) || row.meta.is_locked_at(clock) {
            return Ok(());
        }
        let key = stored_key(key)?;
        let order = Some(&taker.op.order).filter(|_| !taker.comes_in_order);
        let needs_document = taker.criteria.needs_document() || order.is_some_and(Order::needs_document);
        let steps = Steps::up_to(self.bounds.command_steps);
        let document = if needs_document { document_within(&row_key, &row, &steps)? } else { Ok(None) };
        let document = match document {
            Ok(document) => document,
            Err(dear) => {
                taker.dear = Some(dear);
                return Ok(());
            }
        };
        let subject =
            Subject { key: &key, meta: Some(&row.meta), is_locked: false, document: document.as_ref(), clock, wall };
        let held = taker.ready.hold_within(&subject, &steps);
        // The bytes were counted when the entry was read: parsing adds only the rest.
        let parsed = if document.is_some() { row.data.len() } else { 0 };
        taker.bytes = taker.bytes.saturating_add(steps.bytes().saturating_sub(parsed));
        match held {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(dear) => {
                taker.dear = Some(dear);
                return Ok(());
            }
        }
        let Some(order) = order else {
            taker.keys.push(key);
            return Ok(());
        };
        taker.best.insert(order.rank(&subject), key);
        if taker.best.len() > taker.limit {
            taker.best.pop_last();
        }
        Ok(())
    }

    /// Changes what is found, each entry on its own, in order of key.
    pub(in crate::machine) fn update_where(&mut self, op: &WhereOp, caller: Caller) -> Result<Outcome, Fault> {
        if !(1..=limits::WHERE_LIMIT_MAX).contains(&op.limit) {
            let why = format!("a limit of {}; 1 to {}", op.limit, limits::WHERE_LIMIT_MAX);
            let rejection = Rejection::Unsupported(why);
            self.record(AuditOp::Where, None, caller, AuditEffect::Refused((&rejection).into()));
            return Ok(Outcome::Rejected(rejection));
        }
        if let Err(rejection) = split(self.check_guard(op.guard.as_deref()))? {
            return Ok(self.refuse_in(AuditOp::Where, None, caller, rejection));
        }
        let (mut start, end) = entries_with(&op.prefix);
        if let Some(after) = &op.after {
            start = start.max([entry::row_key(after.as_bytes()).as_slice(), &[0]].concat());
        }
        let collection = self.collection_of(&op.prefix)?;
        let criteria = understood(collection.as_deref(), &op.criteria, self.vars.wall);
        let ready = criteria.ready();
        let look_bytes = limits::LOOK_BYTES + weight_of(&op.criteria);
        let change_bytes = codec::encode(&(&op.change, &op.condition)).len();
        let mut done = WhereReply::default();
        loop {
            let page = if start < end {
                self.overlay.scan_page(&start, &end, false, self.bounds.page(PAGE_ROWS))?
            } else {
                Vec::new()
            };
            let Some((last, _)) = page.last() else { return Ok(Outcome::Where(WhereReply { after: None, ..done })) };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, row) in page {
                let is_full = done.applied >= op.limit || u64::from(done.examined) >= limits::COMMAND_ENTRIES_MAX;
                if is_full || (done.examined > 0 && self.has_taken_all()) {
                    return Ok(Outcome::Where(done));
                }
                let key = entry::decode_key(&row_key).map_err(|error| Fault::row(&row_key, error))?;
                let key = stored_key(key)?;
                done.examined += 1;
                let row = decode_current(&row_key, &row, self.vars.revision)?;
                self.take_bytes(look_bytes + row.data.len());
                self.begin_steps();
                let steps = self.steps_so_far();
                let matches = self.matches((&criteria, &ready), &key, (row_key.as_slice(), &row), &steps)?;
                self.take_steps(&steps);
                match matches {
                    Ok(false) => {}
                    Ok(true) => {
                        self.take_bytes(change_bytes);
                        self.change_found(op, &key, &caller, &mut done)?;
                    }
                    // Whether it matches is not known. It stays as it is, and keeps nobody from what stands behind it.
                    Err(dear) => {
                        let why = Rejection::from(dear);
                        let effect = AuditEffect::Refused((&why).into());
                        self.record(AuditOp::Where, Some(key.clone()), caller.clone(), effect);
                        self.leave_found(key.clone(), why, &mut done);
                    }
                }
                done.after = Some(key);
            }
        }
    }

    fn matches(
        &self,
        (criteria, ready): (&Criteria, &ReadyCriteria<'_>),
        key: &Key,
        (row_key, row): (&[u8], &EntryRow<'_>),
        steps: &Steps,
    ) -> Result<Result<bool, TooDear>, Fault> {
        let (clock, wall) = (self.vars.clock, self.vars.wall);
        if row.is_expired_at(clock) {
            return Ok(Ok(false));
        }
        let document = if criteria.needs_document() { document_within(row_key, row, steps)? } else { Ok(None) };
        let document = match document {
            Ok(document) => document,
            Err(dear) => return Ok(Err(dear)),
        };
        let is_locked = row.meta.is_locked_at(clock);
        let subject = Subject { key, meta: Some(&row.meta), is_locked, document: document.as_ref(), clock, wall };
        Ok(ready.hold_within(&subject, steps))
    }

    fn change_found(&mut self, op: &WhereOp, key: &Key, caller: &Caller, done: &mut WhereReply) -> Result<(), Fault> {
        let (change, expiry) = match &op.change {
            WhereChange::Patch { patch, expiry } => (Change::Patch(patch.clone()), *expiry),
            WhereChange::Remove => (Change::Remove, Expiry::Keep),
        };
        let condition = op.condition.clone();
        let write = WriteOp { condition, change, expiry, ..WriteOp::removal(key.clone(), false) };
        // That it matches is precondition enough.
        match split(self.write_found(write, caller.clone()))? {
            Ok(_) => {
                done.matched += 1;
                done.applied += 1;
            }
            Err(why) => self.leave_found(key.clone(), why, done),
        }
        Ok(())
    }

    /// Lists an entry that was found and is not changed.
    fn leave_found(&mut self, key: Key, why: Rejection, done: &mut WhereReply) {
        let n = done.matched;
        done.matched += 1;
        match why {
            Rejection::ConditionNotMet { .. } => done.skipped += 1,
            _ => done.failed += 1,
        }
        if done.items.len() < limits::WHERE_ITEMS_MAX {
            self.take_bytes(why.value_bytes());
            self.take_bytes(why.detail_bytes());
            done.items.push(WhereItem { n, key, why });
        }
    }
}

/// The index to use, with its number of fields and the fields, if there is one of use. It sees the entries of one
/// collection, which all of the prefix has to be in.
fn selected(
    op: &ClaimOp,
    collection: &CollectionRow,
    criteria: &Criteria,
    wall: WallMillis,
) -> Option<(Selection, usize, Vec<Path>)> {
    let ready = collection.rules.indexes().iter().zip(&collection.indexes);
    let ready: Vec<_> =
        ready.filter(|(_, state)| state.stage == IndexStage::Ready).map(|(rule, state)| (rule, state.id)).collect();
    // Where no order is asked for, that of the index is as good as that of keys.
    let order: Vec<(&Field, bool)> = op.order.fields().filter(|_| op.order.by_key() != Some(false)).collect();
    let selection = select(&ready, criteria, &order, wall)?;
    let fields = ready[selection.index].0.fields();
    Some((selection, fields.len(), fields.to_vec()))
}

/// The keys of what a claim has claimed, or was refused, so far.
fn keys_of(done: &ClaimReply) -> BTreeSet<&[u8]> {
    let claimed = done.entries.iter().map(|(key, _)| key.as_bytes());
    claimed.chain(done.refused.iter().map(|item| item.key.as_bytes())).collect()
}

/// What criteria take of the bound of a batch for each entry that they look at: long lists are compared value by value.
fn weight_of(criteria: &Criteria) -> usize {
    codec::encode(criteria).len() / 64
}

/// The rows of the entries with this prefix.
fn entries_with(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = match after_prefix(prefix) {
        Some(end) => entry::row_key(&end),
        None => crate::keyspace::family_range(crate::keyspace::family::ENTRY).1,
    };
    (entry::row_key(prefix), end)
}

/// What is wrong with a claim whatever the state.
fn claim_fault(op: &ClaimOp) -> Option<String> {
    if !(1..=limits::CLAIM_LIMIT_MAX).contains(&op.limit) {
        return Some(format!("a limit of {}; 1 to {}", op.limit, limits::CLAIM_LIMIT_MAX));
    }
    (!(1..=limits::LOCK_MS_MAX).contains(&op.lock_ms))
        .then(|| format!("a lock for {} ms; the longest is {} ms", op.lock_ms, limits::LOCK_MS_MAX))
}
