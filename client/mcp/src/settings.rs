//! What can be set of a server, and why it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quorate_client::Client;

/// What an agent may do, and as whom.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The cluster.
    pub client: Client,
    /// The owner of the session, whom others see at a lock; without it the name of the agent's program and our process.
    pub name: Option<String>,
    /// How long the session lives without a renewal: so long after the death of an agent others wait for what it held.
    pub ttl: Duration,
    /// What all keys and names of the agent begin with; empty for no limit.
    pub prefix: String,
    /// Whether tools that change something are left out.
    pub read_only: bool,
    /// About how many bytes of values an answer has; the rest of a value is read in parts.
    pub answer_bytes: usize,
}

/// Why a server could not begin, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The agent does not speak the protocol as it should.
    #[error("the agent did not open the protocol: {0}")]
    Opening(String),
    /// The settings do not make sense.
    #[error("{0}")]
    Settings(String),
    /// A file of the settings.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The address of the settings.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// A part of the server ended that should not.
    #[error("the server failed: {0}")]
    Failed(#[from] tokio::task::JoinError),
}
