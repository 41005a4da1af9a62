//! The app channel, answering side: questions to the node, each in a task of its own.
//!
//! Owns the bound on unanswered questions: when it is reached, no more are read. Never answers out of its own head but
//! to refuse what may not be asked before both nodes are of one cluster.

use std::sync::Arc;

use bytes::Bytes;
use quorate_threads::watchdog;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::frame::{Frame, FrameKind, Outgoing};
use super::inbound::{Inbound, misplaced, pong};
use super::limits::{CALL_ANSWER_BYTES_MAX, CALL_BYTES_IN_FLIGHT_MAX, CALLS_MAX};
use super::members::MemberQuestion;
use super::message::{PeerRequest, PeerResponse};

struct CallBudget {
    calls: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

impl CallBudget {
    async fn take(&self, bytes: usize) -> (OwnedSemaphorePermit, OwnedSemaphorePermit) {
        const OPEN: &str = "these semaphores are never closed";
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes as u32).await.expect(OPEN);
        (bytes, Arc::clone(&self.calls).acquire_owned().await.expect(OPEN))
    }
}

/// Serves until the peer closes; `Err` says what it did wrong.
pub(super) async fn run(mut inbound: Inbound) -> Result<(), String> {
    let budget = CallBudget {
        calls: Arc::new(Semaphore::new(CALLS_MAX)),
        bytes: Arc::new(Semaphore::new(CALL_BYTES_IN_FLIGHT_MAX)),
    };
    while let Some(frame) = inbound.reader.next().await.map_err(|error| error.to_string())? {
        match frame.kind {
            FrameKind::Ping => pong(&inbound.out).await?,
            FrameKind::Call => on_call(&inbound, &budget, frame).await?,
            kind => return Err(misplaced(kind, inbound.channel)),
        }
    }
    Ok(())
}

async fn on_call(inbound: &Inbound, budget: &CallBudget, frame: Frame) -> Result<(), String> {
    let permits = budget.take(frame.body.len()).await;
    let id = frame.id;
    let request = match PeerRequest::decode(&frame.body) {
        Ok(request) => request,
        Err(error) => return refuse(inbound, id, format!("the question was not understood: {error}")).await,
    };
    // The read buffer is free again once the frame is gone; the request has copies.
    drop(frame);
    if let Err(reason) = may_ask(inbound, &request).await {
        return refuse(inbound, id, reason).await;
    }
    let answering = inbound.server.service.handle(inbound.peer.clone(), request);
    let (out, token) = (inbound.out.clone(), inbound.token.clone());
    watchdog::spawn_tracked(&inbound.tasks, async move {
        let work = async { out.send(answer_frame(id, &answering.await)).await };
        // A connection that ended has nobody left who waits; the work itself is not undone by that.
        if let Some(Err(_)) = token.run_until_cancelled(work).await {
            quorate_node_core::debug!("an answer found its connection closed");
        }
        drop(permits);
    });
    Ok(())
}

/// Who may ask what.
enum Asker {
    /// Anybody with the right certificate: it is about becoming a member.
    Anybody,
    /// Whoever says that it is of this cluster: it asks whether that is so still.
    OfThisCluster,
    /// A member. The leader decides, which knows all of them.
    MemberForLeader,
    /// A member, which may have become one while this node was away.
    Member,
}

impl Asker {
    fn of(request: &PeerRequest) -> Self {
        match request {
            PeerRequest::Hello | PeerRequest::Adopt { .. } | PeerRequest::Join { .. } => Self::Anybody,
            PeerRequest::Members(MemberQuestion::AmI) => Self::OfThisCluster,
            PeerRequest::ReadIndex
            | PeerRequest::Forward { .. }
            | PeerRequest::Repair { .. }
            | PeerRequest::LockTurn { .. }
            | PeerRequest::LeaveLockQueue { .. }
            | PeerRequest::Members(_) => Self::MemberForLeader,
            PeerRequest::Digests
            | PeerRequest::BeginRepair
            | PeerRequest::EndRepair
            | PeerRequest::Room
            | PeerRequest::Wall
            | PeerRequest::Archive
            | PeerRequest::Knows(_) => Self::Member,
        }
    }
}

async fn may_ask(inbound: &Inbound, request: &PeerRequest) -> Result<(), String> {
    let asker = Asker::of(request);
    if let Asker::Anybody = asker {
        return Ok(());
    }
    if !inbound.server.net.inner.local.shares_cluster(inbound.peer.cluster_id) {
        return Err("the two nodes are not of one cluster yet".into());
    }
    match asker {
        Asker::Anybody | Asker::OfThisCluster => Ok(()),
        Asker::MemberForLeader => inbound.known.judge(),
        Asker::Member => inbound.known.inquire().await,
    }
}

async fn refuse(inbound: &Inbound, id: u64, reason: String) -> Result<(), String> {
    let frame = Outgoing::whole(FrameKind::CallRefused, id, Bytes::from(reason));
    inbound.out.send(frame).await.map_err(|_| "the connection broke".to_owned())
}

fn answer_frame(id: u64, response: &PeerResponse) -> Outgoing {
    let body = response.encode();
    if body.len() <= CALL_ANSWER_BYTES_MAX {
        return Outgoing::whole(FrameKind::Answer, id, body);
    }
    let reason = format!("the answer has {} bytes, {CALL_ANSWER_BYTES_MAX} can be sent", body.len());
    Outgoing::whole(FrameKind::CallFailed, id, Bytes::from(reason))
}
