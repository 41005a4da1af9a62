//! What of a state is in a stream of its rows.
//!
//! Owns the two choices and how they are told apart at the first byte.

use quorate_machine::keyspace::digest;
use quorate_machine::keyspace::{backed_up, family};

/// Which rows are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// What a new cluster needs: a backup.
    Lasting,
    /// Every row that the digest covers: what follows in the log can be applied to it.
    Whole,
}

impl Content {
    /// The first bytes.
    pub(crate) fn magic(self) -> [u8; 8] {
        match self {
            Self::Lasting => *b"\x89QRBKUP\n",
            Self::Whole => *b"\x89QRSTAT\n",
        }
    }

    /// Whether a row belongs there.
    pub(crate) fn holds(self, row_key: &[u8]) -> bool {
        match self {
            Self::Lasting => backed_up::is_kept(row_key),
            Self::Whole => digest::covers(row_key) && row_key[0] != u8::MAX,
        }
    }

    /// The bounds `[start, end)` of the stretches of row keys that are there, in order.
    pub(crate) fn ranges(self) -> Vec<(Vec<u8>, Vec<u8>)> {
        match self {
            Self::Lasting => backed_up::ranges(),
            // No family is 0xFF, so this is behind all rows.
            Self::Whole => vec![(vec![family::META + 1], vec![u8::MAX])],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_in_a_range_exactly_if_it_belongs_there() {
        for content in [Content::Lasting, Content::Whole] {
            for family in 0..=u8::MAX {
                let row_key = [family, 7];
                let mut ranges = content.ranges().into_iter();
                let is_there = ranges.any(|(start, end)| start.as_slice() <= &row_key[..] && row_key[..] < *end);
                assert_eq!(is_there, content.holds(&row_key), "{content:?} {family:#04x}");
            }
        }
        assert_ne!(Content::Lasting.magic(), Content::Whole.magic());
    }
}
