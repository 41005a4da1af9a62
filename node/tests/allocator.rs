//! The allocator of the program `quorate-node`, in a process of its own.
//!
//! Owns no part of it. Its file is that of the program, which is not linked a second time, with a whole node, for this test.

use std::time::{Duration, Instant};

use libmimalloc_sys::mi_option_get;

#[path = "../src/allocator.rs"]
mod allocator;

use allocator::{EVERY, OTHERS_AFTER_MS, PURGE_DELAY, give_back_aside};

/// Bytes of this process in RAM.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn memory_is_given_back_though_no_thread_that_allocates_does_it() {
    const BLOCKS: usize = 1_000;
    const BLOCK: usize = 100_000;
    const DEFAULT_MS: i64 = 1_000;
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, DEFAULT_MS, "the number of the option is another one now");
    give_back_aside().unwrap();
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, OTHERS_AFTER_MS);
    let before = resident();
    let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|n| vec![n as u8 | 1; BLOCK]).collect();
    assert!(resident() > before + BLOCKS * BLOCK / 2, "it is in use");
    drop(blocks);
    let begun = Instant::now();
    while resident() > before + BLOCKS * BLOCK / 4 {
        assert!(begun.elapsed() < EVERY * 10, "{} MiB, {} MiB before", resident() >> 20, before >> 20);
        std::thread::sleep(Duration::from_millis(10));
    }
}
