//! The feature level: the same on all nodes at the same entry, never lower than it was, and never above what a build knows.

use crate::machine_support::Store;
use proptest::prelude::*;
use quorate_machine::command_codec;
use quorate_machine::level::{self, FIRST, KNOWN, NEXT, TooNew};
use quorate_machine::machine::{Fault, Vars};
use quorate_machine::types::{Action, Batch, Command, Maintenance};

fn raise(level: u32) -> Batch {
    let action = Action::Maintain(Maintenance::RaiseLevel { level });
    let command = command_codec::encode_command(&Command::unnamed(action));
    Batch { clock: 1, wall: 1, seed: [7; 16], commands: vec![command] }
}

#[test]
fn a_build_stops_at_a_level_that_it_does_not_know_and_says_what_to_do() {
    let mut store = Store::default();
    let before = store.vars.clone();
    let fault = store.apply(&[raise(NEXT + 1)]).expect_err("the level is not known");
    assert_eq!(fault, Fault::TooNew(TooNew { reached: NEXT + 1 }));
    assert!(fault.to_string().contains("install a newer version"), "{fault}");
    assert_eq!(store.vars, before, "nothing was applied");
}

#[test]
fn a_state_of_a_newer_build_is_refused_by_name() {
    let newer = Vars { level: NEXT + 1, ..Vars::default() };
    assert_eq!(level::check(newer.level), Err(TooNew { reached: NEXT + 1 }));
    assert_eq!(level::check(KNOWN), Ok(()));
    assert_eq!(Vars::default().level, FIRST, "it is founded at the first level, and needs none to be raised");
}

proptest! {
    #[test]
    fn the_level_is_the_highest_so_far_however_entries_are_grouped(levels in prop::collection::vec(0..=NEXT, 1..20), cut in any::<prop::sample::Index>()) {
        level::know_next();
        let batches: Vec<_> = levels.iter().map(|level| raise(*level)).collect();
        let (mut one, mut other) = (Store::default(), Store::default());
        one.apply(&batches).unwrap();
        let (first, second) = batches.split_at(cut.index(batches.len()));
        for part in [first, second] {
            other.apply(part).unwrap();
        }
        prop_assert_eq!(one.vars.level, levels.iter().copied().fold(FIRST, level::Level::max));
        prop_assert_eq!(&one.vars, &other.vars);
        prop_assert_eq!(one.vars.revision, 1, "a level takes no revision");
    }
}
