//! Commands about quotas: what one principal, or all names with a prefix, may take of the store.
//!
//! Owns their form in the log, and that of the rows. What counts against a quota is the machine's.

use std::fmt;

use bincode::{Decode, Encode};

use super::{Key, Revision, Waker, WallMillis};
use crate::limits;

/// Whose quota it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum QuotaSubject {
    /// Every principal that has none of its own.
    Default,
    /// One principal: the name of a user, also of one that is not there (yet).
    Principal(String),
    /// All names with a prefix: keys and queues of tasks.
    Prefix(Vec<u8>),
}

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Counted {
    /// Sessions that live, by who began them.
    Sessions,
    /// Locks and leaderships held and waited for, by who began the session.
    Locks,
    /// Entries, those that are past their deadline and not removed yet included.
    Entries,
    /// Bytes of keys and values of entries, and of tasks, as they are stored.
    Bytes,
    /// Tasks that are not done.
    Tasks,
}

/// The bounds of a quota; `None` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct QuotaBounds {
    /// Only of principals.
    pub sessions: Option<u64>,
    /// Only of principals.
    pub locks: Option<u64>,
    /// Only of prefixes.
    pub entries: Option<u64>,
    /// Only of prefixes.
    pub bytes: Option<u64>,
    /// Only of prefixes.
    pub tasks: Option<u64>,
}

impl QuotaBounds {
    /// What holds for a principal as long as nobody has said otherwise: half of all sessions, and with them of all that hangs on
    /// sessions. So no one client takes everything.
    pub const USUAL: Self =
        Self { sessions: Some(limits::SESSIONS_MAX / 2), locks: None, entries: None, bytes: None, tasks: None };

    /// One of them.
    pub fn of(&self, what: Counted) -> Option<u64> {
        match what {
            Counted::Sessions => self.sessions,
            Counted::Locks => self.locks,
            Counted::Entries => self.entries,
            Counted::Bytes => self.bytes,
            Counted::Tasks => self.tasks,
        }
    }
}

/// What is asked about quotas.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum QuotaOp {
    /// Sets a quota, or gives it other bounds. What is beyond them already stays. The same again changes nothing.
    Set {
        /// Whose.
        subject: QuotaSubject,
        /// All of its bounds.
        bounds: QuotaBounds,
    },
    /// Removes a quota.
    Remove(QuotaSubject),
}

impl QuotaOp {
    /// Whose quota it is about.
    pub fn subject(&self) -> &QuotaSubject {
        match self {
            Self::Set { subject, .. } | Self::Remove(subject) => subject,
        }
    }
}

impl fmt::Display for QuotaSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Principal(name) => write!(f, "principal/{name}"),
            Self::Prefix(prefix) => write!(f, "prefix/{}", prefix.escape_ascii()),
        }
    }
}

impl QuotaSubject {
    /// Most bytes of a name as lines of audit have it: they are keys.
    const SHOWN_BYTES_MAX: usize = limits::COORDINATION_NAME_BYTES_MAX;

    /// Under what its lines of audit stand. Of a long prefix that is the beginning.
    pub fn audit_key(&self) -> Key {
        let mut name = match self {
            Self::Prefix(prefix) => [b"prefix/", prefix.as_slice()].concat(),
            Self::Default | Self::Principal(_) => self.to_string().into_bytes(),
        };
        // Of a text whole characters.
        let is_within = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, 0x80..0xC0));
        let mut end = name.len().min(Self::SHOWN_BYTES_MAX);
        let least = end - 3.min(end);
        while end > least && is_within(name.get(end)) {
            end -= 1;
        }
        name.truncate(end);
        Waker::Quota.of(&name)
    }
}

/// A quota. Encode and decode with [`crate::codec`].
///
/// Invariant: `parent` is the longest prefix with a quota that this one begins with, and of nothing but a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct QuotaRow {
    /// Its bounds.
    pub bounds: QuotaBounds,
    /// The prefix with a quota around it.
    pub parent: Option<Vec<u8>>,
    /// Wall clock at which it was set first.
    pub created: WallMillis,
    /// Revision at which its bounds were last set.
    pub revision: Revision,
}

/// What a principal has. Encode and decode with [`crate::codec`].
///
/// Invariant: of its sessions that live; there exactly while one of the numbers is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct PrincipalUse {
    /// Sessions that live.
    pub sessions: u64,
    /// Places in locks and elections on those sessions.
    pub locks: u64,
}

/// What there is with a prefix. Encode and decode with [`crate::codec`].
///
/// Invariant: of the rows of entries and tasks before `from`, of all of them where that is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct PrefixUse {
    /// Entries.
    pub entries: u64,
    /// Bytes of the keys and values of entries and tasks.
    pub bytes: u64,
    /// Tasks that are not done.
    pub tasks: u64,
    /// Row key of the first that is still to be counted: it was there before the quota was.
    pub from: Option<Vec<u8>>,
}

/// What holds for all quotas together. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct QuotaState {
    /// How many prefixes have one: while none has, no write looks for one.
    pub prefixes: u32,
    /// How many of those are still to be counted.
    pub counting: u32,
    /// How many principals have one of their own.
    pub principals: u32,
}

impl QuotaState {
    /// Whether something is still to be counted.
    pub fn has_work(&self) -> bool {
        self.counting > 0
    }
}

/// Why something would be beyond a quota.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct BeyondQuota {
    /// Who or what has too much: never [`QuotaSubject::Default`].
    pub subject: QuotaSubject,
    /// Whether the quota is its own, and not that of every principal without one.
    pub is_own: bool,
    /// Of what.
    pub what: Counted,
    /// How much it may have.
    pub bound: u64,
    /// How much it has.
    pub used: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_audit_have_room_for_any_subject() {
        let long = QuotaSubject::Prefix("ä".repeat(limits::KEY_BYTES_MAX / 2).into_bytes());
        assert!(long.audit_key().as_bytes().len() < limits::KEY_BYTES_MAX);
        let name = Waker::Quota.name(&QuotaSubject::Principal("ann".into()).audit_key());
        assert_eq!(name.map(|name| name.as_str().to_owned()).as_deref(), Some("principal/ann"));
    }

    #[test]
    fn half_of_all_sessions_is_what_one_principal_may_have() {
        assert_eq!(QuotaBounds::USUAL.of(Counted::Sessions), Some(limits::SESSIONS_MAX / 2));
        let others = [Counted::Locks, Counted::Entries, Counted::Bytes, Counted::Tasks];
        assert!(others.into_iter().all(|what| QuotaBounds::USUAL.of(what).is_none()));
    }
}
