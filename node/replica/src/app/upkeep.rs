//! Work of a node beside the requests of its clients: snapshots out of turn, backups, the archive, and its certificates.
//!
//! Owns nothing but the parts for that, and their warnings. Never decides that one of them is due.

use std::sync::Arc;

use quorate_machine::level::Level;
use quorate_machine::types::WallMillis;
use quorate_node_core::tls::PortTls;

use super::archive::ArchiveLedger;
use super::backup::Backups;
use super::snapshot::Snapshots;

/// The upkeep of a node.
pub struct Upkeep {
    /// Snapshots out of turn.
    pub snapshots: Snapshots,
    /// Backups of the state.
    pub backups: Backups,
    /// The reach of the archive, where there is one.
    pub archive: Option<Arc<ArchiveLedger>>,
    /// TLS of its ports; empty where both are plain.
    pub tls: Vec<Arc<PortTls>>,
    /// The highest feature level that this node agrees to.
    pub level_known: Level,
}

impl Upkeep {
    /// Warnings about backups, the archive and certificates, at a time.
    pub fn warnings(&self, now: WallMillis) -> impl Iterator<Item = String> {
        let archive = self.archive.iter().flat_map(move |archive| archive.warnings(now));
        let certificates = self.tls.iter().flat_map(|port| port.warnings());
        self.backups.ledger().warning(now).into_iter().chain(archive).chain(certificates)
    }
}
