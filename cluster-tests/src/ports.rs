//! Ports that are free now, and stay free while a node is down.
//!
//! Owns the choice of ports for tests. Never picks from the range of outgoing connections: while a node is killed, an
//! outgoing connection could take its port, and its own peers could even connect to themselves on it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rand::RngExt;

/// The local ports are picked from here up to the first port of outgoing connections.
const LOWEST: u16 = 10_000;
/// Where outgoing connections start on Linux if the kernel does not say otherwise.
const OUTGOING_DEFAULT: u16 = 32_768;

/// `count` different loopback addresses on which nothing listens.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    let highest = outgoing_from().max(LOWEST + 1_000);
    let mut found = BTreeSet::new();
    for _ in 0..10_000 {
        if found.len() == count {
            break;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rand::rng().random_range(LOWEST..highest)));
        if TcpListener::bind(address).is_ok() {
            found.insert(address);
        }
    }
    assert_eq!(found.len(), count, "there are not {count} free ports from {LOWEST} to {highest}");
    found.into_iter().collect()
}

/// First port that the kernel gives to outgoing connections.
fn outgoing_from() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(OUTGOING_DEFAULT)
}
