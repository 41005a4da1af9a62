//! Which keys somebody watches.
//!
//! Owns the three forms of that and the one way to write each. Never reads a key.

use crate::keyspace::after_prefix;
use crate::types::Key;

/// A set of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchRange {
    /// This one.
    Key(Key),
    /// All that begin so; with an empty prefix, all.
    Prefix(Vec<u8>),
    /// From `start`, inclusive, to `end`, exclusive, or without an end.
    Span {
        /// First key, inclusive.
        start: Vec<u8>,
        /// End key, exclusive; `None` for no end.
        end: Option<Vec<u8>>,
    },
}

impl WatchRange {
    /// The keys of `[start, end)`; as a prefix where they are just those that have one.
    pub fn span(start: Vec<u8>, end: Option<Vec<u8>>) -> Self {
        if end == after_prefix(&start) { Self::Prefix(start) } else { Self::Span { start, end } }
    }

    /// Whether a key belongs to it.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Key(only) => only.as_bytes() == key,
            Self::Prefix(prefix) => key.starts_with(prefix),
            Self::Span { start, end } => start.as_slice() <= key && end.as_ref().is_none_or(|end| key < end.as_slice()),
        }
    }

    /// Its bounds: first key, inclusive, and its end key, exclusive.
    pub fn bounds(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        match self {
            Self::Key(key) => (key.as_bytes().to_vec(), Some([key.as_bytes(), b"\0"].concat())),
            Self::Prefix(prefix) => (prefix.clone(), after_prefix(prefix)),
            Self::Span { start, end } => (start.clone(), end.clone()),
        }
    }

    /// What all its keys begin with.
    pub fn common_prefix(&self) -> &[u8] {
        match self {
            Self::Key(key) => key.as_bytes(),
            Self::Prefix(prefix) => prefix,
            Self::Span { start, end } => {
                let end = end.as_deref().unwrap_or_default();
                let same = start.iter().zip(end).take_while(|(one, other)| one == other).count();
                &start[..same]
            }
        }
    }

    /// Bytes of keys that it holds.
    pub fn key_bytes(&self) -> usize {
        match self {
            Self::Key(key) => key.as_bytes().len(),
            Self::Prefix(prefix) => prefix.len(),
            Self::Span { start, end } => start.len() + end.as_ref().map_or(0, Vec::len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_agree_with_their_bounds() {
        let key = |text: &str| Key::new(text).unwrap();
        let span =
            |start: &str, end: Option<&str>| WatchRange::span(start.into(), end.map(|end| end.as_bytes().to_vec()));
        assert_eq!(span("a/", Some("a0")), WatchRange::Prefix(b"a/".to_vec()));
        assert_eq!(span("", None), WatchRange::Prefix(Vec::new()));
        let ranges = [
            WatchRange::Key(key("ab")),
            span("a", Some("b")),
            span("ab", Some("aca")),
            span("b", None),
            span("c", Some("a")),
        ];
        for range in &ranges {
            let (start, end) = range.bounds();
            for name in ["a", "ab", "ab\0", "abc", "aca", "ac", "b", "bb", "c"] {
                let inside = start.as_slice() <= name.as_bytes()
                    && end.as_ref().is_none_or(|end| name.as_bytes() < end.as_slice());
                assert_eq!(range.contains(name.as_bytes()), inside, "{name} in {range:?}");
                assert!(!inside || name.as_bytes().starts_with(range.common_prefix()), "{name} in {range:?}");
            }
        }
    }
}
