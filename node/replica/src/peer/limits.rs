//! Every bound of the peer protocol, with its reason.
//!
//! Owns sizes and counts. Never holds timings that depend on the election timeout: those are in `PeerTimings`.

use std::time::Duration;

use quorate_machine::limits::BATCH_BYTES_MAX;

use super::counters::ChannelKind;

const MIB: usize = 1024 * 1024;

/// Unanswered append requests per stream. openraft's follower side queues 64; more would only wait there.
pub const STREAM_WINDOW_REQUESTS: usize = 64;

/// Unanswered append bytes per stream: enough to fill 1 Gbit/s at 60 ms, little enough to drain before the deadline.
pub const STREAM_WINDOW_BYTES: usize = 8 * MIB;

/// An append request is cut into pieces of about this size, so that a long batch of entries is never one frame that
/// the follower has to take in whole before it can start to write.
pub const APPEND_PIECE_BYTES: usize = MIB;

/// Append streams open at once on one connection. openraft has one per role; the rest is for those just dropped.
pub const STREAMS_MAX: usize = 16;

/// Votes and transfers being answered at once on one connection. Openraft asks one at a time.
pub const RPCS_MAX: usize = 16;

/// Unanswered questions on one connection.
pub const CALLS_MAX: usize = 4_096;

/// Bytes of unanswered questions on one connection.
pub const CALL_BYTES_IN_FLIGHT_MAX: usize = 16 * MIB;

/// Largest question: forwarded commands of a few log entries.
pub const CALL_BYTES_MAX: usize = 8 * MIB;

/// Largest answer. A forwarded write that fails its condition answers with the current entry, so the answer to many
/// commands can be far larger than the commands.
pub const CALL_ANSWER_BYTES_MAX: usize = 32 * MIB;

/// Bytes of one snapshot chunk.
pub const SNAPSHOT_CHUNK_BYTES: usize = MIB;

/// Largest manifest: at 64 MiB and about 60 bytes of manifest a file, 4 MiB describe more than 4 TiB.
pub const MANIFEST_BYTES_MAX: usize = 4 * MIB;

/// Largest handshake frame: addresses are host names.
pub const HANDSHAKE_BYTES_MAX: usize = 4_096;

/// Answers on the Raft channels are log ids and short sentences.
pub const RAFT_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Frames waiting for the writer of a connection. Small: the bytes are bounded by [`QUEUE_BYTES_MAX`].
pub const QUEUE_FRAMES_MAX: usize = 1_024;

/// Bytes of large frames (see [`QUEUE_SMALL_FRAME_BYTES`]) waiting for the writer of a connection.
pub const QUEUE_BYTES_MAX: usize = 32 * MIB;

/// Frames up to this size are not counted against [`QUEUE_BYTES_MAX`], their number bounds them.
pub const QUEUE_SMALL_FRAME_BYTES: usize = 8 * 1024;

/// Inbound connections of one node: four channels, and some that die slowly.
pub const NODE_CONNECTIONS_MAX: usize = 16;

/// Inbound connections of all nodes that are members: dozens of them. Those of others are counted as of one node.
pub const CONNECTIONS_MAX: usize = 1_024;

/// Inbound connections that have not shaken hands yet. A crowd of `n` a second that says nothing pushes itself out after this many, so
/// that who comes in time has this divided by `n` seconds to say who it is.
pub const GREETINGS_MAX: usize = 512;

/// Those of them from one address, which may be that of all other nodes: they come with four channels each.
pub const ADDRESS_GREETINGS_MAX: usize = 128;

/// RequestClasses kept for peers; beyond it those without a connection are forgotten.
pub const LANES_MAX: usize = 256;

/// A payload at least this long is handed to the kernel from where it lies; a shorter one is cheaper to copy.
pub const SHARE_BYTES_MIN: usize = 1_024;

/// Bytes that a connection reads or writes before others have the thread: the other end may be as fast, and a frame large.
pub const IN_A_ROW_MAX: usize = MIB;

/// A connection that cannot write anything for so long is closed.
pub const WRITE_STALL: Duration = Duration::from_secs(10);

/// How soon a failed connection attempt is followed by another; until then the failure is repeated at once.
pub const REDIAL_FLOOR: Duration = Duration::from_millis(50);

/// Shortest pause after the peer refused this node: only an operator or an adoption changes that.
pub const REFUSED_FLOOR: Duration = Duration::from_millis(200);

/// Shortest pause after a TLS handshake failed: only new certificates change that, and each try costs both sides signatures.
pub const INSECURE_FLOOR: Duration = Duration::from_secs(1);

/// Largest body of a frame that asks something on this channel.
pub fn request_bytes_max(channel: ChannelKind) -> usize {
    match channel {
        ChannelKind::Control => RAFT_ANSWER_BYTES_MAX,
        ChannelKind::Append => APPEND_PIECE_BYTES + BATCH_BYTES_MAX + 64 * 1024,
        ChannelKind::App => CALL_BYTES_MAX,
        ChannelKind::Snapshot => MANIFEST_BYTES_MAX,
    }
}

/// Largest body of a frame that answers something on this channel.
pub fn answer_bytes_max(channel: ChannelKind) -> usize {
    match channel {
        ChannelKind::App => CALL_ANSWER_BYTES_MAX,
        ChannelKind::Control | ChannelKind::Append => RAFT_ANSWER_BYTES_MAX,
        ChannelKind::Snapshot => MANIFEST_BYTES_MAX,
    }
}

const _: () = assert!(ADDRESS_GREETINGS_MAX < GREETINGS_MAX && NODE_CONNECTIONS_MAX < CONNECTIONS_MAX);
const _: () = assert!(CALL_BYTES_MAX <= CALL_BYTES_IN_FLIGHT_MAX);
const _: () = assert!(CALL_ANSWER_BYTES_MAX <= QUEUE_BYTES_MAX);
const _: () = assert!(SNAPSHOT_CHUNK_BYTES + 64 <= MANIFEST_BYTES_MAX);
const _: () = assert!(APPEND_PIECE_BYTES + BATCH_BYTES_MAX <= STREAM_WINDOW_BYTES);
