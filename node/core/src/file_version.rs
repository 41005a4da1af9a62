//! Whether a file that a node was configured with is still the one that was read.
//!
//! Owns what tells versions of a file apart. Never reads its content.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// A version: when it was changed, its length, its inode (names may be exchanged). Two of one file are equal as long as nobody
/// touched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion(SystemTime, u64, u64);

impl FileVersion {
    /// That of the file at a path now; `None` where it cannot be looked at.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self(found.modified().ok()?, found.len(), found.ino()))
    }
}
