//! The snapshots of this store's own directory.
//!
//! Owns which of them is the current one, and the names of their directories: no two snapshots ever share one, not even
//! where they cover the same entries, so a build, an installation and somebody who still sends an old one never meet in
//! a directory. Never builds or receives a snapshot.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::files;
use super::home::UNFINISHED_PREFIX;
use super::snapshot::{SnapshotHandle, SnapshotManifest, write_manifest};

/// Invariant: the current snapshot never covers less than one that was current before it, unless that was discarded.
pub(crate) struct Kept {
    dir: PathBuf,
    current: Mutex<Option<SnapshotHandle>>,
    /// Tells directories of this process apart.
    named: AtomicU64,
}

/// The newest sound snapshot of such a directory, if there is one. Changes nothing.
pub(crate) fn newest(dir: &Path) -> io::Result<Option<SnapshotHandle>> {
    if !dir.is_dir() {
        return Ok(None);
    }
    let names = files::names_in(dir)?;
    let kept = names.iter().rev().filter(|name| !name.starts_with(UNFINISHED_PREFIX));
    Ok(kept.filter_map(|name| SnapshotHandle::load(dir.join(name)).ok()).next())
}

impl Kept {
    /// Opens the directory with the newest sound snapshot in it. All others are removed: they are superseded or damaged,
    /// and a snapshot can always be built again.
    pub(crate) fn open(dir: PathBuf) -> io::Result<Self> {
        let mut newest: Option<SnapshotHandle> = None;
        for name in files::names_in(&dir)?.iter().rev() {
            let found = dir.join(name);
            if newest.is_none() {
                match SnapshotHandle::load(found.clone()) {
                    Ok(handle) => {
                        newest = Some(handle);
                        continue;
                    }
                    Err(error) => tracing::warn!(%error, "dropping a snapshot that is not sound"),
                }
            }
            files::remove_tree(&found)?;
        }
        Ok(Self { dir, current: Mutex::new(newest), named: AtomicU64::new(0) })
    }

    pub(crate) fn current(&self) -> Option<SnapshotHandle> {
        self.current.lock().clone()
    }

    /// Where a snapshot can be put together: a path at which nothing is. What a crash leaves there goes at the next open.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.free_path(UNFINISHED_PREFIX)
    }

    /// Makes a directory with all files of the manifest a snapshot, durably, and the current one unless the current one
    /// covers more. In that case it goes with its last handle.
    pub(crate) fn keep(&self, unfinished: &Path, manifest: SnapshotManifest) -> io::Result<SnapshotHandle> {
        write_manifest(unfinished, &manifest)?;
        files::sync_dir(unfinished)?;
        let dir = self.free_path(&format!("{}-", manifest.dir_name()));
        fs::rename(unfinished, &dir).map_err(files::named(&dir))?;
        files::sync_dir(&self.dir)?;
        let handle = SnapshotHandle::new(dir, manifest);
        self.adopt(&handle);
        Ok(handle)
    }

    /// Whether a snapshot lies in this directory, rather than where it was received.
    pub(crate) fn holds(&self, snapshot: &SnapshotHandle) -> bool {
        files::parent(snapshot.dir()) == self.dir
    }

    /// Makes a snapshot of this directory the current one, unless the current one covers more.
    pub(crate) fn adopt(&self, fresh: &SnapshotHandle) {
        assert!(self.holds(fresh), "{} is not a snapshot of this store", fresh.dir().display());
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|old| old.manifest().meta.last_log_id > fresh.manifest().meta.last_log_id) {
            return;
        }
        fresh.keep();
        let old = current.replace(fresh.clone()).filter(|old| old.dir() != fresh.dir());
        // Dropping the last handle removes the files: not under the lock, which the state machine's task takes too.
        drop(current);
        if let Some(old) = old {
            old.supersede();
        }
    }

    /// Gives up the current snapshot, so that openraft asks for a new one.
    pub(crate) fn discard(&self) {
        let old = self.current.lock().take();
        if let Some(old) = old {
            old.supersede();
        }
    }

    /// A path that nobody else gets, and at which no earlier process left anything.
    fn free_path(&self, prefix: &str) -> PathBuf {
        loop {
            let path = self.dir.join(format!("{prefix}{}", self.named.fetch_add(1, Ordering::Relaxed)));
            if !path.exists() {
                return path;
            }
        }
    }
}
