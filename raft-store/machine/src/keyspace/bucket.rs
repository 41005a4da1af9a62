//! Buckets of cluster clock: what is kept for a while and then dropped all at once.
//!
//! Owns which buckets are live. The rows in them belong to [`super::request`], [`super::refusals`] and [`super::bucket_use`].

use super::{family, split_u64};
use crate::limits;
use crate::types::ClusterMillis;

/// The families whose keys start with a bucket.
pub const FAMILIES: [u8; 3] = [family::REFUSALS, family::REQUEST, family::BUCKET_USE];

/// The bucket that is written to at `clock`.
pub fn at(clock: ClusterMillis) -> u64 {
    clock / limits::REQUEST_BUCKET_MS
}

/// The oldest bucket that is still read at `clock`: the one before the current.
pub fn oldest_live(clock: ClusterMillis) -> u64 {
    at(clock).saturating_sub(1)
}

/// The bounds `[start, end)` of the rows of buckets `first..end` in one family.
pub fn range(family: u8, first: u64, end: u64) -> (Vec<u8>, Vec<u8>) {
    let bound = |bucket: u64| {
        let mut key = vec![family];
        key.extend_from_slice(&bucket.to_be_bytes());
        key
    };
    (bound(first), bound(end))
}

/// The bucket a row belongs to, if it belongs to any.
pub fn of_row(row_key: &[u8]) -> Option<u64> {
    let (family, rest) = row_key.split_first()?;
    if !FAMILIES.contains(family) {
        return None;
    }
    split_u64(rest).ok().map(|(bucket, _)| bucket)
}
