//! Rows of what buckets hold: `0x41`, bucket → [`BucketUse`]; `0x41`, bucket, principal → [`OwnerUse`]; `0x41`, bucket, `0xff`,
//! principal → [`RefusedUse`].
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
    /// Audit lines of refusals that were not written, since there were too many.
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

/// How much of the record of refusals in a bucket is of one principal, since shares hold there: see
/// [`crate::limits::REFUSALS_SHARED_FROM`]. Encode and decode with [`crate::codec`].
///
/// Invariant: as [`OwnerUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct RefusedUse {
    /// [`crate::keyspace::audit::line_bytes`] of the lines.
    pub refusals: u64,
}

/// The use that a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'k> {
    /// The bucket as a whole: a [`BucketUse`].
    All,
    /// The outcomes that are kept for a principal: an [`OwnerUse`].
    Kept(&'k str),
    /// A principal's part of the record of refusals: a [`RefusedUse`].
    Refused(&'k str),
}

/// Stands before the principal of a [`RefusedUse`]: no name begins with it.
const REFUSED: u8 = 0xff;

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

/// The row key of a principal's part of the record of refusals in a bucket.
pub fn refused_key(bucket: u64, owner: &str) -> Vec<u8> {
    assert!(!owner.is_empty(), "nobody in particular has no share of the refusals in bucket {bucket}");
    [&row_key(bucket)[..], &[REFUSED], owner.as_bytes()].concat()
}

/// The bounds `[start, end)` of the rows of [`OwnerUse`] in a bucket.
pub fn owners(bucket: u64) -> (Vec<u8>, Vec<u8>) {
    (beside(bucket, 0), beside(bucket, REFUSED))
}

/// The bounds `[start, end)` of the rows of [`RefusedUse`] in a bucket.
pub fn refused(bucket: u64) -> (Vec<u8>, Vec<u8>) {
    (beside(bucket, REFUSED), row_key(bucket + 1))
}

fn beside(bucket: u64, next: u8) -> Vec<u8> {
    let mut row_key = row_key(bucket);
    row_key.push(next);
    row_key
}

/// Reverses [`row_key`], [`owner_key`] and [`refused_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(u64, Whose<'_>), CodecError> {
    let (bucket, rest) = split_u64(strip_family(row_key, family::BUCKET_USE)?)?;
    let name = |bytes| {
        let name = std::str::from_utf8(bytes);
        name.map_err(|error| CodecError::Malformed(format!("the owner of a share: {error}")))
    };
    let whose = match rest {
        [] => Whose::All,
        [REFUSED] => return Err(CodecError::Malformed("refusals of nobody in particular".into())),
        [REFUSED, owner @ ..] => Whose::Refused(name(owner)?),
        owner => Whose::Kept(name(owner)?),
    };
    Ok((bucket, whose))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_principals_have_lies_between_their_bucket_and_the_next() {
        let ((start, end), (refused_start, refused_end)) = (owners(7), refused(7));
        for owner in ["\0", "ann", "\u{10ffff}"] {
            let (kept, refused) = (owner_key(7, owner), refused_key(7, owner));
            assert!(start <= kept && kept < end, "{owner:?}");
            assert!(refused_start <= refused && refused < refused_end, "{owner:?}");
            assert_eq!(decode_key(&kept), Ok((7, Whose::Kept(owner))));
            assert_eq!(decode_key(&refused), Ok((7, Whose::Refused(owner))));
        }
        assert!(row_key(7) < start && end == refused_start && refused_end == row_key(8));
        assert_eq!(decode_key(&row_key(7)), Ok((7, Whose::All)));
        for wrong in [&[0xff][..], &[0xff, 0xff], &[0xfe]] {
            assert!(decode_key(&[&row_key(7)[..], wrong].concat()).is_err(), "{wrong:?}");
        }
    }
}
