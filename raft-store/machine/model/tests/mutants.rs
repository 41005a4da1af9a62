//! Each bug on purpose that is meant for the model breaks its rule, so the check would find a bug of its kind.
#![cfg(debug_assertions)]

use quorate_machine::mutants::Mutant;
use quorate_model::Bounds;
use quorate_model::world::Rule;
use stateright::{Checker, HasDiscoveries, Model};

/// Mutants, and the rule that each breaks first.
const MEANT: [(Mutant, Rule); 7] = [
    (Mutant::AnyTokenGuards, Rule::Guard),
    (Mutant::TokensComeTwice, Rule::Growing),
    (Mutant::OneSlotTooMany, Rule::Slots),
    (Mutant::SessionsEndEarly, Rule::Early),
    (Mutant::RenewalsAreForgotten, Rule::Early),
    (Mutant::OutcomesAreForgotten, Rule::Once),
    (Mutant::AnyTokenReleases, Rule::Early),
];

#[test]
fn each_mutant_breaks_its_rule() {
    for (mutant, rule) in MEANT {
        let bounds = Bounds { clients: 2, slots: 1, steps: 5, mutant: Some(mutant) };
        let checker = bounds.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let worlds: Vec<_> = checker.discoveries().into_values().map(|path| path.last_state().clone()).collect();
        assert!(worlds.iter().any(|world| !world.keeps(rule)), "{mutant}: {:?} holds", rule);
        println!("{mutant}: refuted after {} states", checker.unique_state_count());
    }
}
