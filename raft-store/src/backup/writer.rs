//! Writing a backup, row by row.
//!
//! Owns when a block is closed and what is counted. Holds one block and no more.

use std::io::Write;

use quorate_machine::keyspace::digest::RowHasher;
use xxhash_rust::xxh3::Xxh3;

use super::frame::{self, BLOCK_BYTES};
use super::{BackupEnd, BackupError, BackupHeader, Content};

/// Writes a backup to a sink.
pub struct BackupWriter<W> {
    sink: W,
    content: Content,
    total: Xxh3,
    hasher: RowHasher,
    block: Vec<u8>,
    block_rows: u32,
    last_key: Vec<u8>,
    end: BackupEnd,
}

impl<W: Write> BackupWriter<W> {
    /// Writes the head.
    pub fn new(sink: W, header: &BackupHeader) -> Result<Self, BackupError> {
        Self::of(Content::Lasting, sink, header)
    }

    /// Writes the head of something with this content.
    pub fn of(content: Content, mut sink: W, header: &BackupHeader) -> Result<Self, BackupError> {
        let (head, mut total) = (frame::head(header, content), Xxh3::new());
        sink.write_all(&head)?;
        total.update(&head);
        let end = BackupEnd { rows: 0, row_bytes: 0, blocks: 0, revision: header.vars.revision, digest: 0 };
        let (hasher, last_key) = (RowHasher::default(), Vec::new());
        let block = Vec::with_capacity(BLOCK_BYTES);
        Ok(Self { sink, content, total, hasher, block, block_rows: 0, last_key, end })
    }

    /// Takes the next row.
    ///
    /// # Panics
    /// Where it does not follow the last one, or does not belong in a backup.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), BackupError> {
        assert!(self.last_key.as_slice() < key, "row {} out of order", key.escape_ascii());
        assert!(self.content.holds(key), "row {} in a backup", key.escape_ascii());
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.end.rows += 1;
        self.end.row_bytes += (key.len() + value.len()) as u64;
        self.end.digest = self.end.digest.wrapping_add(self.hasher.hash(key, value));
        frame::put_row(&mut self.block, key, value);
        self.block_rows += 1;
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    /// Writes the last block and the end. The caller makes the bytes durable.
    pub fn finish(mut self) -> Result<(W, BackupEnd), BackupError> {
        if self.block_rows > 0 {
            self.close_block()?;
        }
        self.sink.write_all(&frame::end(&self.end, self.total))?;
        self.sink.flush()?;
        Ok((self.sink, self.end))
    }

    fn close_block(&mut self) -> Result<(), BackupError> {
        self.end.blocks += 1;
        let head = frame::block_head(self.end.blocks, self.block_rows, &self.block);
        for part in [&head[..], &self.block] {
            self.total.update(part);
            self.sink.write_all(part)?;
        }
        self.block.clear();
        // One row of the largest size must not cost its memory for the rest of the backup.
        self.block.shrink_to(2 * BLOCK_BYTES);
        self.block_rows = 0;
        Ok(())
    }
}
