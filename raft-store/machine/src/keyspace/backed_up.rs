//! Which rows of the state are in a backup.
//!
//! Owns the list of what is left out. A new family is in every backup without a word here.

use super::family;

/// Families that a backup leaves out, in order: history, kept answers, what belongs to one node, and who may be a member of the cluster
/// that it was taken of.
const LEFT_OUT: [u8; 10] = [
    family::META,
    family::HISTORY,
    family::RELOCKED,
    family::AUDIT,
    family::REFUSALS,
    family::REQUEST,
    family::BUCKET_USE,
    family::ELECTED,
    family::INVITATION,
    family::REMOVED_MEMBER,
];

/// The bounds `[start, end)` of the stretches of row keys that are in a backup, in order.
pub fn ranges() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for left_out in LEFT_OUT {
        if start < left_out {
            ranges.push((vec![start], vec![left_out]));
        }
        start = left_out + 1;
    }
    // No family is 0xFF, so this is behind all rows.
    ranges.push((vec![start], vec![u8::MAX]));
    ranges
}

/// Whether a row belongs in a backup.
pub fn is_kept(row_key: &[u8]) -> bool {
    row_key.first().is_some_and(|family| *family != u8::MAX && !LEFT_OUT.contains(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_in_a_range_exactly_if_it_is_kept() {
        let ranges = ranges();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
        for family in 0..=u8::MAX {
            let row_key = [family, 7];
            let in_range = ranges.iter().any(|(start, end)| start.as_slice() <= &row_key[..] && row_key[..] < **end);
            assert_eq!(in_range, is_kept(&row_key), "family {family:#04x}");
        }
        assert!(is_kept(&[family::ENTRY]) && is_kept(&[family::TASK_UNPLANNED]) && !is_kept(&[family::AUDIT]));
    }
}
