//! Which versions of a format a build reads, and which one it writes.
//!
//! Owns the rule of upgrades, for everything that outlives a process or goes to another one: records, segments of the log, backups, the
//! protocol between nodes. A build reads what the release before it wrote, and writes what that one reads until the cluster's feature
//! level says that nobody needs it any more ([`crate::level`]); so a node may go forth and back between the two. The first release
//! writes version 1 of everything, and what it writes, every later build reads.
//!
//! To change a layout: the new one gets the next number and a file of its own, that of before moves to a file that is named by its
//! number (`v1.rs`) and only reads, and the number joins `reads` at once but `writes` only from a feature level on. A number leaves
//! `reads` never, as long as a release that wrote it is among the kept data of `cluster-tests/tests/fixtures`.

use std::fmt;

/// Versions of one format.
///
/// Invariant: what is written can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    oldest: u32,
    newest: u32,
    writes: u32,
}

impl Versions {
    /// Those from the oldest to the newest are read, `writes` is written.
    pub const fn new(oldest: u32, newest: u32, writes: u32) -> Self {
        assert!(oldest <= writes && writes <= newest, "a build has to read what it writes");
        Self { oldest, newest, writes }
    }

    /// Whether something of this version can be read.
    pub const fn reads(self, version: u32) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// The oldest version that is read.
    pub const fn oldest(self) -> u32 {
        self.oldest
    }

    /// The newest version that is read.
    pub const fn newest(self) -> u32 {
        self.newest
    }

    /// The version that is written where nothing asks for another one.
    pub const fn writes(self) -> u32 {
        self.writes
    }

    /// The newest version that both sides read, if there is one; the other side says only its newest.
    pub const fn common(self, theirs: u32) -> Option<u32> {
        let newest = if theirs < self.newest { theirs } else { self.newest };
        if newest < self.oldest { None } else { Some(newest) }
    }
}

/// "version 1", "versions 1 to 2".
impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "version {}", self.newest),
            false => write!(f, "versions {} to {}", self.oldest, self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_builds_meet_at_the_newest_version_that_both_read() {
        let ours = Versions::new(3, 5, 4);
        assert!(ours.reads(3) && ours.reads(5) && !ours.reads(2) && !ours.reads(6));
        assert_eq!([2, 3, 4, 5, 9].map(|theirs| ours.common(theirs)), [None, Some(3), Some(4), Some(5), Some(5)]);
        assert_eq!(
            (ours.to_string(), Versions::new(2, 2, 2).to_string()),
            ("versions 3 to 5".into(), "version 2".into())
        );
    }
}
