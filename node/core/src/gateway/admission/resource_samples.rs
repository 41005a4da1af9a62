//! The numbers of what is taken through an account, for the metrics.
//!
//! Owns the names of the resources. Never tells who holds them.

use std::sync::Arc;

use crate::gateway::admission::body_memory::BodyMemory;
use crate::gateway::admission::shares::{Resource, Scarce, Shares};
use crate::metrics::{MetricsSource, Sample};

/// The resources that requests hold before they are whole: places of those on their way, and bytes of bodies.
pub struct ResourceSamples {
    /// The places.
    pub shares: Arc<Shares>,
    /// The bytes.
    pub bodies: Arc<BodyMemory>,
}

impl MetricsSource for ResourceSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        type Number = fn(&Resource) -> Sample;
        let numbers: [Number; 4] = [
            |of| Sample::gauge("http_resource_taken", "What requests hold of a resource", of.taken() as u64),
            |of| Sample::gauge("http_resource_bound", "What they may hold together", of.bound() as u64),
            |of| {
                let help = "Requests that were refused since all together held as much as there is";
                Sample::counter("http_resource_refused", help, of.refused().0)
            },
            |of| {
                let help = "Requests that were refused since their account held as much as one may";
                Sample::counter("http_resource_share_refused", help, of.refused().1)
            },
        ];
        let resources = [("arriving", self.shares.places(Scarce::Arriving)), ("bodies", self.bodies.room())];
        for number in numbers {
            out.extend(resources.map(|(name, of)| number(of).labelled("resource", name)));
        }
    }
}
