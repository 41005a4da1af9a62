//! A snapshot: a directory of immutable RocksDB files with a manifest, never held in memory.

use std::io;
use std::path::Path;

use bincode::{Decode, Encode};
use bytes::Bytes;

use crate::raft::wire::SnapshotMetaRecord;

/// One file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotFile {
    /// Plain file name, no directories.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 of the whole file.
    pub checksum: u64,
}

/// What a snapshot consists of.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotManifest {
    /// What it covers.
    pub meta: SnapshotMetaRecord,
    /// Its files, in name order.
    pub files: Vec<SnapshotFile>,
}

/// A complete snapshot on disk. The directory is removed once the last handle of a superseded snapshot is dropped.
#[derive(Debug, Clone)]
pub struct SnapshotHandle {
    _inner: std::sync::Arc<()>,
}

impl SnapshotHandle {
    /// Its manifest.
    pub fn manifest(&self) -> &SnapshotManifest {
        unimplemented!("stub")
    }

    /// Reads up to `length` bytes of file number `file` at `offset`. Blocking.
    pub fn read_chunk(&self, _file: usize, _offset: u64, _length: usize) -> io::Result<Bytes> {
        unimplemented!("stub")
    }
}

/// Takes a snapshot in from a peer, resumable: a second `begin` for the same manifest continues. All calls block.
pub struct SnapshotReceiver {}

impl SnapshotReceiver {
    /// Opens or continues the receive directory for this manifest under the state directory; drops what belongs to
    /// another. Refuses unsafe file names and a manifest larger than the free disk space.
    pub fn begin(_state_dir: &Path, _manifest: SnapshotManifest) -> io::Result<Self> {
        unimplemented!("stub")
    }

    /// Bytes already here for each file of the manifest, in its order.
    pub fn have(&self) -> Vec<u64> {
        unimplemented!("stub")
    }

    /// Appends a chunk; `offset` must be what is here already.
    pub fn write(&mut self, _file: usize, _offset: u64, _chunk: &[u8]) -> io::Result<()> {
        unimplemented!("stub")
    }

    /// Verifies lengths and checksums, fsyncs files and directory, and gives the handle to install. A file with a wrong
    /// checksum is dropped, so that a retry fetches it again.
    pub fn finish(self) -> io::Result<SnapshotHandle> {
        unimplemented!("stub")
    }
}
