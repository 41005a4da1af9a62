//! The trailer of a snapshot for etcd's tools: zeros up to a whole sector, then a SHA-256 of all bytes before.
//!
//! Owns its layout. Never computes the checksum.

/// Sectors of etcd's snapshots.
const SECTOR_BYTES: u64 = 512;
/// Bytes of the checksum behind them.
const CHECKSUM_BYTES: usize = 32;
/// Most bytes that may stand behind the end of a backup.
pub const TRAILER_BYTES_MAX: usize = SECTOR_BYTES as usize - 1 + CHECKSUM_BYTES;

/// The number of zeros that fill the last sector of a snapshot of `bytes`.
pub fn sector_rest(bytes: u64) -> usize {
    (SECTOR_BYTES - bytes % SECTOR_BYTES) as usize % SECTOR_BYTES as usize
}

/// Whether the bytes behind a backup of `bytes` are such a trailer.
pub fn is_trailer(bytes: u64, behind: &[u8]) -> bool {
    let zeros = sector_rest(bytes);
    behind.len() == zeros + CHECKSUM_BYTES && behind[..zeros].iter().all(|byte| *byte == 0)
}
