//! Finds by an index: which one, and the walk along it.
//!
//! Owns what an index is worth to a find, also of a moment that has passed: an index holds entries as they are now, so
//! those that changed since are left out of the walk and are looked at as they were. Never chooses among entries, as a
//! [`Finder`] does.

use std::collections::BTreeSet;

use rocksdb::DBRawIteratorWithThreadMode;

use super::finder::{FindPin, FindQuery, Finder, Wanted};
use super::listing;
use super::shared::Moment;
use super::types::StateFault;
use crate::codec;
use crate::document::path::{Field, Path};
use crate::document::{Json, Order, Subject};
use crate::keyspace::audit::{self, AuditEffect, AuditGroup};
use crate::keyspace::collection::{self, CollectionRow, IndexStage};
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::{family, family_range, index};
use crate::rules::{IndexRule, Selection, candidates, selections};
use crate::types::{ContentKind, Entry, Key, Revision};

/// Changes looked through to know which entries are not as they were. A find that began longer ago looks at the entries.
const CHANGES_MAX: usize = 10_000;

/// A way along an index.
pub(crate) struct Way {
    selection: Selection,
    rule: IndexRule,
}

impl Way {
    /// Whether entries come in the order asked for.
    pub(crate) fn is_in_order(&self) -> bool {
        self.selection.in_order
    }

    /// The fields of the index.
    pub(crate) fn fields(&self) -> &[Path] {
        self.rule.fields()
    }
}

/// The collection that all keys with this prefix belong to, if it is declared.
pub(crate) fn collection_of(moment: &Moment<'_>, prefix: &[u8]) -> Result<Option<CollectionRow>, StateFault> {
    if moment.record.vars.collections == 0 {
        return Ok(None);
    }
    for name in candidates(prefix) {
        if let Some(row) = moment.snapshot.get_pinned(collection::row_key(name))? {
            return Ok(Some(codec::decode(&row)?));
        }
    }
    Ok(None)
}

/// The indexes that are of use, the best first.
pub(crate) fn ways(collection: &CollectionRow, query: &FindQuery, pin: FindPin) -> Vec<Way> {
    let all = collection.rules.indexes().iter().zip(&collection.indexes);
    let ready: Vec<_> =
        all.filter(|(_, state)| state.stage == IndexStage::Ready).map(|(rule, state)| (rule, state.id)).collect();
    let order: Vec<(&Field, bool)> = match &query.wanted {
        Wanted::Page { order, .. } => order.fields().collect(),
        Wanted::Count => Vec::new(),
    };
    let selections = selections(&ready, &query.criteria, &order, pin.wall);
    selections.into_iter().map(|selection| Way { rule: ready[selection.index].0.clone(), selection }).collect()
}

/// The keys with a prefix that changed after a revision; `None` where there were too many changes to tell.
pub(crate) fn changed_since(
    moment: &Moment<'_>,
    revision: Revision,
    prefix: &[u8],
) -> Result<Option<BTreeSet<Key>>, StateFault> {
    let mut changed = BTreeSet::new();
    if revision >= moment.at.revision {
        return Ok(Some(changed));
    }
    let mut groups = moment.rows(&audit::row_key(revision.saturating_add(1), 0), &family_range(family::AUDIT).1);
    groups.seek_to_first();
    let mut seen = 0;
    while let Some(row) = groups.value() {
        let group: AuditGroup = codec::decode(row)?;
        seen += group.lines.len();
        if seen > CHANGES_MAX {
            return Ok(None);
        }
        for line in group.lines {
            if let (AuditEffect::Changed { .. }, Some(key)) = (line.effect, line.key)
                && line.revision > revision
                && key.as_bytes().starts_with(prefix)
            {
                changed.insert(key);
            }
        }
        groups.next();
    }
    groups.status()?;
    Ok(Some(changed))
}

/// Shows the finder the entries along the way, and those that changed since the moment as they were then; where the way is
/// in order, from after the place of [`FindQuery::after`] on. `false` where those that changed are too large to be held at
/// once, and nothing was shown.
pub(crate) fn walk(
    moment: &Moment<'_>,
    query: &FindQuery,
    pin: FindPin,
    way: &Way,
    changed: &BTreeSet<Key>,
    finder: &mut Finder<'_>,
) -> Result<bool, StateFault> {
    let order = match &query.wanted {
        Wanted::Page { order, .. } if way.is_in_order() => Some(order),
        _ => None,
    };
    let after = query.after.as_ref().filter(|_| order.is_some());
    let floor = match after {
        Some(key) => Some(Place::of(moment, pin, order, way, key)?),
        None => None,
    };
    let Some(mut old) = Old::new(moment, pin, order, changed, floor.as_ref(), query.bounds.bytes_max)? else {
        return Ok(false);
    };
    for (start, end) in ranges(way, floor.as_ref()) {
        let mut rows = moment.rows(&start, &end);
        if way.selection.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        while let Some(row_key) = rows.key() {
            let (_, key) = index::decode_key(row_key, way.fields().len())?;
            let is_after = floor.as_ref().is_none_or(|floor| floor.row_key != row_key);
            if is_after && !key.starts_with(&query.prefix) {
                if !finder.look(key, None)? {
                    return Ok(true);
                }
            } else if is_after && !old.holds(key) {
                let row = moment.snapshot.get_pinned(entry::row_key(key))?;
                let row = row.ok_or_else(|| StateFault(format!("{} is indexed only", key.escape_ascii())))?;
                let row = entry::decode(&row)?;
                if !old.show_before(finder, pin, key, row)? || !finder.look(key, Some(row))? {
                    return Ok(true);
                }
            }
            step(&mut rows, way.selection.reverse);
        }
        rows.status()?;
    }
    old.show_rest(finder)?;
    Ok(true)
}

fn step(rows: &mut DBRawIteratorWithThreadMode<'_, rocksdb::DB>, reverse: bool) {
    if reverse { rows.prev() } else { rows.next() }
}

/// What is left of the ranges behind a place, in the order of the walk.
fn ranges(way: &Way, floor: Option<&Place>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Selection { id, ranges, reverse, .. } = &way.selection;
    let mut ranges: Vec<_> = ranges.iter().map(|(start, end)| index::between(*id, start, end)).collect();
    for (start, end) in &mut ranges {
        match floor {
            Some(floor) if *reverse => *end = floor.row_key.clone().min(std::mem::take(end)),
            Some(floor) => *start = floor.row_key.clone().max(std::mem::take(start)),
            None => {}
        }
    }
    ranges.retain(|(start, end)| start < end);
    if *reverse {
        ranges.reverse();
    }
    ranges
}

/// Where an entry stands in an index and in the order, at the moment of the find.
struct Place {
    row_key: Vec<u8>,
    rank: Vec<u8>,
}

impl Place {
    fn of(moment: &Moment<'_>, pin: FindPin, order: Option<&Order>, way: &Way, key: &Key) -> Result<Self, StateFault> {
        let entry = listing::entry_at(moment, key, pin.revision)?;
        let document = entry.as_ref().map(|entry| document(key, row_of(entry))).transpose()?.flatten();
        // One that no index can hold is not in this one: whoever made up such a cursor begins anywhere.
        let values = way.rule.key_of(document.as_ref()).unwrap_or_default();
        let row_key = index::row_key(way.selection.id, &values, key.as_bytes());
        let meta = entry.as_ref().map(|entry| &entry.meta);
        let is_locked = meta.is_some_and(|meta| meta.is_locked_at(pin.clock));
        let subject = Subject { key, meta, is_locked, document: document.as_ref(), wall: pin.wall };
        Ok(Self { row_key, rank: order.map_or(Vec::new(), |order| order.rank(&subject)) })
    }
}

/// The entries that changed since, as they were: in order, the next one last.
struct Old<'a> {
    changed: &'a BTreeSet<Key>,
    order: Option<&'a Order>,
    entries: Vec<(Vec<u8>, &'a Key, Entry)>,
}

impl<'a> Old<'a> {
    fn new(
        moment: &Moment<'_>,
        pin: FindPin,
        order: Option<&'a Order>,
        changed: &'a BTreeSet<Key>,
        floor: Option<&Place>,
        bytes_max: usize,
    ) -> Result<Option<Self>, StateFault> {
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        for key in changed {
            let Some(entry) = listing::entry_at(moment, key, pin.revision)? else { continue };
            bytes = bytes.saturating_add(entry.value.data.len());
            if bytes > bytes_max {
                return Ok(None);
            }
            let rank = rank(order, pin, key, row_of(&entry))?;
            if floor.is_none_or(|floor| rank > floor.rank) {
                entries.push((rank, key, entry));
            }
        }
        entries.sort_by(|(a, ..), (b, ..)| b.cmp(a));
        Ok(Some(Self { changed, order, entries }))
    }

    fn holds(&self, key: &[u8]) -> bool {
        !self.changed.is_empty() && Key::new(key).is_ok_and(|key| self.changed.contains(&key))
    }

    /// Shows those that come before this one. Whether the finder wants more.
    fn show_before(
        &mut self,
        finder: &mut Finder<'_>,
        pin: FindPin,
        key: &[u8],
        row: EntryRow<'_>,
    ) -> Result<bool, StateFault> {
        if self.entries.is_empty() || self.order.is_none() {
            return Ok(true);
        }
        let key = Key::new(key).map_err(|error| StateFault(format!("a stored key is not one: {error}")))?;
        let next = rank(self.order, pin, &key, row)?;
        while let Some((_, key, entry)) = self.entries.pop_if(|(rank, ..)| *rank < next) {
            if !finder.look(key.as_bytes(), Some(row_of(&entry)))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn show_rest(mut self, finder: &mut Finder<'_>) -> Result<(), StateFault> {
        while let Some((_, key, entry)) = self.entries.pop() {
            if !finder.look(key.as_bytes(), Some(row_of(&entry)))? {
                break;
            }
        }
        Ok(())
    }
}

fn rank(order: Option<&Order>, pin: FindPin, key: &Key, row: EntryRow<'_>) -> Result<Vec<u8>, StateFault> {
    let Some(order) = order else { return Ok(Vec::new()) };
    let document = if order.needs_document() { document(key, row)? } else { None };
    let is_locked = row.meta.is_locked_at(pin.clock);
    let meta = Some(&row.meta);
    Ok(order.rank(&Subject { key, meta, is_locked, document: document.as_ref(), wall: pin.wall }))
}

fn row_of(entry: &Entry) -> EntryRow<'_> {
    EntryRow { meta: entry.meta, kind: entry.value.kind, data: &entry.value.data }
}

fn document<'r>(key: &Key, row: EntryRow<'r>) -> Result<Option<Json<'r>>, StateFault> {
    match row.kind {
        ContentKind::Bytes => Ok(None),
        ContentKind::Json => {
            let parsed = Json::parse(row.data);
            parsed.map(Some).map_err(|error| StateFault(format!("the value of key {key} is damaged: {error}")))
        }
    }
}
