//! Reads of what is declared: collections and sequences.
//!
//! Owns the pages of collections, and whether their indexes want work. Never changes anything.

use super::heads::Building;
use super::shared::Moment;
use super::types::{ReadPosition, StateFault};
use crate::codec;
use crate::keyspace::collection;
use crate::keyspace::{family, family_range, sequence};
use crate::rules::{CollectionName, SequenceName};
use crate::types::{CollectionRow, IndexStage};

/// Some collections, in order of their names.
#[derive(Debug, Clone)]
pub struct CollectionsPage {
    /// Where it was evaluated.
    pub at: ReadPosition,
    /// They.
    pub collections: Vec<(CollectionName, CollectionRow)>,
    /// Whether there are others after them.
    pub more: bool,
}

/// A collection, if it is declared.
pub(crate) fn collection(moment: &Moment<'_>, name: &CollectionName) -> Result<Option<CollectionRow>, StateFault> {
    let row = moment.snapshot.get_pinned(collection::row_key(name.as_str().as_bytes()))?;
    Ok(row.map(|row| codec::decode(&row)).transpose()?)
}

/// Collections after this name, within bounds; a first one always.
pub(crate) fn collections(
    moment: &Moment<'_>,
    after: Option<&CollectionName>,
    limit: usize,
    bytes_max: usize,
) -> Result<CollectionsPage, StateFault> {
    let (first, end) = family_range(family::COLLECTION);
    let start = after.map_or(first, |name| [&collection::row_key(name.as_str().as_bytes())[..], &[0]].concat());
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    let mut page = CollectionsPage { at: moment.at, collections: Vec::new(), more: false };
    let mut bytes = 0;
    while let Some((row_key, row)) = rows.item() {
        if page.collections.len() >= limit || bytes >= bytes_max {
            page.more = true;
            break;
        }
        bytes += row.len();
        page.collections.push((collection::decode_key(row_key)?, codec::decode(row)?));
        rows.next();
    }
    rows.status()?;
    Ok(page)
}

/// The last number that a sequence gave; 0 before the first.
pub(crate) fn last_number(moment: &Moment<'_>, name: &SequenceName) -> Result<u64, StateFault> {
    let row = moment.snapshot.get_pinned(sequence::row_key(name))?;
    Ok(row.map(|row| sequence::decode(&row)).transpose()?.unwrap_or(0))
}

/// Whether an index is being built, or one is to be cleared. What is known of collections is of before the moment, or newer: what it leaves
/// out has none.
pub(crate) fn has_index_work(
    moment: &Moment<'_>,
    building: &Building,
    (none_before, look): (Option<Vec<u8>>, u64),
) -> Result<bool, StateFault> {
    let (start, end) = family_range(family::DROPPED_INDEX);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    rows.status()?;
    if rows.valid() {
        return Ok(true);
    }
    if moment.record.vars.collections == 0 {
        return Ok(false);
    }
    let (first, end) = family_range(family::COLLECTION);
    let start = none_before.unwrap_or(first);
    if start >= end {
        return Ok(false);
    }
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    while let Some((row_key, row)) = rows.item() {
        let row: CollectionRow = codec::decode(row)?;
        if row.indexes.iter().any(|state| matches!(state.stage, IndexStage::Building(_))) {
            building.seen(look, row_key);
            return Ok(true);
        }
        rows.next();
    }
    rows.status()?;
    building.seen(look, &end);
    Ok(false)
}
