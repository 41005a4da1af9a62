//! What collections do to writes: which rules hold for a key, and the rows of indexes and sequences.
//!
//! Owns finding the collection of a key and keeping its indexes in step with its entries. What rules make of a document is
//! in [`crate::rules`].
//!
//! Golden scripts, in `testscripts/machine`: `collections`, `indexes`.

mod indexing;
mod rules;

use std::borrow::Cow;
use std::sync::Arc;

use super::current::decode_current;
use super::stop::Tried;
use super::view::{Fault, View};
use super::{Applier, stored_key};
use crate::document::{Criteria, Json, Steps, TooDear};
use crate::keyspace::collection;
use crate::keyspace::entry::{self, EntryRow};
use crate::keyspace::{index, sequence};
use crate::mutants::Mutant;
use crate::rules::{IndexRule, RuleFault, SequenceName, candidates};
use crate::types::CollectionRow;
use crate::types::{ContentKind, Key, Rejection, WallMillis};

/// Rows of an index looked at at a time.
const INDEX_PAGE: usize = 64;

/// The last number of each sequence that a write may draw from, as it is and as it will be.
#[derive(Default)]
pub(super) struct Draws(Vec<(SequenceName, u64, u64)>);

impl Draws {
    /// The next number.
    pub(super) fn next(&mut self, name: &SequenceName) -> u64 {
        let drawn = self.0.iter_mut().find(|(known, ..)| known == name);
        let (_, _, last) = drawn.unwrap_or_else(|| unreachable!("the sequence {name} is not one of the rules"));
        *last += 1;
        *last
    }
}

/// The key under which a value stands in one index.
pub(super) struct IndexKey {
    pub(super) bytes: Vec<u8>,
    /// The mark that no other entry may stand there.
    pub(super) is_bound: bool,
}

impl<V: View> Applier<'_, V> {
    /// What is at hand of collections is not so any more.
    pub(super) fn forget_collections(&mut self) {
        if !Mutant::CollectionsOutliveTheirRules.acts() {
            self.batch.known_collections.clear();
        }
    }

    /// The collection that a key belongs to, if it is declared.
    pub(super) fn collection_of(&mut self, key: &[u8]) -> Result<Option<Arc<CollectionRow>>, Fault> {
        if self.vars.collections == 0 {
            return Ok(None);
        }
        for name in candidates(key) {
            let known = match self.batch.known_collections.get(name) {
                Some(known) => known.clone(),
                None => {
                    let found = self.collection(&collection::row_key(name))?.map(Arc::new);
                    self.batch.known_collections.insert(name.to_vec(), found.clone());
                    found
                }
            };
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    /// A collection by the key of its row.
    pub(super) fn collection(&self, row_key: &[u8]) -> Result<Option<CollectionRow>, Fault> {
        self.decoded(row_key)
    }

    /// The sequences that a write into a collection may draw from.
    pub(super) fn draws(&self, collection: &CollectionRow) -> Tried<Draws> {
        let mut draws: Vec<(SequenceName, u64, u64)> = Vec::new();
        for (_, rule) in collection.rules.fields() {
            let Some(name) = &rule.sequence else { continue };
            let last = self.last_number(name)?;
            // A field or two draw from it: so many numbers no store ever gave.
            if last > u64::MAX - 2 * crate::limits::RULE_FIELDS_MAX as u64 {
                return Err(Rejection::UsedUp.into());
            }
            if !draws.iter().any(|(known, ..)| known == name) {
                draws.push((name.clone(), last, last));
            }
        }
        Ok(Draws(draws))
    }

    /// The last number that a sequence gave; 0 before the first.
    pub(super) fn last_number(&self, name: &SequenceName) -> Result<u64, Fault> {
        let row_key = sequence::row_key(name);
        let row = self.overlay.peek(&row_key)?;
        let last = row.map(|row| sequence::decode(&row)).transpose().map_err(|error| Fault::row(&row_key, error))?;
        Ok(last.unwrap_or(0))
    }

    /// Writes down what was drawn.
    pub(super) fn keep_draws(&mut self, draws: &Draws) -> Result<(), Fault> {
        for (name, _, last) in draws.0.iter().filter(|(_, before, last)| before != last) {
            self.overlay.replace(&sequence::row_key(name), Some(sequence::encode(*last)))?;
        }
        Ok(())
    }

    /// Checks that no other live entry stands under the keys of a new value in a unique index that holds it. There is a key for each index.
    pub(super) fn check_unique(&mut self, collection: &CollectionRow, key: &Key, index_keys: &[IndexKey]) -> Tried<()> {
        for ((rule, state), of_value) in collection.rules.indexes().iter().zip(&collection.indexes).zip(index_keys) {
            if !of_value.is_bound || !state.holds(key.as_bytes()) {
                continue;
            }
            if let Some(other) = self.other_with(state.id, rule, &of_value.bytes, key)? {
                let fields = rule.fields().into();
                return Err(Rejection::NotUnique { fields, key: Box::new(other) }.into());
            }
        }
        Ok(())
    }

    /// A live entry beside this one that stands under these values.
    pub(super) fn other_with(
        &mut self,
        id: u64,
        rule: &IndexRule,
        values: &[u8],
        key: &Key,
    ) -> Result<Option<Key>, Fault> {
        let (mut start, end) = index::with_values(id, values);
        loop {
            let page = self.overlay.scan(&start, &end, INDEX_PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(None) };
            start = [last.as_slice(), &[0]].concat();
            for (row_key, _) in &page {
                let damaged = |error| Fault::row(row_key, error);
                let (_, other) = index::decode_key(row_key, rule.fields().len()).map_err(damaged)?;
                if other != key.as_bytes() && self.is_live(other)? {
                    return stored_key(other).map(Some);
                }
            }
        }
    }

    fn is_live(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let row_key = entry::row_key(key);
        let (newest, clock) = (self.vars.revision, self.vars.clock);
        match self.overlay.get(&row_key)? {
            Some(row) => Ok(!decode_current(&row_key, row, newest)?.is_expired_at(clock)),
            None => Err(Fault::Invariant(format!("key {} is indexed and not there", key.escape_ascii()))),
        }
    }

    /// Keeps the indexes in step with a row that was exchanged for another; `index_keys` are those of its value, where that is a new one.
    /// Cannot be refused: what the row before takes only counts.
    pub(super) fn reindex(
        &mut self,
        collection: &CollectionRow,
        key: &[u8],
        (before, after): (Option<&[u8]>, Option<&[u8]>),
        index_keys: &[IndexKey],
    ) -> Result<(), Fault> {
        if collection.rules.indexes().is_empty() {
            return Ok(());
        }
        if Mutant::JointRemovalsStayIndexed.acts() && after.is_none() && self.batch.joint.is_some() {
            return Ok(());
        }
        if is_value_the_same(key, before, after)? {
            return Ok(());
        }
        let steps = Steps::unbounded();
        let before = index_rows(collection, key, before, &steps)?;
        self.count_steps(&steps);
        let after = if after.is_some() { rows_under(collection, key, index_keys)? } else { Vec::new() };
        for row_key in before.iter().filter(|row_key| !after.contains(row_key)) {
            self.overlay.take(row_key)?;
        }
        for row_key in after.into_iter().filter(|row_key| !before.contains(row_key)) {
            self.overlay.insert_absent(row_key, Vec::new())?;
        }
        Ok(())
    }
}

/// Tells whether an entry has the same value after a change, as it has where it is touched.
fn is_value_the_same(key: &[u8], before: Option<&[u8]>, after: Option<&[u8]>) -> Result<bool, Fault> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(false) };
    let decoded = |row| entry::decode(row).map_err(|error| Fault::row(&entry::row_key(key), error));
    let (before, after) = (decoded(before)?, decoded(after)?);
    Ok(before.kind == after.kind && before.data == after.data)
}

/// The rows that an entry has in the indexes of its collection under the keys of its value.
fn rows_under(collection: &CollectionRow, key: &[u8], index_keys: &[IndexKey]) -> Result<Vec<Vec<u8>>, Fault> {
    let (keys, indexes) = (index_keys.len(), collection.indexes.len());
    if keys != indexes {
        let key = key.escape_ascii();
        return Err(Fault::Invariant(format!("a new value of entry {key} has {keys} keys for {indexes} indexes")));
    }
    let held = collection.indexes.iter().zip(index_keys).filter(|(state, _)| state.holds(key));
    Ok(held.map(|(state, of_value)| index::row_key(state.id, &of_value.bytes, key)).collect())
}

/// The rows that an entry has in the indexes of its collection now, and the steps to find them, which have no bound.
fn index_rows(
    collection: &CollectionRow,
    key: &[u8],
    row: Option<&[u8]>,
    steps: &Steps,
) -> Result<Vec<Vec<u8>>, Fault> {
    let Some(row) = row else { return Ok(Vec::new()) };
    let row_key = entry::row_key(key);
    let row = entry::decode(row).map_err(|error| Fault::row(&row_key, error))?;
    let document = document_within(&row_key, &row, steps)?.expect("there is no bound");
    let values = collection.rules.indexed_values(document.as_ref(), steps);
    let mut rows = Vec::with_capacity(collection.indexes.len());
    for ((rule, state), values) in collection.rules.indexes().iter().zip(&collection.indexes).zip(&values) {
        if state.holds(key) {
            let values = rule.key_from(values).map_err(|fault| not_indexable(key.escape_ascii(), &fault))?;
            rows.push(index::row_key(state.id, &values, key));
        }
    }
    Ok(rows)
}

/// Criteria as the collection of what they look at understands them, if there is one.
pub(super) fn understood<'c>(
    collection: Option<&CollectionRow>,
    criteria: &'c Criteria,
    wall: WallMillis,
) -> Cow<'c, Criteria> {
    match collection {
        Some(collection) => collection.rules.converted(criteria, wall),
        None => Cow::Borrowed(criteria),
    }
}

/// The value of a row, where it is JSON.
fn document_of<'a>(row_key: &[u8], row: &EntryRow<'a>) -> Result<Option<Json<'a>>, Fault> {
    match row.kind {
        ContentKind::Bytes => Ok(None),
        ContentKind::Json if Mutant::GreatNumbersAreNotRead.acts() => {
            Json::parse(row.data).map(Some).map_err(|error| Fault::Invariant(error.to_string()))
        }
        ContentKind::Json => match Json::parse_stored(row.data) {
            Ok(document) => Ok(Some(document)),
            Err(error) => Err(Fault::Invariant(format!("row {} holds no JSON: {error}", row_key.escape_ascii()))),
        },
    }
}

/// The same, where it counts that it is parsed.
pub(super) fn document_within<'a>(
    row_key: &[u8],
    row: &EntryRow<'a>,
    steps: &Steps,
) -> Result<Result<Option<Json<'a>>, TooDear>, Fault> {
    let parsed = if row.kind == ContentKind::Json { row.data } else { &[] };
    match steps.take_parsing(parsed) {
        Ok(()) => document_of(row_key, row).map(Ok),
        Err(dear) => Ok(Err(dear)),
    }
}

/// Every entry that an index holds was checked before.
fn not_indexable(key: impl std::fmt::Display, fault: &RuleFault) -> Fault {
    Fault::Invariant(format!("entry {key} is held by an index that cannot hold it: {} {}", fault.pointer, fault.kind))
}
