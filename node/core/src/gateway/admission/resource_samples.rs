//! The numbers of what is taken through an account, for the metrics.
//!
//! Owns the names of the metrics. Never tells who holds the resources.

use std::sync::Arc;

use crate::gateway::admission::answer_memory::AnswerMemory;
use crate::gateway::admission::body_memory::BodyMemory;
use crate::gateway::admission::classes::RequestClasses;
use crate::gateway::admission::connections::Connections;
use crate::gateway::admission::refusals::Numbers;
use crate::gateway::admission::shares::{Scarce, Shares};
use crate::metrics::{MetricsSource, Sample};

/// The resources that accounts have shares of.
pub struct ResourceSamples {
    /// The places.
    pub shares: Arc<Shares>,
    /// The bytes of bodies.
    pub bodies: Arc<BodyMemory>,
    /// The memory for answers.
    pub answers: AnswerMemory,
    /// The connections.
    pub connections: Arc<Connections>,
    /// The classes.
    pub classes: Arc<RequestClasses>,
}

impl MetricsSource for ResourceSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        type Number = fn(&Numbers) -> Sample;
        let numbers: [Number; 4] = [
            |of| Sample::gauge("http_resource_taken", "What callers hold of a resource", of.amounts.taken as u64),
            |of| Sample::gauge("http_resource_bound", "What they may hold together", of.amounts.bound as u64),
            |of| {
                let help = "Requests that were refused since all together held as much as there is";
                Sample::counter("http_resource_refused", help, of.refused)
            },
            |of| {
                let help = "Requests that were refused since their account held as much as one may";
                Sample::counter("http_resource_share_refused", help, of.share_refused)
            },
        ];
        let places = [Scarce::Waits, Scarce::Watches, Scarce::Arriving].map(|what| self.shares.places(what).numbers());
        let rest = [self.bodies.room().numbers(), self.connections.numbers()];
        let resources = [&places[..], &rest, &self.answers.numbers(), &self.classes.numbers()[..]].concat();
        for number in numbers {
            out.extend(resources.iter().map(|of| number(of).labelled("resource", of.resource)));
        }
    }
}
