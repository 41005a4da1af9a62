//! Writing past the page cache.
//!
//! Owns the alignment that this takes, and what is done where a file system does not offer it. Never reads: what is read of
//! the log is read again soon, or by somebody else, and may well be cached.
//!
//! A log is written once and hardly ever read, so a page cached for it is a page taken from the state, and the copy into it
//! cost a tenth of all CPU under load.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::group::BLOCK;

/// Opens for writing in whole, aligned blocks. Goes through the page cache where it must (tmpfs, some network file systems).
pub fn open(path: &Path) -> io::Result<File> {
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path);
    match direct {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => OpenOptions::new().write(true).open(path),
        opened => opened,
    }
}

/// Bytes that begin at a multiple of [`BLOCK`] in memory and are whole blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    start: usize,
}

impl Blocks {
    /// So many zeros, rounded up to whole blocks.
    pub fn zeros(length: usize) -> Self {
        let mut blocks = Self::default();
        blocks.resize(length);
        blocks
    }

    /// A copy, zeros behind it up to a whole block.
    pub fn copy_of(content: &[u8]) -> Self {
        let mut blocks = Self::default();
        blocks.fill(content);
        blocks
    }

    /// Becomes a copy of `content`, zeros behind it up to a whole block. Keeps its memory.
    pub fn fill(&mut self, content: &[u8]) {
        self.resize(content.len());
        let (copy, rest) = self.bytes[self.start..].split_at_mut(content.len());
        copy.copy_from_slice(content);
        rest.fill(0);
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// What memory they keep.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    fn resize(&mut self, length: usize) {
        let length = length.next_multiple_of(BLOCK);
        self.bytes.resize(length + BLOCK, 0);
        self.start = self.bytes.as_ptr().align_offset(BLOCK);
        assert!(self.start < BLOCK, "no aligned byte in the first {BLOCK}, but at {}", self.start);
        self.bytes.truncate(self.start + length);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn blocks_are_aligned_copies_whatever_was_in_them_before() {
        let mut blocks = Blocks::zeros(10);
        assert_eq!(blocks.as_slice(), [0; BLOCK]);
        for length in [1, BLOCK, 3 * BLOCK + 1, 7, 0, 40 * BLOCK - 1] {
            let content: Vec<u8> = (0..length).map(|n| n as u8 | 1).collect();
            blocks.fill(&content);
            let filled = blocks.as_slice();
            assert_eq!(filled.as_ptr() as usize % BLOCK, 0);
            assert_eq!((filled.len(), &filled[..length]), (length.next_multiple_of(BLOCK), &content[..]));
            assert!(filled[length..].iter().all(|byte| *byte == 0), "{length} bytes");
        }
    }

    #[test]
    fn what_is_written_past_the_cache_is_what_is_read_through_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 4 * BLOCK]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[2 * BLOCK], 1, "now it is cached");
        open(&path).unwrap().write_all_at(Blocks::copy_of(&[2; BLOCK]).as_slice(), 2 * BLOCK as u64).unwrap();
        let read = std::fs::read(&path).unwrap();
        assert_eq!((read[2 * BLOCK - 1], read[2 * BLOCK], read[3 * BLOCK]), (1, 2, 1));
    }
}
