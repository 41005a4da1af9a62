//! The replicated scalars.
//!
//! Owns what the machine must carry from one apply to the next beside rows. Stored in the one row of
//! `meta` of quorate-store, in the same write batch as the rows it belongs to.

use bincode::{Decode, Encode};

use crate::keyspace::digest::{self, RowMark};
use crate::keyspace::{bucket, family};
use crate::level::{self, Level};
use crate::types::{ClusterMillis, Revision, WallMillis};

/// Revision, clocks, digest.
///
/// Invariant: `1 <= oldest_revision <= revision`; nothing here but the wall clock, the counts, the sizes, `next_timer` and the
/// digests ever goes down.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Vars {
    /// Of the whole store; 1 while it is empty.
    pub revision: Revision,
    /// The oldest revision that can be read: history up to it is compacted away, the state at it is not.
    pub oldest_revision: Revision,
    /// The latest cluster clock applied.
    pub clock: ClusterMillis,
    /// The wall clock as of the last batch; see [`super::wall_after`].
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
    /// How much there is.
    pub sizes: Sizes,
    /// What the members have agreed to do when they apply, see [`crate::level`].
    pub level: Level,
    /// How often the state went on in another cluster, see [`super::Epoch`]; 0 in the first.
    pub epoch: u64,
    /// The revision at which that began: what clients know from before it is of another history. 0 in the first.
    pub epoch_revision: Revision,
    /// The access revision: the one at which users, roles or tokens last changed; 0 while there never were any.
    pub access: Revision,
}

/// How much there is, exactly: bytes are those of the keys and values of rows, before compression and without what the
/// database adds. Rows that go with a bucket are in none of the sums; they are gone after a while whatever happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Sizes {
    /// Entries, those that are past their deadline but not removed yet included.
    pub entries: u64,
    /// Bytes of what is there now.
    pub live_bytes: u64,
    /// Bytes of the past: versions, locks, audit groups, changes of elections. Compaction takes them away.
    pub history_bytes: u64,
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
            sizes: Sizes::default(),
            level: level::FIRST,
            epoch: 0,
            epoch_revision: 0,
            access: 0,
        }
    }
}

impl Vars {
    /// The digest of all replicated rows: equals [`crate::keyspace::digest::of_rows`] over the whole database.
    pub fn digest(&self) -> u128 {
        self.buckets.iter().fold(self.lasting_digest, |sum, bucket| sum.wrapping_add(bucket.digest))
    }

    /// Takes the digests and sizes out, and leaves nothing in their place.
    pub(super) fn take_sums(&mut self) -> Sums {
        let lasting_digest = std::mem::take(&mut self.lasting_digest);
        Sums { lasting_digest, buckets: std::mem::take(&mut self.buckets), sizes: std::mem::take(&mut self.sizes) }
    }

    /// Puts digests and sizes back.
    pub(super) fn put_sums(&mut self, sums: Sums) {
        Sums { lasting_digest: self.lasting_digest, buckets: self.buckets, sizes: self.sizes } = sums;
    }
}

/// The digests and sizes among the scalars: known once all writes of an apply call are, so no command may see them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) lasting_digest: u128,
    pub(super) buckets: Vec<BucketDigest>,
    pub(super) sizes: Sizes,
}

impl Sums {
    /// One row took the place of another: at most one of the two is nothing.
    pub(super) fn exchange(&mut self, row_key: &[u8], before: Option<RowMark>, after: Option<RowMark>) {
        let hash = |mark: Option<RowMark>| mark.map_or(0, |mark| mark.hash);
        let bucket = bucket::of_row(row_key);
        self.add_to_digest(bucket, hash(after).wrapping_sub(hash(before)));
        if bucket.is_none() {
            self.sizes.exchange(row_key, before, after);
        }
    }

    /// Adds to the part of the digest that a row of `bucket` (or of none) belongs to.
    fn add_to_digest(&mut self, bucket: Option<u64>, delta: u128) {
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

impl Sizes {
    /// The sizes from scratch, of all rows in any order: what [`Vars::sizes`] must equal.
    pub fn of_rows<K: AsRef<[u8]>, V: AsRef<[u8]>>(rows: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut sizes = Self::default();
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            if digest::covers(key) && bucket::of_row(key).is_none() {
                let mark = RowMark { hash: 0, bytes: (key.len() + value.len()) as u64 };
                sizes.exchange(key, None, Some(mark));
            }
        }
        sizes
    }

    fn exchange(&mut self, row_key: &[u8], before: Option<RowMark>, after: Option<RowMark>) {
        let bytes = |mark: Option<RowMark>| mark.map_or(0, |mark| mark.bytes);
        let sum = if is_history(row_key) { &mut self.history_bytes } else { &mut self.live_bytes };
        *sum = moved(*sum, bytes(before), bytes(after));
        if row_key.first() == Some(&family::ENTRY) {
            self.entries = moved(self.entries, u64::from(before.is_some()), u64::from(after.is_some()));
        }
    }
}

/// Whether compaction takes a row away.
fn is_history(row_key: &[u8]) -> bool {
    matches!(row_key.first(), Some(&(family::HISTORY | family::RELOCKED | family::AUDIT | family::ELECTED)))
}

/// A sum that is wrong ends no node: it is taken for 0, and told by `check`.
fn moved(sum: u64, less: u64, more: u64) -> u64 {
    debug_assert!(sum >= less, "what is taken away was counted when it came: {less} of {sum}");
    sum.saturating_sub(less).saturating_add(more)
}
