//! Each bug on purpose is found within a minute, so a bug of its kind would be.
#![cfg(debug_assertions)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use quorate_crossing::hunt::{self, Hunted};
use quorate_machine::mutants::Mutant;

/// Hunts all mutants, one on each processor at a time: a thread has a mutant of its own.
fn hunt_all() -> Vec<Hunted> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = Mutant::OF_MACHINE.get(nth) else { return };
                    let hunted = hunt::hunt(*mutant, 1);
                    done.lock().unwrap().push((nth, hunted));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_unstable_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, hunted)| hunted).collect()
}

#[test]
fn each_mutant_is_found_within_a_minute() {
    let hunted = hunt_all();
    assert_eq!(hunted.len(), Mutant::OF_MACHINE.len());
    println!("{}", hunt::table(&hunted));
    let at_large: Vec<_> = hunted.iter().filter(|hunted| hunted.found.is_none()).map(|hunted| hunted.mutant).collect();
    assert!(at_large.is_empty(), "not found: {at_large:?}");
}
