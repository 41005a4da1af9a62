//! Ports that are free now, and stay a test's own while a node is down.
//!
//! Owns nothing but what a test does without them: how they are chosen is for [`Ports`] to say.

pub use quorate_client::testing::ports::Ports;

/// `count` different loopback addresses, which no other test has as long as this lives. Nothing listens there.
pub fn free_addresses(count: usize) -> Ports {
    Ports::take(count).unwrap_or_else(|error| panic!("{error}"))
}
