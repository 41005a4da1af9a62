//! An answer that is taken as it comes: an HTTP/1.1 connection of its own, for as long as it goes on.
//!
//! Owns that connection. Like a call it has no task: whoever waits for the next piece drives it. Never reconnects, and never
//! knows what the pieces are.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};

use super::http1::Connection;
use super::{Answer, Broken, Line, REVISION, Transport, alongside, broken, hint, not_sent, receive};
use crate::call::endpoints::LeaderHint;
use crate::call::error::{Failure, FailureKind};
use crate::call::reason::Reason;
use crate::call::request::Call;

/// What a node made of the request for a long answer.
pub(crate) enum Opened {
    /// Here it is.
    Body(OpenBody),
    /// An answer as to any other call.
    Answer(Answer),
}

/// An answer whose pieces are still to come.
pub(crate) struct OpenBody {
    /// What its head says of the cluster.
    pub hint: LeaderHint,
    /// The revision at which it begins, as its head says.
    pub revision: Option<u64>,
    connection: Pin<Box<Connection>>,
    body: Incoming,
    /// The connection ends with it.
    _sender: SendRequest<Full<Bytes>>,
}

impl Transport {
    /// One attempt at one node to open an answer of this content type, over within `budget`.
    pub async fn open(&self, node: usize, call: &Call, kind: &str, budget: Duration) -> Result<Opened, Failure> {
        let line = &*self.line(node);
        let kind = match tokio::time::timeout(budget, open(line, call, kind, budget)).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(Broken::Before(kind))) => kind,
            Ok(Err(Broken::After(reason))) => FailureKind::Broken(reason),
            Err(_) => FailureKind::TimedOut(budget),
        };
        Err(Failure { address: line.address.to_string(), kind })
    }
}

async fn open(line: &Line, call: &Call, kind: &str, budget: Duration) -> Result<Opened, Broken> {
    let stream = line.connect().await?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(not_sent)?;
    let mut connection = Box::pin(connection);
    let exchange = async {
        sender.ready().await.map_err(not_sent)?;
        let sent = sender.send_request(line.request(call, budget)).await;
        let response = sent.map_err(broken)?;
        if is_of_kind(response.status(), response.headers(), kind) {
            Ok(Ok(response))
        } else {
            receive(response).await.map(Err)
        }
    };
    let ended = || Broken::After("it ended without an answer".into());
    let response = match alongside(connection.as_mut(), exchange).await.ok_or_else(ended)?? {
        Ok(response) => response,
        Err(answer) => return Ok(Opened::Answer(answer)),
    };
    let (head, body) = response.into_parts();
    let revision = head.headers.get(REVISION).and_then(|value| value.to_str().ok()?.parse().ok());
    let hint = hint(&head.headers);
    Ok(Opened::Body(OpenBody { hint, revision, connection, body, _sender: sender }))
}

fn is_of_kind(status: StatusCode, headers: &HeaderMap, kind: &str) -> bool {
    let is_it = |value: &HeaderValue| value.as_bytes().starts_with(kind.as_bytes());
    status == StatusCode::OK && headers.get(header::CONTENT_TYPE).is_some_and(is_it)
}

impl OpenBody {
    /// The next piece; `None` once the node has sent all. May be dropped and called again. `patience` is for how long nothing
    /// at all may come.
    pub async fn next(&mut self, patience: Duration) -> Result<Option<Bytes>, FailureKind> {
        loop {
            let frame = alongside(self.connection.as_mut(), self.body.frame());
            match tokio::time::timeout(patience, frame).await {
                Err(_) => return Err(FailureKind::TimedOut(patience)),
                Ok(None) => return Err(FailureKind::Broken("the stream ended".into())),
                Ok(Some(None)) => return Ok(None),
                Ok(Some(Some(Err(error)))) => return Err(FailureKind::Broken(Reason::of(error))),
                Ok(Some(Some(Ok(frame)))) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }
}
