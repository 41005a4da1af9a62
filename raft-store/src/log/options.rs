//! RocksDB settings of the log, each with its reason.
//!
//! Owns how the database is opened, and nothing of what is in it.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRecoveryMode, LogLevel, Options,
    ReadOptions, WriteOptions,
};

/// Column family of the vote, the purge mark and the format version.
pub const META_CF: &str = "meta";

/// One memtable, hence one WAL file, hence one flushed file. Bounds what a restart replays and the memory held.
pub const WRITE_BUFFER_BYTES: usize = 32 * 1024 * 1024;

/// Memtables before writes wait for a flush.
pub const WRITE_BUFFERS_MAX: usize = 3;

/// Opens the database; makes it only where `create` is set, so that a deleted one is never silently made anew.
pub fn open(dir: &Path, create: bool) -> Result<DB, rocksdb::Error> {
    let families = [
        ColumnFamilyDescriptor::new(rocksdb::DEFAULT_COLUMN_FAMILY_NAME, entries_options()),
        ColumnFamilyDescriptor::new(META_CF, Options::default()),
    ];
    DB::open_cf_descriptors(&database_options(create), dir, families)
}

fn database_options(create: bool) -> Options {
    let mut options = Options::default();
    options.create_if_missing(create);
    options.create_missing_column_families(create);
    options.set_paranoid_checks(true);
    // A record that was being written when the power went is dropped, anything else wrong with the WAL refuses to
    // open. RocksDB's default, point in time, would drop everything after a flipped bit without a word.
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    // A recycled WAL ends in old records, which that mode cannot tell from damage.
    options.set_recycle_log_file_num(0);
    // WALs that are closed but still needed are listed with their synced size.
    options.set_track_and_verify_wals_in_manifest(true);
    // A vote in an old WAL would keep it for ever, since votes alone never fill a memtable.
    options.set_max_total_wal_size(4 * WRITE_BUFFER_BYTES as u64);
    // Spreads the write-back of flushed files, so that their final sync does not hold up ours.
    options.set_bytes_per_sync(1024 * 1024);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(4 * 1024 * 1024);
    options.set_log_level(LogLevel::Warn);
    options.set_stats_dump_period_sec(0);
    options
}

fn entries_options() -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_max_write_buffer_number(WRITE_BUFFERS_MAX as i32);
    // Files never overlap, so each leaves level 0 by a mere rename in the manifest; a purge deletes only files that
    // have left it.
    options.set_level_zero_file_num_compaction_trigger(1);
    options.set_target_file_size_base(2 * WRITE_BUFFER_BYTES as u64);
    // Most entries are purged before they are ever flushed twice: compressing them is wasted time.
    options.set_compression_type(DBCompressionType::None);
    let mut table = BlockBasedOptions::default();
    // Read in sequence, if at all: larger blocks, and next to no cache, as the tail in memory is the cache.
    table.set_block_size(64 * 1024);
    table.set_block_cache(&Cache::new_lru_cache(4 * 1024 * 1024));
    options.set_block_based_table_factory(&table);
    options
}

/// For the writer thread: it syncs by itself, once for each group.
pub fn unsynced() -> WriteOptions {
    WriteOptions::default()
}

/// For reading a run of entries up to, not including, the key `end`.
pub fn sequential(end: Vec<u8>) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options.fill_cache(false);
    options.set_iterate_upper_bound(end);
    options
}
