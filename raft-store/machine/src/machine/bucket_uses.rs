//! How much the live buckets of kept answers and refusals hold.
//!
//! Owns the counts while batches are applied: each command of a client changes one, so they are decoded once and written once a batch.
//! Never decides what is too much.

use super::Applier;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::bucket;
use crate::keyspace::bucket_use::{self, BucketUse};

/// Those that were asked for so far: two as a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct BucketUses(Vec<Counted>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    bucket: u64,
    held: BucketUse,
    /// Whether its row is still another.
    is_changed: bool,
}

impl BucketUses {
    /// Forgets all before this one: their rows are dropped.
    pub(super) fn forget_before(&mut self, oldest: u64) {
        self.0.retain(|counted| counted.bucket >= oldest);
    }
}

impl<V: View> Applier<'_, V> {
    /// What a bucket holds.
    pub(super) fn held_in(&mut self, bucket: u64) -> Result<BucketUse, Fault> {
        self.counted(bucket).map(|counted| counted.held)
    }

    fn counted(&mut self, bucket: u64) -> Result<&mut Counted, Fault> {
        let at = match self.bucket_uses.0.iter().position(|counted| counted.bucket == bucket) {
            Some(at) => at,
            None => {
                let held = self.decoded(&bucket_use::row_key(bucket))?.unwrap_or_default();
                self.bucket_uses.0.push(Counted { bucket, held, is_changed: false });
                self.bucket_uses.0.len() - 1
            }
        };
        Ok(&mut self.bucket_uses.0[at])
    }

    /// Counts in the bucket of now.
    pub(super) fn count_in_bucket(&mut self, count: impl FnOnce(&mut BucketUse)) -> Result<(), Fault> {
        let counted = self.counted(bucket::at(self.vars.clock))?;
        count(&mut counted.held);
        counted.is_changed = true;
        let row_bytes = codec::encoded_len(&counted.held);
        // Each count takes of the batch's bound what a row takes that is written.
        self.overlay.count_bytes(bucket_use::KEY_BYTES + row_bytes);
        Ok(())
    }

    /// Writes the counts of a batch, at its end.
    pub(super) fn write_bucket_uses(&mut self) -> Result<(), Fault> {
        for Counted { bucket, held, is_changed } in &mut self.bucket_uses.0 {
            if std::mem::take(is_changed) {
                self.overlay.replace(&bucket_use::row_key(*bucket), Some(codec::encode(held)))?;
            }
        }
        Ok(())
    }
}
