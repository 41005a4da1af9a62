//! The judge: opens what a crash has left and compares it with what was promised.
//!
//! Owns what must hold. Never forgives: a refusal to open is a broken promise too, since no disk lied here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use openraft::StorageHelper;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use quorate_store::adapters::start;
use quorate_store::quarantine;
use quorate_store::raft::LogEntry;

use super::entries::{NODE, entry};
use super::note::{Promised, Trust};
use super::reference::Prints;
use super::store::{CLUSTER, Fault, Storage, apply, print_of};

/// Opens the directory, judges it, and brings the state up to what is known to be committed.
pub async fn judge(dir: &Path, seed: u64, promised: &Promised, prints: &Prints) -> Result<Storage, Fault> {
    let mut storage = Storage::open(dir)?;
    match look(&mut storage, dir, seed, promised, prints).await {
        Ok(()) => Ok(storage),
        Err(fault) => {
            storage.close();
            Err(fault)
        }
    }
}

async fn look(storage: &mut Storage, dir: &Path, seed: u64, promised: &Promised, prints: &Prints) -> Result<(), Fault> {
    check_marks(storage, dir, promised)?;
    check_vote(storage, promised).await?;
    let found = check_log(storage, seed, promised).await?;
    check_snapshot(storage, promised)?;
    check_state(storage, promised, prints)?;
    start_as_openraft(storage).await?;
    check_state(storage, promised, prints)?;
    catch_up(storage, &found, promised, prints).await?;
    storage.fault().map_or(Ok(()), Err)
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn check_marks(storage: &Storage, dir: &Path, promised: &Promised) -> Result<(), Fault> {
    let cluster = storage.identity.cluster_id;
    ensure(cluster.is_none_or(|found| found == CLUSTER && promised.adopting), || format!("it belongs to {cluster:?}"))?;
    ensure(cluster.is_some() || !promised.adopted, || "it was adopted and forgot".to_owned())?;
    let mark = quarantine::read(dir).map_err(|error| format!("the mark of quarantine: {error}"))?;
    let expected = match promised.trust {
        Trust::Given => mark.is_none(),
        Trust::Taken => mark.is_some(),
        Trust::Open => true,
    };
    ensure(expected, || format!("the quarantine is {mark:?}, promised was {:?}", promised.trust))
}

async fn check_vote(storage: &mut Storage, promised: &Promised) -> Result<(), Fault> {
    let vote = storage.log.get_log_reader().await.read_vote().await.map_err(|error| error.to_string())?;
    let term = vote.map_or(0, |vote| vote.leader_id.term);
    let range = promised.voted..=promised.voting.max(promised.voted);
    ensure(range.contains(&term), || format!("the vote is for term {term}, promised was one of {range:?}"))
}

/// Gives the entries found.
async fn check_log(storage: &mut Storage, seed: u64, promised: &Promised) -> Result<BTreeMap<u64, LogEntry>, Fault> {
    let state = storage.log.get_log_state().await.map_err(|error| error.to_string())?;
    let purged = state.last_purged_log_id.map_or(0, |id| id.index + 1);
    ensure(purged <= promised.purging, || format!("purged before {purged}, asked was {}", promised.purging))?;
    let entries = storage.entries().await?;
    for (found, index) in entries.iter().zip(purged..) {
        let (term, at) = (found.log_id.leader_id.term, found.log_id.index);
        ensure(at == index, || format!("entry {index} is missing before {at}"))?;
        let known = promised.submitted.contains(&(index, term)) || promised.acked.get(&index) == Some(&term);
        ensure(known, || format!("entry {index} of term {term} was never appended"))?;
        ensure(*found == entry(seed, term, index), || format!("entry {index} of term {term} holds something else"))?;
    }
    let end = purged + entries.len() as u64;
    let last = state.last_log_id.map_or(0, |id| id.index + 1);
    ensure(last == end, || format!("the log says that it ends before {last}, its entries end before {end}"))?;
    let entries: BTreeMap<u64, LogEntry> = entries.into_iter().map(|entry| (entry.log_id.index, entry)).collect();
    for (index, term) in promised.acked.range(purged..) {
        let found = entries.get(index).map(|entry| entry.log_id.leader_id.term);
        ensure(found == Some(*term), || {
            format!("entry {index} was acknowledged in term {term}; found is {found:?} in a log of {purged}..{end}")
        })?;
    }
    Ok(entries)
}

fn check_state(storage: &Storage, promised: &Promised, prints: &Prints) -> Result<(), Fault> {
    let applied = storage.reader.applied();
    let end = applied.log_id.map_or(0, |id| id.index + 1);
    ensure(end >= promised.durable, || format!("the state ends before {end}, durable was {}", promised.durable))?;
    if let Some(id) = applied.log_id {
        let expected = prints.get(&id.index);
        ensure(expected == Some(&print_of(&applied)), || {
            format!("the state at {} is not what a replay of the log gives: {applied:?}", id.index)
        })?;
    }
    Ok(())
}

fn check_snapshot(storage: &Storage, promised: &Promised) -> Result<(), Fault> {
    let end = storage.machine.snapshot_index().map_or(0, |index| index + 1);
    ensure(end >= promised.snapshot, || format!("the snapshot ends before {end}, promised was {}", promised.snapshot))
}

/// What a node does before it serves: [`start::reconcile`], then what openraft itself does with log, snapshot and state.
async fn start_as_openraft(storage: &mut Storage) -> Result<(), Fault> {
    start::reconcile(&storage.log, &storage.machine, &storage.identity).map_err(|error| error.to_string())?;
    let purger = storage.log.clone();
    storage.reader.on_durable(Arc::new(move |index| purger.set_durable_state_index(index)));
    let mut helper = StorageHelper::new(&mut storage.log, &mut storage.machine).with_id(NODE);
    helper.get_initial_state().await.map(drop).map_err(|error| format!("openraft does not start: {error}"))
}

/// Applies what is committed and in the log: nothing that this node ever had of it may be missing.
async fn catch_up(
    storage: &mut Storage,
    found: &BTreeMap<u64, LogEntry>,
    promised: &Promised,
    prints: &Prints,
) -> Result<(), Fault> {
    let first = storage.applied().map_or(0, |index| index + 1);
    let mut rest = Vec::new();
    for index in first..promised.committed_here {
        let entry = found
            .get(&index)
            .ok_or_else(|| format!("entry {index} is committed, but neither applied nor in the log"))?;
        let term = promised.committed.get(&index);
        ensure(term == Some(&entry.log_id.leader_id.term), || {
            format!("entry {index} was committed in term {term:?}, the log has {:?}", entry.log_id)
        })?;
        rest.push(entry.clone());
    }
    let last = rest.last().map(|entry| entry.log_id.index);
    apply(&mut storage.machine, rest).await?;
    let Some(last) = last else { return Ok(()) };
    ensure(prints.get(&last) == Some(&print_of(&storage.reader.applied())), || {
        format!("with the rest of the log applied, the state at {last} is not what a replay gives")
    })
}
