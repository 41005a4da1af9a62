//! How much the live buckets of kept answers and refusals hold.
//!
//! Owns the counts while batches are applied: each command of a client changes that of its bucket, so those are decoded once and written
//! once a batch. What principals have, of whom there may be many, is counted in its rows at once. Never decides what is too much.

use super::Applier;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::bucket;
use crate::keyspace::bucket_use::{self, BucketUse, OwnerUse};

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

impl<V: View> Applier<'_, V> {
    /// What a bucket holds.
    pub(super) fn held_in(&mut self, bucket: u64) -> Result<BucketUse, Fault> {
        self.counted(bucket).map(|counted| counted.held)
    }

    /// What a principal has in a bucket.
    pub(super) fn held_by(&mut self, bucket: u64, owner: &str) -> Result<OwnerUse, Fault> {
        let row_key = bucket_use::owner_key(bucket, owner);
        match self.overlay.get(&row_key)? {
            Some(row) => codec::decode(row).map_err(|error| Fault::row(&row_key, error)),
            None => Ok(OwnerUse::default()),
        }
    }

    /// Counts bytes of a kept outcome in the bucket of now: for all, and for a principal if it is of one.
    pub(super) fn count_kept(&mut self, owner: &str, bytes: u64) -> Result<(), Fault> {
        self.count_in_bucket(|held| held.requests += bytes)?;
        if owner.is_empty() {
            return Ok(());
        }
        let bucket = bucket::at(self.vars.clock);
        let mut held = self.held_by(bucket, owner)?;
        held.requests += bytes;
        self.overlay.replace(&bucket_use::owner_key(bucket, owner), Some(codec::encode(&held))).map(drop)
    }

    fn counted(&mut self, bucket: u64) -> Result<&mut Counted, Fault> {
        let at = match self.batch.bucket_uses.0.iter().position(|counted| counted.bucket == bucket) {
            Some(at) => at,
            None => {
                let held = self.decoded(&bucket_use::row_key(bucket))?.unwrap_or_default();
                self.batch.bucket_uses.0.push(Counted { bucket, held, is_changed: false });
                self.batch.bucket_uses.0.len() - 1
            }
        };
        Ok(&mut self.batch.bucket_uses.0[at])
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
        for Counted { bucket, held, is_changed } in &mut self.batch.bucket_uses.0 {
            if std::mem::take(is_changed) {
                self.overlay.replace(&bucket_use::row_key(*bucket), Some(codec::encode(held)))?;
            }
        }
        Ok(())
    }
}
