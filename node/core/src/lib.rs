//! A node below its protocols: what every protocol that clients speak shares, and the ground that a replica stands on as well.
//!
//! Owns no protocol of clients: those are `quorate-node-http` and `quorate-node-etcd`, which know this crate and not each other. Knows no
//! database and no Raft: `quorate-node-replica` has both, behind [`backend`]. Modules point one way: `metrics`, `net` and `tls`, then
//! `connection` and `backend`, then `gateway`.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]
// Tasks of a node are watched; those that stand for its surroundings in tests are not.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod alive_table;
pub mod backend;
pub mod connection;
pub mod cron;
pub mod evicting_limit;
pub mod file_mode;
pub mod file_version;
pub mod gateway;
pub mod limits;
pub mod logging;
pub mod metrics;
pub mod millis;
pub mod net;
pub mod per_second;
pub mod slow;
pub mod timings;
pub mod tls;
pub mod token_text;
pub mod traces;
pub mod unix_socket;

/// Ends the process at this very moment: at the end of a stop, and for faults after which it must not say another word.
///
/// `std::process::exit` is not that: it runs the C library's exit handlers first, and RocksDB's waits there for all of its
/// background threads, for seconds of compaction or, on a disk that hangs, for ever, while the other threads go on
/// answering requests. Nothing is lost by leaving them out: what was acknowledged is synced, and what waits for stderr
/// goes out first, as far as that takes no time.
pub fn end_now(code: i32) -> ! {
    logging::last_words();
    // SAFETY: the call takes no memory of ours, and returns to nobody.
    unsafe { libc::_exit(code) }
}
