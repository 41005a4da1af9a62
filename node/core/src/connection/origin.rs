//! Where a request comes from, as its connection tells.
//!
//! Owns what is known before a byte of a request was read. Never says who asks: that is decided for each request.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::connection::door::Door;
use crate::net::PeerAddress;

/// The far end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: PeerAddress,
    /// The name in its certificate, where it showed one that was verified.
    pub certificate: Option<Arc<str>>,
    /// By which kind of port it came.
    pub door: Door,
}

impl Origin {
    /// Whose bounds its connections count towards.
    pub fn neighbour(&self) -> Neighbour {
        self.address.into()
    }
}

/// Who is bounded where nothing but an address is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Neighbour {
    /// An address; of IPv6, where everybody has many, its network.
    Network(IpAddr),
    /// A user of this machine.
    User(u32),
}

impl From<IpAddr> for Neighbour {
    fn from(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            v4 => v4,
        })
    }
}

impl From<PeerAddress> for Neighbour {
    fn from(address: PeerAddress) -> Self {
        match address {
            PeerAddress::Network(address) => address.ip().into(),
            PeerAddress::Local { uid } => Self::User(uid),
        }
    }
}
