//! What the transport has done, per channel, for the metrics.
//!
//! Owns the counters of both directions and both sides. Never resets them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One of the four connections to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Votes, heartbeats, leader transfer: small and urgent.
    Control,
    /// Log replication.
    Append,
    /// The node's own questions.
    App,
    /// One snapshot transfer.
    Snapshot,
}

impl ChannelKind {
    /// All channels, in the order of [`PeerCounters::channels`].
    pub const ALL: [Self; 4] = [Self::Control, Self::Append, Self::App, Self::Snapshot];

    /// Its number in the handshake.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Reverses [`Self::code`].
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.code() == code)
    }

    /// Its name in logs and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Append => "append",
            Self::App => "app",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Counts of one channel over all peers since the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Bytes written, frame headers included.
    pub bytes_sent: u64,
    /// Bytes read, frame headers included.
    pub bytes_received: u64,
    /// Frames written.
    pub frames_sent: u64,
    /// Frames read.
    pub frames_received: u64,
    /// Outgoing connections that were established.
    pub connects: u64,
    /// Outgoing connections that could not be established.
    pub connect_failures: u64,
    /// Inbound connections that passed the handshake.
    pub accepted: u64,
    /// Inbound connections that were refused.
    pub refused: u64,
}

/// A snapshot of all counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCounters {
    /// In the order of [`ChannelKind::ALL`].
    pub channels: [(ChannelKind, ChannelCounts); 4],
}

#[derive(Debug, Default)]
pub(super) struct ChannelCounters {
    pub bytes_sent: AtomicU64,
    pub bytes_received: AtomicU64,
    pub frames_sent: AtomicU64,
    pub frames_received: AtomicU64,
    pub connects: AtomicU64,
    pub connect_failures: AtomicU64,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
}

impl ChannelCounters {
    pub fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(amount as u64, Relaxed);
    }

    fn read(&self) -> ChannelCounts {
        ChannelCounts {
            bytes_sent: self.bytes_sent.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            frames_sent: self.frames_sent.load(Relaxed),
            frames_received: self.frames_received.load(Relaxed),
            connects: self.connects.load(Relaxed),
            connect_failures: self.connect_failures.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    channels: [ChannelCounters; 4],
}

impl Counters {
    pub fn channel(&self, channel: ChannelKind) -> &ChannelCounters {
        &self.channels[channel.code() as usize]
    }

    pub fn read(&self) -> PeerCounters {
        PeerCounters { channels: ChannelKind::ALL.map(|channel| (channel, self.channel(channel).read())) }
    }
}
