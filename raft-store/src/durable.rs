//! Small files that must survive a power loss whole: the identity marker, the high-water mark and their like.
//!
//! Owns the two ways that make them so. What rarely changes is replaced: temporary file, fsync, rename, fsync of the
//! directory. What changes often is a [`SlotFile`]: two slots written in turn, in place. Never used on the path of a
//! request, and never for data that grows: the content is written anew each time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};
use quorate_machine::codec::{self, CodecError, Written};

/// Bytes of the checksum that leads a sealed file.
const CHECKSUM_BYTES: usize = 4;

/// Why a sealed file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not those that were written.
    #[error("checksum {found:08x} where {expected:08x} was written")]
    Checksum {
        /// Computed from the content.
        found: u32,
        /// Stored in the file.
        expected: u32,
    },
    /// Not even a checksum fits.
    #[error("only {0} bytes long")]
    Short(usize),
    /// A file of slots always has the same length.
    #[error("{0} bytes long, it was made with {SLOT_FILE_BYTES}")]
    Length(usize),
    /// A crash can spoil one slot, the one being written.
    #[error("neither of its slots can be read: {0}; {1}")]
    Slots(Box<SealError>, Box<SealError>),
    /// The checksum is right, the content is not for this build.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Makes `dir`, private to its owner, and makes its name durable. Fine if it is there already.
pub fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    sync_dir(parent(dir)?)
}

/// Makes the names in `dir` durable: files made, renamed or removed there.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes a file, if it is there. Durably gone when this returns.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => sync_dir(parent(path)?),
    }
}

/// Removes a directory with all in it, if it is there.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces `path` by a file of exactly these bytes, durable when it returns. A crash leaves the old content or the
/// new, never a mix. `failpoint` names the point between the fsync of the new content and the rename.
pub fn write_whole(path: &Path, content: &[u8], failpoint: &'static str) -> io::Result<()> {
    let temporary = temporary_of(path);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    pause(failpoint);
    fs::rename(&temporary, path)?;
    sync_dir(parent(path)?)
}

/// [`write_whole`] of a record with its checksum in front.
pub fn write_sealed<T: Encode>(path: &Path, record: &T, failpoint: &'static str) -> io::Result<()> {
    let body = codec::encode(record);
    let mut content = Vec::with_capacity(CHECKSUM_BYTES + body.len());
    content.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    content.extend_from_slice(&body);
    write_whole(path, &content, failpoint)
}

/// Reverses [`write_sealed`]; `None` where there is no such file.
pub fn read_sealed<T: Decode<Written>>(path: &Path) -> Result<Option<T>, SealError> {
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some((checksum, body)) = content.split_first_chunk::<CHECKSUM_BYTES>() else {
        return Err(SealError::Short(content.len()));
    };
    let (found, expected) = (crc32fast::hash(body), u32::from_le_bytes(*checksum));
    if found != expected {
        return Err(SealError::Checksum { found, expected });
    }
    Ok(Some(codec::decode(body)?))
}

/// Bytes of a slot: a block of its own, so that a torn write of one leaves the other.
const SLOT_BYTES: usize = 4096;

const SLOT_FILE_BYTES: usize = 2 * SLOT_BYTES;

/// Checksum of the rest, length of the record, number of the write.
const SLOT_HEADER_BYTES: usize = 4 + 4 + 8;

/// A file of two slots that are written in turn, each with one write in place and one sync.
///
/// Invariant: the slot that is being written is never the newer one. So at any crash the file holds the last record
/// whose write returned, or the one that was on its way.
#[derive(Debug)]
pub struct SlotFile<T> {
    file: File,
    /// Of the last write.
    sequence: u64,
    record: PhantomData<fn(&T)>,
}

impl<T: Encode + Decode<Written>> SlotFile<T> {
    /// Makes the file, the record in both slots, or replaces what is there. See [`write_whole`].
    pub fn create(path: &Path, record: &T, failpoint: &'static str) -> io::Result<Self> {
        write_whole(path, &[slot(record, 0), slot(record, 1)].concat(), failpoint)?;
        Ok(Self::on(OpenOptions::new().write(true).open(path)?, 1))
    }

    /// Reads the newer record; `None` where there is no such file.
    pub fn open(path: &Path) -> Result<Option<(Self, T)>, SealError> {
        let content = match fs::read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if content.len() != SLOT_FILE_BYTES {
            return Err(SealError::Length(content.len()));
        }
        let (first, second) = content.split_at(SLOT_BYTES);
        let (sequence, record) = match (read_slot(first), read_slot(second)) {
            (Ok(first), Ok(second)) => {
                if first.0 > second.0 {
                    first
                } else {
                    second
                }
            }
            (Ok(whole), Err(_)) | (Err(_), Ok(whole)) => whole,
            (Err(first), Err(second)) => return Err(SealError::Slots(Box::new(first), Box::new(second))),
        };
        Ok(Some((Self::on(OpenOptions::new().write(true).open(path)?, sequence), record)))
    }

    fn on(file: File, sequence: u64) -> Self {
        Self { file, sequence, record: PhantomData }
    }

    /// Replaces the older record, durably.
    pub fn write(&mut self, record: &T, failpoint: &'static str) -> io::Result<()> {
        let sequence = self.sequence + 1;
        self.file.write_all_at(&slot(record, sequence), sequence % 2 * SLOT_BYTES as u64)?;
        pause(failpoint);
        self.file.sync_data()?;
        self.sequence = sequence;
        Ok(())
    }
}

fn slot<T: Encode>(record: &T, sequence: u64) -> Vec<u8> {
    let body = codec::encode(record);
    assert!(SLOT_HEADER_BYTES + body.len() <= SLOT_BYTES, "a record of {} bytes in a slot", body.len());
    let mut slot = vec![0; CHECKSUM_BYTES];
    slot.extend_from_slice(&(body.len() as u32).to_le_bytes());
    slot.extend_from_slice(&sequence.to_le_bytes());
    slot.extend_from_slice(&body);
    slot.resize(SLOT_BYTES, 0);
    let checksum = crc32fast::hash(&slot[CHECKSUM_BYTES..]);
    slot[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    slot
}

/// The number and the record of a slot.
fn read_slot<T: Decode<Written>>(slot: &[u8]) -> Result<(u64, T), SealError> {
    let word = |at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().expect("four bytes are four bytes"));
    let (found, expected) = (crc32fast::hash(&slot[CHECKSUM_BYTES..]), word(0));
    if found != expected {
        return Err(SealError::Checksum { found, expected });
    }
    let sequence = u64::from(word(8)) | u64::from(word(12)) << 32;
    let body = slot[SLOT_HEADER_BYTES..].get(..word(4) as usize).ok_or(SealError::Short(slot.len()))?;
    Ok((sequence, codec::decode(body)?))
}

fn pause(failpoint: &'static str) {
    failpoint!(failpoint);
}

fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

fn parent(path: &Path) -> io::Result<&Path> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(parent) => Ok(parent),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} has no parent directory", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_record_comes_back_and_a_changed_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert!(read_sealed::<u64>(&path).unwrap().is_none());
        write_sealed(&path, &7_000_000_u64, "none").unwrap();
        write_sealed(&path, &8_000_000_u64, "none").unwrap();
        assert_eq!(read_sealed::<u64>(&path).unwrap(), Some(8_000_000));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays behind");

        let written = fs::read(&path).unwrap();
        for at in 0..written.len() {
            let mut damaged = written.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert!(read_sealed::<u64>(&path).is_err(), "a flipped bit in byte {at} went unnoticed");
            fs::write(&path, &written[..at]).unwrap();
            assert!(read_sealed::<u64>(&path).is_err(), "a file cut to {at} bytes went unnoticed");
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_other_and_two_are_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slots");
        assert!(SlotFile::<u64>::open(&path).unwrap().is_none());
        let mut slots = SlotFile::create(&path, &10_u64, "none").unwrap();
        let newest = |path: &Path| SlotFile::<u64>::open(path).unwrap().unwrap().1;
        for value in 11..15_u64 {
            slots.write(&value, "none").unwrap();
            let written = fs::read(&path).unwrap();
            assert_eq!((newest(&path), written.len()), (value, SLOT_FILE_BYTES));
            let newer = (value as usize - 9) % 2 * SLOT_BYTES;
            let mut torn = written.clone();
            torn[newer + 20] ^= 1;
            fs::write(&path, &torn).unwrap();
            assert_eq!(newest(&path), value - 1);
            torn[SLOT_BYTES - newer + 4000] ^= 1;
            fs::write(&path, &torn).unwrap();
            assert!(matches!(SlotFile::<u64>::open(&path), Err(SealError::Slots(..))));
            fs::write(&path, &written[1..]).unwrap();
            assert!(matches!(SlotFile::<u64>::open(&path), Err(SealError::Length(_))));
            fs::write(&path, &written).unwrap();
            let (opened, _) = SlotFile::<u64>::open(&path).unwrap().unwrap();
            slots = opened;
        }
    }
}
