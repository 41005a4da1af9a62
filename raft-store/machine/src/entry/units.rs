//! What numbers of the state count: revisions, time, and sessions by the revision that began them.

use std::fmt;

use bincode::{Decode, Encode};

/// The cluster-wide revision: starts at 1 (an empty store), plus one for each command that changes something.
pub type Revision = u64;

/// Milliseconds of leadership time: moves only while a leader leads, never back. What every TTL counts.
pub type ClusterMillis = u64;

/// Unix milliseconds as stamped by a leader, clamped never to go back. For people, never for deadlines.
pub type WallMillis = u64;

/// A session: the revision at which it was created, so none of those is used twice; or an id of its maker's choice, see
/// [`Self::chosen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct SessionId(pub Revision);

impl SessionId {
    /// Tells an id that was chosen from a revision, which does not come so far.
    const CHOSEN: u64 = 1 << 63;
    /// Leases of the others begin here, far above what anybody chooses.
    const GIVEN: i64 = 1 << 62;
    /// Above those of all revisions that will ever be.
    const GIVEN_END: i64 = Self::GIVEN + (1 << 48);

    /// The session of a lease that its maker wants to be called so: any number above 0 but those of other sessions.
    pub fn chosen(lease: i64) -> Option<Self> {
        let is_given = (Self::GIVEN..Self::GIVEN_END).contains(&lease);
        (lease > 0 && !is_given).then_some(Self(lease.unsigned_abs() | Self::CHOSEN))
    }

    /// Whether its maker chose it.
    pub fn is_chosen(self) -> bool {
        self.0 & Self::CHOSEN != 0
    }

    /// The number of its lease, as clients of etcd's protocol know it. No two sessions have the same.
    pub fn lease(self) -> i64 {
        if self.is_chosen() { (self.0 & !Self::CHOSEN) as i64 } else { Self::GIVEN | self.0 as i64 }
    }

    /// The session of a lease; `None` for a number that none can have.
    pub fn of_lease(lease: i64) -> Option<Self> {
        match lease {
            Self::GIVEN..Self::GIVEN_END => Some(Self((lease - Self::GIVEN).unsigned_abs())),
            _ => Self::chosen(lease),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_a_lease_of_its_own() {
        let chosen = |lease| SessionId::chosen(lease).expect("it may be chosen");
        for session in [SessionId(2), SessionId(1 << 40), chosen(2), chosen(i64::MAX)] {
            assert_eq!(SessionId::of_lease(session.lease()), Some(session));
        }
        assert_ne!(SessionId(2).lease(), chosen(2).lease());
        assert_eq!([chosen(123).lease(), chosen(i64::MAX).lease()], [123, i64::MAX]);
        for bad in [0, -1, i64::MIN, SessionId(9).lease()] {
            assert_eq!(SessionId::chosen(bad), None, "{bad}");
        }
        assert_eq!([SessionId::of_lease(0), SessionId::of_lease(-1)], [None; 2]);
    }
}
