//! Waiting of a request until something that is coordinated has changed.
//!
//! Owns the loop of reading and waiting, which reads this node's own state: it goes on through changes of the leader. Never
//! proposes anything.

use std::time::{Duration, Instant};

use quorate_machine::query::StateFault;
use quorate_machine::types::Key;

use crate::backend::SharedNode;
use crate::gateway::admission::request_class::RequestClass;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::timings::{self, Part};

/// Reads until there is something. `None`: the time is over, or the node stops and the caller does better at another one.
pub async fn until<T: Send>(
    call: &Call,
    waker: &Key,
    end: Instant,
    read: impl Fn(&SharedNode) -> Result<Option<T>, StateFault> + Send + Sync,
) -> Result<Option<T>, Failure> {
    let backend = &call.api.node;
    // Nor who would be one too many: it asks again, after a while in its own class.
    let Some(_waiting) = call.wait() else {
        instead(call, end).await;
        return Ok(None);
    };
    // Who has no connection any more is not waited for.
    let Some(stop) = call.stop() else { return Ok(None) };
    loop {
        let mut found = None;
        let left = end.saturating_duration_since(Instant::now());
        let woken = backend.wait_woken(
            waker,
            left,
            Box::new(|| {
                found = read(backend)?;
                Ok(found.is_some() || left.is_zero())
            }),
        );
        let wait = async {
            tokio::select! {
                woken = woken => woken.map(|()| false),
                () = stop.cancelled() => Ok(true),
            }
        };
        let has_stopped = timings::on(Part::Wait, wait).await.map_err(|fault| Failure::from_fault(&fault))?;
        if found.is_some() || left.is_zero() || has_stopped {
            return Ok(found);
        }
    }
}

/// What is done where no more may wait: a pause, or who asks again would do so at once, for ever.
pub async fn instead(call: &Call, end: Instant) {
    const PAUSE: Duration = Duration::from_millis(500);
    call.api.admission.classes.count_refusal(RequestClass::Waiting);
    let until = end.min(Instant::now() + PAUSE);
    timings::on(Part::Wait, tokio::time::sleep_until(until.into())).await;
}

/// Waits until this node's state has what a reply told of, so that what is read next is not older. Whether it has.
pub async fn for_applied(backend: &SharedNode, index: u64, end: Instant) -> bool {
    tokio::time::timeout_at(end.into(), backend.wait_applied(index)).await.is_ok()
}
