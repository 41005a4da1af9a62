//! What the leader's housekeeping asks of the state: the first deadline, and how far history may be compacted.
//!
//! Owns these two questions. Never changes anything; compaction itself is a replicated command.

use std::borrow::Cow;

use super::{Cursor, Moment, Snapshot};
use crate::keyspace::audit;
use crate::keyspace::{deadline, family, family_range, lock};
use crate::machine::Fault;
use crate::types::{ClusterMillis, Revision};

/// The first pending end of an entry or of a document's lock, or timer. `begin` gives a row before which there is none from another one on.
pub fn first_deadline(
    moment: &Moment<impl Snapshot>,
    begin: impl Fn(&[u8]) -> Cow<'_, [u8]>,
) -> Result<Option<ClusterMillis>, Fault> {
    let first = |family| -> Result<_, Fault> {
        let (start, end) = family_range(family);
        let mut rows = moment.rows(&begin(&start), &end);
        rows.seek_to_first();
        rows.status()?;
        Ok(rows.key().map(<[u8]>::to_vec))
    };
    let expiry = first(family::DEADLINE)?;
    let expiry = expiry.as_deref().map(deadline::decode_key).transpose()?.map(|(deadline, _)| deadline);
    let lock = first(family::LOCK)?;
    let lock = lock.as_deref().map(lock::decode_key).transpose()?.map(|(until, _)| until);
    Ok([expiry, lock, moment.vars.next_timer].into_iter().flatten().min())
}

/// The greatest revision at the end of a batch that is both old enough and far enough back. Looks at two audit rows
/// when there is nothing to do, else at one more for each halving of what there is.
pub fn compactable_to(
    moment: &Moment<impl Snapshot>,
    keep_ms: u64,
    keep_revisions: u64,
) -> Result<Option<Revision>, Fault> {
    let oldest = moment.at.oldest_revision;
    let newest_allowed = moment.at.revision.saturating_sub(keep_revisions);
    let Some(clock_max) = moment.at.clock.checked_sub(keep_ms) else { return Ok(None) };
    if newest_allowed <= oldest {
        return Ok(None);
    }
    let groups = Groups::new(moment, oldest);
    let Some((first, _)) = groups.first()?.filter(|(_, clock)| *clock <= clock_max) else { return Ok(None) };
    let Some((last, last_clock)) = groups.last_up_to(newest_allowed)? else { return Ok(None) };
    if last_clock <= clock_max {
        return Ok(Some(last));
    }
    // Clocks never go back from group to group. Invariant: the last group that ends by `old` is old enough, it is the
    // one that ends at `best`; the one that ends at `young` is not.
    let (mut best, mut old, mut young) = (first, first, last);
    while old + 1 < young {
        let probe = old.midpoint(young);
        match groups.last_up_to(probe)? {
            Some((revision, clock)) if clock <= clock_max => (best, old) = (revision, probe),
            Some((revision, _)) => young = revision,
            None => {
                return Err(Fault::Invariant(format!("the audit group of revision {first} is gone from a snapshot")));
            }
        }
    }
    Ok(Some(best))
}

/// The audit groups after a revision: end revision and clock of each.
struct Groups<'m, S> {
    moment: &'m Moment<S>,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl<'m, S: Snapshot> Groups<'m, S> {
    fn new(moment: &'m Moment<S>, after: Revision) -> Self {
        Self { moment, start: audit::row_key(after + 1, 0), end: family_range(family::AUDIT).1 }
    }

    fn first(&self) -> Result<Option<(Revision, ClusterMillis)>, Fault> {
        self.at(|rows| rows.seek_to_first())
    }

    fn last_up_to(&self, revision: Revision) -> Result<Option<(Revision, ClusterMillis)>, Fault> {
        self.at(|rows| rows.seek_for_prev(audit::row_key(revision, u64::MAX)))
    }

    fn at(&self, seek: impl FnOnce(&mut S::Cursor<'m>)) -> Result<Option<(Revision, ClusterMillis)>, Fault> {
        let mut rows = self.moment.rows(&self.start, &self.end);
        seek(&mut rows);
        rows.status()?;
        let Some((row_key, row)) = rows.item() else { return Ok(None) };
        let group = audit::decode(row)?;
        Ok(Some((audit::decode_key(row_key)?.0, group.clock)))
    }
}
