//! Files with secrets, as nodes take them.
//!
//! Owns their mode: a node refuses those that others may read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a key or a token that only its owner may read. One that is there keeps its mode.
pub fn write_secret(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(content.as_ref()));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
