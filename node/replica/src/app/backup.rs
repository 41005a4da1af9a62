//! Backups of this node's state: taken, and counted.
//!
//! Owns the numbers of all backups of this node, whoever asked for them. Never opens a file or a socket: the caller's sink
//! takes the bytes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use quorate_machine::query::StateFault;
use quorate_machine::types::{Revision, WallMillis};
use quorate_node_core::metrics::{MetricsSource, Sample};
use quorate_node_core::millis::{millis, wall_now};
use quorate_store::backup::{BackupEnd, BackupError, BackupHeader, Taker};
use quorate_store::identity::Identity;
use quorate_store::state::StateReader;

use super::pace::Pace;

/// Who a backup is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum BackupFor {
    /// A client that reads it as a stream.
    Client,
    /// The directory for scheduled ones.
    Directory,
    /// The archive, as a base.
    Archive,
}

const NAMES: [&str; 3] = ["stream", "scheduled", "archive"];

/// What became of the backups of this node since its start.
#[derive(Debug, Default)]
pub struct BackupLedger {
    completed: [AtomicU64; 3],
    failed: [AtomicU64; 3],
    bytes: [AtomicU64; 3],
    running: AtomicU64,
    /// Wall clock of the last good scheduled one, this process's or an earlier one's; 0 for none.
    last_good: AtomicU64,
    /// Milliseconds from one scheduled one to the next; 0 where there are none.
    every_ms: AtomicU64,
    /// Wall clock from which on they are expected.
    since: AtomicU64,
}

impl BackupLedger {
    /// The last good scheduled backup was taken then.
    pub fn note_good(&self, taken_at: WallMillis) {
        self.last_good.store(taken_at, Ordering::Relaxed);
    }

    /// When the last good scheduled backup was taken, Unix milliseconds; `None` where there is none.
    pub fn last_good(&self) -> Option<WallMillis> {
        Some(self.last_good.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// From now on one is expected so often.
    pub fn expect_every(&self, every: Duration) {
        self.since.store(wall_now(), Ordering::Relaxed);
        self.every_ms.store(millis(every), Ordering::Relaxed);
    }

    /// What an operator should know: that the last good one is older than two of them should be apart.
    pub fn warning(&self, now: WallMillis) -> Option<String> {
        let every = self.every_ms.load(Ordering::Relaxed);
        let since = self.last_good().unwrap_or(0).max(self.since.load(Ordering::Relaxed));
        let is_overdue = every > 0 && now.saturating_sub(since) > every.saturating_mul(2);
        is_overdue.then(|| match self.last_good() {
            Some(at) => format!(
                "the last good backup is {} s old, one is due every {} s",
                now.saturating_sub(at) / 1_000,
                every / 1_000
            ),
            None => format!("there is no good backup, one is due every {} s", every / 1_000),
        })
    }

    /// A backup was begun and did not become one.
    pub fn note_failed(&self, whose: BackupFor) {
        self.failed[whose as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A backup is whole where it belongs.
    pub fn note_completed(&self, whose: BackupFor) {
        self.completed[whose as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The numbers for the metrics.
pub struct BackupSamples(pub Arc<BackupLedger>);

impl MetricsSource for BackupSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let ledger = &*self.0;
        let counts = [
            ("backups_completed", "Backups that were written whole", &ledger.completed),
            ("backups_failed", "Backups that were begun and not written whole", &ledger.failed),
            ("backups_bytes", "Bytes of backups given out", &ledger.bytes),
        ];
        for (name, help, numbers) in counts {
            let each = NAMES.into_iter().zip(numbers);
            out.extend(each.map(|(kind, count)| {
                Sample::counter(name, help, count.load(Ordering::Relaxed)).labelled("kind", kind)
            }));
        }
        out.push(Sample::gauge("backups_running", "Backups under way", ledger.running.load(Ordering::Relaxed)));
        let help = "Unix time of the last good scheduled backup, 0 for none";
        let seconds = ledger.last_good().unwrap_or(0) / 1_000;
        out.push(Sample::gauge("backup_last_success_timestamp_seconds", help, seconds));
        let every = ledger.every_ms.load(Ordering::Relaxed) / 1_000;
        out.push(Sample::gauge("backup_interval_seconds", "How often a scheduled backup is due, 0 for never", every));
    }
}

/// Counts what goes through it, holds it to its pace, and counts the backup as running while it lives.
struct Counted<'a> {
    sink: &'a mut dyn Write,
    ledger: &'a BackupLedger,
    whose: BackupFor,
    pace: Pace,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pace.keep();
        let written = self.sink.write(bytes)?;
        self.pace.count(written);
        self.ledger.bytes[self.whose as usize].fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.ledger.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Backups of a node's state.
pub struct Backups {
    pub(super) state: StateReader,
    /// Of the node that takes them.
    pub(super) identity: Arc<ArcSwap<Identity>>,
    pub(super) ledger: Arc<BackupLedger>,
}

impl Backups {
    /// Writes a backup of the state as of now; `begun` is told its revision before the first byte. Blocks for as long as the
    /// sink does. That it is complete is for the caller to note, who knows what becomes of the bytes.
    pub fn back_up(
        &self,
        whose: BackupFor,
        sink: &mut dyn Write,
        begun: &mut dyn FnMut(Revision),
    ) -> Result<BackupEnd, BackupError> {
        let counted = self.counted(whose, sink);
        let (_, end) = self.state.back_up(self.taker(), counted, |header| begun(header.vars.revision))?;
        Ok(end)
    }

    /// Writes all of the state as of now: `take` is told what it is of, makes a sink, and has it filled. Otherwise as [`Self::back_up`].
    pub fn take_whole<T>(
        &self,
        whose: BackupFor,
        take: impl FnOnce(&BackupHeader, &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> T,
    ) -> Result<T, StateFault> {
        self.state.take_whole(self.taker(), |header, whole| {
            let mut whole = Some(whole);
            take(header, &mut |sink| match whole.take() {
                Some(whole) => whole.write(self.counted(whose, sink)).map(drop).map_err(io::Error::other),
                None => Err(io::Error::other("a state is taken once")),
            })
        })
    }

    fn taker(&self) -> Taker {
        let identity = self.identity.load();
        Taker {
            cluster_id: identity.cluster_id.unwrap_or_default(),
            node_id: identity.node_id,
            node_version: env!("CARGO_PKG_VERSION").to_owned(),
            now: wall_now(),
        }
    }

    fn counted<'a>(&'a self, whose: BackupFor, sink: &'a mut dyn Write) -> Counted<'a> {
        let ledger = &self.ledger;
        ledger.running.fetch_add(1, Ordering::Relaxed);
        Counted { sink, ledger, whose, pace: Pace::begin(self.state.clone()) }
    }

    /// The numbers of this node's backups.
    pub fn ledger(&self) -> &BackupLedger {
        &self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_once_two_backups_are_missing() {
        let ledger = BackupLedger::default();
        assert_eq!(ledger.warning(u64::MAX), None, "none are scheduled");
        ledger.expect_every(Duration::from_secs(10));
        let now = wall_now();
        assert_eq!(ledger.warning(now + 15_000), None);
        assert_eq!(ledger.warning(now + 25_000).as_deref(), Some("there is no good backup, one is due every 10 s"));
        ledger.note_good(now + 20_000);
        assert_eq!(ledger.warning(now + 25_000), None);
        let overdue = ledger.warning(now + 60_000).expect("it is old");
        assert_eq!(overdue, "the last good backup is 40 s old, one is due every 10 s");
    }
}
