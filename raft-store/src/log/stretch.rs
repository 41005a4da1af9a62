//! A stretch of the log for whoever keeps it elsewhere.
//!
//! Owns the answer to what stands before the stretch, so that its reader can tell whether two of them belong together.

use std::io;

use super::LogReader;
use crate::raft::LogEntry;
use crate::raft::wire::LogIdRecord;

/// Entries that follow one another.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The entry before the first; `None` where the first is that of the log.
    pub before: Option<LogIdRecord>,
    /// The entries; none where there are none yet.
    pub entries: Vec<LogEntry>,
}

impl LogReader {
    /// The entries from `first` on that the log holds, up to `last` and up to `bytes_max`, but at least one if there is one; `None` where
    /// some of them, or the one before, were purged. Those beyond what was applied may still be exchanged for others.
    pub async fn stretch(&self, first: u64, last: u64, bytes_max: usize) -> io::Result<Option<Stretch>> {
        let before = match first.checked_sub(1) {
            None => None,
            Some(index) => {
                let purged = self.shared.view.read().purged;
                let purged = purged.as_ref().map(LogIdRecord::from).filter(|purged| purged.index == index);
                let read = self.read_some(index..first, 1).await?;
                match purged.or_else(|| read.first().map(|entry| LogIdRecord::from(&entry.log_id))) {
                    Some(id) => Some(id),
                    None => return Ok(None),
                }
            }
        };
        if first > last {
            return Ok(Some(Stretch { before, entries: Vec::new() }));
        }
        let entries = self.read_some(first..last + 1, bytes_max).await?;
        // It may have been purged meanwhile.
        let is_whole = entries.first().is_some_and(|entry| entry.log_id.index == first);
        Ok(is_whole.then_some(Stretch { before, entries }))
    }
}
