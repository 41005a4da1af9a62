//! One connection with a stream on it: how it is made, and the task that moves its bytes.
//!
//! Owns the HTTP/1.1 exchange. One task drives both directions: whatever the callers have queued when it runs goes out in one
//! write, whatever has come is handed out in one go. So under load a system call serves many operations, and alone an
//! operation waits for nobody.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::calls::{Calls, Turn};
use super::lines::Lines;
use crate::api::{Problem, STREAM_CONTENT_TYPE};
use crate::call::endpoints::ClusterId;
use crate::call::error::FailureKind;
use crate::call::reason::Reason;
use crate::transport::tls::Wire;
use crate::transport::{Answer, Broken, Line, alongside, hint, not_sent};

/// Longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

type Connection = http1::Connection<TokioIo<Wire>, Outgoing>;

/// What came of asking for a stream.
pub(super) enum Dialled {
    /// The stream is open, to a node of this cluster, where it says so.
    Open { calls: Arc<Calls>, cluster: Option<ClusterId> },
    /// The node, or what is before it, takes no streams.
    Refused,
}

/// Asks for a stream on a new connection. No operation is sent before the node has agreed.
pub(super) async fn open(line: &Line, stream: TokioIo<Wire>) -> Result<Dialled, Broken> {
    let calls = Arc::new(Calls::new());
    let (mut sender, connection) = http1::handshake(stream).await.map_err(not_sent)?;
    let mut connection = Box::pin(connection);
    let asked = alongside(connection.as_mut(), sender.send_request(request(line, &calls))).await;
    let response = match asked {
        Some(response) => response.map_err(not_sent)?,
        None => return Err(Broken::Before(FailureKind::NotSent("it ended without an answer".into()))),
    };
    if response.status() == StatusCode::OK && is_stream(response.headers()) {
        let cluster = hint(response.headers()).cluster;
        let task = Task {
            calls: calls.clone(),
            connection,
            lines: Lines::of(cluster),
            body: response.into_body(),
            answers: Vec::new(),
            wakers: Vec::new(),
        };
        tokio::spawn(task);
        return Ok(Dialled::Open { calls, cluster });
    }
    refusal(connection, response).await
}

fn request(line: &Line, calls: &Arc<Calls>) -> Request<Outgoing> {
    let mut request = Request::new(Outgoing { calls: calls.clone() });
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/v1/ops");
    let headers = request.headers_mut();
    line.introduce(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(STREAM_CONTENT_TYPE));
    request
}

fn is_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(STREAM_CONTENT_TYPE.as_bytes()))
}

/// A node that cannot serve now says so in a problem document, and is asked again like any other; all else means that there
/// are no streams here.
async fn refusal(mut connection: Pin<Box<Connection>>, response: Response<Incoming>) -> Result<Dialled, Broken> {
    let status = response.status();
    if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
        return Ok(Dialled::Refused);
    }
    let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX);
    let kind = match alongside(connection.as_mut(), body.collect()).await {
        Some(Ok(body)) => match serde_json::from_slice::<Problem>(&body.to_bytes()) {
            Ok(problem) => FailureKind::Problem(Box::new(problem)),
            Err(_) => FailureKind::NotSent(format!("status {status} instead of a stream").into()),
        },
        Some(Err(_)) | None => FailureKind::NotSent(format!("status {status}, and no reason").into()),
    };
    Err(Broken::Before(kind))
}

/// The request's body: lines without end.
struct Outgoing {
    calls: Arc<Calls>,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    /// The task around the connection is woken for the next line; this needs no waker.
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.calls.take_lines() {
            Some(lines) => Poll::Ready(Some(Ok(Frame::data(lines)))),
            None => Poll::Pending,
        }
    }
}

/// Moves the bytes of one connection until it ends.
struct Task {
    calls: Arc<Calls>,
    connection: Pin<Box<Connection>>,
    body: Incoming,
    lines: Lines,
    /// Kept for their memory.
    answers: Vec<(u64, Answer)>,
    wakers: Vec<Waker>,
}

/// Why a connection ends.
enum End {
    Broken(Reason),
    Misfit(String),
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.calls.turn(cx.waker()) {
            Turn::End => return Poll::Ready(()),
            Turn::Wait => {
                // Those who were woken are before us in the queue.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Turn::Move => {}
        }
        let Poll::Ready(end) = self.advance(cx) else { return Poll::Pending };
        match end {
            End::Broken(reason) => self.calls.end(&reason),
            End::Misfit(reason) => self.calls.end_as_misfit(&reason.into()),
        }
        Poll::Ready(())
    }
}

impl Task {
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let ended = self.connection.as_mut().poll(cx).is_ready();
            let (has_moved, end) = self.receive(cx);
            if !self.answers.is_empty() {
                self.calls.deliver(&mut self.answers, &mut self.wakers);
            }
            match end {
                Some(end) => return Poll::Ready(end),
                None if ended => return Poll::Ready(End::Broken("it ended in the middle of the stream".into())),
                // What was taken from the connection makes room for more.
                None if has_moved => {}
                None => return Poll::Pending,
            }
        }
    }

    /// Takes what has come. Whether that was anything, and whether it was the last.
    fn receive(&mut self, cx: &mut Context<'_>) -> (bool, Option<End>) {
        let mut has_moved = false;
        loop {
            let end = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return (has_moved, None),
                Poll::Ready(None) => End::Broken("the node has ended the stream".into()),
                Poll::Ready(Some(Err(error))) => End::Broken(Reason::of(error)),
                Poll::Ready(Some(Ok(frame))) => {
                    has_moved = true;
                    let Ok(data) = frame.into_data() else { continue };
                    match self.lines.feed(data, &mut self.answers) {
                        Ok(()) => continue,
                        Err(reason) => End::Misfit(reason),
                    }
                }
            };
            return (has_moved, Some(end));
        }
    }
}

impl Drop for Task {
    /// Also when the runtime goes that the first caller was in.
    fn drop(&mut self) {
        self.calls.end(&"the task of the connection has ended".into());
    }
}
