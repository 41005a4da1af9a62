//! The control and append channels, answering side: append streams, votes and transfers for Raft.
//!
//! Owns the streams of one connection. Answers of a stream keep its order; streams do not wait for each other. Never
//! buffers more than a stream's window: a peer that sends more is cut off.

use std::collections::HashMap;
use std::sync::Arc;

use bincode::Encode;
use futures::future::BoxFuture;
use futures::stream;
use futures::{FutureExt, StreamExt};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use quorate_machine::codec;
use quorate_store::raft::TypeConfig;
use quorate_threads::watchdog;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, FrameKind, Outgoing};
use super::inbound::{Inbound, misplaced, pong};
use super::limits::{RPCS_MAX, STREAM_WINDOW_REQUESTS, STREAMS_MAX};
use super::raft_codec::{
    AppendAnswer, AppendOutcome, RaftAnswer, TransferAnswer, TransferAsk, VoteGrant, VoteQuery, decode_append,
};
use super::raft_rpc::{Appended, Appends, RaftRpc};
use super::writer::FrameSender;

type Request = AppendEntriesRequest<TypeConfig>;

const NOT_UP: &str = "Raft is not up on this node yet";

/// Serves until the peer closes; `Err` says what it did wrong.
pub(super) async fn run(mut inbound: Inbound) -> Result<(), String> {
    let mut streams = Streams { open: HashMap::new() };
    let rpcs = Arc::new(Semaphore::new(RPCS_MAX));
    while let Some(frame) = inbound.reader.next().await.map_err(|error| error.to_string())? {
        match frame.kind {
            FrameKind::Ping => pong(&inbound.out).await?,
            FrameKind::AppendFirst => streams.on_first(&inbound, frame).await?,
            FrameKind::AppendNext => streams.on_next(&inbound, frame)?,
            FrameKind::StreamEnd => streams.on_end(frame.id),
            FrameKind::StreamCancel => streams.on_cancel(frame.id),
            FrameKind::Vote | FrameKind::PreVote | FrameKind::Transfer | FrameKind::Append => {
                on_rpc(&inbound, &rpcs, frame).await?;
            }
            kind => return Err(misplaced(kind, inbound.channel)),
        }
    }
    Ok(())
}

async fn on_rpc(inbound: &Inbound, rpcs: &Arc<Semaphore>, frame: Frame) -> Result<(), String> {
    let permit = Arc::clone(rpcs).acquire_owned().await.expect("this semaphore is never closed");
    let id = frame.id;
    let answering = match inbound.server.raft.get() {
        Some(raft) => answer_rpc(raft, &frame)?,
        None => async { codec::encode(&RaftAnswer::<()>::Err(NOT_UP.to_owned())) }.boxed(),
    };
    let (out, token) = (inbound.out.clone(), inbound.token.clone());
    watchdog::spawn_tracked(&inbound.tasks, async move {
        let work = async { out.send(Outgoing::whole(FrameKind::RaftAnswer, id, answering.await)).await };
        if let Some(Err(_)) = token.run_until_cancelled(work).await {
            quorate_node_core::debug!("an answer found its connection closed");
        }
        drop(permit);
    });
    Ok(())
}

fn answer_rpc(raft: &Arc<dyn RaftRpc>, frame: &Frame) -> Result<BoxFuture<'static, Vec<u8>>, String> {
    let malformed = |error: codec::CodecError| format!("a request was not understood: {error}");
    Ok(match frame.kind {
        FrameKind::Transfer => {
            let ask: TransferAsk = codec::decode(&frame.body).map_err(malformed)?;
            let answer = raft.transfer_leader(ask.into());
            answer.map(|answer| encoded(answer.map(|answer| TransferAnswer::from(&answer)))).boxed()
        }
        FrameKind::Append => {
            let request = decode_append(&frame.body).map_err(malformed)?;
            raft.append(request).map(|answer| encoded(answer.map(|answer| AppendOutcome::from(&answer)))).boxed()
        }
        kind => {
            let ask: VoteQuery = codec::decode(&frame.body).map_err(malformed)?;
            let answer = if kind == FrameKind::PreVote { raft.pre_vote(ask.into()) } else { raft.vote(ask.into()) };
            answer.map(|answer| encoded(answer.map(|answer| VoteGrant::from(&answer)))).boxed()
        }
    })
}

fn encoded<T: Encode>(answer: RaftAnswer<T>) -> Vec<u8> {
    codec::encode(&answer)
}

/// The append streams of one connection. Those dropped with it end.
struct Streams {
    open: HashMap<u64, OpenStream>,
}

struct OpenStream {
    /// `None` once the peer said that no more requests come.
    requests: Option<mpsc::Sender<Request>>,
    ended: CancellationToken,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Streams {
    async fn on_first(&mut self, inbound: &Inbound, frame: Frame) -> Result<(), String> {
        self.open.retain(|_, stream| !stream.ended.is_cancelled());
        if self.open.len() >= STREAMS_MAX || self.open.contains_key(&frame.id) {
            return Err(format!("stream {} is one too many", frame.id));
        }
        let Some(raft) = inbound.server.raft.get() else {
            return answer(&inbound.out, frame.id, 1, AppendOutcome::Failed(NOT_UP.to_owned())).await;
        };
        let (sender, receiver) = mpsc::channel(STREAM_WINDOW_REQUESTS);
        let ended = inbound.token.child_token();
        let answers = raft.stream_append(requests(receiver, ended.clone()));
        let pump = Pump { out: inbound.out.clone(), id: frame.id, ended: ended.clone() };
        watchdog::spawn_tracked(&inbound.tasks, pump.run(answers));
        self.open.insert(frame.id, OpenStream { requests: Some(sender), ended });
        self.on_next(inbound, frame)
    }

    /// Requests of a stream that ended were on their way already: nobody waits for their answers.
    fn on_next(&mut self, inbound: &Inbound, frame: Frame) -> Result<(), String> {
        let Some(stream) = self.open.get(&frame.id) else { return Ok(()) };
        let Some(requests) = &stream.requests else { return Err("a request after the end of its stream".into()) };
        let request = decode_append(&frame.body).map_err(|error| format!("an append request: {error}"))?;
        if !request.entries.is_empty() {
            inbound.server.service.on_entries();
        }
        match requests.try_send(request) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err("more append requests than the window allows".into()),
        }
    }

    fn on_end(&mut self, id: u64) {
        if let Some(stream) = self.open.get_mut(&id) {
            stream.requests = None;
        }
    }

    fn on_cancel(&mut self, id: u64) {
        self.open.remove(&id);
    }
}

/// Ends with the peer's requests or with the stream, so that Raft's reader of it never outlives it.
fn requests(mut receiver: mpsc::Receiver<Request>, ended: CancellationToken) -> Appends {
    stream::poll_fn(move |context| receiver.poll_recv(context)).take_until(ended.cancelled_owned()).boxed()
}

/// Carries Raft's answers back to the peer.
struct Pump {
    out: FrameSender,
    id: u64,
    ended: CancellationToken,
}

impl Pump {
    async fn run(self, answers: Appended) {
        let token = self.ended.clone();
        if let Some(Err(reason)) = token.run_until_cancelled(self.carry(answers)).await {
            quorate_node_core::debug!(reason, "an append stream found its connection closed");
        }
        token.cancel();
    }

    /// Matches that are there at once are told as one: a match covers all before it.
    async fn carry(&self, answers: Appended) -> Result<(), String> {
        let mut answers = answers.fuse();
        while let Some(mut latest) = answers.next().await {
            let mut count = 1;
            let mut last = None;
            while let Ok(Ok(_)) = latest {
                match answers.next().now_or_never().flatten() {
                    Some(next @ Ok(Ok(_))) => {
                        latest = next;
                        count += 1;
                    }
                    other => {
                        last = other;
                        break;
                    }
                }
            }
            answer(&self.out, self.id, count, outcome(&latest)).await?;
            if let Some(last) = last {
                answer(&self.out, self.id, 1, outcome(&last)).await?;
            }
        }
        Ok(())
    }
}

fn outcome(answer: &RaftAnswer<StreamAppendResult<TypeConfig>>) -> AppendOutcome {
    match answer {
        Ok(result) => result.into(),
        Err(reason) => AppendOutcome::Failed(reason.clone()),
    }
}

async fn answer(out: &FrameSender, id: u64, count: u32, outcome: AppendOutcome) -> Result<(), String> {
    let body = codec::encode(&AppendAnswer { count, outcome });
    let sent = out.send(Outgoing::whole(FrameKind::AppendAnswer, id, body)).await;
    sent.map_err(|_| "the connection broke".to_owned())
}
