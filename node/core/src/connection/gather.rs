//! What is written at about the same time goes out at once.
//!
//! Owns the writes of a connection that many answers share: each is small, and to give one alone to the kernel costs more than to make
//! it. Whoever is about to make another one is let go first. Never holds anything back for longer than that, nor waits for a time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are gathered before they are written all the same.
const GATHERED_MAX: usize = 64 * 1024;

/// How often those who are ready are let go first, as long as each time brings more.
const YIELDS_MAX: u32 = 8;

/// A stream whose writes are gathered until a flush.
pub struct Gathering<S> {
    stream: S,
    gathered: BytesMut,
    /// How much there was when those who are ready were last let go first, and how often they were.
    yielded_at: usize,
    yields: u32,
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Nothing is gathered yet.
    pub fn new(stream: S) -> Self {
        Self { stream, gathered: BytesMut::new(), yielded_at: 0, yields: 0 }
    }

    /// Writes what was gathered.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.gathered))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.gathered.advance(written);
        }
        (self.yielded_at, self.yields) = (0, 0);
        Poll::Ready(Ok(()))
    }

    /// Whether there is room for so many more.
    fn poll_room(&mut self, cx: &mut Context<'_>, more: usize) -> Poll<io::Result<()>> {
        let is_full = !self.gathered.is_empty() && self.gathered.len() + more > GATHERED_MAX;
        if is_full { self.poll_drain(cx) } else { Poll::Ready(Ok(())) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(cx, data.len()))?;
        if data.len() > GATHERED_MAX {
            return Pin::new(&mut self.stream).poll_write(cx, data);
        }
        self.gathered.extend_from_slice(data);
        Poll::Ready(Ok(data.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = parts.iter().map(|part| part.len()).sum();
        ready!(self.poll_room(cx, len))?;
        if len > GATHERED_MAX {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        }
        parts.iter().for_each(|part| self.gathered.extend_from_slice(part));
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.gathered.len() > self.yielded_at && self.yields < YIELDS_MAX {
            self.yielded_at = self.gathered.len();
            self.yields += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Counts the writes that reach it.
    #[derive(Default)]
    struct Counted {
        writes: usize,
        data: Vec<u8>,
    }

    impl AsyncWrite for Counted {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
            self.writes += 1;
            // As a socket that is nearly full takes it.
            let taken = data.len().min(40_000);
            self.data.extend_from_slice(&data[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn small_writes_go_out_as_one_and_in_order() {
        let mut stream = Gathering::new(Counted::default());
        for part in [&b"one "[..], b"two ", b"three"] {
            stream.write_all(part).await.expect("gathered");
        }
        assert_eq!(stream.stream.writes, 0);
        stream.flush().await.expect("written");
        assert_eq!((stream.stream.writes, &stream.stream.data[..]), (1, &b"one two three"[..]));
    }

    #[tokio::test]
    async fn large_writes_wait_for_nothing_and_stay_behind_what_was_gathered() {
        let mut stream = Gathering::new(Counted::default());
        let large = vec![b'x'; GATHERED_MAX + 1];
        stream.write_all(b"small").await.expect("gathered");
        stream.write_all(&large).await.expect("written");
        stream.flush().await.expect("written");
        assert_eq!(stream.stream.data, [b"small", &large[..]].concat());
    }

    #[tokio::test]
    async fn what_is_gathered_is_written_before_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = Gathering::new(ours);
        let writing = tokio::spawn(async move {
            stream.write_all(&[7; 100]).await.expect("gathered");
            stream.shutdown().await.expect("written");
        });
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.expect("the whole");
        writing.await.expect("no panic");
        assert_eq!(read, [7; 100]);
    }
}
