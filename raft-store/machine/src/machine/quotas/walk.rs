//! Counting what was there before it was counted: what a prefix had before its quota.
//!
//! Owns the walk, a few rows a step as the leader proposes them. What is before the place that a walk has come to counts as if it
//! had always been counted; what is behind it does not yet. Never refuses anything.

use super::counts::Amount;
use crate::codec;
use crate::keyspace::quota;
use crate::keyspace::session::{self, AttachedKind};
use crate::keyspace::task::TaskRow;
use crate::keyspace::{entry, family, task};
use crate::limits;
use crate::machine::Applier;
use crate::machine::upkeep::maintain::maintained;
use crate::machine::view::{Fault, View};
use crate::mutants::Mutant;
use crate::types::{Outcome, PrefixUse, QuotaState, QuotaSubject, TaskState};

/// Most rows of a prefix that are counted in one step.
const ROWS: usize = 1_024;

/// How many of the things that hang on a session are places in locks.
pub(in crate::machine) fn locks_among<'a>(attached: impl Iterator<Item = &'a [u8]>) -> u64 {
    attached.filter(|row_key| matches!(session::decode_attached(row_key), Ok((_, AttachedKind::Lock, _)))).count()
        as u64
}

impl<V: View> Applier<'_, V> {
    /// Goes on with the counting of what was there before it was counted; nothing where that is done.
    pub(in crate::machine) fn count_step(&mut self) -> Result<Outcome, Fault> {
        match self.quota_state()?.counting {
            0 => Ok(maintained(0, false)),
            _ => count_prefix(self),
        }
    }
}

/// Counts the next rows of the first prefix that is not counted yet.
fn count_prefix<V: View>(applier: &mut Applier<'_, V>) -> Result<Outcome, Fault> {
    let (start, end) = quota::uses_of_prefixes();
    let uses = applier.overlay.scan(&start, &end, limits::PREFIX_QUOTAS_MAX as usize)?;
    let mut state = applier.quota_state()?;
    for (row_key, row) in uses {
        let damaged = |error| Fault::row(&row_key, error);
        let mut used: PrefixUse = codec::decode(&row).map_err(damaged)?;
        let Some(from) = used.from.take() else { continue };
        let subject = quota::decode_use_key(&row_key).map_err(damaged)?;
        let QuotaSubject::Prefix(prefix) = &subject else {
            return Err(Fault::Invariant(format!("{subject} is counted like a prefix")));
        };
        let counted;
        (counted, used.from) = count_rows(applier, prefix, from, &mut used)?;
        if used.from.is_none() {
            state.counting = state.counting.saturating_sub(1);
            applier.put_quota_state(state)?;
        }
        applier.put_prefix_use(&subject, &used)?;
        // A step that found the end of what there is did something, too.
        return Ok(maintained(counted.max(1), state.has_work()));
    }
    // Nothing is left, whatever was noted.
    applier.put_quota_state(QuotaState { counting: 0, ..state })?;
    Ok(maintained(0, false))
}

/// Counts rows from a place on, until there are as many as one step counts. Gives how many, and where to go on.
fn count_rows<V: View>(
    applier: &mut Applier<'_, V>,
    prefix: &[u8],
    from: Vec<u8>,
    used: &mut PrefixUse,
) -> Result<(usize, Option<Vec<u8>>), Fault> {
    let [entries, tasks] = quota::counted_rows(prefix);
    let (range, next) = if from < entries.1 { (entries, Some(tasks.0)) } else { (tasks, None) };
    let page = applier.overlay.scan_page(&from.max(range.0), &range.1, false, applier.bounds.page(ROWS))?;
    let mut place = None;
    for (row_key, row) in &page {
        applier.take_bytes(row.len());
        if !Mutant::QuotasCountFromNowOn.acts() {
            used.exchange(Amount::default(), amount_of_row(row_key, row)?);
        }
        place = Some([row_key.as_slice(), &[0]].concat());
    }
    Ok((page.len(), if page.is_empty() { next } else { place }))
}

/// How much the row of an entry or a task counts.
fn amount_of_row(row_key: &[u8], row: &[u8]) -> Result<Amount, Fault> {
    let damaged = |error| Fault::row(row_key, error);
    if row_key.first() == Some(&family::ENTRY) {
        return Ok(Amount::of_entry(entry::decode_key(row_key).map_err(damaged)?, Some(row.len())));
    }
    let (_, id) = task::decode_key(row_key).map_err(damaged)?;
    let task: TaskRow = codec::decode(row).map_err(damaged)?;
    Ok(amount_of_task(id.as_str(), Some((&task.head.state, row.len()))))
}

/// How much a task in this state counts, whose row has so many bytes; nothing where there is none.
pub(in crate::machine) fn amount_of_task(id: &str, task: Option<(&TaskState, usize)>) -> Amount {
    let Some((state, bytes)) = task else { return Amount::default() };
    let is_open = !matches!(state, TaskState::Done { .. });
    Amount { entries: 0, bytes: (id.len() + bytes) as u64, tasks: u64::from(is_open) }
}
