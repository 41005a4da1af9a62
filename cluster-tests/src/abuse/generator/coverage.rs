//! The combinations that a run met, and the resources that each protocol took something of.
//!
//! Owns what has to be met. Never carries anything out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::combination::Shape;
use super::gauges::{Gauges, Rest};
use super::notes::Notes;
use super::wave::Wave;
use crate::abuse::way::Way;

/// Resources that something has to be taken of by every protocol, as metrics name them. All others are shown.
const RESOURCES: [&str; 6] = ["connections", "arriving", "bodies", "answers", "waits", "watches"];
/// The advice for a run that did not meet everything.
const ADVICE: &str = "a combination is met once a node took its head or answered it: see what the node says to its request \
    (generator/operations.rs has all), and how long its wave may last (Size::hold_max); a resource is taken by what `holds` it";
/// Combinations that were not met and are named.
const NAMED_MAX: usize = 20;

#[derive(Debug, Default, Clone, Copy)]
struct Row {
    wanted: usize,
    met: usize,
}

/// The account of a run.
#[derive(Debug)]
pub struct Coverage {
    /// The protocols by which something has to be taken of each resource.
    whole: BTreeSet<Way>,
    rows: BTreeMap<(Way, Shape), Row>,
    /// The protocols that took something, by gauge.
    taken: BTreeMap<String, BTreeSet<Way>>,
    missing: Vec<String>,
}

impl Coverage {
    /// Begins the account of a run that carries out all waves of these protocols. Of other protocols it may carry out some: only their
    /// combinations have to be met, as nobody can tell which resources those take.
    pub fn of(whole: impl IntoIterator<Item = Way>) -> Self {
        let whole = whole.into_iter().collect();
        Self { whole, rows: BTreeMap::new(), taken: BTreeMap::new(), missing: Vec::new() }
    }

    /// Adds a wave that is over, with the most that was seen of each gauge.
    pub fn add(&mut self, wave: &Wave, notes: &Notes, rest: &Rest, most: &Gauges) {
        let missing: Vec<_> = wave.missing(notes).map(ToString::to_string).collect();
        let row = self.rows.entry((wave.way, wave.shape)).or_default();
        row.wanted += wave.combinations.len();
        row.met += wave.combinations.len() - missing.len();
        self.missing.extend(missing);
        for (gauge, _) in rest.pressed(most) {
            self.taken.entry(gauge.to_owned()).or_default().insert(wave.way);
        }
    }

    /// The same as a table.
    pub fn table(&self) -> String {
        let mut table = String::from("| protocol | shape | combinations met | of |\n|---|---|---:|---:|\n");
        for ((way, shape), Row { wanted, met }) in &self.rows {
            writeln!(table, "| {way} | {shape} | {met} | {wanted} |").expect("a string takes everything");
        }
        table.push_str("\n| held by callers, more than at rest | by protocol |\n|---|---|\n");
        for (gauge, ways) in &self.taken {
            let ways: Vec<_> = ways.iter().map(ToString::to_string).collect();
            writeln!(table, "| {gauge} | {} |", ways.join(", ")).expect("a string takes everything");
        }
        table
    }

    /// Names all that was not met, after advice on what to do about it.
    pub fn missing(&self) -> Vec<String> {
        let mut all: Vec<_> =
            self.missing.iter().take(NAMED_MAX).map(|combination| format!("not met: {combination}")).collect();
        if let Some(more) = self.missing.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            all.push(format!("not met: {more} more"));
        }
        for resource in RESOURCES {
            let gauge = format!("quorate_http_resource_taken{{resource=\"{resource}\"}}");
            let by = self.taken.get(&gauge).cloned().unwrap_or_default();
            let none = self.whole.difference(&by);
            all.extend(none.map(|way| format!("nothing by {way} was seen to take any of {resource}")));
        }
        if !all.is_empty() {
            all.insert(0, ADVICE.to_owned());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::combination::{Caller, Combination, Sources};
    use super::super::operations::Operation;
    use super::*;
    use cluster_harness::http::Request;

    #[test]
    fn a_combination_and_a_resource_that_were_not_met_are_named() {
        let (request, name) = (Request::get("/"), "get /".to_owned());
        let dear = request.clone();
        let operation = Operation { way: Way::Grpc, name, request, dear, lasts: false, goes_on: false, holds: false };
        let (operation, shape) = (Arc::new(operation), Shape::Repeated);
        let of = |caller| Combination { operation: Arc::clone(&operation), shape, caller, sources: Sources::Two };
        let combinations = vec![of(Caller::Tenant), of(Caller::Stranger)];
        let wave = Wave { name: "a wave".into(), way: Way::Grpc, shape, combinations };
        let (notes, mut coverage, mut narrowed) =
            (Notes::default(), Coverage::of(Way::ALL), Coverage::of([Way::Http2]));
        notes.meet(&wave.combinations[0]);
        coverage.add(&wave, &notes, &Rest::default(), &Gauges::default());
        narrowed.add(&wave, &notes, &Rest::default(), &Gauges::default());
        assert!(coverage.table().contains("| gRPC | repeated | 1 | 2 |"), "{}", coverage.table());
        let missing = coverage.missing();
        let first = [
            ADVICE,
            "not met: gRPC, get /, repeated, stranger, two addresses",
            "nothing by HTTP/1.1 was seen to take any of connections",
        ];
        assert_eq!(missing[..3], first);
        assert_eq!(missing.len(), 2 + RESOURCES.len() * Way::ALL.len());
        let missing = narrowed.missing();
        assert_eq!(missing[..2], first[..2]);
        assert_eq!(missing[2], "nothing by HTTP/2 was seen to take any of connections");
        assert_eq!(missing.len(), 2 + RESOURCES.len());
    }
}
