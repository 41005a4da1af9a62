//! Who guesses is slowed down.
//!
//! Owns how many times in a minute an address may bring what proves nothing. Whoever brings something good is never asked for it:
//! behind one address there are many.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connection::origin::Neighbour;

/// Failures of one address in [`WINDOW`] that are answered as such: a person who mistypes, or a fleet that was restarted with an
/// old token, gets to see what is wrong.
const FAILURES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered: some hundred KiB. With more of them at once some are forgotten, and begin anew.
const ADDRESSES_MAX: usize = 8_192;

/// The failures of late.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Failures>);

#[derive(Debug, Default)]
struct Failures {
    of: HashMap<Neighbour, Window>,
    swept: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    failures: u32,
}

impl Window {
    fn left(&self, now: Instant) -> Option<Duration> {
        WINDOW.checked_sub(now.saturating_duration_since(self.began)).filter(|left| !left.is_zero())
    }
}

impl Throttle {
    /// How long an address has to wait, if it has.
    pub fn wait(&self, from: Neighbour, now: Instant) -> Option<Duration> {
        let failures = self.0.lock();
        let window = failures.of.get(&from).filter(|window| window.failures >= FAILURES_MAX)?;
        window.left(now)
    }

    /// An address brought nothing good.
    pub fn failed(&self, from: Neighbour, now: Instant) {
        let mut failures = self.0.lock();
        if failures.of.len() >= ADDRESSES_MAX && !failures.of.contains_key(&from) {
            failures.make_room(now);
        }
        let window = failures.of.entry(from).or_insert(Window { began: now, failures: 0 });
        if window.left(now).is_none() {
            *window = Window { began: now, failures: 0 };
        }
        window.failures = window.failures.saturating_add(1);
    }
}

impl Failures {
    fn make_room(&mut self, now: Instant) {
        // Looking at all of them for each failure would be a way to keep the node busy.
        let is_due = self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= Duration::from_secs(1));
        if is_due {
            self.swept = Some(now);
            self.of.retain(|_, window| window.left(now).is_some());
        }
        if self.of.len() >= ADDRESSES_MAX
            && let Some(any) = self.of.keys().next().copied()
        {
            self.of.remove(&any);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn neighbour(address: impl Into<IpAddr>) -> Neighbour {
        address.into().into()
    }

    #[test]
    fn ten_failures_in_a_minute_are_enough_for_one_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let (one, other) = (neighbour([10, 0, 0, 1]), neighbour([10, 0, 0, 2]));
        for failure in 0..FAILURES_MAX {
            assert_eq!(throttle.wait(one, now), None, "after {failure}");
            throttle.failed(one, now);
        }
        assert_eq!(throttle.wait(one, now + Duration::from_secs(15)), Some(Duration::from_secs(45)));
        assert_eq!(throttle.wait(other, now), None);
        assert_eq!(throttle.wait(one, now + WINDOW), None);
        throttle.failed(one, now + WINDOW);
        assert_eq!(throttle.wait(one, now + WINDOW), None, "it begins anew");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for host in 0..u16::try_from(FAILURES_MAX).expect("few") {
            throttle.failed(neighbour([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]), now);
        }
        assert!(throttle.wait(neighbour([0x2001, 0xdb8, 0, 1, 9, 9, 9, 9]), now).is_some());
        assert!(throttle.wait(neighbour([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1]), now).is_none());
    }

    #[test]
    fn it_stays_bounded_whoever_comes() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for address in 0..2 * ADDRESSES_MAX as u32 {
            throttle.failed(neighbour(address.to_be_bytes()), now);
        }
        assert!(throttle.0.lock().of.len() <= ADDRESSES_MAX);
    }
}
