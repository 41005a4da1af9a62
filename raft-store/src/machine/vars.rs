//! The replicated scalars.
//!
//! Owns what the machine must carry from one apply to the next beside rows. Stored in the one row of
//! [`crate::keyspace::meta`], in the same write batch as the rows it belongs to.

use bincode::{Decode, Encode};

use crate::types::{ClusterMillis, Revision, WallMillis};

/// Revision, clocks, digest.
///
/// Invariant: `1 <= oldest_revision <= revision`; nothing here but the counts, `next_timer` and the digests ever
/// goes down.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Vars {
    /// Of the whole store; 1 while it is empty.
    pub revision: Revision,
    /// The oldest revision that can be read: history up to it is compacted away, the state at it is not.
    pub oldest_revision: Revision,
    /// The latest cluster clock applied.
    pub clock: ClusterMillis,
    /// The latest wall clock applied.
    pub wall: WallMillis,
    /// How many collections are declared: while there is none, no write looks for one.
    pub collections: u64,
    /// How many sessions live.
    pub sessions: u64,
    /// How many tasks wait to be planned.
    pub unplanned: u64,
    /// No timer is due before this; `None` while there is none.
    pub next_timer: Option<ClusterMillis>,
    /// Digest of all rows that are in no bucket.
    pub lasting_digest: u128,
    /// Digests of the live buckets that hold rows, in ascending order of bucket.
    pub buckets: Vec<BucketDigest>,
}

/// The part of the digest that goes away with one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct BucketDigest {
    /// Number of the bucket, see [`crate::keyspace::bucket`].
    pub bucket: u64,
    /// Sum of the hashes of its rows.
    pub digest: u128,
}

impl Default for Vars {
    /// Those of an empty store.
    fn default() -> Self {
        Self {
            revision: 1,
            oldest_revision: 1,
            clock: 0,
            wall: 0,
            collections: 0,
            sessions: 0,
            unplanned: 0,
            next_timer: None,
            lasting_digest: 0,
            buckets: Vec::new(),
        }
    }
}

impl Vars {
    /// The digest of all replicated rows: equals [`crate::digest::of_rows`] over the whole database.
    pub fn digest(&self) -> u128 {
        self.buckets.iter().fold(self.lasting_digest, |sum, bucket| sum.wrapping_add(bucket.digest))
    }

    /// Adds to the part of the digest that a row of `bucket` (or of none) belongs to.
    pub(super) fn add_to_digest(&mut self, bucket: Option<u64>, delta: u128) {
        let Some(bucket) = bucket else {
            self.lasting_digest = self.lasting_digest.wrapping_add(delta);
            return;
        };
        match self.buckets.binary_search_by_key(&bucket, |part| part.bucket) {
            Ok(at) => self.buckets[at].digest = self.buckets[at].digest.wrapping_add(delta),
            Err(at) => self.buckets.insert(at, BucketDigest { bucket, digest: delta }),
        }
    }
}
