//! Which request ids are certainly new, without asking the disk.
//!
//! Owns filters over the rows of the request table. Nearly every id is new, and a search for a row that is not there
//! looks everywhere. Never decides anything: "perhaps known" is answered by the rows themselves, so nodes may differ in
//! what their filters hold, and still not in what they apply.

use quorate_machine::keyspace::{bucket, family};
use quorate_machine::machine::Write;
use quorate_machine::query::StateFault;
use quorate_machine::types::ClusterMillis;
use rocksdb::DB;
use xxhash_rust::xxh3::xxh3_64;

use super::reading::{range_options, read_fault};

/// Most rows read when a database is opened: about a second. Where there are more, the ids of the buckets that exist by
/// then are looked up as if there was no filter, until those buckets are dropped.
const SCAN_ROWS_MAX: usize = 1_000_000;

/// Most bytes of all filters: two buckets at 20,000 requests a second. A bucket that needs more goes without.
const BYTES_MAX: usize = 64 << 20;

/// Keys of the first filter of a bucket. Each further one is twice as large, up to the largest.
const FILTER_KEYS_MIN: usize = 1 << 14;
const FILTER_KEYS_MAX: usize = 1 << 22;

/// Keys to a block of 256 bits: one key in a hundred that is not there passes for one that is.
const KEYS_PER_BLOCK: usize = 24;

/// The filters of the buckets.
pub(crate) struct FreshIds {
    /// Buckets up to this one have rows that no filter knows of.
    unknown_to: Option<u64>,
    /// In ascending order, all after `unknown_to`. A bucket that is in neither has no rows.
    buckets: Vec<BucketFilters>,
    bytes_max: usize,
}

impl FreshIds {
    /// For a table without rows.
    pub(crate) fn of_empty() -> Self {
        Self { unknown_to: None, buckets: Vec::new(), bytes_max: BYTES_MAX }
    }

    /// For the rows of a database whose cluster clock is at `clock`.
    pub(crate) fn of_rows(rocks: &DB, clock: ClusterMillis) -> Result<Self, StateFault> {
        let mut fresh = Self::of_empty();
        let (start, end) = bucket::range(family::REQUEST, bucket::oldest_live(clock), bucket::at(clock) + 1);
        let mut options = range_options(&start, &end);
        options.fill_cache(false);
        let mut rows = rocks.raw_iterator_opt(options);
        rows.seek_to_first();
        for _ in 0..SCAN_ROWS_MAX {
            let Some(row_key) = rows.key() else { break };
            fresh.note(row_key);
            rows.next();
        }
        rows.status().map_err(read_fault)?;
        if rows.valid() {
            fresh.forget_to(bucket::at(clock));
        }
        Ok(fresh)
    }

    /// Whether this is a row of the request table that is certainly not there.
    pub(crate) fn lacks(&self, row_key: &[u8]) -> bool {
        if !is_request(row_key) {
            return false;
        }
        let Some(number) = bucket::of_row(row_key).filter(|number| Some(*number) > self.unknown_to) else {
            return false;
        };
        let hash = xxh3_64(row_key);
        !self.buckets.iter().any(|part| part.number == number && part.may_hold(hash))
    }

    /// Follows what is written to the database.
    pub(crate) fn follow(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put { key, .. } if is_request(key) => self.note(key),
                Write::Put { .. } | Write::Delete { .. } => {}
                // A bucket that was dropped is never read again, so only its memory matters.
                Write::DeleteRange { end, .. } if is_request(end) => {
                    let oldest = bucket::of_row(end);
                    self.buckets.retain(|part| Some(part.number) >= oldest);
                }
                Write::DeleteRange { .. } => {}
            }
        }
    }

    fn note(&mut self, row_key: &[u8]) {
        let Some(number) = bucket::of_row(row_key).filter(|number| Some(*number) > self.unknown_to) else { return };
        let hash = xxh3_64(row_key);
        if self.buckets.last().is_none_or(|newest| newest.number < number) {
            self.buckets.push(BucketFilters { number, filters: Vec::new() });
        }
        let taken: usize = self.buckets.iter().map(BucketFilters::bytes).sum();
        let Some(part) = self.buckets.iter_mut().find(|part| part.number == number) else {
            // Not seen: rows are only written to the bucket of the clock, which never goes back.
            return self.forget_to(number);
        };
        if !part.note(hash, self.bytes_max - taken) {
            self.forget_to(number);
        }
    }

    /// Gives up on the buckets up to this one.
    fn forget_to(&mut self, number: u64) {
        self.unknown_to = self.unknown_to.max(Some(number));
        self.buckets.retain(|part| part.number > number);
    }
}

fn is_request(row_key: &[u8]) -> bool {
    row_key.first() == Some(&family::REQUEST)
}

/// All keys of one bucket.
struct BucketFilters {
    number: u64,
    /// Only the last one takes keys.
    filters: Vec<Filter>,
}

impl BucketFilters {
    fn may_hold(&self, hash: u64) -> bool {
        self.filters.iter().any(|filter| filter.may_hold(hash))
    }

    /// Takes a key; false where that needs another filter and this does not fit into `bytes_left`.
    fn note(&mut self, hash: u64, bytes_left: usize) -> bool {
        if self.filters.last().is_none_or(|filter| filter.keys_left == 0) {
            let keys = self.filters.last().map_or(FILTER_KEYS_MIN, |last| (2 * last.capacity()).min(FILTER_KEYS_MAX));
            let filter = Filter::for_keys(keys);
            if filter.bytes() > bytes_left {
                return false;
            }
            self.filters.push(filter);
        }
        if let Some(filter) = self.filters.last_mut() {
            filter.note(hash);
        }
        true
    }

    fn bytes(&self) -> usize {
        self.filters.iter().map(Filter::bytes).sum()
    }
}

/// Eight words of one bit per key each: a key touches one cache line.
type Block = [u32; 8];

/// Odd numbers that spread one hash over the words of a block, as in Parquet's split-block Bloom filter.
const SPREAD: Block =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A split-block Bloom filter.
struct Filter {
    blocks: Box<[Block]>,
    keys_left: usize,
}

impl Filter {
    fn for_keys(keys: usize) -> Self {
        Self { blocks: vec![[0; 8]; keys.div_ceil(KEYS_PER_BLOCK)].into_boxed_slice(), keys_left: keys }
    }

    /// Keys it takes in all, at least as many as it was made for.
    fn capacity(&self) -> usize {
        self.blocks.len() * KEYS_PER_BLOCK
    }

    fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    fn note(&mut self, hash: u64) {
        self.keys_left = self.keys_left.saturating_sub(1);
        let block = &mut self.blocks[block_of(hash, self.blocks.len())];
        for (word, bit) in block.iter_mut().zip(bits_of(hash)) {
            *word |= bit;
        }
    }

    fn may_hold(&self, hash: u64) -> bool {
        let block = &self.blocks[block_of(hash, self.blocks.len())];
        block.iter().zip(bits_of(hash)).all(|(word, bit)| word & bit != 0)
    }
}

/// By the upper half of the hash.
fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

/// By the lower half of the hash.
fn bits_of(hash: u64) -> Block {
    SPREAD.map(|spread| 1 << ((hash as u32).wrapping_mul(spread) >> 27))
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::request;

    use super::*;

    fn put(bucket: u64, n: u64) -> Write {
        Write::Put { key: request::row_key(bucket, "", &format!("id-{n}")), value: Vec::new() }
    }

    #[test]
    fn no_id_that_was_written_passes_for_new_and_few_new_ones_for_known() {
        let mut fresh = FreshIds::of_empty();
        let writes: Vec<Write> = (0..100_000).map(|n| put(3, n)).collect();
        fresh.follow(&writes);
        for n in 0..100_000 {
            assert!(!fresh.lacks(&request::row_key(3, "", &format!("id-{n}"))), "id-{n} passes for new");
        }
        let passing = (100_000..200_000).filter(|n| !fresh.lacks(&request::row_key(3, "", &format!("id-{n}")))).count();
        assert!(passing < 6_000, "{passing} of 100,000 new ids pass for known");
        assert!(fresh.lacks(&request::row_key(4, "", "id-1")), "a bucket without rows");
    }

    #[test]
    fn a_dropped_bucket_gives_its_memory_back() {
        let mut fresh = FreshIds::of_empty();
        fresh.follow(&[put(1, 1), put(2, 1)]);
        assert_eq!(fresh.buckets.len(), 2);
        let (start, end) = bucket::range(family::REQUEST, 1, 2);
        fresh.follow(&[Write::DeleteRange { start, end }, put(3, 1)]);
        assert_eq!(fresh.buckets.iter().map(|part| part.number).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_bucket_that_needs_too_much_memory_goes_without() {
        let mut fresh = FreshIds { bytes_max: 30_000, ..FreshIds::of_empty() };
        fresh.follow(&[put(1, 1)]);
        fresh.follow(&(0..40_000).map(|n| put(2, n)).collect::<Vec<_>>());
        assert!(fresh.buckets.is_empty());
        for bucket in [1, 2] {
            assert!(
                !fresh.lacks(&request::row_key(bucket, "", "id-new")),
                "bucket {bucket} has rows that no filter holds"
            );
        }
        fresh.follow(&[put(3, 1)]);
        assert!(!fresh.lacks(&request::row_key(3, "", "id-1")) && fresh.lacks(&request::row_key(3, "", "id-2")));
    }
}
