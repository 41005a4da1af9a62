//! openraft's view of the log: [`RaftLogStorage`] for [`LogStore`], [`RaftLogReader`] for [`LogReader`].
//!
//! Owns the translation of ranges and the sizes of reads. Never does I/O of its own: `crate::log` does.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, Range, RangeBounds};

use futures::Stream;
use futures::stream::{self, TryStreamExt};
use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};

use crate::log::{LogReader, LogStore};
use crate::raft::{LogEntry, LogId, TypeConfig, Vote};

/// Most bytes of entries read at once, for replication and for apply: several batches, yet small enough to send in
/// one frame and to hold for each follower. A larger entry is read alone.
const READ_BYTES_MAX: usize = 1024 * 1024;

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let (last_purged_log_id, last_log_id) = self.bounds();
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        self.reader()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        LogStore::save_vote(self, vote).await
    }

    // `save_committed` is left to its default, which forgets. It is called before every apply, so it must cost nothing;
    // a committed id that outlived the entries it speaks of would keep the node from starting; and nothing needs it:
    // the state knows what it applied, the rest is applied again once a leader says what is committed, and reads wait
    // for that.

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LogEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        LogStore::append(self, entries.into_iter().collect(), callback).await
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> Result<(), io::Error> {
        LogStore::truncate_after(self, last_log_id).await
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        LogStore::purge(self, log_id).await
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = Result<LogEntry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let reader = self.clone();
        let chunks = stream::try_unfold((reader, half_open(&range)), |(reader, range)| async move {
            let chunk = reader.read_some(range.clone(), READ_BYTES_MAX).await?;
            let Some(last) = chunk.last() else { return Ok::<_, io::Error>(None) };
            let rest = last.log_id.index + 1..range.end;
            Ok(Some((stream::iter(chunk.into_iter().map(Ok)), (reader, rest))))
        });
        // Boxed, as openraft wants it `Unpin`.
        Box::pin(chunks.try_flatten())
    }

    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<LogEntry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.read(half_open(&range)).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.vote())
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<LogEntry>, io::Error> {
        self.read_some(start..end, READ_BYTES_MAX).await
    }
}

/// Converts any range of indexes to `start..end`.
fn half_open(range: &impl RangeBounds<u64>) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}
