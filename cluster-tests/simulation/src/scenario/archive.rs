//! A cluster that archives to a store that refuses, delays, repeats and forgets to answer, that loses objects and damages them, while leaders
//! change, nodes die, snapshots are installed and clocks jump.
//!
//! Owns what happens, and what must be so of nodes at every moment: a log is purged no further than the archive has it. What an archive has
//! to give back is judged in `judge`, what the store does stands in `objects`, and what is so while clocks are apart in `apart`. Never changes
//! what a node does.

mod apart;
mod judge;
mod stock;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster_harness::{Connection, Request};
use parking_lot::Mutex;
use quorate_archive::{BaseName, Keys, Location, MacKeys, Merging, Retention, SegmentName};
use quorate_node_core::metrics::{MetricsSource, Value};
use quorate_node_replica::app::archive::{ArchiveSamples, ArchiveSettings};
use quorate_threads::background;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::{Found, Stage, UP_MAX};
use crate::address::{CLIENTS, HostId};
use crate::world::{World, client_address};
use crate::wound::Wound;
use crate::{aside, objects};

use judge::{Judge, Judged};

/// How long things go wrong, milliseconds.
const DURING: Range<u64> = 18_000..32_000;
/// How long nothing does between two.
const REST: Range<u64> = 100..2_000;
/// From one look at what can be restored to the next.
const JUDGED_EVERY: Range<u64> = 4_000..9_000;
/// How long a node is away that needs a snapshot afterwards.
const AWAY: Range<u64> = 3_000..9_000;
/// How long the store refuses.
const OUT: Range<u64> = 500..10_000;
/// How long it is slow, and how slow at most.
const SLOW: Range<u64> = 1_000..8_000;
const SLOWEST: Range<u64> = 200..4_000;
/// How far clocks jump, nanoseconds, and after how long they come back, milliseconds.
const JUMP: Range<i64> = -3_600_000_000_000..3_600_000_000_000;
const BACK_AFTER: Range<u64> = 500..5_000;
/// How long an archive may take to have all once nothing is wrong: a base that failed is tried again after a minute.
const WHOLE_MAX: u64 = 150_000;
/// Who writes, and how long one rests.
const WRITERS: u64 = 3;
const WRITER_RESTS: u64 = 30;
/// How long once all that is waited for is a base.
const WRITER_RESTS_LONG: u64 = 400;
/// For one try of a write, and until the next.
const WRITE_MAX: Duration = Duration::from_millis(1_500);
const WRITE_AGAIN: Duration = Duration::from_millis(100);
/// Bytes of log that wait for the archive where little does.
const HOLD_LITTLE: u64 = 900 << 10;
/// Fewest pieces, bases and compared points that make a story count.
const PIECES_MIN: usize = 8;
const BASES_MIN: usize = 2;
const COMPARED_MIN: u64 = 6;

/// What nodes do by themselves that may do harm, and by accident.
const WOUNDS: [(Wound, &str); 11] = [
    (Wound::Crash, "a node died"),
    (Wound::PowerLoss, "a node lost power"),
    (Wound::PowerLossOfAll, "all nodes lost power"),
    (Wound::Restart, "a node was restarted"),
    (Wound::Pause, "a node stood still"),
    (Wound::Isolate, "a node was cut off"),
    (Wound::Partition, "nodes were apart"),
    (Wound::OneWay, "a direction was cut"),
    (Wound::SlowDisk, "a disk was slow"),
    (Wound::HandOver, "leadership was handed over"),
    (Wound::Snapshot, "a snapshot was made"),
];

/// Whose clocks jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jumps {
    Nobody,
    /// Those of one node, so that the cluster's does not.
    One,
    /// Those of a majority, too.
    Many,
}

/// A key that opens an archive.
const KEY: &str = "AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U";

/// For whom an archive is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encrypted {
    Nobody,
    /// For a key that nodes have, too.
    Nodes,
    /// For a key that is kept elsewhere: nodes write what they cannot read, merge and prune it, and try no restore.
    Others,
}

impl Encrypted {
    /// One seed of three has an archive that is encrypted, so that a handful has one of each kind.
    fn of(seed: u64) -> Self {
        match seed % 6 {
            0 => Self::Nodes,
            3 => Self::Others,
            _ => Self::Nobody,
        }
    }

    /// What opens it.
    fn keys(self) -> Keys {
        match self {
            Self::Nobody => Keys::default(),
            Self::Nodes | Self::Others => Keys::parse(KEY).expect("it is one"),
        }
    }

    /// What nodes have of that.
    fn known_keys(self) -> Keys {
        if self == Self::Others { Keys::default() } else { self.keys() }
    }
}

/// What the seed decides before anything happens.
#[derive(Debug, Clone, Copy)]
struct Plan {
    interval: u64,
    base_every: u64,
    keep_ms: u64,
    bases_min: usize,
    hold_bytes: u64,
    verify_every: Option<u64>,
    /// The shorter span whose pieces become one object.
    merge_ms: Option<u64>,
    snapshot_every: u64,
    keep_log: u64,
    /// Whether objects are damaged and lost.
    hurts: bool,
    jumps: Jumps,
    encrypted: Encrypted,
}

impl Plan {
    fn draw(seed: u64, dice: &mut StdRng) -> Self {
        let mut one_of = |of: &[u64]| *of.choose(dice).expect("not empty");
        let (interval, base_every) = (one_of(&[100, 300, 800]), one_of(&[2_000, 4_000, 8_000]));
        let keep_ms = one_of(&[3_000, 10_000, 3_600_000]);
        let verify_every = Some(one_of(&[0, 4_000, 10_000])).filter(|every| *every > 0);
        let merge_ms = Some(one_of(&[0, 600, 3_000])).filter(|span| *span > 0);
        let (snapshot_every, keep_log) = (one_of(&[20, 60, 1_000]), one_of(&[0, 10, 200]));
        Self {
            interval,
            base_every,
            keep_ms,
            bases_min: dice.random_range(1..=3),
            hold_bytes: if dice.random_ratio(1, 4) { HOLD_LITTLE } else { 1 << 30 },
            verify_every,
            merge_ms,
            snapshot_every,
            keep_log,
            hurts: dice.random_ratio(1, 3),
            jumps: *[Jumps::Nobody, Jumps::One, Jumps::Many].choose(dice).expect("not empty"),
            encrypted: Encrypted::of(seed),
        }
    }

    fn settings(&self, location: Location) -> ArchiveSettings {
        ArchiveSettings {
            location,
            interval: Duration::from_millis(self.interval),
            base_every: Duration::from_millis(self.base_every),
            retention: Retention { keep_ms: self.keep_ms, bases_min: self.bases_min },
            recipients: self.encrypted.keys().recipients(),
            keys: self.encrypted.known_keys(),
            macs: MacKeys::default(),
            hold_bytes: self.hold_bytes,
            verify_every: self.verify_every.map(Duration::from_millis),
            merging: self.merge_ms.map(|span_ms| Merging { span_ms }),
        }
    }
}

/// What the nodes say of their archive, and what is known of their logs.
#[derive(Default)]
struct Seen {
    /// What each said last of what it counts, since its start.
    counts: BTreeMap<HostId, BTreeMap<&'static str, u64>>,
    /// All of that together, from all starts.
    sums: BTreeMap<&'static str, u64>,
    /// Who archived a piece last, and how often that was another one than before.
    archiver: Option<HostId>,
    changes: u64,
    /// Up to where each log was purged, and how far it went.
    logs: BTreeMap<HostId, (u64, u64)>,
}

/// What the archives of the nodes count.
const SEGMENTS: &str = "archive_segments";
const GAPS: &str = "archive_gaps";
const BYTES: &str = "archive_bytes";

impl Seen {
    /// Looks at all nodes.
    fn look(&mut self, world: &World, may_give_up: bool) -> Found {
        for id in world.founders() {
            let Some(parts) = world.parts(*id) else {
                self.counts.remove(id);
                self.logs.remove(id);
                continue;
            };
            let Some(ledger) = parts.app.archive() else { continue };
            let mut samples = Vec::new();
            ArchiveSamples { ledger: Arc::clone(ledger), is_expected: true }.sample(&mut samples);
            let counts = self.counts.entry(*id).or_default();
            for sample in samples {
                let Value::Counter(count) = sample.value else { continue };
                let before = counts.insert(sample.name, count).unwrap_or(0);
                *self.sums.entry(sample.name).or_default() += count.saturating_sub(before);
                if sample.name == SEGMENTS && count > before && self.archiver.replace(*id) != Some(*id) {
                    self.changes += 1;
                }
            }
            let (purged, last) = (parts.log.purged_index().unwrap_or(0), parts.log.last_index());
            let before = self.logs.insert(*id, (purged, last));
            // What it never had, a snapshot took the place of.
            let gave_away = before.is_some_and(|(before, had)| purged > before && purged <= had);
            if gave_away && !may_give_up && self.gaps() == 0 {
                judge_purge(world, *id, purged)?;
            }
        }
        Ok(())
    }

    /// How often entries were told to be missing.
    fn gaps(&self) -> u64 {
        self.sums.get(GAPS).copied().unwrap_or(0)
    }
}

/// Checks that no log is purged beyond the archive while a sound base exists. After the loss of the last base the archive needs a new one, and
/// entries before that base are of no use to it.
fn judge_purge(world: &World, id: HostId, purged: u64) -> Found {
    let (ever, hurt) = (world.objects.ever(), world.objects.hurt());
    let has_base = world.objects.all().keys().any(|path| base_of(path).is_some() && !hurt.damaged.contains(path));
    let bases = ever.iter().filter_map(|path| base_of(path)).map(|base| base.index);
    let pieces = ever.iter().filter_map(|path| piece_of(path)).map(|piece| piece.last);
    match pieces.chain(bases).max() {
        Some(archived) if purged > archived && has_base => {
            Err(format!("the log of node {id} was purged up to {purged}, and the archive has entries up to {archived}"))
        }
        _ => Ok(()),
    }
}

/// The base that an object is the manifest of.
fn base_of(path: &str) -> Option<BaseName> {
    path.strip_suffix("/manifest.json")?.rsplit('/').next()?.parse().ok()
}

/// The piece that an object is.
fn piece_of(path: &str) -> Option<SegmentName> {
    path.rsplit('/').next()?.parse().ok()
}

/// Has nodes archive beside all else that they do, to a store with which nothing goes wrong.
pub fn archive_beside(world: &mut World, dice: StdRng) {
    background::simulate_blocking_by(aside::does);
    world.objects.heal();
    let plan = Plan {
        interval: 100,
        base_every: 1_000,
        keep_ms: 3_600_000,
        bases_min: 2,
        hold_bytes: 1 << 30,
        verify_every: None,
        merge_ms: None,
        snapshot_every: 0,
        keep_log: 0,
        hurts: false,
        jumps: Jumps::Many,
        encrypted: Encrypted::Nobody,
    };
    let store = world.objects.of(CLIENTS, dice);
    world.archive_to(&plan.settings(Location::given(store, "the simulated store")));
}

/// Whether all that was applied is archived, behind a base.
pub fn is_archived(world: &World) -> Result<bool, String> {
    let (_, end) = Judge::of(world, 0, Jumps::Many, 0, Keys::default()).reach()?;
    Ok(end.is_some_and(|end| end >= world.facts.applied()))
}

/// Restores the end of what is archived, and other points of it, and compares them with what the cluster was there.
pub fn restore_some(world: &World, dice: &mut StdRng) -> Found {
    let found = Judge::of(world, 0, Jumps::Many, 0, Keys::default()).judge(&mut Judged::default(), dice, Some(&[]));
    found.map_err(|found| format!("the archive: {found}"))
}

/// A story that is under way.
struct Course {
    plan: Plan,
    seen: Seen,
    judged: Judged,
    /// Keys that were written, as the cluster said.
    written: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    /// Nothing goes wrong any more.
    is_calm: Arc<AtomicBool>,
    /// Whose clocks come back when, and by how much.
    back: Vec<(u64, Vec<HostId>, i64)>,
}

impl Stage {
    pub(super) fn archive(&mut self, seed: u64) -> Found {
        let plan = Plan::draw(seed, &mut self.dice);
        let mut course = self.begin_archiving(plan)?;
        let done = self.go_through(&mut course);
        self.count_archived(&course);
        done?;
        self.met_enough(&course)
    }

    /// A cluster that archives, and to which entries are written.
    fn begin_archiving(&mut self, plan: Plan) -> Result<Course, String> {
        self.say(&format!("{plan:?}"));
        background::simulate_blocking_by(aside::does);
        for id in self.world.founders().to_vec() {
            let store = self.world.objects.of(id, objects::dice(&mut self.dice));
            let settings = plan.settings(Location::given(store, "the simulated store"));
            self.world.configure(id, |config| {
                config.snapshot_every_entries = plan.snapshot_every;
                config.keep_log_entries = plan.keep_log;
                config.archive = Some(settings);
            });
        }
        let (seen, judged, written, is_over, is_calm, back) = Default::default();
        let course = Course { plan, seen, judged, written, is_over, is_calm, back };
        self.world.start_all();
        self.until(UP_MAX, "nobody leads", |world| world.is_up() && world.leader().is_some())?;
        (0..WRITERS).for_each(|number| self.write_on(number, &course));
        Ok(course)
    }

    fn go_through(&mut self, course: &mut Course) -> Found {
        let until = self.world.now + self.dice.random_range(DURING);
        let mut judged = self.world.now;
        while self.world.now < until {
            let rest = self.dice.random_range(REST);
            self.go_on(rest, course)?;
            self.harm(course);
            if self.world.now >= judged {
                judged = self.world.now + self.dice.random_range(JUDGED_EVERY);
                self.judge(course, false)?;
            }
        }
        self.say("nothing goes wrong any more");
        course.is_calm.store(true, Ordering::Relaxed);
        self.bring_clocks_back(course, u64::MAX);
        self.world.objects.heal();
        self.world.heal_all();
        self.until_enough(course)?;
        self.until_whole(course)?;
        self.judge(course, true)?;
        // By chance few points may have been within reach.
        if course.judged.compared() < COMPARED_MIN { self.judge(course, true) } else { Ok(()) }
    }

    /// Goes on until the archive got enough pieces and bases: while leaders change every other second, hardly any come about.
    fn until_enough(&mut self, course: &mut Course) -> Found {
        let begun = self.world.now;
        while !self.has_enough() && self.world.now - begun <= WHOLE_MAX {
            self.go_on(250, course)?;
        }
        Ok(())
    }

    fn has_enough(&self) -> bool {
        let (pieces, bases) = self.archived();
        pieces >= PIECES_MIN && bases >= BASES_MIN
    }

    /// Waits until the archive has a base of now, and all that was written.
    fn until_whole(&mut self, course: &mut Course) -> Found {
        let (healed, begun) = (self.world.facts.applied(), self.world.now);
        loop {
            self.go_on(250, course)?;
            let (base, end) = self.judge_of(course).reach()?;
            let has_base = base.is_some_and(|base| base >= healed);
            if has_base && !course.is_over.swap(true, Ordering::Relaxed) {
                self.say("a base was archived since");
            }
            let is_all = end.is_some_and(|end| end >= self.world.facts.applied());
            if has_base && is_all && self.world.is_up() && self.world.agrees() {
                return Ok(());
            }
            if self.world.now - begun > WHOLE_MAX {
                return Err(format!(
                    "{WHOLE_MAX} ms after all was well again, and applied up to {healed}, the newest base is {base:?} and the archive goes \
                     up to {end:?}; {}",
                    self.world.describe()
                ));
            }
        }
    }

    fn judge_of<'a>(&'a self, course: &'a Course) -> Judge<'a> {
        let Plan { keep_ms, jumps, encrypted, .. } = course.plan;
        Judge::of(&self.world, keep_ms, jumps, course.seen.gaps(), encrypted.keys())
    }

    /// Looks at what the archive has, and restores some of it; in the end all that was written has to be there.
    fn judge(&mut self, course: &mut Course, is_end: bool) -> Found {
        let mut judged = std::mem::take(&mut course.judged);
        let written = course.written.lock().clone();
        let mut dice = objects::dice(&mut self.dice);
        let done = self.judge_of(course).judge(&mut judged, &mut dice, is_end.then_some(&written[..]));
        course.judged = judged;
        let done = done.map_err(|found| format!("the archive: {found}"));
        let (pieces, bases) = self.archived();
        let (compared, refused) = (course.judged.compared(), course.judged.refused());
        self.say(&format!("{pieces} pieces, {bases} bases; {compared} points were compared, {refused} refused"));
        done
    }

    /// So many steps, with a look at the nodes at each.
    fn go_on(&mut self, millis: u64, course: &mut Course) -> Found {
        for _ in 0..millis {
            self.world.step()?;
            course.seen.look(&self.world, course.plan.hold_bytes == HOLD_LITTLE)?;
            self.bring_clocks_back(course, self.world.now);
        }
        Ok(())
    }

    fn bring_clocks_back(&mut self, course: &mut Course, until: u64) {
        let back = std::mem::take(&mut course.back).into_iter();
        let (due, later): (Vec<_>, Vec<_>) = back.partition(|(at, ..)| *at <= until);
        course.back = later;
        for (_, whose, nanos) in due {
            whose.iter().for_each(|id| drop(self.world.shift_wall(*id, -nanos)));
        }
    }

    fn harm(&mut self, course: &mut Course) {
        let hosts = self.world.founders().to_vec();
        let any = *hosts.choose(&mut self.dice).expect("there are three");
        match self.dice.random_range(0..14) {
            0..=5 => {
                let (wound, words) = *WOUNDS.choose(&mut self.dice).expect("not empty");
                if let Some((node, lasts, cure)) = wound.cause(&mut self.world, &mut self.dice) {
                    self.note(words, &format!("{words} (node {node}, {lasts} ms)"));
                    self.world.heal_after(lasts, cure);
                }
            }
            6 if self.world.are_all_awake() => {
                let away = self.dice.random_range(AWAY);
                self.note("a node was away for long", &format!("node {any} is away for {away} ms"));
                let start = self.world.crash(any, true);
                self.world.heal_after(away, start);
            }
            7 | 8 => {
                let millis = self.dice.random_range(OUT);
                let whose = if self.dice.random() { vec![any] } else { hosts };
                self.note("the store refused all", &format!("the store refuses {whose:?} for {millis} ms"));
                whose.iter().for_each(|id| self.world.objects.refuse(*id, millis));
            }
            9 => {
                let (millis, slowest) = (self.dice.random_range(SLOW), self.dice.random_range(SLOWEST));
                self.note(
                    "the store was slow",
                    &format!("the store is slow to node {any} for {millis} ms: {slowest} ms"),
                );
                self.world.objects.slow_down(any, slowest, millis);
            }
            10 | 11 => self.jump(any, course),
            _ if course.plan.hurts => {
                let hurt = match self.dice.random() {
                    true => self.world.objects.damage(&mut self.dice),
                    false => self.world.objects.lose(&mut self.dice),
                };
                self.say(&format!("the store hurt {hurt:?}"));
            }
            _ => {}
        }
    }

    /// Clocks jump, and come back later.
    fn jump(&mut self, any: HostId, course: &mut Course) {
        let hosts = self.world.founders();
        let whose = match course.plan.jumps {
            Jumps::Nobody => return,
            // Two that are off apart from one another leave no majority.
            Jumps::One => vec![hosts[0]],
            Jumps::Many if self.dice.random() => hosts.iter().copied().filter(|id| *id != any).collect(),
            Jumps::Many => hosts.to_vec(),
        };
        if !course.back.is_empty() {
            return;
        }
        let (nanos, after) = (self.dice.random_range(JUMP), self.dice.random_range(BACK_AFTER));
        self.note(
            "clocks jumped, and came back",
            &format!("the clocks of {whose:?} jump by {} s", nanos / 1_000_000_000),
        );
        whose.iter().for_each(|id| drop(self.world.shift_wall(*id, nanos)));
        course.back.push((self.world.now + after, whose, nanos));
    }

    fn note(&mut self, met: &'static str, said: &str) {
        self.meet(met);
        self.say(said);
    }

    /// Writes one entry after the other, at any node, until it is over. Each is written once, whoever takes it.
    fn write_on(&mut self, number: u64, course: &Course) {
        let (network, hosts) = (self.world.client_network(), self.world.founders().to_vec());
        let (written, is_over) = (Arc::clone(&course.written), Arc::clone(&course.is_over));
        let is_calm = Arc::clone(&course.is_calm);
        let sizes: Vec<usize> = (0..64).map(|_| self.dice.random_range(1..1_500)).collect();
        self.world.spawn(async move {
            for (entry, size) in sizes.iter().cycle().enumerate() {
                let key = format!("written/{number}/{entry}");
                let put = Request::put(&key, format!("\"{}\"", "w".repeat(*size))).request_id(&key);
                for to in hosts.iter().cycle().skip(entry % hosts.len()) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let asking = async {
                        let mut connection = Connection::over(network.connect(&client_address(*to)).await?);
                        connection.exchange(&put).await
                    };
                    match tokio::time::timeout(WRITE_MAX, asking).await {
                        Ok(Ok(answer)) if answer.is_success() => break,
                        _ => tokio::time::sleep(WRITE_AGAIN).await,
                    }
                }
                written.lock().push(key);
                let rest = if is_calm.load(Ordering::Relaxed) { WRITER_RESTS_LONG } else { WRITER_RESTS };
                tokio::time::sleep(Duration::from_millis(rest + number)).await;
            }
        });
    }

    /// Adds what the nodes, the store and the judge counted.
    fn count_archived(&mut self, course: &Course) {
        self.met.extend(self.world.objects.met());
        self.counted.extend(&course.seen.sums);
        self.counted.extend(course.judged.met());
        self.counted.insert("another node went on archiving", course.seen.changes.saturating_sub(1));
        self.counted.retain(|what, times| *times > 0 && *what != BYTES);
        self.operations = course.written.lock().len() as u64;
    }

    /// How many pieces and bases were ever in the archive.
    fn archived(&self) -> (usize, usize) {
        let ever = self.world.objects.ever();
        let pieces = ever.iter().filter(|path| piece_of(path).is_some()).count();
        (pieces, ever.iter().filter(|path| base_of(path).is_some()).count())
    }

    fn met_enough(&mut self, course: &Course) -> Found {
        let (pieces, bases) = self.archived();
        let compared = course.judged.compared();
        match self.has_enough() && compared >= COMPARED_MIN {
            true => Ok(()),
            false => {
                Err(format!("{pieces} pieces, {bases} bases and {compared} points that were compared prove nothing"))
            }
        }
    }
}

impl Jumps {
    /// Whether the cluster's clock may go back.
    pub(super) fn are_many(self) -> bool {
        self == Self::Many
    }
}
