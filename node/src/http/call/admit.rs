//! Letting readers in: once the node knows enough, and who asks may know it.
//!
//! Owns the order of both. Never reads anything.

use std::time::Instant;

use crate::app::Consistency;
use crate::http::auth::caller::Caller;
use crate::http::auth::requirement::Wanted;
use crate::http::call::refresh::barrier;
use crate::http::context::RequestContext;
use crate::http::problem::Failure;

/// Waits until reads are as fresh as asked for, and lets those in that may be told what they want: by the rules as they are then.
pub async fn admit(
    caller: &Caller<'_>,
    consistency: Consistency,
    deadline: Instant,
    wanted: Wanted<'_>,
) -> Result<(), Failure> {
    barrier(&caller.api.backend, consistency, deadline).await?;
    caller.check(wanted)
}

/// As [`admit`], for a request that asks for what is true now.
pub async fn admit_to(context: &RequestContext, wanted: Wanted<'_>) -> Result<(), Failure> {
    admit(&context.caller(), Consistency::Linearizable, context.deadline, wanted).await
}
