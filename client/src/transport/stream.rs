//! The operation stream: one request that never ends carries the operations of all callers as lines, one response their
//! answers.
//!
//! Owns the connections of one node: which one an operation takes, and when another is dialled. What is on a connection is
//! `calls`', its bytes are `connection`'s, the form of an answer is `lines`'.
//!
//! A connection is taken into use when the node has agreed to the stream, so that a node that does not know streams, or a
//! proxy before it, is found out before any operation depends on it.

mod calls;
mod connection;
mod lines;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Answer, Broken, CONNECT_TIMEOUT, Line};
use crate::error::FailureKind;
use crate::request::Call;
use calls::Calls;
use connection::Dialled;

/// Connections to one node.
const CONNECTIONS: usize = 1;
/// How long a node that does not take streams is asked over HTTP/1.1. To ask again costs one exchange.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// The connections to one node.
#[derive(Debug, Default)]
pub(super) struct Pool {
    slots: [Slot; CONNECTIONS],
    turn: AtomicUsize,
    refused_until: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Slot {
    kept: Mutex<Option<Kept>>,
    /// Locked across connecting, so that a crowd dials once.
    dialling: tokio::sync::Mutex<()>,
}

/// A connection of the pool; ends with it.
#[derive(Debug)]
struct Kept(Arc<Calls>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.on_let_go();
    }
}

impl Pool {
    /// Leaves the connections on which nothing comes any more, though answers are due: a call has waited in vain, and the next
    /// ones should not.
    pub fn leave_silent(&self) {
        self.slots.iter().filter_map(Slot::kept).for_each(|calls| calls.leave_if_silent());
    }

    fn is_refused(&self) -> bool {
        self.refused_until.lock().is_some_and(|until| Instant::now() < until)
    }

    fn refuse(&self) {
        *self.refused_until.lock() = Some(Instant::now() + REFUSED_PAUSE);
    }
}

impl Slot {
    fn kept(&self) -> Option<Arc<Calls>> {
        self.kept.lock().as_ref().map(|kept| kept.0.clone())
    }
}

/// One attempt, of which the node is told that it has `told` milliseconds. `None`: the node takes no streams.
pub(super) async fn send(line: &Line, call: &Call, told: u64) -> Option<Result<Answer, Broken>> {
    let pool = &line.streams;
    let slot = &pool.slots[pool.turn.fetch_add(1, Ordering::Relaxed) % CONNECTIONS];
    if let Some(calls) = slot.kept() {
        match calls.exchange(&call.body, told).await {
            // It had ended before; another takes its place.
            Err(Broken::Before(_)) => {}
            outcome => return Some(outcome),
        }
    }
    match Box::pin(dial(line, slot)).await {
        Ok(Some(calls)) => Some(calls.exchange(&call.body, told).await),
        Ok(None) => None,
        Err(broken) => Some(Err(broken)),
    }
}

/// The slot's connection, made if there is none that is open.
async fn dial(line: &Line, slot: &Slot) -> Result<Option<Arc<Calls>>, Broken> {
    let _dialling = slot.dialling.lock().await;
    let kept = slot.kept();
    if kept.as_ref().is_some_and(|calls| calls.misfits()) {
        line.streams.refuse();
        *slot.kept.lock() = None;
    }
    if let Some(calls) = kept.filter(|calls| calls.is_open()) {
        return Ok(Some(calls));
    }
    if line.streams.is_refused() {
        return Ok(None);
    }
    let dialled = match tokio::time::timeout(CONNECT_TIMEOUT, connection::dial(line)).await {
        Ok(dialled) => dialled?,
        Err(_) => {
            line.streams.refuse();
            return Err(Broken::Before(FailureKind::NotSent("the node does not begin to answer".into())));
        }
    };
    match dialled {
        Dialled::Open(calls) => {
            *slot.kept.lock() = Some(Kept(calls.clone()));
            Ok(Some(calls))
        }
        Dialled::Refused => {
            line.streams.refuse();
            Ok(None)
        }
    }
}
