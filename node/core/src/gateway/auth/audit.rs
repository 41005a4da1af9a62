//! The audit log: lines of JSON in a file.
//!
//! Owns the file, who may read it, and the count of what could not be written. Never holds up a request: a line waits in memory, and is
//! left out where too many wait. `audit_event` decides what stands in a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

use crate::file_mode::shut_file;
use crate::logging::Log;
use crate::metrics::{MetricsSource, Sample};

/// The file, and the queue in front of it.
#[derive(Debug)]
pub struct AuditFile {
    log: Log,
    failed: Arc<AtomicU64>,
    is_moved: Arc<AtomicBool>,
}

/// Counts what cannot be written.
struct Lines {
    path: PathBuf,
    file: File,
    failed: Arc<AtomicU64>,
    /// Whether the file was moved away, so that the next line goes to what is at the path now.
    is_moved: Arc<AtomicBool>,
}

/// Opens the file, or makes it. Nobody but its owner and group may read it, and nobody else change it.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if let Some(mode) = shut_file(&file)? {
        tracing::warn!(file = %path.display(), mode = format_args!("{mode:03o}"), "others could read or change the audit log: it was shut");
    }
    Ok(file)
}

impl Lines {
    fn follow_path(&mut self) {
        match open(&self.path) {
            Ok(file) => self.file = file,
            // Lines are worth more in the old place than nowhere.
            Err(error) => {
                tracing::error!(%error, file = %self.path.display(), "the audit log cannot be opened anew and goes on where it was");
            }
        }
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.is_moved.swap(false, Ordering::Relaxed) {
            self.follow_path();
        }
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
    /// Opens the file, or makes it, and goes on at its end. One that others may read is shut for them.
    ///
    /// # Errors
    /// What the system said.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let (failed, is_moved) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (path, file) = (path.to_path_buf(), open(path)?);
        let lines = Lines { path, file, failed: Arc::clone(&failed), is_moved: Arc::clone(&is_moved) };
        let log = Log::with_gaps(lines, |missing| format!("{{\"lost_lines\":{missing}}}\n"))?;
        Ok(Arc::new(Self { log, failed, is_moved }))
    }

    /// Goes on in the file that is at the path then, from the next line on: somebody moved this one away.
    pub fn reopen(&self) {
        self.is_moved.store(true, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    fn write(audit: &AuditFile, line: &str) {
        audit.take(&line);
        assert!(audit.flush(Duration::from_secs(10)), "it is not written");
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn a_file_that_was_moved_away_is_followed_by_a_new_one_and_no_line_is_lost() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, old) = (dir.path().join("audit"), dir.path().join("audit.1"));
        let audit = AuditFile::open(&path).expect("a file");
        write(&audit, "one");
        fs::rename(&path, &old).expect("renamed");
        write(&audit, "two");
        audit.reopen();
        write(&audit, "three");
        let text = |path| fs::read_to_string(path).expect("it is there");
        assert_eq!((text(&old).as_str(), text(&path).as_str()), ("\"one\"\n\"two\"\n", "\"three\"\n"));
        assert_eq!(mode(&path), 0o600);
        // A path that cannot be opened takes nothing away.
        fs::remove_file(&path).expect("removed");
        fs::create_dir(&path).expect("a directory");
        audit.reopen();
        write(&audit, "four");
        assert_eq!((audit.log.counts(), audit.failed.load(Ordering::Relaxed)), ((4, 0), 0));
    }

    #[test]
    fn a_file_that_others_may_read_is_shut_for_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("audit");
        for (found, left) in [(0o644, 0o640), (0o666, 0o640), (0o640, 0o640), (0o600, 0o600)] {
            fs::write(&path, "before\n").expect("written");
            fs::set_permissions(&path, Permissions::from_mode(found)).expect("it is ours");
            let audit = AuditFile::open(&path).expect("a file");
            write(&audit, "then");
            assert_eq!(mode(&path), left, "{found:o}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), "before\n\"then\"\n");
        }
    }
}
