//! A life of the storage under test: what openraft does with log and state, drawn from a seed.
//!
//! Owns which calls come in which order, and saying each promise once it was made. Never judges: it stops at the first error.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bincode::{Decode, Encode};
use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use quorate_store::identity;
use quorate_store::quarantine::{self, Cause, Quarantine};
use quorate_store::raft::wire::VoteRecord;
use quorate_store::raft::{LogId, TypeConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::oneshot;

use super::entries::{NODE, entry, log_id};
use super::judge::judge;
use super::note::{Note, Promised, Run, Trust};
use super::reference::Prints;
use super::store::{CLUSTER, Fault, Storage, apply};

/// Appends that are on their way at a time.
const FLYING_MAX: usize = 6;

/// How long a former state may take to go.
const TIDY_MAX: Duration = Duration::from_secs(10);

/// Hears everything that a life says, at once and from any of its threads.
pub type Tell = Arc<dyn Fn(Note) + Send + Sync>;

type Ack = oneshot::Receiver<Result<(), std::io::Error>>;

/// What a life starts from.
#[derive(Debug, Encode, Decode)]
pub struct Birth {
    /// The data directory.
    pub dir: PathBuf,
    /// Room for what is not under test.
    pub scratch: PathBuf,
    /// Of what the entries hold.
    pub seed: u64,
    /// Of what this life does.
    pub dice: u64,
    /// What lives before it were promised.
    pub promised: Promised,
    /// What the state must be.
    pub prints: Prints,
}

/// See the top of the file.
pub struct Life {
    pub(super) dir: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) seed: u64,
    pub(super) dice: StdRng,
    pub(super) storage: Storage,
    pub(super) promised: Promised,
    tell: Tell,
    pub(super) term: u64,
    /// Index of the next entry.
    pub(super) next: u64,
    /// Index to term of what the log holds.
    pub(super) terms: BTreeMap<u64, u64>,
    pub(super) purged: Option<LogId>,
    /// Appends that nobody has heard of yet.
    flying: VecDeque<(Vec<Run>, Ack)>,
    /// Index after the last entry known to be durable.
    durable_log: u64,
    scratches: u64,
}

impl Life {
    /// Opens and judges the storage, and takes what it holds for promised.
    pub async fn begin(birth: Birth, tell: Tell) -> Result<Life, Fault> {
        let Birth { dir, scratch, seed, dice, promised, prints } = birth;
        tell(Note::Opening);
        let mut storage = judge(&dir, seed, &promised, &prints).await?;
        let state = storage.log.get_log_state().await.map_err(|error| error.to_string())?;
        let entries = storage.entries().await?;
        let terms: BTreeMap<u64, u64> =
            entries.iter().map(|entry| (entry.log_id.index, entry.log_id.leader_id.term)).collect();
        let vote = storage.log.get_log_reader().await.read_vote().await.map_err(|error| error.to_string())?;
        let next = state.last_log_id.map_or(0, |id| id.index + 1);
        let mut life = Life {
            dir,
            scratch,
            seed,
            dice: StdRng::seed_from_u64(dice),
            storage,
            promised,
            tell,
            term: vote.map_or(0, |vote| vote.leader_id.term),
            next,
            terms,
            purged: state.last_purged_log_id,
            flying: VecDeque::new(),
            durable_log: next,
            scratches: 0,
        };
        life.take_over().await?;
        Ok(life)
    }

    /// Says what the storage holds, and follows the cluster where this log went another way.
    async fn take_over(&mut self) -> Result<(), Fault> {
        self.promised.hear(&Note::Opening);
        let (purged, snapshot) = (self.storage.purged_before, self.storage.machine.snapshot_index());
        self.say(Note::Opened { purged, snapshot });
        self.say(Note::Voted(self.term));
        for run in Run::all_of(self.terms.clone()) {
            self.say(Note::Acked(run));
        }
        if let Some(index) = self.storage.applied() {
            self.say(Note::Applied(index));
        }
        let (log, tell) = (self.storage.log.clone(), Arc::clone(&self.tell));
        self.storage.reader.on_durable(Arc::new(move |index| {
            tell(Note::Durable(index));
            log.set_durable_state_index(index);
        }));
        self.elect().await?;
        let terms = self.terms.iter();
        let other =
            terms.filter(|(index, term)| self.promised.committed.get(index).is_some_and(|theirs| theirs != *term));
        match other.map(|(index, _)| *index).next() {
            Some(from) => self.truncate_from(from).await,
            None => Ok(()),
        }
    }

    /// Does so many things; for ever without a number.
    pub async fn go_on(&mut self, steps: Option<u64>) -> Result<(), Fault> {
        let mut done = 0;
        while steps.is_none_or(|steps| done < steps) {
            self.step().await?;
            if let Some(fault) = self.storage.fault() {
                return Err(fault);
            }
            done += 1;
        }
        Ok(())
    }

    /// Closes the storage, and waits for what it does behind our back: the state before an installation goes when nobody reads
    /// from it any more.
    pub fn end(self) -> Result<(), Fault> {
        self.storage.close();
        let state = self.dir.join("state");
        let is_tidy = || {
            let names = std::fs::read_dir(&state)?.collect::<Result<Vec<_>, _>>()?;
            Ok(names.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with("db-")).count() <= 1)
        };
        let begun = Instant::now();
        while !is_tidy().map_err(|error: std::io::Error| format!("{}: {error}", state.display()))? {
            if begun.elapsed() > TIDY_MAX {
                return Err("the former state is still there".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Fault> {
        match self.dice.random_range(0..100) {
            0..45 => self.append().await,
            45..60 => {
                let left = self.dice.random_range(0..=FLYING_MAX);
                self.settle(left).await
            }
            60..78 => self.commit().await,
            78..81 => self.elect().await,
            81..85 => self.lose_an_election().await,
            85..89 => self.flush(),
            89..92 => self.build_snapshot().await.map(drop),
            92..95 => self.purge_some().await,
            95..97 => self.install().await,
            97 => self.change_trust(),
            98 => self.adopt(),
            _ => {
                // The mark of a log that rests is written twice.
                tokio::time::sleep(Duration::from_millis(25)).await;
                Ok(())
            }
        }
    }

    pub(super) fn say(&mut self, note: Note) {
        self.promised.hear(&note);
        (self.tell)(note);
    }

    async fn append(&mut self) -> Result<(), Fault> {
        let indexes = self.next..self.next + self.dice.random_range(1..7);
        // What the cluster has committed already comes from its leader.
        let term_at = |index: u64| self.promised.committed.get(&index).copied().unwrap_or(self.term);
        let ids: Vec<(u64, u64)> = indexes.clone().map(|index| (index, term_at(index))).collect();
        let runs = Run::all_of(ids.clone());
        for run in &runs {
            self.say(Note::Submitted(*run));
        }
        let entries: Vec<_> = ids.iter().map(|(index, term)| entry(self.seed, *term, *index)).collect();
        let (sender, ack) = TypeConfig::oneshot();
        let taken = RaftLogStorage::append(&mut self.storage.log, entries, IOFlushed::signal(sender)).await;
        taken.map_err(|error| format!("an append is refused: {error}"))?;
        self.terms.extend(ids);
        self.next = indexes.end;
        self.flying.push_back((runs, ack));
        if self.flying.len() > FLYING_MAX { self.settle(FLYING_MAX).await } else { Ok(()) }
    }

    /// Waits until at most so many appends are on their way.
    async fn settle(&mut self, left: usize) -> Result<(), Fault> {
        while self.flying.len() > left {
            let Some((runs, ack)) = self.flying.pop_front() else { break };
            let told = ack.await.map_err(|_| "an append was forgotten".to_owned())?;
            told.map_err(|error| format!("an append failed: {error}"))?;
            for run in runs {
                self.durable_log = self.durable_log.max(run.last + 1);
                self.say(Note::Acked(run));
            }
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), Fault> {
        let first = self.promised.committed_here;
        if self.durable_log <= first {
            return Ok(());
        }
        let end = self.dice.random_range(first..self.durable_log) + 1;
        self.commit_to(end).await
    }

    /// Commits and applies everything before this index, which is durable in the log.
    pub(super) async fn commit_to(&mut self, end: u64) -> Result<(), Fault> {
        let first = self.promised.committed_here;
        for run in Run::all_of(self.terms.range(first..end).map(|(index, term)| (*index, *term))) {
            self.say(Note::Committed(run));
        }
        let applied = self.storage.applied().map_or(0, |index| index + 1);
        if applied >= end {
            return Ok(());
        }
        let mut reader = self.storage.log.get_log_reader().await;
        let entries = reader.try_get_log_entries(applied..end).await.map_err(|error| error.to_string())?;
        apply(&mut self.storage.machine, entries).await
    }

    /// A new term with this node as its leader, or as the follower of one.
    pub(super) async fn elect(&mut self) -> Result<(), Fault> {
        self.term += self.dice.random_range(1..3);
        self.say(Note::Voting(self.term));
        let is_candidate: bool = self.dice.random();
        for committed in [false, true].into_iter().skip(usize::from(!is_candidate)) {
            let vote = VoteRecord { term: self.term, node: NODE, committed };
            let saved = RaftLogStorage::save_vote(&mut self.storage.log, &vote.into()).await;
            saved.map_err(|error| format!("a vote is refused: {error}"))?;
        }
        self.say(Note::Voted(self.term));
        Ok(())
    }

    /// A new leader whose log ends earlier.
    async fn lose_an_election(&mut self) -> Result<(), Fault> {
        let first = self.promised.committed_here.max(self.purged.map_or(1, |id| id.index + 1));
        self.elect().await?;
        if first >= self.next {
            return Ok(());
        }
        let from = self.dice.random_range(first..self.next);
        self.truncate_from(from).await
    }

    /// Drops every entry from this index on.
    pub(super) async fn truncate_from(&mut self, from: u64) -> Result<(), Fault> {
        let keep = match from.checked_sub(1) {
            None => None,
            Some(index) => self.terms.get(&index).map(|term| log_id(*term, index)).or(self.purged),
        };
        self.say(Note::Truncating(from));
        // Whoever waits for them is told something, but openraft does not listen any more.
        self.flying.clear();
        let done = RaftLogStorage::truncate_after(&mut self.storage.log, keep).await;
        done.map_err(|error| format!("a truncation is refused: {error}"))?;
        self.terms.split_off(&from);
        (self.next, self.durable_log) = (from, from);
        // What was appended before the truncation is durable with it.
        for run in Run::all_of(self.terms.clone()) {
            self.say(Note::Acked(run));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if self.storage.applied().is_none() {
            return Ok(());
        }
        let index = self.storage.reader.flush().map_err(|error| error.to_string())?;
        self.say(Note::Durable(index));
        Ok(())
    }

    async fn purge_some(&mut self) -> Result<(), Fault> {
        let end = self.promised.snapshot.min(self.promised.committed_here);
        let held: Vec<(u64, u64)> = self.terms.range(..end).map(|(index, term)| (*index, *term)).collect();
        if held.is_empty() {
            return Ok(());
        }
        let (index, term) = held[self.dice.random_range(0..held.len())];
        self.purge_to(index, term).await
    }

    pub(super) async fn purge_to(&mut self, index: u64, term: u64) -> Result<(), Fault> {
        self.say(Note::Purging(index));
        let done = RaftLogStorage::purge(&mut self.storage.log, log_id(term, index)).await;
        done.map_err(|error| format!("a purge is refused: {error}"))?;
        self.terms = self.terms.split_off(&(index + 1));
        self.purged = Some(log_id(term, index));
        if self.next <= index {
            self.flying.clear();
            (self.next, self.durable_log) = (index + 1, index + 1);
        }
        Ok(())
    }

    fn change_trust(&mut self) -> Result<(), Fault> {
        let take = self.promised.trust != Trust::Taken;
        self.say(Note::Quarantining(take));
        let mark = Quarantine { index: self.next, cause: Cause::Contradicted, reason: "it differs".into() };
        let done = if take { quarantine::write(&self.dir, &mark) } else { quarantine::lift(&self.dir) };
        done.map_err(|error| format!("the mark of quarantine: {error}"))?;
        self.say(Note::Quarantined(take));
        Ok(())
    }

    fn adopt(&mut self) -> Result<(), Fault> {
        self.say(Note::Adopting);
        let adopted = identity::adopt(&self.dir, &self.storage.identity, CLUSTER);
        self.storage.identity = adopted.map_err(|error| error.to_string())?;
        self.say(Note::Adopted);
        Ok(())
    }

    /// A directory of this life's own, never the same twice: a thread may still be removing a state in the one before.
    pub(super) fn fresh_scratch(&mut self) -> Result<PathBuf, Fault> {
        self.scratches += 1;
        let place = self.scratch.join(format!("{}-{}", std::process::id(), self.scratches));
        std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;
    use crate::{scratch, tree};

    const SEED: u64 = 7;

    /// Opens what is in the directory, and gives all that is promised then.
    async fn open(dir: &std::path::Path, promised: Promised, prints: Prints) -> Life {
        let scratch = dir.with_extension("scratch");
        let birth = Birth { dir: dir.to_owned(), scratch, seed: SEED, dice: SEED, promised, prints };
        Life::begin(birth, Arc::new(|_| {})).await.unwrap()
    }

    /// A node that dies after a snapshot was installed, and before the log was purged, purges it when it starts again. That
    /// is not durable before the next thing that is written: if it dies once more, the entries are back.
    #[tokio::test]
    async fn what_is_purged_at_an_opening_may_come_back() {
        let place = scratch("life").unwrap();
        let (first, second) = (place.path().join("first"), place.path().join("second"));
        let mut life = open(&first, Promised::default(), Prints::new()).await;
        life.append().await.unwrap();
        life.settle(0).await.unwrap();
        life.commit_to(life.durable_log).await.unwrap();
        life.take_snapshot().await.unwrap();
        let promised = life.promised.clone();
        life.end().unwrap();
        tree::write(&tree::read(&first).unwrap(), &second).unwrap();

        let mut reference = Reference::new(SEED).unwrap();
        reference.follow(&promised).await.unwrap();
        let life = open(&first, promised, reference.prints.clone()).await;
        assert!(life.purged.is_some() && life.terms.is_empty(), "openraft has purged the log");
        let mut promised = life.promised.clone();
        life.end().unwrap();
        // The vote of the second life was not saved before it died.
        promised.voted = 0;
        judge(&second, SEED, &promised, &reference.prints).await.unwrap().close();
    }
}
