//! Reads of what is declared: collections and sequences.
//!
//! Owns the pages of collections, and whether their indexes want work. Never changes anything.

use super::{Cursor, Moment, ReadPosition, Snapshot};
use crate::codec;
use crate::keyspace::collection;
use crate::keyspace::{family, family_range, sequence};
use crate::machine::Fault;
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
pub fn collection(moment: &Moment<impl Snapshot>, name: &CollectionName) -> Result<Option<CollectionRow>, Fault> {
    moment.decoded(collection::row_key(name.as_str().as_bytes()))
}

/// Collections after this name, within bounds; a first one always.
pub fn collections(
    moment: &Moment<impl Snapshot>,
    after: Option<&CollectionName>,
    limit: usize,
    bytes_max: usize,
) -> Result<CollectionsPage, Fault> {
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
pub fn last_number(moment: &Moment<impl Snapshot>, name: &SequenceName) -> Result<u64, Fault> {
    let row = moment.snapshot.get_pinned(sequence::row_key(name))?;
    Ok(row.map(|row| sequence::decode(&row)).transpose()?.unwrap_or(0))
}

/// The result of a look for work on indexes.
#[derive(Debug)]
pub struct IndexWork {
    /// Whether an index is being built, or one is to be cleared.
    pub is_some: bool,
    /// No collection before this row has an index that is being built; `None` where nobody looked.
    pub none_before: Option<Vec<u8>>,
}

/// Looks for work on indexes. No collection before `none_before` has an index that is being built.
pub fn index_work(moment: &Moment<impl Snapshot>, none_before: Option<Vec<u8>>) -> Result<IndexWork, Fault> {
    let (start, end) = family_range(family::DROPPED_INDEX);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    rows.status()?;
    if rows.valid() {
        return Ok(IndexWork { is_some: true, none_before: None });
    }
    let (first, end) = family_range(family::COLLECTION);
    let start = none_before.unwrap_or(first);
    if moment.vars.collections == 0 || start >= end {
        return Ok(IndexWork { is_some: false, none_before: None });
    }
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    while let Some((row_key, row)) = rows.item() {
        let row: CollectionRow = codec::decode(row)?;
        if row.indexes.iter().any(|state| matches!(state.stage, IndexStage::Building(_))) {
            return Ok(IndexWork { is_some: true, none_before: Some(row_key.to_vec()) });
        }
        rows.next();
    }
    rows.status()?;
    Ok(IndexWork { is_some: false, none_before: Some(end) })
}
