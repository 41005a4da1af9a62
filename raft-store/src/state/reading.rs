//! Reading RocksDB: the options of a range, and what a failed read is called.

use quorate_machine::machine::Fault;
use quorate_machine::query::StateFault;
use rocksdb::ReadOptions;

/// Read options for rows of `[start, end)`.
pub(crate) fn range_options(start: &[u8], end: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(start);
    options.set_iterate_upper_bound(end);
    options
}

/// A failed read, in the machine's words.
pub(crate) fn read_fault(error: rocksdb::Error) -> Fault {
    Fault::Read(error.into_string())
}

/// Anything else of the database that failed.
pub(crate) fn rocks_fault(error: rocksdb::Error) -> StateFault {
    StateFault::caused_by(error)
}
