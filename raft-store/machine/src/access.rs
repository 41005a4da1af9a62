//! Who may do what: permissions on prefixes, and what an operation needs of them.
//!
//! Owns the judgement [`Rights::allow`], which is the only one there is: whoever serves an operation tells what it needs, and
//! asks here. Knows no users, tokens or connections; what each kind of command needs is in `requirements`.
//!
//! All names share one space of prefixes: keys, locks, elections, barriers, latches, queues of tasks, sequences and collections. A team
//! that has `orders/` has its documents, its locks and its queues with one grant.

mod requirements;

use bincode::{Decode, Encode};

use crate::keyspace::after_prefix;

pub use requirements::{Requirement, Visit};

/// What somebody may do with what has a prefix.
///
/// `Write`, `Lock` and `Admin` include `Read`: a conditional write tells what is there, and a lock is taken to act on what it protects, so
/// a right to write without one to read would only pretend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Permission {
    /// Reads, searches and watches.
    Read,
    /// Changes entries, schedules and works on tasks, takes numbers.
    Write,
    /// Locks documents, takes locks, stands for election, meets at barriers and latches.
    Lock,
    /// All of these, and the rules of collections. On the empty prefix also members, backups, users and roles.
    Admin,
    /// Takes backups of everything, on the empty prefix; nothing else, not even a read.
    Backup,
    /// Sees how the nodes and the cluster are, on the empty prefix; no entry and no name of one.
    Monitor,
}

/// One permission on all names with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Grant {
    /// What is allowed.
    pub permission: Permission,
    /// On what; empty for everything.
    pub prefix: Vec<u8>,
}

/// What an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredPermission<'a> {
    /// A permission on one name.
    Name(Permission, &'a [u8]),
    /// A permission on all names from `start` up to `end`, without it; up to the last where there is no end.
    Range(Permission, &'a [u8], Option<&'a [u8]>),
    /// A permission on all names with a prefix; on everything where that is empty.
    Prefix(Permission, &'a [u8]),
}

/// What somebody may do in all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    grants: Vec<Grant>,
}

impl Permission {
    /// Whether who has this one has `other` too.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::Admin || other == Self::Read && !self.is_of_operators()
    }

    /// Whether it is for those who run the cluster and says nothing of names: it is good on the empty prefix alone.
    pub fn is_of_operators(self) -> bool {
        match self {
            Self::Backup | Self::Monitor => true,
            Self::Read | Self::Write | Self::Lock | Self::Admin => false,
        }
    }
}

impl RequiredPermission<'_> {
    /// Which permission.
    pub fn permission(&self) -> Permission {
        match self {
            Self::Name(permission, _) | Self::Range(permission, ..) | Self::Prefix(permission, _) => *permission,
        }
    }
}

impl Grant {
    /// Whether this grant alone is enough.
    fn allows(&self, need: &RequiredPermission<'_>) -> bool {
        self.permission.includes(need.permission())
            && match need {
                RequiredPermission::Name(_, name) | RequiredPermission::Prefix(_, name) => {
                    name.starts_with(&self.prefix)
                }
                RequiredPermission::Range(_, start, end) => self.covers(start, *end),
            }
    }

    /// Whether all names of a range have the prefix.
    fn covers(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        start.starts_with(&self.prefix)
            && match (after_prefix(&self.prefix), end) {
                // The prefix has no end: it is empty, or all bytes of it are the last one.
                (None, _) => true,
                (Some(after), Some(end)) => end <= after.as_slice(),
                (Some(_), None) => false,
            }
    }
}

impl Rights {
    /// Those that some grants give.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Self {
        let mut grants: Vec<_> = grants.into_iter().collect();
        grants.sort();
        grants.dedup();
        Self { grants }
    }

    /// The right to do everything.
    pub fn all() -> Self {
        Self::new([Grant { permission: Permission::Admin, prefix: Vec::new() }])
    }

    /// Whether they are enough. A range has to lie within one grant: what is put together of several is refused.
    pub fn allow(&self, need: &RequiredPermission<'_>) -> bool {
        self.grants.iter().any(|grant| grant.allows(need))
    }

    /// What they consist of.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(permission: Permission, prefix: &str) -> Rights {
        Rights::new([Grant { permission, prefix: prefix.into() }])
    }

    #[test]
    fn a_grant_is_good_for_its_prefix_and_nothing_beside_it() {
        let orders = rights(Permission::Write, "orders/");
        assert!(orders.allow(&RequiredPermission::Name(Permission::Write, b"orders/1")));
        assert!(orders.allow(&RequiredPermission::Name(Permission::Read, b"orders/")));
        assert!(!orders.allow(&RequiredPermission::Name(Permission::Write, b"orders")));
        assert!(!orders.allow(&RequiredPermission::Name(Permission::Write, b"orders0")));
        assert!(orders.allow(&RequiredPermission::Prefix(Permission::Write, b"orders/eu/")));
        assert!(!orders.allow(&RequiredPermission::Prefix(Permission::Write, b"")));
        assert!(!orders.allow(&RequiredPermission::Prefix(Permission::Write, b"order")));
    }

    #[test]
    fn a_range_must_lie_within_the_prefix() {
        let orders = rights(Permission::Read, "orders/");
        let read = |start: &'static str, end: Option<&'static str>| {
            orders.allow(&RequiredPermission::Range(Permission::Read, start.as_bytes(), end.map(str::as_bytes)))
        };
        assert!(read("orders/", Some("orders0")));
        assert!(read("orders/a", Some("orders/b")));
        assert!(!read("orders/", Some("orders00")), "it goes on behind the prefix");
        assert!(!read("orders/", None));
        assert!(!read("orders", Some("orders0")), "it begins before the prefix");
        assert!(!read("", None));
        assert!(rights(Permission::Read, "").allow(&RequiredPermission::Range(Permission::Read, b"", None)));
        assert!(
            Rights::new([Grant { permission: Permission::Read, prefix: vec![0xff] }])
                .allow(&RequiredPermission::Range(Permission::Read, &[0xff, 1], None))
        );
    }

    #[test]
    fn permissions_include_what_they_tell_anyway_and_no_more() {
        use Permission::{Admin, Backup, Lock, Monitor, Read, Write};
        let includes = |one: Permission| [Read, Write, Lock, Admin, Backup, Monitor].map(|other| one.includes(other));
        assert_eq!(includes(Read), [true, false, false, false, false, false]);
        assert_eq!(includes(Write), [true, true, false, false, false, false]);
        assert_eq!(includes(Lock), [true, false, true, false, false, false]);
        assert_eq!(includes(Admin), [true, true, true, true, true, true]);
        assert_eq!(includes(Backup), [false, false, false, false, true, false]);
        assert_eq!(includes(Monitor), [false, false, false, false, false, true]);
    }

    #[test]
    fn nobody_may_do_anything_without_a_grant() {
        assert!(!Rights::default().allow(&RequiredPermission::Name(Permission::Read, b"k")));
        assert!(Rights::all().allow(&RequiredPermission::Prefix(Permission::Admin, b"")));
    }
}
