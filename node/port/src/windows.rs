//! The bytes that peers may send on HTTP/2 connections before anybody reads them.
//!
//! Owns how much that is on each connection: the first ones of a node get much, and the more there are, the less a new one gets. Nobody is
//! refused for it: a smaller window makes long bodies slower, and nothing else. Counts what may be sent, not what is: a peer that fills its
//! window is no surprise.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_node_core::limits;

/// A new connection gets this part of what is left, so that a crowd does not leave nothing to those behind it.
const PART: u64 = 16;

/// The windows of all ports of this process, since they bound the memory of the process.
pub(super) static WINDOWS: Windows = Windows::new(limits::H2_WINDOWS_BYTES);

/// The bytes left for windows beyond the least that each connection has.
pub(super) struct Windows {
    left: AtomicU64,
}

impl Windows {
    const fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// Takes the window of a new connection.
    pub(super) fn take(&self) -> Window<'_> {
        let most = u64::from(limits::H2_CONNECTION_WINDOW_BYTES - limits::H2_CONNECTION_WINDOW_BYTES_MIN);
        let part = |left: u64| (left / PART).min(most);
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - part(left)));
        let taken = part(left.expect("a part can always be taken"));
        Window { of: self, taken: u32::try_from(taken).expect("less than the largest window") }
    }
}

/// The window of a connection, given back when it is dropped.
pub(super) struct Window<'w> {
    of: &'w Windows,
    /// Beyond the least.
    taken: u32,
}

impl Window<'_> {
    /// Bytes of the connection.
    pub(super) fn bytes(&self) -> u32 {
        limits::H2_CONNECTION_WINDOW_BYTES_MIN + self.taken
    }

    /// Bytes of each of its streams: the same part of any connection, so that it takes as many that are not read to stop the others.
    pub(super) fn stream_bytes(&self) -> u32 {
        self.bytes() / (limits::H2_CONNECTION_WINDOW_BYTES / limits::H2_STREAM_WINDOW_BYTES)
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.of.left.fetch_add(u64::from(self.taken), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_connections_get_much_and_all_together_no_more_than_there_is() {
        let windows = Windows::new(limits::H2_WINDOWS_BYTES);
        let taken: Vec<_> = (0..4_096).map(|_| windows.take()).collect();
        let first = &taken[0];
        assert_eq!(first.bytes(), limits::H2_CONNECTION_WINDOW_BYTES);
        assert_eq!(first.stream_bytes(), limits::H2_STREAM_WINDOW_BYTES);
        let last = &taken[4_095];
        assert!(last.bytes() < limits::H2_CONNECTION_WINDOW_BYTES_MIN + 16, "{} bytes", last.bytes());
        assert!(taken.is_sorted_by(|one, next| one.bytes() >= next.bytes()));
        let all: u64 = taken.iter().map(|window| u64::from(window.bytes())).sum();
        assert!(all <= limits::H2_WINDOWS_BYTES + 4_096 * u64::from(limits::H2_CONNECTION_WINDOW_BYTES_MIN), "{all}");
        assert!(all <= 512 << 20, "{all} bytes of windows on a node with the usual number of connections");
    }

    #[test]
    fn who_goes_leaves_the_window_to_who_comes() {
        let windows = Windows::new(limits::H2_WINDOWS_BYTES);
        for _ in 0..2 {
            let crowd: Vec<_> = (0..1_000).map(|_| windows.take()).collect();
            assert_eq!(crowd[0].bytes(), limits::H2_CONNECTION_WINDOW_BYTES);
        }
        assert_eq!(windows.left.load(Ordering::Relaxed), limits::H2_WINDOWS_BYTES);
    }
}
