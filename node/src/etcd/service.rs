//! The way of every call: from its message to its answer, over gRPC or as JSON.
//!
//! Owns what comes before a handler (deadline, authentication, admission) and after it (metrics, the logs, the form of errors). Never
//! knows what a handler does.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::BoxError;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use quorate_etcd_api::{METHODS, Message, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::connection::monitor::Busy;
use crate::etcd::status;
use crate::gateway::access_log::AnsweredRequest;
use crate::gateway::admission::classes::RequestClass;
use crate::gateway::api::Slot;
use crate::gateway::arrival::Arrival;
use crate::gateway::call::{Call, Target};
use crate::gateway::caught;
use crate::gateway::enter::{self, Guard};
use crate::gateway::request_ids;
use crate::{timings, watchdog};

/// What holds for a call before it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Where it is admitted.
    pub class: RequestClass,
    /// Who may ask.
    pub guard: Guard,
    /// Whether it writes: then it has a request id under which its outcome is kept.
    pub writes: bool,
    /// Whether it is served whatever its account owes.
    pub is_vital: bool,
}

impl Policy {
    /// A read.
    pub const fn read(class: RequestClass) -> Self {
        Self { class, guard: Guard::Judged, writes: false, is_vital: false }
    }

    /// A write.
    pub const fn write(class: RequestClass) -> Self {
        Self { class, guard: Guard::Judged, writes: true, is_vital: false }
    }
}

/// A message in both forms.
pub trait Form: Message + Default + Serialize + DeserializeOwned + Send + 'static {}

impl<T: Message + Default + Serialize + DeserializeOwned + Send + 'static> Form for T {}

/// A call with one message each way.
pub trait Unary: Send + Sync + 'static {
    /// What is asked.
    type Request: Form;
    /// What is answered.
    type Response: Form;
    /// Its path over gRPC.
    const PATH: &'static str;
    /// What holds for it.
    const POLICY: Policy;

    /// Answers.
    fn answer(call: &Call, request: Self::Request) -> impl Future<Output = Result<Self::Response, Status>> + Send;
}

/// A call with a stream each way.
pub trait Exchange: Send + Sync + 'static {
    /// What comes in.
    type Request: Form;
    /// What goes out.
    type Response: Form;
    /// Its path over gRPC.
    const PATH: &'static str;
    /// What holds for it.
    const POLICY: Policy;

    /// Begins: gives what it answers with. It should end when `stop` says that the connection or the node does.
    fn open(
        call: Arc<Call>,
        requests: BoxStream<'static, Result<Self::Request, Status>>,
        stop: CancellationToken,
    ) -> BoxStream<'static, Result<Self::Response, Status>>;
}

/// The entry of a call in the table.
pub fn method(path: &str) -> &'static Method {
    METHODS.iter().find(|method| method.path == path).expect("every call that is served is in the table")
}

/// Answers a call over gRPC.
pub async fn grpc<U: Unary>(request: Request) -> Response {
    let Arrived { call, headers, body, path, started } = match Arrived::of(request, U::PATH, U::POLICY) {
        Some(arrived) => arrived,
        None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let mut grpc = Grpc::new(ProstCodec::<U::Response, U::Request>::default())
        .max_decoding_message_size(call.api.settings.body_bytes_max);
    let service = UnaryCall::<U> {
        call: Arc::clone(&call),
        headers: Arc::new(headers),
        path,
        started,
        answers: std::marker::PhantomData,
    };
    let mut request = http::Request::new(counted(&call, body));
    *request.headers_mut() = (*service.headers).clone();
    // A message that does not come is not waited for beyond the deadline; what is decided has one of its own.
    match tokio::time::timeout_at((call.deadline + GRACE).into(), grpc.unary(service, request)).await {
        Ok(answer) => answer.map(Body::new),
        Err(_late) => status::known(quorate_etcd_api::Error::Timeout).into_http(),
    }
}

struct UnaryCall<U> {
    call: Arc<Call>,
    headers: Arc<HeaderMap>,
    path: String,
    started: Instant,
    answers: std::marker::PhantomData<U>,
}

impl<U: Unary> UnaryService<U::Request> for UnaryCall<U> {
    type Response = U::Response;
    type Future = BoxFuture<'static, Result<tonic::Response<U::Response>, Status>>;

    fn call(&mut self, request: tonic::Request<U::Request>) -> Self::Future {
        let (call, headers, path, started) =
            (Arc::clone(&self.call), Arc::clone(&self.headers), self.path.clone(), self.started);
        Box::pin(async move {
            let answered = perform::<U>(&call, &headers, &path, started, request.into_inner()).await;
            answered.map(tonic::Response::new)
        })
    }
}

/// Answers a call in JSON.
pub async fn json<U: Unary>(request: Request) -> Response {
    if let Some(refused) = refuse_page(&request) {
        return refused;
    }
    let Arrived { call, headers, body, path, started } = match Arrived::of(request, U::PATH, U::POLICY) {
        Some(arrived) => arrived,
        None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let answered = async {
        let bytes = read(&call, body).await?;
        let request = if bytes.is_empty() { U::Request::default() } else { parse(&bytes)? };
        perform::<U>(&call, &headers, &path, started, request).await
    };
    match answered.await {
        Ok(answer) => json_answer(StatusCode::OK, &answer),
        Err(status) => json_error(&status),
    }
}

/// Answers a call with streams over gRPC.
pub async fn grpc_exchange<E: Exchange>(request: Request) -> Response {
    let Arrived { call, headers, body, path, started } = match Arrived::of(request, E::PATH, E::POLICY) {
        Some(arrived) => arrived,
        None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let mut grpc = Grpc::new(ProstCodec::<E::Response, E::Request>::default())
        .max_decoding_message_size(call.api.settings.body_bytes_max);
    let service =
        ExchangeCall::<E> { call, headers: Arc::new(headers), path, started, answers: std::marker::PhantomData };
    let mut request = http::Request::new(body);
    *request.headers_mut() = (*service.headers).clone();
    // A stream has no end, and its messages are small: each is bounded by itself.
    grpc.streaming(service, request).await.map(Body::new)
}

struct ExchangeCall<E> {
    call: Arc<Call>,
    headers: Arc<HeaderMap>,
    path: String,
    started: Instant,
    answers: std::marker::PhantomData<E>,
}

impl<E: Exchange> StreamingService<E::Request> for ExchangeCall<E> {
    type Response = E::Response;
    type ResponseStream = BoxStream<'static, Result<E::Response, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<E::Request>>) -> Self::Future {
        let (call, headers, path, started) =
            (Arc::clone(&self.call), Arc::clone(&self.headers), self.path.clone(), self.started);
        Box::pin(async move {
            let opened = begin(&call, &headers, E::POLICY).await;
            finish(&call, &headers, E::POLICY, &path, started, timings::Timings::default(), opened.as_ref().err());
            let busy = opened?;
            Ok(tonic::Response::new(open::<E>(&call, request.into_inner().boxed(), busy)))
        })
    }
}

/// Answers a call with streams in JSON: one message comes in, what goes out is a line each.
pub async fn json_exchange<E: Exchange>(request: Request) -> Response {
    if let Some(refused) = refuse_page(&request) {
        return refused;
    }
    let Arrived { call, headers, body, path, started } = match Arrived::of(request, E::PATH, E::POLICY) {
        Some(arrived) => arrived,
        None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let opened = async {
        let bytes = read(&call, body).await?;
        let request: E::Request = parse(&bytes)?;
        Ok((request, begin(&call, &headers, E::POLICY).await?))
    };
    let opened = opened.await;
    finish(&call, &headers, E::POLICY, &path, started, timings::Timings::default(), opened.as_ref().err());
    let (request, busy) = match opened {
        Ok(opened) => opened,
        Err(status) => return json_error(&status),
    };
    // Over HTTP the client cannot end its side: a stream ends with its connection, an answer with its question.
    let requests = futures::stream::once(async move { Ok(request) });
    let requests = match E::PATH.ends_with("/Watch") {
        true => requests.chain(futures::stream::pending()).boxed(),
        false => requests.boxed(),
    };
    let lines = open::<E>(&call, requests, busy).map(|answer| Ok::<_, Infallible>(line(&answer)));
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, APPLICATION_JSON);
    response
}

/// Opens a stream, which keeps its connection busy until it ends.
fn open<E: Exchange>(
    call: &Call,
    requests: BoxStream<'static, Result<E::Request, Status>>,
    mut busy: Busy,
) -> BoxStream<'static, Result<E::Response, Status>> {
    busy.goes_on();
    let stop = busy.monitor().stop().clone();
    E::open(Arc::new(call.lasting()), requests, stop)
        .map(move |item| {
            let _stays = &busy;
            item
        })
        .boxed()
}

/// Keeps web pages out. A browser sends a `POST` without a content type that needs leave to any address, and this port may stand on the
/// loopback of someone who browses. Clients of etcd are no web pages.
fn refuse_page(request: &Request) -> Option<Response> {
    let is_of_page = request.headers().contains_key(header::ORIGIN);
    is_of_page.then(|| {
        json_error(&Status::permission_denied("quorate: web pages may not ask here; see /v1 and --cors-origins"))
    })
}

/// A call that came, before anything of it was looked at. There is none where nobody said where it came to, which is a bug.
struct Arrived {
    call: Arc<Call>,
    headers: HeaderMap,
    body: Body,
    path: String,
    started: Instant,
}

impl Arrived {
    fn of(mut request: Request, path: &'static str, policy: Policy) -> Option<Self> {
        let started = Instant::now();
        let Arrival { api, origin, busy } = request.extensions_mut().remove()?;
        let (head, body) = request.into_parts();
        let target = Target { route: path, class: policy.class, is_vital: policy.is_vital };
        let id = if policy.writes { request_ids::fresh_id() } else { request_ids::trace_id() };
        let mut call = Call::new(api, target, origin, busy, started, id);
        if let Some(wanted) = head.headers.get("grpc-timeout").and_then(grpc_timeout) {
            call.give_time(wanted);
        }
        let path = head.uri.path().to_owned();
        Some(Self { call: Arc::new(call), headers: bearer(head.headers), body, path, started })
    }
}

/// Clients of etcd send their token bare, in `token` or `authorization`.
fn bearer(mut headers: HeaderMap) -> HeaderMap {
    let token = headers.remove("token").or_else(|| headers.get(header::AUTHORIZATION).cloned());
    let bare = token.as_ref().and_then(|token| token.to_str().ok()).filter(|token| !token.contains(' '));
    if let Some(value) = bare.and_then(|bare| HeaderValue::from_str(&format!("Bearer {bare}")).ok()) {
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

/// At most eight digits and a unit.
fn grpc_timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Lets a call in.
async fn admit(call: &Call, headers: &HeaderMap, policy: Policy) -> Result<(), Status> {
    let admitted = async {
        enter::enter(call, headers, policy.guard).await?;
        if policy.class != RequestClass::Node {
            call.admit().await?;
        }
        Ok(())
    };
    admitted.await.map_err(status::of_failure)
}

/// Lets a stream in.
async fn begin(call: &Call, headers: &HeaderMap, policy: Policy) -> Result<Busy, Status> {
    admit(call, headers, policy).await?;
    call.take_busy().map_err(status::of_failure)
}

/// From a message to its answer.
async fn perform<U: Unary>(
    call: &Arc<Call>,
    headers: &HeaderMap,
    path: &str,
    started: Instant,
    request: U::Request,
) -> Result<U::Response, Status> {
    let _slot = Slot::take(&call.api);
    let worked = timings::of(caught::caught(U::POLICY.writes, async {
        admit(call, headers, U::POLICY).await?;
        match tokio::time::timeout_at(call.deadline.into(), U::answer(call, request)).await {
            Ok(answered) => answered,
            // What waits has a deadline of its own, so this one is met by what does not.
            Err(_late) => Err(status::known(quorate_etcd_api::Error::Timeout)),
        }
    }));
    let (answered, timings) = watchdog::watched(U::PATH, worked).await;
    finish(call, headers, U::POLICY, path, started, timings, answered.as_ref().err());
    answered
}

/// Tells of a call that was answered.
fn finish(
    call: &Call,
    headers: &HeaderMap,
    policy: Policy,
    path: &str,
    started: Instant,
    timings: timings::Timings,
    failed: Option<&Status>,
) {
    let (api, took) = (&call.api, started.elapsed());
    let status = failed.map_or(StatusCode::OK, http_status);
    if status != StatusCode::TOO_MANY_REQUESTS {
        api.classes.observe(call.permit.class(), took.saturating_sub(timings.on(timings::Part::Wait)));
    }
    let (method, request_id, bytes) = ("POST", call.request_id(), (call.body_permit.bytes(), None));
    enter::note_answered(call, policy.guard, method, path, status, &request_id);
    AnsweredRequest { route: call.route, method, path, request_id: &request_id, status, bytes, took, timings }
        .tell(api, headers);
    if let Some(number) = api.metrics.number_of(call.route) {
        api.metrics.observe_request(number, status, took);
    }
}

/// How much longer than its call a body is read: the answer of the call itself is the better one.
const GRACE: Duration = Duration::from_millis(250);

/// A body that takes its place in the memory for all bodies as it comes.
fn counted(call: &Arc<Call>, body: Body) -> Body {
    let call = Arc::clone(call);
    Body::from_stream(body.into_data_stream().map(move |data| {
        let data = data.map_err(BoxError::from)?;
        call.body_permit.grow(data.len()).map_err(|failure| BoxError::from(failure.detail().to_owned()))?;
        Ok::<_, BoxError>(data)
    }))
}

/// Reads a body in JSON.
async fn read(call: &Arc<Call>, body: Body) -> Result<Bytes, Status> {
    let body = Limited::new(counted(call, body), call.api.settings.body_bytes_max);
    let reading = tokio::time::timeout_at(call.deadline.into(), body.collect()).await;
    match reading {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(status::known(quorate_etcd_api::Error::RequestTooLarge)),
        Err(_late) => Err(status::known(quorate_etcd_api::Error::Timeout)),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(bytes).map_err(|error| Status::invalid_argument(error.to_string()))
}

const APPLICATION_JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The body of an error, as etcd's gateway writes it.
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
    code: i32,
    message: &'a str,
}

impl<'a> ErrorBody<'a> {
    fn of(status: &'a Status) -> Self {
        Self { error: status.message(), code: status.code() as i32, message: status.message() }
    }
}

/// A message of a stream, or how it ends.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a, T> {
    Result(T),
    Error(ErrorBody<'a>),
}

fn json_error(status: &Status) -> Response {
    json_answer(http_status(status), &ErrorBody::of(status))
}

fn json_answer(status: StatusCode, answer: &impl Serialize) -> Response {
    let Ok(body) = serde_json::to_vec(answer) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    (status, [(header::CONTENT_TYPE, APPLICATION_JSON)], body).into_response()
}

/// A message of a stream, on a line of its own.
fn line<T: Serialize>(answer: &Result<T, Status>) -> Bytes {
    let written = match answer {
        Ok(answer) => serde_json::to_vec(&Line::<_>::Result(answer)),
        Err(status) => serde_json::to_vec(&Line::<&T>::Error(ErrorBody::of(status))),
    };
    let mut line = written.unwrap_or_default();
    line.push(b'\n');
    line.into()
}

fn http_status(status: &Status) -> StatusCode {
    let code = match status.code() {
        Code::Ok => 200,
        Code::Cancelled => 499,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::ResourceExhausted => 429,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
        Code::Unknown | Code::Internal | Code::DataLoss => 500,
    };
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
