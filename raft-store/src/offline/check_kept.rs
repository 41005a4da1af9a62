//! Counting anew what buckets hold.
//!
//! Owns that the sums that bound the table of kept outcomes, and each principal's share of it, say what there is. Changes nothing.

use std::collections::BTreeMap;

use crate::codec;
use crate::keyspace::bucket_use::{self, BucketUse, OwnerUse};
use crate::keyspace::{family, refusals, request};
use crate::state::StateFault;

/// Sums by bucket, and by bucket and principal, while the rows go by.
#[derive(Debug, Default)]
pub(super) struct KeptCounts {
    /// Bytes of kept outcomes and of refusals.
    said: BTreeMap<u64, (u64, u64)>,
    found: BTreeMap<u64, (u64, u64)>,
    /// Bytes of kept outcomes.
    owned_said: BTreeMap<(u64, String), u64>,
    owned_found: BTreeMap<(u64, String), u64>,
}

impl KeptCounts {
    /// Counts a row.
    pub(super) fn row(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let bytes = (row_key.len() + value.len()) as u64;
        match row_key.first().copied().unwrap_or_default() {
            family::REFUSALS => self.found.entry(refusals::decode_key(row_key)?.0).or_default().1 += bytes,
            family::REQUEST => {
                let (bucket, owner, _) = request::decode_key(row_key)?;
                self.found.entry(bucket).or_default().0 += bytes;
                if !owner.is_empty() {
                    *self.owned_found.entry((bucket, owner.to_owned())).or_default() += bytes;
                }
            }
            family::BUCKET_USE => match bucket_use::decode_key(row_key)? {
                (bucket, "") => {
                    let said: BucketUse = codec::decode(value)?;
                    self.said.insert(bucket, (said.requests, said.refusals));
                }
                (bucket, owner) => {
                    let said: OwnerUse = codec::decode(value)?;
                    self.owned_said.insert((bucket, owner.to_owned()), said.requests);
                }
            },
            _ => {}
        }
        Ok(())
    }

    /// The differences, once all rows went by.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.said != self.found {
            faults.push(format!("buckets are said to hold {:?}, they hold {:?}", self.said, self.found));
        }
        if self.owned_said != self.owned_found {
            let (said, found) =
                (differing(&self.owned_said, &self.owned_found), differing(&self.owned_found, &self.owned_said));
            faults.push(format!("principals are said to have {said:?} of buckets, they have {found:?}"));
        }
        faults
    }
}

/// The first of those that the other has not, or has otherwise.
fn differing<'a>(
    one: &'a BTreeMap<(u64, String), u64>,
    other: &BTreeMap<(u64, String), u64>,
) -> Option<(&'a (u64, String), &'a u64)> {
    one.iter().find(|(whose, bytes)| other.get(*whose) != Some(*bytes))
}
