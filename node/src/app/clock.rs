//! The leader's clocks: where the stamps of a batch come from.
//!
//! Owns the anchor of the cluster clock: a replicated value and the monotonic instant at which this node, already
//! leading, read it. Never runs while another node leads: an anchor belongs to one leadership and dies with it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use quorate_store::raft::CommittedLeaderId;
use quorate_store::types::{ClusterMillis, WallMillis};

/// One leadership's anchor.
struct Anchor {
    leadership: CommittedLeaderId,
    base: ClusterMillis,
    since: Instant,
}

/// Stamps for batches.
///
/// Invariant: within one leadership the stamps never go back, because the anchor is set once and `Instant` is monotonic.
#[derive(Default)]
pub struct Clock {
    anchor: Mutex<Option<Anchor>>,
}

impl Clock {
    /// The cluster clock under this leadership; `None` until [`Self::anchor`] was called for it.
    pub fn cluster_now(&self, leadership: &CommittedLeaderId) -> Option<ClusterMillis> {
        let anchor = self.anchor.lock();
        let anchor = anchor.as_ref().filter(|anchor| anchor.leadership == *leadership)?;
        // A u64 of milliseconds lasts for 500 million years.
        Some(anchor.base + u64::try_from(anchor.since.elapsed().as_millis()).unwrap_or(u64::MAX - anchor.base))
    }

    /// Continues from `base`, the replicated clock as read after this leadership was confirmed. Later calls for the same
    /// leadership change nothing.
    pub fn anchor(&self, leadership: CommittedLeaderId, base: ClusterMillis) {
        let mut anchor = self.anchor.lock();
        if anchor.as_ref().is_none_or(|anchor| anchor.leadership != leadership) {
            *anchor = Some(Anchor { leadership, base, since: Instant::now() });
        }
    }
}

/// Unix milliseconds of this node. Apply clamps it so that the replicated wall clock never goes back.
pub fn wall_now() -> WallMillis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
