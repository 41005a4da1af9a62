//! Where a request comes from, as its connection tells.
//!
//! Owns what is known before a byte of a request was read. Never says who asks: that is decided for each request.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The far end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: SocketAddr,
    /// The name in its certificate, where it showed one that was verified.
    pub certificate: Option<Arc<str>>,
    /// Whether what it says is encrypted.
    pub is_secure: bool,
}

/// What belongs to one owner: an address, and of IPv6, where everybody has many, its network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}
