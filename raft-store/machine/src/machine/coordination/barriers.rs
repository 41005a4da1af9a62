//! Barriers: so many sessions go on together, and are done together.
//!
//! Owns when a barrier opens and closes.

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::gates;
use crate::keyspace::session::{self, AttachedKind};
use crate::limits;
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::types::{BarrierOp, BarrierRow, Name, Outcome, Rejection, SessionId, Waker};

impl<V: View> Applier<'_, V> {
    /// Enters or leaves a barrier.
    pub(in crate::machine) fn barrier(&mut self, op: &BarrierOp, caller: Caller) -> Result<Outcome, Fault> {
        let (name, tried) = match op {
            BarrierOp::Enter { name, session, parties } => (name, self.enter_barrier(name, *session, *parties)),
            BarrierOp::Leave { name, session } => (name, Ok(self.leave_if_in(name, *session)?)),
        };
        let key = Some(Waker::Barrier.of(name.as_str()));
        match split(tried)? {
            Ok(is_changed) => {
                if is_changed {
                    self.record(AuditOp::Barrier, key, caller, AuditEffect::Beside);
                }
                Ok(Outcome::Barrier(self.barrier_row(name)?))
            }
            Err(rejection) => Ok(self.refuse_in(AuditOp::Barrier, key, caller, rejection)),
        }
    }

    /// Enters, unless the session is in it already. Gives whether that changed anything.
    fn enter_barrier(&mut self, name: &Name, session: SessionId, parties: u32) -> Tried<bool> {
        if !(1..=limits::BARRIER_PARTIES_MAX).contains(&parties) {
            let why = format!("a barrier of {parties} parties; 1 to {} are possible", limits::BARRIER_PARTIES_MAX);
            return Err(Rejection::Unsupported(why).into());
        }
        if self.session_row(session)?.is_none() {
            return Err(Rejection::SessionExpired(session).into());
        }
        let row = self.barrier_row(name)?;
        let mut row = row.unwrap_or(BarrierRow { parties, entered: 0, opened: None });
        if row.parties != parties {
            return Err(Rejection::OtherNumber(row.parties.into()).into());
        }
        if self.is_in(name, session)? {
            return Ok(false);
        }
        if row.opened.is_some() {
            return Err(Rejection::BarrierOpen.into());
        }
        self.check_session(session)?;
        self.take_revision()?;
        self.attach(session, AttachedKind::Barrier, name.as_str().as_bytes(), Vec::new())?;
        row.entered += 1;
        row.opened = (row.entered == row.parties).then_some(self.vars.revision);
        self.put_barrier(name, Some(&row))?;
        Ok(true)
    }

    fn leave_if_in(&mut self, name: &Name, session: SessionId) -> Result<bool, Fault> {
        let is_in = self.is_in(name, session)?;
        if is_in {
            self.take_revision()?;
            self.leave_barrier(name, session)?;
        }
        Ok(is_in)
    }

    /// Takes a session that is in a barrier out of it, within a revision that was taken.
    pub(in crate::machine) fn leave_barrier(&mut self, name: &Name, session: SessionId) -> Result<(), Fault> {
        self.detach(session, AttachedKind::Barrier, name.as_str().as_bytes())?;
        let row = self.barrier_row(name)?;
        let mut row = row.ok_or_else(|| Fault::Invariant(format!("session {session} is in no barrier {name}")))?;
        row.entered -= 1;
        self.put_barrier(name, Some(&row).filter(|row| row.entered > 0))
    }

    fn is_in(&self, name: &Name, session: SessionId) -> Result<bool, Fault> {
        let row_key = session::attached_key(session, AttachedKind::Barrier, name.as_str().as_bytes());
        Ok(self.overlay.peek(&row_key)?.is_some())
    }

    fn barrier_row(&self, name: &Name) -> Result<Option<BarrierRow>, Fault> {
        self.decoded(&gates::barrier_key(name))
    }

    fn put_barrier(&mut self, name: &Name, row: Option<&BarrierRow>) -> Result<(), Fault> {
        assert!(row.is_none_or(|row| row.entered <= row.parties), "more in barrier {name} than fit: {row:?}");
        self.overlay.replace(&gates::barrier_key(name), row.map(codec::encode))?;
        self.wake(Waker::Barrier.of(name.as_str()));
        Ok(())
    }
}
