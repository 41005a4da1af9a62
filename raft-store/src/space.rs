//! Room on the disk: knowing early that it runs out, and a reserve to come back from when it did.
//!
//! Owns the ballast file in the data directory. Never refuses a write itself; callers ask and decide.
//!
//! The flow. Above the limit all is well. Below it [`SpaceGuard::state`] says [`Space::Low`] and the node refuses new
//! proposals, while reads, deletes and renewals go on, and purges its log behind a snapshot. If the disk fills all the same
//! (something else wrote), the log's next write fails and the process ends. RocksDB cannot even open on a full disk, as its recovery writes;
//! so at the next start [`SpaceGuard::open`], called before any database is opened, finds too little room and drops
//! the ballast: the node starts, says `Low`, and deletes and compaction can make room. Once there is enough again, the
//! node's regular [`SpaceGuard::restore_ballast`] puts the reserve back.

#![expect(clippy::disallowed_methods, reason = "says how old a look at the disk is; nothing of it is replicated")]

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::durable;

/// Default size of the ballast: what the state needs to replay, flush and write its manifest, and the log for its next segment.
pub const BALLAST_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;

/// How old an answer of [`SpaceGuard::state`] may be. Writes at a gigabyte a second take less than a quarter of it.
const FRESH_FOR: Duration = Duration::from_millis(250);

const BALLAST_FILE: &str = "ballast";

/// Whether there is room for more data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// There is.
    Ok,
    /// Too little: refuse what needs room.
    Low {
        /// Free bytes.
        free: u64,
        /// Free bytes below which it is too little.
        needed: u64,
    },
}

/// Says how many bytes of a disk are free, and how many there are in all.
pub type RoomProbe = Arc<dyn Fn() -> io::Result<(u64, u64)> + Send + Sync>;

/// Watches the room on the disk of one data directory.
pub struct SpaceGuard {
    data_dir: PathBuf,
    room: RoomProbe,
    ballast_bytes: u64,
    min_free_bytes: u64,
    seen: Mutex<Seen>,
}

struct Seen {
    free: u64,
    size: u64,
    at: Instant,
}

impl SpaceGuard {
    /// Looks at the disk of `data_dir`, which must exist, before any database in it is opened. Where less than
    /// `min_free_bytes` is free the ballast is dropped; otherwise it is made, unless that would make the room too little.
    pub fn open(data_dir: &Path, ballast_bytes: u64, min_free_bytes: u64) -> io::Result<SpaceGuard> {
        let data_dir_c = CString::new(data_dir.as_os_str().as_bytes())?;
        Self::open_with(data_dir, ballast_bytes, min_free_bytes, Arc::new(move || room_of(&data_dir_c)))
    }

    /// [`Self::open`] on a disk whose room is told by `room`.
    pub fn open_with(
        data_dir: &Path,
        ballast_bytes: u64,
        min_free_bytes: u64,
        room: RoomProbe,
    ) -> io::Result<SpaceGuard> {
        let (free, size) = room()?;
        let seen = Mutex::new(Seen { free, size, at: Instant::now() });
        let guard = SpaceGuard { data_dir: data_dir.to_owned(), room, ballast_bytes, min_free_bytes, seen };
        if matches!(guard.state(), Space::Low { .. }) {
            guard.release_ballast()?;
        } else {
            guard.restore_ballast()?;
        }
        Ok(guard)
    }

    /// Whether there is room, as of at most a quarter second ago. Cheap enough to ask for each proposal; a failing
    /// system call counts as no room.
    pub fn state(&self) -> Space {
        let free = self.free();
        if free >= self.min_free_bytes { Space::Ok } else { Space::Low { free, needed: self.min_free_bytes } }
    }

    /// Whether there would be room for writes yet if something else took so many bytes. As old as [`Self::state`].
    pub fn has_room_beside(&self, bytes: u64) -> bool {
        self.free() >= self.min_free_bytes.saturating_add(bytes)
    }

    /// Free bytes, as of at most a quarter second ago.
    pub fn free(&self) -> u64 {
        let mut seen = self.seen.lock();
        if seen.at.elapsed() >= FRESH_FOR {
            let (free, size) = (self.room)().unwrap_or_else(|error| {
                tracing::error!(dir = %self.data_dir.display(), %error, "cannot ask for the free space");
                (0, seen.size)
            });
            *seen = Seen { free, size, at: Instant::now() };
        }
        seen.free
    }

    /// Bytes of the whole disk.
    pub fn size(&self) -> u64 {
        self.seen.lock().size
    }

    /// Free bytes below which [`Self::state`] says [`Space::Low`].
    pub fn needed(&self) -> u64 {
        self.min_free_bytes
    }

    /// Gives the reserve up. Fine where there is none.
    pub fn release_ballast(&self) -> io::Result<()> {
        match fs::remove_file(self.ballast()) {
            Ok(()) => tracing::warn!(dir = %self.data_dir.display(), bytes = self.ballast_bytes, "ballast dropped"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        self.forget();
        durable::sync_dir(&self.data_dir)
    }

    /// Makes the reserve where there is none and the room for it. True where it is there afterwards. Blocks.
    pub fn restore_ballast(&self) -> io::Result<bool> {
        if fs::metadata(self.ballast()).is_ok_and(|ballast| ballast.len() == self.ballast_bytes) {
            return Ok(true);
        }
        if self.free() < self.min_free_bytes.saturating_add(self.ballast_bytes) {
            return Ok(false);
        }
        let made = allocate(&self.ballast(), self.ballast_bytes);
        self.forget();
        match made {
            Ok(()) => durable::sync_dir(&self.data_dir).map(|()| true),
            // Somebody else took the room just now. Half a ballast must not pass for a whole one.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => self.release_ballast().map(|()| false),
            Err(error) => Err(error),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.data_dir.join(BALLAST_FILE)
    }

    fn forget(&self) {
        let mut seen = self.seen.lock();
        match (self.room)() {
            Ok((free, size)) => *seen = Seen { free, size, at: Instant::now() },
            Err(error) => tracing::error!(dir = %self.data_dir.display(), %error, "cannot ask for the free space"),
        }
    }
}

/// Blocks are really taken: a sparse file would reserve nothing.
fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    if length > 0 {
        // SAFETY: the descriptor is open and owned by `file`; the call takes no memory of ours.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
    }
    file.sync_all()
}

/// Bytes that are free for this process, and bytes in all.
fn room_of(dir: &CString) -> io::Result<(u64, u64)> {
    // SAFETY: all-zero bytes are a valid `statvfs`, which is plain integers.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte and `stat` outlives the call.
    if unsafe { libc::statvfs(dir.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    Ok((stat.f_bavail as u64 * stat.f_frsize as u64, stat.f_blocks as u64 * stat.f_frsize as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn the_ballast_takes_real_blocks_and_gives_them_back() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let guard = SpaceGuard::open(dir.path(), 4 * MIB, 1).unwrap();
        let ballast = fs::metadata(dir.path().join(BALLAST_FILE)).unwrap();
        assert!(ballast.blocks() * 512 >= 4 * MIB, "only {} blocks taken", ballast.blocks());
        assert_eq!(guard.state(), Space::Ok);
        guard.release_ballast().unwrap();
        assert!(!dir.path().join(BALLAST_FILE).exists());
        guard.release_ballast().unwrap();
        assert!(guard.restore_ballast().unwrap());
        assert!(dir.path().join(BALLAST_FILE).exists());
    }

    #[test]
    fn a_start_with_too_little_room_drops_the_ballast_and_says_low() {
        let dir = tempfile::tempdir().unwrap();
        drop(SpaceGuard::open(dir.path(), MIB, 1).unwrap());
        let needed = u64::MAX / 2;
        let guard = SpaceGuard::open(dir.path(), MIB, needed).unwrap();
        assert!(!dir.path().join(BALLAST_FILE).exists());
        assert!(matches!(guard.state(), Space::Low { needed: n, free } if n == needed && free > 0));
        assert!(!guard.restore_ballast().unwrap(), "there is no room to put it back");
    }
}
