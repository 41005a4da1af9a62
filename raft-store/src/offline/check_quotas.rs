//! Counting anew what quotas count.
//!
//! Owns that the sums say what there is, of all rows that they are said to count. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec;
use quorate_machine::keyspace::session::{self, AttachedKind, SessionRow};
use quorate_machine::keyspace::task::{self, TaskRow};
use quorate_machine::keyspace::{entry, family, family_range, quota};
use quorate_machine::query::StateFault;
use quorate_machine::types::{PrefixUse, PrincipalUse, QuotaSubject, SessionId, TaskState};
use rocksdb::DB;

use crate::state::rocks_fault;

/// What is found for each subject, while the rows go by in their order.
#[derive(Debug, Default)]
pub(super) struct QuotaCounts {
    /// What is said of each prefix, and what is found.
    prefixes: BTreeMap<Vec<u8>, (PrefixUse, PrefixUse)>,
    /// How long they are.
    lengths: BTreeSet<usize>,
    said: BTreeMap<String, PrincipalUse>,
    found: BTreeMap<String, PrincipalUse>,
    /// Whose each session is, as long as what hangs on it may follow.
    owners: BTreeMap<SessionId, String>,
}

impl QuotaCounts {
    /// Reads what is said; rows that cannot be decoded are told when they come.
    pub(super) fn begin(rocks: &DB) -> Result<Self, StateFault> {
        let mut counts = Self::default();
        let (start, end) = family_range(family::QUOTA_USE);
        let mut rows = rocks.raw_iterator();
        rows.seek(&start);
        while let Some((row_key, value)) = rows.item().filter(|(row_key, _)| **row_key < *end) {
            match quota::decode_use_key(row_key) {
                Ok(QuotaSubject::Prefix(prefix)) => {
                    if let Ok(said) = codec::decode::<PrefixUse>(value) {
                        let found = PrefixUse { from: said.from.clone(), ..PrefixUse::default() };
                        counts.lengths.insert(prefix.len());
                        counts.prefixes.insert(prefix, (said, found));
                    }
                }
                Ok(QuotaSubject::Principal(name)) => {
                    if let Ok(said) = codec::decode(value) {
                        counts.said.insert(name, said);
                    }
                }
                Ok(QuotaSubject::Default) | Err(_) => {}
            }
            rows.next();
        }
        rows.status().map_err(rocks_fault)?;
        Ok(counts)
    }

    /// Counts a row.
    pub(super) fn row(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        match row_key.first().copied().unwrap_or_default() {
            family::ENTRY if !self.prefixes.is_empty() => {
                let key = entry::decode_key(row_key)?;
                self.count(row_key, key, |found| {
                    found.entries += 1;
                    found.bytes += (key.len() + value.len()) as u64;
                });
            }
            family::TASK if !self.prefixes.is_empty() => {
                let ((queue, id), row) = (task::decode_key(row_key)?, codec::decode::<TaskRow>(value)?);
                let is_open = !matches!(row.head.state, TaskState::Done { .. });
                self.count(row_key, queue.as_str().as_bytes(), |found| {
                    found.tasks += u64::from(is_open);
                    found.bytes += (id.as_str().len() + value.len()) as u64;
                });
            }
            family::SESSION => {
                let (id, row) = (session::decode_key(row_key)?, codec::decode::<SessionRow>(value)?);
                if !row.principal.is_empty() {
                    self.found.entry(row.principal.clone()).or_default().sessions += 1;
                    self.owners.insert(id, row.principal);
                }
            }
            family::ATTACHED => {
                let (id, kind, _) = session::decode_attached(row_key)?;
                if let Some(owner) = self.owners.get(&id).filter(|_| kind == AttachedKind::Lock) {
                    self.found.entry(owner.clone()).or_default().locks += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, row_key: &[u8], name: &[u8], add: impl Fn(&mut PrefixUse)) {
        for length in self.lengths.range(..=name.len()) {
            if let Some((said, found)) = self.prefixes.get_mut(&name[..*length])
                && said.from.as_deref().is_none_or(|from| row_key < from)
            {
                add(found);
            }
        }
    }

    /// What differs, once all rows went by.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (prefix, (said, found)) in &self.prefixes {
            if said != found {
                faults.push(format!("the quota of {} counts {said:?}, there is {found:?}", prefix.escape_ascii()));
            }
        }
        if self.said != self.found {
            faults.push(format!("principals are said to have {:?}, they have {:?}", self.said, self.found));
        }
        faults
    }
}
