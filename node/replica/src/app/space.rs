//! Room for more: on this node's data disk, under the quota, and on the disks of the other members.
//!
//! Owns the order in which these are looked at, and the few places for commands that are judged where there is hardly any room.
//! Never looks at a command: `need` and `last_room` do.

use std::sync::Arc;
use std::time::Instant;

use quorate_node_core::backend::AppError;
use quorate_store::raft::NodeId;
use quorate_store::space::{Space, SpaceGuard};
use quorate_store::state::StateReader;
use quorate_threads::background;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::no_space;
use super::quota::Quota;
use super::room::Room;
use crate::peer::message::{DiskRoom, Lack};

/// Removals at a time, or groups of them that a peer forwards: as often may one thing be removed in vain.
const REMOVALS_MAX: usize = 16;

/// The room that a node has for more.
pub struct DiskSpace {
    node_id: NodeId,
    guard: Arc<SpaceGuard>,
    quota: Quota,
    state: StateReader,
    /// Whether the other members have room for more, while this node leads.
    others: Room,
    /// Held by what is judged where there is hardly any room.
    removals: Semaphore,
}

impl DiskSpace {
    /// The room of this node, `node_id`, for more in its state.
    pub fn new(node_id: NodeId, guard: Arc<SpaceGuard>, quota: Quota, state: StateReader) -> Self {
        Self { node_id, guard, quota, state, others: Room::default(), removals: Semaphore::new(REMOVALS_MAX) }
    }

    /// Why this node takes nothing that grows the state, if so.
    pub fn lack(&self) -> Option<Lack> {
        match self.guard.state() {
            Space::Low { free, needed } => Some(Lack::Disk { free, needed }),
            Space::Ok => self.others.lack().or_else(|| self.quota.lack(self.state.sizes())),
        }
    }

    /// Why nothing is taken that does not free room, if so.
    pub fn lack_of_last(&self) -> Option<Lack> {
        let own = self.room().at_its_last();
        let own = own.map(|DiskRoom { free, needed }| Lack::Disk { free, needed });
        own.or_else(|| self.others.lack_of_last())
    }

    /// The refusal of a command that there is no room for.
    pub fn refusal(&self, lack: Lack) -> AppError {
        no_space(self.node_id, lack)
    }

    /// One of the few places for what is judged, to be kept until it is decided.
    pub async fn place_for_removals(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, AppError> {
        let waited = tokio::time::timeout_at(deadline.into(), self.removals.acquire()).await;
        let place = waited.map_err(|_late| AppError::TimeoutNotProposed)?;
        place.map_err(|_closed| AppError::NotReady("the node is stopping".into()))
    }

    /// The room on this node's data disk.
    pub fn room(&self) -> DiskRoom {
        DiskRoom { free: self.guard.free(), needed: self.guard.needed() }
    }

    /// The conclusion of the leader about the other members' disks.
    pub fn others(&self) -> &Room {
        &self.others
    }

    /// Whether the data disk has less room than writes need.
    pub fn is_low(&self) -> bool {
        matches!(self.guard.state(), Space::Low { .. })
    }

    /// Free bytes of the data disk.
    pub fn free(&self) -> u64 {
        self.guard.free()
    }

    /// Bytes of the data disk.
    pub fn size(&self) -> u64 {
        self.guard.size()
    }

    /// Bytes that the cluster may hold by this node's quota; 0 for no bound.
    pub fn quota_bytes(&self) -> u64 {
        self.quota.bytes_max
    }

    /// Whether writes would still have room on the data disk if something else took `bytes` of it.
    pub fn has_room_beside(&self, bytes: u64) -> bool {
        self.guard.has_room_beside(bytes)
    }

    /// Makes the ballast file again where it is gone and there is room.
    pub async fn restore_ballast(&self) -> std::io::Result<()> {
        let guard = Arc::clone(&self.guard);
        background::blocking(move || guard.restore_ballast().map(|_| ())).await?
    }

    /// Warnings about disks: this node's, and those without which there is no quorum.
    pub fn disk_warnings(&self) -> impl Iterator<Item = String> {
        self.own_warning().into_iter().chain(self.others.warning())
    }

    fn own_warning(&self) -> Option<String> {
        let room = self.room();
        let said = format!("the data disk has {} bytes free, writes need {}", room.free, room.needed);
        match room.at_its_last() {
            Some(last) => Some(format!("{said}; below {} only what frees room is taken", last.needed)),
            None => room.is_low().then_some(said),
        }
    }

    /// The warning that the quota is nearly used up.
    pub fn quota_warning(&self) -> Option<String> {
        self.quota.warning(self.state.sizes())
    }
}
