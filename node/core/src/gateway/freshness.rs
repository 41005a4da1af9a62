//! Waiting until this node knows what the cluster knows.
//!
//! Owns what is said where that does not come in time. Never decides who may wait.

use std::time::Instant;

use crate::backend::{Consistency, SharedNode};
use crate::gateway::failure::{Effect, Failure};

/// Waits until reads are as fresh as asked for.
pub async fn barrier(backend: &SharedNode, consistency: Consistency, deadline: Instant) -> Result<(), Failure> {
    let passed = backend.read_barrier(consistency, deadline).await;
    passed.map_err(|error| Failure::from_app(error, Effect::Read))
}

/// Waits until this node knows what the cluster knows, for somebody who was let in.
pub async fn refresh(backend: &SharedNode, deadline: Instant) -> Result<(), Failure> {
    barrier(backend, Consistency::Linearizable, deadline).await
}
