//! The feed of changes: from disk, in memory, over compaction, restarts and installed snapshots.
//!
//! The model is made of listings: what differs between those of two revisions is what the feed must say of the later one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::Thread;

use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use quorate_feed::{Pulled, RecentChange, Watch};
use quorate_machine::document::{Criteria, Order};
use quorate_machine::keyspace::changes::Cause;
use quorate_machine::query::{ChangesPage, ChangesQuery, ChangesRead, FeedPosition, FullChange, WatchRange};
use quorate_machine::types::{Action, Change, ClaimOp, Command, Maintenance, Revision, Step, Txn, WriteOp};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::raft::SnapshotMeta;
use quorate_store::state::receive::SnapshotReceiver;
use quorate_store::state::{StateOptions, StateReader};

use crate::state_support::*;

/// An event as the model and the feed must both tell it. Ordered as events of one revision are compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    revision: Revision,
    key: Vec<u8>,
    /// The value it left.
    data: Option<Vec<u8>>,
    /// The value before.
    before: Option<Vec<u8>>,
}

/// What the feed must say, from the first revision on.
#[derive(Default)]
struct Model {
    events: Vec<Event>,
    last: BTreeMap<Vec<u8>, (Revision, Vec<u8>)>,
    revision: Revision,
}

impl Model {
    fn new() -> Self {
        Self { revision: 1, ..Self::default() }
    }

    /// Learns the revisions that there are since; to be called after each batch, before they can be compacted.
    fn learn(&mut self, reader: &StateReader) {
        for revision in self.revision + 1..=reader.position().revision {
            let mut query = query("", None);
            query.revision = Some(revision);
            let listed = page(reader.list(&query).unwrap()).entries;
            let now: BTreeMap<_, _> = listed
                .into_iter()
                .map(|(key, entry)| (key.into_bytes(), (entry.meta.mod_revision, entry.value.data)))
                .collect();
            let keys: std::collections::BTreeSet<_> = now.keys().chain(self.last.keys()).cloned().collect();
            for key in keys {
                let (before, after) = (self.last.get(&key), now.get(&key));
                if before.map(|(revision, _)| revision) != after.map(|(revision, _)| revision) {
                    let data = |version: Option<&(Revision, Vec<u8>)>| version.map(|(_, data)| data.clone());
                    self.events.push(Event { revision, key, data: data(after), before: data(before) });
                }
            }
            (self.last, self.revision) = (now, revision);
        }
    }

    /// The events after all of a revision, up to another, of these keys and kinds.
    fn between(&self, after: Revision, to: Revision, range: &WatchRange, kinds: (bool, bool)) -> Vec<Event> {
        let wanted = |event: &&Event| {
            let kind = if event.data.is_some() { kinds.0 } else { kinds.1 };
            event.revision > after && event.revision <= to && kind && range.contains(&event.key)
        };
        self.events.iter().filter(wanted).cloned().collect()
    }
}

/// Checks what can only be seen in order, and brings the events of each revision into the model's order.
fn in_order(changes: &[FullChange]) -> Vec<Event> {
    for pair in changes.windows(2) {
        let position = |change: &FullChange| (change.revision, change.change.index);
        assert!(position(&pair[0]) < position(&pair[1]), "out of order: {pair:?}");
    }
    let mut events: Vec<_> = changes.iter().map(event_of).collect();
    events.sort();
    events
}

fn event_of(full: &FullChange) -> Event {
    let FullChange { key, revision, change, entry, before } = full.clone();
    assert!(change.index < change.of, "{full:?}");
    assert_eq!(entry.is_none(), change.cause.is_removal(), "{full:?}");
    assert_eq!(before.as_ref().map(|before| before.meta.mod_revision), change.previous, "{full:?}");
    if let Some(entry) = &entry {
        assert_eq!((entry.meta.mod_revision, entry.meta.cas), (revision, revision), "{full:?}");
        assert_eq!(entry.meta.locked_until, None, "{full:?}");
    }
    if let Some(before) = &before {
        let is_due = before.meta.expires_at.is_some_and(|deadline| deadline <= change.clock);
        assert_eq!(change.cause == Cause::Expired, is_due && entry.is_none(), "{full:?}");
    }
    let data = |entry: Option<quorate_machine::types::Entry>| entry.map(|entry| entry.value.data);
    Event { revision, key: key.into_bytes(), data: data(entry), before: data(before) }
}

const NAMES: [&str; 9] = ["a", "a/1", "a/2", "a/b/1", "a/b/2", "b", "b/1", "c/1", "a\u{0}x"];

fn some_range(rng: &mut Rng) -> WatchRange {
    let name = |rng: &mut Rng| NAMES[rng.below(9) as usize].as_bytes().to_vec();
    match rng.below(4) {
        0 => WatchRange::Key(key(name(rng))),
        1 => WatchRange::span(name(rng), Some(name(rng))),
        2 => WatchRange::Prefix(Vec::new()),
        _ => WatchRange::Prefix(["a", "a/", "a/b/", "b", "x"][rng.below(5) as usize].into()),
    }
}

fn op_of(command: Command) -> WriteOp {
    match command.action {
        Action::Write(op) => op,
        other => panic!("not a write: {other:?}"),
    }
}

fn act(action: Action) -> Command {
    Command::unnamed(action)
}

/// Writes of all kinds, some refused, some of several keys, and the leader's own.
fn some_command(rng: &mut Rng, revision: Revision, n: u64) -> Command {
    let name = |rng: &mut Rng| NAMES[rng.below(9) as usize];
    match rng.below(14) {
        0..4 => put(name(rng), format!("{revision}.{n}.{}", "x".repeat(rng.below(60) as usize))),
        4 => with_ttl(put(name(rng), format!("ttl {revision}.{n}")), 1 + rng.below(300)),
        5..7 => remove(name(rng)),
        7 => write(key(name(rng)), Change::Touch),
        8 => write(key(name(rng)), Change::Lock(1 + rng.below(500))),
        9 => act(Action::Claim(ClaimOp {
            prefix: b"a/".to_vec(),
            criteria: Criteria::default(),
            order: Order::new(Vec::new()),
            limit: 3,
            lock_ms: 1 + rng.below(200),
            patch: None,
            guard: None,
        })),
        10..12 => {
            let writes = (0..1 + rng.below(5)).map(|step| {
                Step::Write(op_of(put(NAMES[((n + step) % 9) as usize], format!("txn {revision}.{n}.{step}"))))
            });
            act(Action::Txn(Txn { checks: Vec::new(), then: writes.collect(), otherwise: Vec::new() }))
        }
        12 => maintain(Maintenance::ExpireDue { limit: 1 + rng.below(5) as u32 }),
        _ => {
            let revision = revision.saturating_sub(rng.below(60));
            maintain(Maintenance::Compact { revision, groups_max: 1 + rng.below(20) as u32 })
        }
    }
}

/// Entries one after the other, with clocks that grow.
struct Script {
    rng: Rng,
    index: u64,
    clock: u64,
}

impl Script {
    fn new(rng: Rng) -> Self {
        Self { rng, index: 0, clock: 0 }
    }

    fn next(&mut self, revision: Revision) -> quorate_store::raft::LogEntry {
        self.index += 1;
        self.clock += self.rng.below(40);
        let commands: Vec<_> = (0..self.rng.below(5)).map(|n| some_command(&mut self.rng, revision, n)).collect();
        batch(self.index, self.clock, &commands)
    }
}

fn changes_query(after: FeedPosition, range: &WatchRange, kinds: (bool, bool), rng: &mut Rng) -> ChangesQuery {
    ChangesQuery {
        after,
        range: range.clone(),
        writes: kinds.0,
        removals: kinds.1,
        before_writes: true,
        before_removals: true,
        bytes_max: 1 + rng.below(300) as usize,
        looked_at_max: 1 + rng.below(30) as usize,
    }
}

fn feed_page(read: ChangesRead) -> ChangesPage {
    match read {
        ChangesRead::Page(page) => page,
        other => panic!("no page: {other:?}"),
    }
}

#[test]
fn the_feed_on_disk_is_what_differs_between_revisions() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let mut script = Script::new(Rng::seeded("the_feed_on_disk_is_what_differs_between_revisions"));
    let runtime = runtime();
    let mut model = Model::new();
    runtime.block_on(apply(&mut state, vec![blank(0)]));
    let mut compacted = 0;
    for _ in 0..250 {
        let entry = script.next(reader.position().revision);
        runtime.block_on(apply(&mut state, vec![entry]));
        model.learn(&reader);
        let at = reader.position();
        let rng = &mut script.rng;
        let kinds = [(true, true), (true, false), (false, true)][rng.below(3) as usize];
        let range = some_range(rng);
        let revision = rng.below(at.revision + 3);
        let mut position = match rng.below(3) {
            0 => FeedPosition { revision, index: rng.below(4) as u32 },
            _ => FeedPosition::after(revision),
        };
        let start = position;
        let mut changes = Vec::new();
        loop {
            let asked = changes_query(position, &range, kinds, rng);
            let read = reader.changes(&asked).unwrap();
            if revision > at.revision {
                assert_eq!(read, ChangesRead::Future(at));
                break;
            }
            if !start.is_covered_from(at.oldest_revision) {
                assert_eq!(read, ChangesRead::Compacted(at));
                compacted += 1;
                break;
            }
            let page = feed_page(read);
            assert!(page.to > position || !page.more, "{page:?} from {position:?}");
            position = page.to;
            changes.extend(page.changes);
            if !page.more {
                assert_eq!(position, start.max(FeedPosition::after(at.revision)));
                break;
            }
        }
        if revision <= at.revision && start.is_covered_from(at.oldest_revision) {
            check_after(&model, start, at.revision, &range, kinds, &changes);
        }
    }
    assert!(compacted > 0, "nothing was ever compacted");
    assert!(model.events.iter().any(|event| event.data.is_none()), "nothing was ever removed");
}

/// Compares what was read after `start`, which may be in the midst of a revision: of that only the tail counts.
fn check_after(
    model: &Model,
    start: FeedPosition,
    to: Revision,
    range: &WatchRange,
    kinds: (bool, bool),
    changes: &[FullChange],
) {
    let (tail, rest): (Vec<_>, Vec<_>) = changes.iter().cloned().partition(|change| change.revision == start.revision);
    assert_eq!(in_order(&rest), model.between(start.revision, to, range, kinds), "after {start:?} of {range:?}");
    let of_revision = model.between(start.revision.saturating_sub(1), start.revision, range, kinds);
    for change in &tail {
        assert!(change.change.index > start.index, "{change:?} after {start:?}");
        assert!(of_revision.contains(&event_of(change)), "{change:?}");
    }
}

/// Somebody who watches, resolves what is no longer in memory, and remembers what it was told.
struct Follower {
    watch: Watch,
    start: Revision,
    kinds: (bool, bool),
    seen: Vec<FullChange>,
    from_disk: u64,
}

/// Where a follower is after a step.
#[derive(Debug, PartialEq, Eq)]
enum At {
    More,
    Idle,
    Compacted,
}

impl Follower {
    fn new(reader: &StateReader, range: WatchRange, after: Revision, kinds: (bool, bool)) -> Self {
        let watch = reader.feed().watch(range, FeedPosition::after(after));
        Self { watch, start: after, kinds, seen: Vec::new(), from_disk: 0 }
    }

    fn step(&mut self, reader: &StateReader, rng: &mut Rng) -> At {
        let kinds = self.kinds;
        let wanted = |change: &RecentChange| if change.change.cause.is_removal() { kinds.1 } else { kinds.0 };
        match self.watch.pull(wanted) {
            Pulled::Changes(changes) => {
                for change in changes {
                    let before = FeedPosition::after(change.revision - 1);
                    match full(reader, &change) {
                        Some(full) => self.seen.push(full),
                        None => {
                            // Compacted meanwhile: all of the revision again, as the disk has it.
                            self.seen.retain(|seen| seen.revision < change.revision);
                            self.watch.go_back(before);
                            return self.read(reader, rng);
                        }
                    }
                }
                At::More
            }
            Pulled::NothingYet => At::More,
            Pulled::Behind => self.read(reader, rng),
            Pulled::Idle => At::Idle,
        }
    }

    fn read(&mut self, reader: &StateReader, rng: &mut Rng) -> At {
        self.from_disk += 1;
        let asked = changes_query(self.watch.position(), self.watch.range(), self.kinds, rng);
        match reader.changes(&asked).unwrap() {
            ChangesRead::Page(page) => {
                self.seen.extend(page.changes);
                self.watch.read_up_to(page.to, !page.more);
                At::More
            }
            ChangesRead::Compacted(at) => {
                assert!(!self.watch.position().is_covered_from(at.oldest_revision));
                At::Compacted
            }
            ChangesRead::Future(at) => panic!("a follower is ahead: {:?}, {at:?}", self.watch.position()),
        }
    }

    /// Everything up to here must have been seen, once, in order.
    fn check(&self, model: &Model, to: Revision) {
        let expected = model.between(self.start, to, self.watch.range(), self.kinds);
        assert_eq!(in_order(&self.seen), expected, "{:?} from {} to {to}", self.watch.range(), self.start);
    }
}

/// A change with its versions, as who shows it reads them; `None` once one is compacted.
fn full(reader: &StateReader, change: &RecentChange) -> Option<FullChange> {
    let version = |revision| reader.version(&change.key, revision).unwrap();
    let entry = if change.change.cause.is_removal() { None } else { Some(version(change.revision)?) };
    let before = match change.change.previous {
        Some(previous) => Some(version(previous)?),
        None => None,
    };
    Some(FullChange { key: change.key.clone(), revision: change.revision, change: change.change, entry, before })
}

async fn send_snapshot(from: &mut StateMachine, to: &mut StateMachine, reader: &StateReader) {
    let mut builder = from.try_create_snapshot_builder(true).await.expect("forced");
    let snapshot = builder.build_snapshot().await.expect("a snapshot").snapshot;
    let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone()).unwrap();
    for (file, have) in receiver.have().into_iter().enumerate() {
        assert_eq!(have, 0);
        let bytes = snapshot.manifest().files[file].bytes;
        let chunk = snapshot.read_chunk(file, 0, bytes as usize).unwrap();
        receiver.write(file, 0, &chunk).unwrap();
    }
    let received = receiver.finish().unwrap();
    let meta: SnapshotMeta = received.manifest().meta.clone().try_into().unwrap();
    to.install_snapshot(&meta, received).await.unwrap();
}

/// One node leads; another gets its entries late, or snapshots instead, and restarts; the watches are on that one.
#[test]
fn watches_see_every_change_once_over_compaction_restarts_and_snapshots() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let small = || StateOptions { feed_bytes_max: 6_000, ..options() };
    let (mut leader, leader_reader) = open(one.path());
    let (mut state, mut reader) = StateMachine::open(two.path(), small()).unwrap();
    let mut script = Script::new(Rng::seeded("watches_see_every_change_once_over_compaction_restarts_and_snapshots"));
    let runtime = runtime();
    let mut model = Model::new();
    let mut behind = Vec::new();
    let (mut followers, mut ended, mut installed, mut restarted) = (Vec::<Follower>::new(), 0, 0, 0);
    let (mut disk, mut memory) = (0, 0);
    runtime.block_on(apply(&mut leader, vec![blank(0)]));
    runtime.block_on(apply(&mut state, vec![blank(0)]));
    for round in 0..1_500 {
        let entry = script.next(leader_reader.position().revision);
        runtime.block_on(apply(&mut leader, vec![entry.clone()]));
        model.learn(&leader_reader);
        behind.push(entry);
        let rng = &mut script.rng;
        match rng.below(60) {
            0 => {
                runtime.block_on(send_snapshot(&mut leader, &mut state, &reader));
                behind.clear();
                installed += 1;
            }
            1 => {
                // Who watched a node that stops goes on with its position.
                let positions: Vec<_> = followers.iter_mut().map(|follower| follower.watch.progress()).collect();
                let old = std::mem::take(&mut followers);
                reader.flush().unwrap();
                drop((state, reader));
                (state, reader) = StateMachine::open(two.path(), small()).unwrap();
                let applied = reader.position();
                if positions.iter().any(|position| *position > applied.revision) {
                    runtime.block_on(send_snapshot(&mut leader, &mut state, &reader));
                    behind.clear();
                }
                for (mut before, position) in old.into_iter().zip(positions) {
                    before.seen.retain(|seen| seen.revision <= position);
                    let mut after = Follower::new(&reader, before.watch.range().clone(), position, before.kinds);
                    (after.start, after.seen) = (before.start, before.seen);
                    followers.push(after);
                }
                restarted += 1;
            }
            2..40 => runtime.block_on(apply(&mut state, std::mem::take(&mut behind))),
            _ => {}
        }
        let at = reader.position();
        if followers.len() < 12 {
            let kinds = [(true, true), (true, true), (true, false), (false, true)][rng.below(4) as usize];
            let after = at.oldest_revision + rng.below(at.revision - at.oldest_revision + 1);
            followers.push(Follower::new(&reader, some_range(rng), after, kinds));
        }
        let mut kept = Vec::new();
        for mut follower in followers {
            let mut steps = rng.below(8);
            let outcome = loop {
                let outcome = follower.step(&reader, rng);
                steps = steps.saturating_sub(1);
                if outcome != At::More || steps == 0 {
                    break outcome;
                }
            };
            let progress = follower.watch.progress();
            follower.seen.sort_by_key(|seen| (seen.revision, seen.change.index));
            match outcome {
                At::Idle => {
                    assert_eq!(progress, at.revision, "an idle watch has seen everything");
                    follower.check(&model, at.revision);
                    memory += follower.seen.len();
                    disk += follower.from_disk;
                    // Some go, the others stay and are checked again.
                    if rng.below(20) > 0 {
                        kept.push(follower);
                    }
                }
                At::More => kept.push(follower),
                At::Compacted => ended += 1,
            }
        }
        followers = kept;
        assert_eq!(reader.feed().watches(), followers.len(), "in round {round}");
    }
    println!("{installed} snapshots, {restarted} restarts, {ended} overtaken, {memory} seen, {disk} reads from disk");
    assert!(installed > 0 && restarted > 0 && ended > 0 && memory > 0 && disk > 0);
}

struct Unpark(Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

/// Watches on threads of their own beside the writer, asleep until they are woken.
#[test]
fn no_watch_sleeps_through_a_change() {
    const BATCHES: u64 = 3_000;
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) =
        StateMachine::open(dir.path(), StateOptions { feed_bytes_max: 40_000, ..options() }).unwrap();
    let runtime = runtime();
    runtime.block_on(apply(&mut state, vec![blank(0)]));
    let mut rng = Rng::seeded("no_watch_sleeps_through_a_change");
    let last = Arc::new(AtomicU64::new(u64::MAX));
    let ranges: Vec<_> = (0..6).map(|_| some_range(&mut rng)).chain([WatchRange::Prefix(Vec::new())]).collect();
    let watchers: Vec<_> = ranges
        .into_iter()
        .map(|range| {
            let (reader, last, seed) = (reader.clone(), Arc::clone(&last), rng.below(u64::MAX));
            std::thread::spawn(move || {
                let mut rng = Rng(seed | 1);
                let mut follower = Follower::new(&reader, range, 1, (true, true));
                let flag = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
                let waker = Waker::from(Arc::clone(&flag));
                loop {
                    match follower.step(&reader, &mut rng) {
                        At::More => {}
                        At::Compacted => panic!("nothing is compacted here"),
                        At::Idle => {
                            if follower.watch.progress() >= last.load(Ordering::Acquire) {
                                return follower;
                            }
                            flag.1.store(false, Ordering::Release);
                            if follower.watch.poll_news(&mut Context::from_waker(&waker)).is_pending() {
                                let asleep = std::time::Duration::from_secs(20);
                                while !flag.1.load(Ordering::Acquire) && last.load(Ordering::Acquire) == u64::MAX {
                                    std::thread::park_timeout(asleep);
                                }
                            }
                        }
                    }
                }
            })
        })
        .collect();
    let mut model = Model::new();
    for index in 1..=BATCHES {
        let commands: Vec<_> =
            (0..1 + rng.below(3)).map(|n| put(NAMES[rng.below(9) as usize], format!("{index}.{n}"))).collect();
        runtime.block_on(apply(&mut state, vec![batch(index, index, &commands)]));
        model.learn(&reader);
        if index % 64 == 0 {
            std::thread::yield_now();
        }
    }
    last.store(reader.position().revision, Ordering::Release);
    watchers.iter().for_each(|watcher| watcher.thread().unpark());
    for watcher in watchers {
        let mut follower = watcher.join().unwrap();
        follower.seen.sort_by_key(|seen| (seen.revision, seen.change.index));
        follower.check(&model, reader.position().revision);
    }
}
