//! A deliberate bug, for tests of what becomes of bugs: applying a write of one key panics.
//!
//! Owns which key that is. Only in builds with debug assertions; in a release build nothing of it is left.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

#[cfg(debug_assertions)]
static KEY: OnceLock<Vec<u8>> = OnceLock::new();

/// From now on applying a write of this key panics, in all of this process.
#[cfg(debug_assertions)]
pub fn panic_on(key: Vec<u8>) {
    KEY.set(key).expect("one key for each process");
}

/// Panics if this is the key.
#[inline]
pub(crate) fn pass(key: &[u8]) {
    #[cfg(debug_assertions)]
    assert!(KEY.get().is_none_or(|bad| bad != key), "the deliberate bug of the key {}", key.escape_ascii());
    #[cfg(not(debug_assertions))]
    let _ = key;
}
