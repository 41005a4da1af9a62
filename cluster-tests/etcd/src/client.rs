//! A client of one server: gRPC as etcd's clients speak it, and HTTP for the JSON gateway.
//!
//! Never tries anything twice.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_etcd_api::Message;
use tokio::net::TcpStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};
use tower_service::Service;

/// Largest answer that is taken.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Where answers of a stream come from.
pub type Answers<A> = BoxStream<'static, Result<A, Status>>;

/// A connection over which calls go.
struct Wire(http2::SendRequest<tonic::body::Body>);

impl Service<http::Request<tonic::body::Body>> for Wire {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Messages as bytes: what is generic in a call is compiled once, and not for each pair of messages.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
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

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A client of one server.
pub struct Etcd {
    grpc: tonic::client::Grpc<Wire>,
    /// Goes with every call.
    pub token: Option<String>,
}

impl Etcd {
    /// Over a connection of its own, which has to come about.
    pub async fn of(node: SocketAddr) -> Self {
        let stream = TcpStream::connect(node).await.expect("it listens");
        let (wire, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        // Ends with the server, or with the client.
        tokio::spawn(connection);
        let origin = format!("http://{node}").parse().expect("an address");
        let grpc = tonic::client::Grpc::with_origin(Wire(wire), origin).max_decoding_message_size(ANSWER_BYTES_MAX);
        Self { grpc, token: None }
    }

    /// One request, one answer.
    pub async fn call<Q: Message, A: Message + Default>(
        &mut self,
        path: &'static str,
        request: Q,
    ) -> Result<A, Status> {
        decoded(self.call_raw(path, request.encode_to_vec()).await?)
    }

    /// The same of encoded messages.
    pub async fn call_raw(&mut self, path: &'static str, request: Vec<u8>) -> Result<Bytes, Status> {
        self.ready().await?;
        let request = self.with_token(request);
        Ok(self.grpc.unary(request, http::uri::PathAndQuery::from_static(path), Raw).await?.into_inner())
    }

    /// Any number of requests, any number of answers.
    pub async fn exchange<Q, A>(&mut self, path: &'static str) -> (mpsc::UnboundedSender<Q>, Answers<A>)
    where
        Q: Message + Send + 'static,
        A: Message + Default + Send + 'static,
    {
        let (asking, asked) = mpsc::unbounded::<Q>();
        let answers = self.exchange_raw(path, asked.map(|request| request.encode_to_vec())).await.expect("a stream");
        (asking, answers.map(|answer| decoded(answer?)).boxed())
    }

    /// The same of encoded messages.
    pub async fn exchange_raw<S>(&mut self, path: &'static str, requests: S) -> Result<Answers<Bytes>, Status>
    where
        S: Stream<Item = Vec<u8>> + Send + 'static,
    {
        self.ready().await?;
        let request = self.with_token(requests);
        let answers = self.grpc.streaming(request, http::uri::PathAndQuery::from_static(path), Raw).await?;
        Ok(answers.into_inner().boxed())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }

    fn with_token<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.parse().expect("ASCII"));
        }
        request
    }
}

fn decoded<A: Message + Default>(message: Bytes) -> Result<A, Status> {
    A::decode(message).map_err(|error| Status::internal(error.to_string()))
}

/// A request of HTTP.
pub struct HttpRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its path.
    pub path: &'a str,
    /// What goes with it.
    pub headers: Vec<(&'a str, String)>,
    /// Its body, as it goes over the wire.
    pub body: String,
}

/// The answer to a request of HTTP.
pub struct HttpAnswer {
    /// Its status.
    pub status: u16,
    /// What its body is said to be.
    pub content_type: String,
    body: Incoming,
    // Of a body that comes in pieces.
    buffered: Vec<u8>,
}

impl HttpAnswer {
    /// All of the body.
    pub async fn text(self) -> String {
        match self.body.collect().await {
            Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            Err(error) => format!("the body breaks off: {error}"),
        }
    }

    /// The next line of a body that has no end; `None` at its end.
    pub async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffered.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.buffered.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffered.extend(frame.into_data().unwrap_or_default()),
                _ if self.buffered.is_empty() => return None,
                _ => self.buffered.push(b'\n'),
            }
        }
    }
}

/// Sends a request over a connection of its own.
pub async fn http(node: SocketAddr, request: HttpRequest<'_>) -> Result<HttpAnswer, String> {
    let stream = TcpStream::connect(node).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // Ends with the answer.
    tokio::spawn(connection);
    let mut built = http::Request::builder().method(request.method).uri(request.path).header("host", node.to_string());
    for (name, value) in request.headers {
        built = built.header(name, value);
    }
    let built = built.body(Full::new(Bytes::from(request.body))).map_err(|error| error.to_string())?;
    let answer = sender.send_request(built).await.map_err(|error| error.to_string())?;
    let content_type = answer.headers().get("content-type").map_or("", |value| value.to_str().unwrap_or("not text"));
    Ok(HttpAnswer {
        status: answer.status().as_u16(),
        content_type: content_type.to_owned(),
        body: answer.into_body(),
        buffered: Vec::new(),
    })
}
