//! Sessions, and what hangs on them: locks, leaderships, places in barriers; latches too.

pub(crate) mod barrier;
pub(crate) mod election;
pub(crate) mod latch;
mod leaving;
pub(crate) mod lock;
pub(crate) mod observe;
mod queue_place;
pub(crate) mod session;
