//! Taking a snapshot in from a peer.
//!
//! Owns the receive directory: what is here already, in order chunks, checks at the end. Never installs anything, and
//! trusts nothing of the manifest but what it checked. All of it blocks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_machine::codec;
use xxhash_rust::xxh3::xxh3_64;

use super::files;
use super::home::{Home, RECEIVED_PREFIX};
use super::snapshot::{SnapshotHandle, SnapshotManifest, write_manifest};

/// Free disk that a received snapshot must leave: room for the memtables and the log meanwhile.
const FREE_BYTES_LEFT_MIN: u64 = 128 << 20;

const LOCK_FILE: &str = "LOCK";

/// Numbers finished receives of this process, so that a second one of the same snapshot has its own directory.
static FINISHED: AtomicU64 = AtomicU64::new(0);

/// Takes a snapshot in from a peer, resumable: a second `begin` for the same manifest continues. All calls block.
///
/// Invariant: `have[i]` is the length of file `i`, and never more than the manifest's.
#[derive(Debug)]
pub struct SnapshotReceiver {
    root: PathBuf,
    dir: PathBuf,
    manifest: SnapshotManifest,
    have: Vec<u64>,
    /// The file that took the last chunk.
    open: Option<(usize, File)>,
    /// Held as long as this receiver lives.
    _lock: File,
}

impl SnapshotReceiver {
    /// Opens or continues the receive directory for this manifest under the state directory
    /// ([`super::StateReader::state_dir`]); drops what belongs to another. Refuses unsafe file names and a manifest
    /// larger than the free disk space; `WouldBlock` while another receiver is at work.
    pub fn begin(state_dir: &Path, manifest: SnapshotManifest) -> io::Result<Self> {
        manifest.check()?;
        let root = Home(state_dir.to_path_buf()).received();
        fs::create_dir_all(&root).map_err(files::named(&root))?;
        let lock = lock(&root)?;
        let name = format!("{}-{:016x}", manifest.dir_name(), xxh3_64(&codec::encode(&manifest)));
        drop_others(&root, &name)?;
        let dir = root.join(name);
        fs::create_dir_all(&dir).map_err(files::named(&dir))?;
        let have = sizes(&dir, &manifest)?;
        check_space(&root, manifest.total_bytes() - have.iter().sum::<u64>())?;
        Ok(Self { root, dir, manifest, have, open: None, _lock: lock })
    }

    /// Bytes already here for each file of the manifest, in its order.
    pub fn have(&self) -> Vec<u64> {
        self.have.clone()
    }

    /// Appends a chunk; `offset` must be what is here already.
    pub fn write(&mut self, file: usize, offset: u64, chunk: &[u8]) -> io::Result<()> {
        let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        let Some(expected) = self.manifest.files.get(file) else {
            return refuse(format!("a chunk of file {file} of {}", self.manifest.files.len()));
        };
        let end = offset.saturating_add(chunk.len() as u64);
        if offset != self.have[file] || end > expected.bytes {
            return refuse(format!(
                "a chunk of {} from {offset} to {end}, where {} of {} bytes are here",
                expected.name, self.have[file], expected.bytes
            ));
        }
        let path = self.dir.join(&expected.name);
        self.file(file, &path)?.write_all(chunk).map_err(files::named(&path))?;
        self.have[file] = end;
        Ok(())
    }

    /// Verifies lengths and checksums, fsyncs files and directory, and gives the handle to install. A file with a wrong
    /// checksum is dropped, so that a retry fetches it again.
    pub fn finish(mut self) -> io::Result<SnapshotHandle> {
        self.open = None;
        for file in &self.manifest.files {
            verify(&self.dir, file.name.as_str(), (file.bytes, file.checksum))?;
        }
        write_manifest(&self.dir, &self.manifest)?;
        files::sync_dir(&self.dir)?;
        let number = FINISHED.fetch_add(1, Ordering::Relaxed);
        let done = self.root.join(format!("{RECEIVED_PREFIX}{}-{number}", self.manifest.dir_name()));
        fs::rename(&self.dir, &done).map_err(files::named(&done))?;
        files::sync_dir(&self.root)?;
        Ok(SnapshotHandle::new(done, self.manifest))
    }

    fn file(&mut self, number: usize, path: &Path) -> io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = OpenOptions::new().create(true).append(true).open(path).map_err(files::named(path))?;
            self.open = Some((number, file));
        }
        let (_, file) = self.open.as_mut().expect("it was opened just now");
        Ok(file)
    }
}

/// Checks and syncs one received file. An empty file may never have got a chunk.
fn verify(dir: &Path, name: &str, expected: (u64, u64)) -> io::Result<()> {
    let path = dir.join(name);
    if expected.0 == 0 {
        OpenOptions::new().create(true).append(true).open(&path).map_err(files::named(&path))?;
    }
    let found = files::checksum(&path)?;
    if found.0 < expected.0 {
        let reason = format!("only {} of {} bytes were received", found.0, expected.0);
        return Err(files::named(&path)(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
    }
    if found != expected {
        fs::remove_file(&path).map_err(files::named(&path))?;
        let reason = format!("checksum {:016x} instead of {:016x}", found.1, expected.1);
        return Err(files::named(&path)(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    files::sync_file(&path)
}

/// What is here of each file. A file that is too long is not the one expected and starts anew.
fn sizes(dir: &Path, manifest: &SnapshotManifest) -> io::Result<Vec<u64>> {
    let size = |file: &super::snapshot::SnapshotFile| {
        let path = dir.join(&file.name);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() <= file.bytes => Ok(metadata.len()),
            Ok(_) => fs::remove_file(&path).map(|()| 0).map_err(files::named(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(files::named(&path)(error)),
        }
    };
    manifest.files.iter().map(size).collect()
}

/// Only one receiver at a time may write here, also if the node starts a second one before the first has noticed that
/// its peer is gone.
fn lock(root: &Path) -> io::Result<File> {
    let path = root.join(LOCK_FILE);
    let file = File::create(&path).map_err(files::named(&path))?;
    // SAFETY: the descriptor is open; the call has no other precondition.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return Err(files::named(&path)(io::Error::last_os_error()));
    }
    Ok(file)
}

/// Removes unfinished receives of other snapshots. Finished ones belong to their handles.
fn drop_others(root: &Path, mine: &str) -> io::Result<()> {
    for name in files::names_in(root)? {
        if name != mine && name != LOCK_FILE && !name.starts_with(RECEIVED_PREFIX) {
            files::remove_tree(&root.join(name))?;
        }
    }
    Ok(())
}

fn check_space(root: &Path, needed: u64) -> io::Result<()> {
    let free = files::free_bytes(root)?;
    if needed.saturating_add(FREE_BYTES_LEFT_MIN) > free {
        let reason = format!("the snapshot needs {needed} bytes more, {free} are free on this disk");
        return Err(io::Error::new(io::ErrorKind::StorageFull, reason));
    }
    Ok(())
}
