//! The way of one call from node to node.
//!
//! Owns which node an attempt goes to, with which credentials, and what a failure leads to: the same for every kind of call. Never
//! sends anything, and decides nothing by itself: `endpoints` says which node, `retry` whether again.

use std::time::Instant;

use parking_lot::Mutex;
use tracing::Span;

use crate::api::{ErrorCode, Problem};
use crate::call::endpoints::Endpoints;
use crate::call::error::Failure;
use crate::call::request::Call;
use crate::client::retry::{Attempts, Next, RetryPolicy};
use crate::client::spans;
use crate::transport::Transport;

/// A call that is on its way.
pub(crate) struct Way<'a> {
    call: &'a Call,
    transport: &'a Transport,
    endpoints: &'a Mutex<Endpoints>,
    policy: &'a RetryPolicy,
    attempts: Attempts,
    /// The node that failed last.
    failed: Option<usize>,
    /// Whether it was refused for old credentials once.
    is_refreshed: bool,
}

/// An attempt at one node.
pub(crate) struct Attempt {
    /// Which.
    pub node: usize,
    /// What it tells `tracing`.
    pub span: Span,
    /// The generation of the credentials that it shows.
    shown: u64,
}

impl<'a> Way<'a> {
    /// No attempt was made yet.
    pub fn new(
        call: &'a Call,
        transport: &'a Transport,
        endpoints: &'a Mutex<Endpoints>,
        policy: &'a RetryPolicy,
    ) -> Self {
        Self { call, transport, endpoints, policy, attempts: Attempts::none(), failed: None, is_refreshed: false }
    }

    /// The attempts that failed.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// The next attempt.
    pub fn attempt(&self) -> Attempt {
        let node = self.endpoints.lock().pick(self.call.preference, self.failed, Instant::now());
        let shown = self.transport.credentials().generation();
        let span = spans::attempt(self.attempts.failures() + 1, &self.transport.address(node));
        Attempt { node, span, shown }
    }

    /// Whether to make the attempt that was refused again: what says who we are was exchanged, and we were late to see it. Once.
    pub fn shows_newer_credentials(&mut self, attempt: &Attempt, problem: &Problem) -> bool {
        let is_late = !self.is_refreshed
            && problem.code == ErrorCode::Unauthenticated
            && self.transport.credentials().is_newer_than(attempt.shown);
        self.is_refreshed |= is_late;
        is_late
    }

    /// What to do after an attempt that brought no final answer.
    pub fn on_failure(&mut self, attempt: &Attempt, failure: &Failure) -> Next {
        spans::failed(&attempt.span, failure);
        self.endpoints.lock().on_failure(attempt.node, Instant::now());
        self.failed = Some(attempt.node);
        self.attempts.on_failure(failure, &self.call.intent, self.policy, self.transport.len(), rand::random())
    }
}
