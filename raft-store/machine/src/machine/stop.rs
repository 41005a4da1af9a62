//! The two ends of work that is not done: a refusal, which is an answer, and a fault, which is none.
//!
//! Owns the one error that both are on their way up, so that `?` hands them on, and the function that takes them apart. Never decides what
//! follows: its caller records the refusal and hands the fault on.

use super::view::Fault;
use crate::types::{Rejection, StepRejected};

/// The reason why something was not done. A rejection may say where in the command it is.
#[derive(Debug)]
pub(super) enum Stop<R = Rejection> {
    /// It may not be done: that is what the command is answered.
    Rejected(R),
    /// Whether it may be done is not known, or it could not be.
    Fault(Fault),
}

/// The result of work that may be refused. Work that can only fault has a [`Fault`] for its error instead.
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

/// Takes a refusal apart from a fault. The refusal is the inner error, from which the caller makes an answer.
pub(super) fn split<T, R>(tried: Result<T, Stop<R>>) -> Result<Result<T, R>, Fault> {
    match tried {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Rejected(rejected)) => Ok(Err(rejected)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}
