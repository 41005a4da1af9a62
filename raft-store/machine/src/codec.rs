//! The one place where the store's types become bytes and back.
//!
//! Owns the format version byte that leads every encoded record, and the bincode configuration. Never used for
//! the public API. bincode is no longer maintained: this file and `command_codec` alone call it, so that it can be replaced. Types have its
//! traits, most of them derived.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};

use crate::versions::Versions;

/// Versions of records.
pub const RECORDS: Versions = Versions::new(1, 1, 1);

/// Leads every record written by this build.
pub const FORMAT_VERSION: u8 = RECORDS.writes() as u8;

/// The version in which a record was written, for types whose layout is not the same in all versions that are read: such a type
/// implements `Decode<Written>` by hand and asks it, and whatever holds one derives `Decode` with
/// `#[bincode(decode_context = "Written")]`. What the layout was stands in a file named by its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written(pub u8);

pub(crate) const CONFIG: Configuration<LittleEndian, Varint, Limit<DECODE_BYTES_MAX>> =
    bincode::config::standard().with_limit::<DECODE_BYTES_MAX>();

/// Most memory that a length inside a record can make the decoder ask for at once. Records come from the network too,
/// and bincode allocates what a length promises before it looks whether so many bytes are there. Far more than any record
/// that is written takes: see [`crate::limits::ROW_BYTES_MAX`].
const DECODE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// [`DECODE_BYTES_MAX`] for records of up to [`SMALL_BYTES`] and [`TINY_BYTES`]: thousands of them may be under way at once, and a few
/// bytes of each must not hold as much as the largest batch. A kilobyte for each byte of them, more than any record takes.
const DECODE_SMALL_MAX: usize = SMALL_BYTES * LARGEST_ELEMENT;
const DECODE_TINY_MAX: usize = TINY_BYTES * LARGEST_ELEMENT;
/// [`DECODE_BYTES_MAX`] for one of the [`Parts`] of a record, a line of audit with a key, a request id and a name at most.
const PART_BYTES_MAX: usize = 16 * crate::limits::KEY_BYTES_MAX;
const SMALL_BYTES: usize = 16 * 1024;
const TINY_BYTES: usize = 1024;

/// No element of a list has more bytes than this in memory, and each has one byte at least in a record.
pub(crate) const LARGEST_ELEMENT: usize = 1024;

const _: () = assert!(4 * crate::limits::ROW_BYTES_MAX <= DECODE_BYTES_MAX);

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Nothing there at all.
    #[error("the record is empty")]
    Empty,
    /// Written by a build that knows another format.
    #[error("the record has format version {found}, this build reads {RECORDS}")]
    UnknownVersion {
        /// The version byte found.
        found: u8,
    },
    /// The version is right, the rest is not.
    #[error("the record is malformed: {0}")]
    Malformed(String),
}

/// Encodes any record with the version byte in front.
pub fn encode<T: bincode::Encode>(record: &T) -> Vec<u8> {
    encode_sized(record, 64)
}

/// [`encode`] for a record that takes about so many bytes: where that holds, in one allocation.
pub fn encode_sized<T: bincode::Encode>(record: &T, bytes_expected: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bytes_expected);
    encode_into(record, &mut bytes);
    bytes
}

/// The length of the encoded record, version byte and all.
pub fn encoded_len<T: bincode::Encode>(record: &T) -> usize {
    let mut encoder = bincode::enc::EncoderImpl::new(bincode::enc::write::SizeWriter::default(), CONFIG);
    record.encode(&mut encoder).expect("only counted");
    1 + encoder.into_writer().bytes_written
}

/// Appends the encoded record, version byte first.
pub fn encode_into<T: bincode::Encode>(record: &T, bytes: &mut Vec<u8>) {
    bytes.push(FORMAT_VERSION);
    // Encoding into a Vec has no failing path: no I/O, and none of our types refuse to be encoded.
    bincode::encode_into_std_write(record, bytes, CONFIG).expect("encoding into memory");
}

/// Decodes a record; refuses an unknown version and any trailing byte.
pub fn decode<T: bincode::Decode<Written>>(bytes: &[u8]) -> Result<T, CodecError> {
    decode_of(RECORDS, bytes)
}

/// [`decode`], of these versions.
fn decode_of<T: bincode::Decode<Written>>(versions: Versions, bytes: &[u8]) -> Result<T, CodecError> {
    let mut reader = Reader { bytes, at: 0 };
    let written = reader.version_of(versions)?;
    decode_whole(&bytes[reader.at..], written)
}

/// Decodes what stands behind the version; refuses any trailing byte.
pub(crate) fn decode_whole<T: bincode::Decode<Written>>(body: &[u8], written: Written) -> Result<T, CodecError> {
    let read = if body.len() <= TINY_BYTES {
        bincode::decode_from_slice_with_context(body, CONFIG.with_limit::<DECODE_TINY_MAX>(), written)
    } else if body.len() <= SMALL_BYTES {
        bincode::decode_from_slice_with_context(body, CONFIG.with_limit::<DECODE_SMALL_MAX>(), written)
    } else {
        bincode::decode_from_slice_with_context(body, CONFIG.with_limit::<DECODE_BYTES_MAX>(), written)
    };
    let (record, used) = read.map_err(|e| CodecError::Malformed(e.to_string()))?;
    if used != body.len() {
        return Err(CodecError::Malformed(format!("{} bytes too many", body.len() - used)));
    }
    Ok(record)
}

/// The parts of a record, one after the other: of one that may be larger than any that is decoded at once.
pub struct Parts<'a>(&'a [u8], Written);

impl<'a> Parts<'a> {
    /// Those of a record, behind its version.
    pub fn of(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader { bytes, at: 0 };
        let written = reader.version()?;
        Ok(Self(&bytes[reader.at..], written))
    }

    /// The next one.
    pub fn take<T: bincode::Decode<Written>>(&mut self) -> Result<T, CodecError> {
        let read = bincode::decode_from_slice_with_context(self.0, CONFIG.with_limit::<PART_BYTES_MAX>(), self.1);
        let (part, used) = read.map_err(|error| CodecError::Malformed(error.to_string()))?;
        self.0 = &self.0[used..];
        Ok(part)
    }

    /// Refuses any byte behind the last one.
    pub fn end(self) -> Result<(), CodecError> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(CodecError::Malformed(format!("{more} bytes too many"))),
        }
    }
}

/// A cursor that fails instead of running past the end.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], CodecError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| CodecError::Malformed(format!("cut short at byte {}", self.bytes.len())))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// The version byte, which must be one that is read.
    pub(crate) fn version(&mut self) -> Result<Written, CodecError> {
        self.version_of(RECORDS)
    }

    fn version_of(&mut self, versions: Versions) -> Result<Written, CodecError> {
        match self.bytes.get(self.at) {
            None => Err(CodecError::Empty),
            Some(&found) if versions.reads(found.into()) => self.take(1).map(|_| Written(found)),
            Some(&found) => Err(CodecError::UnknownVersion { found }),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, CodecError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, CodecError> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }
}

#[cfg(test)]
mod next;
#[cfg(test)]
mod primitives;
