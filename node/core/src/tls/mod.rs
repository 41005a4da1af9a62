//! TLS of both ports: certificates from files, what is trusted, and their exchange while the node runs.
//!
//! Owns the way from PEM files to what a handshake needs. Never falls back to plain, and never judges a chain of
//! certificates itself: that is rustls's.
//!
//! Reading order: `files` says what was configured and reads it, `port` has what a port uses at the moment, `reload` exchanges
//! it, `handshakes` is where hands are shaken, `revoked` ends connections, `node_verifier` is the judgement over a peer, `certificate` tells names and expiry, `words` says why a handshake failed,
//! `authority` makes certificates to try all that with.

mod authority;
mod certificate;
mod files;
mod handshakes;
mod node_verifier;
mod port;
pub mod reload;
mod revoked;
mod words;

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

pub use authority::{Authority, Issued, Lifetime, Subject};
pub use certificate::name_of;
pub use files::{Port, TlsFault, TlsFiles, client_config, sentence};
pub use node_verifier::{any_node, is_of_node, name_of_node};
pub use port::PortTls;
pub use revoked::ShownCertificate;
pub use words::{failure, is_alert, may_be_tls, reason};

/// The one provider of cryptography.
pub(crate) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    &PROVIDER
}
