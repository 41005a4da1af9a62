//! Time in the unit that openraft, the transport and the API count in.

use std::time::Duration;

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
