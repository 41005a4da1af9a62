//! One state database: a RocksDB with a single column family and no WAL.
//!
//! Owns RocksDB's options, the atomic write of a group, and what is durable. Knows nothing of snapshots or readers.
//!
//! Durability. With the WAL off, a row is durable once the memtable that holds it was flushed to a table file and
//! that file is in RocksDB's MANIFEST, which RocksDB fsyncs. A read of the persisted tier leaves all memtables out, so
//! the applied row read in that way is the one that a crash right now would leave us with: rows and applied row
//! move together, because they are in one write batch and a memtable is flushed whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quorate_machine::codec;
use quorate_machine::machine::{Applied, Fault, Most, Row, Vars, View, Write};
use quorate_machine::query::{Cursor as _, StateFault, take_page};
use quorate_threads::background;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompressionType, FlushOptions, LogLevel, LruCacheOptions,
    Options, ReadOptions, ReadTier, WriteBatch, WriteOptions,
};

use super::counts::Counts;
use super::fresh::FreshIds;
use super::frozen::Rows;
use super::heads::{Building, Heads};
use super::manifest::TornEnd;
use super::merging::MergePace;
use super::reading::{range_options, read_fault, rocks_fault};
use super::recent::{RecentEntries, is_entry};
use crate::meta::{APPLIED_KEY, AppliedRecord};
use crate::raft::wire::{MembershipRecord, StoredMembershipRecord};

/// The smallest memtable. Bounds how long a flush takes, and with [`WRITE_BUFFERS_MAX`] the memory of writes.
const WRITE_BUFFER_BYTES_MIN: usize = 24 << 20;

/// By so much the memtables of one node and the next differ, for [`WRITE_BUFFER_STEPS`] nodes. All nodes write the same
/// rows, so with equal memtables they would all flush in the same moment, and where they share cores or a disk every
/// write would wait for that.
const WRITE_BUFFER_STEP_BYTES: usize = 4 << 20;
const WRITE_BUFFER_STEPS: u64 = 4;

/// The largest memtable.
const WRITE_BUFFER_BYTES_MAX: usize =
    WRITE_BUFFER_BYTES_MIN + (WRITE_BUFFER_STEPS as usize - 1) * WRITE_BUFFER_STEP_BYTES;

/// Share of a memtable for its Bloom filter: 20 bits for a row of 128 bytes. It is for keys that are new; a larger one
/// would not stay in the processor's cache, and every row written touches it.
const MEMTABLE_BLOOM_RATIO: f64 = 0.02;

/// Memtables at a time: one taking writes, the others being flushed.
const WRITE_BUFFERS_MAX: i32 = 3;

/// Flushed files that wait to be merged into the level below.
const UNMERGED_FILES: i32 = 12;

/// Blocks, filters and indexes of table files in memory.
const BLOCK_CACHE_BYTES: usize = 64 << 20;

/// The block cache has two to the power of this many parts, each with a lock of its own. What a part has room for must be much more than
/// any block: of two that do not fit in together, each read throws the other one out. By default there would be 64 parts of 1 MiB.
const BLOCK_CACHE_PARTS_LOG2: i32 = 2;

/// Parts of filters and indexes.
const FILTER_PART_BYTES: usize = 8 << 10;

/// The list of changes of tables is begun anew after so much: by then it has some ten thousand of them.
const MANIFEST_BYTES_MAX: usize = 4 << 20;

/// Table files kept open.
const OPEN_FILES_MAX: i32 = 512;

/// A memtable finds the place of a row from that of the row of the same family (first byte) before it. Rows are written in
/// order, so the next place is near, or right behind where keys grow. There is no function that sets this option.
const INSERT_HINTS: &str = "memtable_insert_with_hint_prefix_extractor=rocksdb.FixedPrefix.1";

/// Who closes the database made durable what should be; what is closed because it was replaced is removed. There is no
/// function for this either.
const CLOSE_WITHOUT_FLUSH: &str = "avoid_flush_during_shutdown=true";

/// Where the writer takes longer to find the first row of a range, it walked over thousands of traces of what is gone.
const SLOW_SEEK: Duration = Duration::from_micros(200);

#[expect(clippy::disallowed_methods, reason = "how long a scan takes changes no row")]
fn now() -> Instant {
    Instant::now()
}

/// An open database. It is closed when dropped, and what was not flushed is gone as in a crash.
pub(crate) struct Db {
    pub(crate) rocks: DB,
    pub(crate) dir: PathBuf,
    cache: Cache,
    merge_pace: Arc<MergePace>,
    write_options: WriteOptions,
    /// Whose memtable size it has.
    pub(crate) node_id: u64,
    /// Checksums of table files, which never change, by name and length.
    pub(crate) checksums: Mutex<BTreeMap<(String, u64), u64>>,
    /// Copies of rows, as of the last write.
    pub(crate) recent: RecentEntries,
    /// What was counted of the rows lately.
    pub(crate) counts: Counts,
    /// Where the first rows are, as of the last write.
    pub(crate) heads: Heads,
    /// Where collections are that want work, as of the last write.
    pub(crate) building: Building,
    /// Of the rows as of the last write. Only the writer locks it.
    fresh: Mutex<FreshIds>,
}

impl Db {
    /// Creates an empty database and closes it again.
    pub(crate) fn create(dir: &Path) -> Result<(), StateFault> {
        let mut options = options(&new_cache(BLOCK_CACHE_BYTES))?;
        options.create_if_missing(true);
        options.set_error_if_exists(true);
        drop(DB::open(&options, dir).map_err(rocks_fault)?);
        Ok(())
    }

    /// Opens a database that exists, on this node.
    pub(crate) fn open(dir: &Path, node_id: u64) -> Result<Self, StateFault> {
        if let Some(torn) = TornEnd::of(dir)? {
            torn.drop_it()?;
        }
        let cache = new_cache(BLOCK_CACHE_BYTES);
        let mut options = options(&cache)?;
        options.set_write_buffer_size(write_buffer_bytes(node_id));
        // Its threads are not a simulation's.
        options.set_disable_auto_compactions(background::is_simulated());
        let merge_pace = MergePace::new(UNMERGED_FILES.unsigned_abs().into());
        options.set_compaction_filter("merge-pace", merge_pace.filter());
        // With a filter RocksDB would rewrite each file once in 30 days: it takes filters for something that removes rows.
        options.set_periodic_compaction_seconds(0);
        let rocks = DB::open(&options, dir).map_err(rocks_fault)?;
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(true);
        let clock = decode_applied(rocks.get_pinned(APPLIED_KEY).map_err(rocks_fault)?.as_deref())?.vars.clock;
        let fresh = Mutex::new(FreshIds::of_rows(&rocks, clock)?);
        let (heads, building) = (Heads::of_rows(&rocks)?, Building::default());
        let (checksums, recent, counts) = (Mutex::default(), RecentEntries::new(), Counts::default());
        Ok(Self {
            rocks,
            dir: dir.to_path_buf(),
            cache,
            merge_pace,
            write_options,
            node_id,
            checksums,
            recent,
            counts,
            heads,
            building,
            fresh,
        })
    }

    /// The applied row of a database that nobody has open, without changing it.
    pub(crate) fn peek_applied(dir: &Path) -> Result<AppliedRecord, StateFault> {
        let rocks = open_read_only(dir, 1 << 20)?;
        decode_applied(rocks.get_pinned(APPLIED_KEY).map_err(rocks_fault)?.as_deref())
    }

    /// Opens a database that nobody has open, for reading alone: what is durable in it.
    pub(crate) fn open_to_look(dir: &Path) -> Result<DB, StateFault> {
        open_read_only(dir, BLOCK_CACHE_BYTES)
    }

    /// The applied row as reads see it.
    pub(crate) fn applied(&self) -> Result<AppliedRecord, StateFault> {
        decode_applied(self.rocks.get_pinned(APPLIED_KEY).map_err(rocks_fault)?.as_deref())
    }

    /// The applied row that would survive a crash.
    pub(crate) fn durable(&self) -> Result<AppliedRecord, StateFault> {
        let mut options = ReadOptions::default();
        options.set_read_tier(ReadTier::Persisted);
        decode_applied(self.rocks.get_pinned_opt(APPLIED_KEY, &options).map_err(rocks_fault)?.as_deref())
    }

    /// Writes the rows of a group and the applied row, all or nothing. What is kept in memory beside RocksDB follows.
    pub(crate) fn write(&self, applied: &Applied, record: &AppliedRecord) -> Result<(), StateFault> {
        let batch = write_batch(&applied.writes, record);
        if self.is_stalled()? && is_on_worker_of_many() {
            tokio::task::block_in_place(|| self.rocks.write_opt(batch, &self.write_options)).map_err(rocks_fault)?;
        } else {
            self.rocks.write_opt(batch, &self.write_options).map_err(rocks_fault)?;
        }
        self.recent.follow(&applied.writes);
        // Not before: who looks in between would find nothing of them, and keep that.
        self.heads.follow(&applied.writes);
        self.building.follow(&applied.writes);
        self.fresh.lock().follow(&applied.writes);
        Ok(())
    }

    /// Writes rows into a database that nobody reads yet. What is kept in memory beside RocksDB does not follow, but for where rows begin,
    /// which is forgotten.
    pub(crate) fn load(&self, batch: WriteBatch) -> Result<(), StateFault> {
        self.heads.forget();
        self.building.forget();
        self.rocks.write_opt(batch, &self.write_options).map_err(rocks_fault)
    }

    /// Makes a copy of all that was written so far, by hard links where the file system can.
    pub(crate) fn checkpoint(&self, to: &Path) -> Result<(), StateFault> {
        self.flush()?;
        let checkpoint = rocksdb::checkpoint::Checkpoint::new(&self.rocks).map_err(rocks_fault)?;
        checkpoint.create_checkpoint(to).map_err(rocks_fault)
    }

    /// Makes everything written so far durable.
    pub(crate) fn flush(&self) -> Result<(), StateFault> {
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.rocks.flush_opt(&options).map_err(rocks_fault)
    }

    /// Reads every row and compares the digest with the one in the applied row, if the database is not larger than
    /// `bytes_max`. Gives the reason where they differ.
    pub(crate) fn verify(&self, bytes_max: u64) -> Result<(), StateFault> {
        let record = self.applied()?;
        if self.number("rocksdb.live-sst-files-size")? > bytes_max {
            return Ok(());
        }
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        let mut rows = self.rocks.raw_iterator_opt(options);
        let mut hasher = quorate_machine::keyspace::digest::RowHasher::default();
        let mut digest = 0u128;
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            if quorate_machine::keyspace::digest::covers(key) {
                digest = digest.wrapping_add(hasher.hash(key, value));
            }
            rows.next();
        }
        rows.status().map_err(rocks_fault)?;
        let expected = record.vars.digest();
        if digest != expected {
            return Err(StateFault::new(format!("the rows have digest {digest:032x}, not {expected:032x}")));
        }
        Ok(())
    }

    /// Gives merges as much time as they need to keep up with what is written.
    pub(crate) fn pace_merges(&self) -> Result<(), StateFault> {
        let Some(waiting) = self.rocks.property_value("rocksdb.num-files-at-level0").map_err(rocks_fault)? else {
            return Ok(());
        };
        let waiting = waiting.parse().map_err(|error| StateFault::because("the number of flushed files", error))?;
        self.merge_pace.follow(waiting);
        Ok(())
    }

    /// One of RocksDB's numbers; 0 where it has none.
    pub(crate) fn number(&self, property: &str) -> Result<u64, StateFault> {
        Ok(self.rocks.property_int_value(property).map_err(rocks_fault)?.unwrap_or(0))
    }

    /// Bytes of blocks in memory.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.cache.get_usage() as u64
    }

    /// Whether a write would have to wait for flushes or compactions.
    pub(crate) fn is_stalled(&self) -> Result<bool, StateFault> {
        Ok(self.number("rocksdb.is-write-stopped")? != 0 || self.number("rocksdb.actual-delayed-write-rate")? != 0)
    }
}

/// The rows as of now. Consistent for the one task that writes them, and only for its use.
pub(crate) struct LatestView<'d>(pub(crate) &'d Db);

impl View for LatestView<'_> {
    fn get(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if is_entry(row_key) {
            return self.entry(row_key);
        }
        if self.0.fresh.lock().lacks(row_key) {
            return Ok(None);
        }
        self.0.rocks.get(row_key).map_err(read_fault)
    }

    fn scan(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, false, Most::rows(limit))
    }

    fn scan_back(&self, start: &[u8], end: &[u8], limit: usize) -> Result<Vec<Row>, Fault> {
        self.scan_page(start, end, true, Most::rows(limit))
    }

    fn scan_page(&self, start: &[u8], end: &[u8], reverse: bool, most: Most) -> Result<Vec<Row>, Fault> {
        if reverse {
            let mut rows = Rows(self.0.rocks.raw_iterator_opt(range_options(start, end)));
            rows.seek_to_last();
            return take_page(rows, reverse, most);
        }
        let begin = self.0.heads.begin(start);
        if &*begin >= end {
            return Ok(Vec::new());
        }
        let mut rows = self.0.rocks.raw_iterator_opt(range_options(&begin, end));
        let begun = now();
        rows.seek_to_first();
        rows.status().map_err(read_fault)?;
        let first = rows.key().unwrap_or(end);
        self.0.heads.found(start, first);
        if begun.elapsed() > SLOW_SEEK {
            self.0.heads.found_slowly(start, first);
        }
        take_page(Rows(rows), reverse, most)
    }

    fn no_building_before(&self) -> Option<Vec<u8>> {
        self.0.building.none_before().0
    }

    fn note_no_building_before(&self, row_key: &[u8]) {
        self.0.building.found(row_key);
    }
}

impl LatestView<'_> {
    /// The row of a current entry.
    fn entry(&self, row_key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(recent) = self.0.recent.get(row_key) {
            return Ok(Some(recent.row().to_vec()));
        }
        self.0.rocks.get(row_key).map_err(read_fault)
    }
}

fn open_read_only(dir: &Path, cache_bytes: usize) -> Result<DB, StateFault> {
    let options = options(&new_cache(cache_bytes))?;
    DB::open_for_read_only(&options, dir, false).map_err(|error| match TornEnd::of(dir) {
        Ok(Some(_)) => {
            StateFault::because("a power loss left what its node drops at its next start: start it once", error)
        }
        _ => rocks_fault(error),
    })
}

/// Decodes an applied row; no row is an empty store.
pub(crate) fn decode_applied(row: Option<&[u8]>) -> Result<AppliedRecord, StateFault> {
    match row {
        Some(row) => codec::decode(row).map_err(|error| StateFault::because("the applied row is damaged", error)),
        None => Ok(empty_record()),
    }
}

/// The applied row of a store that has applied nothing.
fn empty_record() -> AppliedRecord {
    let membership = MembershipRecord { configs: Vec::new(), nodes: BTreeMap::new() };
    let membership = StoredMembershipRecord { log_id: None, membership };
    AppliedRecord { log_id: None, membership, vars: Vars::default() }
}

fn write_batch(writes: &[Write], record: &AppliedRecord) -> WriteBatch {
    let applied_row = codec::encode(record);
    let bytes: usize = writes.iter().map(write_bytes).sum();
    let mut batch = WriteBatch::with_capacity_bytes(64 + bytes + applied_row.len());
    for write in writes {
        match write {
            Write::Put { key, value } => batch.put(key, value),
            Write::Delete { key } => batch.delete(key),
            Write::DeleteRange { start, end } => batch.delete_range(start, end),
        }
    }
    batch.put(APPLIED_KEY, applied_row);
    batch
}

/// About what a write takes in a batch.
fn write_bytes(write: &Write) -> usize {
    match write {
        Write::Put { key, value } => 12 + key.len() + value.len(),
        Write::Delete { key } => 8 + key.len(),
        Write::DeleteRange { start, end } => 12 + start.len() + end.len(),
    }
}

/// Whether this is a runtime whose worker threads can be told that one of them is about to block.
fn is_on_worker_of_many() -> bool {
    tokio::runtime::Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread)
}

/// Of the memtables of one node.
fn write_buffer_bytes(node_id: u64) -> usize {
    WRITE_BUFFER_BYTES_MIN + (node_id % WRITE_BUFFER_STEPS) as usize * WRITE_BUFFER_STEP_BYTES
}

fn new_cache(bytes: usize) -> Cache {
    let mut options = LruCacheOptions::default();
    options.set_capacity(bytes);
    options.set_num_shard_bits(BLOCK_CACHE_PARTS_LOG2);
    Cache::new_lru_cache_opts(&options)
}

/// RocksDB for small rows, many point reads that find nothing (request ids, new keys), one writer.
fn options(cache: &Cache) -> Result<Options, StateFault> {
    let mut options = Options::default()
        .get_options_from_string(INSERT_HINTS)
        .map_err(rocks_fault)?
        .get_options_from_string(CLOSE_WITHOUT_FLUSH)
        .map_err(rocks_fault)?;
    // One column family needs no atomic flush; should a second ever be added, forgetting this would corrupt.
    options.set_atomic_flush(true);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES_MAX);
    options.set_max_write_buffer_number(WRITE_BUFFERS_MAX);
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_BLOOM_RATIO);
    options.set_memtable_whole_key_filtering(true);
    options.set_allow_concurrent_memtable_write(false);
    // What was just flushed is soon merged away: only the levels that last are worth compressing.
    options.set_compression_per_level(&[
        DBCompressionType::None,
        DBCompressionType::None,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
        DBCompressionType::Lz4,
    ]);
    // Merging flushed files early was the largest single use of CPU under writes. Reads stay cheap over a dozen files,
    // because point gets ask their filters and listings are short.
    options.set_level_zero_file_num_compaction_trigger(UNMERGED_FILES);
    options.set_level_zero_slowdown_writes_trigger(3 * UNMERGED_FILES);
    options.set_level_zero_stop_writes_trigger(5 * UNMERGED_FILES);
    options.set_max_bytes_for_level_base(WRITE_BUFFER_BYTES_MAX as u64 * UNMERGED_FILES as u64);
    options.set_max_background_jobs(2);
    options.set_bytes_per_sync(1 << 20);
    options.set_max_open_files(OPEN_FILES_MAX);
    // It is read whole when a database is opened.
    options.set_max_manifest_file_size(MANIFEST_BYTES_MAX);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options.set_log_level(LogLevel::Warn);
    options.set_block_based_table_factory(&table_options(cache));
    Ok(options)
}

fn table_options(cache: &Cache) -> BlockBasedOptions {
    let mut options = BlockBasedOptions::default();
    options.set_block_cache(cache);
    options.set_block_size(8 << 10);
    options.set_bloom_filter(10.0, false);
    options.set_optimize_filters_for_memory(true);
    // Counted in the cache, so that memory stays within it however large the state grows.
    options.set_cache_index_and_filter_blocks(true);
    options.set_cache_index_and_filter_blocks_with_high_priority(true);
    options.set_pin_l0_filter_and_index_blocks_in_cache(true);
    // Filter and index of a large file have a megabyte each. Whoever needs a bit of one would read all of it, where it does not stay in the
    // cache: with six million keys a put took thirty times as long.
    options.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    options.set_partition_filters(true);
    options.set_metadata_block_size(FILTER_PART_BYTES);
    options.set_pin_top_level_index_and_filter(true);
    options
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::entry;
    use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

    use super::*;

    /// A state that is much larger than its cache, as one of a hundred million keys is in production.
    #[test]
    fn a_get_reads_little_where_filters_and_indexes_do_not_fit_into_the_cache() {
        const KEYS: u64 = 200_000;
        const GETS: u64 = 1_000;
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(&new_cache(128 << 10)).unwrap();
        options.create_if_missing(true);
        let rocks = DB::open(&options, dir.path()).unwrap();
        let row_key = |number: u64| entry::row_key(format!("key-{number:08}").as_bytes());
        let mut batch = WriteBatch::default();
        (0..KEYS).for_each(|number| batch.put(row_key(number), [7; 40]));
        let mut write_options = WriteOptions::default();
        write_options.disable_wal(true);
        rocks.write_opt(batch, &write_options).unwrap();
        rocks.flush().unwrap();
        rocks.compact_range(None::<&[u8]>, None::<&[u8]>);
        // Those of files that were flushed since the database was opened are pinned.
        drop(rocks);
        let rocks = DB::open(&options, dir.path()).unwrap();
        set_perf_stats(PerfStatsLevel::EnableCount);
        let mut counts = PerfContext::default();
        counts.reset();
        for nth in 0..GETS {
            assert!(rocks.get(row_key(nth * 7_919 % KEYS)).unwrap().is_some());
        }
        let each = counts.metric(PerfMetric::BlockReadByte) / GETS;
        set_perf_stats(PerfStatsLevel::Disable);
        assert!((1_000..64_000).contains(&each), "a get read {each} bytes");
    }
}
