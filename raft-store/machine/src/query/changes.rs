//! The feed of changes as it stands on disk.
//!
//! Owns the walk over the audit rows in the order of revisions, and the versions that belong to each change. All of a page
//! is read at one moment, and so is how far back the feed goes: a page never leaves out silently what was compacted.

use super::range::WatchRange;
use super::{Cursor, Moment, ReadPosition, Snapshot};
use crate::keyspace::audit::{self, AuditGroup};
use crate::keyspace::changes::{self, KeyChange, ValueChange};
use crate::keyspace::history::{self, Version};
use crate::keyspace::{entry, family, family_range};
use crate::machine::Fault;
use crate::types::{Entry, Key, Revision};

/// The revision of a state in which nothing has happened.
const FIRST_REVISION: Revision = 1;

/// A place in the feed of changes: what was delivered up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// The revision of the last change delivered.
    pub revision: Revision,
    /// Its place among those that share its revision; [`u32::MAX`] for all of them.
    pub index: u32,
}

impl FeedPosition {
    /// After everything of this revision.
    pub fn after(revision: Revision) -> Self {
        Self { revision, index: u32::MAX }
    }

    /// The one right before it.
    pub fn previous(self) -> Self {
        match self.index.checked_sub(1) {
            Some(index) => Self { index, ..self },
            None => Self::after(self.revision.saturating_sub(1)),
        }
    }

    /// Whether nothing of its revision is missing.
    pub fn is_whole(self) -> bool {
        self.index == u32::MAX
    }

    /// Whether what follows is all there where everything after this revision is. The first revision is that of a state in which nothing
    /// has happened yet: where everything after it is there, so is everything that ever was.
    pub fn is_covered_from(self, floor: Revision) -> bool {
        if floor <= FIRST_REVISION {
            return true;
        }
        if self.is_whole() { self.revision >= floor } else { self.revision > floor }
    }
}

/// What to read of the feed.
#[derive(Debug, Clone)]
pub struct ChangesQuery {
    /// What follows this.
    pub after: FeedPosition,
    /// Changes of these keys.
    pub range: WatchRange,
    /// New versions.
    pub writes: bool,
    /// Removals.
    pub removals: bool,
    /// With the version before each write.
    pub before_writes: bool,
    /// With the version before each removal.
    pub before_removals: bool,
    /// Stop before more than this many bytes of keys and values are gathered (at least one change is returned).
    pub bytes_max: usize,
    /// Stop after so many changes of any keys were looked at (at least one group is).
    pub looked_at_max: usize,
}

/// A change with its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullChange {
    /// The key.
    pub key: Key,
    /// The revision it took.
    pub revision: Revision,
    /// What it did.
    pub change: ValueChange,
    /// The version that it left; `None` after a removal.
    pub entry: Option<Entry>,
    /// The version that it superseded, where it was asked for and there was one.
    pub before: Option<Entry>,
}

/// A part of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesPage {
    /// When it was read.
    pub at: ReadPosition,
    /// The changes, in order.
    pub changes: Vec<FullChange>,
    /// How far it got.
    pub to: FeedPosition,
    /// Whether there is more.
    pub more: bool,
}

/// The answer to a [`ChangesQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesRead {
    /// A page.
    Page(ChangesPage),
    /// What follows the position is compacted, or a part of it.
    Compacted(ReadPosition),
    /// The position is not reached yet.
    Future(ReadPosition),
}

impl ChangesQuery {
    fn wants(&self, change: &KeyChange) -> Option<ValueChange> {
        let value = change.value?;
        let kind = if value.cause.is_removal() { self.removals } else { self.writes };
        (kind && self.range.contains(change.key.as_bytes())).then_some(value)
    }

    fn wants_before(&self, change: &ValueChange) -> bool {
        if change.cause.is_removal() { self.before_removals } else { self.before_writes }
    }
}

/// Whether what follows a position can be read there; the refusal where it cannot.
pub fn check(at: ReadPosition, after: FeedPosition) -> Result<(), ChangesRead> {
    if !after.is_covered_from(at.oldest_revision) {
        return Err(ChangesRead::Compacted(at));
    }
    if after.revision > at.revision {
        return Err(ChangesRead::Future(at));
    }
    Ok(())
}

/// Reads a page.
pub fn changes(moment: &Moment<impl Snapshot>, query: &ChangesQuery) -> Result<ChangesRead, Fault> {
    if let Err(refusal) = check(moment.at, query.after) {
        return Ok(refusal);
    }
    let mut page = ChangesPage { at: moment.at, changes: Vec::new(), to: query.after, more: false };
    let mut bytes_left = query.bytes_max;
    let mut looked_at = 0;
    let first = query.after.revision.saturating_add(u64::from(query.after.is_whole()));
    let mut rows = moment.rows(&audit::row_key(first, 0), &family_range(family::AUDIT).1);
    rows.seek_to_first();
    while let Some(row) = rows.value() {
        if looked_at >= query.looked_at_max {
            page.more = true;
            return Ok(ChangesRead::Page(page));
        }
        let group = audit::decode(row)?;
        let (last, lines) = (group.last_revision, group.lines.len());
        if !take_group(moment, query, group, &mut page, &mut bytes_left)? {
            page.more = true;
            return Ok(ChangesRead::Page(page));
        }
        page.to = page.to.max(FeedPosition::after(last));
        looked_at += lines;
        rows.next();
    }
    rows.status()?;
    page.to = page.to.max(FeedPosition::after(moment.at.revision));
    Ok(ChangesRead::Page(page))
}

/// Takes what is wanted of a group. False where the page was full before its end.
fn take_group(
    moment: &Moment<impl Snapshot>,
    query: &ChangesQuery,
    group: AuditGroup,
    page: &mut ChangesPage,
    bytes_left: &mut usize,
) -> Result<bool, Fault> {
    let mut changes = Vec::new();
    changes::append(group, &mut changes);
    for change in changes {
        let Some(value) = query.wants(&change) else { continue };
        let position = FeedPosition { revision: change.revision, index: value.index };
        if position <= query.after {
            continue;
        }
        let full = with_versions(moment, query, change, value)?;
        let bytes = full.key.as_bytes().len() + data_bytes(&full.entry) + data_bytes(&full.before);
        if bytes > *bytes_left && !page.changes.is_empty() {
            return Ok(false);
        }
        *bytes_left = bytes_left.saturating_sub(bytes);
        page.changes.push(full);
        page.to = position;
    }
    Ok(true)
}

fn data_bytes(entry: &Option<Entry>) -> usize {
    entry.as_ref().map_or(0, |entry| entry.value.data.len())
}

fn with_versions(
    moment: &Moment<impl Snapshot>,
    query: &ChangesQuery,
    change: KeyChange,
    value: ValueChange,
) -> Result<FullChange, Fault> {
    let KeyChange { key, revision, .. } = change;
    let entry = if value.cause.is_removal() { None } else { Some(version_of(moment, &key, revision)?) };
    let before = match value.previous.filter(|_| query.wants_before(&value)) {
        Some(previous) => Some(version_of(moment, &key, previous)?),
        None => None,
    };
    Ok(FullChange { key, revision, change: value, entry, before })
}

/// A version that the feed names, and so must be there.
fn version_of(moment: &Moment<impl Snapshot>, key: &Key, revision: Revision) -> Result<Entry, Fault> {
    let missing = || Fault::Invariant(format!("the version of key {key} at revision {revision} is missing"));
    version(moment, key, revision)?.ok_or_else(missing)
}

/// The version that a key got at a revision, as it was then; `None` where it is compacted.
pub fn version(moment: &Moment<impl Snapshot>, key: &Key, revision: Revision) -> Result<Option<Entry>, Fault> {
    if let Some(row) = moment.snapshot.get_pinned(entry::row_key(key.as_bytes()))? {
        let row = entry::decode(&row)?;
        if row.meta.mod_revision == revision {
            return Ok(Some(as_it_was(row.to_entry())));
        }
    }
    match moment.snapshot.get_pinned(history::row_key(key.as_bytes(), revision))? {
        None => Ok(None),
        Some(row) => match history::decode(&row)? {
            Version::Entry(row) => Ok(Some(as_it_was(row.to_entry()))),
            Version::Tombstone => Err(Fault::Invariant(format!("key {key} was removed at revision {revision}"))),
        },
    }
}

/// An entry as the change of its value left it: locks of later are not part of that.
pub fn as_it_was(mut entry: Entry) -> Entry {
    entry.meta.cas = entry.meta.mod_revision;
    entry.meta.locked_until = None;
    entry
}
