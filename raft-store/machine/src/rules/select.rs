//! Which index answers a search, and which part of it.
//!
//! Owns the choice. What it gives is a superset of what is sought: whoever walks the ranges checks each document with the
//! criteria. An index sees the documents of one collection only; that a search is within one is the caller's to know.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::index::IndexRule;
use super::narrow::{Allowed, Interval, allowed_fields, behind};
use crate::document::Criteria;
use crate::document::path::{Field, MetaField, Path};
use crate::entry::WallMillis;
use crate::limits::INDEX_RANGES_MAX;

/// An index and the parts of it to walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Place among the indexes given.
    pub index: usize,
    /// Its id, as given.
    pub id: u64,
    /// What to walk, ascending and apart from each other: index bytes and key, from the first on and before the second.
    /// At most [`INDEX_RANGES_MAX`]; none where nothing can match.
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether backwards: the last range first, each from its end.
    pub reverse: bool,
    /// Whether what matches is met in the order asked for. Else all of it has to be seen and ordered.
    pub in_order: bool,
    rank: Rank,
}

/// How good a choice is; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Few entries at most: a unique index with all its fields given.
    is_lookup: bool,
    /// In order, and not all of the index.
    is_part_in_order: bool,
    /// Fields of which the values are given.
    depth: usize,
    /// Of the range behind those.
    strength: u8,
    in_order: bool,
    /// Smaller entries, where all else is equal; then the index given first.
    fewer_fields: Reverse<usize>,
    first: Reverse<usize>,
}

/// The best of the indexes for criteria and an order; `None` where none is better than to look at everything in the order
/// of keys. `order` is as [`Order::fields`](crate::document::Order::fields) gives it, and empty where none is asked
/// for.
pub fn select(
    indexes: &[(&IndexRule, u64)],
    criteria: &Criteria,
    order: &[(&Field, bool)],
    wall: WallMillis,
) -> Option<Selection> {
    selections(indexes, criteria, order, wall).into_iter().next()
}

/// All indexes that are of use, the best first: for who needs more of one, such as the order.
///
/// An index is in order where its fields are those of the order, all in one direction, and so is the key behind them;
/// fields with one possible value do not count in either. The best is one that is in order and narrows, then one that
/// narrows most, by values given and then by a range, then one that is only in order. Before all of them goes a unique index
/// with all its values given.
pub fn selections(
    indexes: &[(&IndexRule, u64)],
    criteria: &Criteria,
    order: &[(&Field, bool)],
    wall: WallMillis,
) -> Vec<Selection> {
    let search = Search { allowed: allowed_fields(criteria, wall), order };
    let of_use = |(at, (rule, id)): (usize, &(&IndexRule, u64))| search.selection(at, rule, *id);
    let mut found: Vec<_> = indexes.iter().enumerate().filter_map(of_use).collect();
    found.sort_by_key(|selection| Reverse(selection.rank));
    found
}

struct Search<'s> {
    /// What the criteria leave of each field that they narrow.
    allowed: BTreeMap<&'s Path, Allowed>,
    order: &'s [(&'s Field, bool)],
}

impl Search<'_> {
    fn selection(&self, index: usize, rule: &IndexRule, id: u64) -> Option<Selection> {
        let allowed: Vec<_> = rule.fields().iter().map(|path| self.allowed.get(path)).collect();
        let Walk { ranges, depth, strength } = walk(&allowed);
        let is_bound = rule.is_unique() && allowed.iter().all(|allowed| allowed.is_some_and(Allowed::is_bound));
        let direction = self.direction(rule);
        let in_order = self.order.is_empty() || direction.is_some();
        let (narrows, gives_order) = (depth > 0 || strength > 0, direction.is_some());
        let rank = Rank {
            is_lookup: ranges.is_empty() || (is_bound && depth == rule.fields().len()),
            is_part_in_order: in_order && narrows,
            depth,
            strength,
            in_order: gives_order,
            fewer_fields: Reverse(rule.fields().len()),
            first: Reverse(index),
        };
        let selection = Selection { index, id, ranges, reverse: direction == Some(true), in_order, rank };
        (narrows || gives_order).then_some(selection)
    }

    /// Whether a walk through the index is in order, and if so, whether backwards.
    fn direction(&self, rule: &IndexRule) -> Option<bool> {
        let fields = rule.fields().iter().filter(|path| !self.is_constant(path));
        let is_field_constant = |field: &Field| matches!(field, Field::Document(path) if self.is_constant(path));
        let mut wanted = self.order.iter().filter(|(field, _)| !is_field_constant(field));
        let (_, reverse) = self.order.last()?;
        let mut is_next = |is_it: &dyn Fn(&Field) -> bool| {
            wanted.next().is_some_and(|(field, descending)| is_it(field) && descending == reverse)
        };
        for path in fields {
            if !is_next(&|field| matches!(field, Field::Document(wanted) if wanted == path)) {
                return None;
            }
        }
        is_next(&|field| *field == Field::Meta(MetaField::Key)).then_some(*reverse)
    }

    /// Whether all that matches has the same in a field.
    fn is_constant(&self, path: &Path) -> bool {
        self.allowed.get(path).is_some_and(Allowed::is_one_point)
    }
}

/// The part of an index that is left.
struct Walk {
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
    depth: usize,
    strength: u8,
}

/// Goes through the fields as long as each allows single values only; then at most one more, which may allow ranges.
fn walk(allowed: &[Option<&Allowed>]) -> Walk {
    let mut starts = vec![Vec::new()];
    for (depth, allowed) in allowed.iter().enumerate() {
        let Some(allowed) = allowed else { return whole(starts, depth) };
        let is_small = starts.len() * allowed.0.len() <= INDEX_RANGES_MAX;
        if !(allowed.is_points() && is_small) {
            let parts = allowed.covered(INDEX_RANGES_MAX / starts.len().max(1));
            return Walk { ranges: product(&starts, &parts), depth, strength: allowed.strength() };
        }
        starts = product(&starts, &allowed.0).into_iter().map(|(start, _)| start).collect();
    }
    whole(starts, allowed.len())
}

/// All that begins with one of these.
fn whole(starts: Vec<Vec<u8>>, depth: usize) -> Walk {
    let end = |start: &Vec<u8>| if start.is_empty() { vec![u8::MAX] } else { behind(start) };
    Walk { ranges: starts.iter().map(|start| (start.clone(), end(start))).collect(), depth, strength: 0 }
}

fn product(starts: &[Vec<u8>], parts: &[Interval]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ranges = |start: &Vec<u8>| {
        let under = |bytes: &Vec<u8>| [start.as_slice(), bytes].concat();
        parts.iter().map(|part| (under(&part.start), under(&part.end))).collect::<Vec<_>>()
    };
    starts.iter().flat_map(ranges).collect()
}
