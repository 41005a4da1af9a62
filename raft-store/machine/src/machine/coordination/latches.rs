//! Latches: something that happens once, after so many counts.
//!
//! Owns when a latch opens. An open one stays open until it is removed.

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::gates;
use crate::limits;
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::types::{LatchOp, LatchRow, Name, Outcome, Rejection, Waker};

impl<V: View> Applier<'_, V> {
    /// Makes, counts down or removes a latch.
    pub(in crate::machine) fn latch(&mut self, op: &LatchOp, caller: Caller) -> Result<Outcome, Fault> {
        let (LatchOp::Create { name, .. } | LatchOp::CountDown { name, .. } | LatchOp::Remove { name }) = op;
        let before = self.latch_row(name)?;
        let key = Some(Waker::Latch.of(name.as_str()));
        let after = match latch_after(op, before) {
            Ok(after) => after,
            Err(rejection) => return Ok(self.refuse_in(AuditOp::Latch, key, caller, rejection)),
        };
        if after == before {
            return Ok(Outcome::Latch(after));
        }
        self.take_revision()?;
        let revision = self.vars.revision;
        let opened = |row: LatchRow| LatchRow { opened: (row.left == 0).then_some(revision), ..row };
        let after = after.map(|row| if row.opened.is_some() { row } else { opened(row) });
        self.overlay.replace(&gates::latch_key(name), after.as_ref().map(codec::encode))?;
        self.record(AuditOp::Latch, key, caller, AuditEffect::Beside);
        self.wake(Waker::Latch.of(name.as_str()));
        Ok(Outcome::Latch(after))
    }

    fn latch_row(&self, name: &Name) -> Result<Option<LatchRow>, Fault> {
        self.decoded(&gates::latch_key(name))
    }
}

/// What a latch is after an operation.
fn latch_after(op: &LatchOp, before: Option<LatchRow>) -> Result<Option<LatchRow>, Rejection> {
    match (op, before) {
        (LatchOp::Create { count, .. }, _) if !(1..=limits::LATCH_COUNT_MAX).contains(count) => {
            let why = format!("a latch of {count} counts; 1 to {} are possible", limits::LATCH_COUNT_MAX);
            Err(Rejection::Unsupported(why))
        }
        (LatchOp::Create { count, .. }, None) => Ok(Some(LatchRow { count: *count, left: *count, opened: None })),
        (LatchOp::Create { count, .. }, Some(row)) if row.count == *count => Ok(Some(row)),
        (LatchOp::Create { .. }, Some(row)) => Err(Rejection::OtherNumber(row.count)),
        (LatchOp::CountDown { by: 0, .. }, _) => Err(Rejection::Unsupported("a latch counted down by 0".into())),
        (LatchOp::CountDown { .. } | LatchOp::Remove { .. }, None) => Err(Rejection::NotFound),
        (LatchOp::CountDown { by, .. }, Some(row)) => Ok(Some(LatchRow { left: row.left.saturating_sub(*by), ..row })),
        (LatchOp::Remove { .. }, Some(_)) => Ok(None),
    }
}
