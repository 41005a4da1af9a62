//! Reading a backup, block by block, and refusing what is not whole.
//!
//! Owns the order of the checks: nothing of a block is given before its checksum was compared, and the end is only reached
//! by a backup that is whole. Holds one block and no more.

use std::io::{self, Read};

use quorate_machine::keyspace::digest::RowHasher;
use quorate_machine::trailer;
use xxhash_rust::xxh3::Xxh3;

use super::frame::{self, BLOCK_HEAD_BYTES, END_BYTES, END_MAGIC, FIXED_HEAD_BYTES, damaged};
use super::{BackupEnd, BackupError, BackupHeader, Content};

/// Key and value of a row.
pub type BackupRow = (Vec<u8>, Vec<u8>);

/// Reads a backup from a source.
pub struct BackupReader<R> {
    source: R,
    content: Content,
    /// Bytes read so far.
    at: u64,
    total: Xxh3,
    header: BackupHeader,
    hasher: RowHasher,
    last_key: Vec<u8>,
    counted: BackupEnd,
    /// Set once the end was read.
    end: Option<BackupEnd>,
}

impl<R: Read> BackupReader<R> {
    /// Reads and checks the head.
    pub fn open(source: R) -> Result<Self, BackupError> {
        Self::open_of(Content::Lasting, source)
    }

    /// Reads and checks the head of something with this content.
    pub fn open_of(content: Content, mut source: R) -> Result<Self, BackupError> {
        let mut fixed = [0; FIXED_HEAD_BYTES];
        let mut at = 0;
        // A short file that begins differently is no backup at all, rather than one that is cut.
        if let Err(error) = fill(&mut source, &mut fixed, &mut at, "its head") {
            let begun = &fixed[..(at as usize).min(8)];
            return Err(if content.magic().starts_with(begun) && at > 0 { error } else { refused(error) });
        }
        let mut head = fixed.to_vec();
        head.resize(FIXED_HEAD_BYTES + frame::header_bytes(&fixed, content)? + 8, 0);
        fill(&mut source, &mut head[FIXED_HEAD_BYTES..], &mut at, "its head")?;
        let header = frame::parse_head(&head)?;
        let mut total = Xxh3::new();
        total.update(&head);
        let counted = BackupEnd { rows: 0, row_bytes: 0, blocks: 0, revision: header.vars.revision, digest: 0 };
        let (hasher, last_key) = (RowHasher::default(), Vec::new());
        Ok(Self { source, content, at, total, header, hasher, last_key, counted, end: None })
    }

    /// Where it comes from and what it is of.
    pub fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.at
    }

    /// What was read so far, or once all was, the end.
    pub fn counted(&self) -> BackupEnd {
        self.counted
    }

    /// The rows of the next block, in order of keys; `None` once the backup was read whole and found sound.
    pub fn next_block(&mut self) -> Result<Option<Vec<BackupRow>>, BackupError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let start = self.at;
        let mut head = [0; BLOCK_HEAD_BYTES];
        fill(&mut self.source, &mut head, &mut self.at, "a block")?;
        if head[..8] == END_MAGIC {
            return self.read_end(start, &head).map(|()| None);
        }
        let number = self.counted.blocks + 1;
        let block = frame::parse_block_head(&head, number, start)?;
        let mut bytes = vec![0; block.bytes];
        fill(&mut self.source, &mut bytes, &mut self.at, "a block")?;
        frame::check_block(&head, &bytes, start)?;
        self.total.update(&head);
        self.total.update(&bytes);
        self.counted.blocks = number;
        self.take_rows(&bytes, block.rows, start).map(Some)
    }

    /// Reads all of it, and throws the rows away. `progress` is told the bytes read so far.
    pub fn verify(mut self, mut progress: impl FnMut(u64)) -> Result<(BackupHeader, BackupEnd), BackupError> {
        while self.next_block()?.is_some() {
            progress(self.at);
        }
        Ok((self.header, self.counted))
    }

    fn take_rows(&mut self, mut bytes: &[u8], rows: u32, at: u64) -> Result<Vec<BackupRow>, BackupError> {
        let mut taken = Vec::with_capacity((rows as usize).min(bytes.len() / 8));
        while !bytes.is_empty() {
            let row = frame::take_row(&mut bytes);
            let (key, value) = row.ok_or_else(|| damaged(at, "a row that does not end in its block".to_owned()))?;
            if self.last_key.as_slice() >= key || !self.content.holds(key) {
                return Err(damaged(at, format!("row {} does not belong here", key.escape_ascii())));
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
            self.counted.rows += 1;
            self.counted.row_bytes += (key.len() + value.len()) as u64;
            self.counted.digest = self.counted.digest.wrapping_add(self.hasher.hash(key, value));
            taken.push((key.to_vec(), value.to_vec()));
        }
        match taken.len() == rows as usize {
            true => Ok(taken),
            false => Err(damaged(at, format!("a block of {rows} rows that holds {}", taken.len()))),
        }
    }

    fn read_end(&mut self, start: u64, begun: &[u8; BLOCK_HEAD_BYTES]) -> Result<(), BackupError> {
        let mut bytes = [0; END_BYTES];
        bytes[..BLOCK_HEAD_BYTES].copy_from_slice(begun);
        fill(&mut self.source, &mut bytes[BLOCK_HEAD_BYTES..], &mut self.at, "its end")?;
        let end = frame::parse_end(&bytes, self.total.clone(), start)?;
        if end != self.counted {
            return Err(damaged(start, format!("the end says {end:?}, and it holds {:?}", self.counted)));
        }
        let mut behind = Vec::new();
        (&mut self.source).take(trailer::TRAILER_BYTES_MAX as u64 + 1).read_to_end(&mut behind)?;
        if !behind.is_empty() && !trailer::is_trailer(self.at, &behind) {
            return Err(damaged(self.at, "bytes behind its end".to_owned()));
        }
        self.end = Some(end);
        Ok(())
    }
}

/// What begins as no backup does is none, however short it is.
fn refused(error: BackupError) -> BackupError {
    match error {
        BackupError::CutShort { .. } => BackupError::NotABackup,
        other => other,
    }
}

/// Fills the buffer, and counts.
fn fill(source: &mut impl Read, mut buffer: &mut [u8], at: &mut u64, what: &'static str) -> Result<(), BackupError> {
    while !buffer.is_empty() {
        match read_some(source, buffer)? {
            0 => return Err(BackupError::CutShort { at: *at, what }),
            count => {
                *at += count as u64;
                buffer = &mut buffer[count..];
            }
        }
    }
    Ok(())
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
