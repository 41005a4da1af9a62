//! Where a node keeps its data: a given directory, or a temporary one that goes with the process.
//!
//! Owns making and removing the temporary directory. Never looks into a given one: that is the store's business.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
    /// Makes the directory where it is missing.
    pub fn open(&self) -> io::Result<OpenDataDir> {
        let (path, temporary) = match self {
            Self::Given(path) => (path.clone(), false),
            Self::Temporary => {
                let name = format!("quorate-dev-{}-{:016x}", std::process::id(), rand::random::<u64>());
                (std::env::temp_dir().join(name), true)
            }
        };
        std::fs::create_dir_all(&path)?;
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
