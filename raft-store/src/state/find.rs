//! Finds: the moment that a query is about, and the walk over it.
//!
//! Owns which entries a [`Finder`] is shown. Never chooses among them.

use super::finder::{FindMoment, FindPin, FindQuery, FindRead, Finder};
use super::listing::{self, Range};
use super::shared::Moment;
use super::types::StateFault;
use crate::codec;
use crate::keyspace::audit::{self, AuditGroup};
use crate::keyspace::{after_prefix, family, family_range};
use crate::types::{Key, Revision};

/// Answers a query.
pub(crate) fn find(moment: &Moment<'_>, query: &FindQuery) -> Result<FindRead, StateFault> {
    let pin = match query.moment {
        FindMoment::Now => FindPin { revision: moment.at.revision, ..now(moment) },
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
    let takes_all = Finder::takes_all(query);
    let after = query.after.as_ref();
    let after_entry = match after.filter(|_| takes_all) {
        Some(key) => listing::entry_at(moment, key, pin.revision)?,
        None => None,
    };
    let mut finder = Finder::new(query, pin, after_entry.as_ref())?;
    let (start, end) = bounds(query, after.filter(|_| !takes_all));
    let range = Range { start: &start, end: end.as_deref(), reverse: Finder::is_reverse(query) };
    listing::walk(moment, range, Some(pin.revision), |key, row| finder.look(key, row))?;
    finder.finish(moment.at)
}

/// The clocks as of now.
fn now(moment: &Moment<'_>) -> FindPin {
    FindPin { revision: moment.at.revision, clock: moment.at.clock, wall: moment.record.vars.wall }
}

/// A revision with the clocks of the batch that took it, the same on every node. Where that batch is not known any more,
/// nothing is expired, and the wall clock is the present one.
fn pin_of(moment: &Moment<'_>, revision: Revision) -> Result<FindPin, StateFault> {
    let mut rows = moment.rows(&audit::row_key(revision, 0), &family_range(family::AUDIT).1);
    rows.seek_to_first();
    rows.status()?;
    let group: Option<AuditGroup> = rows.value().map(codec::decode).transpose()?;
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
