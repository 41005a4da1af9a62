//! One file of the log: zeros with a header in front, made before it is needed.
//!
//! Owns the header and the making of a segment. Never knows what is in a group.
//!
//! A segment is made under a temporary name, filled with zeros, synced, renamed, and its directory synced. So a file
//! with a segment's name is whole, its length never changes, and a sync of a group written over the zeros has no
//! metadata to write: no journal stands between the log and the disk. What follows the last group is known to be zeros
//! because no file is ever used twice.
//!
//! The header takes a block of its own, all numbers little endian: [`MAGIC`], checksum of what follows up to offset 64,
//! format, number, capacity, incarnation, node id. The first three keep their places in every format.

#![expect(clippy::disallowed_methods, reason = "measures how long a write took; nothing of it is replicated")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quorate_machine::versions::Versions;

use super::direct::{self, Blocks};
use super::group::BLOCK;
use crate::durable;
use crate::identity::Identity;

mod v1;
#[cfg(test)]
mod v2;

/// Versions of segments and groups. (2 is known to tests alone.)
pub const SEGMENTS: Versions = Versions::new(1, if cfg!(test) { 2 } else { 1 }, 1);

/// Where the first group starts.
pub const FIRST_GROUP: u64 = BLOCK as u64;

/// Leads every segment.
const MAGIC: [u8; 8] = *b"\x89QRSEGMT";

const HEADER_BYTES: usize = 64;

/// Name of a segment that is not whole yet.
const UNFINISHED: &str = "segment.unfinished";

/// What is written at once while a segment is made: so much stands before a group that wants to be written at the same
/// time.
const FILL_BYTES: usize = 128 * 1024;

/// Why a file is not a segment of this log.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not what was made.
    #[error("{0}")]
    Damaged(String),
    /// Made by a build that knows another format.
    #[error("format {0}")]
    UnknownFormat(u32),
}

/// An open segment. Removing the file does not disturb who still reads it.
#[derive(Debug)]
pub struct Segment {
    number: u64,
    capacity: u64,
    path: PathBuf,
    /// For reading.
    file: File,
    /// For writing.
    direct: File,
}

/// The file name of a segment.
pub fn name(number: u64) -> String {
    format!("{number:020}.seg")
}

/// Reverses [`name`].
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// Removes what a crash left of a segment that was being made.
pub fn remove_unfinished(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(UNFINISHED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Segment {
    /// Makes a segment of this format and so many bytes, whole blocks, durable when it returns. Replaces an unused one of the same
    /// number. `pause` is called after each piece written, with the time it took.
    pub fn make(
        dir: &Path,
        number: u64,
        (format, capacity): (u32, u64),
        identity: &Identity,
        mut pause: impl FnMut(Duration),
    ) -> io::Result<Segment> {
        assert_eq!(capacity % BLOCK as u64, 0, "a segment of {capacity} bytes");
        let (unfinished, path) = (dir.join(UNFINISHED), dir.join(name(number)));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        let direct = direct::open(&unfinished)?;
        let zeros = Blocks::zeros(FILL_BYTES);
        let mut offset = 0;
        while offset < capacity {
            let bytes = (capacity - offset).min(FILL_BYTES as u64);
            let started = Instant::now();
            direct.write_all_at(&zeros.as_slice()[..bytes as usize], offset)?;
            offset += bytes;
            pause(started.elapsed());
        }
        direct.write_all_at(Blocks::copy_of(&header(format, number, capacity, identity)).as_slice(), 0)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        durable::sync_dir(dir)?;
        Ok(Segment { number, capacity, path, file, direct })
    }

    /// Opens the segment of this number and checks its header and length.
    pub fn open(dir: &Path, number: u64, identity: &Identity) -> Result<Segment, SegmentError> {
        let path = dir.join(name(number));
        let (file, direct) = (OpenOptions::new().read(true).write(true).open(&path)?, direct::open(&path)?);
        let length = file.metadata()?.len();
        if length < FIRST_GROUP {
            return Err(SegmentError::Damaged(format!("cut to {length} bytes")));
        }
        let mut found = [0; HEADER_BYTES];
        file.read_exact_at(&mut found, 0)?;
        check_header(&found, number, length, identity)?;
        Ok(Segment { number, capacity: length, path, file, direct })
    }

    /// Position among all segments.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the file, header included.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads exactly these bytes.
    pub fn read(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, offset)?;
        Ok(read)
    }

    /// Writes over what is there, from the start of a block.
    pub fn write(&self, offset: u64, blocks: &Blocks) -> io::Result<()> {
        let end = offset + blocks.as_slice().len() as u64;
        assert!(end <= self.capacity, "a write up to {end} in a segment of {} bytes", self.capacity);
        assert_eq!(offset % BLOCK as u64, 0, "a write within a block, at {offset}");
        self.direct.write_all_at(blocks.as_slice(), offset)
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> io::Result<()> {
        self.direct.sync_data()
    }

    /// Removes the file, durably.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)?;
        durable::sync_dir(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// The header of a segment. Of every version it begins with the magic, a checksum of what follows that, and the version.
fn header(format: u32, number: u64, capacity: u64, identity: &Identity) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[12..16].copy_from_slice(&format.to_le_bytes());
    let fields = &mut header[16..];
    match format {
        1 => v1::put(fields, number, capacity, identity),
        #[cfg(test)]
        2 => v2::put(fields, number, capacity, identity),
        other => panic!("no build makes segments of format {other}"),
    }
    let checksum = crc32fast::hash(&header[12..]);
    header[8..12].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn check_header(found: &[u8; HEADER_BYTES], number: u64, length: u64, identity: &Identity) -> Result<(), SegmentError> {
    let whole = found[..8] == MAGIC && found[8..12] == crc32fast::hash(&found[12..]).to_le_bytes();
    if !whole {
        return Err(SegmentError::Damaged("its header is not that of a segment".to_owned()));
    }
    let format = u32::from_le_bytes(found[12..16].try_into().expect("four bytes are four bytes"));
    if !SEGMENTS.reads(format) {
        return Err(SegmentError::UnknownFormat(format));
    }
    let expected = header(format, number, length, identity);
    if *found == expected {
        return Ok(());
    }
    Err(SegmentError::Damaged(match format {
        1 => v1::difference(&found[16..], &expected[16..]),
        _ => "its header is that of another segment".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(node_id: u64) -> Identity {
        Identity { cluster_id: None, node_id, incarnation: 77 }
    }

    #[test]
    fn a_segment_opens_only_as_it_was_made() {
        let dir = tempfile::tempdir().unwrap();
        let made = Segment::make(dir.path(), 3, (1, 5 << 20), &identity(1), |_| {}).unwrap();
        assert_eq!(made.read(FIRST_GROUP, 100).unwrap(), vec![0; 100]);
        let opened = Segment::open(dir.path(), 3, &identity(1)).unwrap();
        assert_eq!((opened.number(), opened.capacity()), (3, 5 << 20));
        let refusal = |what: &str, number: u64, node: u64| {
            let error = Segment::open(dir.path(), number, &identity(node)).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        refusal("another data directory", 3, 2);
        fs::copy(made.path(), dir.path().join(name(4))).unwrap();
        refusal("segment 3 under another name", 4, 1);
        let bytes = fs::read(made.path()).unwrap();
        for at in 0..HEADER_BYTES {
            let mut damaged = bytes[..2 * BLOCK].to_vec();
            damaged[at] ^= 1;
            fs::write(made.path(), damaged).unwrap();
            refusal("header", 3, 1);
        }
        fs::write(made.path(), &bytes[..bytes.len() - 1]).unwrap();
        refusal("it was made with 5242880", 3, 1);
        fs::write(made.path(), &bytes[..BLOCK - 1]).unwrap();
        refusal("cut to 4095", 3, 1);
        let mut newer = bytes;
        newer[12] = 9;
        let checksum = crc32fast::hash(&newer[12..HEADER_BYTES]);
        newer[8..12].copy_from_slice(&checksum.to_le_bytes());
        fs::write(made.path(), newer).unwrap();
        assert!(matches!(Segment::open(dir.path(), 3, &identity(1)), Err(SegmentError::UnknownFormat(9))));
    }

    #[test]
    fn names_come_back_as_numbers() {
        assert_eq!(number_of(&name(u64::MAX)), Some(u64::MAX));
        assert_eq!([number_of("1.seg"), number_of("LOCK"), number_of("00000000000000000001.sst")], [None; 3]);
    }
}
