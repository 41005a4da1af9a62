//! Who beside this node may read or change what it keeps secret.
//!
//! Owns the judgement over the mode of a file and of a directory. Never makes anything more open.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Bits that let anybody on the machine in.
const OTHERS: u32 = 0o007;
/// Lets the group change a file: whoever may exchange a key is who it makes them.
const GROUP_WRITES: u32 = 0o020;

/// Refuses a file with a secret that others may read, or a group may write, as ssh does. A group may read it: that is how packages and
/// volumes of secrets give a service a file of root.
///
/// # Errors
/// The rest of a sentence that begins with the file, and says what to do. A file that cannot be looked at is none: reading it says why.
pub fn refuse_open_secret(path: &Path) -> Result<(), String> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let mode = found.mode() & 0o777;
    if !found.is_file() || mode & (OTHERS | GROUP_WRITES) == 0 {
        return Ok(());
    }
    Err(format!(
        "has the mode {mode:03o}, so others on this machine may read or change it: chmod it to 600, or 640 where a group is to read \
         it (in a volume of secrets: defaultMode 0440), and make a new one if somebody else may have read it"
    ))
}

/// Shuts a directory for all but its owner and group. Returns the mode that it had, where that was more open.
///
/// # Errors
/// It is open, and cannot be shut: it is somebody else's.
pub fn shut_dir(dir: &Path) -> io::Result<Option<u32>> {
    let mode = fs::metadata(dir)?.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(None);
    }
    fs::set_permissions(dir, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Some(mode & 0o777))
}

/// Shuts a file for all but its owner, and its group, which may go on reading it. Returns the mode that it had, where that was more open.
/// A pipe or a terminal is left as it is.
///
/// # Errors
/// It is open, and cannot be shut: it is somebody else's.
pub fn shut_file(file: &File) -> io::Result<Option<u32>> {
    let found = file.metadata()?;
    let mode = found.mode() & 0o7777;
    if !found.is_file() || mode & (OTHERS | GROUP_WRITES) == 0 {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(mode & !(OTHERS | GROUP_WRITES)))?;
    Ok(Some(mode & 0o777))
}

/// Writes a secret as its owner would, for the tests of each crate of a node.
pub fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).expect("it can be written");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is ours");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn a_secret_that_others_may_read_or_a_group_may_write_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("key");
        fs::write(&path, "secret").expect("written");
        for mode in [0o600, 0o400, 0o640, 0o440] {
            set(&path, mode);
            assert_eq!(refuse_open_secret(&path), Ok(()), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o602, 0o660, 0o666] {
            set(&path, mode);
            let why = refuse_open_secret(&path).expect_err("refused");
            assert!(why.contains(&format!("{mode:03o}")) && why.contains("to 600"), "{why}");
        }
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        assert!(refuse_open_secret(&link).is_err(), "what it leads to counts");
        assert_eq!(refuse_open_secret(&dir.path().join("missing")), Ok(()), "who reads it says so");
    }

    #[test]
    fn an_open_directory_is_shut_for_others_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        set(dir.path(), 0o2755);
        assert_eq!(shut_dir(dir.path()).expect("it is ours"), Some(0o755));
        assert_eq!(fs::metadata(dir.path()).expect("there").mode() & 0o7777, 0o2750, "the group of a volume keeps it");
        assert_eq!(shut_dir(dir.path()).expect("it is ours"), None);
        assert!(shut_dir(&dir.path().join("missing")).is_err());
    }
}
