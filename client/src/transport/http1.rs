//! HTTP/1.1: one connection for each request in flight, kept for the next.
//!
//! Owns the idle connections of one node. A connection has no task of its own: whoever has a request on it drives it. That
//! saves two task switches a request, and a call that is dropped closes its connection with it, so that no answer is ever
//! read by the wrong call.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::{Answer, Broken, Line, alongside, broken, is_stale, not_sent, receive};
use crate::call::endpoints::ClusterId;
use crate::call::request::Call;
use crate::transport::tls::Wire;

/// Connections kept to one node; further ones are closed after use.
const IDLE_MAX: usize = 1_024;

pub(super) type Connection = http1::Connection<TokioIo<Wire>, Full<Bytes>>;

/// A connection without a request on it.
struct Idle {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection>>,
    since: Instant,
    /// Of the credentials that it was made with.
    generation: u64,
    /// The cluster that the node last named on it.
    cluster: Option<ClusterId>,
}

/// Idle connections to one node, the last used at the back.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "http1::Pool({} idle)", self.idle.lock().len())
    }
}

impl Pool {
    /// The warmest connection. The coldest goes when it is stale: one for each taken keeps the pool clean.
    fn take(&self) -> Option<Idle> {
        let (taken, dropped) = {
            let mut idle = self.idle.lock();
            let cold = idle.front().is_some_and(|coldest| is_stale(coldest.since, Instant::now()));
            let dropped = if cold { idle.pop_front() } else { None };
            (idle.pop_back(), dropped)
        };
        drop(dropped);
        taken
    }

    fn put_back(&self, one: Idle) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push_back(one);
        }
    }

    /// Closes all on which the node did not say that it is of this cluster.
    pub fn leave(&self, ours: ClusterId) {
        self.idle.lock().retain(|one| one.cluster == Some(ours));
    }
}

/// One attempt. A kept connection that was closed meanwhile is replaced by the next, at last by a new one.
pub(super) async fn send(line: &Line, call: &Call, budget: Duration, sent: &AtomicBool) -> Result<Answer, Broken> {
    let generation_now = line.credentials.generation();
    while let Some(Idle { mut sender, mut connection, since, generation, .. }) = line.http1.take() {
        if is_stale(since, Instant::now()) || generation != generation_now {
            continue;
        }
        let outcome = exchange(line, &mut sender, connection.as_mut(), call, budget, sent).await;
        if !matches!(outcome, Err(Broken::Before(_))) {
            return keep(line, sender, connection, generation, outcome);
        }
        sent.store(false, Relaxed);
    }
    let stream = line.connect().await?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(not_sent)?;
    let mut connection = Box::pin(connection);
    let outcome = exchange(line, &mut sender, connection.as_mut(), call, budget, sent).await;
    keep(line, sender, connection, generation_now, outcome)
}

/// Keeps the connection of a successful exchange.
fn keep(
    line: &Line,
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection>>,
    generation: u64,
    outcome: Result<Answer, Broken>,
) -> Result<Answer, Broken> {
    if let Ok(Answer { hint, .. }) = &outcome
        && !sender.is_closed()
    {
        line.http1.put_back(Idle { sender, connection, since: Instant::now(), generation, cluster: hint.cluster });
    }
    outcome
}

/// Sends the request and reads the answer, moving the connection along.
async fn exchange(
    line: &Line,
    sender: &mut SendRequest<Full<Bytes>>,
    connection: Pin<&mut Connection>,
    call: &Call,
    budget: Duration,
    sent: &AtomicBool,
) -> Result<Answer, Broken> {
    let exchange = async {
        sender.ready().await.map_err(not_sent)?;
        sent.store(true, Relaxed);
        match sender.try_send_request(line.request(call, budget)).await {
            Ok(response) => receive(response).await,
            // The request comes back only if not a byte of it was written.
            Err(error) if error.message().is_some() => Err(not_sent(error.into_error())),
            Err(error) => Err(broken(error.into_error())),
        }
    };
    match alongside(connection, exchange).await {
        Some(outcome) => outcome,
        None => Err(Broken::After("it ended without an answer".into())),
    }
}
