//! A base: the whole state after one entry, with a manifest that is written last.
//!
//! Owns the manifest and the order of the writes. What the state consists of is not looked at: it is a stream of bytes.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use quorate_machine::versions::Versions;
use serde::{Deserialize, Serialize};

use crate::crypt::Sealing;
use crate::stream::Upload;
use crate::{BaseName, MacKeys, Position, Recipients, WallMillis, mac};

/// Forms of a manifest and of what it leads to.
pub(crate) const FORMATS: Versions = Versions::new(1, 1, 1);

/// What a base is of, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseManifest {
    /// Form of the manifest.
    pub format: u32,
    /// The cluster, 32 hexadecimal digits.
    pub cluster: String,
    /// The last entry that is in it.
    pub position: Position,
    /// The revision of the state.
    pub revision: u64,
    /// Wall clock of the log there.
    pub wall: WallMillis,
    /// Digest of the state, 32 hexadecimal digits.
    pub digest: String,
    /// The node that wrote it.
    pub node: u64,
    /// The version of its program.
    pub node_version: String,
    /// Version of the form of entries that it wrote.
    #[serde(default = "first_entry_format")]
    pub entry_format: u32,
    /// When it did.
    pub written_at: WallMillis,
    /// Bytes of the object.
    pub bytes: u64,
    /// SHA-256 of the object.
    pub sha256: String,
    /// For whom it is encrypted, by age; empty where it is not.
    pub recipients: Vec<String>,
    /// The MAC of all that is before it, see [`crate::MacKeys`]; `None` where there was no key for that. The last field, since it is looked for
    /// from the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// That of the manifests which do not say it.
fn first_entry_format() -> u32 {
    1
}

impl BaseManifest {
    /// The name that a base with this manifest has.
    pub fn name(&self) -> BaseName {
        let Self { position, revision, wall, node, .. } = self;
        BaseName { index: position.index, term: position.term, revision: *revision, wall: *wall, node: *node }
    }

    /// Its bytes, with a MAC where there is a key for that.
    pub(crate) fn written(&self, macs: &MacKeys) -> Vec<u8> {
        let mac = (!macs.is_none()).then(|| mac::BLANK.to_owned());
        let blank = Self { mac, ..self.clone() };
        let json = serde_json::to_string_pretty(&blank).expect("a manifest is numbers and words");
        macs.fill(&json).unwrap_or(json).into_bytes()
    }

    /// Whether the state is encrypted.
    pub fn is_encrypted(&self) -> bool {
        !self.recipients.is_empty()
    }
}

/// Takes the state of a base: packed, encrypted and sent in parts. Blocks.
pub struct BaseUpload {
    sink: DeflateEncoder<Sealing<Upload>>,
}

impl BaseUpload {
    pub(crate) fn new(upload: Upload, recipients: &Recipients) -> io::Result<Self> {
        Ok(Self { sink: DeflateEncoder::new(recipients.seal(upload)?, Compression::fast()) })
    }

    /// Completes the object. Gives its length and SHA-256.
    pub(crate) fn finish(self) -> io::Result<(u64, [u8; 32])> {
        self.sink.finish()?.finish()?.finish()
    }
}

impl Write for BaseUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
