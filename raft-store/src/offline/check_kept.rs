//! Counting anew what buckets hold.
//!
//! Owns that the sums that bound the table of kept outcomes, and each principal's share of it, say what there is. Changes nothing.

use std::collections::BTreeMap;

use quorate_machine::codec;
use quorate_machine::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse, Whose};
use quorate_machine::keyspace::{audit, family, refusals, request};
use quorate_machine::limits::REFUSALS_SHARED_FROM;
use quorate_machine::query::StateFault;

/// Sums by bucket, and by bucket and principal, while the rows go by.
#[derive(Debug, Default)]
pub(super) struct KeptCounts {
    /// Bytes of kept outcomes and of refusals.
    said: BTreeMap<u64, (u64, u64)>,
    found: BTreeMap<u64, (u64, u64)>,
    /// Bytes of kept outcomes.
    owned_said: BTreeMap<(u64, String), u64>,
    owned_found: BTreeMap<(u64, String), u64>,
    /// Bytes of lines of refusals, of those that were recorded while shares held.
    refused_said: BTreeMap<(u64, String), u64>,
    refused_found: BTreeMap<(u64, String), u64>,
}

impl KeptCounts {
    /// Counts a row.
    pub(super) fn row(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let bytes = (row_key.len() + value.len()) as u64;
        match row_key.first().copied().unwrap_or_default() {
            // In the order of the log, in which they were recorded.
            family::REFUSALS => {
                let (bucket, _) = refusals::decode_key(row_key)?;
                let before = self.found.entry(bucket).or_default();
                let is_shared = before.1 >= REFUSALS_SHARED_FROM;
                before.1 += bytes;
                let lines = if is_shared { audit::decode(value)?.lines } else { Vec::new() };
                for line in lines.into_iter().filter(|line| !line.principal.is_empty()) {
                    let bytes = audit::line_bytes(&line) as u64;
                    *self.refused_found.entry((bucket, line.principal)).or_default() += bytes;
                }
            }
            family::REQUEST => {
                let (bucket, owner, _) = request::decode_key(row_key)?;
                self.found.entry(bucket).or_default().0 += bytes;
                if !owner.is_empty() {
                    *self.owned_found.entry((bucket, owner.to_owned())).or_default() += bytes;
                }
            }
            family::BUCKET_USE => match bucket_use::decode_key(row_key)? {
                (bucket, Whose::All) => {
                    let said: BucketUse = codec::decode(value)?;
                    self.said.insert(bucket, (said.requests, said.refusals));
                }
                (bucket, Whose::Kept(owner)) => {
                    let said: OwnerUse = codec::decode(value)?;
                    self.owned_said.insert((bucket, owner.to_owned()), said.requests);
                }
                (bucket, Whose::Refused(owner)) => {
                    let said: RefusedUse = codec::decode(value)?;
                    self.refused_said.insert((bucket, owner.to_owned()), said.refusals);
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
        let of_principals = [
            ("of buckets", &self.owned_said, &self.owned_found),
            ("of refusals", &self.refused_said, &self.refused_found),
        ];
        for (what, all_said, all_found) in of_principals {
            if all_said != all_found {
                let (said, found) = (differing(all_said, all_found), differing(all_found, all_said));
                faults.push(format!("principals are said to have {said:?} {what}, they have {found:?}"));
            }
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
