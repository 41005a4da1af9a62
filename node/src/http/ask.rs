//! One request on its way through the handlers.
//!
//! Owns its deadline, its request id and its admission. Never reads the body.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::request::Parts;

use super::accounts::{self, Spender};
use super::body::BodyPlace;
use super::door::{Visitor, Who};
use super::error::Failure;
use super::lanes::{Lane, Place};
use super::origin::Origin;
use super::paths::Route;
use super::pulse::Busy;
use super::{Api, headers};
use crate::limits;

/// What a handler knows of its request.
pub struct Ask<'a> {
    /// The API it came to.
    pub api: &'a Arc<Api>,
    /// Method, URI, headers.
    pub head: &'a Parts,
    /// Where it goes.
    pub route: Route,
    /// Who asks.
    pub who: Who,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// Keeps its connection busy. Taken by an answer that goes on after the handler.
    pub busy: Option<Busy>,
    /// How long it may take from its head on.
    pub timeout: Duration,
    /// When the answer has to be there.
    pub deadline: Instant,
    /// Under which the outcome of a write is kept: the caller's, else one of our own. For a read, only to find it again.
    pub request_id: String,
    /// Whether the caller gave the id in `Idempotency-Key`.
    pub has_idempotency_key: bool,
    /// What it takes of its lane.
    pub place: Place<'a>,
    /// Who pays for it; nobody where that is not bounded.
    pub account: Option<Spender>,
    /// What its body takes of the memory for all bodies.
    pub body_place: BodyPlace<'a>,
}

impl<'a> Ask<'a> {
    /// Starts with the default deadline and the id of a read.
    pub fn new(
        api: &'a Arc<Api>,
        head: &'a Parts,
        route: Route,
        origin: Arc<Origin>,
        started: Instant,
        busy: Busy,
    ) -> Self {
        let (timeout, lane) = (api.settings.request_timeout, route.lane(&head.method));
        Self {
            api,
            head,
            route,
            who: if api.door.is_open() { Who::Anybody } else { Who::Nobody },
            origin,
            busy: Some(busy),
            timeout,
            deadline: started + timeout,
            request_id: headers::trace_id(),
            has_idempotency_key: false,
            place: api.lanes.enter(lane),
            account: None,
            body_place: api.bodies.place(lane == Lane::Coordination),
        }
    }

    /// Takes the deadline from `Request-Timeout`, at most the configured maximum.
    pub fn read_deadline(&mut self) -> Result<(), Failure> {
        if let Some(millis) = headers::request_timeout(self.head)? {
            let wanted = self.api.timeout(Duration::from_millis(millis));
            self.deadline = self.deadline - self.timeout + wanted;
            self.timeout = wanted;
        }
        Ok(())
    }

    /// Lets it in, as one operation for now, or says when there will be room.
    pub async fn admit(&mut self) -> Result<(), Failure> {
        self.account = self.api.accounts.of(|| accounts::account(self));
        let Some(account) = &self.account else { return self.place.check() };
        if matches!(self.route, Route::SessionRenew | Route::SessionsRenew) {
            // Sessions are kept alive whatever their account owes: what hangs on them is worth more than one operation.
            account.pay(1);
        } else if let Err(failure) = account.admit() {
            if account.may_keep_back()
                && let Some(_waiting) = self.place.wait()
            {
                account.keep_back(&failure, self.remaining()).await;
            }
            return Err(failure);
        }
        self.place.check()
    }

    /// It turned out to be about so many things: of the lane it takes `cost`, and its account pays for `ops` operations.
    pub fn costs(&mut self, cost: usize, ops: usize) -> Result<(), Failure> {
        if let Some(account) = &self.account {
            account.costs(ops)?;
        }
        self.place.costs(cost)
    }

    /// The same of a page of up to this many entries.
    pub fn costs_page(&mut self, entries: usize) -> Result<(), Failure> {
        let cost = 1 + entries / limits::ENTRIES_FOR_COST;
        self.costs(cost, cost)
    }

    /// The same where many entries may have to be looked at.
    pub fn costs_a_find(&mut self) -> Result<(), Failure> {
        self.costs(limits::FIND_COST, limits::FIND_COST)
    }

    /// Takes the request id of a write from `Idempotency-Key`; without one it gets its own.
    pub fn claim_request_id(&mut self) -> Result<(), Failure> {
        let given = headers::idempotency_key(self.head)?;
        self.has_idempotency_key = given.is_some();
        self.request_id = given.unwrap_or_else(headers::fresh_id);
        Ok(())
    }

    /// Takes the id that the body gives. Header and body may both carry one, but not two different ones.
    pub fn take_request_id(&mut self, given: Option<String>) -> Result<(), Failure> {
        let Some(given) = given else { return Ok(()) };
        if self.has_idempotency_key && self.request_id != given {
            return Err(Failure::invalid("/request_id", "differs from the header Idempotency-Key; give one of them"));
        }
        self.request_id = given;
        Ok(())
    }

    /// Who asks, as the door sees it.
    pub fn visitor(&self) -> Visitor<'_> {
        Visitor { api: self.api, who: &self.who, origin: &self.origin, route: self.route }
    }

    /// What is left until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
