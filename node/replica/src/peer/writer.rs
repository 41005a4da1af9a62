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
use super::limits::{IN_A_ROW_MAX, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, QUEUE_SMALL_FRAME_BYTES, WRITE_STALL};

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
    let mut in_a_row = 0;
    while !parts.is_empty() {
        if in_a_row >= IN_A_ROW_MAX {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let written = {
            let slices = slices(parts);
            timeout(WRITE_STALL, io.write_vectored(&slices)).await.map_err(|_| stalled())??
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        in_a_row += written;
        advance(parts, written);
    }
    // Nothing to a socket; TLS may have kept some of it back.
    timeout(WRITE_STALL, io.flush()).await.map_err(|_| stalled())?
}

/// The next slices to write, at most [`IN_A_ROW_MAX`] bytes.
fn slices(parts: &VecDeque<Bytes>) -> Vec<IoSlice<'_>> {
    let mut room = IN_A_ROW_MAX;
    let next = parts.iter().take(SLICES_MAX).map_while(|part| {
        let slice = &part[..part.len().min(room)];
        room -= slice.len();
        (!slice.is_empty()).then(|| IoSlice::new(slice))
    });
    next.collect()
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, ReadBuf};

    use super::super::frame::{FrameKind, FrameReader};
    use super::*;

    /// Bytes that went over a wire whose other end is as fast as this one.
    static MOVED: AtomicUsize = AtomicUsize::new(0);

    /// The two ends of such a wire.
    struct Fast<'b>(&'b [u8]);

    impl AsyncWrite for Fast<'_> {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
            MOVED.fetch_add(data.len(), Relaxed);
            Poll::Ready(Ok(data.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncRead for Fast<'_> {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let (read, rest) = self.0.split_at(into.remaining().min(self.0.len()));
            into.put_slice(read);
            MOVED.fetch_add(read.len(), Relaxed);
            self.0 = rest;
            Poll::Ready(Ok(()))
        }
    }

    /// Runs the work; fails if one poll moves more than twice [`IN_A_ROW_MAX`].
    fn in_steps<T>(work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut context = Context::from_waker(std::task::Waker::noop());
        loop {
            let before = MOVED.load(Relaxed);
            let polled = work.as_mut().poll(&mut context);
            let moved = MOVED.load(Relaxed) - before;
            assert!(moved <= 2 * IN_A_ROW_MAX, "{moved} bytes in one step");
            if let Poll::Ready(done) = polled {
                return done;
            }
        }
    }

    #[tokio::test]
    async fn a_large_frame_keeps_no_thread_from_others() {
        let size = 20 * IN_A_ROW_MAX;
        let frame = Outgoing::whole(FrameKind::Answer, 7, vec![1; size]);
        let bytes = frame.clone().into_bytes();
        in_steps(write_all(&mut Fast(&[]), &mut frame.parts.into())).unwrap();
        let mut reader = FrameReader::new(Fast(&bytes), size);
        let read = in_steps(reader.next()).unwrap().expect("a frame");
        assert_eq!((read.id, read.body.len()), (7, size));
    }
}
