//! Finds: the moment that a query is about, and the walk over it.
//!
//! Owns which entries a [`Finder`] is shown, and whether an index shows them. Never chooses among them.

use std::borrow::Cow;

use super::finder::{FindMoment, FindPin, FindQuery, FindRead, Finder};
use super::indexed;
use super::listing::{self, Range};
use super::{Cursor, Moment, Snapshot};
use crate::keyspace::audit;
use crate::keyspace::{after_prefix, family, family_range};
use crate::machine::Fault;
use crate::types::CollectionRow;
use crate::types::{Key, Revision};

/// Answers a query.
pub fn find(moment: &Moment<impl Snapshot>, query: &FindQuery) -> Result<FindRead, Fault> {
    let pin = match query.moment {
        FindMoment::Now(wall) => FindPin { wall: moment.vars.wall.max(wall), ..now(moment) },
        FindMoment::Revision(revision) | FindMoment::Pinned(FindPin { revision, .. })
            if revision < moment.at.oldest_revision =>
        {
            return Ok(FindRead::Compacted(moment.at));
        }
        FindMoment::Revision(revision) | FindMoment::Pinned(FindPin { revision, .. })
            if revision > moment.at.revision =>
        {
            return Ok(FindRead::Future(moment.at));
        }
        FindMoment::Revision(revision) => pin_of(moment, revision)?,
        FindMoment::Pinned(pin) => pin,
    };
    let Some((keys, collection)) = indexed::collection_of(moment, &query.prefix)? else {
        return scan(moment, query, pin);
    };
    let converted;
    let query = match collection.rules.converted(&query.criteria, pin.wall) {
        Cow::Borrowed(_) => query,
        Cow::Owned(criteria) => {
            converted = FindQuery { criteria, ..query.clone() };
            &converted
        }
    };
    if !query.may_walk_past && query.prefix != keys {
        return scan(moment, query, pin);
    }
    match by_index(moment, query, pin, &keys, &collection)? {
        Some(read) => Ok(read),
        None => scan(moment, query, pin),
    }
}

/// Answers a query by an index of the collection whose keys begin with `keys`, if there is one that leads to an answer.
fn by_index(
    moment: &Moment<impl Snapshot>,
    query: &FindQuery,
    pin: FindPin,
    keys: &[u8],
    collection: &CollectionRow,
) -> Result<Option<FindRead>, Fault> {
    let ways = indexed::ways(collection, query, pin);
    // A count that was cut was one in the order of keys, and goes on in it.
    let goes_on = query.wanted.is_count() && query.after.is_some();
    if ways.is_empty() || goes_on {
        return Ok(None);
    }
    let Some(changed) = indexed::changed_since(moment, pin.revision, keys)? else { return Ok(None) };
    let best_in_order = ways.iter().find(|way| way.is_in_order());
    let best = ways.first().into_iter().chain(best_in_order.filter(|_| !ways[0].is_in_order()));
    for way in best {
        let comes_in_order = way.is_in_order() && !query.wanted.is_count();
        let after_entry = match query.after.as_ref().filter(|_| !comes_in_order) {
            Some(key) => listing::entry_at(moment, key, pin.revision)?,
            None => None,
        };
        let mut finder = Finder::new(query, pin, comes_in_order, after_entry.as_ref())?;
        if !indexed::walk(moment, query, pin, way, &changed, &mut finder)? {
            return Ok(None);
        }
        // Where all of it has to be seen and was not, another way may still lead there.
        if comes_in_order || !finder.is_cut() {
            return finder.finish(moment.at, Some(way.fields())).map(Some);
        }
    }
    Ok(None)
}

/// Answers a query by looking at the entries in the order of keys.
fn scan(moment: &Moment<impl Snapshot>, query: &FindQuery, pin: FindPin) -> Result<FindRead, Fault> {
    let takes_all = Finder::takes_all(query);
    let after = query.after.as_ref();
    let after_entry = match after.filter(|_| takes_all) {
        Some(key) => listing::entry_at(moment, key, pin.revision)?,
        None => None,
    };
    let mut finder = Finder::new(query, pin, !takes_all, after_entry.as_ref())?;
    let (start, end) = bounds(query, after.filter(|_| !takes_all));
    let range = Range { start: &start, end: end.as_deref(), reverse: Finder::is_reverse(query) };
    listing::walk(moment, range, Some(pin.revision), |key, row| finder.look(key, row))?;
    finder.finish(moment.at, None)
}

/// The clocks as of now.
fn now(moment: &Moment<impl Snapshot>) -> FindPin {
    FindPin { revision: moment.at.revision, clock: moment.at.clock, wall: moment.vars.wall }
}

/// A revision with the clocks of the batch that took it, the same on every node. Where that batch is not known any more,
/// nothing is expired, and the wall clock is the present one.
fn pin_of(moment: &Moment<impl Snapshot>, revision: Revision) -> Result<FindPin, Fault> {
    let mut rows = moment.rows(&audit::row_key(revision, 0), &family_range(family::AUDIT).1);
    rows.seek_to_first();
    rows.status()?;
    let group = rows.value().map(audit::decode).transpose()?;
    let group = group.filter(|group| group.first_revision <= revision);
    Ok(match group {
        Some(group) => FindPin { revision, clock: group.clock, wall: group.wall },
        None => FindPin { revision, clock: 0, ..now(moment) },
    })
}

/// The keys that begin with the prefix, from after `after` on.
fn bounds(query: &FindQuery, after: Option<&Key>) -> (Vec<u8>, Option<Vec<u8>>) {
    let (start, end) = (query.prefix.clone(), after_prefix(&query.prefix));
    match after.map(Key::as_bytes) {
        None => (start, end),
        // A cursor that was made up could lead out of the prefix.
        Some(after) if Finder::is_reverse(query) => match end {
            Some(end) => (start, Some(end.min(after.to_vec()))),
            None => (start, Some(after.to_vec())),
        },
        // The smallest key after it.
        Some(after) => (start.max([after, b"\0"].concat()), end),
    }
}
