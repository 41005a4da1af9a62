//! A whole state that was taken, and the log behind it, applied up to a point: the state is what the node had there.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use quorate_machine::types::Revision;
use quorate_store::backup::{BackupReader, Content, Taker};
use quorate_store::offline::{Replay, ReplayError, Until};
use quorate_store::raft::LogEntry;
use quorate_store::raft::wire::{LogIdRecord, encode_entry};
use quorate_store::state::StateReader;

use crate::state_support::*;

/// The base is taken after this entry.
const BASE: u64 = 150;
const LAST: u64 = 400;

fn taker() -> Taker {
    Taker { cluster_id: 77, node_id: 1, node_version: "test".into(), now: 5 }
}

fn encoded(entries: &[LogEntry]) -> Vec<Bytes> {
    let encode = |entry: &LogEntry| {
        let mut bytes = BytesMut::new();
        encode_entry(entry, &mut bytes);
        bytes.freeze()
    };
    entries.iter().map(encode).collect()
}

/// The workload, and at its end an entry of five changes.
fn entry(index: u64) -> LogEntry {
    if index != LAST {
        return workload_entry(index);
    }
    let changes: Vec<_> = (0..5).map(|n| put(format!("within/{n}"), "new")).collect();
    batch(LAST, LAST * 700, &changes)
}

fn entries(first: u64, last: u64) -> Vec<LogEntry> {
    (first..=last).map(entry).collect()
}

fn before(index: u64) -> Option<LogIdRecord> {
    index.checked_sub(1).map(|index| LogIdRecord { term: 1, node: 1, index })
}

fn whole(reader: &StateReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.take_whole(taker(), |_, whole| whole.write(&mut bytes)).unwrap().unwrap();
    bytes
}

/// A base, and what a node that applied everything had after each entry: revision, wall clock, digest.
struct Original {
    base: Vec<u8>,
    after: Vec<(Revision, u64, u128)>,
    /// A backup of it as it was in the end.
    taken: Vec<u8>,
}

fn original(dir: &Path) -> Original {
    original_of(dir, entry, BASE, LAST)
}

fn original_of(dir: &Path, entry: impl Fn(u64) -> LogEntry, base_at: u64, last: u64) -> Original {
    let (mut state, reader) = open(dir);
    let mut after = Vec::new();
    let mut base = Vec::new();
    runtime().block_on(async {
        for index in 0..=last {
            apply(&mut state, vec![entry(index)]).await;
            let applied = reader.applied();
            after.push((applied.at.revision, applied.wall, applied.digest));
            if index == base_at {
                base = whole(&reader);
            }
        }
    });
    let (taken, _) = reader.back_up(taker(), Vec::new(), |_| {}).unwrap();
    Original { base, after, taken }
}

fn begun(dir: &Path, base: &[u8]) -> Replay {
    Replay::begin(dir, base, |_| {}).expect("the base is whole")
}

fn state_at(replay: &Replay) -> (Revision, u64, u128) {
    let at = replay.at();
    (at.revision, at.wall, at.digest)
}

#[test]
fn all_entries_behind_a_base_give_the_state_of_the_node_row_for_row() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original(old.path());
    let mut replay = begun(new.path(), &base);
    assert_eq!(state_at(&replay), after[BASE as usize]);
    // The first piece begins within the base, as after a failover; the next ones overlap.
    for (first, last) in [(140, 160), (155, 170), (171, 171), (172, 300), (250, LAST)] {
        replay.apply(before(first), &encoded(&entries(first, last)), Until::End).unwrap();
        assert_eq!(state_at(&replay), after[last as usize], "after entry {last}");
    }
    assert!(!replay.at().is_reached);
    assert_eq!(replay.at().log_id.index, LAST);
}

#[test]
fn a_time_takes_what_was_written_until_then() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original(old.path());
    let index = 222;
    let wall = after[index].1;
    for (wanted, expected) in [(wall, index), (wall + 1, index), (wall - 1, index - 1)] {
        let dir = new.path().join(wanted.to_string());
        std::fs::create_dir(&dir).unwrap();
        let mut replay = begun(&dir, &base);
        replay.apply(before(151), &encoded(&entries(151, 200)), Until::Wall(wanted)).unwrap();
        assert!(!replay.at().is_reached);
        replay.apply(before(201), &encoded(&entries(201, LAST)), Until::Wall(wanted)).unwrap();
        assert_eq!(state_at(&replay), after[expected], "{wanted}");
        assert!(replay.at().is_reached);
        // What comes behind the point changes nothing.
        replay.apply(before(LAST + 1), &encoded(&entries(LAST + 1, LAST + 9)), Until::Wall(wanted)).unwrap();
        assert_eq!(state_at(&replay), after[expected]);
    }
}

const DAY: u64 = 86_400_000;
/// The last entry of a log whose clock goes ahead, and its base.
const AHEAD_LAST: u64 = 30;
const AHEAD_BASE: u64 = 5;

/// One a second, the clock of which is a day ahead from the 11th to the 18th.
fn ahead_entry(index: u64) -> LogEntry {
    let ahead = if (11..=18).contains(&index) { DAY } else { 0 };
    match index {
        0 => blank(0),
        _ => batch(index, 1_000 * index + ahead, &[put(format!("key/{index}"), "value")]),
    }
}

fn ahead_entries(first: u64, last: u64) -> Vec<Bytes> {
    encoded(&(first..=last).map(ahead_entry).collect::<Vec<_>>())
}

#[test]
fn a_time_goes_on_behind_a_clock_that_was_a_day_ahead_and_came_back() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original_of(old.path(), ahead_entry, AHEAD_BASE, AHEAD_LAST);
    let wall_of = |index: usize| after[index].1;
    assert!(wall_of(11) > wall_of(10) + DAY && wall_of(19) < wall_of(11), "it is walked back");
    let cases = [
        (wall_of(10), 10),
        (wall_of(10) + 4_000, 10),
        (wall_of(19), 19),
        (wall_of(25) + 500, 25),
        (wall_of(30), 30),
        // Once that time had come again it would be all that came until then.
        (wall_of(14), 30),
    ];
    for (wanted, expected) in cases {
        for pieces in [&[(6, 30)][..], &[(6, 9), (10, 30)][..], &[(6, 20), (10, 30)][..]] {
            let dir = tempfile::tempdir_in(new.path()).unwrap();
            let mut replay = begun(dir.path(), &base);
            let (last, earlier) = pieces.split_last().unwrap();
            for (first, end) in earlier {
                let until = Until::Index(last.0 - 1);
                replay.apply(before(*first), &ahead_entries(*first, *end), until).unwrap();
                assert!(!replay.at().is_reached && replay.at().log_id.index == last.0 - 1);
            }
            replay.apply(before(last.0), &ahead_entries(last.0, last.1), Until::Wall(wanted)).unwrap();
            assert_eq!(state_at(&replay), after[expected], "{wanted}, {pieces:?}");
            assert_eq!(replay.at().is_reached, expected < 30);
        }
    }
}

#[test]
fn entries_that_hold_no_moment_up_to_a_time_are_refused() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original_of(old.path(), ahead_entry, AHEAD_BASE, AHEAD_LAST);
    let mut replay = begun(new.path(), &base);
    replay.apply(before(6), &ahead_entries(6, 12), Until::End).unwrap();
    let refused = replay.apply(before(13), &ahead_entries(13, 16), Until::Wall(after[10].1));
    assert!(matches!(refused, Err(ReplayError::Broken(_))), "{refused:?}");
    assert_eq!(state_at(&replay), after[12]);
    assert!(!replay.at().is_reached);
}

#[test]
fn every_revision_can_be_reached_also_those_within_an_entry() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original(old.path());
    let (from, to) = (after[LAST as usize - 1].0, after[LAST as usize].0);
    assert_eq!(to, from + 5);
    for wanted in from - 3..=to {
        let dir = new.path().join(wanted.to_string());
        std::fs::create_dir(&dir).unwrap();
        let mut replay = begun(&dir, &base);
        replay.apply(before(151), &encoded(&entries(151, LAST)), Until::Revision(wanted)).unwrap();
        let at = replay.at();
        assert!(at.is_reached && at.revision <= wanted, "{wanted}: {at:?}");
        let known = after.iter().find(|(revision, ..)| *revision == at.revision);
        assert!(known.is_none_or(|(.., digest)| *digest == at.digest), "{wanted}");
        let entry = |n: u64| replay.reader().get(&key(format!("within/{n}"))).unwrap().entry;
        for n in 0..5 {
            let expected = (from + n < wanted).then_some(from + n + 1);
            assert_eq!(entry(n).map(|entry| entry.meta.mod_revision), expected, "{wanted} {n}");
        }
        if wanted >= from {
            assert_eq!(at.revision, wanted);
        }
    }
}

#[test]
fn a_backup_of_a_point_is_that_of_the_cluster_then() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, taken, .. } = original(old.path());
    let mut replay = begun(new.path(), &base);
    replay.apply(before(151), &encoded(&entries(151, LAST)), Until::End).unwrap();
    let mut made = Vec::new();
    replay.back_up("test", &mut made).unwrap();
    let rows = |bytes: &[u8]| {
        let (header, end) = BackupReader::open(bytes).unwrap().verify(|_| {}).unwrap();
        (header.log_id, header.vars, end)
    };
    assert_eq!(rows(&made), rows(&taken));
}

#[test]
fn what_does_not_follow_is_refused_and_changes_nothing() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, after, .. } = original(old.path());
    let mut replay = begun(new.path(), &base);
    let broken = |replay: &mut Replay, before, entries: &[LogEntry]| {
        let error = replay.apply(before, &encoded(entries), Until::End).unwrap_err();
        assert!(matches!(error, ReplayError::Broken(_)), "{error}");
        assert_eq!(state_at(replay), after[BASE as usize]);
    };
    broken(&mut replay, before(152), &entries(152, 160));
    let other_term = Some(LogIdRecord { term: 2, node: 1, index: BASE });
    broken(&mut replay, other_term, &entries(151, 160));
    let mut hole = entries(151, 160);
    hole.remove(4);
    broken(&mut replay, before(151), &hole);
    let mut back = entries(151, 160);
    back[5].log_id = LogIdRecord { term: 0, node: 1, index: 156 }.into();
    broken(&mut replay, before(151), &back);
    let garbage = [Bytes::from_static(b"\x01nothing")];
    assert!(matches!(replay.apply(before(151), &garbage, Until::End), Err(ReplayError::Entry(_))));
    replay.apply(before(151), &encoded(&entries(151, 152)), Until::End).unwrap();
    assert_eq!(state_at(&replay), after[152]);
}

#[test]
fn a_base_is_no_backup_and_a_damaged_one_is_refused() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Original { base, .. } = original(old.path());
    assert!(BackupReader::open(&base[..]).is_err());
    assert!(BackupReader::open_of(Content::Whole, &base[..]).is_ok());
    let (_state, reader) = open(old.path());
    let (backup, _) = reader.back_up(taker(), Vec::new(), |_| {}).unwrap();
    let refused = Replay::begin(new.path(), &backup[..], |_| {});
    assert!(matches!(refused, Err(ReplayError::Base(_))));
    for at in [9, 40, base.len() / 2, base.len() - 9] {
        let dir = new.path().join(at.to_string());
        std::fs::create_dir(&dir).unwrap();
        let mut damaged = base.clone();
        damaged[at] ^= 1;
        assert!(Replay::begin(&dir, &damaged[..], |_| {}).is_err(), "byte {at}");
        assert!(Replay::begin(&dir, &base[..at], |_| {}).is_err(), "cut at {at}");
    }
}
