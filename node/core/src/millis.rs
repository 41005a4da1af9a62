//! Time in the unit that openraft, the transport and the API count in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_machine::types::WallMillis;

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Unix milliseconds of this machine, which may be wrong. Replicated times follow `app::wall` of the replica.
pub fn wall_now() -> WallMillis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
