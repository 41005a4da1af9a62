//! A look at a log that nobody has open: all of it, and nothing is changed.
//!
//! Owns what is looked at beyond what opening does: every entry, however old. What opening refuses is refused here too, in the
//! same words.

use std::fs::File;
use std::path::Path;

use super::open_error::LogOpenError;
use super::options::LogOptions;
use super::read;
use super::record::DirectoryTag;
use super::recover::{LOG_DIR, Opening, RUN_BYTES, numbers, take_lock};
use super::walk;
use crate::high_water_mark::{self, MARK_FILE};
use crate::identity::Identity;
use crate::raft::wire::LogIdRecord;

/// What a log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFacts {
    /// Segments, one made ahead of time too.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Index of the first entry, or of the next where there is none.
    pub first: u64,
    /// Index that the next entry gets.
    pub next: u64,
    /// Last purged entry.
    pub purged: Option<LogIdRecord>,
    /// The first entry of each leader, in order.
    pub leaders: Vec<LogIdRecord>,
    /// The last entry, or what was purged last.
    pub last: Option<LogIdRecord>,
    /// What a crash left of a group that nobody was told of.
    pub torn: Option<String>,
}

/// Reads all of the log of `data_dir`. The file that comes along keeps nodes out while it is held. `progress` is told the
/// entries so far.
pub fn inspect(
    data_dir: &Path,
    identity: &Identity,
    progress: &mut dyn FnMut(u64),
) -> Result<(LogFacts, File), LogOpenError> {
    let dir = data_dir.join(LOG_DIR);
    let opening = Opening { data_dir, dir: &dir, identity, tag: DirectoryTag::new(identity) };
    if !dir.is_dir() {
        return Err(opening.damaged("it is missing".to_owned()));
    }
    let lock = take_lock(&dir)?;
    let path = data_dir.join(MARK_FILE);
    let mark = high_water_mark::read(data_dir)
        .map_err(|error| LogOpenError::Damaged { path: path.clone(), reason: error.to_string() })?
        .ok_or_else(|| LogOpenError::Damaged { path: path.clone(), reason: "it is missing".to_owned() })?;
    if mark.incarnation != identity.incarnation {
        return Err(LogOpenError::Damaged { path, reason: "it belongs to another data directory".to_owned() });
    }
    // Opening would make the first segment of a log that never had one.
    if opening.in_dir(numbers(&dir))?.is_empty() {
        return Err(opening.damaged("it holds no segment".to_owned()));
    }
    let segments = opening.segments(&mark, &LogOptions::default())?;
    let (count, bytes) = (segments.len() as u64, segments.iter().map(|segment| segment.capacity()).sum());
    let walked = walk::walk(segments, opening.tag)?;
    let view = opening.view(&walked.content)?;
    opening.check_mark(&mark, &view, &walked)?;
    let (first, next) = (view.first, view.next());
    let mut at = first;
    let mut leaders: Vec<LogIdRecord> = Vec::new();
    while at < next {
        let run = read::locations(&walked.content, at..next, RUN_BYTES);
        let entries = read::read_run(&run, opening.tag).map_err(|error| opening.damaged(error.to_string()))?;
        if entries.is_empty() {
            return Err(opening.damaged(format!("entry {at} is missing")));
        }
        for id in entries.iter().map(|entry| LogIdRecord::from(&entry.log_id)) {
            if leaders.last().is_none_or(|last| (last.term, last.node) != (id.term, id.node)) {
                leaders.push(id);
            }
        }
        at += entries.len() as u64;
        progress(at - first);
    }
    let (purged, last) = (view.purged.as_ref().map(LogIdRecord::from), view.last.as_ref().map(LogIdRecord::from));
    Ok((LogFacts { segments: count, bytes, first, next, purged, leaders, last, torn: walked.torn() }, lock))
}
