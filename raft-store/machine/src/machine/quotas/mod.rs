//! Quotas: what setting and removing them does.
//!
//! Owns the rows of quotas, and the nesting of their prefixes. `counts` decides what counts against one.
//!
//! Golden scripts, in `testscripts/machine`: `quotas`, `quotas_of_principals`.

pub(super) mod counts;
pub(super) mod walk;

use super::stop::{Stop, Tried, split};
use super::view::{Fault, View};
use super::{Applier, Caller};
use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::quota;
use crate::limits;
use crate::mutants::Mutant;
use crate::types::{Bounded, Outcome, PrefixUse, QuotaBounds, QuotaOp, QuotaRow, QuotaState, QuotaSubject, Rejection};
use counts::KnownQuotas;

/// Something that is not refused: the row as it is now, and whether that is a change.
type Done = (Option<QuotaRow>, bool);

/// Rows with their keys, as they are.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

impl<V: View> Applier<'_, V> {
    /// Sets or removes a quota.
    pub(super) fn set_quota(&mut self, op: QuotaOp, caller: Caller) -> Result<Outcome, Fault> {
        let key = op.subject().audit_key();
        let audit = match &op {
            QuotaOp::Set { .. } => AuditOp::QuotaSet,
            QuotaOp::Remove(_) => AuditOp::QuotaRemove,
        };
        let tried = match op {
            QuotaOp::Set { subject, bounds } => self.put_quota(&subject, bounds),
            QuotaOp::Remove(subject) => self.remove_quota(&subject),
        };
        Ok(match split(tried)? {
            Err(rejection) => self.refuse_in(audit, Some(key), caller, rejection),
            Ok((row, is_change)) => {
                if is_change {
                    self.take_revision()?;
                    self.record(audit, Some(key), caller, AuditEffect::Beside);
                    if !Mutant::QuotasOutliveTheirChange.acts() {
                        self.batch.known_quotas = KnownQuotas::default();
                    }
                }
                Outcome::Quota(row.map(Box::new))
            }
        })
    }

    fn put_quota(&mut self, subject: &QuotaSubject, bounds: QuotaBounds) -> Tried<Done> {
        if let Some(why) = quota_fault(subject, &bounds) {
            return Err(Rejection::Unsupported(why).into());
        }
        let row_key = quota::row_key(subject);
        let before: Option<QuotaRow> = self.decoded(&row_key)?;
        let (revision, wall) = (self.next_revision()?, self.vars.wall);
        let row = match before {
            Some(row) if row.bounds == bounds => return Ok((Some(row), false)),
            Some(row) => QuotaRow { bounds, revision, ..row },
            None => {
                self.count_quota(subject)?;
                let parent = self.enter_prefix(subject)?;
                QuotaRow { bounds, parent, created: wall, revision }
            }
        };
        self.overlay.replace(&row_key, Some(codec::encode(&row)))?;
        Ok((Some(row), true))
    }

    /// Counts one more quota, if there may be one.
    fn count_quota(&mut self, subject: &QuotaSubject) -> Tried<()> {
        let mut state = self.quota_state()?;
        let full = |what, limit: u64| Err(Stop::Rejected(Rejection::TooMany { what, limit }));
        match subject {
            QuotaSubject::Default => return Ok(()),
            QuotaSubject::Principal(_) if state.principals >= limits::PRINCIPAL_QUOTAS_MAX => {
                return full(Bounded::PrincipalQuotas, limits::PRINCIPAL_QUOTAS_MAX.into());
            }
            QuotaSubject::Principal(_) => state.principals += 1,
            QuotaSubject::Prefix(_) if state.prefixes >= limits::PREFIX_QUOTAS_MAX => {
                return full(Bounded::PrefixQuotas, limits::PREFIX_QUOTAS_MAX.into());
            }
            QuotaSubject::Prefix(prefix) => {
                let depth = self.quotas_around(prefix)?.len() + 1 + self.deepest_within(prefix)?;
                if depth > limits::NESTED_QUOTAS_MAX {
                    return full(Bounded::NestedQuotas, limits::NESTED_QUOTAS_MAX as u64);
                }
                state.prefixes += 1;
                state.counting += 1;
            }
        }
        self.put_quota_state(state)?;
        Ok(())
    }

    /// Begins to count for a prefix, and takes its place among the others. Gives the one around it.
    fn enter_prefix(&mut self, subject: &QuotaSubject) -> Result<Option<Vec<u8>>, Fault> {
        let QuotaSubject::Prefix(prefix) = subject else { return Ok(None) };
        // The count was raised just now, and there may have been none before.
        self.batch.known_quotas.last = None;
        let around = self.quotas_around(prefix)?.first().cloned();
        let parent = around.and_then(|(subject, _)| match subject {
            QuotaSubject::Prefix(parent) => Some(parent),
            QuotaSubject::Default | QuotaSubject::Principal(_) => None,
        });
        self.move_children(prefix, parent.as_ref(), Some(prefix))?;
        let [(start, _), _] = quota::counted_rows(prefix);
        self.put_prefix_use(subject, &PrefixUse { from: Some(start), ..PrefixUse::default() })?;
        Ok(parent)
    }

    /// The quotas within a prefix that have this one around them get another.
    fn move_children(&mut self, prefix: &[u8], from: Option<&Vec<u8>>, to: Option<&Vec<u8>>) -> Result<(), Fault> {
        for (row_key, row) in self.quotas_within(prefix)? {
            let mut row: QuotaRow = codec::decode(&row).map_err(|error| Fault::row(&row_key, error))?;
            if row.parent.as_ref() == from {
                row.parent = to.cloned();
                self.overlay.replace(&row_key, Some(codec::encode(&row)))?;
            }
        }
        Ok(())
    }

    /// How many quotas lie in each other within a prefix, at most.
    fn deepest_within(&mut self, prefix: &[u8]) -> Result<usize, Fault> {
        let (mut around, mut deepest) = (Vec::<Vec<u8>>::new(), 0);
        for (row_key, _) in self.quotas_within(prefix)? {
            while around.last().is_some_and(|last| !row_key.starts_with(last)) {
                around.pop();
            }
            around.push(row_key);
            deepest = deepest.max(around.len());
        }
        Ok(deepest)
    }

    /// The rows of the quotas of longer prefixes that begin with this one, in order.
    fn quotas_within(&mut self, prefix: &[u8]) -> Result<Rows, Fault> {
        let (start, end) = quota::prefixes_within(prefix);
        let mut rows = self.overlay.scan(&start, &end, limits::PREFIX_QUOTAS_MAX as usize)?;
        rows.retain(|(row_key, _)| *row_key != start);
        self.take_bytes(rows.iter().map(|(row_key, row)| row_key.len() + row.len()).sum());
        Ok(rows)
    }

    fn remove_quota(&mut self, subject: &QuotaSubject) -> Tried<Done> {
        let row_key = quota::row_key(subject);
        let row = self.decoded::<QuotaRow>(&row_key)?.ok_or(Rejection::NotFound)?;
        let mut state: QuotaState = self.quota_state()?;
        match subject {
            QuotaSubject::Default => {}
            QuotaSubject::Principal(_) => state.principals = state.principals.saturating_sub(1),
            QuotaSubject::Prefix(prefix) => {
                let is_counting = self.prefix_use(subject)?.from.is_some();
                state.counting = state.counting.saturating_sub(u32::from(is_counting));
                state.prefixes = state.prefixes.saturating_sub(1);
                self.move_children(prefix, Some(prefix), row.parent.as_ref())?;
                self.overlay.take(&quota::use_key(subject))?;
            }
        }
        self.put_quota_state(state)?;
        self.overlay.take(&row_key)?;
        Ok((None, true))
    }
}

/// What is wrong with a quota whatever the state. The texts are kept in the request table, so they are replicated state.
fn quota_fault(subject: &QuotaSubject, bounds: &QuotaBounds) -> Option<String> {
    let of_principals = bounds.sessions.is_some() || bounds.locks.is_some();
    let of_prefixes = bounds.entries.is_some() || bounds.bytes.is_some() || bounds.tasks.is_some();
    match subject {
        QuotaSubject::Principal(name) if !(1..=limits::ACCESS_NAME_BYTES_MAX).contains(&name.len()) => {
            Some(format!("a principal has 1 to {} bytes, this one {}", limits::ACCESS_NAME_BYTES_MAX, name.len()))
        }
        QuotaSubject::Prefix(prefix) if !(1..=limits::KEY_BYTES_MAX).contains(&prefix.len()) => {
            Some(format!("a prefix has 1 to {} bytes, this one {}", limits::KEY_BYTES_MAX, prefix.len()))
        }
        QuotaSubject::Default | QuotaSubject::Principal(_) if of_prefixes => {
            Some("entries, bytes and tasks are counted by prefix, not by principal".into())
        }
        QuotaSubject::Prefix(_) if of_principals => {
            Some("sessions and locks are counted by principal, not by prefix".into())
        }
        _ => None,
    }
}
