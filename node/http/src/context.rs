//! One HTTP request on its way through its handler.
//!
//! Owns what HTTP adds to a [`Call`]: method, path, headers, and the rules of its route. Never reads the body.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use http::request::Parts;
use quorate_api::{Applied, ErrorCode};
use quorate_node_core::gateway::arrival::Arrival;
use quorate_node_core::gateway::call::{Call, Target};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::request_ids;

use crate::headers;
use crate::routes::{Policy, Route};

/// What is known of a request.
pub struct RequestContext {
    /// What is known of it whatever the protocol.
    call: Call,
    /// Method, URI, headers.
    pub head: Parts,
    /// Where it goes.
    pub route: &'static Route,
    /// What holds for it there.
    pub policy: Policy,
}

impl Deref for RequestContext {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

/// The context of the request that a handler is to answer.
#[derive(Clone)]
pub struct Context(pub Arc<RequestContext>);

impl Deref for Context {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let context = parts.extensions.get::<Self>().cloned();
        context.ok_or_else(|| Failure::new(ErrorCode::Internal, Applied::No, "the request has no context"))
    }
}

impl RequestContext {
    /// Starts with the default deadline and the id of a read.
    pub fn new(arrival: Arrival, head: Parts, route: &'static Route, policy: Policy, started: Instant) -> Self {
        let Arrival { api, origin, connection_account, busy } = arrival;
        let target = Target { route: route.template(), class: policy.class, is_vital: policy.is_vital };
        let call = Call::new(api, target, origin, connection_account, busy, started, request_ids::trace_id());
        Self { call, head, route, policy }
    }

    /// Takes the deadline from `Request-Timeout`.
    pub fn read_deadline(&mut self) -> Result<(), Failure> {
        if let Some(millis) = headers::request_timeout(&self.head)? {
            self.call.give_time(Duration::from_millis(millis));
        }
        Ok(())
    }

    /// Takes the request id of a write from `Idempotency-Key`; without one it gets its own.
    pub fn claim_request_id(&self) -> Result<(), Failure> {
        let given = headers::idempotency_key(&self.head)?;
        self.set_request_id(given.unwrap_or_else(request_ids::fresh_id));
        Ok(())
    }

    /// Whether the caller gave the id in `Idempotency-Key`.
    pub fn has_idempotency_key(&self) -> bool {
        self.head.headers.contains_key(headers::IDEMPOTENCY_KEY)
    }

    /// Takes the id that the body gives. Header and body may both carry one, but not two different ones.
    pub fn take_request_id(&self, given: Option<String>) -> Result<(), Failure> {
        let Some(given) = given else { return Ok(()) };
        if let Some(fault) = headers::request_id_fault(&given) {
            return Err(Failure::invalid("/request_id", fault));
        }
        if self.has_idempotency_key() && self.request_id() != given {
            return Err(Failure::invalid("/request_id", "differs from the header Idempotency-Key; give one of them"));
        }
        self.set_request_id(given);
        Ok(())
    }

    /// The same, beside what was read of the rest of the body: the faults of both come at once.
    pub fn with_request_id<T>(&self, given: Option<String>, read: Result<T, Failure>) -> Result<T, Failure> {
        match (read, self.take_request_id(given)) {
            (Ok(read), Ok(())) => Ok(read),
            (Err(rest), Err(id)) => Err(rest.and(id)),
            (Err(fault), Ok(())) | (Ok(_), Err(fault)) => Err(fault),
        }
    }

    /// The name in its path, as it came.
    pub fn name(&self) -> &str {
        self.route.name(self.head.uri.path())
    }
}
