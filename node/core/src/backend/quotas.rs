//! What the HTTP layer asks of the node about quotas.
//!
//! Owns the trait and its implementation by the real [`App`]. Never says whether something is beyond one.

use quorate_machine::query::{Page, QuotaRead};
use quorate_store::types::QuotaSubject;

use super::Seen;
use crate::app::App;

/// Quotas as the HTTP API sees them. See `StateReader` for what each method promises.
pub trait Quotas {
    /// Reads the quota of somebody; `None` for a prefix without one.
    fn quota(&self, subject: &QuotaSubject) -> Seen<Option<QuotaRead>>;
    /// Lists principals with a quota of their own, or that use something. May take long: runs on a blocking thread.
    fn principal_quotas(&self, after: Option<&str>, limit: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>>;
    /// Lists prefixes with a quota. May take long: runs on a blocking thread.
    fn prefix_quotas(&self, after: Option<&[u8]>, limit: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>>;
}

impl Quotas for App {
    fn quota(&self, subject: &QuotaSubject) -> Seen<Option<QuotaRead>> {
        self.state().quota(subject)
    }

    fn principal_quotas(&self, after: Option<&str>, limit: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>> {
        self.state().principal_quotas(after, limit)
    }

    fn prefix_quotas(&self, after: Option<&[u8]>, limit: usize) -> Seen<Page<(QuotaSubject, QuotaRead)>> {
        self.state().prefix_quotas(after, limit)
    }
}
