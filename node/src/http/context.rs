//! One request on its way through its handler.
//!
//! Owns its deadline, its request id and what it takes of this node until it is answered. Never reads the body.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use http::request::Parts;
use parking_lot::Mutex;
use quorate_api::{Applied, ErrorCode};
use tokio_util::sync::CancellationToken;

use crate::app::Consistency;
use crate::connection::monitor::Busy;
use crate::gateway::admission::accounts::{Account, Spender};
use crate::gateway::admission::body_room::BodyPlace;
use crate::gateway::admission::classes::{Place, RequestClass};
use crate::gateway::api::Api;
use crate::gateway::auth::caller::Caller;
use crate::gateway::auth::requirement::Wanted;
use crate::gateway::auth::who::Who;
use crate::gateway::failure::Failure;
use crate::gateway::origin::Origin;
use crate::http::input::headers;
use crate::http::routes::{Policy, Route};
use crate::limits;

/// What is known of a request.
pub struct RequestContext {
    /// The API it came to.
    pub api: Arc<Api>,
    /// Method, URI, headers.
    pub head: Parts,
    /// Where it goes.
    pub route: &'static Route,
    /// What holds for it there.
    pub policy: Policy,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// How long it may take from its head on.
    pub timeout: Duration,
    /// When the answer has to be there.
    pub deadline: Instant,
    /// What it takes of its class.
    pub place: Place,
    /// What its body takes of the memory for all bodies.
    pub body_place: BodyPlace,
    /// Who asks; set once that was proved.
    who: OnceLock<Who>,
    /// Who pays for it; nobody where that is not bounded.
    account: OnceLock<Spender>,
    /// Keeps its connection busy. Taken by an answer that goes on after the handler.
    busy: Arc<Mutex<Option<Busy>>>,
    request_id: Mutex<String>,
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
    pub fn new(
        api: Arc<Api>,
        head: Parts,
        route: &'static Route,
        policy: Policy,
        origin: Arc<Origin>,
        busy: Arc<Mutex<Option<Busy>>>,
        started: Instant,
    ) -> Self {
        let timeout = api.settings.request_timeout;
        let (place, body_place) =
            (api.classes.enter(policy.class), api.bodies.place(policy.class == RequestClass::Coordination));
        Self {
            api,
            head,
            route,
            policy,
            origin,
            timeout,
            deadline: started + timeout,
            place,
            body_place,
            who: OnceLock::new(),
            account: OnceLock::new(),
            busy,
            request_id: Mutex::new(headers::trace_id()),
        }
    }

    /// Takes the deadline from `Request-Timeout`, at most the configured maximum.
    pub fn read_deadline(&mut self) -> Result<(), Failure> {
        if let Some(millis) = headers::request_timeout(&self.head)? {
            let wanted = self.api.timeout(Duration::from_millis(millis));
            self.deadline = self.deadline - self.timeout + wanted;
            self.timeout = wanted;
        }
        Ok(())
    }

    /// Who asks.
    pub fn who(&self) -> &Who {
        self.who.get_or_init(|| if self.api.authenticator.is_open() { Who::Anybody } else { Who::Nobody })
    }

    /// Says who asks, before anybody wants to know.
    pub fn identify(&self, who: Who) {
        let first = self.who.set(who);
        debug_assert!(first.is_ok(), "who asks is said once");
    }

    /// Who pays for it; nobody where that is not bounded.
    pub fn account(&self) -> Option<&Spender> {
        self.account.get()
    }

    /// What keeps its connection busy, for an answer that goes on after the handler.
    pub fn take_busy(&self) -> Result<Busy, Failure> {
        let busy = self.busy.lock().take();
        busy.ok_or_else(|| Failure::new(ErrorCode::Internal, Applied::No, "the request was answered before").closing())
    }

    /// The connection ends with the answer, although the request may not have come whole.
    pub fn linger(&self) {
        if let Some(busy) = &*self.busy.lock() {
            busy.monitor().linger();
        }
    }

    /// Cancelled when the connection, or this node, is to end; `None` where the answer goes on by itself.
    pub fn stop(&self) -> Option<CancellationToken> {
        self.busy.lock().as_ref().map(|busy| busy.monitor().stop().clone())
    }

    /// Lets it in, as one operation for now, or says when there will be room.
    pub async fn admit(&self) -> Result<(), Failure> {
        let Some(account) = self.api.accounts.of(|| Account::of(self.who(), self.origin.address.ip())) else {
            return self.place.check();
        };
        let account = self.account.get_or_init(|| account);
        if self.policy.is_vital {
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

    /// Charges the real cost, once it is known: `cost` units of its class, `ops` operations of its account.
    pub fn costs(&self, cost: usize, ops: usize) -> Result<(), Failure> {
        if let Some(account) = self.account() {
            account.costs(ops)?;
        }
        self.place.costs(cost)
    }

    /// Charges a page of up to this many entries.
    pub fn costs_page(&self, entries: usize) -> Result<(), Failure> {
        let cost = 1 + entries / limits::ENTRIES_FOR_COST;
        self.costs(cost, cost)
    }

    /// Charges a search that may look at many entries.
    pub fn costs_a_find(&self) -> Result<(), Failure> {
        self.costs(limits::FIND_COST, limits::FIND_COST)
    }

    /// The id under which the outcome of a write is kept: the caller's, else one of our own. For a read, only to find it again.
    pub fn request_id(&self) -> String {
        self.request_id.lock().clone()
    }

    /// Takes the request id of a write from `Idempotency-Key`; without one it gets its own.
    pub fn claim_request_id(&self) -> Result<(), Failure> {
        let given = headers::idempotency_key(&self.head)?;
        *self.request_id.lock() = given.unwrap_or_else(headers::fresh_id);
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
        let mut request_id = self.request_id.lock();
        if self.has_idempotency_key() && *request_id != given {
            return Err(Failure::invalid("/request_id", "differs from the header Idempotency-Key; give one of them"));
        }
        *request_id = given;
        Ok(())
    }

    /// The name in its path, as it came.
    pub fn name(&self) -> &str {
        self.route.name(self.head.uri.path())
    }

    /// Who asks, as authentication sees it.
    pub fn caller(&self) -> Caller<'_> {
        Caller { api: &self.api, who: self.who(), origin: &self.origin, route: self.route.template() }
    }

    /// Waits until this node knows what is true now, and checks that the caller may be told what it wants, by the rules as they are then.
    pub async fn admit_read(&self, wanted: Wanted<'_>) -> Result<(), Failure> {
        self.caller().admit_read(Consistency::Linearizable, self.deadline, wanted).await
    }

    /// What is left until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
