//! The connections of the port of clients, for those who want to know who has them.
//!
//! Owns their numbers. The port owns their bounds, and the choice of those that end for others.

use std::sync::OnceLock;

use quorate_api::{NodeResource, NodeResourceKind};

use crate::connection::origin::Neighbour;
use crate::evicting_limit::{EvictingLimit, Full};
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::refusals::{Amounts, Held, Met, Numbers, Refusals};

/// The places of connections, and how often one was refused or had to go.
#[derive(Debug)]
pub struct Connections {
    /// Once the port is there.
    places: OnceLock<EvictingLimit<Neighbour>>,
    refusals: Refusals,
}

impl Default for Connections {
    fn default() -> Self {
        Self { places: OnceLock::new(), refusals: Refusals::new(NodeResourceKind::Connections) }
    }
}

impl Connections {
    /// From now on they are those that have these places.
    pub fn are_in(&self, places: EvictingLimit<Neighbour>) {
        let first = self.places.set(places);
        debug_assert!(first.is_ok(), "a node has one port of clients");
    }

    /// One was refused.
    pub fn refused(&self, full: Full) {
        let met = match full {
            Full::OfAll => Met::All,
            Full::OfOne => Met::Share,
        };
        self.refusals.add(met, || self.held());
    }

    /// One had to make room for another one.
    pub fn pushed_out(&self) {
        self.refusals.add(Met::All, || self.held());
    }

    /// Their numbers, with the accounts that hold most, for operators.
    pub fn told(&self) -> NodeResource {
        self.refusals.told(self.held())
    }

    /// Their numbers, for the metrics.
    pub fn numbers(&self) -> Numbers {
        let taken = self.places.get().map_or(0, EvictingLimit::taken);
        self.refusals.numbers(self.amounts(taken))
    }

    fn amounts(&self, taken: usize) -> Amounts {
        let (of_one, bound) = self.places.get().map_or((0, 0), EvictingLimit::bounds);
        Amounts { bound, of_one, taken }
    }

    fn held(&self) -> Held {
        let held = self.places.get().map(EvictingLimit::held).unwrap_or_default();
        let amounts = self.amounts(held.iter().map(|(_, held)| held).sum());
        let accounts = held.into_iter().map(|(neighbour, held)| (Account::Neighbour(neighbour), held)).collect();
        Held { amounts, accounts }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn each_address_is_named_with_its_connections() {
        let (connections, places) = (Connections::default(), EvictingLimit::new(2, 4));
        assert_eq!((connections.told().bound, connections.told().callers.len()), (0, 0), "there is no port yet");
        connections.are_in(places.clone());
        let take = |last: u8| {
            let of = Neighbour::from(IpAddr::from([10, 0, 0, last]));
            places.take(of, CancellationToken::new()).expect("there is room")
        };
        let held = [take(1), take(2), take(2)];
        connections.refused(Full::OfOne);
        connections.pushed_out();
        let told = connections.told();
        assert_eq!((told.bound, told.share, told.taken, told.refused, told.share_refused), (4, 2, 3, 1, 1));
        let numbers = connections.numbers();
        assert_eq!((numbers.amounts.bound, numbers.amounts.taken, numbers.refused), (4, 3, 1));
        let callers: Vec<_> = told.callers.iter().map(|caller| (caller.name.as_deref(), caller.held)).collect();
        assert_eq!(callers, [(Some("10.0.0.2"), 2), (Some("10.0.0.1"), 1)]);
        drop(held);
        assert_eq!((connections.told().taken, connections.told().callers.len()), (0, 0));
    }
}
