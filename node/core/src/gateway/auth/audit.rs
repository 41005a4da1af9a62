//! The audit log: lines of JSON in a file.
//!
//! Owns the file and the count of what could not be written. Never holds up a request: a line waits in memory, and is left out where
//! too many wait. What stands in a line, `audit_event` decides.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::logging::Log;
use crate::metrics::{MetricsSource, Sample};

/// The file, and the queue in front of it.
#[derive(Debug)]
pub struct AuditFile {
    log: Log,
    failed: Arc<AtomicU64>,
}

/// Counts what cannot be written.
struct Lines {
    file: File,
    failed: Arc<AtomicU64>,
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.file.write_all(line)
            && self.failed.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::error!(%error, "the audit log cannot be written");
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl AuditFile {
    /// Opens the file, or makes it, and goes on at its end. Nobody but its owner may read it.
    ///
    /// # Errors
    /// What the system said.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let failed = Arc::new(AtomicU64::new(0));
        let gap = |missing| format!("{{\"lost_lines\":{missing}}}\n");
        let log = Log::with_gaps(Lines { file, failed: Arc::clone(&failed) }, gap)?;
        Ok(Arc::new(Self { log, failed }))
    }

    /// Takes an event, or leaves it out.
    pub fn take(&self, event: &impl Serialize) {
        match serde_json::to_vec(event) {
            Ok(mut line) => {
                line.push(b'\n');
                self.log.take(&line);
            }
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, "an audit event has no JSON");
            }
        }
    }

    /// Waits until everything is written, but not longer than `within`.
    pub fn flush(&self, within: std::time::Duration) -> bool {
        self.log.flush(within)
    }
}

/// What the audit log counts: nothing, where there is none.
pub struct AuditSamples(pub Option<Arc<AuditFile>>);

impl MetricsSource for AuditSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let counts = |file: &AuditFile| (file.log.counts(), file.failed.load(Ordering::Relaxed));
        let ((written, dropped), failed) = self.0.as_deref().map(counts).unwrap_or_default();
        out.push(Sample::counter("audit_lines", "Lines of the audit log", written.saturating_sub(failed)));
        let help = "Lines of the audit log that were lost: the disk was too slow or did not take them";
        out.push(Sample::counter("audit_lost_lines", help, dropped + failed));
    }
}
