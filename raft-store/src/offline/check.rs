//! A look at a whole data directory: marker, log, state, snapshots, and that they fit together.
//!
//! Owns the order and the words. Reads only; but for the lock of the log, which keeps nodes out meanwhile, nothing is touched.

use std::io;
use std::path::Path;

use super::check_state::{self, Findings};
use super::{OfflineError, staging};
use crate::adapters::start::{self, LogPositions, Unfit};
use crate::identity::{self, Identity};
use crate::log::{self, LogFacts};
use crate::meta::AppliedRecord;
use crate::raft::wire::{LogIdRecord, SnapshotMetaRecord};
use crate::state::{Home, SnapshotHandle, UNFINISHED_PREFIX, file_checksum, newest_snapshot};

/// What was looked at, and what is wrong.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// What was looked at, a line each.
    pub looked: Vec<String>,
    /// What is wrong, a sentence each; none for a sound directory.
    pub faults: Vec<String>,
}

/// Checks a data directory. An error is only what keeps it from being looked at; damage is in the report. `progress` is
/// told what is being looked at, and how many of it were seen.
pub fn check(data_dir: &Path, mut progress: impl FnMut(&'static str, u64)) -> Result<CheckReport, OfflineError> {
    let mut report = CheckReport::default();
    if staging::is_interrupted(data_dir) {
        report.faults.push("a restore or recovery was interrupted; run `quorate-node recover` on it again".into());
        return Ok(report);
    }
    let identity = match identity::read(data_dir) {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            return Err(OfflineError::Refused(format!("{} holds no node: there is no marker", data_dir.display())));
        }
        Err(error) => {
            report.faults.push(error.to_string());
            return Ok(report);
        }
    };
    let cluster = identity.cluster_id.map_or("none yet".to_owned(), |id| format!("{id:032x}"));
    report.looked.push(format!("identity: node {} of cluster {cluster}", identity.node_id));
    let (facts, _lock) = match log::inspect(data_dir, &identity, &mut |entries| progress("log entries", entries)) {
        Ok((facts, lock)) => (Some(facts), Some(lock)),
        Err(error @ log::LogOpenError::InUse { .. }) => return Err(error.into()),
        Err(error) => {
            report.faults.push(error.to_string());
            (None, None)
        }
    };
    report.looked.extend(facts.as_ref().map(log_line));
    let home = Home(data_dir.join("state"));
    let snapshot = newest_snapshot(&home.snapshots()).map_err(OfflineError::at(&home.snapshots()))?;
    let snapshot = snapshot.map(|snapshot| snapshot.manifest().meta.clone());
    if let Some(record) = check_state(&home, &mut report, &mut progress) {
        check_positions(&identity, &mut report, facts.as_ref(), &record, snapshot.as_ref());
    }
    check_snapshots(&home, &mut report, &mut progress)?;
    Ok(report)
}

fn log_line(facts: &LogFacts) -> String {
    let LogFacts { segments, bytes, first, next, torn, .. } = facts;
    let range = if first == next {
        format!("no entries, the next is {next}")
    } else {
        format!("entries {first} to {}", next - 1)
    };
    let torn = torn.as_ref().map_or(String::new(), |torn| format!("; a group that was never acknowledged: {torn}"));
    format!("log: {segments} segments of {bytes} bytes, {range}{torn}")
}

/// Looks at the state by itself; gives how far it has come.
fn check_state(
    home: &Home,
    report: &mut CheckReport,
    progress: &mut impl FnMut(&'static str, u64),
) -> Option<AppliedRecord> {
    let live = match home.live() {
        Ok(live) => live,
        Err(error) => {
            report.faults.push(error.to_string());
            return None;
        }
    };
    let found = match check_state::check(&live, |rows| progress("rows of the state", rows)) {
        Ok(found) => found,
        Err(fault) => {
            report.faults.push(format!("{}: {fault}", live.display()));
            return None;
        }
    };
    let Findings { counts, faults, more_faults, record } = found;
    report.faults.extend(faults.into_iter().map(|fault| format!("{}: {fault}", live.display())));
    if more_faults > 0 {
        report.faults.push(format!("{}: and {more_faults} faults more", live.display()));
    }
    let record = record?;
    let rows: u64 = counts.iter().map(|(_, rows)| rows).sum();
    let applied = record.log_id.map_or(0, |id| id.index);
    let (revision, digest) = (record.vars.revision, record.vars.digest());
    report
        .looked
        .push(format!("state: {rows} rows, up to log entry {applied}, revision {revision}, digest {digest:032x}"));
    report.looked.extend(counts.into_iter().map(|(name, rows)| format!("  {rows} {name}")));
    Some(record)
}

/// Looks whether log, state and snapshot are of one history, by what a start goes by.
fn check_positions(
    identity: &Identity,
    report: &mut CheckReport,
    log: Option<&LogFacts>,
    state: &AppliedRecord,
    snapshot: Option<&SnapshotMetaRecord>,
) {
    let of_disk = start::check_disk(state.log_id, snapshot, identity);
    report.faults.extend(of_disk.err().map(|unfit| unfit.to_string()));
    let Some(log) = log else { return };
    match start::judge(log, state.log_id, snapshot.and_then(|meta| meta.last_log_id)) {
        Ok(start) if start > state.log_id => {
            let (applied, start) = (state.log_id.map_or(0, |id| id.index), start.map_or(0, |id| id.index));
            report.looked.push(format!(
                "the state ends at entry {applied}: a snapshot up to entry {start} takes its place at the next start"
            ));
        }
        Ok(_) => {}
        Err(Unfit::Gap { applied, purged }) => {
            report.faults.push(format!("the log begins after entry {purged}, the state ends at entry {applied}"));
        }
        Err(unfit) => report.faults.push(unfit.to_string()),
    }
}

impl LogPositions for LogFacts {
    fn bounds(&self) -> (Option<LogIdRecord>, Option<LogIdRecord>) {
        (self.purged, self.last)
    }

    fn at(&self, index: u64) -> io::Result<Option<LogIdRecord>> {
        let leader = self.leaders.iter().rev().find(|first| first.index <= index);
        Ok(leader.filter(|_| index < self.next).map(|first| LogIdRecord { index, ..*first }))
    }
}

fn check_snapshots(
    home: &Home,
    report: &mut CheckReport,
    progress: &mut impl FnMut(&'static str, u64),
) -> Result<(), OfflineError> {
    let dir = home.snapshots();
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(&dir).map_err(OfflineError::at(&dir))? {
        let path = entry.map_err(OfflineError::at(&dir))?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED_PREFIX)) {
            report.looked.push(format!("snapshot: {} is unfinished and will be removed", path.display()));
            continue;
        }
        let snapshot = match SnapshotHandle::load(path.clone()) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                report.faults.push(error.to_string());
                continue;
            }
        };
        let manifest = snapshot.manifest();
        for (number, file) in (1..).zip(&manifest.files) {
            let path = path.join(&file.name);
            match file_checksum(&path) {
                Ok((_, checksum)) if checksum == file.checksum => {}
                Ok((_, checksum)) => report.faults.push(format!(
                    "{}: checksum {checksum:016x} where the snapshot's manifest says {:016x}",
                    path.display(),
                    file.checksum
                )),
                Err(error) => report.faults.push(error.to_string()),
            }
            progress("files of snapshots", number);
        }
        let (files, bytes, index) = (manifest.files.len(), manifest.total_bytes(), manifest.index());
        report.looked.push(format!("snapshot: up to log entry {index}, {files} files of {bytes} bytes"));
    }
    Ok(())
}
