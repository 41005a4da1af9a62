//! Quorate's HTTP API.
//!
//! Owns how it is asked and what it answers. Never gives a write an id: the node does where the client does not. Values go raw where one
//! is sent or read alone, and in base64 where several are, so that the entries are the same by any protocol.

use std::ops::Range;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::Failure;
use crate::args::Args;
use crate::http1::{Answer, Connection, Request};
use crate::own::Dialect;
use crate::work::{Ask, FOUND, LOCK_NAME, RANGE, Reply, key, own_key};

const JSON: &str = "Content-Type: application/json\r\n";
/// A day: who waits keeps its place in the queue, however often it has to ask.
const WAIT_MS: u64 = 86_400_000;
/// A prime beyond any number of documents: times it, numbers stay apart and lose their order, so that a find is not a range of keys.
const SCATTER: usize = 2_147_483_647;

/// The API, with what is written.
pub struct Http {
    value: Bytes,
    base64: String,
    /// What documents have beside the field of the index.
    filler: String,
    documents: usize,
}

impl Http {
    pub fn new(args: &Args, value: Bytes) -> Self {
        let filler = "x".repeat(args.value_size.saturating_sub(r#"{"n":10000,"x":""}"#.len()));
        Self { base64: STANDARD.encode(&value), value, filler, documents: args.keys }
    }

    /// Documents of another number have other places in the index, so they are in another collection.
    fn collection(&self) -> String {
        format!("bench-{}", self.documents)
    }

    /// Declares the collection of documents.
    pub async fn declare(&self, endpoint: &str) -> Result<(), Failure> {
        let path = format!("/v1/collections/{}", self.collection());
        let body = Bytes::from_static(br#"{"indexes":[["n"]]}"#);
        let mut connection = Connection::open(endpoint).await?;
        let answer = connection.call(&Request { method: "PUT", path, fields: JSON.to_owned(), body }).await?;
        if is_success(&answer) { Ok(()) } else { Err(answer.unexpected()) }
    }

    /// Waits until the index of the documents is built.
    pub async fn wait_for_index(&self, endpoint: &str) -> Result<(), Failure> {
        let request = get(format!("/v1/collections/{}", self.collection()));
        let mut connection = Connection::open(endpoint).await?;
        loop {
            match json(&connection.call(&request).await?)?["indexes"][0]["state"].as_str() {
                Some("ready") => return Ok(()),
                Some("building") => tokio::time::sleep(Duration::from_millis(50)).await,
                other => return Err(format!("the state of the index of documents is {other:?}").into()),
            }
        }
    }

    fn put(&self, key: &str, condition: &str) -> Request {
        let fields = format!("Content-Type: application/octet-stream\r\n{condition}");
        Request { method: "PUT", path: format!("/v1/kv/{key}"), fields, body: self.value.clone() }
    }

    fn writes(&self, numbers: &[usize]) -> String {
        let op = |&number| format!(r#"{{"op":"upsert","key":"{}","value_base64":"{}"}}"#, key(number), self.base64);
        numbers.iter().map(op).collect::<Vec<_>>().join(",")
    }

    fn document_writes(&self, numbers: Range<usize>) -> String {
        let op = |number| {
            let (n, collection) = (number * SCATTER % self.documents, self.collection());
            let document = format!(r#"{{"n":{n},"x":"{}"}}"#, self.filler);
            format!(r#"{{"op":"upsert","key":"{collection}/{number:08}","value":{document}}}"#)
        };
        numbers.map(op).collect::<Vec<_>>().join(",")
    }

    fn find(&self, first: usize) -> String {
        let prefix = format!("{}/", self.collection());
        let place = format!(r#"{{"field":"n","op":"gte","value":{first}}}"#);
        format!(r#"{{"prefix":"{prefix}","where":[{place}],"order_by":["n"],"limit":{FOUND}}}"#)
    }
}

impl Dialect for Http {
    fn request(&self, ask: &Ask) -> Result<Request, Failure> {
        Ok(match ask {
            Ask::Put(number) => self.put(&key(*number), ""),
            Ask::Get(number) => get(format!("/v1/kv/{}?raw", key(*number))),
            Ask::Swap(client, 0) => self.put(&own_key(*client), "If-None-Match: *\r\n"),
            Ask::Swap(client, token) => self.put(&own_key(*client), &format!("If-Match: \"{token}\"\r\n")),
            Ask::Txn(numbers) => post("/v1/txn", format!(r#"{{"then":[{}]}}"#, self.writes(numbers))),
            Ask::Range(first) => get(format!("/v1/kv?start={}&end={}&limit={RANGE}", key(*first), key(first + RANGE))),
            Ask::Bulk(numbers) => bulk(&self.writes(numbers)),
            Ask::Documents(numbers) => bulk(&self.document_writes(numbers.clone())),
            Ask::Find(first) => post("/v1/find", self.find(*first)),
            Ask::Open(seconds) => post("/v1/sessions", format!(r#"{{"ttl_ms":{}}}"#, 1000 * seconds)),
            Ask::End(session) => {
                Request { method: "DELETE", path: format!("/v1/sessions/{session}"), ..Request::default() }
            }
            Ask::Lock(session) => post(&lock("acquire"), format!(r#"{{"session":"{session}","wait_ms":{WAIT_MS}}}"#)),
            Ask::Unlock(token) => {
                post(&lock("release"), format!(r#"{{"token":"{}"}}"#, String::from_utf8_lossy(token)))
            }
        })
    }

    fn reply(&self, ask: &Ask, answer: &Answer<'_>) -> Result<Reply, Failure> {
        if let (Ask::Swap(..), 412) = (ask, answer.status) {
            let current = number(&serde_json::from_slice::<Value>(answer.body)?["current"]["cas"]);
            return Ok(Reply::Swapped(false, current.unwrap_or(0)));
        }
        if !is_success(answer) {
            return Err(answer.unexpected());
        }
        let reply = match ask {
            Ask::Swap(..) => answer.tag.map(|token| Reply::Swapped(true, token)),
            Ask::Get(_) => Some(Reply::Entries(1, answer.body.len())),
            Ask::Range(_) => Some(entries(answer.body)?),
            Ask::Find(_) => found(answer.body)?,
            Ask::Bulk(numbers) => done(applied(answer)? == numbers.len()),
            Ask::Documents(numbers) => done(applied(answer)? == numbers.len()),
            Ask::Txn(_) => done(json(answer)?["succeeded"] == true),
            Ask::Open(_) => number(&json(answer)?["session"]).map(Reply::Session),
            Ask::Lock(_) => held(&json(answer)?),
            Ask::Unlock(_) => done(json(answer)?["released"] == true),
            Ask::Put(_) | Ask::End(_) => Some(Reply::Done),
        };
        reply.ok_or_else(|| answer.unexpected())
    }

    fn status(&self) -> Request {
        get("/v1/cluster/status".to_owned())
    }

    fn is_leader(&self, answer: &Answer<'_>) -> Result<bool, Failure> {
        Ok(json(answer)?["role"] == "leader")
    }
}

fn get(path: String) -> Request {
    Request { method: "GET", path, ..Request::default() }
}

fn post(path: &str, body: String) -> Request {
    Request { method: "POST", path: path.to_owned(), fields: JSON.to_owned(), body: body.into() }
}

fn lock(what: &str) -> String {
    format!("/v1/locks/{LOCK_NAME}/{what}")
}

/// Only what was refused is answered by itself.
fn bulk(ops: &str) -> Request {
    let fields = format!("{JSON}Prefer: return=minimal\r\n");
    Request { fields, ..post("/v1/bulk", format!(r#"{{"ops":[{ops}]}}"#)) }
}

fn is_success(answer: &Answer<'_>) -> bool {
    (200..300).contains(&answer.status)
}

fn json(answer: &Answer<'_>) -> Result<Value, Failure> {
    if is_success(answer) { Ok(serde_json::from_slice(answer.body)?) } else { Err(answer.unexpected()) }
}

/// Numbers of 64 bits are text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// How many of a bulk took effect.
fn applied(answer: &Answer<'_>) -> Result<usize, Failure> {
    Ok(number(&json(answer)?["applied"]).unwrap_or(0) as usize)
}

fn done(is_done: bool) -> Option<Reply> {
    is_done.then_some(Reply::Done)
}

fn held(answer: &Value) -> Option<Reply> {
    match answer["state"].as_str()? {
        "held" => Some(Reply::Held(answer["token"].as_str()?.to_owned().into())),
        "waiting" => Some(Reply::Waiting),
        _ => None,
    }
}

fn entries(body: &[u8]) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Listed<'a> {
        #[serde(borrow)]
        entries: Vec<Entry<'a>>,
    }
    #[derive(Deserialize)]
    struct Entry<'a> {
        value_base64: &'a str,
    }
    let Listed { entries } = serde_json::from_slice(body)?;
    let bytes = entries.iter().map(|entry| entry.value_base64.trim_end_matches('=').len() * 3 / 4).sum();
    Ok(Reply::Entries(entries.len(), bytes))
}

/// What was not found by the index is not what was asked for.
fn found(body: &[u8]) -> Result<Option<Reply>, Failure> {
    #[derive(Deserialize)]
    struct Found {
        entries: Vec<Entry>,
        index_used: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Entry {
        value: Document,
    }
    #[derive(Deserialize)]
    struct Document {
        n: usize,
    }
    let Found { entries, index_used } = serde_json::from_slice(body)?;
    let places = entries.iter().map(|entry| entry.value.n).collect();
    Ok(index_used.map(|_| Reply::Documents(places)))
}
