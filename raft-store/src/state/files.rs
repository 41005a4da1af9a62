//! File-system steps that the state store's durability is made of.
//!
//! Owns linking, copying, checksums and free space; small files that are replaced whole are [`crate::durable`]'s.
//! Knows nothing of RocksDB. Everything here blocks, and every error names its path.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::durable;

/// Bytes read at a time while a file is checksummed or copied.
const BUFFER_BYTES: usize = 1 << 20;

/// The error with the path in front, its kind kept.
pub(crate) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{path}: {error}"))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    durable::sync_dir(dir).map_err(named(dir))
}

/// Makes the bytes of a file durable.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(named(path))
}

/// Writes a file whose name nobody relies on yet. The caller syncs the directory.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(named(path))
}

/// The directory a file of ours is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().expect("paths of the store lie under its data directory")
}

/// Gives an immutable file a second name, or copies it where the file system cannot.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    copy_durably(from, to)
}

/// Copies a file; the bytes are durable on return, the name is not.
pub(crate) fn copy_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map_err(named(to))?;
    sync_file(to)
}

/// Length and XXH3-64 of a file, in bounded memory.
pub(crate) fn checksum(path: &Path) -> io::Result<(u64, u64)> {
    let read = || {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut hasher = Xxh3::new();
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok((bytes, hasher.digest())),
                count => {
                    hasher.update(&buffer[..count]);
                    bytes += count as u64;
                }
            }
        }
    };
    read().map_err(named(path))
}

/// Removes a directory with all in it; missing is fine.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    durable::remove_tree(dir).map_err(named(dir))
}

/// Names of what is in a directory, in order. Names that are not UTF-8 are not ours and left out.
pub(crate) fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(named(dir))? {
        if let Ok(name) = entry.map_err(named(dir))?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Bytes that an unprivileged process can still write beside `path`.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let c_path = std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path with a zero byte"))?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero byte and `stat` has room for the struct that the call fills in.
    if unsafe { libc::statvfs(c_path.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(named(path)(io::Error::last_os_error()));
    }
    // SAFETY: the call succeeded, so the struct is filled in.
    let stat = unsafe { stat.assume_init() };
    // The widths of these fields differ between platforms.
    #[allow(clippy::unnecessary_cast)]
    Ok((stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64))
}
