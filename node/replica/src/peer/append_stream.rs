//! One append stream to a peer: openraft's requests out, the peer's answers back.
//!
//! Owns the window and the deadline of each request. Never answers for the peer, and never hands on an answer that was
//! not made on this very stream: its id is unique on the connection and dies with it.
//!
//! A request without entries in the midst of a stream only tells how far the log is committed, and so does the next
//! request. It is held back for [`NOTICE_HOLD`] and left out where another comes in that time, which under load is
//! always: it would cost each node a third of its messages. openraft counts no answers, an answer covers all that was
//! sent before.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use openraft::errors::{NetworkError, RPCError, Timeout, Unreachable};
use openraft::network::RPCTypes;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use quorate_machine::codec;
use quorate_store::raft::{NodeId, TypeConfig};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::connection::Connection;
use super::frame::{Frame, FrameKind, Outgoing};
use super::limits::{STREAM_WINDOW_BYTES, STREAM_WINDOW_REQUESTS};
use super::raft_codec::{AppendAnswer, AppendPieces};

/// How long the news of a commit waits for a request that it can travel with. Followers' own reads and watches lag so much
/// at most; a linearizable read does not wait for it, as its round carries the news itself.
const NOTICE_HOLD: Duration = Duration::from_millis(2);

type Item = Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>;

struct InFlight {
    sent: Instant,
    bytes: usize,
}

struct Notice {
    request: AppendEntriesRequest<TypeConfig>,
    /// When the first one came that is not yet sent.
    until: Instant,
}

/// Between which nodes, for the error texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub from: NodeId,
    pub to: NodeId,
}

pub(super) struct AppendStream<S> {
    connection: Arc<Connection>,
    id: u64,
    answers: mpsc::Receiver<Frame>,
    /// `None` once it ended.
    input: Option<S>,
    /// A request of which not every piece was sent.
    pieces: Option<AppendPieces>,
    /// A request without entries that waits for a later one to take its place.
    notice: Option<Notice>,
    in_flight: VecDeque<InFlight>,
    bytes_in_flight: usize,
    deadline: Duration,
    /// Runs towards the deadline of some request that was or is the oldest, or of some notice; checked again when it
    /// fires, so that it need not be set for each request.
    timer: Pin<Box<Sleep>>,
    ends: Ends,
    opened: bool,
    end_told: bool,
    finished: bool,
}

enum Event {
    Answer(Option<Frame>),
    Request(Option<AppendEntriesRequest<TypeConfig>>),
    Timer,
}

impl<S> AppendStream<S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin,
{
    /// `None` where the connection is closed. Nothing is sent before the first request.
    pub fn open(connection: Arc<Connection>, input: S, deadline: Duration, ends: Ends) -> Option<Self> {
        // One more than can be unanswered, so that a full channel proves the peer wrong.
        let (id, answers) = connection.expect_many(STREAM_WINDOW_REQUESTS + 1)?;
        Some(Self {
            connection,
            id,
            answers,
            input: Some(input),
            pieces: None,
            notice: None,
            in_flight: VecDeque::with_capacity(STREAM_WINDOW_REQUESTS),
            bytes_in_flight: 0,
            deadline,
            timer: Box::pin(sleep_until(Instant::now() + deadline)),
            ends,
            opened: false,
            end_told: false,
            finished: false,
        })
    }

    /// The next answer; `None` once the input ended and everything was answered, or after an item that ends the stream.
    pub async fn next(&mut self) -> Option<Item> {
        while !self.finished {
            if let Err(error) = self.send_all().await {
                return Some(self.fail(error));
            }
            if self.input.is_none() && self.pieces.is_none() && self.in_flight.is_empty() {
                self.finish();
                break;
            }
            let outcome = match self.event().await {
                Event::Answer(Some(frame)) => return Some(self.on_answer(frame)),
                Event::Answer(None) => Err(self.lost()),
                Event::Request(Some(request)) => {
                    self.on_request(request);
                    Ok(())
                }
                Event::Request(None) => {
                    self.on_input_end();
                    Ok(())
                }
                Event::Timer => self.on_timer(),
            };
            if let Err(error) = outcome {
                return Some(self.fail(error));
            }
        }
        None
    }

    fn window_is_open(&self) -> bool {
        self.in_flight.len() < STREAM_WINDOW_REQUESTS && self.bytes_in_flight < STREAM_WINDOW_BYTES
    }

    async fn event(&mut self) -> Event {
        let wants_input = self.pieces.is_none() && self.window_is_open();
        let input = async {
            match &mut self.input {
                Some(input) if wants_input => input.next().await,
                _ => pending().await,
            }
        };
        tokio::select! {
            biased;
            // Requests first: the window bounds how long answers can be made to wait by them.
            request = input => Event::Request(request),
            answer = self.answers.recv() => Event::Answer(answer),
            () = &mut self.timer, if self.notice.is_some() || !self.in_flight.is_empty() => Event::Timer,
        }
    }

    /// Nothing is held back before the stream has sent something: openraft may be waiting for the answer to a first probe.
    fn on_request(&mut self, request: AppendEntriesRequest<TypeConfig>) {
        if !self.opened || !request.entries.is_empty() {
            self.notice = None;
            self.pieces = Some(AppendPieces::new(request));
            return;
        }
        let until = self.notice.take().map_or_else(|| Instant::now() + NOTICE_HOLD, |earlier| earlier.until);
        if self.timer.deadline() > until {
            self.timer.as_mut().reset(until);
        }
        self.notice = Some(Notice { request, until });
    }

    fn send_notice(&mut self) {
        if let Some(notice) = self.notice.take() {
            self.pieces = Some(AppendPieces::new(notice.request));
        }
    }

    async fn send_all(&mut self) -> Result<(), RPCError<TypeConfig>> {
        self.send_pieces().await?;
        self.send_end().await
    }

    async fn send_pieces(&mut self) -> Result<(), RPCError<TypeConfig>> {
        while self.window_is_open() {
            let Some(pieces) = &mut self.pieces else { return Ok(()) };
            let kind = if self.opened { FrameKind::AppendNext } else { FrameKind::AppendFirst };
            match pieces.next(kind, self.id) {
                Some(frame) => self.send_piece(frame).await?,
                None => self.pieces = None,
            }
        }
        Ok(())
    }

    async fn send_piece(&mut self, frame: Outgoing) -> Result<(), RPCError<TypeConfig>> {
        let (sent, bytes) = (Instant::now(), frame.byte_count());
        self.opened = true;
        self.in_flight.push_back(InFlight { sent, bytes });
        self.bytes_in_flight += bytes;
        self.send(frame, sent + self.deadline).await
    }

    async fn send(&mut self, frame: Outgoing, until: Instant) -> Result<(), RPCError<TypeConfig>> {
        let sent = timeout_at(until, self.connection.send(frame)).await;
        sent.map_err(|_| self.too_late())?.map_err(|_| self.lost())
    }

    /// What was held back goes out first, when the window has room for it.
    fn on_input_end(&mut self) {
        self.input = None;
        self.send_notice();
    }

    /// Tells the peer once that nothing more comes.
    async fn send_end(&mut self) -> Result<(), RPCError<TypeConfig>> {
        if self.input.is_some() || self.pieces.is_some() || !self.opened || self.end_told {
            return Ok(());
        }
        self.end_told = true;
        self.send(Outgoing::bare(FrameKind::StreamEnd, self.id), Instant::now() + self.deadline).await
    }

    /// The timer may have been set for a request that is answered by now.
    fn on_timer(&mut self) -> Result<(), RPCError<TypeConfig>> {
        let now = Instant::now();
        let oldest = self.in_flight.front().map(|oldest| oldest.sent + self.deadline);
        if oldest.is_some_and(|until| now >= until) {
            return Err(self.too_late());
        }
        if self.notice.as_ref().is_some_and(|notice| now >= notice.until) {
            self.send_notice();
        }
        let notice = self.notice.as_ref().map(|notice| notice.until);
        let next = [oldest, notice].into_iter().flatten().min().unwrap_or(now + self.deadline);
        self.timer.as_mut().reset(next);
        Ok(())
    }

    fn on_answer(&mut self, frame: Frame) -> Item {
        match self.read_answer(&frame) {
            Ok(Ok(matching)) => Ok(Ok(matching)),
            Ok(Err(ends)) => {
                self.finish();
                Ok(Err(ends))
            }
            Err(error) => self.fail(error),
        }
    }

    fn read_answer(&mut self, frame: &Frame) -> Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>> {
        if frame.kind != FrameKind::AppendAnswer {
            return Err(self.broken(format!("the peer answered a stream with a frame of kind {:?}", frame.kind)));
        }
        let answer: AppendAnswer = codec::decode(&frame.body).map_err(|error| self.broken(error.to_string()))?;
        let count = answer.count as usize;
        if count == 0 || count > self.in_flight.len() {
            let waiting = self.in_flight.len();
            return Err(self.broken(format!("the peer answered {count} requests while {waiting} were unanswered")));
        }
        let overdue = self.in_flight.front().is_some_and(|oldest| oldest.sent.elapsed() > self.deadline);
        self.bytes_in_flight -= self.in_flight.drain(..count).map(|piece| piece.bytes).sum::<usize>();
        if overdue {
            return Err(self.too_late());
        }
        // openraft has no way to carry a remote Raft's death here; of what there is, this backs off as it should.
        answer.outcome.into_result().map_err(|reason| RPCError::Unreachable(Unreachable::from_string(reason)))
    }

    fn fail(&mut self, error: RPCError<TypeConfig>) -> Item {
        if self.opened && !matches!(error, RPCError::Unreachable(_)) {
            // What the peer still sends for this stream could only be late.
            self.connection.close(error.to_string());
        }
        self.finish();
        Err(error)
    }

    fn finish(&mut self) {
        self.finished = true;
        self.input = None;
        self.connection.forget(self.id);
    }

    fn too_late(&self) -> RPCError<TypeConfig> {
        let Ends { from, to } = self.ends;
        RPCError::Timeout(Timeout { action: RPCTypes::AppendEntries, id: from, target: to, timeout: self.deadline })
    }

    fn lost(&self) -> RPCError<TypeConfig> {
        RPCError::Network(NetworkError::from_string(self.connection.reason()))
    }

    fn broken(&self, reason: String) -> RPCError<TypeConfig> {
        RPCError::Network(NetworkError::from_string(reason))
    }
}

impl<S> Drop for AppendStream<S> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.connection.forget(self.id);
        let cancelled = !self.opened || self.connection.try_send(Outgoing::bare(FrameKind::StreamCancel, self.id));
        if !cancelled {
            self.connection.close("an append stream was given up while the connection was congested");
        }
    }
}
