//! Settings of the log.

/// What may differ between logs.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Bytes of a segment. A group that is larger gets one of its own size.
    pub segment_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        // A second of a busy disk: long enough to make the next one beside it, small enough to give back soon.
        Self { segment_bytes: 32 * 1024 * 1024 }
    }
}

impl LogOptions {
    /// Bytes of the very first segment, which a new node has to wait for.
    pub(super) fn first_segment_bytes(&self) -> u64 {
        (self.segment_bytes / 8).max(4 * super::group::BLOCK as u64)
    }
}
