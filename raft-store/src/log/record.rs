//! The rows of the log's database: keys, and values sealed so that a rotten or misplaced one is noticed.
//!
//! Owns the byte layout: checksum, stamp of the data directory, body. Never does I/O.
//!
//! | column family | key | body |
//! |---|---|---|
//! | `default` | index, 8 bytes big endian after [`ENTRY_PREFIX`] | [`wire::encode_entry`] |
//! | `meta` | `format` | version of this table |
//! | `meta` | `vote` | [`wire::VoteRecord`] |
//! | `meta` | `purged` | [`wire::LogIdRecord`] |
//!
//! Entries have a column family of their own so that flushed files never overlap: RocksDB then moves them down
//! its levels without rewriting a byte, and a purge deletes whole files.

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{self, CodecError};
use crate::identity::Identity;
use crate::raft::{LogEntry, wire};

/// Version of the rows and keys. A log of another version is refused.
pub const LOG_FORMAT: u32 = 1;

/// Leads the key of every entry.
pub const ENTRY_PREFIX: u8 = 0x01;

/// Behind the key of every entry.
pub const ENTRIES_END: [u8; 1] = [ENTRY_PREFIX + 1];

/// Key of the format version.
pub const FORMAT_KEY: &[u8] = b"format";
/// Key of the vote.
pub const VOTE_KEY: &[u8] = b"vote";
/// Key of the purge mark.
pub const PURGED_KEY: &[u8] = b"purged";

const SEAL_BYTES: usize = 4 + 4;

/// Why a row cannot be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Too short to hold even the seal.
    #[error("a row of {0} bytes")]
    Short(usize),
    /// Written by another node, or before this data directory was made anew.
    #[error("stamped {found:08x} by another data directory, this one is {expected:08x}")]
    Foreign {
        /// Stamp in the row.
        found: u32,
        /// Stamp of this directory.
        expected: u32,
    },
    /// The bytes, or the key they stand under, are not those that were written.
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

/// What ties rows to one data directory: 32 bits of its node id and incarnation.
///
/// The cluster id is left out on purpose: it is not known yet when the log is first opened, and the random
/// incarnation already tells any two directories apart.
#[derive(Debug, Clone, Copy)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of a data directory.
    pub fn new(identity: &Identity) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&identity.incarnation.to_le_bytes());
        hasher.update(&identity.node_id.to_le_bytes());
        Self(hasher.finalize())
    }

    /// Clears `into` and fills it with the row of an entry.
    pub fn seal_entry(self, entry: &LogEntry, into: &mut BytesMut) {
        into.clear();
        into.reserve(SEAL_BYTES + wire::encoded_entry_len(entry));
        into.put_bytes(0, SEAL_BYTES);
        wire::encode_entry(entry, into);
        self.close(&entry_key(entry.log_id.index), into);
    }

    /// The row of a meta record.
    pub fn seal<T: bincode::Encode>(self, key: &[u8], record: &T) -> Vec<u8> {
        let mut row = vec![0; SEAL_BYTES];
        codec::encode_into(record, &mut row);
        self.close(key, &mut row);
        row
    }

    /// Reverses [`Self::seal_entry`]; the payload shares the given bytes.
    pub fn open_entry(self, index: u64, row: Bytes) -> Result<LogEntry, RecordError> {
        self.check(&entry_key(index), &row)?;
        let entry = wire::decode_entry(&row.slice(SEAL_BYTES..))?;
        match entry.log_id.index {
            found if found == index => Ok(entry),
            found => Err(RecordError::Misplaced { found }),
        }
    }

    /// Reverses [`Self::seal`].
    pub fn open<T: bincode::Decode<()>>(self, key: &[u8], row: &[u8]) -> Result<T, RecordError> {
        self.check(key, row)?;
        Ok(codec::decode(&row[SEAL_BYTES..])?)
    }

    fn close(self, key: &[u8], row: &mut [u8]) {
        row[4..SEAL_BYTES].copy_from_slice(&self.0.to_le_bytes());
        let checksum = self.checksum(key, &row[SEAL_BYTES..]);
        row[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    fn check(self, key: &[u8], row: &[u8]) -> Result<(), RecordError> {
        let Some((seal, body)) = row.split_first_chunk::<SEAL_BYTES>() else {
            return Err(RecordError::Short(row.len()));
        };
        let [a, b, c, d, stamp @ ..] = *seal;
        let (found, expected) = (self.checksum(key, body), u32::from_le_bytes([a, b, c, d]));
        if found == expected {
            return Ok(());
        }
        // The stamp goes into the checksum, so this only picks the better message.
        match u32::from_le_bytes(stamp) {
            stamp if stamp == self.0 => Err(RecordError::Checksum { found, expected }),
            stamp => Err(RecordError::Foreign { found: stamp, expected: self.0 }),
        }
    }

    fn checksum(self, key: &[u8], body: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(key);
        hasher.update(body);
        hasher.finalize()
    }
}

/// The key of an entry. Keys sort as their indexes do.
pub fn entry_key(index: u64) -> [u8; 9] {
    let mut key = [ENTRY_PREFIX; 9];
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}

/// Reverses [`entry_key`].
pub fn entry_index(key: &[u8]) -> Option<u64> {
    match key.split_first() {
        Some((&ENTRY_PREFIX, index)) => Some(u64::from_be_bytes(index.try_into().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;
    use proptest::prelude::*;

    use super::*;
    use crate::raft::{EncodedBatch, LogId, wire::LogIdRecord};

    fn stamp(incarnation: u128) -> Stamp {
        Stamp::new(&Identity { cluster_id: None, node_id: 1, incarnation })
    }

    fn entry(index: u64, payload: Vec<u8>) -> LogEntry {
        let log_id = LogId::from(LogIdRecord { term: 3, node: 1, index });
        LogEntry { log_id, payload: EntryPayload::Normal(EncodedBatch(payload.into())) }
    }

    proptest! {
        #[test]
        fn a_row_comes_back_only_under_its_key_unchanged_and_at_home(
            index: u64, payload: Vec<u8>, flip: prop::sample::Index, bit in 0..8_u8,
        ) {
            let entry = entry(index, payload);
            let mut row = BytesMut::new();
            stamp(9).seal_entry(&entry, &mut row);
            let row = row.freeze();
            prop_assert_eq!(stamp(9).open_entry(index, row.clone()).unwrap(), entry);
            prop_assert!(stamp(9).open_entry(index ^ 1, row.clone()).is_err());
            let foreign = stamp(10).open_entry(index, row.clone());
            prop_assert!(matches!(foreign, Err(RecordError::Foreign { .. })), "{:?}", foreign);
            let mut damaged = row.to_vec();
            // The four bytes of the stamp itself carry no information for its owner: only a failed check reads them.
            let at = flip.index(damaged.len());
            prop_assume!(!(4..8).contains(&at));
            damaged[at] ^= 1 << bit;
            prop_assert!(stamp(9).open_entry(index, damaged.into()).is_err());
        }

        #[test]
        fn keys_sort_as_indexes_do(a: u64, b: u64) {
            prop_assert_eq!(entry_key(a).cmp(&entry_key(b)), a.cmp(&b));
            prop_assert_eq!(entry_index(&entry_key(a)), Some(a));
            prop_assert!(entry_key(a).as_slice() < ENTRIES_END.as_slice());
        }
    }
}
