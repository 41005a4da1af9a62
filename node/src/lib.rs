//! The Quorate server. `ARCHITECTURE.md` at the root of the repository has the whole picture.

// Where it cannot fail, `expect` says why; where it can, the error has a way to go. Tests may.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// A server says things through its log.
#![warn(clippy::print_stdout)]

pub mod commands;
pub mod config;
pub mod limits;

pub mod app;
pub mod backend;
pub mod client_port;
mod connection;
pub mod dev;
mod etcd;
mod file_mode;
mod file_version;
pub mod gateway;
pub mod http;
pub mod logging;
pub mod metrics;
mod millis;
pub mod net;
pub mod peer;
mod per_second;
pub mod raft_config;
pub mod rebuild;
pub mod server;
pub mod slow;
pub mod timings;
pub mod tls;
pub mod traces;
pub mod unix_socket;
pub mod watchdog;

/// Exit code of a node that cannot trust or write its storage.
pub const EXIT_STORAGE: i32 = 3;

/// Exit code of a node that was removed from its cluster: to start it again changes nothing.
pub const EXIT_REMOVED: i32 = 4;

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
