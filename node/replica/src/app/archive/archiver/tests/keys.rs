//! Histories of archives whose nodes get a secret for MACs, change it, or give it up, one node after the other while leaders change.
//!
//! Owns the histories, each drawn from a seed, and the rules for what every reader must find: a model knows who wrote each object. Prints how
//! often each case was met, and fails if one was met too seldom. The points that names alone lead to have tests elsewhere.

use std::collections::{BTreeMap, VecDeque};
use std::fs;

use quorate_archive::{Retention, Verified};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use super::*;

/// The secrets in the file of each node, in order, from one step of a change to the next.
const CHANGES: [&[&str]; 6] =
    [&["", "a"], &["a", ""], &["a", "ab", "ba", "b"], &["a", "ba", "b"], &["a", "b"], &["", "a", "", "a"]];
/// The secrets of those who restore.
const READERS: [&str; 4] = ["", "a", "b", "ab"];
const NODES: usize = 3;
/// Each change twice in memory and twice in a directory: a seed makes some eight states anew.
const SEEDS: u64 = 4 * CHANGES.len() as u64;
/// Entries that one leader writes.
const TURN: u64 = 3;

/// Names cases, all of which have to be met.
macro_rules! cases {
    ($($case:ident = $words:literal;)*) => {
        $(const $case: &str = $words;)*
        const WANTED: &[&str] = &[$($case),*];
    };
}

cases! {
    BASE_FOR_ANOTHER_KEY = "bases because of another key";
    NO_BASE = "leaders that ended before their base";
    MERGED = "archives with bundles";
    WITHOUT_MAC = "objects without a MAC, for who has a secret";
    FORGED = "objects by a secret that is not there";
    RESTORED = "restores";
    REFUSED = "restores refused for want of a key";
    SOUND = "trials that find nothing wrong";
    BY_NEWEST = "of these, beside what has no MAC";
    FAULTY = "trials that find a fault";
    PRUNED = "prunes that removed bases";
    HELD = "prunes that were held by a fault";
    DAMAGED = "damaged objects";
}

#[derive(Default)]
struct Met(BTreeMap<&'static str, usize>);

impl Met {
    fn meet(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// The state of a log after each of its entries.
struct States(BTreeMap<u64, (BaseManifest, Vec<u8>)>);

impl States {
    fn play(handle: &Handle) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = StateOptions { snapshot_free_bytes_min: 0, ..StateOptions::new(1) };
        let (mut state, reader) = StateMachine::open(dir.path(), options).unwrap();
        let mut states = BTreeMap::new();
        for index in 0..=LAST {
            handle.block_on(state.apply(stream::iter([Ok((entry(index, 0), None))]))).unwrap();
            let taker = Taker { cluster_id: CLUSTER, node_id: 1, node_version: "test".into(), now: 5 };
            let taken = reader.take_whole(taker, |header, whole| {
                let mut bytes = Vec::new();
                whole.write(&mut bytes).map(|_end| (manifest(header), bytes))
            });
            states.insert(index, taken.unwrap().unwrap());
        }
        Self(states)
    }

    fn digest(&self) -> &str {
        &self.0[&LAST].0.digest
    }
}

/// The secret that something was written with, if there was one.
type By = Option<char>;

/// Whether a reader with these secrets accepts an object by this writer. A reader without secrets accepts all.
fn takes(secrets: &str, by: By) -> bool {
    secrets.is_empty() || by.is_some_and(|secret| secrets.contains(secret))
}

struct History<'s> {
    states: &'s States,
    handle: &'s Handle,
    /// The archive as a reader without a secret opens it.
    archive: Archive,
    /// Its directory, if it is not in memory.
    home: Option<TempDir>,
    bases: Vec<(BaseName, By)>,
    pieces: Vec<(SegmentName, By)>,
    /// The last entries of those pieces that follow one another.
    ends: Vec<u64>,
}

impl<'s> History<'s> {
    /// Plays the history of a seed to its end.
    fn play(seed: u64, states: &'s States, handle: &'s Handle, dice: &mut StdRng, met: &mut Met) -> Self {
        let steps = CHANGES[seed as usize % CHANGES.len()];
        let home = (seed / CHANGES.len() as u64).is_multiple_of(2).then(|| tempfile::tempdir().unwrap());
        let place = home.as_ref().map_or_else(Place::in_memory, |home| {
            home.path().to_str().unwrap().parse::<Location>().unwrap().open().unwrap()
        });
        let archive = Archive::of(place, CLUSTER);
        let (bases, pieces, ends) = Default::default();
        let mut history = Self { states, handle, archive, home, bases, pieces, ends };
        let begin = dice.random_range(0..NODES);
        let each = |step: &&'static str| (0..NODES).map(|node| ((begin + node) % NODES, *step)).collect::<Vec<_>>();
        let mut restarts: VecDeque<_> = steps[1..].iter().flat_map(each).collect();
        let mut nodes = [steps[0]; NODES];
        let (mut first, mut ended_early) = (1, false);
        while first <= LAST {
            let last = (first + dice.random_range(0..TURN)).min(LAST);
            let secrets = nodes[dice.random_range(0..NODES)];
            // Two that end early, one after the other, are not seen by the last piece.
            ended_early = first > 1 && !ended_early && dice.random_range(0..4) == 0;
            history.lead(secrets, (first, last), ended_early, dice, met);
            if !ended_early {
                let alone: String = secrets.chars().take(1).collect();
                assert!(history.newest_leads_to(last, &alone), "{alone:?} restores entry {last} {}", history.told());
            }
            let another = nodes[dice.random_range(0..NODES)];
            if first > TURN && dice.random_range(0..4) == 0 {
                // One that was replaced and does not know yet.
                let from = dice.random_range(first - TURN..first);
                history.put(another, (from, dice.random_range(from..first)));
            }
            for (node, step) in restarts.drain(..restarts.len().min(dice.random_range(0..2))) {
                nodes[node] = step;
            }
            first = last + 1;
        }
        if dice.random_range(0..2) == 0 {
            let end = history.ends[dice.random_range(0..history.ends.len())];
            merge(&history.source(""), 0, end, usize::MAX);
            met.meet(MERGED);
        }
        history
    }

    fn told(&self) -> String {
        let pieces: Vec<_> = self.pieces.iter().map(|(name, by)| (name.first, name.last, *by)).collect();
        let bases: Vec<_> = self.bases.iter().map(|(name, by)| (name.index, *by)).collect();
        format!("out of pieces {pieces:?} and bases {bases:?}")
    }

    /// The archive as one opens it who has these secrets.
    fn source(&self, secrets: &str) -> Source {
        Source { archive: by(&self.archive, secrets), keys: Keys::default(), handle: self.handle.clone() }
    }

    fn put(&mut self, secrets: &str, stretch: (u64, u64)) {
        let name = put_piece(self.handle, &by(&self.archive, secrets), stretch);
        self.pieces.push((name, secrets.chars().next()));
    }

    /// A node leads for some entries, and ends before its base is there, if one is due, or does not.
    fn lead(&mut self, secrets: &str, (first, last): (u64, u64), ends_early: bool, dice: &mut StdRng, met: &mut Met) {
        let writer = by(&self.archive, secrets);
        let catalogue = self.handle.block_on(self.archive.catalogue()).unwrap();
        let is_due = self.bases.last().is_none_or(|(base, _)| {
            let piece = catalogue.survey().last.cloned();
            self.handle.block_on(is_outdated(&writer, *base, piece, &Recipients::default())).unwrap()
        });
        let middle = dice.random_range(first..=last);
        for stretch in [(first, middle), (middle + 1, last)].into_iter().filter(|(first, last)| first <= last) {
            self.put(secrets, stretch);
            self.ends.push(stretch.1);
        }
        let is_old = dice.random_range(0..16) == 0;
        if ends_early {
            if is_due {
                met.meet(NO_BASE);
            }
            return;
        }
        if is_due || is_old {
            if is_due && !self.bases.is_empty() {
                met.meet(BASE_FOR_ANOTHER_KEY);
            }
            let (manifest, state) = &self.states.0[&dice.random_range(first..=last)];
            put_base(self.handle, &writer, manifest, &Recipients::default(), |sink| sink.write_all(state));
            self.bases.push((manifest.name(), secrets.chars().next()));
        }
    }

    /// Whether all entries behind this one, up to that, are in pieces that one takes who has these secrets.
    fn leads(&self, from: u64, to: u64, secrets: &str) -> bool {
        let holds = |index: u64| {
            let has_it = |name: &SegmentName| (name.first..=name.last).contains(&index);
            self.pieces.iter().any(|(name, by)| has_it(name) && takes(secrets, *by))
        };
        (from + 1..=to).all(holds)
    }

    fn newest_leads_to(&self, end: u64, secrets: &str) -> bool {
        self.bases.last().is_some_and(|(base, by)| takes(secrets, *by) && self.leads(base.index, end, secrets))
    }

    fn any_leads_to_end(&self, secrets: &str) -> bool {
        let leads = |(base, by): &(BaseName, By)| takes(secrets, *by) && self.leads(base.index, LAST, secrets);
        self.bases.iter().any(leads)
    }

    /// Those by whom an object of the log is: a bundle has all pieces up to its end.
    fn writers(&self, object: &SegmentName) -> Vec<By> {
        let is_in = |name: &SegmentName| if object.is_bundle() { name.last <= object.last } else { name == object };
        self.pieces.iter().filter(|(name, _)| is_in(name)).map(|(_, by)| *by).collect()
    }

    /// Compares the objects that a reader names as wrong with those that it must not accept.
    fn prove(&self, secrets: &str, met: &mut Met) {
        let source = self.source(secrets);
        let mut judge = |what: String, writers: Vec<By>, wrong: &[ArchiveError]| {
            let (mut missing, mut forged) = (false, false);
            for by in writers.into_iter().filter(|by| !takes(secrets, *by)) {
                *(if by.is_none() { &mut missing } else { &mut forged }) = true;
            }
            let has = |is_it: fn(&ArchiveError) -> bool| wrong.iter().any(is_it);
            let is_missing: fn(&ArchiveError) -> bool = |error| matches!(error, ArchiveError::Locked { .. });
            let is_forged: fn(&ArchiveError) -> bool = |error| matches!(error, ArchiveError::Forged { .. });
            let found = (has(is_missing), has(is_forged));
            assert_eq!(found, (missing, forged), "{what} for {secrets:?}: {wrong:?} {}", self.told());
            assert_eq!(wrong.is_empty(), !missing && !forged, "{what} for {secrets:?}: {wrong:?}");
            for (is_met, what) in [(missing, WITHOUT_MAC), (forged, FORGED)] {
                if is_met {
                    met.meet(what);
                }
            }
        };
        for (base, by) in &self.bases {
            let (bytes, wrong) = source.archive.prove_base(self.handle, base);
            assert!(bytes > 0, "{base} is read in any case");
            judge(base.to_string(), vec![*by], &wrong);
        }
        for (object, _) in self.handle.block_on(source.archive.segments()).unwrap() {
            let proven = self.handle.block_on(source.archive.prove_segment(&object));
            judge(object.to_string(), self.writers(&object), &proven.err().unwrap_or_default());
        }
    }

    /// Restores the newest point, which is there or refused with what to do.
    fn restore(&self, secrets: &str, met: &mut Met) {
        let told = || format!("for {secrets:?} {}", self.told());
        match restored(&self.source(secrets), Target::Latest) {
            Ok(at) => {
                assert!(self.any_leads_to_end(secrets), "nothing leads there {}", told());
                self.is_the_end(&at);
                met.meet(RESTORED);
            }
            Err(refused) => {
                assert!(!self.any_leads_to_end(secrets), "{refused} {}", told());
                let text = refused.to_string();
                assert!(refused.is_of_the_archive() && names_a_key(&text), "{text} {}", told());
                met.meet(REFUSED);
            }
        }
    }

    fn is_the_end(&self, at: &Replayed) {
        assert_eq!((at.log_id.index, format!("{:032x}", at.digest).as_str()), (LAST, self.states.digest()));
    }

    /// Tries a restore as a leader with these secrets does; what it would note.
    fn try_end(&self, secrets: &str, met: &mut Met) -> Verified {
        let scratch = tempfile::tempdir().unwrap();
        let ended = self.source(secrets).rebuild_end(scratch.path(), &mut Unwatched);
        let is_to_be_had = self.newest_leads_to(LAST, secrets);
        let told = || format!("for {secrets:?} {}", self.told());
        let mut verified = Verified { at: true_wall(LAST), node: 1, ..Verified::default() };
        match ended {
            Ok(End { replay, passed_over, locked }) => {
                self.is_the_end(&replay.at());
                verified.index = LAST;
                assert!(is_to_be_had || !passed_over.is_empty(), "the newest base is of no use {}", told());
                if passed_over.is_empty() && locked.is_some() {
                    met.meet(BY_NEWEST);
                }
                verified.fault = (!passed_over.is_empty()).then(|| passed_over.join("; "));
                verified.locked = locked;
            }
            Err(error) => {
                assert!(error.is_of_the_archive() && names_a_key(&error.to_string()), "{error} {}", told());
                verified.fault = Some(error.to_string());
            }
        }
        let has_foreign = self.bases.iter().map(|(_, by)| by).chain(self.pieces.iter().map(|(_, by)| by));
        let has_foreign = has_foreign.flatten().any(|secret| !takes(secrets, Some(*secret)));
        if is_to_be_had && !has_foreign {
            assert_eq!(verified.fault, None, "what was before there was a secret is no fault {}", told());
        }
        met.meet(if verified.fault.is_some() { FAULTY } else { SOUND });
        verified
    }

    /// Removes what is not needed, as a leader with these secrets does after a try.
    fn prune(&self, secrets: &str, verified: &Verified, dice: &mut StdRng, met: &mut Met) {
        let source = self.source(secrets);
        self.handle.block_on(source.archive.note_verified(verified)).unwrap();
        let keep_ms = dice.random_range(2..9) * 1_000;
        let oldest = Target::Time(true_wall(LAST) - keep_ms);
        let is_there = || self.source("").want(oldest, Begin::Newest).is_ok();
        let was_there = is_there();
        let retention = Retention { keep_ms, bases_min: 1 };
        let pruned = prune(source.archive, settings(retention), true_wall(LAST), usize::MAX);
        let Pruned { removed, bases, .. } = self.handle.block_on(pruned).unwrap();
        assert_eq!(is_there(), was_there, "what is promised stays, whoever removes {}", self.told());
        if verified.fault.is_some() {
            assert_eq!((removed, bases), (0, 0), "nothing goes while something is wrong");
            met.meet(HELD);
            return;
        }
        self.is_the_end(&restored(&self.source(secrets), Target::Latest).expect("it was to be had, and is"));
        if bases > 0 {
            met.meet(PRUNED);
        }
    }

    /// Damages an object, which is found with any secrets, and nothing else with it.
    fn damage(&self, home: &TempDir, dice: &mut StdRng, met: &mut Met) {
        let part = home.path().join(format!("quorate-{CLUSTER:032x}"));
        let objects = self.handle.block_on(self.archive.segments()).unwrap();
        let (base, object) =
            (self.bases[dice.random_range(0..self.bases.len())].0, dice.random_range(0..objects.len()));
        let object = &objects[object].0;
        let is_base = dice.random_range(0..2) == 0;
        let path = match is_base {
            true => part.join(format!("base/{base}/state")),
            false => part.join(format!("log/{object}")),
        };
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        met.meet(DAMAGED);
        let is_damaged =
            |errors: &[ArchiveError]| errors.iter().any(|error| matches!(error, ArchiveError::Damaged { .. }));
        for secrets in READERS {
            let archive = by(&self.archive, secrets);
            for (name, _) in &self.bases {
                let (_, wrong) = archive.prove_base(self.handle, name);
                assert_eq!(is_damaged(&wrong), is_base && *name == base, "{name} for {secrets:?}: {wrong:?}");
            }
            for (name, _) in &objects {
                let wrong = self.handle.block_on(archive.prove_segment(name)).err().unwrap_or_default();
                assert_eq!(is_damaged(&wrong), !is_base && name == object, "{name} for {secrets:?}: {wrong:?}");
            }
        }
        match restored(&self.source(""), Target::Latest) {
            Ok(at) => self.is_the_end(&at),
            Err(refused) => assert!(refused.to_string().contains("is damaged"), "{refused}"),
        }
    }
}

/// Whether a message says that it is for want of a key.
fn names_a_key(text: &str) -> bool {
    text.contains("has no MAC") || text.contains("is not authentic")
}

fn settings(retention: Retention) -> ArchiveSettings {
    ArchiveSettings {
        location: "nowhere".parse().unwrap(),
        interval: Duration::from_secs(1),
        base_every: Duration::from_secs(10),
        retention,
        recipients: Recipients::default(),
        keys: Keys::default(),
        macs: MacKeys::default(),
        hold_bytes: 0,
        verify_every: None,
        merging: None,
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a test says what it met")]
fn while_keys_change_node_by_node_everybody_finds_what_their_keys_open_and_nothing_goes_for_want_of_one() {
    let runtime = runtime();
    let (states, mut met) = (States::play(runtime.handle()), Met::default());
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let dice = &mut StdRng::seed_from_u64(seed);
        let history = History::play(seed, &states, runtime.handle(), dice, &mut met);
        READERS.into_iter().for_each(|secrets| history.prove(secrets, &mut met));
        history.restore(READERS[dice.random_range(0..READERS.len())], &mut met);
        let tried = READERS.map(|secrets| (secrets, history.try_end(secrets, &mut met)));
        match &history.home {
            Some(home) => history.damage(home, dice, &mut met),
            None => {
                let (secrets, verified) = &tried[dice.random_range(0..tried.len())];
                history.prune(secrets, verified, dice, &mut met);
            }
        }
    }
    for (what, count) in &met.0 {
        println!("{count:5}  {what}");
    }
    let missed: Vec<_> = WANTED.iter().filter(|what| !met.0.contains_key(*what)).collect();
    assert!(missed.is_empty(), "not met, so that the rest shows little: {missed:?}");
}
