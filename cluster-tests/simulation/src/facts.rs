//! What must hold between the nodes at every moment.
//!
//! Owns what was ever seen of them, and the comparison with what is seen now. Looks at nodes from the inside, which no client
//! can. Never changes one.

use std::collections::{BTreeMap, BTreeSet};

use openraft::async_runtime::WatchReceiver;
use openraft::storage::RaftLogReader;
use quorate_machine::codec;
use quorate_store::raft::LogEntry;

use crate::address::HostId;
use crate::host::{Host, Parts};

/// What one node was like when it was last looked at, since its start.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Term and candidate. A term can have several leaders here, of which each outdoes those of a smaller number.
    vote: (u64, u64),
    /// The first that was seen; of term 0 where it had never voted before.
    first_vote: Option<(u64, u64)>,
    applied: u64,
    revision: u64,
    clock: u64,
    /// The last entry of its log that was compared.
    compared: Option<EntryId>,
}

/// The state after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its revision.
    pub revision: u64,
    /// What the wall clock of the log showed.
    pub wall: u64,
    /// Digest of the state.
    pub digest: u128,
}

/// Term, leader and index.
type EntryId = (u64, u64, u64);

/// Everything that was seen.
#[derive(Debug, Default)]
pub struct Facts {
    nodes: BTreeMap<HostId, Seen>,
    /// Who was seen to lead by which vote: the greatest is the latest.
    leaders: BTreeMap<(u64, u64), HostId>,
    /// State at each index at which one was seen.
    points: BTreeMap<u64, Point>,
    /// What each log id stands for, as a checksum.
    entries: BTreeMap<EntryId, u32>,
    /// The highest index that was applied anywhere.
    applied: u64,
    /// The last entry that each node had durably when it was looked at last. What a node loses when it dies is not in it.
    durable: BTreeMap<HostId, EntryId>,
    /// Up to which entry each leader was seen to have committed.
    committed: BTreeMap<HostId, EntryId>,
    /// Whether a leader was ever asked to hand over, to stop or to leave, before which it does: whom it hands over to gets votes at any time.
    pub is_handed_over: bool,
    /// A number that differs where anything seen differs.
    pub trace: u64,
    /// What was compared.
    pub comparisons: u64,
}

impl Facts {
    /// A node starts: what it had only in memory may be gone.
    pub fn forget(&mut self, node: HostId) {
        self.nodes.remove(&node);
    }

    /// The highest index that was applied anywhere.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The states that were seen, by index.
    pub fn points(&self) -> &BTreeMap<u64, Point> {
        &self.points
    }

    /// Who led last, as far as was seen.
    pub fn last_leader(&self) -> Option<HostId> {
        self.leaders.last_key_value().map(|(_, leader)| *leader)
    }

    /// Takes note of what a node has durably.
    pub fn note_durable(&mut self, host: &Host) {
        if let Some(parts) = host.parts() {
            let last = parts.log.durable_id().map(|id| (id.leader_id.term, id.leader_id.node_id, id.index));
            self.durable.insert(host.id, last.unwrap_or_default());
        }
    }

    /// What a leader takes for committed, a majority of the voters has durably.
    fn majority(&mut self, id: HostId, parts: &Parts) -> Result<(), String> {
        let metrics = parts.app.raft().metrics();
        let metrics = metrics.borrow_watched();
        let committed = metrics.local_committed.map(|id| (id.leader_id.term, id.leader_id.node_id, id.index));
        let Some(committed) = committed.filter(|_| metrics.state.is_leader()) else { return Ok(()) };
        if self.committed.get(&id) == Some(&committed) {
            return Ok(());
        }
        // An entry that is committed is in the log of whoever has a later one.
        let has = |voter: &u64| {
            let last = HostId::try_from(*voter).ok().and_then(|voter| self.durable.get(&voter));
            last.is_some_and(|last| *last >= committed && last.2 >= committed.2)
        };
        let is_majority = |voters: &BTreeSet<u64>| 2 * voters.iter().filter(|id| has(id)).count() > voters.len();
        // The members may have changed since it was committed, in the same moment.
        let members = [&metrics.membership_config, &metrics.committed_membership_config];
        let suffices = members.iter().any(|members| members.membership().get_joint_config().iter().all(is_majority));
        if !suffices {
            let (durable, members) = (&self.durable, metrics.membership_config.membership());
            return Err(format!(
                "node {id} has committed {committed:?}, which no majority of {members:?} has: they have {durable:?}"
            ));
        }
        drop(metrics);
        self.committed.insert(id, committed);
        Ok(())
    }

    /// Looks at a node. An error says what contradicts what.
    pub fn look(&mut self, host: &Host) -> Result<(), String> {
        let Some(parts) = host.parts() else { return Ok(()) };
        self.comparisons += 1;
        self.leader(host.id, parts)?;
        self.majority(host.id, parts)?;
        self.lease(host, parts)?;
        self.state(host.id, parts)
    }

    fn leader(&mut self, id: HostId, parts: &Parts) -> Result<(), String> {
        let metrics = parts.app.raft().server_metrics();
        let metrics = metrics.borrow_watched().clone();
        let vote = (metrics.vote.leader_id.term, metrics.vote.leader_id.node_id);
        let seen = self.nodes.entry(id).or_default();
        if vote < seen.vote {
            return Err(format!("node {id} went back from vote {:?} to {vote:?}", seen.vote));
        }
        seen.vote = vote;
        if metrics.state.is_leader() {
            let first = *self.leaders.entry(vote).or_insert(id);
            if first != id {
                return Err(format!("vote {vote:?} has two leaders, {first} and {id}"));
            }
        }
        Ok(())
    }

    /// A process that just began may have promised a leader to elect nobody else for a moment, and has forgotten it.
    fn lease(&mut self, host: &Host, parts: &Parts) -> Result<(), String> {
        let metrics = parts.app.raft().server_metrics();
        let vote = metrics.borrow_watched().vote;
        let given = (vote.leader_id.term, vote.leader_id.node_id);
        let first = *self.nodes.entry(host.id).or_default().first_vote.get_or_insert(given);
        let took_part = first.0 > 0;
        if took_part
            && given > first
            && !vote.committed
            && !self.is_handed_over
            && host.age() < host.config.election_max
        {
            let (id, age) = (host.id, host.age());
            return Err(format!(
                "node {id}, {age:?} after its process began, gave vote {given:?} in the lease of a leader"
            ));
        }
        Ok(())
    }

    fn state(&mut self, id: HostId, parts: &Parts) -> Result<(), String> {
        let contained = parts.app.state().contained_faults();
        if contained > 0 {
            return Err(format!("node {id} met {contained} faults and contained them: each is a bug"));
        }
        let state = parts.app.state().applied();
        let (index, revision, clock) = (state.at.index, state.at.revision, state.at.clock);
        let seen = self.nodes.entry(id).or_default();
        if index < seen.applied || revision < seen.revision || clock < seen.clock {
            return Err(format!(
                "node {id} went back from {seen:?} to index {index}, revision {revision}, clock {clock}"
            ));
        }
        let is_new = index > seen.applied;
        (seen.applied, seen.revision, seen.clock) = (index, revision, clock);
        self.applied = self.applied.max(index);
        if is_new {
            self.trace = (self.trace ^ index ^ state.digest as u64).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17);
        }
        let point = Point { revision, wall: state.wall, digest: state.digest };
        let first = self.points.entry(index).or_insert(point).digest;
        if index > 0 && first != state.digest {
            return Err(format!(
                "at index {index} node {id} has digest {:032x}, another had {first:032x}",
                state.digest
            ));
        }
        Ok(())
    }

    /// Compares what is new in a node's log with all that was ever in a log. Has to run on the node's machine.
    pub async fn compare_log(&mut self, id: HostId, parts: &Parts) -> Result<(), String> {
        for entry in self.new_entries(id, parts).await? {
            let (log_id, sum) = (entry_id(&entry), checksum(&entry));
            let first = *self.entries.entry(log_id).or_insert(sum);
            if first != sum {
                return Err(format!("node {id} has another entry under {log_id:?} than was seen before"));
            }
            self.nodes.entry(id).or_default().compared = Some(log_id);
        }
        Ok(())
    }

    /// What came since its log was compared; all of it where the last that was compared was cut off since.
    async fn new_entries(&mut self, id: HostId, parts: &Parts) -> Result<Vec<LogEntry>, String> {
        let first = parts.log.purged_index().map_or(0, |purged| purged + 1);
        let until = parts.log.last_index() + 1;
        let mut reader = parts.log.reader();
        let mut read = async |from: u64| {
            let entries = reader.try_get_log_entries(from..until.max(from)).await;
            entries.map_err(|error| format!("the log of node {id} cannot be read: {error}"))
        };
        let Some(last) = self.nodes.entry(id).or_default().compared.filter(|last| last.2 >= first) else {
            return read(first).await;
        };
        let mut entries: Vec<LogEntry> = read(last.2).await?;
        if entries.first().is_some_and(|entry| entry_id(entry) == last) {
            entries.remove(0);
            return Ok(entries);
        }
        read(first).await
    }
}

fn entry_id(entry: &LogEntry) -> EntryId {
    (entry.log_id.leader_id.term, entry.log_id.leader_id.node_id, entry.log_id.index)
}

fn checksum(entry: &LogEntry) -> u32 {
    use openraft::EntryPayload::{Blank, Membership, Normal};
    match &entry.payload {
        Blank => 0,
        Normal(batch) => crc32fast::hash(&batch.0),
        Membership(membership) => {
            let record = quorate_store::raft::wire::MembershipRecord::from(membership);
            crc32fast::hash(&codec::encode(&record))
        }
    }
}
