//! Target `backup`: files that are restored from.
//!
//! As they are, a damaged backup is refused whatever was damaged; whatever is read whole is read as the same rows after it was written
//! again. With the checksums put right, rows of nonsense come to an end or to an error, also where a new epoch takes them over.

use std::io::Read;

use quorate_machine::machine::Epoch;
use quorate_store::backup::{BackupEnd, BackupError, BackupHeader, BackupReader, BackupRow, BackupWriter, END_BYTES};
use quorate_store::raft::wire::{LogIdRecord, MembershipRecord, StoredMembershipRecord};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::{assert_explained, memory, samples};

/// A block may be as long as two batches, and is read at once.
const SLACK_BYTES: usize = 16 * 1024 * 1024;
const FIXED_HEAD_BYTES: usize = 20;
const BLOCK_HEAD_BYTES: usize = 32;

type Whole = (BackupHeader, Vec<BackupRow>, BackupEnd);

/// See the head of this file.
pub fn check(data: &[u8]) {
    check_bytes(data);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    check_bytes(&sealed);
}

fn check_bytes(bytes: &[u8]) {
    let read = memory::within(SLACK_BYTES + 64 * bytes.len(), "a backup", || read(bytes));
    match read {
        Err(error) => assert_explained(&error),
        Ok((header, rows, end)) => {
            let (again, written) = write(&header, &rows);
            assert_eq!((written.rows, written.digest), (end.rows, end.digest));
            let (same, same_rows, _) = self::read(&again[..]).expect("what was just written can be read");
            assert!(same == header && same_rows == rows, "other rows after they were written again");
            take_over(&header, rows);
        }
    }
}

fn read(source: impl Read) -> Result<Whole, BackupError> {
    let mut reader = BackupReader::open(source)?;
    let mut rows = Vec::new();
    while let Some(block) = reader.next_block()? {
        rows.extend(block);
    }
    Ok((reader.header().clone(), rows, reader.counted()))
}

fn write(header: &BackupHeader, rows: &[BackupRow]) -> (Vec<u8>, BackupEnd) {
    let mut writer = BackupWriter::new(Vec::new(), header).expect("memory takes it");
    rows.iter().for_each(|(key, value)| writer.row(key, value).expect("memory takes it"));
    writer.finish().expect("memory takes it")
}

/// What a restore does with the rows, before it writes any.
fn take_over(header: &BackupHeader, rows: Vec<BackupRow>) {
    let outcome = Epoch::after(header.vars.clone(), 1).and_then(|mut epoch| {
        for (key, value) in rows {
            epoch.take(&key, value)?;
        }
        epoch.finish()
    });
    if let Err(error) = outcome {
        assert_explained(&error);
    }
}

/// Puts the checksums right, as far as the parts can be found.
fn seal(bytes: &mut [u8]) {
    let Some(header) = number(bytes, 16) else { return };
    let mut at = FIXED_HEAD_BYTES.saturating_add(header);
    if at.saturating_add(8) > bytes.len() {
        return;
    }
    let sum = xxh3_64(&bytes[..at]);
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    at += 8;
    while let Some(length) = number(bytes, at + 20).filter(|_| at + END_BYTES < bytes.len()) {
        let (start, end) = (at + BLOCK_HEAD_BYTES, (at + BLOCK_HEAD_BYTES).saturating_add(length));
        if end > bytes.len() {
            return;
        }
        let mut hasher = Xxh3::new();
        hasher.update(&bytes[at..at + 24]);
        hasher.update(&bytes[start..end]);
        let sum = hasher.digest();
        bytes[at + 24..at + 32].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    let Some(covered) = bytes.len().checked_sub(16) else { return };
    let sum = xxh3_128(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&sum.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().expect("four bytes are four bytes")) as usize)
}

/// Backups of nothing, of some rows of each family, and of some more.
pub fn samples() -> Vec<Vec<u8>> {
    let life = samples::life();
    let membership = MembershipRecord { configs: vec![[1, 2].into()], nodes: Default::default() };
    let header = BackupHeader {
        cluster_id: 7,
        node_id: 1,
        node_version: "0.1.0".into(),
        taken_at: samples::WALL,
        log_id: Some(LogIdRecord { term: 3, node: 1, index: 99 }),
        membership: StoredMembershipRecord { log_id: None, membership },
        vars: life.vars,
    };
    let mut kept: Vec<_> = life.rows.into_iter().filter(|(key, _)| quorate_store::backup::is_kept(key)).collect();
    kept.retain(|(_, value)| value.len() < 200);
    let backup = |rows: &[BackupRow]| write(&header, rows).0;
    let some = kept.len().min(20);
    let mut all = vec![backup(&[]), backup(&kept[..1]), backup(&kept[..some]), backup(&kept[kept.len() - some..])];
    let mut second = BackupHeader { log_id: None, ..header.clone() };
    second.vars.buckets.clear();
    all.push(write(&second, &kept[..some / 2]).0);
    all.retain(|sample| sample.len() <= super::replay::FILE_BYTES_MAX);
    all
}
