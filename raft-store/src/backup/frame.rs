//! The bytes of a backup: head, blocks, end.
//!
//! Owns the layout and its checksums; all numbers are little endian. Never does I/O and never looks into a row.
//!
//! | part | bytes | what |
//! |---|---|---|
//! | head | 8 | [`Content::magic`] |
//! | | 4 | [`BACKUP_FORMAT`] |
//! | | 4 | [`quorate_machine::codec::FORMAT_VERSION`]: the form of header and rows |
//! | | 4 | bytes of the header |
//! | | … | the header, a [`BackupHeader`] |
//! | | 8 | XXH3-64 of all before |
//! | block | 8 | [`BLOCK_MAGIC`] |
//! | | 8 | its number, from 1 |
//! | | 4 | its rows |
//! | | 4 | bytes of the rows |
//! | | 8 | XXH3-64 of the 24 bytes before and of the rows |
//! | | … | the rows: length of key, length of value (4 bytes each), key, value; over all blocks in order of keys |
//! | end | 8 | [`END_MAGIC`] |
//! | | 32 | rows, bytes of rows, blocks, revision |
//! | | 16 | digest of the rows |
//! | | 16 | XXH3-128 of everything before: of the whole file but these bytes |
//!
//! Tools of etcd want snapshots that end with zeros up to a whole sector and a SHA-256 of all before. What comes over etcd's protocol has
//! that behind the end (see [`quorate_machine::trailer`]); it says nothing of a backup, and may be cut off.
//!
//! The end has always the same length, so that whoever only carries a backup (the client) can check it whole without
//! knowing what is in it. Nothing is compressed: the values of most stores are small, and a file is easily compressed later.

use quorate_machine::codec::{self, FORMAT_VERSION, RECORDS};
use quorate_machine::limits;
use quorate_machine::versions::Versions;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{BackupEnd, BackupError, BackupHeader, Content};

/// Leads every block.
pub const BLOCK_MAGIC: [u8; 8] = *b"\x89QRBLCK\n";
/// Leads the end.
pub const END_MAGIC: [u8; 8] = *b"\x89QRBEND\n";

/// Versions of this layout. That of its rows is one of [`RECORDS`], and each row says its own.
pub const BACKUPS: Versions = Versions::new(1, 1, 1);

/// The version that is written.
pub const BACKUP_FORMAT: u32 = BACKUPS.writes();

/// Bytes of the head before the header.
pub const FIXED_HEAD_BYTES: usize = 20;
/// Longest header: addresses of some hundred members. Bounds what damage can make us ask for.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// Bytes of a block before its rows.
pub const BLOCK_HEAD_BYTES: usize = 32;
/// Bytes of the end.
pub const END_BYTES: usize = 72;
/// Bytes of the checksum that is the last of the end.
pub const TOTAL_BYTES: usize = 16;

/// A block is closed once its rows have so many bytes: little to hold, and few blocks.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// Longest block: one row of the largest size over [`BLOCK_BYTES`]. Bounds what damage can make us ask for.
pub const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + 2 * limits::BATCH_BYTES_MAX;

/// The head of a backup.
pub fn head(header: &BackupHeader, content: Content) -> Vec<u8> {
    let header = codec::encode(header);
    assert!(header.len() <= HEAD_BYTES_MAX, "the header of a backup has {} bytes", header.len());
    let mut head = Vec::with_capacity(FIXED_HEAD_BYTES + header.len() + 8);
    head.extend_from_slice(&content.magic());
    for number in [BACKUP_FORMAT, u32::from(FORMAT_VERSION), header.len() as u32] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&header);
    head.extend_from_slice(&xxh3_64(&head).to_le_bytes());
    head
}

/// How many bytes of header follow the first [`FIXED_HEAD_BYTES`]; with the checksum 8 more.
pub fn header_bytes(fixed: &[u8; FIXED_HEAD_BYTES], content: Content) -> Result<usize, BackupError> {
    if fixed[..8] != content.magic() {
        return Err(BackupError::NotABackup);
    }
    let check = |what, found, known: Versions| match known.reads(found) {
        true => Ok(()),
        false => Err(BackupError::UnknownFormat { what, found, known }),
    };
    check("the backup has", number32(fixed, 8), BACKUPS)?;
    check("the rows of the backup have", number32(fixed, 12), RECORDS)?;
    match number32(fixed, 16) as usize {
        bytes if bytes <= HEAD_BYTES_MAX => Ok(bytes),
        bytes => Err(damaged(16, format!("a header of {bytes} bytes"))),
    }
}

/// Reads the header out of all of the head.
pub fn parse_head(head: &[u8]) -> Result<BackupHeader, BackupError> {
    let (body, checksum) = head.split_last_chunk::<8>().ok_or(BackupError::NotABackup)?;
    if xxh3_64(body) != u64::from_le_bytes(*checksum) {
        return Err(damaged(0, "wrong checksum of its head".to_owned()));
    }
    let header = body.get(FIXED_HEAD_BYTES..).ok_or(BackupError::NotABackup)?;
    codec::decode(header).map_err(|error| damaged(FIXED_HEAD_BYTES as u64, error.to_string()))
}

/// The start of a block of these rows.
pub fn block_head(number: u64, rows: u32, bytes: &[u8]) -> [u8; BLOCK_HEAD_BYTES] {
    let mut head = [0; BLOCK_HEAD_BYTES];
    head[..8].copy_from_slice(&BLOCK_MAGIC);
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..20].copy_from_slice(&rows.to_le_bytes());
    let length = u32::try_from(bytes.len()).expect("a block is bounded by BLOCK_BYTES_MAX");
    head[20..24].copy_from_slice(&length.to_le_bytes());
    let checksum = block_checksum(&head, bytes);
    head[24..].copy_from_slice(&checksum.to_le_bytes());
    head
}

/// What the start of a block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// Its rows.
    pub rows: u32,
    /// Bytes that follow.
    pub bytes: usize,
}

/// Reads the start of block `number`, which stands at this offset. The checksum is [`check_block`]'s.
pub fn parse_block_head(head: &[u8; BLOCK_HEAD_BYTES], number: u64, at: u64) -> Result<BlockHead, BackupError> {
    if head[..8] != BLOCK_MAGIC {
        return Err(damaged(at, "neither a block nor the end begins here".to_owned()));
    }
    let found = number64(head, 8);
    if found != number {
        return Err(damaged(at, format!("block {found} stands where block {number} should")));
    }
    let (rows, bytes) = (number32(head, 16), number32(head, 20) as usize);
    if bytes > BLOCK_BYTES_MAX {
        return Err(damaged(at, format!("a block of {bytes} bytes")));
    }
    Ok(BlockHead { rows, bytes })
}

/// Whether the rows are those that the block was made of.
pub fn check_block(head: &[u8; BLOCK_HEAD_BYTES], bytes: &[u8], at: u64) -> Result<(), BackupError> {
    match block_checksum(head, bytes) == number64(head, 24) {
        true => Ok(()),
        false => Err(damaged(at, format!("wrong checksum of block {}", number64(head, 8)))),
    }
}

fn block_checksum(head: &[u8; BLOCK_HEAD_BYTES], bytes: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&head[..24]);
    hasher.update(bytes);
    hasher.digest()
}

/// Appends a row to those of a block.
pub fn put_row(bytes: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    for part in [key, value] {
        let length = u32::try_from(part.len()).expect("a row is bounded by limits");
        bytes.extend_from_slice(&length.to_le_bytes());
    }
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
}

/// Splits the next row off those of a block.
pub fn take_row<'b>(bytes: &mut &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let (lengths, rest) = bytes.split_first_chunk::<8>()?;
    let (key, value) = (number32(lengths, 0) as usize, number32(lengths, 4) as usize);
    let (key, rest) = rest.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *bytes = rest;
    Some((key, value))
}

/// The end; `before` has taken in all that stands before it.
pub fn end(end: &BackupEnd, mut before: Xxh3) -> [u8; END_BYTES] {
    let mut bytes = [0; END_BYTES];
    bytes[..8].copy_from_slice(&END_MAGIC);
    for (place, number) in [end.rows, end.row_bytes, end.blocks, end.revision].into_iter().enumerate() {
        bytes[8 + 8 * place..16 + 8 * place].copy_from_slice(&number.to_le_bytes());
    }
    bytes[40..56].copy_from_slice(&end.digest.to_le_bytes());
    before.update(&bytes[..END_BYTES - TOTAL_BYTES]);
    bytes[END_BYTES - TOTAL_BYTES..].copy_from_slice(&before.digest128().to_le_bytes());
    bytes
}

/// Reads the end, which stands at this offset; `before` has taken in all that stands before it.
pub fn parse_end(bytes: &[u8; END_BYTES], mut before: Xxh3, at: u64) -> Result<BackupEnd, BackupError> {
    before.update(&bytes[..END_BYTES - TOTAL_BYTES]);
    if before.digest128() != number128(bytes, END_BYTES - TOTAL_BYTES) {
        return Err(damaged(at, "wrong checksum of the whole backup".to_owned()));
    }
    Ok(BackupEnd {
        rows: number64(bytes, 8),
        row_bytes: number64(bytes, 16),
        blocks: number64(bytes, 24),
        revision: number64(bytes, 32),
        digest: number128(bytes, 40),
    })
}

/// Damage at an offset.
pub fn damaged(at: u64, what: String) -> BackupError {
    BackupError::Damaged { at, what }
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
}

fn number128(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes are sixteen bytes"))
}
