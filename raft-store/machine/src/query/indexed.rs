//! Finds by an index: which one, and the walk along it.
//!
//! Owns what an index is worth to a find, also of a moment that has passed: an index holds entries as they are now, so
//! those that changed since are left out of the walk and are looked at as they were. Never chooses among entries, as a
//! [`Finder`] does.

use std::collections::BTreeSet;

use super::finder::{FindPin, FindQuery, Finder, Wanted, parse, row_of};
use super::listing;
use super::{Cursor, Moment, Snapshot};
use crate::codec;
use crate::document::path::{Field, Path};
use crate::document::{Json, Steps, Subject, order};
use crate::keyspace::audit::{self, AuditEffect};
use crate::keyspace::collection;
use crate::keyspace::{entry, family, family_range, index};
use crate::limits;
use crate::machine::Fault;
use crate::rules::{IndexRule, Selection, candidates, selections};
use crate::types::{CollectionRow, IndexStage};
use crate::types::{Entry, Key, Revision};

/// Changes looked through to know which entries are not as they were. A find that began longer ago looks at the entries.
const CHANGES_MAX: usize = 10_000;

/// A way along an index.
pub struct Way {
    selection: Selection,
    rule: IndexRule,
}

impl Way {
    /// Whether entries come in the order asked for.
    pub fn is_in_order(&self) -> bool {
        self.selection.in_order
    }

    /// The fields of the index.
    pub fn fields(&self) -> &[Path] {
        self.rule.fields()
    }
}

/// The collection that all keys with this prefix belong to, if it is declared, and what all its keys begin with.
pub fn collection_of(moment: &Moment<impl Snapshot>, prefix: &[u8]) -> Result<Option<(Vec<u8>, CollectionRow)>, Fault> {
    if moment.vars.collections == 0 {
        return Ok(None);
    }
    for name in candidates(prefix) {
        if let Some(row) = moment.snapshot.get_pinned(collection::row_key(name))? {
            return Ok(Some(([name, b"/"].concat(), codec::decode(&row)?)));
        }
    }
    Ok(None)
}

/// The indexes that are of use, the best first.
pub fn ways(collection: &CollectionRow, query: &FindQuery, pin: FindPin) -> Vec<Way> {
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

/// The keys with a prefix whose entries or the locks on them changed after a revision; `None` where there were too many changes to tell.
pub fn changed_since(
    moment: &Moment<impl Snapshot>,
    revision: Revision,
    prefix: &[u8],
) -> Result<Option<BTreeSet<Key>>, Fault> {
    let mut changed = BTreeSet::new();
    if revision >= moment.at.revision {
        return Ok(Some(changed));
    }
    let mut groups = moment.rows(&audit::row_key(revision.saturating_add(1), 0), &family_range(family::AUDIT).1);
    groups.seek_to_first();
    let mut seen = 0;
    while let Some(row) = groups.value() {
        let group = audit::decode(row)?;
        seen += group.lines.len();
        if seen > CHANGES_MAX {
            return Ok(None);
        }
        for line in group.lines {
            if let (AuditEffect::Changed { .. } | AuditEffect::Relocked { .. }, Some(key)) = (line.effect, line.key)
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
/// once, and nothing was shown. `changed` are all of the collection.
pub fn walk(
    moment: &Moment<impl Snapshot>,
    query: &FindQuery,
    pin: FindPin,
    way: &Way,
    changed: &BTreeSet<Key>,
    finder: &mut Finder<'_>,
) -> Result<bool, Fault> {
    let goes_on = way.is_in_order() && !query.wanted.is_count();
    let floor = match query.after.as_ref().filter(|_| goes_on) {
        Some(key) => Some(place_at(moment, pin, way, key)?),
        None => None,
    };
    let Some(mut old) = Old::new(moment, query, pin, way, changed, floor.as_deref())? else {
        return Ok(false);
    };
    for (start, end) in ranges(way, floor.as_deref()) {
        let mut rows = moment.rows(&start, &end);
        if way.selection.reverse {
            rows.seek_to_last()
        } else {
            rows.seek_to_first()
        }
        while let Some(row_key) = rows.key() {
            let (_, key) = index::decode_key(row_key, way.fields().len())?;
            if floor.as_deref() != Some(row_key) && !old.holds(key) {
                if !old.show_before(finder, row_key)? {
                    return Ok(true);
                }
                let is_wanted = match key.starts_with(&query.prefix) {
                    false => finder.look(key, None)?,
                    true => {
                        let row = moment.snapshot.get_pinned(entry::row_key(key))?;
                        let row =
                            row.ok_or_else(|| Fault::Invariant(format!("{} is indexed only", key.escape_ascii())))?;
                        finder.look(key, Some(entry::decode(&row)?))?
                    }
                };
                if !is_wanted {
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

fn step(rows: &mut impl Cursor, reverse: bool) {
    if reverse { rows.prev() } else { rows.next() }
}

/// What is left of the ranges behind a place, in the order of the walk.
fn ranges(way: &Way, floor: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Selection { id, ranges, reverse, .. } = &way.selection;
    let mut ranges: Vec<_> = ranges.iter().map(|(start, end)| index::between(*id, start, end)).collect();
    for (start, end) in &mut ranges {
        match floor {
            Some(floor) if *reverse => *end = floor.to_vec().min(std::mem::take(end)),
            Some(floor) => *start = floor.to_vec().max(std::mem::take(start)),
            None => {}
        }
    }
    ranges.retain(|(start, end)| start < end);
    if *reverse {
        ranges.reverse();
    }
    ranges
}

/// Where an entry stood in the index at the moment of the find, had there been one then.
fn place_at(moment: &Moment<impl Snapshot>, pin: FindPin, way: &Way, key: &Key) -> Result<Vec<u8>, Fault> {
    let entry = listing::entry_at(moment, key, pin.revision)?;
    let document = entry.as_ref().map(|entry| parse(key, row_of(entry))).transpose()?.flatten();
    Ok(place(way, key, document.as_ref()))
}

/// Where an entry stands in the index, also where its strings are too long for that.
fn place(way: &Way, key: &Key, document: Option<&Json<'_>>) -> Vec<u8> {
    let mut values = Vec::new();
    for path in way.fields() {
        order::encode_sort(document.and_then(|document| path.find(document)), &mut values);
    }
    index::row_key(way.selection.id, &values, key.as_bytes())
}

/// The entries that match and changed since, as they were, by their places: the next one last.
struct Old<'a> {
    changed: &'a BTreeSet<Key>,
    reverse: bool,
    entries: Vec<(Vec<u8>, &'a Key, Entry)>,
}

impl<'a> Old<'a> {
    fn new(
        moment: &Moment<impl Snapshot>,
        query: &FindQuery,
        pin: FindPin,
        way: &Way,
        changed: &'a BTreeSet<Key>,
        floor: Option<&[u8]>,
    ) -> Result<Option<Self>, Fault> {
        let reverse = way.selection.reverse;
        let (mut entries, mut bytes) = (Vec::new(), 0_usize);
        let (ready, steps) = (query.criteria.ready(), Steps::up_to(limits::COMMAND_STEPS_MAX));
        for key in changed.iter().filter(|key| key.as_bytes().starts_with(&query.prefix)) {
            let Some(entry) = listing::entry_at(moment, key, pin.revision)? else { continue };
            bytes = bytes.saturating_add(entry.value.data.len());
            if bytes > query.bounds.bytes_max {
                return Ok(None);
            }
            let document = parse(key, row_of(&entry))?;
            let is_locked = entry.meta.is_locked_at(pin.clock);
            let meta = Some(&entry.meta);
            let subject =
                Subject { key, meta, is_locked, document: document.as_ref(), clock: pin.clock, wall: pin.wall };
            let place = place(way, key, document.as_ref());
            let is_behind = floor.is_none_or(|floor| if reverse { *place < *floor } else { *place > *floor });
            if !is_behind {
                continue;
            }
            // The walk along the keys, which comes instead, has a bound for each of them and says where that is not enough.
            let Ok(holds) = ready.hold_within(&subject, &steps) else { return Ok(None) };
            if holds {
                drop(document);
                entries.push((place, key, entry));
            }
        }
        entries.sort_by(|(a, ..), (b, ..)| if reverse { a.cmp(b) } else { b.cmp(a) });
        Ok(Some(Self { changed, reverse, entries }))
    }

    fn holds(&self, key: &[u8]) -> bool {
        !self.changed.is_empty() && Key::new(key).is_ok_and(|key| self.changed.contains(&key))
    }

    /// Shows those whose place is before this one. Whether the finder wants more.
    fn show_before(&mut self, finder: &mut Finder<'_>, row_key: &[u8]) -> Result<bool, Fault> {
        let reverse = self.reverse;
        let is_before = |place: &[u8]| if reverse { place > row_key } else { place < row_key };
        while let Some((_, key, entry)) = self.entries.pop_if(|(place, ..)| is_before(place)) {
            if !finder.look(key.as_bytes(), Some(row_of(&entry)))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn show_rest(mut self, finder: &mut Finder<'_>) -> Result<(), Fault> {
        while let Some((_, key, entry)) = self.entries.pop() {
            if !finder.look(key.as_bytes(), Some(row_of(&entry)))? {
                break;
            }
        }
        Ok(())
    }
}
