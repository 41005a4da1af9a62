//! Timed tasks: queues, claims, and workers.

pub(crate) mod claim;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod worker;
