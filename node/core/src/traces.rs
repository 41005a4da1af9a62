//! Requests as spans of OpenTelemetry, for a collector that speaks OTLP over HTTP.
//!
//! Owns which requests are told, and the way to the collector. A span is made once its request was answered, so whoever serves a
//! request never waits for it: it goes into a bounded queue, of which a thread of the library sends what it holds now and then.
//! Keys and values are never told.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};
use quorate_threads::watchdog;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::metrics::{MetricsSource, Sample};
use crate::per_second::PerSecond;
use crate::slow::ms;
use crate::timings::{Part, Timings};

/// How often what was gathered is sent.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How long the collector may take for one message.
const SEND_MAX: Duration = Duration::from_secs(5);
/// How long a graceful end waits for the last message.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Requests a second that are told because they asked for it: the rest of them is not.
const HEEDED_A_SECOND_MAX: u64 = 200;
/// Longest answer of a collector that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The way of requests to the collector.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    percent: u32,
    heed: TraceParents,
    heeded: PerSecond,
}

/// Whose `traceparent` decides that a request is told, and as a part of which trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum TraceParents {
    /// Nobody's: chance alone decides.
    None,
    /// That of somebody who said who they are; where authentication is off, of everybody.
    #[default]
    Known,
    /// Everybody's.
    All,
}

impl TraceParents {
    fn heeds(self, is_known: bool) -> bool {
        match self {
            Self::None => false,
            Self::Known => is_known,
            Self::All => true,
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traces({} %)", self.percent)
    }
}

/// A request that was answered.
pub struct Answered<'r> {
    /// Its method.
    pub method: &'r str,
    /// The template of its route.
    pub route: &'static str,
    /// How it was answered.
    pub status: u16,
    /// Under which it is found in the logs.
    pub request_id: &'r str,
    /// Who leads.
    pub leader_id: Option<u64>,
    /// All in all.
    pub took: Duration,
    /// Where that went.
    pub timings: Timings,
}

impl Traces {
    /// Sends to `endpoint`, the whole address of the collector, so many of a hundred requests that nobody else decided about.
    pub fn start(
        endpoint: &str,
        percent: u32,
        heed: TraceParents,
        node_id: u64,
        counts: &TraceCounts,
    ) -> Result<Self, String> {
        let client = Client { runtime: Handle::current(), counts: counts.clone() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(SEND_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let config = BatchConfigBuilder::default().with_scheduled_delay(SEND_EVERY).build();
        let resource = Resource::builder_empty()
            .with_service_name("quorate")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", node_id.to_string()))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(config).build())
            // What comes here was chosen already.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("quorate-node");
        Ok(Self { provider, tracer, percent, heed, heeded: PerSecond::new(HEEDED_A_SECOND_MAX) })
    }

    /// The trace that a request is part of, as its `traceparent` says, where it shall be told: who asks decides, if they are
    /// [heeded](TraceParents) and not too many are, and else chance does.
    pub fn choose(&self, headers: &HeaderMap, is_known: bool) -> Option<Context> {
        let by_chance = || rand::random::<u32>() % 100 < self.percent;
        if !headers.contains_key("traceparent") || !self.heed.heeds(is_known) {
            return by_chance().then(Context::new);
        }
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
        let span = parent.span().span_context().clone();
        let is_chosen = match span.is_valid() {
            true => span.is_sampled() && self.heeded.admit(),
            false => by_chance(),
        };
        is_chosen.then_some(parent)
    }

    /// Tells of a request that was chosen.
    pub fn tell(&self, parent: &Context, request: &Answered<'_>) {
        let end = SystemTime::now();
        let Answered { method, route, status, request_id, leader_id, took, timings } = request;
        let part = |part: Part| i64::try_from(ms(timings.on(part))).unwrap_or(i64::MAX);
        let mut attributes = vec![
            KeyValue::new("http.request.method", (*method).to_owned()),
            KeyValue::new("http.route", *route),
            KeyValue::new("http.response.status_code", i64::from(*status)),
            KeyValue::new("quorate.request_id", (*request_id).to_owned()),
            KeyValue::new("quorate.body_ms", part(Part::Body)),
            KeyValue::new("quorate.log_ms", part(Part::Log)),
            KeyValue::new("quorate.freshness_ms", part(Part::Freshness)),
            KeyValue::new("quorate.wait_ms", part(Part::Wait)),
        ];
        attributes.extend(leader_id.map(|id| KeyValue::new("quorate.leader_id", id.to_string())));
        let builder = self.tracer.span_builder(format!("{method} {route}"));
        let builder = builder.with_kind(SpanKind::Server).with_start_time(end - *took).with_attributes(attributes);
        let mut span = self.tracer.build_with_context(builder, parent);
        if *status >= 500 {
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(end);
    }

    /// Sends what is left, as far as the collector takes it in a moment. Blocks.
    pub fn shut_down(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_WAIT) {
            tracing::info!(%error, "the last spans did not reach the collector");
        }
    }
}

struct Headers<'h>(&'h HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// How the sending goes.
#[derive(Debug, Clone, Default)]
pub struct TraceCounts(Arc<[AtomicU64; 2]>);

impl MetricsSource for TraceCounts {
    fn sample(&self, out: &mut Vec<Sample>) {
        let [sent, failed] = [0, 1].map(|at: usize| self.0[at].load(Ordering::Relaxed));
        out.push(Sample::counter("trace_exports", "Messages of spans that the collector took", sent));
        out.push(Sample::counter("trace_export_failures", "Messages of spans that it did not take", failed));
    }
}

/// Sends the library's messages over connections of this node's runtime, since its thread has none.
#[derive(Debug)]
struct Client {
    runtime: Handle,
    counts: TraceCounts,
}

type Sent<'f> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>;

impl HttpClient for Client {
    fn send_bytes<'c, 'f>(&'c self, request: Request<Bytes>) -> Sent<'f>
    where
        'c: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let sent =
                watchdog::spawn_on(&self.runtime, async move { tokio::time::timeout(SEND_MAX, send(request)).await });
            let answer = match sent.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_late)) => Err(format!("no answer within {SEND_MAX:?}").into()),
                Err(stopped) => Err(stopped.into()),
            };
            let is_taken = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
            self.counts.0[usize::from(!is_taken)].fetch_add(1, Ordering::Relaxed);
            match &answer {
                Ok(answer) if !is_taken => {
                    tracing::warn!(status = answer.status().as_u16(), "the collector refused spans")
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(error, "spans did not reach the collector"),
            }
            answer
        })
    }
}

/// One exchange on a connection of its own: there is one in a second at most.
async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut head, body) = request.into_parts();
    let authority = head.uri.authority().ok_or("the endpoint has no host")?.clone();
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    head.headers.insert(header::HOST, authority.as_str().parse()?);
    head.uri = head.uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| Uri::from(path.clone()));
    let exchange = async {
        let answer = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => {
            ended?;
            exchange.await
        }
    }
}
