//! Reads of quotas, and of what is used of them.
//!
//! Owns what is told of them. Never decides whether something is beyond one: that is the machine's.

use std::collections::BTreeMap;

use super::{Moment, Observed, Page, Snapshot};
use crate::codec;
use crate::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse, Whose};
use crate::keyspace::{bucket, quota};
use crate::machine::Fault;
use crate::machine::View;
use crate::types::{PrefixUse, PrincipalUse, QuotaBounds, QuotaRow, QuotaSubject};

/// A quota as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaRead {
    /// Its own row, if there is one.
    pub row: Option<QuotaRow>,
    /// The bounds that hold.
    pub bounds: QuotaBounds,
    /// What is used.
    pub used: QuotaUse,
    /// Whether what was there before it is still counted, so that it refuses nothing; never of a principal.
    pub is_counting: bool,
}

/// What is used of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaUse {
    /// Of every principal: nobody counts.
    Nobody,
    /// By a principal.
    Principal(PrincipalUse),
    /// Below a prefix.
    Prefix(PrefixUse),
}

/// Most principals of a bucket that are looked at to find the largest: some milliseconds.
const KEEPERS_MAX: usize = 10_000;

/// Quotas, and what has a bound beside them.
impl<S: Snapshot> Moment<S> {
    /// What is kept for retries and of refusals for a while.
    pub fn kept_for_a_while(&self) -> Result<BucketUse, Fault> {
        let clock = self.at.clock;
        let mut all = BucketUse::default();
        for bucket in bucket::oldest_live(clock)..=bucket::at(clock) {
            let held: BucketUse = self.decoded(bucket_use::row_key(bucket))?.unwrap_or_default();
            all.requests += held.requests;
            all.refusals += held.refusals;
            all.dropped += held.dropped;
        }
        Ok(all)
    }

    /// The principal with most outcomes kept for retries, and their bytes; `None` where none has a principal. Looks at some thousands of
    /// principals only.
    pub fn largest_keeper(&self) -> Result<Option<(String, u64)>, Fault> {
        let clock = self.at.clock;
        let mut kept: BTreeMap<String, u64> = BTreeMap::new();
        for bucket in bucket::oldest_live(clock)..=bucket::at(clock) {
            let (start, end) = bucket_use::owners(bucket);
            for (row_key, row) in self.scan(&start, &end, KEEPERS_MAX)? {
                let (_, Whose::Kept(owner)) = bucket_use::decode_key(&row_key)? else { continue };
                let held: OwnerUse = codec::decode(&row)?;
                *kept.entry(owner.to_owned()).or_default() += held.requests;
            }
        }
        Ok(kept.into_iter().max_by_key(|(_, bytes)| *bytes))
    }

    /// The principal with most of what is recorded of refusals since shares hold; `None` where they do not, or none has a principal. Looks at
    /// some thousands of principals only.
    pub fn most_refused(&self) -> Result<Option<String>, Fault> {
        let clock = self.at.clock;
        let mut refused: BTreeMap<String, u64> = BTreeMap::new();
        for bucket in bucket::oldest_live(clock)..=bucket::at(clock) {
            let (start, end) = bucket_use::refused(bucket);
            for (row_key, row) in self.scan(&start, &end, KEEPERS_MAX)? {
                let (_, Whose::Refused(owner)) = bucket_use::decode_key(&row_key)? else { continue };
                let held: RefusedUse = codec::decode(&row)?;
                *refused.entry(owner.to_owned()).or_default() += held.refusals;
            }
        }
        Ok(refused.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(name, _)| name))
    }

    /// Reads the quota of somebody. Of a principal without one it is that of every principal; `None` for a prefix without one.
    pub fn quota(&self, subject: &QuotaSubject) -> Result<Observed<Option<QuotaRead>>, Fault> {
        self.observe(|moment| {
            let row = moment.decoded::<QuotaRow>(quota::row_key(subject))?;
            match subject {
                QuotaSubject::Prefix(_) => row.map(|row| of_prefix(moment, subject, row)).transpose(),
                QuotaSubject::Principal(_) => {
                    let used = moment.decoded(quota::use_key(subject))?.unwrap_or_default();
                    of_principal(moment, row, used).map(Some)
                }
                QuotaSubject::Default => {
                    let bounds = row.as_ref().map_or(QuotaBounds::USUAL, |row| row.bounds);
                    Ok(Some(QuotaRead { row, bounds, used: QuotaUse::Nobody, is_counting: false }))
                }
            }
        })
    }

    /// Principals after this one that have a quota of their own or use something, by name.
    pub fn principal_quotas(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Observed<Page<(QuotaSubject, QuotaRead)>>, Fault> {
        let after = after.map(|name| QuotaSubject::Principal(name.to_owned()));
        self.observe(|moment| {
            let mut found: BTreeMap<QuotaSubject, (Option<QuotaRow>, PrincipalUse)> = BTreeMap::new();
            let start = after.as_ref().map(quota::row_key);
            for (row_key, row) in behind(moment, quota::principals(), start, limit)? {
                found.entry(quota::decode_key(&row_key)?).or_default().0 = Some(codec::decode(&row)?);
            }
            let start = after.as_ref().map(quota::use_key);
            for (row_key, row) in behind(moment, quota::uses_of_principals(), start, limit)? {
                found.entry(quota::decode_use_key(&row_key)?).or_default().1 = codec::decode(&row)?;
            }
            let more = found.len() > limit;
            let read = |(subject, (row, used))| Ok((subject, of_principal(moment, row, used)?));
            let items = found.into_iter().take(limit).map(read).collect::<Result<_, Fault>>()?;
            Ok(Page { items, more })
        })
    }

    /// Prefixes after this one that have a quota, in order.
    pub fn prefix_quotas(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Observed<Page<(QuotaSubject, QuotaRead)>>, Fault> {
        let start = after.map(|prefix| quota::row_key(&QuotaSubject::Prefix(prefix.to_vec())));
        self.observe(|moment| {
            let mut rows = behind(moment, quota::prefixes_within(b""), start, limit)?;
            let more = rows.len() > limit;
            rows.truncate(limit);
            let read = |(row_key, row): &(Vec<u8>, Vec<u8>)| {
                let subject = quota::decode_key(row_key)?;
                let read = of_prefix(moment, &subject, codec::decode(row)?)?;
                Ok((subject, read))
            };
            Ok(Page { items: rows.iter().map(read).collect::<Result<_, Fault>>()?, more })
        })
    }
}

fn of_prefix(moment: &Moment<impl Snapshot>, subject: &QuotaSubject, row: QuotaRow) -> Result<QuotaRead, Fault> {
    let used: PrefixUse = moment.decoded(quota::use_key(subject))?.unwrap_or_default();
    let is_counting = used.from.is_some();
    Ok(QuotaRead { bounds: row.bounds, row: Some(row), used: QuotaUse::Prefix(used), is_counting })
}

fn of_principal(moment: &Moment<impl Snapshot>, row: Option<QuotaRow>, used: PrincipalUse) -> Result<QuotaRead, Fault> {
    let bounds = match &row {
        Some(row) => row.bounds,
        None => {
            let usual: Option<QuotaRow> = moment.decoded(quota::row_key(&QuotaSubject::Default))?;
            usual.map_or(QuotaBounds::USUAL, |row| row.bounds)
        }
    };
    Ok(QuotaRead { row, bounds, used: QuotaUse::Principal(used), is_counting: false })
}

/// Rows with their keys, as they are.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// One row more than a page of those behind a row key.
fn behind(
    moment: &Moment<impl Snapshot>,
    (first, end): (Vec<u8>, Vec<u8>),
    after: Option<Vec<u8>>,
    limit: usize,
) -> Result<Rows, Fault> {
    let start = after.map_or(first, |after| [&after[..], &[0]].concat());
    Ok(moment.scan(&start, &end, limit.saturating_add(1))?)
}
