//! What counts against quotas, and what is refused because of them.
//!
//! Owns the sums: they are rows that change in the batch of what they count, so they are exact on every node. What was there before a
//! quota is taken in by `walk`; until it has, the quota refuses nothing. Never sets a quota.

use std::sync::Arc;

use crate::codec;
use crate::keyspace::quota;
use crate::limits;
use crate::machine::Applier;
use crate::machine::stop::Tried;
use crate::machine::view::{Fault, Most, View};
use crate::mutants::Mutant;
use crate::types::{
    BeyondQuota, Counted, PrefixUse, PrincipalUse, QuotaBounds, QuotaRow, QuotaState, QuotaSubject, Rejection,
};

/// A prefix with a quota, and what that allows.
type Covering = (QuotaSubject, QuotaBounds);

/// What an applier has at hand of quotas, as they are after what was applied so far.
#[derive(Debug, Default)]
pub(in crate::machine) struct KnownQuotas {
    pub(in crate::machine) state: Option<QuotaState>,
    /// The last name that was looked for, with the quotas around it: a write looks twice.
    pub(in crate::machine) last: Option<(Vec<u8>, Arc<[Covering]>)>,
}

/// How much something counts for the prefixes around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::machine) struct Amount {
    pub(in crate::machine) entries: u64,
    pub(in crate::machine) bytes: u64,
    pub(in crate::machine) tasks: u64,
}

impl Amount {
    /// That of an entry whose row has so many bytes; nothing where there is none.
    pub(in crate::machine) fn of_entry(key: &[u8], row_bytes: Option<usize>) -> Self {
        row_bytes.map_or(Self::default(), |bytes| Self { entries: 1, bytes: (key.len() + bytes) as u64, tasks: 0 })
    }

    fn of(&self, what: Counted) -> u64 {
        match what {
            Counted::Entries => self.entries,
            Counted::Bytes => self.bytes,
            Counted::Tasks => self.tasks,
            Counted::Sessions | Counted::Locks => 0,
        }
    }
}

impl PrefixUse {
    fn of(&self, what: Counted) -> u64 {
        match what {
            Counted::Entries => self.entries,
            Counted::Bytes => self.bytes,
            Counted::Tasks => self.tasks,
            Counted::Sessions | Counted::Locks => 0,
        }
    }

    /// What counted `before` counts `after` now.
    pub(in crate::machine) fn exchange(&mut self, before: Amount, after: Amount) {
        self.entries = moved(self.entries, before.entries, after.entries);
        self.bytes = moved(self.bytes, before.bytes, after.bytes);
        self.tasks = moved(self.tasks, before.tasks, after.tasks);
    }
}

impl<V: View> Applier<'_, V> {
    /// What holds for all quotas together.
    pub(in crate::machine) fn quota_state(&mut self) -> Result<QuotaState, Fault> {
        if let Some(state) = self.batch.known_quotas.state {
            return Ok(state);
        }
        let state = self.decoded(quota::STATE_KEY)?.unwrap_or_default();
        self.batch.known_quotas.state = Some(state);
        Ok(state)
    }

    pub(in crate::machine) fn put_quota_state(&mut self, state: QuotaState) -> Result<(), Fault> {
        let row = (state != QuotaState::default()).then(|| codec::encode(&state));
        self.overlay.replace(quota::STATE_KEY, row)?;
        self.batch.known_quotas.state = Some(state);
        Ok(())
    }

    /// The quotas of the prefixes of a name, the longest first. The last one up to the name, in order, is the longest around it or
    /// begins with that; so those around the name are among it and those around it.
    pub(in crate::machine) fn quotas_around(&mut self, name: &[u8]) -> Result<Arc<[Covering]>, Fault> {
        if self.quota_state()?.prefixes == 0 {
            return Ok(Arc::default());
        }
        // Before the look at what is at hand: what a batch takes does not depend on what was looked for before it.
        let known = self.batch.known_quotas.last.as_ref().filter(|(known, _)| known == name);
        let known = known.map(|(_, around)| Arc::clone(around));
        if known.is_none() || !Mutant::LooksAtHandAreFree.acts() {
            self.take_bytes(limits::LOOK_BYTES);
        }
        if let Some(around) = known {
            return Ok(around);
        }
        let (start, end) = quota::prefixes_up_to(name);
        let last = self.overlay.scan_page(&start, &end, true, Most::rows(1))?;
        let mut next = last.into_iter().next().map(|(row_key, _)| row_key);
        let mut around = Vec::new();
        while let Some(row_key) = next {
            let subject = quota::decode_key(&row_key).map_err(|error| Fault::row(&row_key, error))?;
            let row: Option<QuotaRow> = self.decoded(&row_key)?;
            let row = row.ok_or_else(|| Fault::Invariant(format!("no quota of {subject} around another")))?;
            if matches!(&subject, QuotaSubject::Prefix(prefix) if name.starts_with(prefix)) {
                around.push((subject, row.bounds));
            }
            next = row.parent.map(|parent| quota::row_key(&QuotaSubject::Prefix(parent)));
        }
        let around: Arc<[Covering]> = around.into();
        self.batch.known_quotas.last = Some((name.to_vec(), Arc::clone(&around)));
        Ok(around)
    }

    /// Whether so much more may be below the prefixes of a name.
    pub(in crate::machine) fn check_prefixes(&mut self, name: &[u8], more: Amount) -> Tried<()> {
        for (subject, bounds) in self.quotas_around(name)?.iter() {
            let used: PrefixUse = self.prefix_use(subject)?;
            if used.from.is_some() {
                continue;
            }
            for what in [Counted::Entries, Counted::Bytes, Counted::Tasks] {
                let (used, more) = (used.of(what), more.of(what));
                check(subject, true, (what, bounds.of(what)), used, more)?;
            }
        }
        Ok(())
    }

    /// Whether an entry of so many bytes may take the place of one of so many, or of none.
    pub(in crate::machine) fn check_entry(&mut self, key: &[u8], before: Option<usize>, after: usize) -> Tried<()> {
        let (before, after) = (Amount::of_entry(key, before), Amount::of_entry(key, Some(after)));
        let (entries, bytes) = (after.entries - before.entries, after.bytes.saturating_sub(before.bytes));
        self.check_prefixes(key, Amount { entries, bytes, tasks: 0 })
    }

    /// Counts for the prefixes of a name that something in the row `row_key` takes the place of something else.
    pub(in crate::machine) fn count_in_prefixes(
        &mut self,
        row_key: &[u8],
        name: &[u8],
        before: Amount,
        after: Amount,
    ) -> Result<(), Fault> {
        if Mutant::RemovalsStayInQuotas.acts() && after == Amount::default() {
            return Ok(());
        }
        if before == after {
            return Ok(());
        }
        for (subject, _) in self.quotas_around(name)?.iter() {
            let mut used = self.prefix_use(subject)?;
            if used.from.as_deref().is_none_or(|from| row_key < from) {
                used.exchange(before, after);
                self.put_prefix_use(subject, &used)?;
            }
        }
        Ok(())
    }

    /// What is counted for a prefix with a quota.
    pub(in crate::machine) fn prefix_use(&mut self, subject: &QuotaSubject) -> Result<PrefixUse, Fault> {
        let row_key = quota::use_key(subject);
        match self.overlay.get(&row_key)? {
            Some(row) => codec::decode(row).map_err(|error| Fault::row(&row_key, error)),
            None => Err(Fault::Invariant(format!("nothing is counted for the quota of {subject}"))),
        }
    }

    pub(in crate::machine) fn put_prefix_use(&mut self, subject: &QuotaSubject, used: &PrefixUse) -> Result<(), Fault> {
        self.overlay.replace(&quota::use_key(subject), Some(codec::encode(used))).map(drop)
    }

    /// Whether a principal may have one more of this. Without authentication there is nobody to bound.
    pub(in crate::machine) fn check_principal(&mut self, principal: &str, what: Counted) -> Tried<()> {
        if principal.is_empty() {
            return Ok(());
        }
        let subject = QuotaSubject::Principal(principal.to_owned());
        let own: Option<QuotaRow> = self.decoded(&quota::row_key(&subject))?;
        let is_own = own.is_some();
        let bounds = match own {
            Some(row) => row.bounds,
            None => {
                let usual: Option<QuotaRow> = self.decoded(&quota::row_key(&QuotaSubject::Default))?;
                usual.map_or(QuotaBounds::USUAL, |row| row.bounds)
            }
        };
        let used: PrincipalUse = self.decoded(&quota::use_key(&subject))?.unwrap_or_default();
        let used = if what == Counted::Sessions { used.sessions } else { used.locks };
        Ok(check(&subject, is_own, (what, bounds.of(what)), used, 1)?)
    }

    /// Counts for the principal of a session that this changes: how many sessions and places in locks it had, and has now.
    pub(in crate::machine) fn count_for_principal(
        &mut self,
        principal: &str,
        before: PrincipalUse,
        mut after: PrincipalUse,
    ) -> Result<(), Fault> {
        if principal.is_empty() {
            return Ok(());
        }
        if Mutant::LocksStayWithTheirPrincipal.acts() {
            after.locks = after.locks.max(before.locks);
        }
        let row_key = quota::use_key(&QuotaSubject::Principal(principal.to_owned()));
        let mut used: PrincipalUse = self.decoded(&row_key)?.unwrap_or_default();
        used.sessions = moved(used.sessions, before.sessions, after.sessions);
        used.locks = moved(used.locks, before.locks, after.locks);
        let row = (used != PrincipalUse::default()).then(|| codec::encode(&used));
        self.overlay.replace(&row_key, row).map(drop)
    }
}

/// Whether so much more is within a bound.
fn check(
    subject: &QuotaSubject,
    is_own: bool,
    (what, bound): (Counted, Option<u64>),
    used: u64,
    more: u64,
) -> Result<(), Rejection> {
    match bound {
        Some(bound) if more > 0 && used.saturating_add(more) > bound => {
            let subject = subject.clone();
            Err(Rejection::BeyondQuota(Box::new(BeyondQuota { subject, is_own, what, bound, used })))
        }
        _ => Ok(()),
    }
}

/// A sum that is wrong ends no node: it is taken for 0, and told by `check`.
fn moved(sum: u64, less: u64, more: u64) -> u64 {
    debug_assert!(sum.saturating_add(more) >= less, "what is taken away was counted when it came: {less} of {sum}");
    sum.saturating_add(more).saturating_sub(less)
}
