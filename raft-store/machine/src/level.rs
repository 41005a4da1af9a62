//! The feature level: what the members of a cluster have agreed to do when they apply its log.
//!
//! Owns which levels this build knows. A change of what a log entry means belongs to a new level: apply asks
//! [`crate::machine::Vars::level`], which is part of the replicated state, and never which binary it runs in. So all nodes turn
//! to the new meaning at the same log entry, however old and new binaries are mixed. Never decides when a level is
//! reached: the leader proposes it once every member said that it knows it.
//!
//! To add a level: raise [`KNOWN`], write into [`brought`] what it brings, and ask `vars.level >= N` where the meaning differs. A new
//! kind of command, which older builds cannot even read, may be proposed only once its level is reached, and apply refuses it below
//! that in the words of a build that cannot decode it. Until there is a second level the way to one is tried with [`NEXT`], which
//! changes no meaning and exists in tests alone.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

/// A feature level. Only grows.
pub type Level = u32;

/// The level at which every cluster is founded.
pub const FIRST: Level = 1;

/// The highest level that this build knows.
pub const KNOWN: Level = FIRST;

/// The level after the newest one, which no build knows but one that a test told to, see [`know_next`].
pub const NEXT: Level = KNOWN + 1;

#[cfg(debug_assertions)]
static KNOWS_NEXT: AtomicBool = AtomicBool::new(false);

/// From now on this process knows [`NEXT`] as well, as a build that comes after this one would. Only in builds with debug assertions;
/// in a release build nothing of it is left.
#[cfg(debug_assertions)]
pub fn know_next() {
    KNOWS_NEXT.store(true, Ordering::Relaxed);
}

/// The highest level that this process knows: [`KNOWN`], unless a test says otherwise.
pub fn newest() -> Level {
    #[cfg(debug_assertions)]
    if KNOWS_NEXT.load(Ordering::Relaxed) {
        return NEXT;
    }
    KNOWN
}

/// What each level brought, for people.
pub const fn brought(level: Level) -> Option<&'static str> {
    match level {
        FIRST => Some("as founded"),
        _ => None,
    }
}

/// The cluster has reached a level that this build does not know: it must not apply anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster has reached feature level {reached}, and this binary (version {version}) knows levels up to {newest}: \
     install a newer version on this node; its data stays as it is",
    version = env!("CARGO_PKG_VERSION"),
    newest = newest()
)]
pub struct TooNew {
    /// The level of the cluster.
    pub reached: Level,
}

/// Refuses the level of a state that only a newer build may go on with.
pub fn check(reached: Level) -> Result<(), TooNew> {
    if reached > newest() { Err(TooNew { reached }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_level_says_what_it_brought_and_no_other_does() {
        assert!((FIRST..=KNOWN).all(|level| brought(level).is_some() && check(level).is_ok()));
        assert_eq!((brought(0), brought(NEXT)), (None, None));
        let refused = check(NEXT).expect_err("it is not known").to_string();
        assert!(refused.contains(&format!("level {NEXT}")) && refused.contains("newer version"), "{refused}");
        #[cfg(debug_assertions)]
        {
            know_next();
            assert_eq!((newest(), check(NEXT)), (NEXT, Ok(())));
            assert_eq!(check(NEXT + 1), Err(TooNew { reached: NEXT + 1 }));
        }
    }
}
