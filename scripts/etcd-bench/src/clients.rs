//! Clients, each with one call in flight, that share a connection.
//!
//! Owns what they ask, whether the answer is the right one, and how long it took.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use quorate_etcd_api::Message;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, PutRequest, PutResponse, RangeRequest,
    RangeResponse, RequestOp, RequestOpRequest, ResponseOpResponse, TxnRequest, TxnResponse,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::http2::Connection;
use crate::{Failure, Outcome, Window};

const PUT: &str = "/etcdserverpb.KV/Put";
const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";

/// What a client does, over and over.
pub enum Work {
    /// Overwrites a random key.
    Put,
    /// Reads a random key, linearizably.
    Get,
    /// Replaces its own key on the revision that it knows; learns the true one from a refusal.
    Cas { key: String, revision: i64 },
    /// Writes its part of all keys once.
    Fill { next: usize, step: usize },
}

/// One client.
pub struct Client {
    work: Work,
    random: StdRng,
    value: Bytes,
    keys: usize,
}

fn key(number: usize) -> Bytes {
    format!("bench/{number:08}").into()
}

fn put(key: Bytes, value: Bytes) -> PutRequest {
    PutRequest { key, value, ..PutRequest::default() }
}

fn get(key: Bytes) -> RangeRequest {
    RangeRequest { key, ..RangeRequest::default() }
}

impl Client {
    /// The client of this number.
    pub fn new(number: usize, work: Work, value_size: usize, keys: usize) -> Self {
        Self { work, random: StdRng::seed_from_u64(number as u64), value: vec![b'x'; value_size].into(), keys }
    }

    /// Its next call: path and message; nothing where it is done.
    fn next(&mut self) -> Option<(&'static str, Vec<u8>)> {
        let drawn = self.random.random_range(0..self.keys);
        Some(match &mut self.work {
            Work::Put => (PUT, put(key(drawn), self.value.clone()).encode_to_vec()),
            Work::Get => (RANGE, get(key(drawn)).encode_to_vec()),
            Work::Cas { key, revision } => {
                (TXN, swap(key.clone().into(), *revision, self.value.clone()).encode_to_vec())
            }
            Work::Fill { next, step } => {
                let number = std::mem::replace(next, *next + *step);
                if number >= self.keys {
                    return None;
                }
                (PUT, put(key(number), self.value.clone()).encode_to_vec())
            }
        })
    }

    /// Looks at the answer; `false` for a compare-and-swap that was refused.
    fn take(&mut self, answer: Bytes) -> Result<bool, Failure> {
        match &mut self.work {
            Work::Put | Work::Fill { .. } => {
                PutResponse::decode(answer)?.header.ok_or("a put was answered without a revision")?;
                Ok(true)
            }
            Work::Get => match RangeResponse::decode(answer)?.kvs.len() {
                1 => Ok(true),
                found => Err(format!("a get of a key that was written found {found} entries").into()),
            },
            Work::Cas { revision, .. } => {
                let answer = TxnResponse::decode(answer)?;
                *revision = match (answer.succeeded, answer.responses.first().and_then(|first| first.response.as_ref()))
                {
                    (true, _) => answer.header.ok_or("a transaction was answered without a revision")?.revision,
                    (false, Some(ResponseOpResponse::ResponseRange(found))) => {
                        found.kvs.first().map_or(0, |entry| entry.mod_revision)
                    }
                    (false, _) => return Err("a transaction that was refused was answered without its entry".into()),
                };
                Ok(answer.succeeded)
            }
        }
    }
}

/// Replaces an entry where its last revision is this one, and reads it where it is not.
fn swap(key: Bytes, revision: i64, value: Bytes) -> TxnRequest {
    let expected = Compare {
        result: CompareCompareResult::Equal as i32,
        target: CompareCompareTarget::Mod as i32,
        key: key.clone(),
        target_union: Some(CompareTargetUnion::ModRevision(revision)),
        ..Compare::default()
    };
    let op = |request| RequestOp { request: Some(request) };
    TxnRequest {
        compare: vec![expected],
        success: vec![op(RequestOpRequest::RequestPut(put(key.clone(), value)))],
        failure: vec![op(RequestOpRequest::RequestRange(get(key)))],
    }
}

/// Has these clients work until the window ends or there is nothing left to do.
pub async fn drive(
    mut connection: Connection,
    mut clients: Vec<Client>,
    window: Window,
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    // By stream: whose call it is, and when it was sent.
    let mut in_flight = HashMap::new();
    let mut idle: Vec<usize> = (0..clients.len()).collect();
    let mut answers = Vec::new();
    loop {
        let sent = Instant::now();
        if window.end.is_none_or(|end| sent < end) {
            for of in idle.drain(..) {
                if let Some((path, message)) = clients[of].next() {
                    in_flight.insert(connection.call(path, &message)?, (of, sent));
                }
            }
        }
        if in_flight.is_empty() {
            return Ok(outcome);
        }
        connection.flush().await?;
        connection.answers(&mut answers).await?;
        let now = Instant::now();
        for answer in answers.drain(..) {
            let (of, sent) = in_flight.remove(&answer.stream).ok_or("an answer to no call")?;
            let is_done = clients[of].take(answer.message)?;
            idle.push(of);
            if window.begin.is_some_and(|begin| sent < begin) {
                continue;
            }
            match is_done {
                true => outcome.micros.saturating_record((now - sent).as_micros().max(1) as u64),
                false => outcome.mismatches += 1,
            }
        }
    }
}
