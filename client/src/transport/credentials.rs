//! What this client shows to nodes and what it believes of them: the token, its certificate, the CAs.
//!
//! Owns when files are read again. Never lets go of what it has for something that cannot be read: a file may be half written.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio_rustls::TlsConnector;

use crate::call::error::Error;
use crate::transport::tls::TlsSources;
use crate::transport::token::TokenSource;

/// How often files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is shown and believed from one look to the next.
pub(crate) struct Shown {
    /// Greater than that of what was shown before.
    pub generation: u64,
    /// Who asks.
    pub authorization: Option<HeaderValue>,
    /// How to shake hands, where a CA is named.
    pub connector: Option<TlsConnector>,
}

/// The credentials of a client.
pub(crate) struct Credentials {
    tls: TlsSources,
    token: TokenSource,
    has_files: bool,
    begun: Instant,
    /// Milliseconds after `begun`.
    look_at: AtomicU64,
    generation: AtomicU64,
    kept: Mutex<Kept>,
}

struct Kept {
    shown: Arc<Shown>,
    stamps: Vec<Option<Stamp>>,
}

/// What changes when a file does: it is written, or another one takes its place.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    length: u64,
    inode: u64,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Credentials({:?}, {:?})", self.tls, self.token)
    }
}

impl Credentials {
    /// Reads what is in files.
    pub fn read(tls: &TlsSources, token: &TokenSource) -> Result<Self, Error> {
        let stamps = stamps(tls, token);
        let shown = Arc::new(show(tls, token, 0)?);
        Ok(Self {
            tls: tls.clone(),
            token: token.clone(),
            has_files: !stamps.is_empty(),
            begun: Instant::now(),
            look_at: AtomicU64::new(milliseconds(LOOK_EVERY)),
            generation: AtomicU64::new(0),
            kept: Mutex::new(Kept { shown, stamps }),
        })
    }

    /// Whether nodes are told who asks by a token.
    pub fn has_token(&self) -> bool {
        !matches!(self.token, TokenSource::None)
    }

    /// What to show now.
    pub fn shown(&self) -> Arc<Shown> {
        self.look_if_due();
        self.kept.lock().shown.clone()
    }

    /// The generation of what to show now.
    pub fn generation(&self) -> u64 {
        self.look_if_due();
        self.generation.load(Ordering::Relaxed)
    }

    /// Looks at once, since a node did not like what it was shown. Whether there is something newer than that.
    pub fn is_newer_than(&self, generation: u64) -> bool {
        self.look();
        self.generation.load(Ordering::Relaxed) > generation
    }

    fn look_if_due(&self) {
        if !self.has_files {
            return;
        }
        let (now, due) = (milliseconds(self.begun.elapsed()), self.look_at.load(Ordering::Relaxed));
        let next = now + milliseconds(LOOK_EVERY);
        // One of those who come at the same time looks.
        if now >= due && self.look_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.look();
        }
    }

    fn look(&self) {
        if !self.has_files {
            return;
        }
        // Before they are read: what is written meanwhile is seen the next time.
        let stamps = stamps(&self.tls, &self.token);
        let mut kept = self.kept.lock();
        if stamps == kept.stamps {
            return;
        }
        let generation = kept.shown.generation + 1;
        match show(&self.tls, &self.token, generation) {
            Ok(shown) => {
                *kept = Kept { shown: Arc::new(shown), stamps };
                self.generation.store(generation, Ordering::Relaxed);
                tracing::debug!(generation, "credentials were read again");
            }
            Err(error) => tracing::warn!(%error, "credentials cannot be read again; the former ones stay in use"),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn show(tls: &TlsSources, token: &TokenSource, generation: u64) -> Result<Shown, Error> {
    let connector = tls.load()?.map(TlsConnector::from);
    Ok(Shown { generation, authorization: token.header()?, connector })
}

fn stamps(tls: &TlsSources, token: &TokenSource) -> Vec<Option<Stamp>> {
    tls.files().chain(token.file()).map(stamp).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let data = fs::metadata(path).ok()?;
    Some(Stamp { modified: (data.mtime(), data.mtime_nsec()), length: data.len(), inode: data.ino() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_written_anew_is_read_anew_and_a_broken_file_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        fs::write(&path, "one\n").expect("written");
        let credentials = Credentials::read(&TlsSources::default(), &TokenSource::File(path.clone())).expect("a token");
        let shown = || credentials.shown().authorization.clone().expect("a token");
        assert_eq!((shown(), credentials.generation()), (HeaderValue::from_static("Bearer one"), 0));
        assert!(!credentials.is_newer_than(0), "nothing has changed");
        for broken in [b"".as_slice(), b"two tokens\n"] {
            fs::write(&path, broken).expect("written");
            assert!(!credentials.is_newer_than(0));
            assert_eq!(shown(), "Bearer one");
        }
        fs::remove_file(&path).expect("removed");
        assert!(!credentials.is_newer_than(0));
        fs::write(&path, "second\n").expect("written");
        assert!(credentials.is_newer_than(0));
        assert_eq!((shown(), credentials.generation()), (HeaderValue::from_static("Bearer second"), 1));
    }
}
