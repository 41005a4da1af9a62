//! Work that may take long, on the state or on a long body: on blocking threads, a few at a time.
//!
//! Owns the places. What is done there bounds itself: it goes on when whoever asked for it is gone.

use std::sync::Arc;

use bytes::Bytes;
use quorate_store::state::StateFault;

use super::Backend;
use super::ask::Ask;
use super::error::Failure;
use crate::limits;

/// Runs it where blocking is allowed, as soon as one of the few places is free.
pub async fn scan<B: Backend, T: Send + 'static>(
    ask: &Ask<'_, B>,
    work: impl FnOnce(B) -> Result<T, StateFault> + Send + 'static,
) -> Result<T, Failure> {
    let waited = tokio::time::timeout(ask.remaining(), Arc::clone(&ask.api.scans).acquire_owned()).await;
    let Ok(Ok(place)) = waited else {
        return Err(Failure::too_many("too many listings, finds, bulks and the like are at work on this node"));
    };
    let backend = ask.api.backend.clone();
    let done = tokio::task::spawn_blocking(move || {
        // Kept until it ends, even if the request ends before.
        let _place = place;
        work(backend)
    });
    match done.await {
        Ok(outcome) => outcome.map_err(|fault| Failure::from_fault(&fault)),
        Err(error) => Err(Failure::from_fault(&StateFault(format!("the scan did not end: {error}")))),
    }
}

/// Reads a body; a long one where it holds up nobody else.
pub async fn parse<B: Backend, T: Send + 'static>(
    ask: &Ask<'_, B>,
    body: Bytes,
    read: impl FnOnce(&[u8]) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match body.len() {
        0..=limits::READ_INLINE_BYTES_MAX => read(&body),
        _ => scan(ask, move |_| Ok(read(&body))).await?,
    }
}
