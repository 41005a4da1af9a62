//! A log that two builds write in turn, the newer of which knows a format that only tests know.

use std::path::Path;
use std::sync::Arc;

use openraft::storage::RaftLogStorageExt;

use super::*;
use crate::raft::EncodedBatch;

const SEGMENT_BYTES: u64 = 64 * 1024;

fn identity() -> Identity {
    Identity { cluster_id: None, node_id: 3, incarnation: 0x1234 }
}

fn open(dir: &Path, format: u32) -> LogStore {
    let options = LogOptions { segment_bytes: SEGMENT_BYTES, format, disk: None };
    LogStore::open_with(dir, &identity(), &options, Arc::new(|fault| panic!("{fault}"))).expect("it opens")
}

fn entries(range: std::ops::Range<u64>) -> Vec<LogEntry> {
    let entry = |index: u64| LogEntry {
        log_id: LogIdRecord { term: 1, node: 3, index }.into(),
        payload: openraft::EntryPayload::Normal(EncodedBatch(vec![index as u8; 9_000].into())),
    };
    range.map(entry).collect()
}

/// Formats of the segments in a directory, in order.
fn formats(dir: &Path) -> Vec<u8> {
    let log = dir.join(LOG_DIR);
    let numbers = recover::numbers(&log).expect("there is a log");
    numbers.into_iter().map(|number| std::fs::read(log.join(segment::name(number))).expect("readable")[12]).collect()
}

#[test]
fn segments_of_two_versions_are_one_log_and_either_build_goes_on_with_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut next = 1;
    // The build of before, the newer one, and back again.
    for format in [1, 2, 1] {
        let mut log = open(dir.path(), format);
        assert_eq!(log.last_index(), next - 1);
        runtime.block_on(async {
            log.blocking_append(entries(next..next + 40)).await.expect("appended");
            next += 40;
            assert_eq!(log.reader().read(1..next).await.expect("readable"), entries(1..next), "format {format}");
        });
        log.close();
    }
    let found = formats(dir.path());
    assert!(found.contains(&1) && found.contains(&2), "{found:?}");
    let facts = inspect(dir.path(), &identity(), &mut |_| {}).expect("a check reads both").0;
    assert_eq!((facts.first, facts.next), (1, next));
}
