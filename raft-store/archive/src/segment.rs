//! A piece of the log as an object: head, packed entries, checksum.
//!
//! Owns those bytes. Never does I/O. What an entry means is not looked at: an entry is bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | one of [`FORMATS`], little endian like the rest |
//! | 4 | bytes of the head |
//! | … | the head, JSON: a [`SegmentHead`] |
//! | … | the entries, deflated: length (4 bytes) and bytes of each |
//! | 32 | SHA-256 of all before |
//!
//! All of it is encrypted where the archive is. A MAC stands behind it where there is a key for that, see [`crate::mac`].

use std::io::{Read, Write};

use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use quorate_machine::versions::Versions;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::crypt::of_io;
use crate::{ArchiveError, Form, Keys, MacKeys, Position, Recipients, SegmentName, WallMillis};

const MAGIC: [u8; 8] = *b"\x89QRSEGM\n";
const FORMATS: Versions = Versions::new(1, 1, 1);
const FIXED_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;

/// Entries of about so many bytes make a segment at most: little to hold, and little to send again.
pub const SEGMENT_BYTES: usize = 8 << 20;
/// What damage can make us ask for: a segment that one large entry goes beyond.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// What a piece of the log says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentHead {
    /// The cluster, 32 hexadecimal digits.
    pub cluster: String,
    /// The entry before the first; `None` where the first is that of the log.
    pub before: Option<Position>,
    /// The first entry.
    pub first: u64,
    /// The last one.
    pub last: Position,
    /// The least that the wall clock of the log shows after any of its entries.
    pub wall_min: WallMillis,
    /// Wall clock of the log after the last entry.
    pub wall: WallMillis,
    /// Version of the form of entries.
    pub entry_format: u32,
    /// The node that wrote it.
    pub node: u64,
    /// The state after the last entry, where whoever wrote this had it at hand.
    pub after: Option<After>,
    /// Bytes of the entries once they are inflated.
    pub bytes: u64,
}

/// What a state is after an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Its revision.
    pub revision: u64,
    /// Digest of all its rows, 32 hexadecimal digits.
    pub digest: String,
}

/// A piece of the log that was read whole and found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What it says of itself.
    pub head: SegmentHead,
    /// Its entries.
    pub entries: Vec<Bytes>,
}

/// Makes an object of entries, which follow one another from `head.first` to `head.last`. `head.bytes` is set here.
pub(crate) fn seal(
    mut head: SegmentHead,
    entries: &[Bytes],
    recipients: &Recipients,
    macs: &MacKeys,
) -> std::io::Result<(SegmentName, Vec<u8>)> {
    let count = head.last.index.checked_sub(head.first).map(|count| count + 1);
    assert_eq!(count, Some(entries.len() as u64), "entries {} to {:?}", head.first, head.last);
    head.bytes = entries.iter().map(|entry| entry.len() as u64 + 4).sum();
    let json = serde_json::to_vec(&head).map_err(std::io::Error::other)?;
    let mut bytes = BytesMut::with_capacity(FIXED_BYTES + json.len());
    bytes.put_slice(&MAGIC);
    bytes.put_u32_le(FORMATS.writes());
    bytes.put_u32_le(length(json.len())?);
    bytes.put_slice(&json);
    let mut packer = DeflateEncoder::new(bytes.to_vec(), Compression::fast());
    for entry in entries {
        packer.write_all(&length(entry.len())?.to_le_bytes())?;
        packer.write_all(entry)?;
    }
    let mut bytes = packer.finish()?;
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    let mut sealing = recipients.seal(Vec::with_capacity(bytes.len() + 512))?;
    sealing.write_all(&bytes)?;
    let object = macs.attach(sealing.finish()?);
    let name = SegmentName {
        first: head.first,
        last: head.last.index,
        revision: head.after.as_ref().map(|after| after.revision),
        wall_min: head.wall_min,
        wall: head.wall,
        checksum: checksum_of(&object),
        form: if recipients.is_none() { Form::Plain } else { Form::Encrypted },
    };
    Ok((name, object))
}

fn length(bytes: usize) -> std::io::Result<u32> {
    u32::try_from(bytes).map_err(std::io::Error::other)
}

/// The checksum in the name of an object with these bytes.
pub(crate) fn checksum_of(object: &[u8]) -> u64 {
    let digest = Sha256::digest(object);
    u64::from_be_bytes(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
}

/// Checks the bytes of an object against its name: no key is needed.
pub(crate) fn check(name: &SegmentName, object: &[u8]) -> Result<(), ArchiveError> {
    match checksum_of(object) == name.checksum {
        true => Ok(()),
        false => {
            Err(ArchiveError::damaged(name, format!("its {} bytes are not those that were written", object.len())))
        }
    }
}

/// Reads an object, and believes nothing of it before it was found whole.
pub(crate) fn open(name: &SegmentName, object: &[u8], keys: &Keys, macs: &MacKeys) -> Result<Segment, ArchiveError> {
    open_of(FORMATS, name, object, (keys, macs))
}

fn open_of(
    known: Versions,
    name: &SegmentName,
    object: &[u8],
    (keys, macs): (&Keys, &MacKeys),
) -> Result<Segment, ArchiveError> {
    check(name, object)?;
    let object_name = name.to_string();
    let sealed = macs.detach(&object_name, object)?;
    let mut bytes = Vec::new();
    let mut source = keys.open(&object_name, name.form == Form::Encrypted, sealed)?;
    source.read_to_end(&mut bytes).map_err(|error| of_io(&object_name, &error))?;
    let damaged = |what: &str| ArchiveError::damaged(name, what);
    let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(|| damaged("it is cut short"))?;
    if Sha256::digest(body)[..] != checksum[..] {
        return Err(damaged("wrong checksum"));
    }
    let (fixed, rest) = body.split_first_chunk::<FIXED_BYTES>().ok_or_else(|| damaged("it is cut short"))?;
    if fixed[..8] != MAGIC {
        return Err(damaged("it does not begin as a piece of a log"));
    }
    let number = |at: usize| u32::from_le_bytes(*fixed[at..].first_chunk().expect("the head has 16 bytes"));
    ArchiveError::check_format(&object_name, number(8), known)?;
    let (json, packed) = rest.split_at_checked(number(12) as usize).ok_or_else(|| damaged("its head is cut short"))?;
    let head: SegmentHead =
        serde_json::from_slice(json).map_err(|error| damaged(&format!("its head cannot be read: {error}")))?;
    let is_its_own = (head.first, head.last.index) == (name.first, name.last)
        && (head.wall_min, head.wall) == (name.wall_min, name.wall)
        && head.after.as_ref().map(|after| after.revision) == name.revision
        && head.before.map_or(0, |before| before.index + 1) == head.first;
    if !is_its_own {
        return Err(damaged("its name is not that of what is in it"));
    }
    let entries = unpack(&head, packed).map_err(damaged)?;
    Ok(Segment { head, entries })
}

fn unpack(head: &SegmentHead, packed: &[u8]) -> Result<Vec<Bytes>, &'static str> {
    if head.bytes > SEGMENT_BYTES_MAX {
        return Err("it says that it is larger than any");
    }
    let mut bytes = Vec::with_capacity(head.bytes as usize);
    DeflateDecoder::new(packed)
        .take(head.bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| "its entries cannot be inflated")?;
    let mut bytes = Bytes::from(bytes);
    if bytes.len() as u64 != head.bytes {
        return Err("its entries are not as long as it says");
    }
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let length = bytes.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        let length = length.filter(|length| bytes.len() - 4 >= *length).ok_or("an entry that does not end in it")?;
        let mut entry = bytes.split_to(4 + length);
        entries.push(entry.split_off(4));
    }
    match entries.len() as u64 == head.last.index - head.first + 1 {
        true => Ok(entries),
        false => Err("it holds more or fewer entries than it says"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn head(first: u64, last: u64) -> SegmentHead {
        let position = |index| Position { term: 2, node: 1, index };
        SegmentHead {
            cluster: format!("{:032x}", 7),
            before: first.checked_sub(1).map(position),
            first,
            last: position(last),
            wall_min: 1_000 + first,
            wall: 1_000 + last,
            entry_format: 1,
            node: 1,
            after: None,
            bytes: 0,
        }
    }

    proptest! {
        #[test]
        fn entries_come_back_as_they_were(entries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..40)) {
            let entries: Vec<Bytes> = entries.into_iter().map(Bytes::from).collect();
            let (head, macs) = (head(5, 4 + entries.len() as u64), MacKeys::default());
            let (name, object) = seal(head, &entries, &Recipients::default(), &macs).unwrap();
            prop_assert_eq!(open(&name, &object, &Keys::default(), &macs).unwrap().entries, entries);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_missing_byte_is_refused() {
        let entries: Vec<Bytes> = (0..4u8).map(|n| vec![n; 9].into()).collect();
        let (name, object) = seal(head(0, 3), &entries, &Recipients::default(), &MacKeys::default()).unwrap();
        assert_eq!(open(&name, &object, &Keys::default(), &MacKeys::default()).unwrap().entries, entries);
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 4;
            for wrong in [&damaged[..], &object[..at]] {
                let renamed = SegmentName { checksum: checksum_of(wrong), ..name.clone() };
                // Found by the name, and without it.
                assert!(
                    matches!(
                        open(&name, wrong, &Keys::default(), &MacKeys::default()),
                        Err(ArchiveError::Damaged { .. })
                    ),
                    "{at}"
                );
                assert!(open(&renamed, wrong, &Keys::default(), &MacKeys::default()).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_build_reads_the_formats_before_its_own_and_refuses_those_behind() {
        let next = Versions::new(1, 2, 2);
        let entries = [Bytes::from_static(b"a")];
        let (name, object) = seal(head(8, 8), &entries, &Recipients::default(), &MacKeys::default()).unwrap();
        assert_eq!(open_of(next, &name, &object, (&Keys::default(), &MacKeys::default())).unwrap().entries, entries);
        // The same in the next format, which has another number at its begin.
        let mut body = object[..object.len() - CHECKSUM_BYTES].to_vec();
        body[8] = 2;
        let object = [&body[..], &Sha256::digest(&body)[..]].concat();
        let name = SegmentName { checksum: checksum_of(&object), ..name };
        assert_eq!(open_of(next, &name, &object, (&Keys::default(), &MacKeys::default())).unwrap().entries, entries);
        let refused = open(&name, &object, &Keys::default(), &MacKeys::default()).unwrap_err();
        assert!(matches!(refused, ArchiveError::UnknownFormat { found: 2, .. }), "{refused}");
        assert!(refused.to_string().contains("has format 2, and this build reads version 1"), "{refused}");
    }

    #[test]
    fn what_stands_under_the_name_of_another_is_refused() {
        let entries = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let (name, object) = seal(head(8, 9), &entries, &Recipients::default(), &MacKeys::default()).unwrap();
        for wrong in [
            SegmentName { first: 7, ..name.clone() },
            SegmentName { wall: 1, ..name.clone() },
            SegmentName { wall_min: 1, ..name.clone() },
            SegmentName { revision: Some(1), ..name },
        ] {
            let refused = open(&wrong, &object, &Keys::default(), &MacKeys::default()).unwrap_err().to_string();
            assert!(refused.contains("its name is not that"), "{refused}");
        }
    }
}
