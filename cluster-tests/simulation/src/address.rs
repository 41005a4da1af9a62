//! Who is who in a simulated network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A host's number; its addresses are `127.0.0.<number>`.
pub type HostId = u8;

/// The address of a host.
pub fn address(host: HostId, port: u16) -> SocketAddr {
    (Ipv4Addr::new(127, 0, 0, host), port).into()
}

/// The host that has this address.
pub fn host_of(address: SocketAddr) -> Option<HostId> {
    match address.ip() {
        IpAddr::V4(ip) => Some(ip.octets()[3]),
        IpAddr::V6(_) => None,
    }
}

/// The host of all clients.
pub const CLIENTS: HostId = 100;

/// A direction of a connection.
pub type PipeId = u64;
