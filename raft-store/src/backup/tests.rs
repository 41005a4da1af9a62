//! What a backup is read as, and that nothing but a whole one is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quorate_machine::keyspace::family;
use quorate_machine::trailer;

use super::*;
use crate::raft::wire::MembershipRecord;

fn header() -> BackupHeader {
    let membership = MembershipRecord { configs: Vec::new(), nodes: BTreeMap::new() };
    BackupHeader {
        cluster_id: 7,
        node_id: 1,
        node_version: "0.1.0".into(),
        taken_at: 1_700_000_000_000,
        log_id: Some(LogIdRecord { term: 3, node: 1, index: 99 }),
        membership: StoredMembershipRecord { log_id: None, membership },
        vars: Vars { revision: 42, ..Vars::default() },
    }
}

fn written(rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut writer = BackupWriter::new(Vec::new(), &header()).unwrap();
    rows.iter().for_each(|(key, value)| writer.row(key, value).unwrap());
    let (bytes, end) = writer.finish().unwrap();
    assert_eq!((end.rows, end.revision), (rows.len() as u64, 42));
    assert_eq!(end.digest, quorate_machine::keyspace::digest::of_rows(rows.iter()));
    bytes
}

fn read(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, BackupError> {
    let mut reader = BackupReader::open(bytes)?;
    assert_eq!(reader.header(), &header());
    let mut rows = BTreeMap::new();
    while let Some(block) = reader.next_block()? {
        rows.extend(block);
    }
    Ok(rows)
}

fn small() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let row = |family: u8, n: u8| (vec![family, n], vec![n; 5]);
    (0..4).map(|n| row(family::ENTRY, n)).chain([row(family::SEQUENCE, 1), row(family::TASK, 2)]).collect()
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were(
        rows in prop::collection::btree_map(
            (prop::sample::select(vec![family::ENTRY, family::DEADLINE, family::LATCH, family::QUEUE]),
             prop::collection::vec(any::<u8>(), 0..40)),
            prop::collection::vec(any::<u8>(), 0..60), 0..60),
    ) {
        let rows = rows.into_iter().map(|((family, mut key), value)| { key.insert(0, family); (key, value) }).collect();
        prop_assert_eq!(read(&written(&rows)).unwrap(), rows);
    }
}

#[test]
fn rows_of_many_blocks_and_of_the_largest_size_come_back() {
    let large = vec![7; quorate_machine::limits::VALUE_BYTES_MAX];
    let mut rows: BTreeMap<_, _> =
        (0..2_000u32).map(|n| ([&[family::ENTRY][..], &n.to_be_bytes()].concat(), vec![n as u8; 500])).collect();
    rows.insert(vec![family::ENTRY, 0, 0, 1], large.clone());
    rows.insert(vec![family::TASK, 1], large);
    let bytes = written(&rows);
    assert_eq!(read(&bytes).unwrap(), rows);
    let mut told = Vec::new();
    let (_, end) = BackupReader::open(&bytes[..]).unwrap().verify(|at| told.push(at)).unwrap();
    assert!(end.blocks > 4 && told.is_sorted() && told.len() as u64 == end.blocks, "{end:?} {told:?}");
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = written(&small());
    assert_eq!(read(&bytes).unwrap(), small());
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let error = read(&damaged).expect_err(&format!("bit {bit} of byte {at} went unnoticed"));
            assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn a_backup_cut_at_any_length_is_refused_and_says_so() {
    let bytes = written(&small());
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).expect_err("cut, and taken for whole");
        match error {
            BackupError::CutShort { at, .. } => assert_eq!(at, length as u64),
            BackupError::NotABackup if length == 0 => {}
            other => panic!("cut to {length}: {other}"),
        }
    }
}

#[test]
fn what_follows_the_end_or_is_something_else_is_refused() {
    let mut bytes = written(&small());
    bytes.push(0);
    assert!(matches!(read(&bytes), Err(BackupError::Damaged { .. })));
    assert!(matches!(read(b"hello"), Err(BackupError::NotABackup)));
    assert!(matches!(read(&vec![b'x'; 500]), Err(BackupError::NotABackup)));
}

#[test]
fn what_tools_of_etcd_want_behind_the_end_may_stand_there() {
    let rows = small();
    let mut bytes = written(&rows);
    bytes.resize(bytes.len() + trailer::sector_rest(bytes.len() as u64), 0);
    assert_eq!(bytes.len() % 512, 0);
    let zeros_only = bytes.clone();
    bytes.extend([7; 32]);
    assert_eq!(read(&bytes).expect("it is whole"), rows);
    let more = [&bytes[..], &[0]].concat();
    let mut no_zeros = bytes.clone();
    no_zeros[zeros_only.len() - 1] = 1;
    for other in [zeros_only, more, no_zeros] {
        assert!(read(&other).unwrap_err().to_string().contains("bytes behind its end"));
    }
}

#[test]
fn another_format_is_refused_by_its_number() {
    let bytes = written(&small());
    let rows = u32::from(quorate_machine::codec::FORMAT_VERSION);
    // What a build writes that comes after this one, and one of long ago.
    for (at, found, words) in [
        (8, BACKUP_FORMAT + 1, "the backup has format"),
        (8, 0, "the backup has format"),
        (12, rows + 1, "the rows of the backup have format"),
        (12, 0, "the rows of the backup have format"),
    ] {
        let known = if at == 8 { BACKUP_FORMAT } else { rows };
        let mut other = bytes.clone();
        other[at..at + 4].copy_from_slice(&u32::to_le_bytes(found));
        // Whole for who knows it: it is not taken for damaged.
        let head = frame::FIXED_HEAD_BYTES + u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
        let checksum = xxhash_rust::xxh3::xxh3_64(&other[..head]);
        other[head..head + 8].copy_from_slice(&checksum.to_le_bytes());
        let error = read(&other).expect_err("another format was read").to_string();
        let sentence =
            format!("{words} {found}, this build reads version {known}; restore with the version that took the backup");
        assert_eq!(error, sentence);
    }
}

#[test]
fn a_block_that_stands_twice_or_is_missing_is_refused() {
    let rows: BTreeMap<_, _> =
        (0..1_500u32).map(|n| ([&[family::ENTRY][..], &n.to_be_bytes()].concat(), vec![1; 500])).collect();
    let bytes = written(&rows);
    let blocks: Vec<usize> = (0..bytes.len() - 8).filter(|at| bytes[*at..at + 8] == frame::BLOCK_MAGIC).collect();
    assert!(blocks.len() > 2, "{blocks:?}");
    let (first, second) = (blocks[0], blocks[1]);
    let without = [&bytes[..first], &bytes[second..]].concat();
    let twice = [&bytes[..second], &bytes[first..]].concat();
    for wrong in [without, twice] {
        assert!(matches!(read(&wrong), Err(BackupError::Damaged { .. })));
    }
}
