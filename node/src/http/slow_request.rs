//! The line in the log of a request that took too long.
//!
//! Owns what the line says. Of a key it shows the beginning, escaped; of a value nothing.

use std::time::Duration;

use http::StatusCode;

use super::paths::Route;
use super::{Api, Backend};
use crate::slow::{ms, shown};
use crate::spent::{Part, Spent};

/// A request that took too long.
#[derive(Debug)]
pub struct SlowRequest<'r> {
    /// Where it went.
    pub route: Route,
    /// What was to be done there.
    pub method: &'r str,
    /// As it came; empty for a line of an operation stream.
    pub path: &'r str,
    /// Under which the other nodes know it too.
    pub request_id: &'r str,
    /// How it was answered.
    pub status: StatusCode,
    /// Of its body, and of the answer where that is known.
    pub bytes: (usize, Option<u64>),
    /// All in all.
    pub took: Duration,
    /// Where that went.
    pub spent: Spent,
}

impl SlowRequest<'_> {
    /// Counts it, and writes the line unless there were many.
    pub fn tell<B: Backend>(&self, api: &Api<B>) {
        api.metrics.observe_slow_request();
        let Some(left_out) = api.slow.admit() else { return };
        let glance = api.backend.glance();
        tracing::warn!(
            route = self.route.template(),
            method = self.method,
            path = shown(self.path),
            request_id = shown(self.request_id),
            status = self.status.as_u16(),
            ms = ms(self.took),
            body_ms = ms(self.spent.on(Part::Body)),
            log_ms = ms(self.spent.on(Part::Log)),
            freshness_ms = ms(self.spent.on(Part::Freshness)),
            wish_ms = ms(self.spent.on(Part::Wish)),
            bytes_in = self.bytes.0,
            bytes_out = self.bytes.1,
            node = api.settings.node_id,
            leader = glance.leader_id,
            term = glance.term,
            left_out,
            "slow request"
        );
    }
}
