//! The disk under a node's log, in a simulation.
//!
//! Owns how long it takes, whether it fails, how much room it has, and what a crash leaves of what was not synced. Never holds data: that is in
//! files.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use quorate_store::log::SimulatedDisk;
use rand::RngExt;
use rand::rngs::StdRng;

/// A disk.
#[derive(Debug)]
pub struct Disk {
    dice: Mutex<StdRng>,
    /// Longest time of a sync, microseconds.
    slowest: AtomicU64,
    fails_next: AtomicBool,
    torn: AtomicU64,
    free: AtomicU64,
}

/// Bytes of a disk, all of them free at first.
const SIZE: u64 = 1 << 40;
/// Longest time of a sync while all is well, microseconds.
const WELL: u64 = 2_000;

impl Disk {
    /// A disk that is well.
    pub fn new(dice: StdRng) -> Self {
        let (fails_next, torn) = Default::default();
        Self { dice: Mutex::new(dice), slowest: AtomicU64::new(WELL), fails_next, torn, free: AtomicU64::new(SIZE) }
    }

    /// Makes each sync take up to so many microseconds.
    pub fn slow_down(&self, slowest: u64) {
        self.slowest.store(slowest, Relaxed);
    }

    /// Makes it well again.
    pub fn heal(&self) {
        self.slowest.store(WELL, Relaxed);
        self.fails_next.store(false, Relaxed);
        self.free.store(SIZE, Relaxed);
    }

    /// Makes the next sync fail.
    pub fn fail_next(&self) {
        self.fails_next.store(true, Relaxed);
    }

    /// From now on so many bytes are free.
    pub fn set_free(&self, free: u64) {
        self.free.store(free, Relaxed);
    }

    /// Bytes that are free, and bytes in all.
    pub fn room(&self) -> (u64, u64) {
        (self.free.load(Relaxed), SIZE)
    }

    /// Groups of which a crash left some sectors and not all.
    pub fn torn(&self) -> u64 {
        self.torn.load(Relaxed)
    }
}

impl SimulatedDisk for Disk {
    fn takes(&self) -> Duration {
        let slowest = self.slowest.load(Relaxed);
        Duration::from_micros(self.dice.lock().expect("never poisoned").random_range(50..slowest))
    }

    fn fails(&self) -> bool {
        self.fails_next.swap(false, Relaxed)
    }

    fn survivors(&self, sectors: usize) -> Vec<bool> {
        let survivors = draw(sectors, &mut self.dice.lock().expect("never poisoned"));
        if survivors.contains(&true) && survivors.contains(&false) {
            self.torn.fetch_add(1, Relaxed);
        }
        survivors
    }
}

/// Which sectors of a group are there after a crash: none, all, the first ones, any.
fn draw(sectors: usize, dice: &mut StdRng) -> Vec<bool> {
    match dice.random_range(0..4) {
        0 => vec![false; sectors],
        1 => vec![true; sectors],
        2 => {
            let kept = dice.random_range(0..=sectors);
            (0..sectors).map(|place| place < kept).collect()
        }
        _ => (0..sectors).map(|_| dice.random()).collect(),
    }
}
