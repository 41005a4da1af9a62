//! Reading entries: from the tail in memory, or else from the segments off the async threads.
//!
//! Owns the guarantee that a read is of one moment: entries from before and after a truncation are never mixed, and
//! a hole is an error, never a shorter answer. Never writes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use quorate_threads::background;

use super::index::{Content, Location};
use super::record::DirectoryTag;
use super::segment::Segment;
use super::{Shared, tail};
use crate::raft::{LogEntry, LogId};

/// Most bytes read at once, unless a single entry is larger.
const SPAN_BYTES_MAX: u64 = 1024 * 1024;

/// What a read consists of.
struct Plan {
    /// Must come from the segments.
    on_disk: Range<u64>,
    /// Came from memory; follows `on_disk`.
    cached: Vec<LogEntry>,
    epoch: u64,
}

/// Reads the entries of `range` that the log holds, in order. With `bytes_max`, stops before it would be exceeded, but
/// not before the first entry; and gives nothing where the first was purged: who reads on in parts would miss what is between.
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
        let read = background::blocking(move || from_disk(&reader, wanted, bytes_max.unwrap_or(usize::MAX)));
        let mut entries = read.await?.inspect_err(|error| shared.fault.report(error))?;
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

/// The id of the entry at an index, where the log holds one. Blocks.
pub(super) fn id_at(shared: &Shared, index: u64) -> io::Result<Option<LogId>> {
    let mut found = Vec::new();
    {
        let view = shared.view.read();
        if !(view.first..view.next()).contains(&index) {
            return Ok(None);
        }
        if index >= view.tail.first() {
            view.tail.read(index, index + 1, usize::MAX, &mut found);
        }
    }
    if found.is_empty() {
        let read = from_disk(shared, index..index + 1, usize::MAX);
        found = read.inspect_err(|error| shared.fault.report(error))?;
    }
    Ok(found.first().map(|entry| entry.log_id))
}

fn plan(shared: &Shared, range: &Range<u64>, bytes_max: Option<usize>) -> Plan {
    let view = shared.view.read();
    let (start, end) = (range.start.max(view.first), range.end.min(view.next()));
    let misses_first = bytes_max.is_some() && start > range.start;
    if misses_first || start >= end {
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
    let run = locations(&shared.content.read(), range, bytes_max);
    read_run(&run, shared.tag)
}

/// An entry that is to be read: its index, its place and its segment, which stays readable while this is held.
pub(super) type Wanted = (u64, Location, Arc<Segment>);

/// Where the entries from `range.start` on are, until one is unknown or `bytes_max` would be exceeded.
pub(super) fn locations(content: &Content, range: Range<u64>, bytes_max: usize) -> Vec<Wanted> {
    let mut bytes = 0;
    let mut wanted = Vec::new();
    for (index, place) in content.index.locations(range) {
        bytes += place.bytes as usize + tail::ENTRY_OVERHEAD_BYTES;
        let Some(segment) = content.segments.get(place.segment) else { break };
        if bytes > bytes_max && !wanted.is_empty() {
            break;
        }
        wanted.push((index, place, Arc::clone(segment)));
    }
    wanted
}

/// Reads and verifies entries, those that stand close together at once.
pub(super) fn read_run(run: &[Wanted], tag: DirectoryTag) -> io::Result<Vec<LogEntry>> {
    let mut entries = Vec::with_capacity(run.len());
    let mut rest = run;
    while let Some((_, first, segment)) = rest.first() {
        let close = rest.iter().take_while(|(_, place, _)| is_close(*first, *place)).count().max(1);
        let (span, behind) = rest.split_at(close);
        let start = u64::from(first.offset);
        let end = span.iter().map(|(_, place, _)| place_end(*place)).max().unwrap_or(start);
        let bytes = segment.read(start, (end - start) as usize).map_err(|error| at(segment, &error))?;
        for (index, place, segment) in span {
            let from = (place.offset - first.offset) as usize;
            // Copied, so that an entry which is kept does not keep the whole span.
            let sealed = Bytes::copy_from_slice(&bytes[from..from + place.bytes as usize]);
            let entry = tag.open_entry(*index, sealed);
            entries.push(entry.map_err(|error| at(segment, &format!("entry {index}: {error}")))?);
        }
        rest = behind;
    }
    Ok(entries)
}

fn place_end(place: Location) -> u64 {
    u64::from(place.offset) + u64::from(place.bytes)
}

/// Whether both are read at once. What is appended later stands further on.
fn is_close(first: Location, other: Location) -> bool {
    let start = u64::from(first.offset);
    other.segment == first.segment && other.offset >= first.offset && place_end(other) - start <= SPAN_BYTES_MAX
}

fn at(segment: &Segment, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", segment.path().display()))
}
