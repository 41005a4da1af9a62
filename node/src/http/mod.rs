//! The public HTTP API: from an accepted connection to an answer and back.
//!
//! Owns routing, input checks, conversion between wire and domain types, and the one place where errors become problem
//! documents. Knows nothing of Raft or RocksDB: everything it asks of the node goes through [`Backend`]. The order of
//! reading: `paths` (which routes exist), this file (the way of every request), the handlers, then the leaves they use.
//!
//! There is no router library here: the routes are a closed enum, so that a route without a handler, a metric, an `Allow`
//! header or a line in the OpenAPI document does not compile or fails a test, and a request pays for one `match`.

mod accept;
mod access;
mod accounts;
mod answers;
mod ask;
mod backend;
mod backup;
mod barriers;
mod body;
mod bucket;
mod bulk;
mod bulk_answer;
mod bulk_body;
mod caught;
mod claim;
mod cluster;
mod collections;
mod command;
mod conditions;
mod convert;
mod coordinate;
mod criteria;
mod cursor;
mod done;
mod door;
mod elections;
mod error;
mod etags;
mod extract;
mod failed;
mod faults;
mod find;
mod find_body;
mod handshake;
mod headers;
mod health;
mod json;
mod key;
mod kv;
mod lanes;
mod latches;
mod line;
mod lines;
mod list;
mod locks;
mod matching;
mod members;
mod mismatch;
mod observe;
mod op_body;
mod openapi;
mod ops;
mod origin;
mod paths;
mod payload;
mod prefer;
mod pulse;
mod queue;
mod read;
mod render;
mod requests;
mod roles;
mod scan;
mod schema;
mod secret;
mod sequences;
mod sessions;
mod sse;
mod stream;
mod task_answer;
mod task_body;
mod task_claim;
mod task_line;
mod tasks;
mod tokens;
mod told;
mod trail;
mod txn;
mod txn_answer;
mod txn_body;
mod users;
mod wait;
mod watch;
mod watch_body;
mod watch_event;
mod watch_read;
mod watch_wish;
mod write;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body as _, Incoming};
use quorate_api::{Applied, ErrorCode};
use tokio::sync::Semaphore;

pub use accept::{ServeSettings, serve};
pub use accounts::AccountLimits;
pub use backend::{Access, Backend, Coordination, DigestAt, IsDone, Node, Seen};
pub use door::{AuditFile, AuditSamples, DoorSettings, RootToken};
pub use lanes::LaneBounds;
pub use openapi::document as openapi_document;
pub use paths::Route;
pub use payload::Body;
pub use secret::TokenText;

use crate::limits;
use crate::metrics::{HttpLoad, Metrics};
use crate::slow::SlowLog;
use crate::spent::{self, Part};
use crate::traces::Traces;
use crate::watchdog;
use accounts::{AccountSamples, Accounts};
use answers::AnswerRoom;
use ask::Ask;
use body::BodyRoom;
use door::Door;
use error::Failure;
use headers::GlanceCache;
use lanes::{Lane, LaneSamples, Lanes};
use origin::Origin;
use pulse::Busy;
use task_line::TaskLines;
use told::Told;

/// What a handler returns when it succeeds.
type Answer = Response<Body>;
/// What a handler returns.
type Outcome = Result<Answer, Failure>;

/// What the handlers need to know of the configuration.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// This node.
    pub node_id: u64,
    /// Deadline of a request that names none.
    pub request_timeout: Duration,
    /// Longest deadline a request may name.
    pub request_timeout_max: Duration,
    /// Largest request body, bytes.
    pub body_bytes_max: usize,
    /// Most bytes of all bodies together; a request that needs more is answered with 429.
    pub bodies_bytes_max: usize,
    /// How long a body may take before its rate counts.
    pub body_timeout: Duration,
    /// Slowest body tolerated after that, bytes a second.
    pub body_rate_min: u64,
    /// Most bytes of long answers that nobody has taken yet; beyond it requests are answered with 429.
    pub answers_bytes_max: usize,
    /// What is handled at once; more is answered with 429.
    pub lanes: LaneBounds,
    /// What one caller may take.
    pub accounts: AccountLimits,
    /// From when on a request is logged as slow; zero for never.
    pub slow_request: Duration,
    /// Where spans of requests go.
    pub traces: Option<Arc<Traces>>,
    /// Who has to say who they are.
    pub door: DoorSettings,
    /// Where it is told who did what.
    pub audit: Option<Arc<AuditFile>>,
}

/// The API over one node.
pub struct Api {
    backend: Node,
    door: Door,
    settings: ApiSettings,
    metrics: Arc<Metrics>,
    in_flight: AtomicUsize,
    /// Where requests are admitted.
    lanes: Arc<Lanes>,
    /// What each caller has taken.
    accounts: Arc<Accounts>,
    /// Streams that observe an election.
    observers: AtomicUsize,
    glances: GlanceCache,
    /// Where bodies have their place while their request is handled.
    bodies: BodyRoom,
    /// Where long answers have theirs until they are taken.
    answers: AnswerRoom,
    /// Held by listings, counts and finds while they scan.
    scans: Arc<Semaphore>,
    /// Held by dry runs, transactions that only read, and long bodies while they are read.
    evaluations: Arc<Semaphore>,
    /// Held by changes of all that matches while they are in the log.
    log_scans: Semaphore,
    /// Held while the metrics are written.
    scrapes: Semaphore,
    /// Held by watches while they read from disk.
    watch_reads: Arc<Semaphore>,
    /// Held by backups while they are given out.
    backups: Arc<Semaphore>,
    /// Where claims stand that wait for tasks.
    task_lines: TaskLines,
    /// Which requests take too long.
    slow: SlowLog,
}

impl Api {
    /// Puts the API in front of `backend`.
    pub fn new(backend: impl Backend, settings: ApiSettings, metrics: Arc<Metrics>) -> Arc<Self> {
        let scans = Arc::new(Semaphore::new(limits::SCANS_MAX));
        let evaluations = Arc::new(Semaphore::new(limits::EVALUATIONS_MAX));
        let bodies = BodyRoom::new(settings.bodies_bytes_max);
        let lanes = Arc::new(Lanes::new(settings.lanes));
        let accounts = Accounts::new(settings.accounts);
        metrics.add_source(LaneSamples(Arc::clone(&lanes)));
        metrics.add_source(AccountSamples(Arc::clone(&accounts)));
        let answers = AnswerRoom::new(settings.answers_bytes_max);
        let (log_scans, scrapes) = (Semaphore::new(limits::LOG_SCANS_MAX), Semaphore::new(limits::SCRAPES_MAX));
        let (in_flight, observers, glances) = (AtomicUsize::new(0), AtomicUsize::new(0), GlanceCache::default());
        let watch_reads = Arc::new(Semaphore::new(limits::WATCH_READS_MAX));
        let backups = Arc::new(Semaphore::new(limits::BACKUPS_MAX));
        let task_lines = TaskLines::default();
        let slow = SlowLog::new(settings.slow_request);
        let door = Door::new(settings.door.clone(), settings.audit.clone());
        Arc::new(Self {
            backend: Arc::new(backend),
            door,
            settings,
            metrics,
            in_flight,
            lanes,
            accounts,
            observers,
            glances,
            bodies,
            answers,
            scans,
            evaluations,
            log_scans,
            scrapes,
            watch_reads,
            backups,
            task_lines,
            slow,
        })
    }

    /// The deadline that a caller gets who asks for this one.
    fn timeout(&self, wanted: Duration) -> Duration {
        wanted.min(self.settings.request_timeout_max)
    }

    /// Requests being handled at the moment.
    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What the server holds, for the metrics.
    fn load(&self) -> HttpLoad {
        let (body_bytes, answer_bytes) = (self.bodies.taken(), self.answers.held());
        HttpLoad { requests: self.in_flight(), body_bytes, answer_bytes }
    }

    /// Answers one request. Never fails: what goes wrong is a problem document.
    async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        origin: Arc<Origin>,
        busy: Busy,
    ) -> Result<Response<Body>, Infallible> {
        let started = Instant::now();
        let _slot = Slot::take(&self.in_flight);
        let (head, body) = request.into_parts();
        let (route, rest) = paths::find(head.uri.path());
        let mut ask = Ask::new(&self, &head, route, origin, started, busy);
        let writes = route.access(&head.method).is_some_and(|access| access.writes);
        let worked = spent::of(caught::caught(writes, answer(&mut ask, route, rest, body)));
        let (outcome, spent) = watchdog::watched(route.template(), worked).await;
        let (took, body_bytes) = (started.elapsed(), ask.body_place.bytes());
        let request_id = std::mem::take(&mut ask.request_id);
        let response = outcome.unwrap_or_else(|failure| failure.into_response(&head, &request_id));
        door::note_answered(&ask, &response, &request_id);
        // A refusal costs nothing, and tells nothing of how long requests take.
        if response.status() != StatusCode::TOO_MANY_REQUESTS {
            self.lanes.observe(ask.place.lane(), took.saturating_sub(spent.on(Part::Wish)));
        }
        if let Some(account) = &ask.account
            && response.status() != StatusCode::TOO_MANY_REQUESTS
        {
            account.moved(body_bytes + response.body().size_hint().exact().unwrap_or(0) as usize);
        }
        let (busy, origin) = (ask.busy, ask.origin);
        let (method, path, status) = (head.method.as_str(), head.uri.path(), response.status());
        let bytes = (body_bytes, response.body().size_hint().exact());
        Told { route, method, path, request_id: &request_id, status, bytes, took, spent }.tell(&self, &head.headers);
        let response = self.finish(&head, response, request_id).map(|body| self.answers.count(body));
        if let Some(busy) = busy
            && response.headers().contains_key(header::CONNECTION)
        {
            busy.pulse().linger();
        }
        self.metrics.observe_request(route, response.status(), took);
        // The route, not the path: keys belong to their owners, not into logs.
        let (from, certificate) = (origin.address, origin.certificate.as_deref());
        let status = response.status().as_u16();
        tracing::debug!(method = %head.method, route = route.template(), status, ?took, %from, certificate);
        Ok(response)
    }

    /// Adds what every response carries.
    fn finish(&self, head: &Parts, mut response: Answer, request_id: String) -> Answer {
        let headers = response.headers_mut();
        // Whatever was evaluated has set it already.
        let revision = || HeaderValue::from(self.backend.position().revision);
        headers.entry(headers::REVISION).or_insert_with(revision);
        let (term, leader) = self.glances.values(self.backend.glance());
        headers.insert(headers::TERM, term);
        headers.insert(headers::LEADER, leader);
        headers.insert(headers::REQUEST_ID, headers::echoed(head).unwrap_or_else(|| headers::id_value(request_id)));
        if head.method == Method::HEAD {
            return without_body(response);
        }
        response
    }
}

/// Counts a request while it is handled, also when its future is dropped half-way.
struct Slot<'a> {
    in_flight: &'a AtomicUsize,
}

impl<'a> Slot<'a> {
    fn take(in_flight: &'a AtomicUsize) -> Self {
        in_flight.fetch_add(1, Ordering::Relaxed);
        Self { in_flight }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What all routes have in common before their handler runs.
async fn answer(ask: &mut Ask<'_>, route: Route, rest: &str, body: Incoming) -> Outcome {
    let method = &ask.head.method;
    let Some(access) = route.access(method) else { return Err(refuse_route(ask, route)) };
    ask.read_deadline()?;
    if !ask.api.door.is_open() {
        Box::pin(door::enter(ask)).await?;
    }
    // Never holds back the routes that tell an operator what is going on.
    if route.is_data() {
        ask.admit().await?;
    }
    // Pages are long, as a rule: there is no use in making one that cannot be given away.
    if ask.place.lane() == Lane::Scan && !access.writes {
        ask.api.answers.check()?;
    }
    if access.writes {
        ask.claim_request_id()?;
    }
    if access.takes_body {
        headers::refuse_browser_post(ask.head)?;
        body::check_declared(ask, body::longest(ask, route))?;
    } else if !body.is_end_stream() {
        return Err(Failure::invalid("header:Content-Length", format!("{method} takes no body here")));
    }
    let answer = dispatch(ask, route, rest, body).await?;
    if !access.writes && route.is_data() {
        ask.api.answers.check_answer(&answer)?;
    }
    Ok(answer)
}

/// The handlers. Those that are not on the hot path are boxed to keep the future of the others small.
async fn dispatch(ask: &mut Ask<'_>, route: Route, rest: &str, body: Incoming) -> Outcome {
    match (route, &ask.head.method) {
        (Route::Key, &Method::PUT) => kv::put(ask, rest, body).await,
        (Route::Key, &Method::PATCH) => kv::patch(ask, rest, body).await,
        (Route::Key, &Method::DELETE) => kv::delete(ask, rest).await,
        (Route::Key, _) => kv::get(ask, rest).await,
        (Route::Ops, _) => ops::post(ask, body).await,
        (Route::Bulk, _) => Box::pin(bulk::post(ask, body)).await,
        (Route::Txn, _) => Box::pin(txn::post(ask, body)).await,
        (Route::Keys, _) => Box::pin(list::get(ask)).await,
        (Route::Find, _) => Box::pin(find::find(ask, body)).await,
        (Route::Count, _) => Box::pin(find::count(ask, body)).await,
        (Route::UpdateWhere, _) => Box::pin(matching::update(ask, body)).await,
        (Route::DeleteWhere, _) => Box::pin(matching::delete(ask, body)).await,
        (Route::Claim, _) => Box::pin(claim::post(ask, body)).await,
        (Route::Watch, _) => Box::pin(watch::get(ask)).await,
        (Route::Collection, &Method::PUT) => Box::pin(collections::put(ask, rest, body)).await,
        (Route::Collection, &Method::DELETE) => Box::pin(collections::delete(ask, rest)).await,
        (Route::Collection, _) => Box::pin(collections::get(ask, rest)).await,
        (Route::Collections, _) => Box::pin(collections::list(ask)).await,
        (Route::Sequence, &Method::POST) => Box::pin(sequences::post(ask, rest, body)).await,
        (Route::Sequence, _) => Box::pin(sequences::get(ask, rest)).await,
        (Route::Sessions, &Method::POST) => Box::pin(sessions::create(ask, body)).await,
        (Route::Sessions, _) => Box::pin(sessions::list(ask)).await,
        (Route::SessionsRenew, _) => Box::pin(sessions::renew_many(ask, body)).await,
        (Route::Session, &Method::DELETE) => Box::pin(sessions::end(ask, rest)).await,
        (Route::Session, _) => Box::pin(sessions::get(ask, rest)).await,
        (Route::SessionRenew, _) => Box::pin(sessions::renew(ask, rest, body)).await,
        (Route::Locks, _) => Box::pin(locks::list(ask)).await,
        (Route::Lock, _) => Box::pin(locks::get(ask, rest)).await,
        (Route::LockAcquire, _) => Box::pin(locks::acquire(ask, rest, body)).await,
        (Route::LockRelease, _) => Box::pin(locks::release(ask, rest, body)).await,
        (Route::LockCheck, _) => Box::pin(locks::check(ask, rest)).await,
        (Route::Elections, _) => Box::pin(elections::list(ask)).await,
        (Route::Election, _) => Box::pin(elections::get(ask, rest)).await,
        (Route::ElectionCampaign, _) => Box::pin(elections::campaign(ask, rest, body)).await,
        (Route::ElectionProclaim, _) => Box::pin(elections::proclaim(ask, rest, body)).await,
        (Route::ElectionResign, _) => Box::pin(elections::resign(ask, rest, body)).await,
        (Route::ElectionObserve, _) => Box::pin(observe::get(ask, rest)).await,
        (Route::Barrier, _) => Box::pin(barriers::get(ask, rest)).await,
        (Route::BarrierEnter, _) => Box::pin(barriers::enter(ask, rest, body)).await,
        (Route::BarrierLeave, _) => Box::pin(barriers::leave(ask, rest, body)).await,
        (Route::Latch, &Method::PUT) => Box::pin(latches::put(ask, rest, body)).await,
        (Route::Latch, &Method::DELETE) => Box::pin(latches::delete(ask, rest)).await,
        (Route::Latch, _) => Box::pin(latches::get(ask, rest)).await,
        (Route::LatchCountDown, _) => Box::pin(latches::count_down(ask, rest, body)).await,
        (Route::TaskQueues, _) => Box::pin(tasks::queues(ask)).await,
        (Route::TaskQueue, &Method::POST) => Box::pin(tasks::schedule(ask, rest, body)).await,
        (Route::TaskQueue, _) => Box::pin(tasks::list(ask, rest)).await,
        (Route::TaskClaim, _) => Box::pin(task_claim::post(ask, rest, body)).await,
        (Route::TaskExtend, _) => Box::pin(tasks::extend(ask, rest, body)).await,
        (Route::TaskComplete, _) => Box::pin(tasks::complete(ask, rest, body)).await,
        (Route::TaskFail, _) => Box::pin(tasks::fail(ask, rest, body)).await,
        (Route::TaskCancel, _) => Box::pin(tasks::cancel(ask, rest, body)).await,
        (Route::TaskRequeue, _) => Box::pin(tasks::requeue(ask, rest, body)).await,
        (Route::TaskStats, _) => Box::pin(tasks::stats(ask, rest)).await,
        (Route::Task, _) => Box::pin(tasks::get(ask, rest)).await,
        (Route::Audit, _) => Box::pin(trail::get(ask)).await,
        (Route::Request, _) => Box::pin(requests::get(ask, rest)).await,
        (Route::ClusterStatus, _) => cluster::status(ask),
        (Route::ClusterDigest, _) => cluster::digest(ask),
        (Route::ClusterFaults, &Method::POST) => Box::pin(faults::post(ask, body)).await,
        (Route::ClusterFaults, _) => faults::get(ask),
        (Route::Leader, _) => Box::pin(cluster::lead(ask, body)).await,
        (Route::Members, &Method::POST) => Box::pin(members::add(ask, body)).await,
        (Route::Members, _) => Box::pin(members::list(ask)).await,
        (Route::Member, _) => Box::pin(members::remove(ask, rest)).await,
        (Route::MemberPromote, _) => Box::pin(members::promote(ask, rest, body)).await,
        (Route::MemberDemote, _) => Box::pin(members::demote(ask, rest, body)).await,
        (Route::MemberReplace, _) => Box::pin(members::replace(ask, rest, body)).await,
        (Route::MemberRepair, _) => Box::pin(members::repair(ask, rest, body)).await,
        (Route::Backup, _) => Box::pin(backup::get(ask)).await,
        (Route::AccessUsers, _) => Box::pin(users::list(ask)).await,
        (Route::AccessUser, &Method::PUT) => Box::pin(users::put(ask, rest, body)).await,
        (Route::AccessUser, &Method::DELETE) => Box::pin(users::delete(ask, rest)).await,
        (Route::AccessUser, _) => Box::pin(users::get(ask, rest)).await,
        (Route::AccessRoles, _) => Box::pin(roles::list(ask)).await,
        (Route::AccessRole, &Method::PUT) => Box::pin(roles::put(ask, rest, body)).await,
        (Route::AccessRole, &Method::DELETE) => Box::pin(roles::delete(ask, rest)).await,
        (Route::AccessRole, _) => Box::pin(roles::get(ask, rest)).await,
        (Route::AccessTokens, &Method::POST) => Box::pin(tokens::create(ask, body)).await,
        (Route::AccessTokens, _) => Box::pin(tokens::list(ask)).await,
        (Route::AccessToken, _) => Box::pin(tokens::delete(ask, rest)).await,
        (Route::AccessSelf, _) => Box::pin(access::get_self(ask)).await,
        (Route::Livez, _) => Box::pin(health::livez(ask)).await,
        (Route::Readyz, _) => Box::pin(health::readyz(ask)).await,
        (Route::Metrics, _) => Box::pin(health::metrics(ask)).await,
        (Route::Version, _) => health::version(ask),
        (Route::OpenApi, _) => openapi::get(ask),
        (Route::Unknown, _) => unreachable!("a route without methods was refused before"),
    }
}

/// 404 for a path that does not exist, 405 with `Allow` for a method that the path does not take.
fn refuse_route(ask: &Ask<'_>, route: Route) -> Failure {
    let head = ask.head;
    if route == Route::Unknown {
        let path: String = head.uri.path().chars().take(80).flat_map(char::escape_default).collect();
        let detail = format!("there is nothing at `{path}`; GET /openapi.json lists what there is");
        return Failure::new(ErrorCode::NotFound, Applied::No, detail).at("path:", "no such path");
    }
    let detail = format!("{} is not a method of {}; it takes {}", head.method, route.template(), route.allow());
    Failure::new(ErrorCode::MethodNotAllowed, Applied::No, detail).allowing(route.allow())
}

/// The same response as HEAD wants it: all headers of GET, the length too, no bytes.
fn without_body(mut response: Answer) -> Answer {
    if let Some(length) = response.body().size_hint().exact()
        && response.status() != StatusCode::NOT_MODIFIED
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::default();
    response
}

/// A 200 with these bytes.
fn ok(content_type: HeaderValue, bytes: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Body::from(bytes.into()));
    // Room for what handlers and `finish` add, in one allocation.
    response.headers_mut().reserve(10);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// A 200 with a wire type, for routes where speed does not matter.
fn ok_json<T: serde::Serialize>(body: &T) -> Outcome {
    match serde_json::to_vec(body) {
        Ok(bytes) => Ok(ok(headers::JSON, bytes)),
        Err(error) => Err(Failure::new(ErrorCode::Internal, Applied::No, format!("the answer has no JSON: {error}"))),
    }
}

/// Whether `Connection: close` means something to this peer.
fn is_http1(version: Version) -> bool {
    version <= Version::HTTP_11
}
