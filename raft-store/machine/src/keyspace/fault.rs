//! Rows of contained faults: what could not be applied, and what the machine set aside for that reason.
//!
//! Owns their bytes: `0xA0`, log index, number → [`FaultRow`]; `0xA1`, row key → [`ParkedRow`]; `0xA2` → [`FaultCounts`].
//! Never decides what a fault becomes: that is the machine's.

use bincode::{Decode, Encode};

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;
use crate::types::{ClusterMillis, Revision, WallMillis};

/// A command that faulted: it was taken back and answered as [`crate::types::Rejection::Internal`].
///
/// It holds nothing that another build could word differently, so the row is the same on every node.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FaultRow {
    /// Revision of the state that it was applied to.
    pub revision: Revision,
    /// Cluster clock then.
    pub clock: ClusterMillis,
    /// Wall clock then.
    pub wall: WallMillis,
    /// Feature level then.
    pub level: u32,
    /// The command as it stands in the log, for a report: the form of [`crate::command_codec::encode_command`]. Empty where it was
    /// larger than [`crate::limits::FAULT_COMMAND_BYTES_MAX`].
    pub command: Vec<u8>,
}

/// Work of the machine's own that faulted and was set aside, so that all other work goes on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ParkedRow {
    /// Log index of the entry that it faulted in.
    pub index: u64,
    /// Revision of the state then.
    pub revision: Revision,
    /// Cluster clock then.
    pub clock: ClusterMillis,
    /// Wall clock then.
    pub wall: WallMillis,
}

/// The row key of the fault of the `nth` command of a log entry.
pub fn row_key(index: u64, nth: u32) -> Vec<u8> {
    [&[family::FAULT][..], &index.to_be_bytes(), &nth.to_be_bytes()].concat()
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(u64, u32), CodecError> {
    let (index, nth) = split_u64(strip_family(row_key, family::FAULT)?)?;
    let nth = nth.try_into().map_err(|_| CodecError::Malformed("the key of a fault of another length".into()))?;
    Ok((index, u32::from_be_bytes(nth)))
}

/// The row key under which the work of this row is set aside.
pub fn parked_key(work: &[u8]) -> Vec<u8> {
    [&[family::PARKED], work].concat()
}

/// Reverses [`parked_key`].
pub fn decode_parked(row_key: &[u8]) -> Result<&[u8], CodecError> {
    strip_family(row_key, family::PARKED)
}

/// The row key of [`FaultCounts`].
pub const COUNTS_KEY: &[u8] = &[family::FAULT_COUNTS];

/// How much was contained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct FaultCounts {
    /// Commands that ever faulted.
    pub commands: u64,
    /// Work that is set aside now.
    pub parked: u64,
}
