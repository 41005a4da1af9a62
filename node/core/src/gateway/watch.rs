//! What watches share, whatever the protocol: reads of what is no longer in memory, the versions of a change, and why a node must not go on.
//!
//! Never knows how an event looks.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use quorate_api::WatchEndCode;
use quorate_feed::RecentChange;
use quorate_machine::query::StateFault;
use quorate_machine::types::Entry;
use quorate_threads::{background, watchdog};
use tokio_util::task::AbortOnDropHandle;

use crate::backend::SharedNode;
use crate::gateway::admission::answer_memory::Share;
use crate::gateway::admission::paced::read_paid;
use crate::gateway::admission::refusals::Amounts;
use crate::gateway::admission::shares::LentPlace;
use crate::gateway::admission::turns::Lanes;
use crate::gateway::api::Api;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::limits;

/// Reads for the watches of a call.
#[derive(Clone)]
pub struct Reader {
    api: Arc<Api>,
    /// Answers of its account that were not taken.
    share: Arc<Share>,
    /// The account that pays.
    lanes: Arc<Lanes>,
    is_paced: bool,
}

impl Reader {
    /// Reads for the account of a call.
    pub fn of(call: &Call) -> Self {
        let (api, share, lanes) = (Arc::clone(&call.api), call.answer_share(), Arc::clone(call.lanes()));
        Self { api, share, lanes, is_paced: call.is_paced() }
    }

    /// Reads where blocking is allowed, once its account has paid or [`read_paid`] has waited long enough, and one of the few places is free. Gives `None`
    /// if there is no room for the result by then. The read goes on while its watch is not polled: a watch that waits for its reader must not keep a
    /// place from others.
    pub fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SharedNode) -> Result<T, StateFault> + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<T>, StateFault>> {
        let reader = self.clone();
        let work = AbortOnDropHandle::new(watchdog::spawn(async move { reader.read_in_turn(read).await }));
        Box::pin(async move { work.await.unwrap_or_else(|error| Err(did_not_end(&error))) })
    }

    async fn read_in_turn<T: Send + 'static>(
        self,
        read: impl FnOnce(&SharedNode) -> Result<T, StateFault> + Send + 'static,
    ) -> Result<Option<T>, StateFault> {
        if self.is_paced {
            read_paid(&self.lanes).await;
        }
        let places = Arc::clone(&self.api.admission.watch_reads);
        let place = places.acquire_owned().await.expect("the semaphore is never closed");
        if !self.share.has_room() {
            return Ok(None);
        }
        let done = background::patiently(move || {
            // Kept until it ends, even if the watch ends before.
            let _place = place;
            let Self { api, lanes, .. } = self;
            let begun = watchdog::processor_time();
            let done = read(&api.node);
            api.admission.turns.charge(lanes, watchdog::processor_time().saturating_sub(begun));
            done
        });
        done.await.unwrap_or_else(|error| Err(did_not_end(&error))).map(Some)
    }
}

fn did_not_end(error: &dyn std::fmt::Display) -> StateFault {
    StateFault::new(format!("the read of a watch did not end: {error}"))
}

/// The versions of an entry around a change.
pub struct Versions {
    /// After a write.
    pub entry: Option<Arc<Entry>>,
    /// Before it, where there was one and it was asked for.
    pub before: Option<Entry>,
}

/// The versions around a change that is in memory; `None` where they can no longer be read.
pub fn versions(backend: &SharedNode, change: &RecentChange, prev: bool) -> Result<Option<Versions>, StateFault> {
    let version = |revision| backend.version(&change.key, revision);
    let entry = match (change.change.cause.is_removal(), change.entry()) {
        (true, _) => None,
        (false, Some(entry)) => Some(Arc::clone(entry)),
        (false, None) => match version(change.revision)? {
            Some(entry) => Some(Arc::new(entry)),
            None => return Ok(None),
        },
    };
    let before = match change.change.previous.filter(|_| prev) {
        None => None,
        Some(previous) => match version(previous)? {
            Some(before) => Some(before),
            None => return Ok(None),
        },
    };
    Ok(Some(Versions { entry, before }))
}

/// Why a node should not go on with a stream that began at `began`, if so: others may know more than it does.
pub fn end_reason(backend: &SharedNode, began: Instant) -> Option<(WatchEndCode, String)> {
    if let Some(reason) = backend.quarantine() {
        return Some((WatchEndCode::Quarantined, reason));
    }
    let never = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let silence = backend.staleness_ms().unwrap_or_else(never);
    let detail = format!("this node has heard no leader for {silence} ms; another one may");
    (silence > limits::WATCH_SILENCE_MS_MAX).then_some((WatchEndCode::NoLeader, detail))
}

/// Why a watch with this place has to make room for those of others, if so: it goes on at another node, or later.
pub fn crowded_out(place: &mut LentPlace) -> Option<Failure> {
    let Amounts { bound, of_one, .. } = place.ask_back()?;
    Some(Failure::too_many(format!(
        "of the {bound} watches of this node hardly any is left for others, and this caller has more than the {of_one} that one \
         may have then; go on at another node, or later"
    )))
}
