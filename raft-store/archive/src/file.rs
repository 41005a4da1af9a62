//! Backups as files, encrypted and authenticated as the objects of an archive are.
//!
//! Owns how a file is told to be encrypted, and what its MAC is of: since it may be long and is read in parts, of the SHA-256 of all that
//! stands before. A backup is a stream of bytes here: nothing looks at what it consists of.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::crypt::Sealing;
use crate::mac::TRAILER_BYTES;
use crate::{ArchiveError, Keys, MacKeys, Recipients};

/// The first bytes of all that age encrypts.
const AGE: [u8; 22] = *b"age-encryption.org/v1\n";
/// Read at a time.
const READ_BYTES: usize = 1 << 20;

/// The size and the hash of a file, without its MAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    /// Bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

/// Writes what [`open_file`] reads.
pub struct FileSealing<W: Write> {
    sealing: Sealing<Hashing<W>>,
    macs: MacKeys,
}

impl<W: Write> FileSealing<W> {
    /// Into this sink, for these, and with a MAC by these keys.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn begin(sink: W, recipients: &Recipients, macs: &MacKeys) -> io::Result<Self> {
        let hashing = Hashing { sink, hasher: Sha256::new(), bytes: 0 };
        Ok(Self { sealing: recipients.seal(hashing)?, macs: macs.clone() })
    }

    /// Writes the end. Without it, it is taken for cut short.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn finish(self) -> io::Result<WrittenFile> {
        let Hashing { mut sink, hasher, bytes } = self.sealing.finish()?;
        let written = WrittenFile { bytes, sha256: hasher.finalize().into() };
        sink.write_all(&self.macs.trailer_of_file(&written.sha256))?;
        sink.flush()?;
        Ok(written)
    }
}

impl<W: Write> Write for FileSealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sealing.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sealing.flush()
    }
}

/// Takes in all that goes through it.
struct Hashing<W> {
    sink: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// The bytes and the SHA-256 of so much of a source, or of all of it where that is less.
///
/// # Errors
/// It cannot be read.
pub fn read_again(source: impl Read, bytes: u64) -> io::Result<WrittenFile> {
    let mut hashing = Hashing { sink: io::sink(), hasher: Sha256::new(), bytes: 0 };
    io::copy(&mut source.take(bytes), &mut hashing)?;
    Ok(WrittenFile { bytes: hashing.bytes, sha256: hashing.hasher.finalize().into() })
}

/// Tells whether a file is encrypted or has a MAC. Something that is no file, like a pipe, has neither.
///
/// # Errors
/// It cannot be read.
pub fn is_sealed(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    Ok(begins_as_age(&mut file)? || trailer(&mut file)?.1.is_some())
}

/// Opens a file to be read. Compares its MAC first, where there are keys for that. The bytes that are read must then be the same again: the last
/// of them are not given otherwise. Nothing else was looked at yet.
///
/// # Errors
/// It cannot be read or opened with these keys, or has not the MAC that it should have.
pub fn open_file(path: &Path, keys: &Keys, macs: &MacKeys) -> Result<Box<dyn Read + Send>, ArchiveError> {
    let name = path.display().to_string();
    let failed = |source| ArchiveError::File { path: name.clone(), source };
    let mut file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        // A pipe, which is read once: it has what somebody opened before, and no MAC that could be compared first.
        if !macs.is_none() {
            let what = "is no file that can be read twice, so its MAC cannot be compared first: name the file itself, or leave out --mac-key";
            return Err(ArchiveError::Refused(format!("{name} {what}")));
        }
        return Ok(Box::new(BufReader::with_capacity(READ_BYTES, file)));
    }
    let (bytes, mac) = trailer(&mut file).map_err(failed)?;
    let mut compared = None;
    if !macs.is_none() {
        file.rewind().map_err(failed)?;
        let read = read_again(BufReader::with_capacity(READ_BYTES, &file), bytes).map_err(failed)?;
        macs.check_file(&name, &read.sha256, mac.as_ref())?;
        compared = Some(read);
    }
    let is_encrypted = begins_as_age(&mut file).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let source = BufReader::with_capacity(READ_BYTES, file.take(bytes));
    keys.open(&name, is_encrypted, Again { source, compared, hasher: Sha256::new(), bytes: 0 })
}

/// A source that was read before. Somebody who may write to a file may change it between the two readings, so the bytes at its end are given
/// only where all of them are those that were compared.
struct Again<R> {
    source: R,
    /// The size and the hash of what was read before, where that matters.
    compared: Option<WrittenFile>,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Again<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        let Some(compared) = self.compared else { return Ok(read) };
        self.hasher.update(&into[..read]);
        self.bytes += read as u64;
        let is_at_end = self.bytes == compared.bytes || (read == 0 && !into.is_empty());
        if is_at_end && self.hasher.clone().finalize()[..] != compared.sha256 {
            return Err(io::Error::other("it was changed after its MAC was compared"));
        }
        Ok(read)
    }
}

/// Leaves the file at any place.
fn begins_as_age(file: &mut File) -> io::Result<bool> {
    file.rewind()?;
    let mut begin = Vec::new();
    file.take(AGE.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == AGE)
}

/// How many bytes stand before the MAC of a file, and that, if it has one. Leaves the file at any place.
fn trailer(file: &mut File) -> io::Result<(u64, Option<[u8; 32]>)> {
    let length = file.metadata()?.len();
    let Some(before) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok((length, None)) };
    let mut bytes = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut bytes)?;
    Ok(match MacKeys::mac_in(&bytes) {
        Some(mac) => (before, Some(mac)),
        None => (length, None),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use age::secrecy::ExposeSecret;

    use super::*;

    fn read(path: &Path, keys: &Keys, macs: &MacKeys) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let mut source = open_file(path, keys, macs)?;
        source.read_to_end(&mut bytes).map_err(|source| ArchiveError::File { path: "it".into(), source })?;
        Ok(bytes)
    }

    #[test]
    fn a_file_gives_what_was_written_to_whom_it_may_and_only_as_it_was_written() {
        let identity = age::x25519::Identity::generate();
        let key = Keys::parse(identity.to_string().expose_secret()).unwrap();
        let mac = MacKeys::parse(&"a".repeat(32)).unwrap();
        let (none, no_mac) = (Keys::default(), MacKeys::default());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.backup");
        let content = vec![7; 100_000];
        for (keys, macs) in [(&none, &no_mac), (&none, &mac), (&key, &no_mac), (&key, &mac)] {
            let mut sealing = FileSealing::begin(File::create(&path).unwrap(), &keys.recipients(), macs).unwrap();
            sealing.write_all(&content).unwrap();
            let written = sealing.finish().unwrap();
            assert_eq!(read_again(File::open(&path).unwrap(), written.bytes).unwrap(), written);
            assert_eq!(is_sealed(&path).unwrap(), !keys.is_none() || !macs.is_none());
            assert_eq!(read(&path, keys, macs).unwrap(), content);
            // Nobody needs the key of the MAC to read it, and who has it takes nothing else.
            assert_eq!(read(&path, keys, &no_mac).unwrap(), content);
            let other = MacKeys::parse(&"b".repeat(32)).unwrap();
            let refused = read(&path, keys, &other).unwrap_err();
            match macs.is_none() {
                true => assert!(matches!(refused, ArchiveError::Locked { .. }), "{refused}"),
                false => assert!(matches!(refused, ArchiveError::Forged { .. }), "{refused}"),
            }
            if !keys.is_none() {
                assert!(matches!(read(&path, &none, macs), Err(ArchiveError::Locked { .. })));
            }
            let whole = fs::read(&path).unwrap();
            for at in [0, 50, whole.len() - 1] {
                let mut wrong = whole.clone();
                wrong[at] ^= 1;
                fs::write(&path, &wrong).unwrap();
                assert!(read(&path, &key, &mac).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_file_that_is_changed_after_its_mac_was_compared_is_not_given_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.backup");
        let mac = MacKeys::parse(&"a".repeat(32)).unwrap();
        let content = vec![7; 3 * READ_BYTES];
        let mut sealing = FileSealing::begin(File::create(&path).unwrap(), &Recipients::default(), &mac).unwrap();
        sealing.write_all(&content).unwrap();
        sealing.finish().unwrap();
        let mut source = open_file(&path, &Keys::default(), &mac).unwrap();
        // In its place, so that it is the file that is open.
        let mut other = File::options().write(true).open(&path).unwrap();
        other.seek(SeekFrom::Start(READ_BYTES as u64)).unwrap();
        other.write_all(b"something else").unwrap();
        let mut given = Vec::new();
        let refused = source.read_to_end(&mut given).unwrap_err().to_string();
        assert!(refused.contains("changed after its MAC was compared"), "{refused}");
        assert!(given.len() < content.len());
    }

    #[test]
    fn something_that_is_read_once_is_refused_where_a_mac_is_to_be_compared() {
        let (none, mac) = (Keys::default(), MacKeys::parse(&"a".repeat(32)).unwrap());
        let refused = open_file(Path::new("/dev/null"), &none, &mac).err().expect("it is no file").to_string();
        assert!(refused.starts_with("/dev/null is no file that can be read twice"), "{refused}");
        assert_eq!(read(Path::new("/dev/null"), &none, &MacKeys::default()).unwrap(), b"");
    }

    #[test]
    fn a_short_file_is_no_sealed_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("short");
        for content in [&b""[..], b"age-encryption.org"] {
            fs::write(&path, content).unwrap();
            assert!(!is_sealed(&path).unwrap());
            assert_eq!(read(&path, &Keys::default(), &MacKeys::default()).unwrap(), content);
        }
        assert!(is_sealed(&dir.path().join("missing")).is_err());
    }
}
