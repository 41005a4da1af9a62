//! Bugs on purpose: each shows that a test which looks for bugs of its kind finds one.
//!
//! Owns their names and which one the thread at hand has. What a mutant does stands where it does it. Without the feature
//! `mutants`, which no build of a node has, there is none and the compiler leaves their branches out.

/// The name of every mutant.
pub const ALL: &[&str] = &[
    "any token guards",
    "tokens come twice",
    "one slot too many",
    "sessions end early",
    "renewals are forgotten",
    "outcomes are forgotten",
    "any token releases",
];

#[cfg(feature = "mutants")]
thread_local! {
    static PUT_IN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Whether this thread applies with that bug.
#[cfg(feature = "mutants")]
pub fn is(name: &str) -> bool {
    debug_assert!(ALL.contains(&name), "no mutant {name}");
    PUT_IN.get() == Some(name)
}

/// Whether this thread applies with that bug: never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn is(_name: &str) -> bool {
    false
}

/// Does work, on this thread, with one bug or with none.
#[cfg(feature = "mutants")]
pub fn with<T>(name: Option<&'static str>, work: impl FnOnce() -> T) -> T {
    assert!(name.is_none_or(|name| ALL.contains(&name)), "no mutant {name:?}");
    /// Puts back what was there, after a panic too.
    struct PutBack(Option<&'static str>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            PUT_IN.set(self.0);
        }
    }
    let _put_back = PutBack(PUT_IN.replace(name));
    work()
}

/// Does work, with no bug: the feature `mutants` is not there.
#[cfg(not(feature = "mutants"))]
pub fn with<T>(name: Option<&'static str>, work: impl FnOnce() -> T) -> T {
    assert!(name.is_none(), "the mutant {name:?} needs the feature `mutants`");
    work()
}
