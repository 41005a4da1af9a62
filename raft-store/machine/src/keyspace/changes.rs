//! The change feed that stands in audit groups: which of their lines changed a value, and what is known of each change.
//!
//! Owns that reading, for what was just applied and for what is read from disk long after; so both give the same. Never
//! reads a value.

use super::audit::{AuditEffect, AuditGroup, AuditOp};
use crate::types::{ClusterMillis, Key, Revision, WallMillis};

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The key.
    pub key: Key,
    /// The revision it took.
    pub revision: Revision,
    /// What it did to the value; `None` where only the lock on the entry changed.
    pub value: Option<ValueChange>,
}

/// A change of a value.
///
/// Invariant: `index < of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueChange {
    /// Its place among the changes of values that share its revision, from 0.
    pub index: u32,
    /// How many those are.
    pub of: u32,
    /// What kind of change it was.
    pub cause: Cause,
    /// Whether it also locked the entry.
    pub locks: bool,
    /// The revision of the version that it superseded; `None` for a creation.
    pub previous: Option<Revision>,
    /// Cluster clock at which it was applied.
    pub clock: ClusterMillis,
    /// Wall clock at which it was applied.
    pub wall: WallMillis,
}

impl ValueChange {
    /// Whether no other change shares its revision behind it.
    pub fn is_last(&self) -> bool {
        self.index + 1 == self.of
    }
}

/// The kind of a change of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The key has a new version.
    Written,
    /// Somebody removed the entry.
    Removed,
    /// The entry was past its deadline.
    Expired,
    /// The session that the entry went with has ended.
    SessionEnded,
}

impl Cause {
    /// Whether the key is gone since.
    pub fn is_removal(self) -> bool {
        match self {
            Self::Written => false,
            Self::Removed | Self::Expired | Self::SessionEnded => true,
        }
    }
}

/// Appends the changes of a group, in the order of revisions and places.
pub fn append(group: AuditGroup, changes: &mut Vec<KeyChange>) {
    let first = changes.len();
    let (clock, wall) = (group.clock, group.wall);
    let mut place = RevisionIndex::default();
    for line in group.lines {
        let Some(key) = line.key else { continue };
        let value = match line.effect {
            AuditEffect::Changed { previous, removed } => Some(ValueChange {
                index: place.take(line.revision),
                of: 0,
                cause: cause(line.op, removed),
                locks: line.op == AuditOp::Claim,
                previous: previous.map(|previous| previous.revision),
                clock,
                wall,
            }),
            AuditEffect::Relocked { .. } => None,
            AuditEffect::Refused(_) | AuditEffect::Beside | AuditEffect::Elected { .. } => continue,
        };
        changes.push(KeyChange { key, revision: line.revision, value });
    }
    say_how_many(&mut changes[first..]);
}

/// The next place among those that share a revision.
#[derive(Default)]
struct RevisionIndex {
    revision: Revision,
    next: u32,
}

impl RevisionIndex {
    fn take(&mut self, revision: Revision) -> u32 {
        if self.revision != revision {
            *self = Self { revision, next: 0 };
        }
        self.next += 1;
        self.next - 1
    }
}

/// Tells each change how many share its revision: as many as the last of them knows.
fn say_how_many(changes: &mut [KeyChange]) {
    let (mut revision, mut of) = (0, 0);
    for change in changes.iter_mut().rev() {
        let Some(value) = &mut change.value else { continue };
        if change.revision != revision {
            (revision, of) = (change.revision, value.index + 1);
        }
        value.of = of;
    }
}

fn cause(op: AuditOp, removed: bool) -> Cause {
    match (removed, op) {
        (false, _) => Cause::Written,
        (true, AuditOp::Expire) => Cause::Expired,
        (true, AuditOp::SessionEnd | AuditOp::SessionExpire) => Cause::SessionEnded,
        (true, _) => Cause::Removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::audit::AuditLine;
    use crate::keyspace::digest::RowMark;
    use crate::types::Refusal;

    fn line(revision: Revision, op: AuditOp, key: &str, effect: AuditEffect) -> AuditLine {
        let key = Some(Key::new(key).unwrap());
        AuditLine { revision, op, key, request_id: None, principal: String::new(), effect }
    }

    #[test]
    fn changes_of_one_revision_are_numbered_and_locks_and_refusals_have_no_number() {
        let changed = |removed| AuditEffect::Changed { previous: None, removed };
        let lines = vec![
            line(2, AuditOp::Upsert, "a", changed(false)),
            line(3, AuditOp::Upsert, "b", changed(false)),
            line(3, AuditOp::Lock, "c", AuditEffect::Relocked { row: RowMark { hash: 1, bytes: 1 } }),
            line(3, AuditOp::Remove, "d", changed(true)),
            line(3, AuditOp::Upsert, "e", AuditEffect::Refused(Refusal::Locked)),
            line(4, AuditOp::Expire, "f", changed(true)),
        ];
        let group = AuditGroup { index: 9, clock: 7, wall: 8, first_revision: 2, last_revision: 4, lines };
        let mut changes = Vec::new();
        append(group, &mut changes);
        let shown: Vec<_> = changes
            .iter()
            .map(|change| (change.revision, change.key.to_string(), change.value.map(|v| (v.index, v.of, v.cause))))
            .collect();
        let of = |revision, key: &str, value| (revision, key.to_owned(), value);
        let expected = [
            of(2, "a", Some((0, 1, Cause::Written))),
            of(3, "b", Some((0, 2, Cause::Written))),
            of(3, "c", None),
            of(3, "d", Some((1, 2, Cause::Removed))),
            of(4, "f", Some((0, 1, Cause::Expired))),
        ];
        assert_eq!(shown, expected);
    }
}
