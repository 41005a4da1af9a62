//! Rows of what buckets hold: `0x41`, bucket → [`BucketUse`]; `0x41`, bucket, principal → [`OwnerUse`].
//!
//! Owns their bytes. They go with their bucket, so what they count goes with them.

use bincode::{Decode, Encode};

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;

/// How much the rows of a bucket take. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct BucketUse {
    /// Bytes of keys and values of kept outcomes.
    pub requests: u64,
    /// Bytes of keys and values of audit groups of refusals.
    pub refusals: u64,
    /// Audit groups of refusals that were not written, since there were too many.
    pub dropped: u64,
}

/// How much of a bucket is of one principal. Encode and decode with [`crate::codec`].
///
/// Invariant: there exactly while that is not 0, and never without a principal: such requests have no share, they take what others leave of
/// [`BucketUse::requests`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct OwnerUse {
    /// Bytes of keys and values of kept outcomes.
    pub requests: u64,
}

/// Bytes of the row key of a bucket.
pub const KEY_BYTES: usize = 1 + size_of::<u64>();

/// The row key of a bucket.
pub fn row_key(bucket: u64) -> Vec<u8> {
    [&[family::BUCKET_USE][..], &bucket.to_be_bytes()].concat()
}

/// The row key of a principal's use of a bucket.
pub fn owner_key(bucket: u64, owner: &str) -> Vec<u8> {
    assert!(!owner.is_empty(), "nobody in particular has no share of bucket {bucket}");
    [&row_key(bucket)[..], owner.as_bytes()].concat()
}

/// The bounds `[start, end)` of the principals' rows in a bucket.
pub fn owners(bucket: u64) -> (Vec<u8>, Vec<u8>) {
    let mut start = row_key(bucket);
    start.push(0);
    (start, row_key(bucket + 1))
}

/// Reverses [`row_key`] and [`owner_key`]: bucket and owner; the owner is empty for the bucket as a whole.
pub fn decode_key(row_key: &[u8]) -> Result<(u64, &str), CodecError> {
    let (bucket, owner) = split_u64(strip_family(row_key, family::BUCKET_USE)?)?;
    let owner = std::str::from_utf8(owner);
    Ok((bucket, owner.map_err(|error| CodecError::Malformed(format!("the owner of a share: {error}")))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_principals_have_lies_between_their_bucket_and_the_next() {
        let (start, end) = owners(7);
        for owner in ["\0", "ann", "\u{10ffff}"] {
            let row_key = owner_key(7, owner);
            assert!(start <= row_key && row_key < end, "{owner:?}");
            assert_eq!(decode_key(&row_key), Ok((7, owner)));
        }
        assert!(row_key(7) < start && end == row_key(8));
        assert_eq!(decode_key(&row_key(7)), Ok((7, "")));
        assert!(decode_key(&[&row_key(7)[..], &[0xff]].concat()).is_err());
    }
}
