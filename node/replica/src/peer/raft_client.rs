//! openraft's network on top of the channels.
//!
//! Owns the mapping of Raft's messages to channels and of transport failures to openraft's errors. Never connects in a
//! constructor: openraft waits for those in its core task.
//!
//! | failure | openraft error | openraft's reaction |
//! |---|---|---|
//! | no connection, refused, or the peer's Raft is not up | `Unreachable` | backs off at once |
//! | the connection broke | `Network` | retries at once, backs off after ten |
//! | no answer in time | `Timeout` | the same |

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bincode::{Decode, Encode};
use futures::{Stream, StreamExt, stream};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption, RPCTypes,
    RaftNetworkFactory,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, Snapshot};
use quorate_machine::codec;
use quorate_store::raft::{CommittedLeaderId, Member, NodeId, TypeConfig, Vote};
use quorate_store::state::snapshot::SnapshotHandle;
use tokio::time::{Instant, timeout_at};

use super::append_stream::{AppendStream, Ends};
use super::channel::ChannelKey;
use super::client::PeerNet;
use super::connection::Connection;
use super::counters::ChannelKind;
use super::frame::{FrameKind, Outgoing};
use super::raft_codec::{AppendOutcome, AppendPieces, RaftAnswer, TransferAnswer, TransferAsk, VoteGrant, VoteQuery};
use super::snapshot_stream::{self, SendError};

type RpcError = RPCError<TypeConfig>;
type Appended = Result<StreamAppendResult<TypeConfig>, RpcError>;

impl RaftNetworkFactory<TypeConfig> for PeerNet {
    type Network = RaftClient;

    async fn new_client(&mut self, target: NodeId, node: &Member) -> RaftClient {
        RaftClient { net: self.clone(), target, node: node.clone(), append_channel: ChannelKind::Append }
    }

    async fn new_heartbeat_client(&mut self, target: NodeId, node: &Member) -> RaftClient {
        RaftClient { append_channel: ChannelKind::Control, ..self.new_client(target, node).await }
    }
}

/// Raft's way to one peer. Cheap: connections belong to the [`PeerNet`].
pub struct RaftClient {
    net: PeerNet,
    target: NodeId,
    node: Member,
    /// Heartbeats go by the control channel, so that they never wait behind log entries.
    append_channel: ChannelKind,
}

impl RaftClient {
    fn key(&self, kind: ChannelKind) -> ChannelKey {
        let incarnation = Some(self.node.incarnation);
        ChannelKey { addr: self.node.peer_addr.clone(), node: Some(self.target), incarnation, kind }
    }

    fn ends(&self) -> Ends {
        Ends { from: self.net.inner.local.identity.load().node_id, to: self.target }
    }

    async fn connect(&self, kind: ChannelKind, until: Instant) -> Result<Arc<Connection>, RpcError> {
        let channel = self.net.channel(self.key(kind));
        match timeout_at(until, channel.connection(&self.net.inner)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(unreachable(error.into_reason())),
            Err(_) => Err(unreachable(format!("still connecting to {}", self.node.peer_addr))),
        }
    }

    fn timeout(&self, action: RPCTypes, timeout: Duration) -> RpcError {
        let Ends { from, to } = self.ends();
        RPCError::Timeout(Timeout { action, id: from, target: to, timeout })
    }

    /// One question and one answer on the control channel.
    async fn ask<A, R>(&self, kind: FrameKind, action: RPCTypes, ask: A, option: &RPCOption) -> Result<R, RpcError>
    where
        A: Encode,
        R: Decode<codec::Written>,
    {
        self.exchange(|id| Outgoing::whole(kind, id, codec::encode(&ask)), action, option.soft_ttl()).await
    }

    /// One append request and its answer on the control channel.
    async fn beat(&self, request: AppendEntriesRequest<TypeConfig>, ttl: Duration) -> Appended {
        assert!(request.entries.is_empty(), "a heartbeat with {} entries", request.entries.len());
        let mut pieces = AppendPieces::new(request);
        let frame = |id| pieces.next(FrameKind::Append, id).expect("the first piece of a request always exists");
        let outcome: AppendOutcome = self.exchange(frame, RPCTypes::AppendEntries, ttl).await?;
        outcome.into_result().map_err(unreachable)
    }

    async fn exchange<R>(
        &self,
        frame: impl FnOnce(u64) -> Outgoing,
        action: RPCTypes,
        ttl: Duration,
    ) -> Result<R, RpcError>
    where
        R: Decode<codec::Written>,
    {
        let until = Instant::now() + ttl;
        let connection = self.connect(ChannelKind::Control, until).await?;
        let lost = || network(connection.reason());
        let mut waiting = connection.expect_one().ok_or_else(lost)?;
        let asking = async {
            connection.send(frame(waiting.id)).await.map_err(|_| lost())?;
            waiting.answer().await.ok_or_else(lost)
        };
        let frame = timeout_at(until, asking).await.map_err(|_| self.timeout(action, ttl))??;
        let answer: RaftAnswer<R> = codec::decode(&frame.body).map_err(|error| network(error.to_string()))?;
        answer.map_err(unreachable)
    }
}

fn unreachable(reason: String) -> RpcError {
    RPCError::Unreachable(Unreachable::from_string(reason))
}

fn network(reason: String) -> RpcError {
    RPCError::Network(NetworkError::from_string(reason))
}

impl NetBackoff<TypeConfig> for RaftClient {
    fn backoff(&self) -> Option<Backoff> {
        None
    }
}

impl NetStreamAppend<TypeConfig> for RaftClient {
    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Appended>, RpcError>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            // openraft waits out its backoff inside the input: failing before something was taken from it would have
            // it try a dead peer again at once, thousands of times a second.
            let Some(first) = input.next().await else { return Ok(stream::empty().boxed()) };
            let input = stream::iter([first]).chain(input);
            // The option's time to live is one heartbeat: too short for log entries, see `append_deadline`.
            let deadline = self.net.inner.timings.append_deadline();
            if self.append_channel == ChannelKind::Control {
                // A heartbeat is a single request, and each round of reads takes one: a question costs far less than a stream.
                let client: &'s Self = self;
                return Ok(input.then(move |request| client.beat(request, deadline)).boxed());
            }
            let connection = self.connect(self.append_channel, Instant::now() + deadline).await?;
            let reason = Arc::clone(&connection);
            let opened = AppendStream::open(connection, input, deadline, self.ends());
            let stream = opened.ok_or_else(|| network(reason.reason()))?;
            let items = stream::unfold(stream, |mut stream| async move { Some((stream.next().await?, stream)) });
            Ok(items.boxed())
        })
    }
}

impl NetVote<TypeConfig> for RaftClient {
    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RpcError> {
        let ask = VoteQuery::from(&request);
        Ok(self.ask::<_, VoteGrant>(FrameKind::Vote, RPCTypes::Vote, ask, &option).await?.into())
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RpcError> {
        let ask = VoteQuery::from(&request);
        Ok(self.ask::<_, VoteGrant>(FrameKind::PreVote, RPCTypes::Vote, ask, &option).await?.into())
    }
}

impl NetTransferLeader<TypeConfig> for RaftClient {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RpcError> {
        let ask = TransferAsk::from(&request);
        let answer = self.ask::<_, TransferAnswer>(FrameKind::Transfer, RPCTypes::TransferLeader, ask, &option).await?;
        Ok(answer.into())
    }
}

impl NetSnapshot<TypeConfig> for RaftClient {
    type SnapshotData = SnapshotHandle;

    /// The option's time to live is not applied: a transfer takes as long as it takes, and openraft answers a timeout
    /// by beginning again at once. What is bounded is the time without progress.
    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<CommittedLeaderId, NodeId, Member, SnapshotHandle>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let key = self.key(ChannelKind::Snapshot);
        let sending = snapshot_stream::send(&self.net, key, vote, Arc::new(snapshot.snapshot));
        let sent = tokio::select! {
            biased;
            closed = cancel => return Err(StreamingError::Closed(closed)),
            sent = sending => sent,
        };
        sent.map(SnapshotResponse::new).map_err(|error| self.streaming(error))
    }
}

impl RaftClient {
    fn streaming(&self, error: SendError) -> StreamingError<TypeConfig> {
        tracing::warn!(target_node = self.target, %error, "a snapshot was not sent");
        match error {
            SendError::Unreachable(_) | SendError::Refused(_) | SendError::Untrusted => {
                StreamingError::Unreachable(Unreachable::from_string(error))
            }
            // A snapshot file that cannot be read is our fault, but not one to stop the leader for at this place: the
            // store finds out by itself. Backing off keeps the log readable.
            SendError::Source(_) => StreamingError::Unreachable(Unreachable::from_string(error)),
            SendError::Lost(_) => StreamingError::Network(NetworkError::from_string(error)),
            SendError::Idle => StreamingError::Network(NetworkError::from_string(error)),
        }
    }
}
