//! A snapshot: a directory of immutable RocksDB files with a manifest, never held in memory.
//!
//! Owns the manifest's form and checks, reading chunks, and when the directory goes away. Never builds or receives
//! one, nor knows which is the current one: see [`super::checkpoint`], [`super::receive`] and [`super::kept`].

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bincode::{Decode, Encode};
use bytes::Bytes;
use quorate_machine::codec;
use quorate_threads::background;
use xxhash_rust::xxh3::xxh3_64;

use super::files;
use crate::raft::wire::SnapshotMetaRecord;

/// The file that makes a directory a snapshot: the encoded manifest, then its XXH3-64 (LE).
const MANIFEST_FILE: &str = "SNAPSHOT";

/// Most files in a snapshot: at 64 MiB each, 6 TiB. Bounds what a peer can make us allocate.
const FILES_MAX: usize = 100_000;

/// One file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotFile {
    /// Plain file name, no directories.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 of the whole file.
    pub checksum: u64,
}

/// What a snapshot consists of.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotManifest {
    /// What it covers.
    pub meta: SnapshotMetaRecord,
    /// Its files, in name order.
    pub files: Vec<SnapshotFile>,
}

impl SnapshotManifest {
    /// Length of all files.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Index of the last entry it covers; 0 also where it covers none.
    pub fn index(&self) -> u64 {
        self.meta.last_log_id.map_or(0, |id| id.index)
    }

    /// Refuses names that could leave the directory or that no snapshot of ours has, and lists out of order.
    pub(crate) fn check(&self) -> io::Result<()> {
        let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        if self.files.len() > FILES_MAX {
            return refuse(format!("a snapshot of {} files, at most {FILES_MAX} are allowed", self.files.len()));
        }
        if let Some(file) = self.files.iter().find(|file| !is_snapshot_file(&file.name)) {
            return refuse(format!("a snapshot with a file named {:?}", file.name));
        }
        if let Some(pair) = self.files.windows(2).find(|pair| pair[0].name >= pair[1].name) {
            return refuse(format!("a snapshot that lists {:?} before {:?}", pair[0].name, pair[1].name));
        }
        let count = |prefix: &str| self.files.iter().filter(|file| file.name.starts_with(prefix)).count();
        if count("CURRENT") != 1 || count("MANIFEST-") != 1 {
            return refuse("a snapshot without exactly one CURRENT and one MANIFEST".into());
        }
        Ok(())
    }

    /// The directory name of a snapshot: sorts by index.
    pub(crate) fn dir_name(&self) -> String {
        match self.meta.last_log_id {
            Some(id) => format!("{:020}-{}-{}", id.index, id.term, id.node),
            None => format!("{:020}-none", 0),
        }
    }
}

/// Whether RocksDB needs a file of this name in a snapshot. Everything else in a checkpoint is left out.
pub(crate) fn is_snapshot_file(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.len() <= 20 && part.bytes().all(|b| b.is_ascii_digit());
    name == "CURRENT" || is_table_file(name) || name.strip_prefix("MANIFEST-").is_some_and(is_number)
}

/// Whether this is a table file, which never changes once written.
pub(crate) fn is_table_file(name: &str) -> bool {
    name.strip_suffix(".sst")
        .is_some_and(|part| !part.is_empty() && part.len() <= 20 && part.bytes().all(|b| b.is_ascii_digit()))
}

/// A complete snapshot on disk. The directory is removed once the last handle of a superseded snapshot is dropped.
#[derive(Debug, Clone)]
pub struct SnapshotHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    manifest: SnapshotManifest,
    /// Whether nobody needs the directory after the last handle.
    superseded: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.superseded.load(Ordering::Acquire) {
            return;
        }
        // The last handle may be one of openraft's, on the threads that it runs on, and a large state has a thousand files.
        let dir = std::mem::take(&mut self.dir);
        background::beside(move || {
            if let Err(error) = files::remove_tree(&dir) {
                tracing::warn!(%error, "a superseded snapshot could not be removed; the next start tries again");
            }
        });
    }
}

impl SnapshotHandle {
    /// Its manifest.
    pub fn manifest(&self) -> &SnapshotManifest {
        &self.inner.manifest
    }

    /// Reads up to `length` bytes of file number `file` at `offset`; fewer only at the end of the file. Blocking.
    pub fn read_chunk(&self, file: usize, offset: u64, length: usize) -> io::Result<Bytes> {
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
        let files = &self.inner.manifest.files;
        let file = files.get(file).ok_or_else(|| invalid(format!("file {file} of {}", files.len())))?;
        let left = file.bytes.checked_sub(offset);
        let left = left.ok_or_else(|| invalid(format!("offset {offset} in {} of {}", file.name, file.bytes)))?;
        let mut chunk = vec![0; usize::try_from(left).map_or(length, |left| left.min(length))];
        let path = self.inner.dir.join(&file.name);
        File::open(&path).and_then(|f| f.read_exact_at(&mut chunk, offset)).map_err(files::named(&path))?;
        Ok(chunk.into())
    }

    /// A handle for a complete directory that nobody relies on yet: removed with its last handle unless kept.
    pub(crate) fn new(dir: PathBuf, manifest: SnapshotManifest) -> Self {
        Self { inner: Arc::new(Inner { dir, manifest, superseded: AtomicBool::new(true) }) }
    }

    /// Opens a snapshot left by an earlier run. Lengths are checked, checksums are not: receivers check those.
    pub(crate) fn load(dir: PathBuf) -> io::Result<Self> {
        let manifest = read_manifest(&dir)?;
        for file in &manifest.files {
            let path = dir.join(&file.name);
            let bytes = fs::metadata(&path).map_err(files::named(&path))?.len();
            if bytes != file.bytes {
                let reason = format!("{} bytes instead of {}", bytes, file.bytes);
                return Err(files::named(&path)(io::Error::new(io::ErrorKind::InvalidData, reason)));
            }
        }
        Ok(Self { inner: Arc::new(Inner { dir, manifest, superseded: AtomicBool::new(false) }) })
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// The directory outlives the handles, and this process.
    pub(crate) fn keep(&self) {
        self.inner.superseded.store(false, Ordering::Release);
    }

    /// The directory goes with the last handle.
    pub(crate) fn supersede(&self) {
        self.inner.superseded.store(true, Ordering::Release);
    }
}

/// Writes the manifest into a directory whose files are complete. The caller syncs the directory.
pub(crate) fn write_manifest(dir: &Path, manifest: &SnapshotManifest) -> io::Result<()> {
    let mut bytes = codec::encode(manifest);
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    files::write_durably(&dir.join(MANIFEST_FILE), &bytes)
}

fn read_manifest(dir: &Path) -> io::Result<SnapshotManifest> {
    let path = dir.join(MANIFEST_FILE);
    let damaged = |reason: String| files::named(&path)(io::Error::new(io::ErrorKind::InvalidData, reason));
    let bytes = fs::read(&path).map_err(files::named(&path))?;
    let (body, checksum) = bytes.split_last_chunk::<8>().ok_or_else(|| damaged("cut short".into()))?;
    if xxh3_64(body) != u64::from_le_bytes(*checksum) {
        return Err(damaged("wrong checksum".into()));
    }
    let manifest: SnapshotManifest = codec::decode(body).map_err(|error| damaged(error.to_string()))?;
    manifest.check().map_err(files::named(&path))?;
    Ok(manifest)
}
