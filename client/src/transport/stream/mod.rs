//! The operation stream: one request that never ends carries the operations of all callers as lines, one response their
//! answers.
//!
//! Owns the connection to one node: whether an operation takes it, and when another is dialled. What is on a connection is
//! `calls`', its bytes are `connection`'s, the form of an answer is `lines`'.
//!
//! There is one, because a second halves what goes out in one write: against three nodes on two cores 256 readers cost 2.9 µs
//! of client CPU and 8.0 µs of server CPU an operation over one connection to each node, 3.4 and 9.0 µs over two.
//!
//! A connection is taken into use when the node has agreed to the stream, so that a node that does not know streams, or a
//! proxy before it, is found out before any operation depends on it.

mod calls;
mod connection;
mod lines;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Answer, Broken, CONNECT_TIMEOUT, Line};
use crate::call::endpoints::ClusterId;
use crate::call::error::FailureKind;
use crate::call::request::Call;
use calls::Calls;
use connection::Dialled;

/// How long a node that does not take streams is asked over HTTP/1.1. To ask again costs one exchange.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);

/// The way to one node.
#[derive(Debug, Default)]
pub(super) struct Shared {
    kept: Mutex<Option<Kept>>,
    /// Locked across connecting, so that a crowd dials once.
    dialling: tokio::sync::Mutex<()>,
    refused_until: Mutex<Option<Instant>>,
}

/// The connection that operations take.
#[derive(Debug)]
struct Kept {
    calls: Arc<Calls>,
    /// Of the credentials that it was made with: the node knows us by them for as long as it lasts.
    generation: u64,
    /// The cluster that the node named in the head of the stream.
    cluster: Option<ClusterId>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.calls.on_let_go();
    }
}

impl Shared {
    /// Leaves the connection if nothing comes on it any more, though answers are due: a call has waited in vain, and the next
    /// ones should not.
    pub fn leave_silent(&self) {
        if let Some(kept) = self.kept.lock().as_ref() {
            kept.calls.leave_if_silent();
        }
    }

    /// Leaves the connection if the node did not say on it that it is of this cluster. Those who wait may still be answered.
    pub fn leave(&self, ours: ClusterId) {
        let left = self.kept.lock().take_if(|kept| kept.cluster != Some(ours));
        drop(left);
    }

    /// The connection, if it was made with the credentials of this generation.
    fn kept(&self, generation: u64) -> Option<Arc<Calls>> {
        let kept = self.kept.lock();
        kept.as_ref().filter(|kept| kept.generation == generation).map(|kept| kept.calls.clone())
    }

    fn is_refused(&self) -> bool {
        self.refused_until.lock().is_some_and(|until| Instant::now() < until)
    }

    fn refuse(&self) {
        *self.refused_until.lock() = Some(Instant::now() + REFUSED_PAUSE);
    }
}

/// One attempt, of which the node is told that it has `told` milliseconds. `None`: the node takes no streams.
pub(super) async fn send(line: &Line, call: &Call, told: u64, sent: &AtomicBool) -> Option<Result<Answer, Broken>> {
    if let Some(calls) = line.stream.kept(line.credentials.generation()) {
        sent.store(true, Relaxed);
        match calls.exchange(&call.body, told).await {
            // It had ended before; another takes its place.
            Err(Broken::Before(_)) => sent.store(false, Relaxed),
            outcome => return Some(outcome),
        }
    }
    match Box::pin(dial(line)).await {
        Ok(Some(calls)) => {
            sent.store(true, Relaxed);
            Some(calls.exchange(&call.body, told).await)
        }
        Ok(None) => None,
        Err(broken) => Some(Err(broken)),
    }
}

/// The connection, made if there is none that is open.
async fn dial(line: &Line) -> Result<Option<Arc<Calls>>, Broken> {
    let shared = &line.stream;
    let _dialling = shared.dialling.lock().await;
    let generation = line.credentials.generation();
    let kept = shared.kept(generation);
    if kept.as_ref().is_some_and(|calls| calls.misfits()) {
        shared.refuse();
        *shared.kept.lock() = None;
    }
    if let Some(calls) = kept.filter(|calls| calls.is_open()) {
        return Ok(Some(calls));
    }
    if shared.is_refused() {
        return Ok(None);
    }
    let stream = line.connect().await?;
    let dialled = match tokio::time::timeout(CONNECT_TIMEOUT, connection::open(line, stream)).await {
        Ok(dialled) => dialled?,
        Err(_) => {
            shared.refuse();
            return Err(Broken::Before(FailureKind::NotSent("the node does not begin to answer".into())));
        }
    };
    match dialled {
        Dialled::Open { calls, cluster } => {
            *shared.kept.lock() = Some(Kept { calls: calls.clone(), generation, cluster });
            Ok(Some(calls))
        }
        Dialled::Refused => {
            shared.refuse();
            Ok(None)
        }
    }
}
