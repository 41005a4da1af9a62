//! The feature level: what the members of a cluster have agreed to do when they apply its log.
//!
//! Owns which levels this build knows. A change of what a log entry means belongs to a new level: apply asks
//! [`crate::machine::Vars::level`], which is part of the replicated state, and never which binary it runs in. So all nodes turn
//! to the new meaning at the same log entry, however old and new binaries are mixed. Never decides when a level is
//! reached: the leader proposes it once every member said that it knows it.
//!
//! To add a level: write it into [`known`], raise [`KNOWN`], and ask `vars.level >= N` where the meaning differs. A new kind of
//! command, which older builds cannot even read, may be proposed only once its level is reached. (Commands about users need none:
//! they came with a format version of their own, and all builds that read it know them.)

/// A feature level. Only grows.
pub type Level = u32;

/// The highest level that this build knows. Level 0 is that of a cluster that was founded a moment ago.
pub const KNOWN: Level = TENANTS;

/// From this level on, sums are kept and bounds are counted as the machine's own checks ask for.
pub const HARDENED: Level = 2;

/// From this level on, conditions may ask when an entry expires, and a datetime may be given as `20260418153012`.
pub const TIMES: Level = 3;

/// From this level on, transactions may list and remove ranges of keys, and compare what is in them.
pub const RANGES: Level = 4;

/// From this level on, the log may hold what keeps many users and members apart: quotas, request ids of each principal, join tokens
/// and members that were removed for good.
pub const TENANTS: Level = 5;

/// What each level brought, for people.
pub const fn known(level: Level) -> Option<&'static str> {
    match level {
        0 => Some("as founded"),
        1 => Some("members agree on a level before what they apply changes its meaning"),
        2 => Some(
            "one apply is bounded in all that it reads and writes, sums of sessions are exact, keys of locks on entries are \
             secret, and what locks were is remembered as long as versions are",
        ),
        3 => Some("conditions may ask for $expires_at, and fields of the type datetime take times like 20260418153012"),
        4 => Some("transactions may list, compare and remove ranges of keys, as etcd clients do"),
        5 => Some(
            "principals and prefixes have quotas, request ids and what a session holds belong to their principal, and members join by a token and are removed for good",
        ),
        _ => None,
    }
}

/// The cluster has reached a level that this build does not know: it must not apply anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster has reached feature level {reached}, and this binary (version {version}) knows levels up to {KNOWN}: \
     install a newer version on this node; its data stays as it is",
    version = env!("CARGO_PKG_VERSION")
)]
pub struct TooNew {
    /// The level of the cluster.
    pub reached: Level,
}

/// Refuses the level of a state that only a newer build may go on with.
pub fn check(reached: Level) -> Result<(), TooNew> {
    if reached > KNOWN { Err(TooNew { reached }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_level_says_what_it_brought_and_no_other_does() {
        assert!((0..=KNOWN).all(|level| known(level).is_some() && check(level).is_ok()));
        assert_eq!(known(KNOWN + 1), None);
        let refused = check(KNOWN + 1).expect_err("it is not known").to_string();
        assert!(refused.contains(&format!("level {}", KNOWN + 1)) && refused.contains("newer version"), "{refused}");
    }
}
