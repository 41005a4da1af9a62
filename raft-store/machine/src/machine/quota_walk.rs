//! Counting what was there before it was counted: sessions of before the feature level, and what a prefix had before its quota.
//!
//! Owns the walks, a few rows a step as the leader proposes them. What is before the place that a walk has come to counts as if it
//! had always been counted; what is behind it does not yet. Never refuses anything.

use super::Applier;
use super::maintain::maintained;
use super::quota_counts::Amount;
use super::view::{Fault, View};
use crate::codec;
use crate::keyspace::quota;
use crate::keyspace::session::{self, AttachedKind, SessionRow};
use crate::keyspace::task::TaskRow;
use crate::keyspace::{entry, family, family_range, task};
use crate::limits;
use crate::mutants;
use crate::types::{Outcome, PrefixUse, PrincipalUse, QuotaState, QuotaSubject, SessionId, TaskState};

/// Sessions that are counted in one step.
const SESSIONS: usize = 64;

/// Most rows of a prefix that are counted in one step.
const ROWS: usize = 1_024;

/// Counts the next sessions for their principals.
pub(super) fn count_sessions<V: View>(applier: &mut Applier<'_, V>, from: SessionId) -> Result<Outcome, Fault> {
    let (_, end) = family_range(family::SESSION);
    let sessions = applier.overlay.scan(&session::row_key(from), &end, SESSIONS)?;
    let mut counted = 0;
    for (row_key, row) in &sessions {
        if counted > 0 && applier.has_taken_all() {
            break;
        }
        let id = session::decode_key(row_key).map_err(|error| Fault::row(row_key, error))?;
        // From here on it is one that is counted.
        let next = Some(SessionId(id.0.saturating_add(1)));
        let state = QuotaState { sessions_from: next, ..applier.quota_state()? };
        applier.put_quota_state(state)?;
        match applier.at_savepoint(|applier| count_session(applier, id, row))? {
            Ok(()) => {}
            Err(fault) => applier.note_contained(row_key, fault),
        }
        // What was taken back was not that it is its turn no more.
        applier.put_quota_state(state)?;
        counted += 1;
    }
    let is_done = counted == sessions.len() && counted < SESSIONS;
    if is_done {
        let state = applier.quota_state()?;
        applier.put_quota_state(QuotaState { sessions_from: None, ..state })?;
    }
    Ok(maintained(counted, !is_done))
}

fn count_session<V: View>(applier: &mut Applier<'_, V>, id: SessionId, row: &[u8]) -> Result<(), Fault> {
    let row: SessionRow = codec::decode(row).map_err(|error| Fault::row(&session::row_key(id), error))?;
    let (start, end) = session::attached_to(id);
    let attached = applier.overlay.scan(&start, &end, usize::MAX)?;
    applier.take_bytes(attached.iter().map(|(row_key, value)| row_key.len() + value.len()).sum());
    let locks = locks_among(attached.iter().map(|(row_key, _)| row_key.as_slice()));
    applier.count_for_principal(id, &row.principal, PrincipalUse::default(), PrincipalUse { sessions: 1, locks })
}

/// How many of the things that hang on a session are places in locks.
pub(super) fn locks_among<'a>(attached: impl Iterator<Item = &'a [u8]>) -> u64 {
    attached.filter(|row_key| matches!(session::decode_attached(row_key), Ok((_, AttachedKind::Lock, _)))).count()
        as u64
}

/// Counts the next rows of the first prefix that is not counted yet.
pub(super) fn count_prefix<V: View>(applier: &mut Applier<'_, V>) -> Result<Outcome, Fault> {
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
        if !mutants::is("quotas count from now on") {
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
pub(super) fn amount_of_task(id: &str, task: Option<(&TaskState, usize)>) -> Amount {
    let Some((state, bytes)) = task else { return Amount::default() };
    let is_open = !matches!(state, TaskState::Done { .. });
    Amount { entries: 0, bytes: (id.len() + bytes) as u64, tasks: u64::from(is_open) }
}
