//! Snapshots in a life: built of its own state, and installed from a leader that is further on.
//!
//! Owns that leader, which is made for the occasion. The order of the steps is openraft's.

use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::state::StateReader;
use quorate_store::state::receive::SnapshotReceiver;
use quorate_store::state::snapshot::SnapshotHandle;
use rand::RngExt;

use super::entries::entry;
use super::life::Life;
use super::note::{Note, Run};
use super::store::{Fault, apply, open_state};

/// Bytes of a chunk in which a snapshot comes.
const CHUNK_BYTES: usize = 64 * 1024;

impl Life {
    /// A snapshot of what is applied; `None` where nothing is.
    pub(super) async fn build_snapshot(&mut self) -> Result<Option<SnapshotHandle>, Fault> {
        if self.storage.applied().is_none() {
            return Ok(None);
        }
        let built = build(&mut self.storage.machine).await?;
        self.say(Note::Snapshot(built.manifest().index()));
        Ok(Some(built))
    }

    /// Falls behind and is given a snapshot, after which the log is purged.
    pub(super) async fn install(&mut self) -> Result<(), Fault> {
        let (index, term) = self.take_snapshot().await?;
        self.purge_to(index, term).await
    }

    /// Falls behind and is given a snapshot. Index and term of its last entry.
    pub(super) async fn take_snapshot(&mut self) -> Result<(u64, u64), Fault> {
        self.elect().await?;
        let own = self.build_snapshot().await?;
        let first = self.promised.committed_here;
        let last = first + self.dice.random_range(0..30);
        let term_at = |index: u64| self.promised.committed.get(&index).copied().unwrap_or(self.term);
        let ids: Vec<(u64, u64)> = (first..=last).map(|index| (index, term_at(index))).collect();
        for run in Run::all_of(ids.clone()) {
            self.say(Note::Elsewhere(run));
        }
        let (machine, _reader, theirs) = self.lead(own, &ids).await?;
        let received = receive(&self.storage.reader, &theirs)?;
        drop((machine, theirs));
        let &(index, term) = ids.last().ok_or("a leader that is no further on")?;
        // openraft drops what it knows to be uncommitted if, and only if, it sees that the logs differ there.
        if self.terms.get(&index).is_some_and(|mine| *mine != term) {
            self.truncate_from(first).await?;
        }
        let meta = received.manifest().meta.clone().try_into().map_err(|error| format!("{error}"))?;
        let installed = self.storage.machine.install_snapshot(&meta, received).await;
        installed.map_err(|error| format!("a snapshot cannot be installed: {error}"))?;
        self.say(Note::Installed(index));
        Ok((index, term))
    }

    /// A leader that starts from our snapshot and goes on with these entries. Gives its state and its snapshot.
    async fn lead(
        &mut self,
        start: Option<SnapshotHandle>,
        ids: &[(u64, u64)],
    ) -> Result<(StateMachine, StateReader, SnapshotHandle), Fault> {
        let (mut machine, reader) = open_state(&self.fresh_scratch()?)?;
        if let Some(start) = start {
            let received = receive(&reader, &start)?;
            let meta = received.manifest().meta.clone().try_into().map_err(|error| format!("{error}"))?;
            machine.install_snapshot(&meta, received).await.map_err(|error| format!("the leader: {error}"))?;
        }
        let entries = ids.iter().map(|(index, term)| entry(self.seed, *term, *index)).collect();
        apply(&mut machine, entries).await?;
        let snapshot = build(&mut machine).await?;
        Ok((machine, reader, snapshot))
    }
}

async fn build(machine: &mut StateMachine) -> Result<SnapshotHandle, Fault> {
    let mut builder = machine.try_create_snapshot_builder(true).await.ok_or("no snapshot is granted")?;
    let built = builder.build_snapshot().await.map_err(|error| format!("a snapshot cannot be built: {error}"))?;
    Ok(built.snapshot)
}

/// Takes a snapshot in, chunk by chunk.
fn receive(reader: &StateReader, snapshot: &SnapshotHandle) -> Result<SnapshotHandle, Fault> {
    let take_in = || {
        let mut receiver = SnapshotReceiver::begin(reader.state_dir(), snapshot.manifest().clone())?;
        for (number, file) in snapshot.manifest().files.iter().enumerate() {
            let mut offset = receiver.have()[number];
            while offset < file.bytes {
                let chunk = snapshot.read_chunk(number, offset, CHUNK_BYTES)?;
                receiver.write(number, offset, &chunk)?;
                offset += chunk.len() as u64;
            }
        }
        receiver.finish()
    };
    take_in().map_err(|error: std::io::Error| format!("a snapshot cannot be received: {error}"))
}
