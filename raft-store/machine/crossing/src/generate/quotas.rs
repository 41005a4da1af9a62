//! Quotas: of prefixes that keys and the queue have, of the one principal, and of all others.

use quorate_machine::types::{QuotaBounds, QuotaOp, QuotaSubject};

use super::Generator;
use crate::names;

/// Prefixes within each other, one that only the queue has, one of nothing and one of two keys that lie beside each other.
const PREFIXES: [&str; 7] = ["a", "c/", "c/1", "c/2/", "q", "e/", "d"];

impl Generator<'_> {
    /// About a quota.
    pub(super) fn quota(&mut self) -> QuotaOp {
        let subject = match self.chance.weighted(&[10, 25, 65]) {
            0 => QuotaSubject::Default,
            1 => QuotaSubject::Principal(names::user(0).as_str().to_owned()),
            _ => QuotaSubject::Prefix(self.chance.pick(&PREFIXES).as_bytes().to_vec()),
        };
        if self.chance.percent(35) {
            return QuotaOp::Remove(subject);
        }
        let of_prefix = matches!(subject, QuotaSubject::Prefix(_)) != self.chance.percent(3);
        let bounds = match of_prefix {
            true => QuotaBounds {
                entries: *self.chance.pick(&[None, None, Some(0), Some(1), Some(2)]),
                bytes: *self.chance.pick(&[None, None, Some(60), Some(200)]),
                tasks: *self.chance.pick(&[None, None, Some(0), Some(1), Some(3)]),
                ..QuotaBounds::default()
            },
            false => QuotaBounds {
                sessions: *self.chance.pick(&[None, None, Some(1), Some(2)]),
                locks: *self.chance.pick(&[None, Some(0), Some(1), Some(2)]),
                ..QuotaBounds::default()
            },
        };
        QuotaOp::Set { subject, bounds }
    }
}
