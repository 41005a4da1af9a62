//! Objects of any size as streams of bytes, for code that blocks.
//!
//! Owns the parts of an upload and the checksum of what goes through. Used from threads that may block, never from tasks of a runtime.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::MultipartUpload;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

/// Bytes of a part: S3 takes ten thousand of 5 MiB at least, so this is good for 80 GB.
const PART_BYTES: usize = 8 << 20;

/// Writes an object in parts. It is there once [`Upload::finish`] has returned, and not before.
pub(crate) struct Upload {
    handle: Handle,
    parts: Box<dyn MultipartUpload>,
    part: Vec<u8>,
    hasher: Sha256,
    bytes: u64,
    is_done: bool,
}

impl Upload {
    pub(crate) fn new(handle: Handle, parts: Box<dyn MultipartUpload>) -> Self {
        Self { handle, parts, part: Vec::with_capacity(PART_BYTES), hasher: Sha256::new(), bytes: 0, is_done: false }
    }

    /// Sends the last part and makes the object. Gives its length and SHA-256.
    pub(crate) fn finish(mut self) -> io::Result<(u64, [u8; 32])> {
        if !self.part.is_empty() || self.bytes == 0 {
            self.send_part()?;
        }
        self.handle.block_on(self.parts.complete())?;
        self.is_done = true;
        Ok((self.bytes, std::mem::take(&mut self.hasher).finalize().into()))
    }

    fn send_part(&mut self) -> io::Result<()> {
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(PART_BYTES));
        let sent = self.parts.put_part(Bytes::from(part).into());
        Ok(self.handle.block_on(sent)?)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PART_BYTES - self.part.len());
        self.part.extend_from_slice(&bytes[..count]);
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        if self.part.len() == PART_BYTES {
            self.send_part()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    /// Parts of what never became an object cost money: most stores keep them until they are told.
    fn drop(&mut self) {
        if !self.is_done {
            // Where that fails too, a rule of the bucket has to remove them.
            let _aborted = self.handle.block_on(self.parts.abort());
        }
    }
}

/// Reads an object.
pub(crate) struct Download {
    handle: Handle,
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    chunk: Bytes,
    hasher: Sha256,
    bytes: u64,
    /// Why it broke off: what was read then says nothing of the object.
    broken: Option<object_store::Error>,
}

impl Download {
    pub(crate) fn new(handle: Handle, chunks: BoxStream<'static, object_store::Result<Bytes>>) -> Self {
        Self { handle, chunks, chunk: Bytes::new(), hasher: Sha256::new(), bytes: 0, broken: None }
    }

    /// Why the store did not give all of it, if so.
    pub(crate) fn take_broken(&mut self) -> Option<object_store::Error> {
        self.broken.take()
    }

    /// Length and SHA-256 of what was read.
    pub(crate) fn so_far(&self) -> (u64, [u8; 32]) {
        (self.bytes, self.hasher.clone().finalize().into())
    }
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            if let Some(error) = &self.broken {
                return Err(io::Error::other(error.to_string()));
            }
            match self.handle.block_on(self.chunks.next()) {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(error)) => self.broken = Some(error),
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.chunk.len());
        into[..count].copy_from_slice(&self.chunk[..count]);
        self.hasher.update(&self.chunk[..count]);
        self.bytes += count as u64;
        self.chunk.advance(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    #[test]
    fn a_download_that_breaks_off_is_no_object_that_ends_early() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let broken = || object_store::Error::Generic { store: "test", source: "the line is dead".into() };
        let chunks = stream::iter([Ok(Bytes::from_static(b"half")), Err(broken()), Ok(Bytes::from_static(b"more"))]);
        let mut download = Download::new(runtime.handle().clone(), chunks.boxed());
        let mut read = Vec::new();
        for _ in 0..2 {
            let error = download.read_to_end(&mut read).unwrap_err().to_string();
            assert!(error.contains("the line is dead"), "{error}");
        }
        assert_eq!((&read[..], download.so_far().0), (&b"half"[..], 4));
        assert!(matches!(download.take_broken(), Some(object_store::Error::Generic { .. })));
    }
}
