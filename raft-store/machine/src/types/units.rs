//! What numbers of the state count: revisions, time, and sessions by the revision that began them.

use std::fmt;

use bincode::{Decode, Encode};

/// The cluster-wide revision: starts at 1 (an empty store), plus one for each command that changes something.
pub type Revision = u64;

/// Milliseconds of leadership time: moves only while a leader leads, never back. What every TTL counts.
pub type ClusterMillis = u64;

/// Unix milliseconds as stamped by a leader, clamped never to go back. For people, never for deadlines.
pub type WallMillis = u64;

/// A session: the revision at which it was created, so none is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct SessionId(pub Revision);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
