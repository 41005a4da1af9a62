//! What a peer is to the cluster: whether it is a member, with the disk that it has.
//!
//! Owns when that is asked: of a connection of Raft's before it carries anything, of the others for each question, so that who was
//! removed is nobody from then on, on connections that were open too. Never knows the members: the node does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quorate_machine::types::NodeDisk;

use super::service::{MembershipStatus, PeerService};

/// How long a peer stays unknown before others are asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// One peer, and what was found out about it.
pub(super) struct PeerMembership {
    peer: NodeDisk,
    service: Arc<dyn PeerService>,
    /// Whether it has proved that it is the node that it says it is.
    is_proved: bool,
    /// Other members know it.
    is_confirmed: AtomicBool,
    /// They do not, and are not asked before.
    ask_from: Mutex<Option<Instant>>,
}

impl PeerMembership {
    pub fn new(peer: NodeDisk, service: Arc<dyn PeerService>, is_proved: bool) -> Self {
        Self { peer, service, is_proved, is_confirmed: AtomicBool::new(false), ask_from: Mutex::default() }
    }

    pub fn is_known_member(&self) -> bool {
        self.service.membership_status(self.peer) == MembershipStatus::Member
    }

    /// Refuses who is no member by what this node knows: for what only a leader answers, which knows all of them.
    pub fn judge(&self) -> Result<(), String> {
        match self.service.membership_status(self.peer) {
            MembershipStatus::Member => Ok(()),
            MembershipStatus::Removed => Err(self.removed()),
            MembershipStatus::Unknown => Err(self.unknown()),
        }
    }

    /// Refuses who is no member, by what this node knows and, where it has fallen behind, other members do. They are not asked about a
    /// peer that could be anybody: whoever lies about who it is could lie about that.
    pub async fn inquire(&self) -> Result<(), String> {
        match self.service.membership_status(self.peer) {
            MembershipStatus::Member => return Ok(()),
            MembershipStatus::Removed => return Err(self.removed()),
            MembershipStatus::Unknown if !self.is_proved || self.is_confirmed.load(Relaxed) => return Ok(()),
            MembershipStatus::Unknown => {}
        }
        if self.ask_from.lock().is_some_and(|from| Instant::now() < from) {
            return Err(self.unknown());
        }
        match self.service.confirm_member(self.peer).await {
            true => {
                self.is_confirmed.store(true, Relaxed);
                Ok(())
            }
            false => {
                *self.ask_from.lock() = Some(Instant::now() + ASK_AGAIN);
                Err(self.unknown())
            }
        }
    }

    fn removed(&self) -> String {
        let NodeDisk { node_id, incarnation } = self.peer;
        format!("node {node_id} was removed from this cluster with its disk {incarnation:032x}")
    }

    fn unknown(&self) -> String {
        let id = self.peer.node_id;
        format!(
            "node {id} is no member of this cluster as far as this node and the members that it knows can tell; if it is one, name a \
             member that knows it in --join of this node"
        )
    }
}
