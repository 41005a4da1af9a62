//! The pace at which backups are written and read again.
//!
//! Owns it: modest while the cluster changes much, faster while it does not. Never does I/O, and never knows what a backup is.

use std::time::{Duration, Instant};

use quorate_machine::types::Revision;
use quorate_node_core::limits;
use quorate_store::state::StateReader;
use quorate_threads::background;

/// Shorter waits are saved up.
const STEP: Duration = Duration::from_millis(2);
/// How often it is looked how much the cluster changes.
const WINDOW: Duration = Duration::from_millis(250);

/// Holds a stream of bytes to its pace.
pub struct Pace {
    state: StateReader,
    /// Since when the bytes are counted, and the revision then.
    since: Instant,
    revision: Revision,
    bytes: u64,
    /// Bytes a second.
    rate: u64,
}

impl Pace {
    /// Begins now, modestly until more is known.
    pub fn begin(state: StateReader) -> Self {
        let revision = state.position().revision;
        Self { state, since: Instant::now(), revision, bytes: 0, rate: limits::BACKUP_BYTES_PER_SECOND_BUSY }
    }

    /// So many bytes more are through.
    pub fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Waits until as much as is through may be. In a simulation no time goes by while a thread sleeps.
    pub fn keep(&mut self) {
        if background::is_simulated() {
            return;
        }
        let early = time_for(self.bytes, self.rate).saturating_sub(self.since.elapsed());
        if early >= STEP {
            std::thread::sleep(early);
        }
        let elapsed = self.since.elapsed();
        if elapsed >= WINDOW {
            let revision = self.state.position().revision;
            self.rate = rate(revision.saturating_sub(self.revision), elapsed);
            (self.since, self.revision, self.bytes) = (Instant::now(), revision, 0);
        }
    }
}

/// How long so many bytes take.
fn time_for(bytes: u64, rate: u64) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(rate);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The pace beside so many changes within a time.
fn rate(changes: u64, within: Duration) -> u64 {
    let millis = within.as_millis().max(1);
    match u128::from(changes) * 1_000 / millis < u128::from(limits::BACKUP_BUSY_CHANGES_PER_SECOND) {
        true => limits::BACKUP_BYTES_PER_SECOND,
        false => limits::BACKUP_BYTES_PER_SECOND_BUSY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_cluster_is_spared_and_a_quiet_one_is_backed_up_fast() {
        let busy = limits::BACKUP_BUSY_CHANGES_PER_SECOND;
        assert_eq!(rate(0, Duration::from_millis(250)), limits::BACKUP_BYTES_PER_SECOND);
        assert_eq!(rate(busy - 1, Duration::from_secs(1)), limits::BACKUP_BYTES_PER_SECOND);
        assert_eq!(rate(busy, Duration::from_secs(1)), limits::BACKUP_BYTES_PER_SECOND_BUSY);
        assert_eq!(rate(busy, Duration::from_secs(2)), limits::BACKUP_BYTES_PER_SECOND);
        assert_eq!(rate(1, Duration::ZERO), limits::BACKUP_BYTES_PER_SECOND_BUSY);
    }

    #[test]
    fn bytes_take_their_time() {
        assert_eq!(time_for(3 << 20, 1 << 20), Duration::from_secs(3));
        assert_eq!(time_for(0, 1), Duration::ZERO);
        assert_eq!(time_for(u64::MAX, 1), Duration::from_micros(u64::MAX));
    }
}
