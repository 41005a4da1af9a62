//! Sealed entries: bytes that carry what it takes to notice a rotten or misplaced one at every later read.
//!
//! Owns the seal (checksum, tag of the data directory) in front of an entry's own bytes ([`wire::encode_entry`]).
//! Never does I/O, and knows nothing of where the bytes stand: that is [`super::group`].

use bytes::{BufMut, Bytes, BytesMut};
use quorate_machine::codec::CodecError;

use crate::identity::Identity;
use crate::raft::{LogEntry, wire};

/// Bytes in front of every entry: checksum, tag.
pub const SEAL_BYTES: usize = 4 + 4;

/// Why an entry cannot be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Too short to hold even the seal.
    #[error("{0} bytes are no sealed entry")]
    Short(usize),
    /// Written by another node, or before this data directory was made anew.
    #[error("tagged {found:08x} by another data directory, this one is {expected:08x}")]
    Foreign {
        /// Tag in the row.
        found: u32,
        /// Tag of this directory.
        expected: u32,
    },
    /// The bytes, or the index they are read for, are not those that were written.
    #[error("checksum {found:08x} where {expected:08x} was written")]
    Checksum {
        /// Computed.
        found: u32,
        /// Stored.
        expected: u32,
    },
    /// Sealed correctly, but for this build unreadable.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The entry says that it is another one.
    #[error("holds entry {found}")]
    Misplaced {
        /// Index inside the entry.
        found: u64,
    },
}

/// What ties bytes to one data directory: 32 bits of its node id and incarnation.
///
/// The cluster id is left out on purpose: it is not known yet when the log is first opened, and the random
/// incarnation already tells any two directories apart.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryTag(u32);

impl DirectoryTag {
    /// The tag of a data directory.
    pub fn new(identity: &Identity) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&identity.incarnation.to_le_bytes());
        hasher.update(&identity.node_id.to_le_bytes());
        Self(hasher.finalize())
    }

    /// The tag as it stands in files.
    pub fn get(self) -> u32 {
        self.0
    }

    /// A checksum that is right only in this data directory.
    pub fn checksum(self, parts: [&[u8]; 2]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        parts.iter().for_each(|part| hasher.update(part));
        hasher.finalize()
    }

    /// Appends the sealed entry and returns how many bytes that took.
    pub fn seal_entry(self, entry: &LogEntry, into: &mut BytesMut) -> usize {
        let start = into.len();
        into.reserve(SEAL_BYTES + wire::encoded_entry_len(entry));
        into.put_bytes(0, 4);
        into.put_u32_le(self.0);
        wire::encode_entry(entry, into);
        let (seal, body) = into[start..].split_at_mut(SEAL_BYTES);
        let checksum = self.checksum([&entry.log_id.index.to_le_bytes(), body]);
        seal[..4].copy_from_slice(&checksum.to_le_bytes());
        into.len() - start
    }

    /// Whether the bytes are the entry that was sealed under this index.
    pub fn check_entry(self, index: u64, sealed: &[u8]) -> Result<(), RecordError> {
        let Some((&[a, b, c, d, tag @ ..], body)) = sealed.split_first_chunk::<SEAL_BYTES>() else {
            return Err(RecordError::Short(sealed.len()));
        };
        let (found, expected) = (self.checksum([&index.to_le_bytes(), body]), u32::from_le_bytes([a, b, c, d]));
        match u32::from_le_bytes(tag) {
            tag if tag != self.0 => Err(RecordError::Foreign { found: tag, expected: self.0 }),
            _ if found != expected => Err(RecordError::Checksum { found, expected }),
            _ => Ok(()),
        }
    }

    /// Reverses [`Self::seal_entry`]; the payload shares the given bytes.
    pub fn open_entry(self, index: u64, sealed: Bytes) -> Result<LogEntry, RecordError> {
        self.check_entry(index, &sealed)?;
        let entry = wire::decode_entry(&sealed.slice(SEAL_BYTES..))?;
        match entry.log_id.index {
            found if found == index => Ok(entry),
            found => Err(RecordError::Misplaced { found }),
        }
    }
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;
    use proptest::prelude::*;

    use super::*;
    use crate::raft::{EncodedBatch, LogId, wire::LogIdRecord};

    fn tag(incarnation: u128) -> DirectoryTag {
        DirectoryTag::new(&Identity { cluster_id: None, node_id: 1, incarnation })
    }

    fn entry(index: u64, payload: Vec<u8>) -> LogEntry {
        let log_id = LogId::from(LogIdRecord { term: 3, node: 1, index });
        LogEntry { log_id, payload: EntryPayload::Normal(EncodedBatch(payload.into())) }
    }

    proptest! {
        #[test]
        fn an_entry_comes_back_only_under_its_index_unchanged_and_at_home(
            index: u64, payload: Vec<u8>, flip: prop::sample::Index, bit in 0..8_u8,
        ) {
            let entry = entry(index, payload);
            let mut row = BytesMut::from(&b"before"[..]);
            let bytes = tag(9).seal_entry(&entry, &mut row);
            let row = row.freeze().slice(6..);
            prop_assert_eq!(bytes, row.len());
            prop_assert_eq!(tag(9).open_entry(index, row.clone()).unwrap(), entry);
            prop_assert!(tag(9).open_entry(index ^ 1, row.clone()).is_err());
            let foreign = tag(10).open_entry(index, row.clone());
            prop_assert!(matches!(foreign, Err(RecordError::Foreign { .. })), "{:?}", foreign);
            let mut damaged = row.to_vec();
            let at = flip.index(damaged.len());
            damaged[at] ^= 1 << bit;
            prop_assert!(tag(9).open_entry(index, damaged.into()).is_err());
        }
    }
}
