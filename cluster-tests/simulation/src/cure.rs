//! How what was done to a simulated cluster is taken back.

use crate::address::HostId;

/// How a wound is healed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cure {
    /// The node of this host is started.
    Start(HostId),
    /// These directions are fine again.
    Links(Vec<(HostId, HostId)>),
    /// Its disk is fine again.
    Disk(HostId),
    /// Nothing has to be done.
    None,
}
