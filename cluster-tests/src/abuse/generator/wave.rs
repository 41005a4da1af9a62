//! Combinations that are carried out at once: those that are alike but for the operation.
//!
//! Owns which there are, and the hostile connections of one that is under way. Never judges what becomes of the nodes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Runtime;

use super::combination::{Caller, Combination, Shape, Sources};
use super::field::Field;
use super::hostile::{Hostile, Size};
use super::notes::Notes;
use super::operations::Operation;
use crate::abuse::attacks::{PAUSE, source, threads};
use crate::abuse::way::Way;

/// Combinations that are carried out at once.
#[derive(Debug, Clone)]
pub struct Wave {
    /// The name, made of what they have in common.
    pub name: String,
    /// All of them go by this protocol.
    pub way: Way,
    /// All of them are of this shape.
    pub shape: Shape,
    /// The combinations.
    pub combinations: Vec<Combination>,
}

/// Every combination that there is.
pub fn all(operations: &[Arc<Operation>]) -> Vec<Wave> {
    let mut waves = Vec::new();
    for way in Way::ALL {
        for shape in Shape::ALL {
            for caller in Caller::ALL {
                for sources in Sources::ALL {
                    let combinations = by(operations, way).map(|operation| Combination {
                        operation: Arc::clone(operation),
                        shape,
                        caller,
                        sources,
                    });
                    let name = format!("{way}, {shape}, {caller}, {sources}");
                    waves.push(Wave { name, way, shape, combinations: combinations.collect() });
                }
            }
        }
    }
    waves
}

/// Each operation in each shape, by one of the callers from one or two addresses: in turn, and drawn where the turns begin. Each shape of each
/// protocol meets all callers from both. Operations by which a tenant holds something are those of a tenant in any case.
pub fn some(operations: &[Arc<Operation>], dice: &mut StdRng) -> Vec<Wave> {
    let callers = Caller::ALL.into_iter().flat_map(|caller| Sources::ALL.map(|sources| (caller, sources)));
    let callers: Vec<_> = callers.collect();
    let mut waves = Vec::new();
    for way in Way::ALL {
        for shape in Shape::ALL {
            let begin = dice.random_range(0..callers.len());
            let turns = callers.iter().cycle().skip(begin);
            let turns = by(operations, way).zip(turns.copied());
            let holding = by(operations, way).filter(|operation| operation.holds);
            let callers = turns.chain(holding.map(|operation| (operation, (Caller::Tenant, Sources::One))));
            let combinations = callers.map(|(operation, (caller, sources))| Combination {
                operation: Arc::clone(operation),
                shape,
                caller,
                sources,
            });
            waves.push(Wave { name: format!("{way}, {shape}"), way, shape, combinations: combinations.collect() });
        }
    }
    waves
}

fn by(operations: &[Arc<Operation>], way: Way) -> impl Iterator<Item = &Arc<Operation>> {
    operations.iter().filter(move |operation| operation.way == way)
}

impl Wave {
    /// Begins it, on threads of its own. Each connection that is cut or done begins anew.
    pub fn begin(&self, field: &Field, size: &Size, notes: &Arc<Notes>) -> Underway {
        let threads = threads(size.niceness);
        for (number, combination) in self.combinations.iter().enumerate() {
            let sources = combination.sources.count();
            let connections = (size.connections / self.combinations.len()).max(sources);
            for nth in 0..connections {
                let hostile = Hostile {
                    combination: combination.clone(),
                    from: source(nth % sources),
                    to: field.nodes[(number + nth) % field.nodes.len()],
                    token: field.token_of(combination.caller).map(str::to_owned),
                    size: *size,
                    notes: Arc::clone(notes),
                    is_noted: AtomicBool::new(false),
                };
                threads.spawn(async move {
                    loop {
                        // It goes on after any end.
                        let _ended = hostile.once().await;
                        tokio::time::sleep(PAUSE).await;
                    }
                });
            }
        }
        Underway(Some(threads))
    }

    /// Those that no node has met.
    pub fn missing<'a>(&'a self, notes: &'a Notes) -> impl Iterator<Item = &'a Combination> {
        self.combinations.iter().filter(|combination| !notes.has_met(combination))
    }
}

/// A wave that is under way. Dropping it ends it.
pub struct Underway(Option<Runtime>);

impl Drop for Underway {
    fn drop(&mut self) {
        // Nothing of it blocks, so nothing is waited for.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;
    use cluster_harness::http::Request;

    fn operations() -> Vec<Arc<Operation>> {
        let of = |way| {
            (0..7).map(move |number| {
                let (request, name) = (Request::get("/"), number.to_string());
                Operation {
                    way,
                    name,
                    dear: request.clone(),
                    request,
                    lasts: false,
                    goes_on: false,
                    holds: number == 0,
                }
            })
        };
        Way::ALL.into_iter().flat_map(of).map(Arc::new).collect()
    }

    fn names(waves: &[Wave]) -> BTreeSet<String> {
        waves.iter().flat_map(|wave| &wave.combinations).map(ToString::to_string).collect()
    }

    #[test]
    fn all_are_all_and_some_meet_each_operation_in_each_shape_and_each_caller() {
        let operations = operations();
        let every = names(&all(&operations));
        assert_eq!(every.len(), operations.len() * 8 * 3 * 2);
        let some = some(&operations, &mut StdRng::seed_from_u64(3));
        let drawn = names(&some);
        assert_eq!(some.len(), 4 * 8);
        assert!(drawn.len() >= operations.len() * 8 && drawn.is_subset(&every));
        for wave in &some {
            let callers = wave.combinations.iter().map(|one| (one.caller, one.sources)).collect::<BTreeSet<_>>();
            assert_eq!(callers.len(), 6, "{}", wave.name);
            let asked = wave.combinations.iter().map(|one| &one.operation.name).collect::<BTreeSet<_>>();
            assert_eq!(asked.len(), 7, "{}", wave.name);
            let is_held = |one: &Combination| one.operation.holds && one.caller == Caller::Tenant;
            assert!(wave.combinations.iter().any(is_held), "{}", wave.name);
        }
    }
}
