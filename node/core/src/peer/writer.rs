//! The sending half of a connection: a bounded queue and the task that empties it.
//!
//! Owns batching: whatever waits is written with one system call. Never reorders frames and never drops one but with
//! the whole connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::counters::ChannelCounters;
use super::frame::Outgoing;
use super::limits::{QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, QUEUE_SMALL_FRAME_BYTES, WRITE_STALL};

const SLICES_MAX: usize = 128;
const BATCH_BYTES: usize = 1024 * 1024;

/// The writer of this connection is gone; the frame was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueClosed;

/// A frame in the queue, with its share of the byte budget if it is large.
pub(super) struct Queued {
    frame: Outgoing,
    _budget: Option<OwnedSemaphorePermit>,
}

/// Puts frames into the queue.
#[derive(Clone)]
pub(super) struct FrameSender {
    queue: mpsc::Sender<Queued>,
    budget: Arc<Semaphore>,
}

/// A queue and its reading end for [`run`].
pub(super) fn queue() -> (FrameSender, mpsc::Receiver<Queued>) {
    let (queue, receiver) = mpsc::channel(QUEUE_FRAMES_MAX);
    (FrameSender { queue, budget: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)) }, receiver)
}

impl FrameSender {
    /// Waits for room. Dropped before it returns, the frame was not queued.
    pub async fn send(&self, frame: Outgoing) -> Result<(), QueueClosed> {
        let bytes = frame.byte_count();
        let budget = if bytes <= QUEUE_SMALL_FRAME_BYTES {
            None
        } else {
            let permits = bytes.min(QUEUE_BYTES_MAX) as u32;
            Some(Arc::clone(&self.budget).acquire_many_owned(permits).await.map_err(|_| QueueClosed)?)
        };
        self.queue.send(Queued { frame, _budget: budget }).await.map_err(|_| QueueClosed)
    }

    /// For small frames from where nothing can wait. False where there is no room.
    pub fn try_send(&self, frame: Outgoing) -> bool {
        debug_assert!(frame.byte_count() <= QUEUE_SMALL_FRAME_BYTES, "a frame of {} bytes", frame.byte_count());
        self.queue.try_send(Queued { frame, _budget: None }).is_ok()
    }
}

/// Writes what is queued until the queue is closed and empty, or the socket fails or stalls.
pub(super) async fn run<W: AsyncWrite + Unpin>(
    mut io: W,
    mut queue: mpsc::Receiver<Queued>,
    counters: &ChannelCounters,
) -> io::Result<()> {
    while let Some(first) = queue.recv().await {
        let (mut parts, _budgets) = gather(first, &mut queue, counters);
        write_all(&mut io, &mut parts).await?;
    }
    io.shutdown().await
}

type Budgets = Vec<OwnedSemaphorePermit>;

fn gather(first: Queued, queue: &mut mpsc::Receiver<Queued>, counters: &ChannelCounters) -> (VecDeque<Bytes>, Budgets) {
    let (mut parts, mut budgets) = (VecDeque::new(), Budgets::new());
    let (mut bytes, mut frames) = (0, 0);
    let mut next = Some(first);
    while let Some(Queued { frame, _budget }) = next {
        bytes += frame.byte_count();
        frames += 1;
        parts.extend(frame.parts);
        budgets.extend(_budget);
        next = if bytes < BATCH_BYTES && parts.len() < SLICES_MAX { queue.try_recv().ok() } else { None };
    }
    ChannelCounters::add(&counters.bytes_sent, bytes);
    ChannelCounters::add(&counters.frames_sent, frames);
    (parts, budgets)
}

async fn write_all<W: AsyncWrite + Unpin>(io: &mut W, parts: &mut VecDeque<Bytes>) -> io::Result<()> {
    while !parts.is_empty() {
        let written = {
            let slices: Vec<IoSlice> = parts.iter().take(SLICES_MAX).map(|part| IoSlice::new(part)).collect();
            timeout(WRITE_STALL, io.write_vectored(&slices)).await.map_err(|_| stalled())??
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        advance(parts, written);
    }
    // Nothing to a socket; TLS may have kept some of it back.
    timeout(WRITE_STALL, io.flush()).await.map_err(|_| stalled())?
}

fn stalled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the peer took nothing in for {} s", WRITE_STALL.as_secs()))
}

fn advance(parts: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(part) = parts.front_mut() {
        if written < part.len() {
            part.advance(written);
            return;
        }
        written -= part.len();
        parts.pop_front();
    }
    assert_eq!(written, 0, "more bytes written than there were");
}
