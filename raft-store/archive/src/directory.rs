//! An archive that is a directory of this machine: its mode, its mark, and what uploads leave there that broke off.
//!
//! Owns what only a file system has. Never reads or writes an object.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::ArchiveError;

/// For the owner alone.
const MODE: u32 = 0o700;
/// Tells the place of an archive from a directory on which nothing is mounted.
const MARK: &str = "archived-here";
/// What it says to whoever finds it.
const MARK_TEXT: &[u8] =
    b"A cluster archives here. Without this file its nodes take this for a directory on which nothing is mounted.\n";
/// An upload that wrote nothing for so long is not under way any more.
const BROKEN_OFF_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
    let path = path.display().to_string();
    move |source| ArchiveError::File { path, source }
}

/// Makes a directory that only its owner can look into. A sentence for people where it is there, and somebody else's.
pub fn shut(dir: &Path) -> Result<Option<String>, ArchiveError> {
    DirBuilder::new().recursive(true).mode(MODE).create(dir).map_err(failed(dir))?;
    let mode = fs::metadata(dir).map_err(failed(dir))?.permissions().mode() & 0o777;
    if mode & !MODE == 0 {
        return Ok(None);
    }
    match fs::set_permissions(dir, Permissions::from_mode(MODE)) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Some(format!(
            "{} has mode {mode:o} and is of another user: others of this machine may read all of the cluster there",
            dir.display()
        ))),
        Err(error) => Err(failed(dir)(error)),
    }
}

/// The mark of a directory.
pub fn mark_in(dir: &Path) -> PathBuf {
    dir.join(MARK)
}

/// Marks a directory, durably, unless it is marked already. Two nodes may do it at once: they write the same.
pub fn mark(dir: &Path) -> Result<(), ArchiveError> {
    let path = mark_in(dir);
    if path.try_exists().map_err(failed(&path))? {
        return Ok(());
    }
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let mut file = opened.map_err(failed(&path))?;
    file.write_all(MARK_TEXT).and_then(|()| file.sync_all()).map_err(failed(&path))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir))
}

/// Removes a directory with all that is in it, if it is there.
pub fn remove(dir: &Path) -> Result<(), ArchiveError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(dir)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes files of uploads that broke off a day ago and longer, in these directories and those in them.
pub fn remove_broken_off(dirs: &[PathBuf], now: SystemTime) -> Result<(), ArchiveError> {
    for dir in dirs {
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(failed(dir))?,
        };
        for entry in entries {
            let entry = entry.map_err(failed(dir))?;
            let path = entry.path();
            if entry.file_type().map_err(failed(&path))?.is_dir() {
                remove_broken_off(&[path], now)?;
            } else if is_staged(&path) && is_old(&path, now)? {
                fs::remove_file(&path).map_err(failed(&path))?;
            }
        }
    }
    Ok(())
}

/// Whether a file is of an upload: they are written as `NAME#NUMBER`, and renamed once they are whole.
fn is_staged(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('#'));
    name.is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_old(path: &Path, now: SystemTime) -> Result<bool, ArchiveError> {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).map_err(failed(path))?;
    Ok(now.duration_since(modified).is_ok_and(|age| age >= BROKEN_OFF_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(dir: &Path) -> u32 {
        fs::metadata(dir).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_archive_is_shut_when_it_is_made_and_when_it_is_found_open() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("archive/cluster");
        assert_eq!((shut(&dir).unwrap(), mode(&dir)), (None, MODE));
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        assert_eq!((shut(&dir).unwrap(), mode(&dir)), (None, MODE));
    }

    #[test]
    fn a_directory_is_marked_once_and_not_by_being_there() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("archive");
        shut(&dir).unwrap();
        assert!(!mark_in(&dir).exists(), "an empty directory is no archive");
        mark(&dir).unwrap();
        mark(&dir).unwrap();
        assert_eq!(fs::read(mark_in(&dir)).unwrap(), MARK_TEXT);
    }

    #[test]
    fn what_uploads_left_goes_after_a_day_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().join("base/b1");
        fs::create_dir_all(&base).unwrap();
        for (name, is_aged) in [("state", true), ("state#1", true), ("state#2", false), ("a#b", true), ("#", true)] {
            let file = fs::File::create(base.join(name)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            if is_aged {
                file.set_modified(now - 2 * BROKEN_OFF_AFTER).unwrap();
            }
        }
        let now = fs::metadata(base.join("state#2")).unwrap().modified().unwrap();
        remove_broken_off(&[home.path().join("base"), home.path().join("log")], now).unwrap();
        let mut left: Vec<_> = fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["#", "a#b", "state", "state#2"]);
        remove(&base).unwrap();
        remove(&base).unwrap();
        assert!(!base.exists());
    }
}
