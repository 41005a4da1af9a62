//! Where a request comes from, as its connection tells.
//!
//! Owns what is known before a byte of a request was read. Never says who asks: that is decided for each request.

use std::net::SocketAddr;
use std::sync::Arc;

/// The far end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: SocketAddr,
    /// The name in its certificate, where it showed one that was verified.
    pub certificate: Option<Arc<str>>,
}
