//! What a node knows of the archive: how far it goes, and what became of its own work on it.
//!
//! Owns these numbers, and what an operator is warned of. Never does I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_archive::Verified;
use quorate_machine::types::WallMillis;
use quorate_node_core::metrics::{MetricsSource, Sample};
use quorate_node_core::millis::millis;

/// A leader that changes nothing archives a mark so often, so that the archive says up to when it is whole.
pub(super) const MARK_EVERY: Duration = Duration::from_secs(60);
/// How late the archive may be beyond that before an operator is told.
const LATE_MAX: Duration = Duration::from_secs(120);

/// Numbers of the archive.
#[derive(Debug, Default)]
pub struct ArchiveLedger {
    /// Index after the last entry that is known to be there; 0 while nothing is known.
    archived: AtomicU64,
    /// Up to when the archive is known to be whole, Unix milliseconds; 0 while nothing is known.
    whole_until: AtomicU64,
    /// From when on that is expected.
    since: WallMillis,
    /// How late it may be.
    late_max_ms: u64,
    pub(super) segments: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) bases: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) gaps: AtomicU64,
    pub(super) removed: AtomicU64,
    pub(super) merged: AtomicU64,
    /// Whole bases that are there.
    pub(super) bases_there: AtomicU64,
    /// From when on every point can be reached, Unix milliseconds; 0 for none.
    pub(super) reaches_from: AtomicU64,
    /// The last restore that was tried and worked, Unix milliseconds.
    verified_at: AtomicU64,
    verify_failed: AtomicU64,
    /// What the last failure said, until something works again.
    trouble: Mutex<Option<String>>,
    /// What the last try of a restore found wrong.
    fault: Mutex<Option<String>>,
    /// The gaps that it found.
    holes: Mutex<Vec<String>>,
    /// Where this node archives, once it has found the place.
    location: Mutex<Option<String>>,
    /// Why the place is not the one in which the cluster archived before.
    away: Mutex<Option<String>>,
}

impl ArchiveLedger {
    /// Begins now.
    pub fn new(now: WallMillis, interval: Duration) -> Self {
        Self { since: now, late_max_ms: millis(MARK_EVERY + LATE_MAX + 4 * interval), ..Self::default() }
    }

    /// The last entry that is known to be in the archive; `None` while nothing is known.
    pub fn archived(&self) -> Option<u64> {
        self.archived.load(Ordering::Relaxed).checked_sub(1)
    }

    /// All entries up to this one are there. It is whole until then; 0 where that is not known.
    pub(super) fn note_archived(&self, index: u64, whole_until: WallMillis) {
        self.archived.fetch_max(index + 1, Ordering::Relaxed);
        // Not the latest of all: one of a clock that was ahead would hide for as long that the archive is late.
        if whole_until > 0 {
            self.whole_until.store(whole_until, Ordering::Relaxed);
        }
    }

    /// Where this node archives; `None` until it has found the place.
    pub fn location(&self) -> Option<String> {
        self.location.lock().clone()
    }

    /// The place was found.
    pub(super) fn note_location(&self, location: String) {
        *self.location.lock() = Some(location);
    }

    /// Why the place is not the one in which the cluster archived before, if so. At once, and not only when the archive is late: what is in
    /// its place would pass for an archive that is empty.
    pub(super) fn note_away(&self, away: Option<String>) {
        *self.away.lock() = away;
    }

    /// Something worked again.
    pub(super) fn note_good(&self) {
        *self.trouble.lock() = None;
    }

    /// Something did not work. Whether that is new.
    pub(super) fn note_trouble(&self, trouble: String) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.trouble.lock().replace(trouble).is_none()
    }

    /// What a try of a restore came to.
    pub(super) fn note_verified(&self, verified: &Verified) {
        self.verify_failed.store(u64::from(verified.fault.is_some()), Ordering::Relaxed);
        if verified.fault.is_none() {
            self.verified_at.store(verified.at, Ordering::Relaxed);
        }
        self.fault.lock().clone_from(&verified.fault);
        self.holes.lock().clone_from(&verified.gaps);
    }

    /// What an operator should know.
    pub fn warnings(&self, now: WallMillis) -> Vec<String> {
        let until = self.whole_until.load(Ordering::Relaxed);
        let late = now.saturating_sub(until.max(self.since));
        let is_late = late > self.late_max_ms;
        let trouble = self.trouble.lock().clone().filter(|trouble| self.away.lock().as_ref() != Some(trouble));
        let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
        let lacks = is_late.then(|| match until {
            0 => format!("nothing of this cluster is known to be archived{trouble}"),
            _ => format!("the archive lacks what was written in the last {} s{trouble}", late / 1_000),
        });
        let fault = self.fault.lock().clone();
        let fault = fault.map(|fault| format!("a restore of the archive was tried and is not to be had: {fault}"));
        let hole = |gap: &String| format!("the archive has a gap among what is kept: {gap}");
        let holes: Vec<_> = self.holes.lock().iter().map(hole).collect();
        let away = self.away.lock().clone();
        lacks.into_iter().chain(away).chain(fault).chain(holes).collect()
    }
}

/// The numbers for the metrics.
pub struct ArchiveSamples {
    /// The numbers.
    pub ledger: Arc<ArchiveLedger>,
    /// Whether there is an archive; they are zero where there is none.
    pub is_expected: bool,
}

impl MetricsSource for ArchiveSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let ledger = &*self.ledger;
        let seconds = |millis: &AtomicU64| millis.load(Ordering::Relaxed) / 1_000;
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let help = "Whether this node knows of an archive";
        out.push(Sample::gauge("archive_expected", help, u64::from(self.is_expected)));
        let help = "Last log index that is known to be archived";
        out.push(Sample::gauge("archive_index", help, ledger.archived().unwrap_or(0)));
        let help = "Unix time up to which the archive is known to be whole, 0 for unknown";
        out.push(Sample::gauge("archive_whole_until_timestamp_seconds", help, seconds(&ledger.whole_until)));
        let help = "Unix time from which on each point can be restored, 0 for unknown";
        out.push(Sample::gauge("archive_reaches_from_timestamp_seconds", help, seconds(&ledger.reaches_from)));
        let help = "Unix time of the last restore that this node tried and that worked, 0 for none";
        out.push(Sample::gauge("archive_verified_timestamp_seconds", help, seconds(&ledger.verified_at)));
        let help = "Whether the last restore that this node tried found a fault of the archive";
        out.push(Sample::gauge("archive_verify_failed", help, count(&ledger.verify_failed)));
        out.push(Sample::gauge("archive_bases", "Whole bases in the archive", count(&ledger.bases_there)));
        out.extend([
            Sample::counter("archive_segments", "Pieces of the log that this node archived", count(&ledger.segments)),
            Sample::counter("archive_bytes", "Bytes that this node archived", count(&ledger.bytes)),
            Sample::counter("archive_bases_written", "Bases that this node archived", count(&ledger.bases)),
            Sample::counter("archive_failures", "Tries to archive that failed", count(&ledger.failures)),
            Sample::counter(
                "archive_gaps",
                "Times that entries were gone before they were archived",
                count(&ledger.gaps),
            ),
            Sample::counter(
                "archive_removed",
                "Objects that this node removed from the archive",
                count(&ledger.removed),
            ),
            Sample::counter(
                "archive_merged",
                "Pieces and bundles of the log that this node merged into larger ones",
                count(&ledger.merged),
            ),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_once_the_archive_is_late_and_says_why() {
        let ledger = ArchiveLedger::new(1_000_000, Duration::from_secs(5));
        let limit = 200_000;
        assert_eq!(ledger.warnings(1_000_000 + limit), [""; 0]);
        assert_eq!(ledger.archived(), None);
        let first = "nothing of this cluster is known to be archived";
        assert_eq!(ledger.warnings(1_000_001 + limit), [first]);
        ledger.note_archived(7, 2_000_000);
        assert_eq!((ledger.archived(), ledger.warnings(2_000_000 + limit)), (Some(7), vec![]));
        assert!(ledger.note_trouble("no route".into()) && !ledger.note_trouble("no route".into()));
        let late = "the archive lacks what was written in the last 300 s: no route";
        assert_eq!(ledger.warnings(2_300_000), [late]);
        ledger.note_archived(3, 1_900_000);
        assert_eq!(ledger.archived(), Some(7), "it never goes back");
        let hour = 3_600_000;
        ledger.note_archived(8, 24 * hour);
        ledger.note_archived(9, 2_300_000);
        ledger.note_archived(10, 0);
        let late = "the archive lacks what was written in the last 3600 s: no route";
        assert_eq!(ledger.warnings(2_300_000 + hour), [late], "a clock that was ahead hides nothing");
    }

    #[test]
    fn a_place_that_is_away_is_told_at_once_and_once() {
        let ledger = ArchiveLedger::new(1_000_000, Duration::from_secs(5));
        let away = "nothing is mounted".to_owned();
        ledger.note_trouble(away.clone());
        ledger.note_away(Some(away.clone()));
        assert_eq!(ledger.warnings(1_000_000), std::slice::from_ref(&away));
        let lacks = "nothing of this cluster is known to be archived".to_owned();
        assert_eq!(ledger.warnings(2_000_000), [lacks, away]);
        ledger.note_away(None);
        ledger.note_good();
        assert_eq!(ledger.warnings(1_000_000), [""; 0]);
    }

    #[test]
    fn a_restore_that_was_not_to_be_had_is_told_until_one_is() {
        let ledger = ArchiveLedger::new(0, Duration::from_secs(5));
        let found = |fault: Option<&str>| Verified {
            at: 9_000,
            node: 1,
            index: 2,
            revision: 3,
            wall: 4,
            fault: fault.map(str::to_owned),
            ..Verified::default()
        };
        ledger.note_verified(&found(Some("base 7 is damaged")));
        assert!(ledger.warnings(0)[0].contains("base 7 is damaged"));
        ledger.note_verified(&found(None));
        assert_eq!(ledger.warnings(0), [""; 0]);
    }
}
