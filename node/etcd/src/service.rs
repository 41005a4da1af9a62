//! The way of every call: from its head to its answer, over gRPC or as JSON.
//!
//! Owns what comes before a handler (the judgement of pages, deadline, authentication, admission, the message, a place of its class) and after
//! it (metrics, the logs, the form of errors). Never knows what a handler does.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use quorate_api::ErrorCode;
use quorate_etcd_api::{Code, METHODS};
use quorate_node_core::gateway::access_log::AnsweredRequest;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::api::Slot;
use quorate_node_core::gateway::arrival::Arrival;
use quorate_node_core::gateway::call::{Call, Target};
use quorate_node_core::gateway::pages::{self, Allowed, Refusal, Way};
use quorate_node_core::gateway::{answer_body, body, caught, door, enter, request_ids};
use quorate_node_core::{limits, timings};
use quorate_threads::watchdog;
use serde::Serialize;
use tonic::Streaming;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, StreamingService};

use crate::method::{Answer, Answers, Incoming, Outgoing, Policy, Questions, Served, Work};
use crate::status::Status;
use crate::{message, status};

/// A call that came, before anything but its head was looked at.
struct Asked {
    call: Arc<Call>,
    served: Served,
    /// As it came: over gRPC that of its method.
    path: Cow<'static, str>,
    started: Instant,
    /// Why it may not go on.
    refusal: Option<Refusal>,
}

/// Takes a call apart, and judges its head. There is none where nobody said where it came to, which is a bug.
fn arrive(mut request: Request, served: Served, way: Way) -> Option<(Asked, HeaderMap, Body)> {
    let started = Instant::now();
    let Arrival { api, origin, connection_account, busy } = request.extensions_mut().remove()?;
    let (head, body) = request.into_parts();
    let Policy { class, is_vital, writes, .. } = served.policy;
    let asked = pages::Head { method: &head.method, uri: &head.uri, headers: &head.headers, from: &origin };
    let refusal = pages::judge(&asked, way, Allowed::of(&api.settings)).err();
    // What may not go on takes no place of its class.
    let class = if refusal.is_some() { RequestClass::Node } else { class };
    let target = Target { route: served.method.path, class, is_vital };
    let id = if writes { request_ids::fresh_id() } else { request_ids::trace_id() };
    let mut call = Call::new(api, target, origin, connection_account, busy, started, id);
    if let Some(wanted) = head.headers.get("grpc-timeout").and_then(grpc_timeout) {
        call.give_time(wanted);
    }
    let path = match head.uri.path() {
        path if path == served.method.path => Cow::Borrowed(served.method.path),
        path => Cow::Owned(path.to_owned()),
    };
    let asked = Asked { call: Arc::new(call), served, path, started, refusal };
    Some((asked, head.headers, body))
}

/// A call with streams, as tonic carries it out. The messages bypass tonic, since each is counted and has a deadline.
struct Handler {
    asked: Arc<Asked>,
    /// Until the call begins.
    body: Option<Body>,
}

impl StreamingService<Bytes> for Handler {
    type Response = Box<dyn Outgoing>;
    type ResponseStream = BoxStream<'static, Result<Box<dyn Outgoing>, tonic::Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let (asked, body) = (Arc::clone(&self.asked), self.body.take().unwrap_or_default());
        Box::pin(async move {
            let (metadata, _, _) = request.into_parts();
            let asking = |call: Arc<Call>| {
                let messages = message::stream(call, body, limits::ETCD_STREAM_MESSAGE_BYTES_MAX);
                std::future::ready(Ok::<_, Status>(messages.map(|message| message.map(Incoming::Proto)).boxed()))
            };
            let answers = asked.open(metadata.into_headers(), asking).await?;
            Ok(tonic::Response::new(answers.map(|answer| answer.map_err(Into::into)).boxed()))
        })
    }
}

/// Passes messages on as they are.
#[derive(Default)]
struct AsTheyAre;

impl Codec for AsTheyAre {
    type Encode = Box<dyn Outgoing>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AsTheyAre {
    type Item = Box<dyn Outgoing>;
    type Error = tonic::Status;

    fn encode(&mut self, message: Box<dyn Outgoing>, into: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        Ok(message.write(into)?)
    }
}

impl Decoder for AsTheyAre {
    type Item = Bytes;
    type Error = tonic::Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, tonic::Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// The longest message that is taken.
fn message_bytes_max(call: &Call) -> usize {
    call.api.settings.bounds.body_bytes_max.min(limits::ETCD_MESSAGE_BYTES_MAX)
}

fn with_headers<B>(headers: HeaderMap, body: B) -> http::Request<B> {
    let mut request = http::Request::new(body);
    *request.headers_mut() = headers;
    request
}

/// Answers a call over gRPC.
pub async fn grpc(served: Served, request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, served, Way::Grpc) else { return nowhere() };
    if let Some(refused) = asked.refused(&headers) {
        return refused.into_http();
    }
    match served.work {
        Work::Unary(_) => unary(asked, headers, body).await,
        Work::Exchange { .. } => streams(asked, headers, body).await,
    }
}

async fn unary(asked: Asked, headers: HeaderMap, body: Body) -> Response {
    let call = Arc::clone(&asked.call);
    let answering = async {
        let encoding = message::check_encoding(&headers);
        let reading = async {
            encoding?;
            Ok::<_, Status>(Incoming::Proto(message::read(&call, body, message_bytes_max(&call)).await?))
        };
        asked.perform(headers, reading).await?.framed()
    };
    // The message has a deadline, and the decision one of its own. A call that waits for others begins to do so once the message is there.
    let late = async {
        match asked.served.policy.waits {
            true => std::future::pending().await,
            false => tokio::time::sleep_until((call.deadline + GRACE).into()).await,
        }
    };
    let answered = tokio::select! {
        biased;
        answered = answering => answered,
        () = late => Err(status::known(quorate_etcd_api::Error::Timeout)),
    };
    match answered {
        Ok(framed) => message::answer(&call, framed),
        Err(status) => status.into_http(),
    }
}

async fn streams(asked: Asked, headers: HeaderMap, body: Body) -> Response {
    let call = Arc::clone(&asked.call);
    let handler = Handler { asked: Arc::new(asked), body: Some(body) };
    let answer = Grpc::new(AsTheyAre).streaming(handler, with_headers(headers, Body::empty())).await;
    answer.map(|body| answer_body::of(&call, Body::new(body)))
}

/// Answers a call in JSON. Where it is one with streams, one message comes in, and what goes out is a line each.
pub async fn json(served: Served, request: Request) -> Response {
    let Some((asked, headers, body)) = arrive(request, served, Way::Gateway) else { return nowhere() };
    if let Some(refused) = asked.refused(&headers) {
        return json_failure(&refused);
    }
    let call = Arc::clone(&asked.call);
    let answered = async {
        let reading = async {
            let bytes_max = call.api.settings.bounds.body_bytes_max;
            body::collect(&call, body, bytes_max).await.map_err(Status::from)
        };
        let Work::Exchange { goes_on, .. } = served.work else {
            let answer = asked.perform(headers, async { Ok(Incoming::Json(reading.await?)) }).await?;
            return Ok(json_answer(StatusCode::OK, answer.to_json()));
        };
        let asking = async {
            let message = reading.await?;
            if message.trim_ascii().is_empty() {
                return Err(Status::invalid_argument("quorate: the request has no body"));
            }
            // Over HTTP the client cannot end its side: what goes on ends with its connection, an answer with its question.
            let questions = futures::stream::once(async move { Ok(Incoming::Json(message)) });
            Ok(if goes_on { questions.chain(futures::stream::pending()).boxed() } else { questions.boxed() })
        };
        let lines = asked.open(headers, |_| asking).await?.map(|answer| Ok::<_, Infallible>(line(answer)));
        Ok(([(header::CONTENT_TYPE, APPLICATION_JSON)], Body::from_stream(lines)).into_response())
    };
    let answered: Result<Response, Status> = answered.await;
    if answered.is_err() && !call.permit.is_held() {
        // Its message may still be coming, and the client is to read why it was not taken.
        call.linger();
    }
    let answer = answered.unwrap_or_else(|status| json_failure(&status));
    answer.map(|body| answer_body::of(&call, body))
}

/// Answers a call that is not served.
pub fn unimplemented(path: &str) -> Response {
    let (service, method) = path.trim_start_matches('/').rsplit_once('/').unwrap_or((path, ""));
    let is_known = METHODS.iter().any(|known| known.path.strip_prefix('/').is_some_and(|of| of.starts_with(service)));
    Status::unimplemented(match is_known {
        true => format!("unknown method {method} for service {service}"),
        false => format!("unknown service {service}"),
    })
    .into_http()
}

fn nowhere() -> Response {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

impl Asked {
    /// Why it is not answered, where its head does not let it go on. Told of as every answer is.
    fn refused(&self, headers: &HeaderMap) -> Option<Status> {
        let refusal = self.refusal.as_ref()?;
        let status = Status::new(tonic::Code::PermissionDenied, format!("quorate: {refusal}"));
        self.finish(headers, timings::Timings::default(), Some(&status));
        Some(status)
    }

    /// Lets it in by its head.
    async fn admit(&self, headers: &HeaderMap) -> Result<(), Status> {
        let policy = self.served.policy;
        let asked = door::Asked { is_data: policy.class != RequestClass::Node, guard: policy.guard, is_metrics: false };
        door::check(self.call.origin.door, self.call.api.settings.admin.as_ref(), asked)?;
        if !self.call.api.auth.is_open() {
            Box::pin(self.identify(headers)).await?;
        }
        match self.served.policy.class {
            RequestClass::Node => Ok(()),
            _ => self.call.admit().await.map_err(Status::from),
        }
    }

    /// Tells who asks, and whether they may.
    async fn identify(&self, headers: &HeaderMap) -> Result<(), Status> {
        let says_who = headers.contains_key(header::AUTHORIZATION) || self.call.origin.certificate.is_some();
        enter::enter(&self.call, headers, self.served.policy.guard).await.map_err(|failure| match failure.code() {
            ErrorCode::Unauthenticated if !says_who => status::known(quorate_etcd_api::Error::UserEmpty),
            _ => failure.into(),
        })
    }

    /// From the head to the answer. Nothing is read before the caller is known, and nothing taken of a class before the message is there.
    async fn perform(&self, headers: HeaderMap, reading: impl Future<Output = Result<Incoming, Status>>) -> Answer {
        let Work::Unary(answer) = self.served.work else { return Err(Status::internal("quorate: it has streams")) };
        let headers = bearer(headers);
        let _slot = Slot::take(&self.call.api);
        let work = pin!(async {
            self.admit(&headers).await?;
            let message = reading.await?;
            self.call.enter().await?;
            self.call.take_large_turn(self.call.body_permit.bytes()).await?;
            let answered = answer(Arc::clone(&self.call), message).await?;
            self.call.check_answer(self.served.policy.writes, answered.bytes())?;
            Ok::<_, Status>(answered)
        });
        let caught = pin!(caught::caught(self.served.policy.writes, work));
        let timed = pin!(timings::of(caught));
        let (answered, timings) = watchdog::watched(self.served.method.path, timed).await;
        self.finish(&headers, timings, answered.as_ref().err());
        answered
    }

    /// From the head to the stream of answers, which keeps its connection busy until it ends. The messages are read on behalf of a call that
    /// lasts as long.
    async fn open<F>(&self, headers: HeaderMap, asking: impl FnOnce(Arc<Call>) -> F) -> Result<Answers, Status>
    where
        F: Future<Output = Result<Questions, Status>>,
    {
        let Work::Exchange { open, .. } = self.served.work else {
            return Err(Status::internal("quorate: it has no streams"));
        };
        let headers = bearer(headers);
        let let_in = async {
            self.admit(&headers).await?;
            let questions = asking(Arc::new(self.call.lasting())).await?;
            self.call.enter().await?;
            Ok::<_, Status>((questions, self.call.take_busy()?))
        };
        let let_in = let_in.await;
        self.finish(&headers, timings::Timings::default(), let_in.as_ref().err());
        let (questions, mut busy) = let_in?;
        busy.goes_on();
        let stop = busy.monitor().stop().clone();
        let answers = open(Arc::new(self.call.lasting()), questions, stop);
        let answers = answers.map(move |answer| {
            let _stays = &busy;
            answer
        });
        Ok(answers.boxed())
    }

    /// Tells of it, once it was answered.
    fn finish(&self, headers: &HeaderMap, timings: timings::Timings, failed: Option<&Status>) {
        let Self { call, served, path, started, refusal: _ } = self;
        let (api, took) = (&call.api, started.elapsed());
        let status = failed.map_or(StatusCode::OK, http_status);
        if status != StatusCode::TOO_MANY_REQUESTS {
            let apart = timings.on(timings::Part::Wait) + timings.on(timings::Part::Body);
            api.admission.classes.observe(call.permit.class(), took.saturating_sub(apart));
        }
        let (method, request_id, bytes) = ("POST", call.request_id(), (call.body_permit.bytes(), None));
        enter::note_answered(call, served.policy.guard, method, path, status, &request_id);
        let who = Some(call.who());
        AnsweredRequest { route: call.route, method, path, request_id: &request_id, status, bytes, took, timings, who }
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

/// Time for an answer beyond the deadline of its call: the refusal by the call itself is the better one.
const GRACE: Duration = Duration::from_millis(250);

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

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

fn json_answer(status: StatusCode, body: serde_json::Result<Vec<u8>>) -> Response {
    let Ok(body) = body else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    (status, [(header::CONTENT_TYPE, APPLICATION_JSON)], body).into_response()
}

fn json_failure(status: &Status) -> Response {
    json_answer(http_status(status), ErrorBody::of(status).to_json())
}

/// A message of a stream, or how it ends, on a line of its own.
fn line(answer: Answer) -> Bytes {
    let (name, body) = match answer {
        Ok(answer) => (&b"{\"result\":"[..], answer.to_json()),
        Err(status) => (&b"{\"error\":"[..], ErrorBody::of(&status).to_json()),
    };
    [name, &body.unwrap_or_default(), b"}\n"].concat().into()
}

fn http_status(status: &Status) -> StatusCode {
    let code = Code::try_from(status.code() as i32).unwrap_or(Code::Unknown);
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
