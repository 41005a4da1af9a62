//! Times of an archive whose log had a clock that was a day off for a while: what a restore gives is all that was written until then.

use std::path::Path;

use futures::stream;
use openraft::EntryPayload;
use openraft::storage::RaftStateMachine;
use quorate_archive::{BaseUpload, Form, Keys, Listed, Location, MacKeys, Merging, Place, Plan, Recipients, Target};
use quorate_machine::command_codec;
use quorate_machine::document::Criteria;
use quorate_machine::types::{Action, Batch, Change, Command, ContentKind, Expect, Expiry, Key, Value, WriteOp};
use quorate_machine::versions::Versions;
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::backup::Taker;
use quorate_store::offline::Replayed;
use quorate_store::raft::EncodedBatch;
use quorate_store::state::{StateOptions, StateReader};
use tokio::runtime::{Handle, Runtime};

use super::super::merge::tests::merge_all;
use super::*;
use crate::rebuild::{Begin, End, RebuildError, Source, Unwatched, Wanted};

mod keys;

const CLUSTER: u128 = 7;
const DAY: WallMillis = 86_400_000;
/// The wall clock of the first entry.
const BEGAN: WallMillis = 20_000 * DAY;
const LAST: u64 = 30;
/// Entries for which the clock is off, and by how much.
const OFF: std::ops::RangeInclusive<u64> = 11..=18;
const AHEAD: i64 = 86_400_000;
const BEHIND: i64 = -AHEAD;

/// One entry a second.
fn true_wall(index: u64) -> WallMillis {
    BEGAN + 1_000 * index
}

/// What the clock says at an entry.
fn wall_of(index: u64, off: i64) -> WallMillis {
    true_wall(index).saturating_add_signed(if OFF.contains(&index) { off } else { 0 })
}

fn id(index: u64) -> LogIdRecord {
    LogIdRecord { term: 1, node: 1, index }
}

fn entry(index: u64, off: i64) -> LogEntry {
    let key = Key::new(format!("key/{index}")).unwrap();
    let change = Change::Put(Value { kind: ContentKind::Bytes, data: vec![7] });
    let (expect, condition, expiry) = (Expect::ANY, Criteria::default(), Expiry::Never);
    let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
    let commands = vec![command_codec::encode_command(&Command::unnamed(Action::Write(op)))];
    let batch = Batch { clock: index, wall: wall_of(index, off), seed: [7; 16], commands };
    let payload = match index {
        0 => EntryPayload::Blank,
        _ => EntryPayload::Normal(EncodedBatch(command_codec::encode_batch(&batch))),
    };
    LogEntry { log_id: id(index).into(), payload }
}

/// Writes a base in its two steps.
fn put_base(
    handle: &Handle,
    archive: &Archive,
    unfinished: &BaseManifest,
    recipients: &Recipients,
    write: impl FnOnce(&mut BaseUpload) -> io::Result<()>,
) {
    let manifest = archive.upload_base(handle, unfinished, recipients, write).unwrap();
    handle.block_on(archive.finish_base(&manifest)).unwrap();
}

fn put_base_of(handle: &Handle, archive: &Archive, reader: &StateReader, recipients: &Recipients) {
    let taker = Taker { cluster_id: CLUSTER, node_id: 1, node_version: "test".into(), now: 5 };
    let put = reader.take_whole(taker, |header, whole| {
        put_base(handle, archive, &manifest(header), recipients, |sink| {
            whole.write(sink).map(drop).map_err(io::Error::other)
        });
    });
    put.unwrap();
}

fn head(first: u64, last: u64, (wall_min, wall): (WallMillis, WallMillis)) -> SegmentHead {
    SegmentHead {
        cluster: String::new(),
        before: Some(position(id(first - 1))),
        first,
        last: position(id(last)),
        wall_min,
        wall,
        entry_format: ENTRY_FORMAT,
        node: 1,
        after: None,
        bytes: 0,
    }
}

/// Archives a log in pieces, as a leader does, with bases after some entries.
fn archived(handle: &Handle, dir: &Path, pieces: &[(u64, u64)], bases: &[u64]) -> Source {
    archived_in(AHEAD, Place::in_memory(), Keys::default(), handle, dir, pieces, bases)
}

/// The same with a clock that is off by so much, in this place, encrypted for these keys.
fn archived_in(
    off: i64,
    place: Place,
    keys: Keys,
    handle: &Handle,
    dir: &Path,
    pieces: &[(u64, u64)],
    bases: &[u64],
) -> Source {
    let (archive, recipients) = (Archive::of(place, CLUSTER), keys.recipients());
    let options = StateOptions { snapshot_free_bytes_min: 0, ..StateOptions::new(1) };
    let (mut state, reader) = StateMachine::open(dir, options).unwrap();
    let mut shown = Vec::new();
    for index in 0..=LAST {
        let one = stream::iter([Ok((entry(index, off), None))]);
        handle.block_on(state.apply(one)).unwrap();
        shown.push(reader.applied().wall);
        if bases.contains(&index) {
            put_base_of(handle, &archive, &reader, &recipients);
        }
    }
    let shown_after = |index: u64| shown[index as usize];
    for &(first, last) in pieces {
        let entries: Vec<_> = (first..=last).map(|index| entry(index, off)).collect();
        let (wall_min, wall) = walls(shown_after(first - 1), &entries);
        let least = (first..=last).map(shown_after).min();
        assert_eq!((Some(wall_min), wall), (least, shown_after(last)), "{first} to {last}");
        let head = head(first, last, (wall_min, wall));
        handle.block_on(archive.put_segment(head, encoded(&entries), &recipients)).unwrap();
    }
    Source { archive, keys, handle: handle.clone() }
}

fn restored(source: &Source, target: Target) -> Result<Replayed, RebuildError> {
    rebuilt(source, &mut source.want(target, Begin::Newest)?)
}

fn rebuilt(source: &Source, wanted: &mut Wanted) -> Result<Replayed, RebuildError> {
    let scratch = tempfile::tempdir().unwrap();
    source.rebuild(wanted, scratch.path(), &mut Unwatched).map(|replay| replay.at())
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// The last entry up to a time.
fn expected(time: WallMillis, off: i64) -> u64 {
    (0..=LAST).rev().find(|index| wall_of(*index, off) <= time).unwrap()
}

/// One behind the other, with pieces of the wrong time alone.
const PIECES: [(u64, u64); 7] = [(3, 6), (7, 10), (11, 14), (15, 18), (19, 22), (23, 26), (27, LAST)];
/// As after a failover, with both ends of the wrong time within two pieces each.
const OVERLAPPING: [(u64, u64); 5] = [(3, 12), (9, 16), (15, 20), (18, 24), (23, LAST)];

#[test]
fn a_time_after_the_clock_came_back_is_reached_through_the_time_that_it_was_ahead() {
    let runtime = runtime();
    for pieces in [&PIECES[..], &OVERLAPPING[..]] {
        // Also with a base of the wrong time, which is of no use for any before it has come.
        for bases in [&[2][..], &[2, 15][..]] {
            let dir = tempfile::tempdir().unwrap();
            let source = archived(runtime.handle(), dir.path(), pieces, bases);
            for ms in [3_000, 10_000, 10_999, 14_500, 18_000, 19_000, 22_400, 25_500, 30_000] {
                let time = BEGAN + ms;
                let at = restored(&source, Target::Time(time)).unwrap();
                assert_eq!(at.log_id.index, expected(time, AHEAD), "{ms} ms, {bases:?}, {pieces:?}");
                assert_eq!(at.wall, true_wall(expected(time, AHEAD)));
            }
        }
    }
}

#[test]
fn a_time_after_the_clock_came_back_is_reached_from_a_base_that_was_made_then() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2, 20]);
    for index in [20, 22, 25, 29] {
        let time = true_wall(index) + 400;
        let wanted = source.want(Target::Time(time), Begin::Newest).unwrap();
        assert_eq!(wanted.plan.base.index, 20);
        assert_eq!(restored(&source, Target::Time(time)).unwrap().log_id.index, index);
    }
}

#[test]
fn a_time_that_has_not_come_is_refused_though_the_clock_has_shown_it() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2]);
    for time in [true_wall(LAST) + 1, true_wall(12) + DAY, true_wall(LAST) + DAY] {
        assert!(matches!(restored(&source, Target::Time(time)), Err(RebuildError::Unreachable(_))), "{time}");
    }
    assert_eq!(restored(&source, Target::Latest).unwrap().log_id.index, LAST);
}

/// The manifest of the base after an entry.
fn manifest_of(source: &Source, entry: u64) -> BaseManifest {
    let catalogue = source.handle.block_on(source.archive.catalogue()).unwrap();
    let name = catalogue.bases.iter().find(|base| base.index == entry).unwrap();
    source.handle.block_on(source.archive.manifest(name)).unwrap()
}

/// The state of that base, as it was written.
fn state_of(source: &Source, manifest: &BaseManifest) -> Vec<u8> {
    let state = source.archive.base(&source.handle, manifest, &source.keys, |state| {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes).unwrap();
        Ok::<_, ArchiveError>(bytes)
    });
    state.unwrap()
}

/// Puts something that is no state in the place of the base after an entry.
fn spoil_base(source: &Source, entry: u64) {
    let manifest = manifest_of(source, entry);
    put_base(&source.handle, &source.archive, &manifest, &Recipients::default(), |sink| sink.write_all(b"nothing"));
}

/// Damages what the manifest of the base after an entry says of its state, which is as it was.
fn spoil_manifest(source: &Source, entry: u64) {
    let manifest = manifest_of(source, entry);
    let state = state_of(source, &manifest);
    let spoiled = BaseManifest { digest: "f".repeat(32), ..manifest };
    put_base(&source.handle, &source.archive, &spoiled, &Recipients::default(), |sink| sink.write_all(&state));
}

fn remove_piece(source: &Source, first: u64) {
    let catalogue = source.handle.block_on(source.archive.catalogue()).unwrap();
    let name = catalogue.segments.iter().find(|segment| segment.first == first).unwrap();
    source.handle.block_on(source.archive.remove_segments(std::slice::from_ref(name))).unwrap();
}

#[test]
fn a_damaged_base_is_passed_over_where_the_one_before_and_the_log_reach_the_point() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2, 8, 20]);
    for (spoiled, base) in [(20, 8), (8, 2)] {
        spoil_base(&source, spoiled);
        for target in [Target::Latest, Target::Time(true_wall(25))] {
            let mut wanted = source.want(target, Begin::Newest).unwrap();
            let at = rebuilt(&source, &mut wanted).unwrap();
            assert_eq!(at.log_id.index, if target == Target::Latest { LAST } else { 25 });
            assert_eq!(wanted.plan.base.index, base);
            assert!(wanted.passed_over[0].contains("base"), "{:?}", wanted.passed_over);
        }
    }
    spoil_base(&source, 2);
    let refused = restored(&source, Target::Latest).expect_err("no base is left");
    assert!(matches!(&refused, RebuildError::Broken { object, .. } if object.contains("base")), "{refused}");
}

#[test]
fn a_base_whose_manifest_says_something_else_is_passed_over_and_named() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2, 20]);
    spoil_manifest(&source, 20);
    let mut wanted = source.want(Target::Latest, Begin::Newest).unwrap();
    let at = rebuilt(&source, &mut wanted).unwrap();
    assert_eq!((at.log_id.index, wanted.plan.base.index), (LAST, 2));
    assert!(wanted.passed_over[0].contains("its manifest says revision"), "{:?}", wanted.passed_over);
    spoil_manifest(&source, 2);
    let refused = restored(&source, Target::Latest).expect_err("no base is left").to_string();
    assert!(refused.contains("its manifest says revision"), "{refused}");
}

#[test]
fn a_lost_piece_is_passed_over_where_another_one_has_its_entries() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let both = [&PIECES[..], &OVERLAPPING[..]].concat();
    let source = archived(runtime.handle(), dir.path(), &both, &[2]);
    for first in [9, 19] {
        remove_piece(&source, first);
        assert_eq!(restored(&source, Target::Latest).unwrap().log_id.index, LAST);
    }
}

#[test]
fn a_base_can_be_chosen_and_one_that_is_not_there_is_refused_with_those_that_are() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2, 8, 20]);
    let chosen = source.want(Target::Latest, Begin::At(8)).unwrap();
    assert_eq!((chosen.plan.base.index, chosen.plan.segments.len()), (8, 6));
    let refused = source.want(Target::Latest, Begin::At(9)).err().expect("there is none").to_string();
    assert!(refused.contains("2, 8, 20"), "{refused}");
    // A trial goes by the base before the newest, and meets that one on its way.
    let tried = source.want(Target::Latest, Begin::BeforeNewest).unwrap();
    assert_eq!((tried.plan.base.index, tried.checkpoint.map(|base| base.position.index)), (8, Some(20)));
}

#[test]
fn a_base_that_the_log_does_not_lead_to_is_found_on_the_way() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2, 20]);
    let mut wanted = source.want(Target::Latest, Begin::BeforeNewest).unwrap();
    rebuilt(&source, &mut wanted).expect("they agree");
    let checkpoint = wanted.checkpoint.as_mut().expect("the newest base");
    checkpoint.digest = "0".repeat(32);
    let differs = rebuilt(&source, &mut wanted).expect_err("another state");
    assert!(
        matches!(&differs, RebuildError::Differs { object, .. } if object.contains("the way to base")),
        "{differs}"
    );
}

#[test]
fn bases_go_no_faster_than_they_come() {
    let day = Duration::from_secs(86_400);
    let ten_minutes = Duration::from_secs(600);
    let mut thinned = Thinned::default();
    // Prunes every ten minutes for a week, each of which would remove all that it may.
    for prune in 0..7 * 144 {
        thinned.bases += thinned.may_go(day, ten_minutes * prune);
    }
    assert_eq!(thinned.bases, 7);
    assert_eq!(thinned.may_go(day, 9 * day), 3, "what did not go yet may go later");
}

/// Merges all objects of the log with entries of this stretch alone, and removes so many of them.
fn merge(source: &Source, first: u64, last: u64, removed: usize) -> SegmentName {
    let is_within = |(name, _): &Listed| first <= name.first && name.last <= last;
    let objects = source.handle.block_on(source.archive.segments()).unwrap();
    let objects: Vec<_> = objects.into_iter().filter(is_within).collect();
    let bundle = source.handle.block_on(source.archive.merge(&objects, u64::MAX)).unwrap();
    let gone = objects.into_iter().map(|(name, _)| name).filter(|name| *name != bundle).take(removed);
    source.handle.block_on(source.archive.remove_segments(&gone.collect::<Vec<_>>())).unwrap();
    bundle
}

fn key() -> Keys {
    Keys::parse("AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U").unwrap()
}

#[test]
fn a_second_within_a_bundle_is_restored_as_out_of_its_pieces() {
    let runtime = runtime();
    let times = [3_000, 10_000, 10_999, 14_500, 18_000, 19_000, 22_400, 25_500, 30_000];
    for (pieces, keys) in [(&PIECES[..], Keys::default()), (&OVERLAPPING[..], Keys::default()), (&PIECES[..], key())] {
        let dir = tempfile::tempdir().unwrap();
        let source = archived_in(AHEAD, Place::in_memory(), keys, runtime.handle(), dir.path(), pieces, &[2, 15]);
        let plans = || -> Vec<Plan> {
            let plan = |ms: &u64| source.want(Target::Time(BEGAN + ms), Begin::Newest).unwrap().plan;
            times.iter().map(plan).collect()
        };
        let before = plans();
        // The pieces of a shorter span, then those of all; each time the leader dies before all of them are gone.
        for (last, removed) in [(20, 2), (20, 9), (LAST, 1), (LAST, 9)] {
            merge(&source, 3, last, removed);
            assert_eq!(plans(), before, "no more of a bundle is needed than of its pieces");
            for ms in times {
                let time = BEGAN + ms;
                let at = restored(&source, Target::Time(time)).unwrap();
                let index = expected(time, AHEAD);
                assert_eq!((at.log_id.index, at.wall), (index, true_wall(index)), "{ms} ms");
            }
            assert_eq!(restored(&source, Target::Latest).unwrap().log_id.index, LAST);
        }
        let left = source.handle.block_on(source.archive.segments()).unwrap();
        assert_eq!(left.iter().map(|(name, _)| name.form).collect::<Vec<_>>(), [Form::Bundle]);
    }
}

#[test]
fn pieces_of_a_clock_that_was_a_day_off_lose_no_point_when_they_are_merged_and_are_not_before_their_time() {
    // Four entries in a span, all in a long one.
    const MERGING: Merging = Merging { span_ms: 4_000 };
    let (runtime, pieces) = (runtime(), (3..=LAST).map(|index| (index, index)).collect::<Vec<_>>());
    for off in [AHEAD, BEHIND] {
        let dir = tempfile::tempdir().unwrap();
        let (place, keys) = (Place::in_memory(), Keys::default());
        let source = archived_in(off, place, keys, runtime.handle(), dir.path(), &pieces, &[2, 15]);
        let stretches = || {
            let objects = runtime.block_on(source.archive.segments()).unwrap();
            let mut stretches: Vec<_> = objects.into_iter().map(|(name, _)| (name.first, name.last)).collect();
            stretches.sort_unstable();
            stretches
        };
        let is_over = |index: u64, now: WallMillis| {
            let end = (wall_of(index, off) / MERGING.span_ms + 1) * MERGING.span_ms;
            end + MERGING.settled_after_ms() <= now
        };
        for now in [0, 13_000, 25_000, 97_000, DAY + 13_000, DAY + 97_000].map(|ms| BEGAN + ms) {
            runtime.block_on(merge_all(&source.archive, MERGING, now));
            for (first, last) in stretches().into_iter().filter(|(first, last)| first < last) {
                assert!((first..=last).all(|index| is_over(index, now)), "{first} to {last} at {now}, {off} off");
            }
            for time in [3_000, 10_999, 14_500, 19_000, 30_000].map(|ms| BEGAN + ms) {
                let (at, index) = (restored(&source, Target::Time(time)).unwrap(), expected(time, off));
                assert_eq!((at.log_id.index, at.wall), (index, wall_of(index, off)), "{time} at {now}, {off} off");
            }
            assert_eq!(restored(&source, Target::Latest).unwrap().log_id.index, LAST);
        }
        assert_eq!(stretches(), [(3, 10), (11, 18), (19, LAST)], "{off} off");
    }
}

#[test]
fn what_is_merged_while_it_is_restored_is_found_where_it_is_then() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES, &[2]);
    // Planned as pieces, as pieces and a bundle, and as a bundle that becomes part of a larger one.
    for merges in [&[(3, 14)][..], &[(15, 26), (3, 26)], &[(3, LAST)]] {
        let mut wanted = source.want(Target::Latest, Begin::Newest).unwrap();
        for (first, last) in merges {
            merge(&source, *first, *last, usize::MAX);
        }
        let at = rebuilt(&source, &mut wanted).unwrap();
        assert_eq!((at.log_id.index, wanted.passed_over.len()), (LAST, 0), "{merges:?}");
    }
}

#[test]
fn a_damaged_piece_of_a_bundle_is_passed_over_where_another_one_has_its_entries() {
    let runtime = runtime();
    let both = [&PIECES[..], &OVERLAPPING[..]].concat();
    for (pieces, is_reached) in [(&both[..], true), (&PIECES[..], false)] {
        let (dir, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let location: Location = home.path().to_str().unwrap().parse().unwrap();
        let place = location.open().unwrap();
        let source = archived_in(AHEAD, place, Keys::default(), runtime.handle(), dir.path(), pieces, &[2]);
        let catalogue = source.handle.block_on(source.archive.catalogue()).unwrap();
        // The one that goes furthest from there, so that it is on the way.
        let piece = catalogue.segments.iter().rfind(|segment| segment.first == 15).unwrap();
        let sound = source.handle.block_on(source.archive.segment_bytes(piece)).unwrap();
        let bundle = merge(&source, 0, LAST, usize::MAX);
        let path = home.path().join(format!("quorate-{CLUSTER:032x}/log/{bundle}"));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(sound.len()).position(|window| window == sound).expect("it is in there as it was");
        bytes[at + sound.len() / 2] ^= 1;
        std::fs::write(&path, bytes).unwrap();

        let named = format!("{piece} in {bundle} is damaged");
        let faults = source.handle.block_on(source.archive.check_segment(&bundle)).unwrap_err();
        assert!(faults.len() == 1 && faults[0].to_string().starts_with(&named), "{faults:?}");
        let before = restored(&source, Target::Time(true_wall(10))).unwrap();
        assert_eq!(before.log_id.index, 10, "what is before it is to be had");
        let mut wanted = source.want(Target::Latest, Begin::Newest).unwrap();
        match rebuilt(&source, &mut wanted) {
            Ok(at) => {
                assert!(is_reached && at.log_id.index == LAST);
                let passed_over = &wanted.passed_over;
                assert!(passed_over.len() == 1 && passed_over[0].starts_with(&named), "{passed_over:?}");
            }
            Err(refused) => assert!(!is_reached && refused.to_string().contains(&named), "{refused}"),
        }
    }
}

#[test]
fn a_bundle_without_its_index_is_passed_over_where_its_pieces_are_still_there() {
    let (runtime, dir, home) = (runtime(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let location: Location = home.path().to_str().unwrap().parse().unwrap();
    let place = location.open().unwrap();
    let source = archived_in(AHEAD, place, Keys::default(), runtime.handle(), dir.path(), &PIECES, &[2]);
    let bundle = merge(&source, 0, LAST, 0);
    std::fs::write(home.path().join(format!("quorate-{CLUSTER:032x}/log/{bundle}")), "nothing").unwrap();
    let mut wanted = source.want(Target::Latest, Begin::Newest).unwrap();
    assert!(wanted.passed_over[0].starts_with(&format!("{bundle} is damaged")), "{:?}", wanted.passed_over);
    assert_eq!(rebuilt(&source, &mut wanted).unwrap().log_id.index, LAST);
}

#[test]
fn entries_of_a_form_that_is_not_read_are_refused_and_a_base_of_an_older_one_is_outdated() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES[2..], &[2]);
    let next = SegmentHead { entry_format: ENTRY_FORMAT + 1, ..head(3, 10, (true_wall(3), true_wall(10))) };
    let entries: Vec<_> = (3..=10).map(|index| entry(index, AHEAD)).collect();
    let none = Recipients::default();
    let put = source.archive.put_segment(next, encoded(&entries), &none);
    let (name, _) = source.handle.block_on(put).unwrap();
    let refused = restored(&source, Target::Latest).expect_err("nothing leads past it").to_string();
    let found = format!("{name} has format {}, and this build reads version 1", ENTRY_FORMAT + 1);
    assert!(refused.contains(&found), "{refused}");
    // A build that reads both takes the pieces of before and behind the upgrade.
    let both = Versions::new(ENTRY_FORMAT, ENTRY_FORMAT + 1, ENTRY_FORMAT + 1);
    assert!(
        [ENTRY_FORMAT, ENTRY_FORMAT + 1]
            .map(|form| ArchiveError::check_format("a", form, both))
            .iter()
            .all(Result::is_ok)
    );

    let catalogue = source.handle.block_on(source.archive.catalogue()).unwrap();
    let base = source.handle.block_on(source.archive.manifest(&catalogue.bases[0])).unwrap();
    for (format, is_old) in [(ENTRY_FORMAT, false), (ENTRY_FORMAT - 1, true), (ENTRY_FORMAT + 1, false)] {
        let base = BaseManifest { entry_format: format, ..base.clone() };
        put_base(&source.handle, &source.archive, &base, &Recipients::default(), |sink| sink.write_all(b"x"));
        assert_eq!(
            source.handle.block_on(is_outdated(&source.archive, base.name(), None, &Recipients::default())).unwrap(),
            is_old,
            "{format}"
        );
    }
}

#[test]
fn a_base_by_another_key_of_macs_is_outdated() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let source = archived(runtime.handle(), dir.path(), &PIECES[2..], &[2]);
    let catalogue = source.handle.block_on(source.archive.catalogue()).unwrap();
    let base = source.handle.block_on(source.archive.manifest(&catalogue.bases[0])).unwrap();
    let [none, ours, theirs, both] = ["", "a", "b", "ab"].map(|secrets| by(&source.archive, secrets));
    for (writer, of_none, of_ours) in [(&none, false, true), (&ours, true, false), (&theirs, true, true)] {
        put_base(&source.handle, writer, &base, &Recipients::default(), |sink| sink.write_all(b"x"));
        // A base by the second secret is not enough: the first alone has to restore from it.
        for (node, is_old) in [(&none, of_none), (&ours, of_ours), (&both, of_ours)] {
            let found = source.handle.block_on(is_outdated(node, base.name(), None, &Recipients::default())).unwrap();
            assert_eq!(found, is_old, "written with {writer:?}, looked at with {node:?}");
        }
    }
    // Another leader wrote pieces in between, and no base.
    put_base(&source.handle, &ours, &base, &Recipients::default(), |sink| sink.write_all(b"x"));
    for (writer, is_old) in [(&none, true), (&theirs, true), (&ours, false)] {
        let last = Some(put_piece(&source.handle, writer, (27, LAST)));
        let recipients = Recipients::default();
        let found = source.handle.block_on(is_outdated(&ours, base.name(), last, &recipients)).unwrap();
        assert_eq!(found, is_old, "the last piece was written with {writer:?}");
    }
}

#[test]
fn a_base_that_was_begun_before_another_node_led_does_not_pass_for_the_newest() {
    let base = |index| BaseName { index, term: 1, revision: index, wall: index, node: 1 };
    // Another node went on to entry 40, with a base at 20, in a way that is outdated here.
    let known = |from, base| Known { from, index: 40, wall: 0, last: None, base, outdated_to: Some(40) };
    let mut led = known(5, Some(base(20)));
    for (index, newest, outdated_to) in
        [(10, 20, Some(40)), (25, 25, Some(40)), (24, 25, Some(40)), (40, 40, None), (50, 50, None)]
    {
        led.note_base(base(index));
        assert_eq!((led.base, led.outdated_to), (Some(base(newest)), outdated_to), "after the base of entry {index}");
    }
    let mut behind_a_gap = known(30, None);
    behind_a_gap.note_base(base(28));
    assert_eq!(behind_a_gap.base, None, "it leads to nothing");
    behind_a_gap.note_base(base(30));
    assert_eq!(behind_a_gap.base, Some(base(30)));
}

/// A node's archive with these secrets. It writes with the first.
fn by(archive: &Archive, secrets: &str) -> Archive {
    let lines: Vec<_> = secrets.chars().map(|secret| secret.to_string().repeat(32)).collect();
    match lines.is_empty() {
        true => archive.clone().with_macs(MacKeys::default()),
        false => archive.clone().with_macs(MacKeys::parse(&lines.join("\n")).unwrap()),
    }
}

/// Writes the base after an entry as a node does that writes with this archive.
fn write_again(source: &Source, writer: &Archive, entry: u64) {
    let manifest = manifest_of(source, entry);
    let state = state_of(source, &manifest);
    put_base(&source.handle, writer, &manifest, &Recipients::default(), |sink| sink.write_all(&state));
}

/// Writes a piece of a log whose clock is right, as a node does that writes with this archive.
fn put_piece(handle: &Handle, writer: &Archive, (first, last): (u64, u64)) -> SegmentName {
    let entries: Vec<_> = (first..=last).map(|index| entry(index, 0)).collect();
    let head = head(first, last, walls(true_wall(first - 1), &entries));
    handle.block_on(writer.put_segment(head, encoded(&entries), &Recipients::default())).unwrap().0
}

#[test]
fn a_trial_goes_by_the_newest_base_where_leaders_with_a_key_and_without_one_took_turns() {
    let (runtime, dir) = (runtime(), tempfile::tempdir().unwrap());
    let handle = runtime.handle();
    let open = archived_in(0, Place::in_memory(), Keys::default(), handle, dir.path(), &[], &[2, 10, 18]);
    let ours = by(&open.archive, "a");
    // Each begins with a base of its own, once a piece of its own leads to it.
    for (writer, base, pieces) in
        [(&ours, 2, [(3, 6), (7, 9)]), (&open.archive, 10, [(10, 10), (11, 17)]), (&ours, 18, [(18, 18), (19, LAST)])]
    {
        write_again(&open, writer, base);
        for piece in pieces {
            put_piece(handle, writer, piece);
        }
    }
    let source = Source { archive: ours, keys: Keys::default(), handle: handle.clone() };
    let scratch = tempfile::tempdir().unwrap();
    let End { replay, passed_over, locked } = source.rebuild_end(scratch.path(), &mut Unwatched).unwrap();
    assert!(replay.at().log_id.index == LAST && passed_over.is_empty(), "nothing is wrong: {passed_over:?}");
    assert!(locked.as_ref().is_some_and(|what| what.contains("has no MAC")), "{locked:?}");
    // A piece without a MAC behind the newest base is a fault, since nothing leads to the end without it.
    put_piece(handle, &open.archive, (25, LAST));
    let last = source.handle.block_on(source.archive.catalogue()).unwrap().segments;
    let own: Vec<_> = last.into_iter().filter(|name| (name.first, name.last) == (19, LAST)).collect();
    drop(replay);
    source.handle.block_on(source.archive.remove_segments(&own)).unwrap();
    put_piece(handle, &source.archive, (19, 24));
    let scratch = tempfile::tempdir().unwrap();
    let refused = source.rebuild_end(scratch.path(), &mut Unwatched).err().expect("nobody with the key wrote the end");
    assert!(refused.is_of_the_archive() && refused.to_string().contains("has no MAC"), "{refused}");
}
