//! Bulks: many writes in one command, each on its own.
//!
//! Owns how far a bulk goes in one batch. What each write means is `write`'s.

use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::limits;
use crate::machine::stop::split;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::types::{BulkItem, ItemOutcome, Outcome, Rejection, WriteOp};

impl<V: View> Applier<'_, V> {
    /// Carries out the writes in order, until the batch has taken all that it may; the first one always.
    pub(in crate::machine) fn bulk(&mut self, ops: Vec<WriteOp>, caller: Caller) -> Result<Outcome, Fault> {
        if ops.len() > limits::COMMAND_WRITES_MAX {
            let (given, max) = (ops.len(), limits::COMMAND_WRITES_MAX);
            let rejection = Rejection::Unsupported(format!("a bulk of {given} writes; at most {max}"));
            self.record(AuditOp::Unknown, None, caller, AuditEffect::Refused((&rejection).into()));
            return Ok(Outcome::Rejected(rejection));
        }
        let mut items = Vec::with_capacity(ops.len());
        for op in ops {
            let outcome = if self.has_taken_all() { ItemOutcome::Deferred } else { self.item(op, caller.clone())? };
            items.push(BulkItem { revision: self.vars.revision, outcome });
        }
        Ok(Outcome::Bulk(items))
    }

    fn item(&mut self, op: WriteOp, caller: Caller) -> Result<ItemOutcome, Fault> {
        self.begin_steps();
        let outcome = match split(self.write(op, caller))? {
            Ok(written) => ItemOutcome::Written(written),
            Err(rejection) => ItemOutcome::Rejected(rejection),
        };
        self.take_bytes(outcome.value_bytes());
        self.take_bytes(outcome.detail_bytes());
        Ok(outcome)
    }
}
