//! Where a node keeps its data: a given directory, or a temporary one that goes with the process.
//!
//! Owns making and removing the temporary directory, and that no others on the machine get into either. Never looks into a given one:
//! that is the store's business.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use quorate_node_core::file_mode;
use quorate_store::durable;

/// The choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataDir {
    /// Kept.
    Given(PathBuf),
    /// Made at start, removed at exit (`--dev`).
    Temporary,
}

/// A directory that exists. Dropping it removes a temporary one.
#[derive(Debug)]
pub struct OpenDataDir {
    path: PathBuf,
    temporary: bool,
}

impl fmt::Display for DataDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(path) => path.display().fmt(f),
            Self::Temporary => f.write_str("a temporary directory that goes with it"),
        }
    }
}

impl DataDir {
    /// Makes the directory where it is missing, and shuts it for others: all of the cluster's data is in it.
    pub fn open(&self) -> io::Result<OpenDataDir> {
        let (path, temporary) = match self {
            Self::Given(path) => (path.clone(), false),
            Self::Temporary => {
                let name = format!("quorate-dev-{}-{:016x}", std::process::id(), rand::random::<u64>());
                (std::env::temp_dir().join(name), true)
            }
        };
        durable::create_dir(&path)?;
        match file_mode::shut_dir(&path) {
            Ok(None) => {}
            Ok(Some(mode)) => {
                tracing::warn!(path = %path.display(), mode = format!("{mode:03o}"), "the data directory was open to others on this machine; it is not any more");
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the data directory is open to others on this machine and cannot be shut: chmod o-rwx");
            }
        }
        Ok(OpenDataDir { path, temporary })
    }
}

impl OpenDataDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OpenDataDir {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the temporary data directory could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn a_data_directory_is_private_whether_it_is_new_or_was_there() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("deep").join("data");
        DataDir::Given(dir.clone()).open().expect("it can be made");
        assert_eq!(mode(&dir), 0o700);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("it is ours");
        DataDir::Given(dir.clone()).open().expect("it is there");
        assert_eq!(mode(&dir), 0o750);
        let temporary = DataDir::Temporary.open().expect("it can be made");
        assert_eq!(mode(temporary.path()), 0o700);
    }
}
