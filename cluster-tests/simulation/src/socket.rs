//! Connections of a simulation, as the product sees them.
//!
//! Owns the two ends of each. Never decides when something arrives: the network does.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use quorate_node_core::net::{Simulated, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::address::PipeId;
use crate::network::{Event, Net, WINDOW_BYTES};

/// One end of a connection.
struct Socket {
    net: Net,
    reads: PipeId,
    writes: PipeId,
}

/// An end that reads one pipe and writes the other.
pub fn open(net: Net, reads: PipeId, writes: PipeId) -> Stream {
    Stream::Simulated(Box::new(Socket { net, reads, writes }))
}

impl Simulated for Socket {
    fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let mut inner = self.net.lock();
        let pipe = inner.pipes.get_mut(&self.reads).expect("a socket's pipes stay as long as it does");
        if let Some(outcome) = pipe.nothing_to_read(cx) {
            return outcome.map_ok(|()| 0);
        }
        let count = buf.remaining().min(pipe.arrived.len());
        pipe.arrived.range(..count).for_each(|byte| buf.put_slice(&[*byte]));
        Poll::Ready(Ok(count))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.net.lock();
        let pipe = inner.pipes.get_mut(&self.reads).expect("a socket's pipes stay as long as it does");
        if let Some(outcome) = pipe.nothing_to_read(cx) {
            return outcome;
        }
        let (first, second) = pipe.arrived.as_slices();
        let count = buf.remaining().min(first.len() + second.len());
        let of_first = count.min(first.len());
        buf.put_slice(&first[..of_first]);
        buf.put_slice(&second[..count - of_first]);
        pipe.arrived.drain(..count);
        let writer = pipe.writer.take();
        drop(inner);
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.net.lock();
        let pipe = inner.pipes.get_mut(&self.writes).expect("a socket's pipes stay as long as it does");
        if pipe.reset_for_writer {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = WINDOW_BYTES.saturating_sub(pipe.on_its_way + pipe.arrived.len());
        if room == 0 {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = parts.iter().map(|part| part.len()).sum::<usize>().min(room);
        if count > 0 {
            let mut sent = Vec::with_capacity(count);
            parts.iter().for_each(|part| sent.extend_from_slice(&part[..part.len().min(count - sent.len())]));
            inner.send(self.writes, sent);
        }
        Poll::Ready(Ok(count))
    }

    /// Takes parts, like the sockets of a system: a long body need not be copied behind its head.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.net.lock().send(self.writes, Vec::new());
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut inner = self.net.lock();
        if !inner.pipes[&self.writes].writer_gone {
            inner.send(self.writes, Vec::new());
        }
        let pipe = inner.pipes.get_mut(&self.reads).expect("a socket's pipes stay as long as it does");
        if std::mem::replace(&mut pipe.reader_gone, true) {
            return;
        }
        let (from, to) = (pipe.from, pipe.to);
        let was_waited_for = pipe.on_its_way > 0 || !pipe.arrived.is_empty();
        (pipe.arrived, pipe.reader) = Default::default();
        if was_waited_for {
            let id = self.reads;
            inner.schedule_over(to, from, Event::ResetWriter(id));
        }
    }
}
