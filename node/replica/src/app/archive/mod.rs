//! Continuous archiving: base states and the log of the cluster, kept beyond its machines.
//!
//! Owns when something is archived, removed or tried, and by whom: the leader does it, and all nodes that know the archive keep their
//! log until it is there. Never changes the state, and never holds a write up.

mod archiver;
mod key;
mod ledger;
mod merge;
mod others;
mod place;
mod verify;

use std::time::Duration;

use quorate_archive::{Keys, Location, MacKeys, Merging, Recipients, Retention};

pub use archiver::run;
pub use key::{read as read_keys, read_macs};
pub use ledger::{ArchiveLedger, ArchiveSamples};
pub use others::standing;
pub use verify::run as verify;

/// Where a cluster is archived, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// Where to.
    pub location: Location,
    /// How often entries are written there: what a disaster takes at most, beside what was under way.
    pub interval: Duration,
    /// From one base to the next.
    pub base_every: Duration,
    /// What is kept.
    pub retention: Retention,
    /// For whom it is encrypted, if for anybody.
    pub recipients: Recipients,
    /// Keys to try a restore with.
    pub keys: Keys,
    /// Keys of the MACs that authenticate what is archived, if any do.
    pub macs: MacKeys,
    /// Bytes of log that wait for the archive at most; beyond that they are given up, and a new base is made.
    pub hold_bytes: u64,
    /// From one try of a restore to the next; `None` for never.
    pub verify_every: Option<Duration>,
    /// How pieces become fewer and larger objects; `None` for never.
    pub merging: Option<Merging>,
}

impl ArchiveSettings {
    /// Whether this node can read what it archives.
    pub fn can_read(&self) -> bool {
        self.recipients.is_none() || !self.keys.is_none()
    }

    /// Whether this node tries restores while it leads.
    pub fn tries_restores(&self) -> bool {
        self.verify_every.is_some() && self.can_read()
    }
}

/// The words of the settings, for people.
impl std::fmt::Display for ArchiveSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = |time: Duration| time.as_millis() as f64 / 1_000.0;
        write!(
            f,
            "to {} every {} s, a base every {} s, ",
            self.location,
            seconds(self.interval),
            seconds(self.base_every)
        )?;
        write!(f, "each point of the last {} s kept, ", seconds(Duration::from_millis(self.retention.keep_ms)))?;
        match self.recipients.names().collect::<Vec<_>>() {
            none if none.is_empty() => f.write_str("not encrypted"),
            names => write!(f, "encrypted for {}", names.join(", ")),
        }?;
        if !self.macs.is_none() {
            f.write_str(", authenticated")?;
        }
        match self.verify_every {
            _ if !self.can_read() => f.write_str(", no restore is tried, since this node has no key"),
            Some(every) => write!(f, ", a restore tried every {} s", seconds(every)),
            None => f.write_str(", no restore is tried"),
        }
    }
}
