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

/// Makes the counts of a channel twice, as they are read and as they are counted.
macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident)*) => {
        /// Counts of one channel over all peers since the start of the process.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct ChannelCounts {
            $($(#[$doc])* pub $count: u64,)*
        }

        #[derive(Debug, Default)]
        pub(super) struct ChannelCounters {
            $(pub $count: AtomicU64,)*
        }

        impl ChannelCounters {
            fn read(&self) -> ChannelCounts {
                ChannelCounts { $($count: self.$count.load(Relaxed),)* }
            }
        }
    };
}

counts! {
    /// Bytes written, frame headers included.
    bytes_sent
    /// Bytes read, frame headers included.
    bytes_received
    /// Frames written.
    frames_sent
    /// Frames read.
    frames_received
    /// Outgoing connections that were established.
    connects
    /// Outgoing connections that could not be established.
    connect_failures
    /// Inbound connections that passed the handshake.
    accepted
    /// Inbound connections that were refused.
    refused
}

impl ChannelCounters {
    pub fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(amount as u64, Relaxed);
    }
}

/// A snapshot of all counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCounters {
    /// In the order of [`ChannelKind::ALL`].
    pub channels: [(ChannelKind, ChannelCounts); 4],
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
