//! TLS of a node: of the ports that have it.
//!
//! Owns the way from the configuration to them.

use std::sync::Arc;

use quorate_node_core::tls::{PortTls, TlsFiles, sentence};

use crate::config::Config;

/// Both ports.
pub struct NodeTls {
    /// That of clients; `None` where it is plain.
    pub clients: Option<Arc<PortTls>>,
    /// That of peers, and the connections to them.
    pub peers: Option<Arc<PortTls>>,
}

impl NodeTls {
    /// Reads the files that the configuration names; an error names each that does not fit.
    pub fn open(config: &Config) -> Result<Self, String> {
        let open = |files: &Option<TlsFiles>| files.clone().map(PortTls::open).transpose();
        let opened = open(&config.tls).and_then(|clients| Ok(Self { clients, peers: open(&config.peer_tls)? }));
        opened.map_err(|faults| sentence(&faults))
    }

    /// Those that have TLS.
    pub fn ports(&self) -> Vec<Arc<PortTls>> {
        self.clients.iter().chain(&self.peers).cloned().collect()
    }
}
