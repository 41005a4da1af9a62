//! One client for every protocol.
//!
//! Owns a connection, and reads answers of all protocols into one form. Never repeats a request, and never interprets one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::HeaderMap;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::abuse::attacks::connect;
use crate::abuse::way::Way;
use cluster_harness::http::{Answer, Connection, Request};

/// Codes of gRPC for what a client asks elsewhere or later.
const DEADLINE_EXCEEDED: u16 = 4;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNAVAILABLE: u16 = 14;
/// The code of gRPC for a fault of the server.
const INTERNAL: u16 = 13;
/// An answer over gRPC that says no code.
const UNKNOWN: u16 = 2;
/// The first bytes of an answer that are searched for a fault.
const LOOKED_AT: usize = 4_096;

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Told {
    /// The status of HTTP.
    pub status: u16,
    /// The code of gRPC, over gRPC.
    pub code: Option<u16>,
    /// The term, where the answer names it.
    pub term: Option<u64>,
    /// The whole body.
    pub body: Bytes,
}

impl Told {
    /// Tells whether the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status) && self.code.is_none_or(|code| code == 0)
    }

    /// Tells whether a client asks another node then, or this one later.
    pub fn is_refusal(&self) -> bool {
        matches!(self.status, 429 | 500..)
            || matches!(self.code, Some(DEADLINE_EXCEEDED | RESOURCE_EXHAUSTED | INTERNAL | UNAVAILABLE))
    }

    /// Tells whether the node reports a fault of its own.
    pub fn is_internal(&self) -> bool {
        const SAID: &[u8] = b"\"code\":\"internal\"";
        let beginning = &self.body[..self.body.len().min(LOOKED_AT)];
        let is_said = || beginning.windows(SAID.len()).any(|part| part == SAID);
        self.code == Some(INTERNAL) || self.is_status_of_fault() || is_said()
    }

    /// The JSON gateway has this status for other codes, too, which it names by their numbers.
    fn is_status_of_fault(&self) -> bool {
        let code = || serde_json::from_slice::<Value>(&self.body).unwrap_or_default()["code"].as_u64();
        self.status == 500 && code().is_none_or(|code| code == u64::from(INTERNAL))
    }
}

impl From<Answer> for Told {
    fn from(answer: Answer) -> Self {
        let term = answer.header("quorate-term").and_then(|term| term.parse().ok());
        Self { status: answer.status, code: None, term, body: answer.body.into() }
    }
}

enum Wire {
    Plain(Connection),
    Framed {
        sender: SendRequest<Full<Bytes>>,
        /// Drives the connection; dropping it ends it.
        _driver: JoinSet<()>,
    },
}

/// A connection of a client.
pub struct Asker(Wire);

impl Asker {
    /// Connects from this address of the machine.
    pub async fn open(way: Way, from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        if !way.is_framed() {
            return Ok(Self(Wire::Plain(Connection::open_from(from, to).await?)));
        }
        let stream = connect(from, to).await?;
        stream.set_nodelay(true)?;
        let shaken = http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(io::Error::other)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The requests on it learn why it ended.
            let _ended = connection.await;
        });
        Ok(Self(Wire::Framed { sender, _driver: driver }))
    }

    /// Sends a request and reads its answer to the end.
    pub async fn ask(&mut self, request: &Request) -> io::Result<Told> {
        match &mut self.0 {
            Wire::Plain(connection) => connection.exchange(request).await.map(Told::from),
            Wire::Framed { sender, .. } => ask_framed(sender.clone(), request).await,
        }
    }

    /// Sends a request several times at once. Returns the answers, or an error if none came.
    pub async fn ask_at_once(&mut self, request: &Request, times: usize) -> io::Result<Vec<Told>> {
        match &mut self.0 {
            Wire::Plain(connection) if times == 1 => Ok(vec![Told::from(connection.exchange(request).await?)]),
            Wire::Plain(connection) => {
                let sent = connection.send(&request.to_bytes().repeat(times)).await;
                let mut told = Vec::new();
                for _ in 0..times {
                    match connection.answer(false).await {
                        Ok(answer) => told.push(Told::from(answer)),
                        Err(error) if told.is_empty() => return sent.and(Err(error)),
                        Err(_) => break,
                    }
                }
                Ok(told)
            }
            Wire::Framed { sender, .. } => {
                let asked = join_all((0..times).map(|_| ask_framed(sender.clone(), request))).await;
                let (told, failed): (Vec<_>, Vec<_>) = asked.into_iter().partition(Result::is_ok);
                match failed.into_iter().next() {
                    Some(Err(error)) if told.is_empty() => Err(error),
                    _ => told.into_iter().collect(),
                }
            }
        }
    }
}

async fn ask_framed(mut sender: SendRequest<Full<Bytes>>, request: &Request) -> io::Result<Told> {
    sender.ready().await.map_err(io::Error::other)?;
    let mut built = hyper::Request::builder().method(request.method).uri(format!("http://localhost{}", request.target));
    for (name, value) in &request.headers {
        built = built.header(name.as_str(), value.as_str());
    }
    let body = Full::new(Bytes::from(request.body.clone().unwrap_or_default()));
    let built = built.body(body).map_err(io::Error::other)?;
    let (head, body) = sender.send_request(built).await.map_err(io::Error::other)?.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?;
    let is_grpc = request.headers.iter().any(|(_, value)| value == "application/grpc");
    let said = || body.trailers().and_then(|trailers| number(trailers, "grpc-status"));
    let code = is_grpc.then(|| number(&head.headers, "grpc-status").or_else(said).unwrap_or(UNKNOWN));
    let term = number(&head.headers, "quorate-term");
    Ok(Told { status: head.status.as_u16(), code, term, body: body.to_bytes() })
}

fn number<T: std::str::FromStr>(fields: &HeaderMap, name: &str) -> Option<T> {
    fields.get(name)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_in_each_protocol_in_its_own_way() {
        let told = |status, code, body: &'static str| Told { status, code, term: None, body: body.into() };
        assert!(told(500, None, r#"{"code":"internal","status":500}"#).is_internal());
        assert!(told(200, None, r#"{"results":[{"code":"internal"}]}"#).is_internal());
        assert!(told(500, None, r#"{"code":13,"message":"x"}"#).is_internal());
        assert!(told(200, Some(13), "").is_internal());
        assert!(!told(500, None, r#"{"code":2,"message":"x"}"#).is_internal());
        assert!(!told(503, None, r#"{"code":"not_leader"}"#).is_internal());
        assert!(!told(200, Some(5), "").is_internal());
    }
}
