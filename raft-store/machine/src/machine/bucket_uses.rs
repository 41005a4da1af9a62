//! How much the live buckets of kept answers and refusals hold.
//!
//! Owns the counts while batches are applied: each command of a client changes that of its bucket and that of its principal, so they are
//! decoded once and written once a batch. Never decides what is too much.

use std::collections::BTreeMap;

use super::Applier;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::bucket;
use crate::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse};
use crate::limits;

/// Those that were asked for so far.
#[derive(Debug, Clone, Default)]
pub(super) struct BucketUses {
    /// Two as a rule.
    buckets: Vec<Counted<BucketUse>>,
    /// The same for each principal.
    owners: BTreeMap<String, Vec<Counted<OwnerUse>>>,
    /// The part of each principal in the record of refusals, in the bucket of now: asked for only at the end of a batch, while shares hold.
    refused: BTreeMap<String, Counted<RefusedUse>>,
}

#[derive(Debug, Clone, Copy)]
struct Counted<T> {
    bucket: u64,
    held: T,
    /// Whether its row is still another.
    is_changed: bool,
}

impl<V: View> Applier<'_, V> {
    /// What a bucket holds.
    pub(super) fn held_in(&mut self, bucket: u64) -> Result<BucketUse, Fault> {
        self.counted(bucket).map(|counted| counted.held)
    }

    /// The use of a bucket by a principal.
    pub(super) fn held_by(&mut self, bucket: u64, owner: &str) -> Result<OwnerUse, Fault> {
        self.owned(bucket, owner).map(|counted| counted.held)
    }

    fn owned(&mut self, bucket: u64, owner: &str) -> Result<&mut Counted<OwnerUse>, Fault> {
        let known = self.batch.bucket_uses.owners.get(owner);
        if known.is_none_or(|counts| counts.iter().all(|counted| counted.bucket != bucket)) {
            let held = self.decoded(&bucket_use::owner_key(bucket, owner))?.unwrap_or_default();
            let counted = Counted { bucket, held, is_changed: false };
            self.batch.bucket_uses.owners.entry(owner.to_owned()).or_default().push(counted);
        }
        let counts = self.batch.bucket_uses.owners.get_mut(owner);
        let counted = counts.and_then(|counts| counts.iter_mut().find(|counted| counted.bucket == bucket));
        Ok(counted.expect("it was put there if it was not"))
    }

    /// Counts bytes of a kept outcome in the bucket of now: for all, and for a principal if it is of one.
    pub(super) fn count_kept(&mut self, owner: &str, bytes: u64) -> Result<(), Fault> {
        self.count_in_bucket(|held| held.requests += bytes)?;
        if owner.is_empty() {
            return Ok(());
        }
        let counted = self.owned(bucket::at(self.vars.clock), owner)?;
        counted.held.requests += bytes;
        counted.is_changed = true;
        let row_bytes = codec::encoded_len(&counted.held);
        // As of a bucket, see below.
        self.overlay.count_bytes(bucket_use::KEY_BYTES + owner.len() + row_bytes);
        Ok(())
    }

    fn counted(&mut self, bucket: u64) -> Result<&mut Counted<BucketUse>, Fault> {
        let at = match self.batch.bucket_uses.buckets.iter().position(|counted| counted.bucket == bucket) {
            Some(at) => at,
            None => {
                let held = self.decoded(&bucket_use::row_key(bucket))?.unwrap_or_default();
                self.batch.bucket_uses.buckets.push(Counted { bucket, held, is_changed: false });
                self.batch.bucket_uses.buckets.len() - 1
            }
        };
        Ok(&mut self.batch.bucket_uses.buckets[at])
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

    /// Counts bytes of a refusal's line for its principal, in the bucket of now, where it has room for them. Gives whether it has.
    pub(super) fn count_refused(&mut self, owner: &str, bytes: u64) -> Result<bool, Fault> {
        let bucket = bucket::at(self.vars.clock);
        let known = self.batch.bucket_uses.refused.get(owner);
        if known.is_none() {
            let held = self.decoded(&bucket_use::refused_key(bucket, owner))?.unwrap_or_default();
            let counted = Counted { bucket, held, is_changed: false };
            self.batch.bucket_uses.refused.insert(owner.to_owned(), counted);
        }
        let counted = self.batch.bucket_uses.refused.get_mut(owner).expect("it was put there if it was not");
        if counted.held.refusals >= limits::REFUSALS_SHARE_MAX {
            return Ok(false);
        }
        counted.held.refusals += bytes;
        counted.is_changed = true;
        Ok(true)
    }

    /// Writes the counts of a batch, at its end.
    pub(super) fn write_bucket_uses(&mut self) -> Result<(), Fault> {
        let BucketUses { buckets, owners, refused } = &mut self.batch.bucket_uses;
        for Counted { bucket, held, is_changed } in buckets {
            if std::mem::take(is_changed) {
                self.overlay.replace(&bucket_use::row_key(*bucket), Some(codec::encode(held)))?;
            }
        }
        for (owner, counts) in owners {
            for Counted { bucket, held, is_changed } in counts {
                if std::mem::take(is_changed) {
                    self.overlay.replace(&bucket_use::owner_key(*bucket, owner), Some(codec::encode(held)))?;
                }
            }
        }
        for (owner, Counted { bucket, held, is_changed }) in refused {
            if std::mem::take(is_changed) {
                self.overlay.replace(&bucket_use::refused_key(*bucket, owner), Some(codec::encode(held)))?;
            }
        }
        Ok(())
    }
}
