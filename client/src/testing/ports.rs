//! Ports of this machine that are a test's own as long as it holds them.
//!
//! Owns the choice of ports, for [`super::TestCluster`] and for the tests of Quorate itself; the helpers in other languages choose alike.
//! Never gives a port of outgoing connections: one of these could have it before a node listens there, or while a node is down, and a
//! node that dials a peer at such a port could even reach itself.
//!
//! Ports lie in blocks. A listener at the first of a block holds the others: they are nobody else's then, though nobody listens there.
//! The system ends that with the process, however it ends.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Deref;
use std::{fs, io};

/// Blocks lie from here up to the first port of outgoing connections.
const LOWEST: u16 = 10_000;
/// First port of outgoing connections if the system does not name another.
const OUTGOING_FROM: u16 = 32_768;
/// Ports of a block, with the first.
const BLOCK: u16 = 8;
/// How many blocks are looked at to find some that are free.
const BLOCKS_LOOKED_AT: usize = 1_000;

/// Addresses that nobody listens at, and that no other test is given as long as this lives.
#[derive(Debug)]
pub struct Ports {
    addresses: Vec<SocketAddr>,
    /// Nobody connects to these: each holds a block.
    _holders: Vec<TcpListener>,
}

impl Ports {
    /// Takes this many, all different.
    pub fn take(count: usize) -> io::Result<Self> {
        let highest = outgoing_from().max(LOWEST + 1_000);
        let (mut addresses, mut holders) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS_LOOKED_AT {
            if addresses.len() >= count {
                break;
            }
            let block = rand::random_range(0..(highest - LOWEST) / BLOCK);
            if let Some((holder, free)) = claim(LOWEST + block * BLOCK) {
                holders.push(holder);
                addresses.extend(free);
            }
        }
        if addresses.len() < count {
            return Err(io::Error::other(format!("there are not {count} free ports from {LOWEST} to {highest}")));
        }
        addresses.truncate(count);
        Ok(Self { addresses, _holders: holders })
    }
}

impl Deref for Ports {
    type Target = [SocketAddr];

    fn deref(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// The block with this first port, unless it is another's: what holds it, and those of its addresses that no other program listens at.
fn claim(first: u16) -> Option<(TcpListener, Vec<SocketAddr>)> {
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).ok()?;
    let others = (first + 1..first + BLOCK).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    Some((holder, others.filter(|address| TcpListener::bind(address).is_ok()).collect()))
}

/// The first port that the system gives to outgoing connections.
fn outgoing_from() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    range.and_then(|range| range.split_whitespace().next()?.parse().ok()).unwrap_or(OUTGOING_FROM)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_none_that_outgoing_connections_get() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port of those that the system gives away");
        let given = server.local_addr().expect("bound").port();
        let found = Ports::take(20).expect("ports");
        assert!(found.iter().all(|address| address.port() < given.max(LOWEST + 1_000)), "{found:?} and {given}");
        let different: BTreeSet<_> = found.iter().collect();
        assert_eq!(different.len(), 20, "{found:?}");
    }

    #[test]
    fn ports_that_are_held_are_nobody_elses_though_nobody_listens_there() {
        let held = Ports::take(1).expect("a port");
        let port = held[0].port();
        let _nobody = TcpListener::bind(held[0]).expect("nobody listens there");
        assert!(claim(port - (port - LOWEST) % BLOCK).is_none(), "{held:?}");
    }
}
