//! Frames: the unit of everything that travels between peers.
//!
//! A frame is `length u32 | crc32 u32 | kind u8 | id u64 | body`, little endian. The length counts what follows the
//! checksum; the checksum covers the same bytes. Owns this layout. Never looks into a body.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_threads::background;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::limits::{IN_A_ROW_MAX, SHARE_BYTES_MIN};

/// Bytes before the body.
pub const HEADER_BYTES: usize = 4 + 4 + 1 + 8;
const COVERED_HEADER_BYTES: usize = 1 + 8;
const READ_BUFFER_BYTES: usize = 64 * 1024;
const READ_AHEAD_MIN: usize = 16 * 1024;
/// The buffer grows with what arrived, not with what a header promises.
const READ_AHEAD_MAX: usize = 1024 * 1024;
/// A buffer that grew beyond this for a rare giant is given back.
const KEPT_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Makes the kinds of frames, each with its number, by which it is found again.
macro_rules! frame_kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal,)*) => {
        /// What a frame is. `id` names a call or a stream; frames that belong to none have 0.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum FrameKind {
            $($(#[$doc])* $kind = $code,)*
        }

        impl FrameKind {
            fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

frame_kinds! {
    /// First frame of the side that connects.
    Hello = 1,
    /// First frame of the side that accepts.
    Welcome = 2,
    /// Are you there? Answered at once, before anything that waits.
    Ping = 3,
    /// I am.
    Pong = 4,
    /// A `PeerRequest`.
    Call = 10,
    /// A `PeerResponse`.
    Answer = 11,
    /// The call was not processed and will not be; the body is a sentence.
    CallRefused = 12,
    /// The call was processed but its answer cannot be told; the body is a sentence.
    CallFailed = 13,
    /// A Raft vote request.
    Vote = 20,
    /// A Raft pre-vote request.
    PreVote = 21,
    /// A Raft leader transfer request.
    Transfer = 22,
    /// The answer to one of the three before, or to the next.
    RaftAnswer = 23,
    /// One append request that belongs to no stream and holds no more than one frame: a heartbeat.
    Append = 24,
    /// The first append request of a stream.
    AppendFirst = 30,
    /// A further append request of a stream.
    AppendNext = 31,
    /// The stream has no more requests; answers still come.
    StreamEnd = 32,
    /// Nobody waits for the stream any more.
    StreamCancel = 33,
    /// An answer to one or more append requests of a stream.
    AppendAnswer = 34,
    /// Vote and manifest of a snapshot.
    SnapshotBegin = 40,
    /// What of it is here already.
    SnapshotHave = 41,
    /// A piece of a file.
    SnapshotChunk = 42,
    /// Everything was sent.
    SnapshotFinish = 43,
    /// Still verifying or installing.
    SnapshotBusy = 44,
    /// Installed, or outdated: the vote of the answering node.
    SnapshotReply = 45,
    /// Not installed; the body is a sentence.
    SnapshotFailed = 46,
}

/// A frame that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// The call or stream.
    pub id: u64,
    /// Shares the read buffer: copy what is to outlive the handling of this frame.
    pub body: Bytes,
}

/// Why the bytes of a connection are not frames. The connection cannot be used any further.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The connection ended within a frame.
    #[error("the connection ended within a frame")]
    CutShort,
    /// Bytes of another protocol, which this one is.
    #[error("it speaks {0}, and only nodes speak on the port of peers, in their own protocol")]
    Foreign(&'static str),
    /// A frame larger than this channel allows. Nothing was allocated for it.
    #[error("a frame of {length} bytes, at most {max} are allowed here")]
    TooLarge {
        /// Length in the header.
        length: usize,
        /// Largest length allowed.
        max: usize,
    },
    /// A length that cannot hold the header.
    #[error("a frame of {0} bytes is too short to be one")]
    TooShort(usize),
    /// The checksum does not match.
    #[error("frame checksum {found:08x}, computed {computed:08x}")]
    Checksum {
        /// In the header.
        found: u32,
        /// Over the bytes.
        computed: u32,
    },
    /// A kind that this build does not know.
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
}

/// Takes one whole frame off the front of `buffer`, if there is one.
pub fn decode(buffer: &mut BytesMut, body_max: usize) -> Result<Option<Frame>, FrameError> {
    let Some(total) = frame_bytes(buffer, body_max)? else { return Ok(None) };
    if buffer.len() < total {
        return Ok(None);
    }
    let mut bytes = buffer.split_to(total).freeze();
    let found = u32::from_le_bytes(bytes[4..8].try_into().expect("the header was checked"));
    let computed = background::copy_in_place(total, || crc32fast::hash(&bytes[8..]));
    if found != computed {
        return Err(FrameError::Checksum { found, computed });
    }
    bytes.advance(8);
    let code = bytes.get_u8();
    let kind = FrameKind::from_code(code).ok_or(FrameError::UnknownKind(code))?;
    let id = bytes.get_u64_le();
    Ok(Some(Frame { kind, id, body: bytes }))
}

/// Length of the frame at the front of `buffer`, header included, once its length field is there.
fn frame_bytes(buffer: &[u8], body_max: usize) -> Result<Option<usize>, FrameError> {
    let Some(first) = buffer.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*first) as usize;
    if length < COVERED_HEADER_BYTES {
        return Err(FrameError::TooShort(length));
    }
    let max = body_max + COVERED_HEADER_BYTES;
    if length > max {
        return Err(foreign(first).map_or(FrameError::TooLarge { length, max }, FrameError::Foreign));
    }
    Ok(Some(8 + length))
}

/// The protocol that begins with these bytes. Each is text, so that they are a length that no channel allows.
fn foreign(first: &[u8; 4]) -> Option<&'static str> {
    match first {
        b"GET " | b"HEAD" | b"POST" | b"PUT " | b"PATC" | b"DELE" | b"OPTI" | b"CONN" | b"TRAC" | b"PRI " | b"HTTP" => {
            Some("HTTP")
        }
        b"SSH-" => Some("SSH"),
        _ => None,
    }
}

/// Reads frames off a socket.
pub struct FrameReader<R> {
    io: R,
    buffer: BytesMut,
    body_max: usize,
    /// Bytes that were read without letting others have the thread.
    in_a_row: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Frames with a longer body than `body_max` end the connection.
    pub fn new(io: R, body_max: usize) -> Self {
        Self { io, buffer: BytesMut::with_capacity(READ_BUFFER_BYTES), body_max, in_a_row: 0 }
    }

    /// Sets another limit, once the handshake has said what the connection is for.
    pub fn set_body_max(&mut self, body_max: usize) {
        self.body_max = body_max;
    }

    /// The next frame; `None` when the peer closed between frames. Safe to drop and call again: nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(frame) = decode(&mut self.buffer, self.body_max)? {
                return Ok(Some(frame));
            }
            if self.in_a_row >= IN_A_ROW_MAX {
                self.in_a_row = 0;
                tokio::task::yield_now().await;
            }
            self.make_room()?;
            // A buffer that grows may have room for far more.
            let read = self.io.read_buf(&mut (&mut self.buffer).limit(IN_A_ROW_MAX)).await?;
            if read == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::CutShort) };
            }
            self.in_a_row += read;
        }
    }

    fn make_room(&mut self) -> Result<(), FrameError> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BUFFER_BYTES_MAX {
            self.buffer = BytesMut::with_capacity(READ_BUFFER_BYTES);
        }
        let missing = frame_bytes(&self.buffer, self.body_max)?.map_or(0, |total| total - self.buffer.len());
        let more = missing.clamp(READ_AHEAD_MIN, READ_AHEAD_MAX);
        // Growth may copy all bytes that are buffered.
        background::copy_in_place(self.buffer.len(), || self.buffer.reserve(more));
        Ok(())
    }
}

/// A frame ready to be sent: its bytes in order, in one or more parts.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub(super) parts: Vec<Bytes>,
    bytes: usize,
}

impl Outgoing {
    /// A frame without a body.
    pub fn bare(kind: FrameKind, id: u64) -> Self {
        FrameBuilder::new(kind, id, 0).finish()
    }

    /// A frame with a body that is at hand.
    pub fn whole(kind: FrameKind, id: u64, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let inline = if body.len() < SHARE_BYTES_MIN { body.len() } else { 0 };
        let mut builder = FrameBuilder::new(kind, id, inline);
        builder.put_shared(&body);
        builder.finish()
    }

    /// All bytes of it, header included.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// The bytes in one piece, for those who write a single frame.
    pub fn into_bytes(self) -> Bytes {
        if let [only] = self.parts.as_slice() {
            return only.clone();
        }
        let mut whole = BytesMut::with_capacity(self.bytes);
        self.parts.iter().for_each(|part| whole.put_slice(part));
        whole.freeze()
    }
}

/// Puts a frame together from small pieces, which are copied, and large ones, which are shared.
pub struct FrameBuilder {
    /// What is filled already: copied bytes, then the shared ones that follow them. The frame's header leads the first.
    segments: Vec<(BytesMut, Bytes)>,
    /// Copied bytes after the last segment.
    tail: BytesMut,
}

impl FrameBuilder {
    /// `inline` is how many bytes will be copied in, as a hint.
    pub fn new(kind: FrameKind, id: u64, inline: usize) -> Self {
        let mut tail = BytesMut::with_capacity(HEADER_BYTES + inline);
        tail.put_u64_le(0);
        tail.put_u8(kind as u8);
        tail.put_u64_le(id);
        Self { segments: Vec::new(), tail }
    }

    /// Where copied bytes go.
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Appends bytes that somebody else holds too; long ones are not copied.
    pub fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_BYTES_MIN {
            self.tail.put_slice(bytes);
        } else {
            self.segments.push((self.tail.split(), bytes.clone()));
        }
    }

    /// Computes length and checksum.
    pub fn finish(mut self) -> Outgoing {
        let shared: usize = self.segments.iter().map(|(copied, shared)| copied.len() + shared.len()).sum();
        let bytes = shared + self.tail.len();
        let length = u32::try_from(bytes - 8).expect("a frame is bounded by limits::request_bytes_max");
        let checksum = background::copy_in_place(bytes, || self.checksum());
        let header = self.segments.first_mut().map_or(&mut self.tail, |(copied, _)| copied);
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        let segments = self.segments.into_iter().flat_map(|(copied, shared)| [copied.freeze(), shared]);
        let parts = segments.chain([self.tail.freeze()]).filter(|part| !part.is_empty()).collect();
        Outgoing { parts, bytes }
    }

    /// CRC-32 over everything after the checksum field, in wire order.
    fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let mut skip = 8;
        for (copied, shared) in &self.segments {
            hasher.update(&copied[skip..]);
            hasher.update(shared);
            skip = 0;
        }
        hasher.update(&self.tail[skip..]);
        hasher.finalize()
    }
}
