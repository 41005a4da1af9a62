//! The way of every call: from its message to its answer, over gRPC or as JSON.
//!
//! Owns what comes before a handler (deadline, authentication, admission) and after it (metrics, the logs, the form of errors). Never
//! knows what a handler does.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
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
use http_body_util::{BodyExt, LengthLimitError, Limited};
use quorate_etcd_api::{Code, METHODS, Message, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::etcd::status;
use crate::gateway::access_log::AnsweredRequest;
use crate::gateway::admission::classes::RequestClass;
use crate::gateway::api::Slot;
use crate::gateway::arrival::Arrival;
use crate::gateway::call::{Call, Target};
use crate::gateway::caught;
use crate::gateway::enter::{self, Guard};
use crate::gateway::failure::Failure;
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
    /// Whether it goes on where nothing more is asked, until the client ends its side.
    const GOES_ON: bool;

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

/// A call that came, before anything of it was looked at.
struct Asked {
    call: Arc<Call>,
    policy: Policy,
    path: String,
    started: Instant,
}

/// Takes a call apart. There is none where nobody said where it came to, which is a bug.
fn arrive(mut request: Request, path: &'static str, policy: Policy) -> Option<(Asked, HeaderMap, Body)> {
    let started = Instant::now();
    let Arrival { api, origin, busy } = request.extensions_mut().remove()?;
    let (head, body) = request.into_parts();
    let target = Target { route: path, class: policy.class, is_vital: policy.is_vital };
    let id = if policy.writes { request_ids::fresh_id() } else { request_ids::trace_id() };
    let mut call = Call::new(api, target, origin, busy, started, id);
    if let Some(wanted) = head.headers.get("grpc-timeout").and_then(grpc_timeout) {
        call.give_time(wanted);
    }
    let asked = Asked { call: Arc::new(call), policy, path: head.uri.path().to_owned(), started };
    Some((asked, head.headers, body))
}

/// A call as tonic carries it out; `M` says which.
struct Handler<M> {
    asked: Arc<Asked>,
    method: PhantomData<M>,
}

impl<M> Handler<M> {
    fn of(asked: Asked) -> Self {
        Self { asked: Arc::new(asked), method: PhantomData }
    }
}

impl<U: Unary> UnaryService<U::Request> for Handler<U> {
    type Response = U::Response;
    type Future = BoxFuture<'static, Result<tonic::Response<U::Response>, Status>>;

    fn call(&mut self, request: tonic::Request<U::Request>) -> Self::Future {
        let asked = Arc::clone(&self.asked);
        Box::pin(async move {
            let (metadata, _, message) = request.into_parts();
            asked.perform::<U>(metadata.into_headers(), message).await.map(tonic::Response::new)
        })
    }
}

impl<E: Exchange> StreamingService<E::Request> for Handler<E> {
    type Response = E::Response;
    type ResponseStream = BoxStream<'static, Result<E::Response, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<E::Request>>) -> Self::Future {
        let asked = Arc::clone(&self.asked);
        Box::pin(async move {
            let (metadata, _, requests) = request.into_parts();
            let opened = asked.open::<E>(metadata.into_headers(), requests.boxed()).await;
            opened.map(tonic::Response::new)
        })
    }
}

/// What encodes and decodes, with the bound on a message.
fn codec<Q: Form, A: Form>(call: &Call) -> Grpc<ProstCodec<A, Q>> {
    Grpc::new(ProstCodec::default()).max_decoding_message_size(call.api.settings.body_bytes_max)
}

fn with_headers<B>(headers: HeaderMap, body: B) -> http::Request<B> {
    let mut request = http::Request::new(body);
    *request.headers_mut() = headers;
    request
}

/// Answers a call over gRPC.
pub async fn grpc<U: Unary>(request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, U::PATH, U::POLICY) else { return nowhere() };
    let (call, mut grpc) = (Arc::clone(&asked.call), codec::<U::Request, U::Response>(&asked.call));
    let request = with_headers(headers, counted(&call, body));
    // A message that does not come is not waited for beyond the deadline; what is decided has one of its own.
    match tokio::time::timeout_at((call.deadline + GRACE).into(), grpc.unary(Handler::<U>::of(asked), request)).await {
        Ok(answer) => answer.map(Body::new),
        Err(_late) => status::known(quorate_etcd_api::Error::Timeout).into_http(),
    }
}

/// Answers a call with streams over gRPC. A stream has no end, and its messages are small: each is bounded by itself.
pub async fn grpc_exchange<E: Exchange>(request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, E::PATH, E::POLICY) else { return nowhere() };
    let mut grpc = codec::<E::Request, E::Response>(&asked.call);
    grpc.streaming(Handler::<E>::of(asked), with_headers(headers, body)).await.map(Body::new)
}

/// Answers a call in JSON.
pub async fn json<U: Unary>(request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, U::PATH, U::POLICY) else { return nowhere() };
    let answered = async {
        let message = read(&asked.call, &headers, body).await?.unwrap_or_default();
        asked.perform::<U>(headers, message).await
    };
    match answered.await {
        Ok(answer) => json_answer(StatusCode::OK, &answer),
        Err(status) => json_error(&status),
    }
}

/// Answers a call with streams in JSON: one message comes in, what goes out is a line each.
pub async fn json_exchange<E: Exchange>(request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, E::PATH, E::POLICY) else { return nowhere() };
    let opened = async {
        let message = read(&asked.call, &headers, body).await?;
        let message = message.ok_or_else(|| Status::invalid_argument("quorate: the request has no body"))?;
        // Over HTTP the client cannot end its side: what goes on ends with its connection, an answer with its question.
        let requests = futures::stream::once(async move { Ok(message) });
        let requests = if E::GOES_ON { requests.chain(futures::stream::pending()).boxed() } else { requests.boxed() };
        asked.open::<E>(headers, requests).await
    };
    match opened.await {
        Ok(answers) => {
            let lines = answers.map(|answer| Ok::<_, Infallible>(line(&answer)));
            ([(header::CONTENT_TYPE, APPLICATION_JSON)], Body::from_stream(lines)).into_response()
        }
        Err(status) => json_error(&status),
    }
}

fn nowhere() -> Response {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

impl Asked {
    /// Lets it in.
    async fn admit(&self, headers: &HeaderMap) -> Result<(), Failure> {
        enter::enter(&self.call, headers, self.policy.guard).await?;
        match self.policy.class {
            RequestClass::Node => Ok(()),
            _ => self.call.admit().await,
        }
    }

    /// From a message to its answer.
    async fn perform<U: Unary>(&self, headers: HeaderMap, message: U::Request) -> Result<U::Response, Status> {
        let headers = bearer(headers);
        let _slot = Slot::take(&self.call.api);
        let worked = timings::of(caught::caught(U::POLICY.writes, async {
            self.admit(&headers).await?;
            U::answer(&self.call, message).await
        }));
        let (answered, timings) = watchdog::watched(U::PATH, worked).await;
        self.finish(&headers, timings, answered.as_ref().err());
        answered
    }

    /// From the first message to the stream of answers, which keeps its connection busy until it ends.
    async fn open<E: Exchange>(
        &self,
        headers: HeaderMap,
        requests: BoxStream<'static, Result<E::Request, Status>>,
    ) -> Result<BoxStream<'static, Result<E::Response, Status>>, Status> {
        let headers = bearer(headers);
        let let_in = async {
            self.admit(&headers).await?;
            self.call.take_busy().map_err(Status::from)
        };
        let let_in = let_in.await;
        self.finish(&headers, timings::Timings::default(), let_in.as_ref().err());
        let mut busy = let_in?;
        busy.goes_on();
        let stop = busy.monitor().stop().clone();
        let answers = E::open(Arc::new(self.call.lasting()), requests, stop);
        let answers = answers.map(move |answer| {
            let _stays = &busy;
            answer
        });
        Ok(answers.boxed())
    }

    /// Tells of it, once it was answered.
    fn finish(&self, headers: &HeaderMap, timings: timings::Timings, failed: Option<&Status>) {
        let Self { call, policy, path, started } = self;
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

/// How much longer than its call a body is read: the answer of the call itself is the better one.
const GRACE: Duration = Duration::from_millis(250);

/// A body that takes its place in the memory for all bodies as it comes. Where there is none, that is what went wrong.
fn counted(call: &Arc<Call>, body: Body) -> Body {
    let call = Arc::clone(call);
    Body::from_stream(body.into_data_stream().map(move |data| {
        let data = data.map_err(BoxError::from)?;
        call.body_permit.grow(data.len()).map_err(Status::from)?;
        Ok::<_, BoxError>(data)
    }))
}

/// Reads a message in JSON; `None` without a body.
///
/// Keeps web pages out: a browser sends a `POST` without a content type that needs leave to any address, and this port may stand on the
/// loopback of someone who browses. Clients of etcd are no web pages.
async fn read<T: Form>(call: &Arc<Call>, headers: &HeaderMap, body: Body) -> Result<Option<T>, Status> {
    if headers.contains_key(header::ORIGIN) {
        return Err(Status::permission_denied("quorate: web pages may not ask here; see /v1 and --cors-origins"));
    }
    let body = Limited::new(counted(call, body), call.api.settings.body_bytes_max);
    let reading = tokio::time::timeout_at(call.deadline.into(), body.collect()).await;
    let bytes = match reading {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(status::known(quorate_etcd_api::Error::RequestTooLarge));
        }
        Ok(Err(error)) => return Err(Status::from_error(error)),
        Err(_late) => return Err(status::known(quorate_etcd_api::Error::Timeout)),
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
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
    let code = Code::try_from(status.code() as i32).unwrap_or(Code::Unknown);
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
