//! The files with the keys of an archive: those that open it, and those by which it is authenticated.
//!
//! Owns that one is read only where nobody else on the machine may read or change it. Never shows what is in it.

use std::path::Path;

use quorate_archive::{ArchiveError, Keys, MacKeys};
use quorate_node_core::file_mode::refuse_open_secret;

/// Reads it.
///
/// # Errors
/// Others may read it, it cannot be read, or holds something else.
pub fn read(path: &Path) -> Result<Keys, ArchiveError> {
    refuse_open(path)?;
    Keys::read(path)
}

/// Reads that with the keys of MACs.
///
/// # Errors
/// The same as those of [`read`].
pub fn read_macs(path: &Path) -> Result<MacKeys, ArchiveError> {
    refuse_open(path)?;
    MacKeys::read(path)
}

fn refuse_open(path: &Path) -> Result<(), ArchiveError> {
    refuse_open_secret(path).map_err(|why| ArchiveError::Refused(format!("{} {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use quorate_node_core::file_mode::write_secret;

    use super::*;

    #[test]
    fn a_key_that_others_may_read_is_refused_and_not_shown() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("archive.key");
        let secret = "AGE-SECRET-KEY-1JT7NZVH8Y6KAFPF83VEH3NS8YUQ3XJ99RE7XU4XVLA6W6SVJY4USPC9P7U";
        write_secret(&path, secret);
        assert!(!read(&path).expect("it is a key").is_none());
        set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
        let why = read(&path).expect_err("refused").to_string();
        assert!(why.contains("archive.key has the mode 644") && why.contains("chmod"), "{why}");
        assert!(!why.contains(secret), "{why}");
        let why = read_macs(&path).expect_err("refused").to_string();
        assert!(why.contains("has the mode 644"), "{why}");
        set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        assert!(!read_macs(&path).expect("any long line is a secret").is_none());
    }
}
