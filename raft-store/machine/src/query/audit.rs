//! The audit trail of one key.
//!
//! Owns the walk over the groups of batches, those that changed something and those that did not, in the order in which they were
//! applied. Bounded by how many groups it looks at, and by their bytes; what is compacted is gone.

use bincode::{Decode, Encode};

use super::{Cursor, Moment, ReadPosition, Snapshot};
use crate::keyspace::audit::{self, AuditGroup, AuditLine};
use crate::keyspace::{bucket, family, family_range, refusals};
use crate::machine::Fault;
use crate::types::{Key, Revision, WallMillis};

/// Which part of the trail to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// The key of the lines.
    pub key: Key,
    /// The first revision wanted.
    pub from: Revision,
    /// Go on behind this: [`AuditPage::next`] of the page before.
    pub after: Option<AuditPlace>,
    /// Stop once there are so many lines; those of one batch stay together.
    pub limit: usize,
    /// Stop once so many batches were looked at.
    pub groups_max: usize,
    /// Stop once those that were looked at have so many bytes, the last one beyond that: a batch may have a thousand lines.
    pub bytes_max: usize,
}

/// A place in the trail: behind a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct AuditPlace {
    revision: Revision,
    index: u64,
    bucket: u64,
}

/// A line, and when it was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFound {
    /// Log index of the batch.
    pub index: u64,
    /// Wall clock of the batch.
    pub wall: WallMillis,
    /// The line.
    pub line: AuditLine,
}

/// A part of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// When it was read.
    pub at: ReadPosition,
    /// The lines, in order.
    pub lines: Vec<AuditFound>,
    /// Where to go on, if there is more to look at.
    pub next: Option<AuditPlace>,
}

/// Reads a page.
pub fn audit(moment: &Moment<impl Snapshot>, query: &AuditQuery) -> Result<AuditPage, Fault> {
    let oldest = bucket::oldest_live(moment.at.clock);
    let (mut place, next_index) = match query.after {
        Some(place) => (place, place.index.saturating_add(1)),
        None => (AuditPlace { revision: query.from, index: 0, bucket: oldest }, 0),
    };
    let first_refusal = refusals::row_key(place.bucket.max(oldest), next_index);
    let mut changes = moment.rows(&audit::row_key(place.revision, next_index), &family_range(family::AUDIT).1);
    let mut refused = moment.rows(&first_refusal, &family_range(family::REFUSALS).1);
    changes.seek_to_first();
    refused.seek_to_first();
    let mut page = AuditPage { at: moment.at, lines: Vec::new(), next: None };
    let mut bytes = 0;
    for looked_at in 0.. {
        let change = changes.key().map(audit::decode_key).transpose()?.map(|(_, index)| index);
        let refusal = refused.key().map(refusals::decode_key).transpose()?.map(|(_, index)| index);
        let rows = match (change, refusal) {
            (None, None) => break,
            (Some(change), Some(refusal)) if refusal < change => &mut refused,
            (Some(_), _) => &mut changes,
            (None, Some(_)) => &mut refused,
        };
        if looked_at >= query.groups_max || bytes >= query.bytes_max || page.lines.len() >= query.limit {
            page.next = Some(place);
            return Ok(page);
        }
        let Some(row) = rows.value() else { break };
        bytes += row.len();
        let group = audit::decode(row)?;
        rows.next();
        place = AuditPlace { revision: group.last_revision, index: group.index, bucket: bucket::at(group.clock) };
        take(group, query, &mut page.lines);
    }
    changes.status()?;
    refused.status()?;
    Ok(page)
}

fn take(group: AuditGroup, query: &AuditQuery, found: &mut Vec<AuditFound>) {
    let AuditGroup { index, wall, lines, .. } = group;
    let wanted = |line: &AuditLine| line.revision >= query.from && line.key.as_ref() == Some(&query.key);
    found.extend(lines.into_iter().filter(wanted).map(|line| AuditFound { index, wall, line }));
}
