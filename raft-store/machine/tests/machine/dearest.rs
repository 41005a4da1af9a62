//! The dearest command of each kind: it takes no more than one command may, whatever becomes of it.

use std::collections::BTreeSet;

use quorate_crossing::dearest::{self, SCENES};
use quorate_machine::limits;

/// More than one command takes of the bound of a batch: all its steps, and what a transaction may read and write.
const TAKEN_MAX: usize = limits::BATCH_EFFECT_BYTES_MAX + 2 * limits::TXN_EFFECT_BYTES_MAX;

/// The instructions that each takes are counted by `scripts/instructions`, which goes over the same scenes.
#[test]
fn each_kind_has_its_dearest_command_which_takes_only_so_much() {
    let mut met = BTreeSet::new();
    for scene in SCENES {
        let mut store = (scene.store)();
        for action in (scene.commands)(&store) {
            met.extend(dearest::kinds_of(&action));
            let (outcome, taken) = dearest::apply_counted(&mut store, action);
            assert!(taken < TAKEN_MAX, "{}: {taken} bytes were taken by {outcome:?}", scene.name);
        }
        store.check();
    }
    let wanted = dearest::wanted();
    let missing: Vec<_> = wanted.difference(&met).collect();
    assert!(missing.is_empty(), "give them their dearest command: {missing:?}");
}
