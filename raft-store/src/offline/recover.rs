//! A recovery: a cluster of one node out of the disk of a survivor, after the quorum was lost for good.
//!
//! Owns what is kept: everything this disk has, entries too of which nobody knows whether they were ever committed; to drop
//! one could lose a write that was acknowledged. The survivor gets a new cluster id and a new epoch, as a restore does: the
//! members that are gone must never come back into it, since they may hold another history from some entry on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_machine::machine::{Row, Vars};
use quorate_machine::query::{Cursor as _, StateFault};
use quorate_machine::types::{Revision, WallMillis};

use super::OfflineError;
use super::base::Base;
use super::build::{Beginning, build};
use super::position::make_log;
use super::staging::{self, Staging};
use crate::adapters::state_machine::StateMachine;
use crate::backup::Content;
use crate::identity::{self, Identity};
use crate::log::{self, LogStore};
use crate::quarantine;
use crate::raft::wire::{LogIdRecord, MemberRecord, StoredMembershipRecord};
use crate::state::{Committer, Db, Home, Moment, StateOptions, StateReader, link_files};

/// Log entries read at a time, in bytes.
const READ_BYTES: usize = 4 << 20;
/// Rows taken over at a time, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    /// The survivor's disk; no node may run on it.
    pub data_dir: PathBuf,
    /// Random: the new cluster.
    pub cluster_id: u128,
    /// The new epoch begins at this revision or above: greater than any of a cluster that was made of the same content before.
    pub revision_floor: Revision,
    /// Random: the disk, from now on.
    pub incarnation: u128,
}

/// A disk before its recovery, as far as can be seen without changing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Whose disk it is.
    pub identity: Identity,
    /// The last log entry that its state, or a snapshot ahead of it, has durably.
    pub applied: Option<LogIdRecord>,
    /// The last entry that it has at all, in the log or in the state.
    pub last: Option<LogIdRecord>,
    /// The revision of its state.
    pub revision: Revision,
    /// The epoch of its state.
    pub epoch: u64,
    /// Wall clock of the last entry in its state, Unix milliseconds.
    pub wall: WallMillis,
    /// The members that it knows.
    pub members: Vec<u64>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// The disk as it was; `None` where an interrupted recovery was only completed.
    pub survivor: Option<Survivor>,
    /// The last entry of its log.
    pub last: Option<LogIdRecord>,
    /// The revision after all entries.
    pub revision_before: Revision,
    /// The revision at which the new cluster begins.
    pub revision: Revision,
    /// Its epoch.
    pub epoch: u64,
    /// Where the old content is.
    pub old: Option<PathBuf>,
}

/// What a disk holds: all of its log is read, since the mark beside it may be a moment old. Changes nothing.
pub fn survivor(data_dir: &Path) -> Result<Survivor, OfflineError> {
    let identity = identity::read(data_dir)?.ok_or_else(|| {
        OfflineError::Refused(format!("{} holds no node: there is no identity marker in it", data_dir.display()))
    })?;
    if let Some(found) = quarantine::read(data_dir).map_err(|error| OfflineError::Refused(error.to_string()))? {
        return Err(OfflineError::Refused(format!(
            "the state of {} is not trusted: {}. Recover another survivor, or restore a backup. If there is neither, removing \
             the file `quarantine` takes this state as it is",
            data_dir.display(),
            found.reason
        )));
    }
    let (facts, lock) = log::inspect(data_dir, &identity, &mut |_| {})?;
    drop(lock);
    let Base { record, .. } = Base::of(&Home(data_dir.join("state")))?;
    Ok(Survivor {
        identity,
        applied: record.log_id,
        last: facts.last.max(record.log_id),
        revision: record.vars.revision,
        epoch: record.vars.epoch,
        wall: record.vars.wall,
        members: record.membership.membership.nodes.keys().copied().collect(),
    })
}

/// Recovers. `say` is told of each step.
pub fn recover(options: &RecoverOptions, mut say: impl FnMut(&str)) -> Result<Recovered, OfflineError> {
    let data_dir = &options.data_dir;
    if staging::is_interrupted(data_dir) {
        say("an earlier recovery or restore was complete; putting it in its place");
        return finish_interrupted(data_dir);
    }
    let before = survivor(data_dir)?;
    // Before the work: it is refused at its end, too.
    staging::refuse_kept(data_dir, &old_name(before.epoch + 1))?;
    // Takes the lock of the directory: refuses while a node runs on it.
    let log = LogStore::open(data_dir, &before.identity, Arc::new(|error| tracing::error!(error, "the old log")))?;
    let staging = Staging::begin(data_dir)?;
    let made = make(options, &staging, &log, &before.identity, &mut say);
    log.close();
    let Made { last, revision_before, vars } = match made {
        Ok(made) => made,
        Err(error) => {
            staging.abandon();
            return Err(error);
        }
    };
    if let Err(error) = staging.seal(&old_name(vars.epoch)) {
        staging.abandon();
        return Err(error);
    }
    let old = staging.exchange()?;
    let (revision, epoch) = (vars.revision, vars.epoch);
    Ok(Recovered { survivor: Some(before), last: Some(last), revision_before, revision, epoch, old })
}

/// Where the content of before an epoch is kept.
fn old_name(epoch: u64) -> String {
    format!("before-epoch-{epoch}")
}

/// What the new directory holds.
struct Made {
    /// The last entry of the log.
    last: LogIdRecord,
    /// The revision after it.
    revision_before: Revision,
    /// The scalars of the new epoch.
    vars: Vars,
}

/// Makes the whole directory out of the state and the log of the survivor.
fn make(
    options: &RecoverOptions,
    staging: &Staging,
    log: &LogStore,
    old: &Identity,
    say: &mut impl FnMut(&str),
) -> Result<Made, OfflineError> {
    say("copying the state, so that this disk stays as it is until the end");
    copy_state(&options.data_dir, &staging.scratch(), old.node_id)?;
    let (machine, reader) = StateMachine::open(&staging.scratch(), StateOptions::new(old.node_id))?;
    say("applying every entry of the log");
    apply_log(log, &reader)?;
    let applied = reader.applied();
    let last = applied.log_id.ok_or_else(|| OfflineError::Refused("this node never was in a cluster".into()))?;
    let member = own_member(&applied.membership, old.node_id, options.incarnation)?;
    say("making the state of the new epoch");
    let new_dir = staging.new_dir();
    let identity = identity::open(&new_dir, old.node_id, options.incarnation)?;
    let identity = identity::adopt(&new_dir, &identity, options.cluster_id)?;
    let vars = reader.shared.with_moment(|moment| {
        let vars = moment.vars.clone();
        let beginning =
            Beginning { node_id: identity.node_id, member, log_id: last, vars, revision_floor: options.revision_floor };
        let mut rows = Pieces::of(moment);
        Ok(build(&new_dir, &beginning, || rows.next()))
    })??;
    drop((reader, machine));
    make_log(&new_dir, &identity, last)?;
    Ok(Made { last, revision_before: applied.at.revision, vars })
}

fn finish_interrupted(data_dir: &Path) -> Result<Recovered, OfflineError> {
    let old = Staging::resume(data_dir)?.exchange()?;
    let record = Db::peek_applied(&Home(data_dir.join("state")).live()?)?;
    let (revision, epoch) = (record.vars.revision, record.vars.epoch);
    Ok(Recovered { survivor: None, last: record.log_id, revision_before: revision, revision, epoch, old })
}

/// The survivor as its own membership has it, with a new disk.
fn own_member(
    membership: &StoredMembershipRecord,
    node_id: u64,
    incarnation: u128,
) -> Result<MemberRecord, OfflineError> {
    let own = membership.membership.nodes.get(&node_id).ok_or_else(|| {
        OfflineError::Refused(format!(
            "node {node_id} is no member of its cluster, so its disk may lack anything; recover another survivor"
        ))
    })?;
    Ok(MemberRecord { incarnation, ..own.clone() })
}

/// A copy of the state by hard links: what is applied to it does not touch the original. Of the snapshot where one is ahead.
fn copy_state(data_dir: &Path, scratch: &Path, node_id: u64) -> Result<(), OfflineError> {
    let original = Home(data_dir.join("state"));
    let live = original.prepare()?;
    let home = Home(scratch.join("state"));
    crate::durable::create_dir(&home.0).map_err(OfflineError::at(&home.0))?;
    let copy = home.0.join("db-1");
    match Base::of(&original)?.snapshot {
        Some(snapshot) => link_files(&snapshot, &copy)?,
        None => Db::open(&live, node_id)?.checkpoint(&copy)?,
    }
    home.point_to(&copy).map_err(OfflineError::at(&copy))
}

fn apply_log(log: &LogStore, reader: &StateReader) -> Result<(), OfflineError> {
    let mut committer = Committer::new(Arc::clone(&reader.shared));
    let base = reader.applied().log_id;
    let first = base.map_or(0, |id| id.index + 1);
    if let Some(purged) = log.purged_index().filter(|purged| *purged >= first) {
        return Err(OfflineError::Refused(format!(
            "the log begins after entry {purged}, and the state ends before entry {first}: a snapshot was not installed yet. \
             Start the node once and stop it, then recover"
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| OfflineError::Refused(format!("cannot start: {error}")))?;
    // Where the state came with a snapshot, the log may have another entry there: what follows it was given up when that came.
    if let Some(base) = base {
        let there =
            runtime.block_on(log.reader().read_some(base.index..first, READ_BYTES)).map_err(StateFault::from)?;
        if there.first().is_some_and(|entry| LogIdRecord::from(&entry.log_id) != base) {
            return Ok(());
        }
    }
    let mut next = first;
    loop {
        let read = runtime.block_on(log.reader().read_some(next..u64::MAX, READ_BYTES));
        let mut entries = read.map_err(StateFault::from)?;
        let Some(last) = entries.last() else { return Ok(()) };
        next = last.log_id.index + 1;
        while !entries.is_empty() {
            let done = committer.apply(&entries)?.len();
            entries.drain(..done);
        }
    }
}

/// The rows of a moment that a new epoch begins with, in pieces.
struct Pieces<'m> {
    moment: &'m Moment<'m>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<'m> Pieces<'m> {
    fn of(moment: &'m Moment<'m>) -> Self {
        let mut ranges = Content::Lasting.ranges();
        ranges.reverse();
        Self { moment, ranges }
    }

    fn next(&mut self) -> Result<Option<Vec<Row>>, OfflineError> {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while let Some((start, end)) = self.ranges.pop() {
            let mut rows = self.moment.snapshot.rows_once(&start, &end);
            rows.seek_to_first();
            while let Some((key, value)) = rows.item() {
                if bytes >= PIECE_BYTES {
                    self.ranges.push((key.to_vec(), end));
                    return Ok(Some(piece));
                }
                bytes += key.len() + value.len();
                piece.push((key.to_vec(), value.to_vec()));
                rows.next();
            }
            rows.status().map_err(StateFault::from)?;
        }
        Ok((!piece.is_empty()).then_some(piece))
    }
}
