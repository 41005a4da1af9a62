//! What openraft takes for granted about the positions it starts from, but a crash or an operator can break.
//!
//! Owns that judgement, for a start and for a look at a disk alike. Never repairs: what is missing has to come from somewhere else, and
//! what does not belong here has to be taken away by whoever put it there. openraft judges too late: it has replaced the state by a
//! snapshot of an earlier cluster, or ended the process, before it compares anything.

use std::fmt;
use std::io;

use super::state_machine::StateMachine;
use crate::identity::Identity;
use crate::log::LogStore;
use crate::raft::wire::{LogIdRecord, SnapshotMetaRecord};

/// Why a node cannot start from what is on its disk.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Entries that are neither in the log nor in the state nor in a snapshot.
    #[error(
        "the state is at log index {applied}, but the log was purged up to {purged}, and no snapshot covers the gap: \
         the state directory is older than the log. Bring the newer state back, or remove this node and join again \
         under a new node id"
    )]
    Gap {
        /// Last index applied.
        applied: u64,
        /// Last index purged.
        purged: u64,
    },
    /// Two parts that no cluster can have made together.
    #[error(
        "{one} and {other}, which is not of one history: one of them is from another cluster, or from an earlier one of \
         this name. Take away what does not belong here, or remove this node and join again under a new node id"
    )]
    TwoHistories {
        /// A part and where it ends.
        one: End,
        /// Another one.
        other: End,
    },
    /// A snapshot ahead of the state that knows the node of this number by another disk.
    #[error(
        "the snapshot in state/snap is newer than the state and knows node {node} with another data directory than this one \
         (incarnation {found:032x}, here {own:032x}): it is from another cluster, from an earlier one of this name, or came from the \
         leader and was not taken in to its end. Take it away: the leader sends what is missing"
    )]
    OtherDisk {
        /// This node.
        node: u64,
        /// What it is known by there.
        found: u128,
        /// What it is.
        own: u128,
    },
    /// The log could not be asked.
    #[error(transparent)]
    Log(#[from] io::Error),
}

/// A part of what is on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What was purged of the log.
    Purged,
    /// The log.
    Log,
    /// The state.
    State,
    /// The snapshot that the node would start with.
    Snapshot,
}

/// Where a part ends, or has something else than another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Which.
    pub part: Part,
    /// There.
    pub at: LogIdRecord,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Purged => "what was purged of the log",
            Self::Log => "the log",
            Self::State => "the state",
            Self::Snapshot => "the snapshot in state/snap",
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogIdRecord { term, node, index } = self.at;
        match self.part {
            Part::Log => write!(f, "the log has entry {index} from node {node} in term {term}"),
            part => write!(f, "{part} ends with entry {index} from node {node} in term {term}"),
        }
    }
}

/// What a log says of itself.
pub trait LogPositions {
    /// The last entry purged, and the last of all.
    fn bounds(&self) -> (Option<LogIdRecord>, Option<LogIdRecord>);

    /// The entry at an index, where the log holds one.
    fn at(&self, index: u64) -> io::Result<Option<LogIdRecord>>;
}

impl LogPositions for LogStore {
    fn bounds(&self) -> (Option<LogIdRecord>, Option<LogIdRecord>) {
        let (purged, last) = LogStore::bounds(self);
        (purged.as_ref().map(LogIdRecord::from), last.as_ref().map(LogIdRecord::from))
    }

    fn at(&self, index: u64) -> io::Result<Option<LogIdRecord>> {
        Ok(self.id_at(index)?.as_ref().map(LogIdRecord::from))
    }
}

/// Judges whether a log, a state and a snapshot are of one history without a gap, and gives where a node starts from.
///
/// A snapshot ahead of the state is what a crash in the middle of its installation leaves. openraft installs it before it
/// looks at the log, so that is where the node starts from.
pub fn judge(
    log: &impl LogPositions,
    state: Option<LogIdRecord>,
    snapshot: Option<LogIdRecord>,
) -> Result<Option<LogIdRecord>, Unfit> {
    let ends = [(Part::State, state), (Part::Snapshot, snapshot)];
    let ends = ends.map(|(part, at)| at.map(|at| End { part, at }));
    if let [Some(state), Some(snapshot)] = ends {
        in_order(snapshot, state)?;
    }
    let (purged, last) = log.bounds();
    for end in ends.into_iter().flatten() {
        let bounds = [(Part::Purged, purged), (Part::Log, last)];
        bounds.into_iter().filter_map(|(part, at)| Some(End { part, at: at? })).try_for_each(|it| in_order(end, it))?;
        if let Some(at) = log.at(end.at.index)?
            && at != end.at
        {
            return Err(Unfit::TwoHistories { one: end, other: End { part: Part::Log, at } });
        }
    }
    let start = state.max(snapshot);
    let (applied, purged) = (start.map_or(0, |id| id.index), purged.map_or(0, |id| id.index));
    if purged > applied { Err(Unfit::Gap { applied, purged }) } else { Ok(start) }
}

/// In one history what is later has the greater id, and nothing else is at the same place.
fn in_order(one: End, other: End) -> Result<(), Unfit> {
    match one.at.index.cmp(&other.at.index) == one.at.cmp(&other.at) {
        true => Ok(()),
        false => Err(Unfit::TwoHistories { one, other }),
    }
}

/// Makes sure that a snapshot which would take the place of the state was not made for a node of this number on another disk. What is not
/// ahead of the state replaces nothing: a node that was removed, and came back under its number, begins with a snapshot from before.
pub fn check_disk(
    state: Option<LogIdRecord>,
    snapshot: Option<&SnapshotMetaRecord>,
    own: &Identity,
) -> Result<(), Unfit> {
    let Some(snapshot) = snapshot.filter(|snapshot| snapshot.last_log_id > state) else { return Ok(()) };
    match snapshot.last_membership.membership.nodes.get(&own.node_id) {
        Some(member) if member.incarnation != own.incarnation => {
            Err(Unfit::OtherDisk { node: own.node_id, found: member.incarnation, own: own.incarnation })
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes sure that openraft can start from this log and this state.
pub fn reconcile(log: &LogStore, machine: &StateMachine, own: &Identity) -> Result<(), Unfit> {
    let state = machine.reader().applied();
    let snapshot = machine.snapshot_meta();
    check_disk(state.log_id, snapshot.as_ref(), own)?;
    let covered = snapshot.and_then(|snapshot| snapshot.last_log_id);
    let start = judge(log, state.log_id, covered)?.map_or(0, |id| id.index);
    let (applied, purged) = (state.at.index, log.purged_index().unwrap_or(0));
    if start > applied {
        tracing::warn!(applied, snapshot = start, purged, "the state is older than its snapshot, which replaces it");
    }
    // Where the state is ahead, openraft purges the log up to it.
    let needed = if start > log.last_index() { start } else { purged };
    if machine.snapshot_index().is_some_and(|index| index < needed) {
        tracing::info!(needed, "the snapshot is older than the start of the log; a new one will be built");
        machine.discard_snapshot();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log {
        purged: Option<LogIdRecord>,
        held: Vec<LogIdRecord>,
    }

    impl LogPositions for Log {
        fn bounds(&self) -> (Option<LogIdRecord>, Option<LogIdRecord>) {
            (self.purged, self.held.last().copied().or(self.purged))
        }

        fn at(&self, index: u64) -> io::Result<Option<LogIdRecord>> {
            Ok(self.held.iter().find(|id| id.index == index).copied())
        }
    }

    fn id(term: u64, index: u64) -> LogIdRecord {
        LogIdRecord { term, node: 1, index }
    }

    /// Entries 11 to 30, the first ten of term 2, the others of term 4, behind a purge up to 10.
    fn log() -> Log {
        let held = (11..=30).map(|index| id(if index <= 20 { 2 } else { 4 }, index)).collect();
        Log { purged: Some(id(2, 10)), held }
    }

    fn parts(unfit: Unfit) -> (Part, Part) {
        match unfit {
            Unfit::TwoHistories { one, other } => (one.part, other.part),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_a_crash_leaves_is_of_one_history() {
        let start = |state, snapshot| judge(&log(), state, snapshot).unwrap();
        assert_eq!(start(Some(id(2, 10)), None), Some(id(2, 10)), "all applied is purged");
        assert_eq!(start(Some(id(4, 25)), Some(id(2, 12))), Some(id(4, 25)));
        assert_eq!(start(Some(id(2, 12)), Some(id(2, 12))), Some(id(2, 12)));
        assert_eq!(start(Some(id(4, 25)), Some(id(1, 3))), Some(id(4, 25)), "an old snapshot");
        assert_eq!(start(Some(id(5, 40)), Some(id(4, 25))), Some(id(5, 40)), "the log lost what was applied");
        assert_eq!(start(Some(id(2, 12)), Some(id(5, 40))), Some(id(5, 40)), "an installation that was interrupted");
        assert_eq!(start(Some(id(1, 4)), Some(id(4, 25))), Some(id(4, 25)), "the snapshot covers what was purged");
        let empty = Log { purged: None, held: Vec::new() };
        assert_eq!(judge(&empty, None, None).unwrap(), None);
        assert_eq!(judge(&empty, Some(id(7, 3)), Some(id(7, 2))).unwrap(), Some(id(7, 3)));
    }

    #[test]
    fn a_gap_is_one() {
        for (state, snapshot) in [(None, None), (Some(id(1, 4)), None), (Some(id(1, 4)), Some(id(2, 9)))] {
            let found = judge(&log(), state, snapshot);
            assert!(matches!(found, Err(Unfit::Gap { purged: 10, .. })), "{found:?}");
        }
    }

    #[test]
    fn a_snapshot_of_an_earlier_cluster_is_seen() {
        let found = |state, snapshot| parts(judge(&log(), Some(state), Some(snapshot)).unwrap_err());
        // openraft would take each of the first two for newer, and put it in the place of the state.
        assert_eq!(found(id(4, 25), id(9, 3)), (Part::Snapshot, Part::State));
        assert_eq!(found(id(4, 25), id(9, 25)), (Part::Snapshot, Part::State));
        assert_eq!(found(id(4, 25), id(3, 40)), (Part::Snapshot, Part::State));
        assert_eq!(found(id(4, 25), id(3, 23)), (Part::Snapshot, Part::Log));
        assert_eq!(found(id(4, 25), id(1, 10)), (Part::Snapshot, Part::Purged));
        assert_eq!(found(id(2, 12), id(4, 20)), (Part::Snapshot, Part::Log));
    }

    #[test]
    fn a_state_of_an_earlier_cluster_is_seen() {
        let found = |state| parts(judge(&log(), Some(state), None).unwrap_err());
        assert_eq!(found(id(9, 5)), (Part::State, Part::Purged));
        assert_eq!(found(id(1, 10)), (Part::State, Part::Purged));
        assert_eq!(found(id(3, 25)), (Part::State, Part::Log));
        assert_eq!(found(id(9, 25)), (Part::State, Part::Log));
        assert_eq!(found(id(3, 31)), (Part::State, Part::Log));
        let said = judge(&log(), Some(id(9, 25)), None).unwrap_err().to_string();
        assert!(said.contains("the state ends with entry 25 from node 1 in term 9"), "{said}");
        assert!(said.contains("the log has entry 30 from node 1 in term 4"), "{said}");
    }
}
