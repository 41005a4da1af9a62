//! Small files that must survive a power loss whole: the identity marker, the high-water mark and their like.
//!
//! Owns the one order that makes them so: temporary file, fsync, rename, fsync of the directory. Never used on a
//! hot path, and never for data that grows: the content is written anew each time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use crate::codec::{self, CodecError};

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
pub fn read_sealed<T: Decode<()>>(path: &Path) -> Result<Option<T>, SealError> {
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

#[cfg_attr(not(feature = "failpoints"), expect(unused_variables, reason = "the macro is empty without failpoints"))]
fn pause(failpoint: &'static str) {
    fail::fail_point!(failpoint);
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
}
