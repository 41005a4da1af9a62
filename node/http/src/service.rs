//! The way of every request: from its head to its answer.
//!
//! Owns what comes before a handler (the judgement of pages, deadline, authentication, admission, the checks of the head) and what comes
//! after it (problem documents, the headers of every answer, metrics, traces, the audit log). Never knows what a handler does.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::body::Body as _;
use quorate_api::{Applied, ErrorCode};
use quorate_node_core::gateway::access_log::AnsweredRequest;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::api::Slot;
use quorate_node_core::gateway::arrival::Arrival;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::pages::{self, Allowed, Way};
use quorate_node_core::gateway::{answer_body, caught, door, enter};
use quorate_node_core::timings::{self, Part};
use quorate_threads::watchdog;

use crate::context::{Context, RequestContext};
use crate::cors;
use crate::headers;
use crate::input::extract::Query;
use crate::input::{accept, body};
use crate::output::refusal;
use crate::output::response::{Answer, Outcome};
use crate::routes::{self, Operation, Policy, Route};
use crate::watch::sse;

/// The route of the metrics.
const METRICS: &str = "/metrics";

/// An answer may be kept, and is asked for again each time: what is kept may be another version.
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const VARY_ACCEPT: HeaderValue = HeaderValue::from_static("accept");
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// Answers one request to a route. What goes wrong is a problem document.
pub async fn serve(route: &'static Route, mut request: Request, next: Next) -> Answer {
    let started = Instant::now();
    let Some(arrival) = request.extensions_mut().remove::<Arrival>() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let _slot = Slot::take(&arrival.api);
    let (head, body) = request.into_parts();
    let operation = route.operation(&head.method);
    let judged = judge(&arrival, &head, operation);
    let mut policy = operation.map_or(const { Policy::node(Guard::None) }, |operation| operation.policy);
    if judged.is_err() {
        // It takes no place of its class.
        policy.class = RequestClass::Node;
    }
    let mut context = RequestContext::new(arrival, head, route, policy, started);
    let deadline = context.read_deadline();
    let context = Context(Arc::new(context));
    let (writes, has_body) = (operation.is_some_and(Operation::writes), !body.is_end_stream());
    let work = pin!(async {
        let Some(operation) = operation else {
            let granted = judged.ok().and_then(|()| cors::preflight(&context.api.settings, &context.head, route));
            return granted.ok_or_else(|| refuse_route(&context));
        };
        judged?;
        deadline?;
        admit(&context, operation, has_body).await?;
        answer(&context, operation, body, next).await
    });
    let caught = pin!(caught::caught(writes, work));
    let timed = pin!(timings::of(caught));
    let (outcome, timings) = watchdog::watched(route.template(), timed).await;
    finish(&context, outcome, started, timings)
}

/// Whether its head lets a request go on. What is at no route tells nothing: only a preflight has to be let in there.
fn judge(arrival: &Arrival, head: &Parts, operation: Option<&Operation>) -> Result<(), Failure> {
    let way = match operation {
        Some(operation) if operation.policy.guard == Guard::None => Way::Open,
        _ => Way::Api,
    };
    let asked = pages::Head { method: &head.method, uri: &head.uri, headers: &head.headers, from: &arrival.origin };
    pages::judge(&asked, way, Allowed::of(&arrival.api.settings)).map_err(Failure::from)
}

/// Lets a request in, or says why not.
async fn admit(context: &RequestContext, operation: &Operation, has_body: bool) -> Result<(), Failure> {
    let (api, head) = (&context.api, &context.head);
    let (door, admin) = (context.origin.door, api.settings.admin.as_ref());
    let is_metrics = context.route.template() == METRICS;
    let asked = door::Asked { is_data: operation.is_data(), guard: context.policy.guard, is_metrics };
    door::check(door, admin, asked)?;
    if !api.auth.is_open() {
        Box::pin(enter::enter(context, &head.headers, door::guard(door, admin, asked))).await?;
    }
    // Never holds back the routes that tell an operator what is going on.
    if operation.is_data() {
        context.admit().await?;
        // A request that is whole goes on at once, the others when their bodies are there: see `body::collect_long`.
        if !(has_body && operation.takes_body()) {
            context.enter().await?;
        }
    }
    // Pages are long, as a rule: there is no use in making one that cannot be given away.
    if operation.policy.class == RequestClass::Scan && !operation.writes() {
        context.check_answers()?;
    }
    if operation.writes() {
        context.claim_request_id()?;
    }
    if let Some(query) = head.uri.query()
        && !operation.policy.passes_over_query
    {
        Query::parse(Some(query)).refuse_others(&operation.parameters)?;
    }
    if operation.takes_body() {
        let configured = api.settings.bounds.body_bytes_max;
        let bytes_max = routes::body_bytes_max(&operation.policy, configured, headers::says_stream(head));
        body::check_declared(context, bytes_max)
    } else if has_body && !operation.policy.passes_over_body {
        Err(Failure::invalid("header:Content-Length", format!("{} takes no body here", head.method)))
    } else {
        Ok(())
    }
}

/// Has the handler answer.
async fn answer(context: &Context, operation: &Operation, body: Body, next: Next) -> Outcome {
    let mut request = Request::new(body);
    request.extensions_mut().insert(context.clone());
    let mut answer = next.run(request).await;
    if let Some(failure) = answer.extensions_mut().remove::<Failure>() {
        return Err(context.told(failure));
    }
    debug_assert!(
        !operation.is_data() || !answer.status().is_success() || context.permit.is_held(),
        "{} was answered without a place of its class",
        context.route.template()
    );
    if operation.is_data() {
        context.check_answer(operation.writes(), answer.body().size_hint().lower())?;
    }
    Ok(answer)
}

/// Tells of a request that was answered, and adds what every answer carries.
fn finish(context: &RequestContext, outcome: Outcome, started: Instant, timings: timings::Timings) -> Answer {
    let (api, head, route) = (&context.api, &context.head, context.route);
    let (took, body_bytes) = (started.elapsed(), context.body_permit.bytes());
    let request_id = context.request_id();
    let is_refused = matches!(&outcome, Err(failure) if failure.status() == StatusCode::TOO_MANY_REQUESTS);
    let response = outcome.unwrap_or_else(|failure| match failure.is_passing() && wants_no_status(context) {
        true => {
            api.metrics.observe_watch_end(sse::end_code(&failure));
            sse::ended(&failure)
        }
        false => refusal::refuse(failure, head, &request_id),
    });
    let (status, answer_bytes) = (response.status(), response.body().size_hint().exact());
    // A refusal costs nothing, and tells nothing of how long requests take.
    if !is_refused {
        api.admission
            .classes
            .observe(context.permit.class(), took.saturating_sub(timings.on(Part::Wait) + timings.on(Part::Body)));
        if let Some(account) = context.account() {
            account.moved(body_bytes + answer_bytes.unwrap_or(0) as usize);
        }
    }
    let (method, path, bytes) = (head.method.as_str(), head.uri.path(), (body_bytes, answer_bytes));
    enter::note_answered(context, context.policy.guard, method, path, status, &request_id);
    let (route_template, who) = (route.template(), Some(context.who()));
    AnsweredRequest { route: route_template, method, path, request_id: &request_id, status, bytes, took, timings, who }
        .tell(api, &head.headers);
    let mut response = complete(context, response, request_id);
    let is_lent = response.extensions_mut().remove::<answer_body::Lent>().is_some();
    let response =
        response.map(|body| if is_lent { answer_body::lent(context, body) } else { answer_body::of(context, body) });
    if response.headers().contains_key(header::CONNECTION) {
        context.linger();
    }
    api.metrics.observe_request(route.number(), status, took);
    // The route, not the path: keys belong to their owners, not into logs.
    let (from, certificate) = (context.origin.address, context.origin.certificate.as_deref());
    quorate_node_core::debug!(method, route = route.template(), status = status.as_u16(), ?took, %from, certificate);
    response
}

/// Whether it asks for a stream of events in the way of those for whom any status but 200 is the end for ever. What passes they are told
/// in the stream; what does not pass should end them.
fn wants_no_status(context: &RequestContext) -> bool {
    let head = &context.head;
    let operation = context.route.operation(&head.method);
    head.method == Method::GET
        && operation.is_some_and(|operation| operation.is_event_stream)
        && accept::takes_events_alone(head)
}

/// Adds what every response carries.
fn complete(context: &RequestContext, mut response: Answer, request_id: String) -> Answer {
    let (api, head) = (&context.api, &context.head);
    let operation = context.route.operation(&head.method);
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
        && let Some(operation) = operation
    {
        say_what_is_taken(operation, head, response.headers_mut());
    }
    let headers = response.headers_mut();
    cors::say(&api.settings, head, headers);
    // Whatever was evaluated has set it already.
    let revision = || HeaderValue::from(api.node.position().revision);
    headers.entry(headers::REVISION).or_insert_with(revision);
    let (term, leader) = api.hints.values(api.node.leader_hint());
    headers.insert(headers::TERM, term);
    headers.insert(headers::LEADER, leader);
    if let Some(cluster) = api.cluster_header() {
        headers.insert(headers::CLUSTER, cluster);
    }
    headers.insert(headers::REQUEST_ID, headers::echoed(head).unwrap_or_else(|| headers::id_value(request_id)));
    if operation.is_some_and(|operation| operation.method == Method::GET) {
        headers.entry(header::CACHE_CONTROL).or_insert(NO_CACHE);
        if operation.is_some_and(Operation::has_forms) {
            headers.append(header::VARY, VARY_ACCEPT);
        }
    }
    if head.method == Method::HEAD { without_body(response) } else { response }
}

/// What goes with a 415: the content types that this operation takes, or that it takes no compression (RFC 9110, 15.5.16).
fn say_what_is_taken(operation: &Operation, head: &Parts, headers: &mut HeaderMap) {
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let name = match operation.method {
        Method::PATCH => ACCEPT_PATCH,
        Method::POST => ACCEPT_POST,
        _ => header::ACCEPT,
    };
    if let Ok(types) = HeaderValue::from_str(&operation.takes) {
        headers.insert(name, types);
    }
}

/// Makes the response to GET one to HEAD: all headers, the length too, without the body.
fn without_body(mut response: Answer) -> Answer {
    if let Some(length) = response.body().size_hint().exact()
        && response.status() != StatusCode::NOT_MODIFIED
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}

/// The handler of paths that do not exist: [`serve`] refuses them before.
pub async fn nothing() -> StatusCode {
    StatusCode::NOT_FOUND
}

/// 404 for a path that does not exist, 405 with `Allow` for a method that the path does not take.
fn refuse_route(context: &RequestContext) -> Failure {
    let (head, route) = (&context.head, context.route);
    if route.is_unknown() {
        let path: String = head.uri.path().chars().take(80).flat_map(char::escape_default).collect();
        let detail = format!("there is nothing at `{path}`; GET /openapi.json lists what there is");
        return Failure::new(ErrorCode::NotFound, Applied::No, detail).at("path:", "no such path");
    }
    let detail = format!("{} is not a method of {}; it takes {}", head.method, route.template(), route.allow());
    Failure::new(ErrorCode::MethodNotAllowed, Applied::No, detail).allowing(route.allow())
}
