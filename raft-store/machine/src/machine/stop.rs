//! What ends something before it is done: a refusal, which is an answer, or a fault, which is none.
//!
//! Owns the one error that both are on their way up, so that `?` hands them on, and that they part again before anything is
//! made of them. Never decides what that is: who takes them apart records the refusal, and lets the fault go on.

use super::view::Fault;
use crate::types::{Rejection, StepRejected};

/// Why something was not done. What is rejected may say where in the command that was.
#[derive(Debug)]
pub(super) enum Stop<R = Rejection> {
    /// It may not be done: that is what the command is answered.
    Rejected(R),
    /// Whether it may be done is not known, or it could not be.
    Fault(Fault),
}

/// What something comes to that may be refused. What can only fault says so by its type.
pub(super) type Tried<T> = Result<T, Stop>;

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Box<StepRejected>> for Stop<Box<StepRejected>> {
    fn from(rejected: Box<StepRejected>) -> Self {
        Self::Rejected(rejected)
    }
}

impl<R> From<Fault> for Stop<R> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Takes a refusal apart from a fault: it is the inner error, for whoever makes an answer of it.
pub(super) fn split<T, R>(tried: Result<T, Stop<R>>) -> Result<Result<T, R>, Fault> {
    match tried {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Rejected(rejected)) => Ok(Err(rejected)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}
