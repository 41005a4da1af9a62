//! Reading entries: from the tail in memory, or else from the database off the async threads.
//!
//! Owns the guarantee that a read is of one moment: entries from before and after a truncation are never mixed, and
//! a hole is an error, never a shorter answer. Never writes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::{Direction, IteratorMode};

use super::{Shared, options, record, tail};
use crate::raft::LogEntry;

/// What a read consists of.
struct Plan {
    /// Must come from the database.
    on_disk: Range<u64>,
    /// Came from memory; follows `on_disk`.
    cached: Vec<LogEntry>,
    epoch: u64,
}

/// Reads the entries of `range` that the log holds, in order. With `bytes_max`, stops before it would be exceeded, but
/// not before the first entry.
pub(super) async fn read(
    shared: &Arc<Shared>,
    range: Range<u64>,
    bytes_max: Option<usize>,
) -> io::Result<Vec<LogEntry>> {
    loop {
        let Plan { on_disk, cached, epoch } = plan(shared, &range, bytes_max);
        if on_disk.is_empty() {
            return Ok(cached);
        }
        let (reader, wanted) = (Arc::clone(shared), on_disk.clone());
        let read = tokio::task::spawn_blocking(move || from_disk(&reader, wanted, bytes_max.unwrap_or(usize::MAX)));
        let mut entries = read.await.map_err(io::Error::other)?.inspect_err(|error| shared.fault.report(error))?;
        let complete = match bytes_max {
            Some(_) => !entries.is_empty(),
            None => entries.len() as u64 == on_disk.end - on_disk.start,
        };
        // A truncation or purge that came in between makes the plan void; there cannot be another at every try.
        let (epoch_now, first) = {
            let view = shared.view.read();
            (view.epoch, view.first)
        };
        if epoch_now != epoch || (!complete && first > on_disk.start) {
            continue;
        }
        if !complete {
            let hole = on_disk.start + entries.len() as u64;
            let error = io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: entry {hole} is missing, the log should hold {on_disk:?}", shared.dir.display()),
            );
            shared.fault.report(&error);
            return Err(error);
        }
        entries.extend(cached);
        return Ok(entries);
    }
}

fn plan(shared: &Shared, range: &Range<u64>, bytes_max: Option<usize>) -> Plan {
    let view = shared.view.read();
    let (start, end) = (range.start.max(view.first), range.end.min(view.next()));
    if start >= end {
        return Plan { on_disk: 0..0, cached: Vec::new(), epoch: view.epoch };
    }
    let split = view.tail.first().clamp(start, end);
    let mut cached = Vec::new();
    // A capped read that starts on disk ends there: it may be short, and its caller comes back for the rest.
    if split < end && (split == start || bytes_max.is_none()) {
        view.tail.read(split, end, bytes_max.unwrap_or(usize::MAX), &mut cached);
    }
    Plan { on_disk: start..split, cached, epoch: view.epoch }
}

/// Reads consecutive entries from `range.start` on, until one is missing or `bytes_max` would be exceeded.
fn from_disk(shared: &Shared, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
    let (start, end) = (record::entry_key(range.start), record::entry_key(range.end));
    let mode = IteratorMode::From(&start, Direction::Forward);
    let rows = shared.db.iterator_opt(mode, options::sequential(end.to_vec()));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for (row, expected) in rows.zip(range) {
        let (key, value) = row.map_err(|error| damaged(shared, expected, &error))?;
        if record::entry_index(&key) != Some(expected) {
            break;
        }
        let entry = shared.stamp.open_entry(expected, Bytes::from(value));
        let entry = entry.map_err(|error| damaged(shared, expected, &error))?;
        bytes += tail::cost(&entry);
        if bytes > bytes_max && !entries.is_empty() {
            break;
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn damaged(shared: &Shared, index: u64, error: &dyn std::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: entry {index}: {error}", shared.dir.display()))
}
