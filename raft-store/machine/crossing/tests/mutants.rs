//! Each bug on purpose is found within a minute, so a bug of its kind would be.
#![cfg(debug_assertions)]

use quorate_crossing::hunt;
use quorate_machine::mutants;

#[test]
fn each_mutant_is_found_within_a_minute() {
    let hunted: Vec<_> = mutants::ALL.iter().map(|(name, forgets)| hunt::hunt(name, forgets, 1)).collect();
    println!("{}", hunt::table(&hunted));
    let at_large: Vec<_> = hunted.iter().filter(|hunted| hunted.found.is_none()).map(|hunted| hunted.name).collect();
    assert!(at_large.is_empty(), "not found: {at_large:?}");
}
