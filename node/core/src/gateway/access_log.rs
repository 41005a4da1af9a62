//! What is told of a request once it was answered, whatever the protocol: a line in the log where it took too long, a span where a collector shall see it.
//!
//! Owns what they say. Of a key the line shows the beginning, escaped; of a value nothing.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::gateway::api::Api;
use crate::gateway::auth::who::Who;
use crate::slow::{ms, shown};
use crate::timings::{Part, Timings};
use crate::traces::Answered;

/// A request that was answered.
#[derive(Debug)]
pub struct AnsweredRequest<'r> {
    /// Where it went.
    pub route: &'static str,
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
    pub timings: Timings,
    /// Who asked, where it was one request.
    pub who: Option<&'r Who>,
}

impl AnsweredRequest<'_> {
    /// Tells what is to be told. What it waited for at its caller's request was not slow.
    pub fn tell(&self, api: &Api, headers: &HeaderMap) {
        if api.slow.is_slow(self.took.saturating_sub(self.timings.on(Part::Wait))) {
            self.log_slow(api);
        }
        let Some(traces) = &api.settings.traces else { return };
        let is_known = self.who.is_some_and(|who| !matches!(who, Who::Nobody));
        let Some(parent) = traces.choose(headers, is_known) else { return };
        traces.tell(
            &parent,
            &Answered {
                method: self.method,
                route: self.route,
                status: self.status.as_u16(),
                request_id: self.request_id,
                leader_id: api.node.leader_hint().leader_id,
                took: self.took,
                timings: self.timings,
            },
        );
    }

    /// Counts it, and writes the line unless there were many.
    fn log_slow(&self, api: &Api) {
        api.metrics.observe_slow_request();
        let Some(left_out) = api.slow.admit() else { return };
        let hint = api.node.leader_hint();
        tracing::warn!(
            route = self.route,
            method = self.method,
            path = shown(self.path),
            request_id = shown(self.request_id),
            status = self.status.as_u16(),
            ms = ms(self.took),
            body_ms = ms(self.timings.on(Part::Body)),
            log_ms = ms(self.timings.on(Part::Log)),
            freshness_ms = ms(self.timings.on(Part::Freshness)),
            wait_ms = ms(self.timings.on(Part::Wait)),
            bytes_in = self.bytes.0,
            bytes_out = self.bytes.1,
            node = api.settings.node_id,
            leader = hint.leader_id,
            term = hint.term,
            left_out,
            "slow request"
        );
    }
}
