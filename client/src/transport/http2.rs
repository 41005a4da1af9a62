//! HTTP/2: a few connections to each node, shared by all requests.
//!
//! Owns those connections; each has a task that ends with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioExecutor;
use tokio::sync::Mutex;

use super::{Answer, Broken, Line, Protocol, chain, receive};
use crate::error::FailureKind;
use crate::request::Call;

/// Connections to one node. One is a bottleneck (its task runs on one core); more than four only cost system calls.
const CONNECTIONS: usize = 4;

/// The connections to one node.
#[derive(Default)]
pub(super) struct Pool {
    /// Locked across connecting, so that a crowd opens each connection once.
    slots: [Mutex<Option<SendRequest<Full<Bytes>>>>; CONNECTIONS],
    turn: AtomicUsize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "http2::Pool({CONNECTIONS} slots)")
    }
}

/// One attempt.
pub(super) async fn send(line: &Line, call: &Call, budget: Duration) -> Result<Answer, Broken> {
    let mut sender = sender(line).await?;
    let request = line.request(call, budget, Protocol::Http2);
    match sender.try_send_request(request).await {
        Ok(response) => receive(response).await,
        Err(error) if error.message().is_some() => Err(before(error.error())),
        Err(error) => Err(Broken::After(chain(error.error()))),
    }
}

async fn sender(line: &Line) -> Result<SendRequest<Full<Bytes>>, Broken> {
    let turn = line.http2.turn.fetch_add(1, Ordering::Relaxed) % CONNECTIONS;
    let mut slot = line.http2.slots[turn].lock().await;
    if let Some(sender) = slot.as_ref().filter(|sender| !sender.is_closed()) {
        return Ok(sender.clone());
    }
    let stream = line.connect().await?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.map_err(|error| before(&error))?;
    // Its errors reach every request on it.
    tokio::spawn(async move { drop(connection.await) });
    *slot = Some(sender.clone());
    Ok(sender)
}

fn before(error: &hyper::Error) -> Broken {
    Broken::Before(FailureKind::NotSent(chain(error)))
}
