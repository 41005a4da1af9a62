//! The allocator of this program, and when it gives freed memory back to the system.
//!
//! Owns the thread that does that. By itself the allocator would do it on whichever thread allocates next, for all that was freed
//! anywhere: after a flood of requests that was seen to keep a thread that serves connections busy for 100 ms at a time, in which Raft
//! waits too.

use std::io;
use std::time::Duration;

use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};

/// A tenth of the CPU of a write went into the system's allocator, RocksDB's share included.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often freed memory is given back: as often as the allocator would by itself.
pub const EVERY: Duration = Duration::from_secs(1);

/// After how many milliseconds other threads give memory back. None does while ours runs: it begins this time anew.
pub const OTHERS_AFTER_MS: i64 = 60_000;

/// `mi_option_purge_delay`, for which the bindings have no name.
pub const PURGE_DELAY: mi_option_t = 15;

/// Gives memory back on a thread of its own from now on. To be called before other threads are started.
pub fn give_back_aside() -> io::Result<()> {
    // SAFETY: takes no pointers; options may be set while there is one thread.
    unsafe { mi_option_set(PURGE_DELAY, OTHERS_AFTER_MS) };
    let give_back = || loop {
        std::thread::sleep(EVERY);
        // SAFETY: takes no pointers, and may be called from any thread.
        unsafe { mi_collect(true) };
    };
    std::thread::Builder::new().name("give-back".into()).spawn(give_back).map(drop)
}
