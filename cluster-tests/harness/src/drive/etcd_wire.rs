//! Operations of histories as calls of etcd's JSON gateway, and their answers.
//!
//! Owns for clients of etcd what `wire` owns for those of HTTP: what an answer makes of an operation. What a write rests on is
//! compared in a transaction, and what etcd answers where that does not hold is told as the refusal that it is. Never sends anything.

use bytes::Bytes;
use quorate_client::api::ErrorCode;
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, DeleteRangeRequest, PutRequest,
    RangeRequest, RangeResponse, RequestOp, RequestOpRequest, ResponseOp, ResponseOpResponse, TxnRequest, TxnResponse,
};
use quorate_etcd_api::{Code, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{Answer, Request};
use cluster_histories::model::is_found;
use cluster_histories::operation::{Change, Check, Operation, Step, Txn, Write};
use cluster_histories::record::{Decided, Entry, Outcome, Refused, Seen, StepSeen, TxnSeen, Written};

/// How an operation is asked for. Panics where etcd has nothing like it.
pub fn request_of(operation: &Operation) -> Request {
    match operation {
        Operation::Get { key } => range(range_of_key(key)),
        Operation::Local { key, min_revision: None } => range(RangeRequest { serializable: true, ..range_of_key(key) }),
        // A client of etcd looks through what it has read.
        Operation::List { prefix } | Operation::Find { prefix, .. } => {
            range(RangeRequest { key: bytes(prefix), range_end: behind(prefix), ..RangeRequest::default() })
        }
        Operation::Write(write) => txn(TxnRequest {
            compare: basis_of(write).into_iter().collect(),
            success: vec![change_of(write)],
            failure: vec![read_of(&write.key)],
        }),
        Operation::Txn(Txn { checks, then, otherwise }) => {
            let steps = |steps: &[Step]| {
                let step = |step: &Step| match step {
                    Step::Get(key) => read_of(key),
                    Step::Write(write) => change_of(write),
                };
                steps.iter().map(step).collect()
            };
            let check = |Check { key, cas }: &Check| mod_revision_is(key, cas.unwrap_or(0));
            txn(TxnRequest {
                compare: checks.iter().map(check).collect(),
                success: steps(then),
                failure: steps(otherwise),
            })
        }
        other => panic!("etcd has no {other}"),
    }
}

fn range(request: RangeRequest) -> Request {
    post("/v3/kv/range", &request)
}

fn txn(request: TxnRequest) -> Request {
    post("/v3/kv/txn", &request)
}

fn post(route: &str, message: &impl Serialize) -> Request {
    Request::post(route, serde_json::to_string(message).expect("a message can be written"))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The end of the range of all keys that begin so; they are ASCII, so the last byte has a next one.
fn behind(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().expect("a prefix") += 1;
    end.into()
}

fn range_of_key(key: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), ..RangeRequest::default() }
}

fn op(request: RequestOpRequest) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn read_of(key: &str) -> RequestOp {
    op(RequestOpRequest::RequestRange(range_of_key(key)))
}

/// The write alone. What was there before is asked for, because it says which version this is.
fn change_of(write: &Write) -> RequestOp {
    let key = bytes(&write.key);
    op(match write.change.value() {
        Some(value) => RequestOpRequest::RequestPut(PutRequest {
            key,
            value: value.to_string().into(),
            prev_kv: true,
            ..PutRequest::default()
        }),
        None if write.change == Change::Remove => {
            RequestOpRequest::RequestDeleteRange(DeleteRangeRequest { key, ..DeleteRangeRequest::default() })
        }
        None => panic!("etcd has no {write:?}"),
    })
}

/// What the write rests on, if on anything.
fn basis_of(write: &Write) -> Option<Compare> {
    let created = |result: CompareCompareResult| Compare {
        result: result.into(),
        target: CompareCompareTarget::Create.into(),
        key: bytes(&write.key),
        target_union: Some(CompareTargetUnion::CreateRevision(0)),
        ..Compare::default()
    };
    match (&write.change, write.cas) {
        (_, Some(cas)) => Some(mod_revision_is(&write.key, cas)),
        (Change::Insert(_), None) => Some(created(CompareCompareResult::Equal)),
        (Change::Replace(_), None) => Some(created(CompareCompareResult::Greater)),
        _ => None,
    }
}

fn mod_revision_is(key: &str, revision: u64) -> Compare {
    Compare {
        target: CompareCompareTarget::Mod.into(),
        key: bytes(key),
        target_union: Some(CompareTargetUnion::ModRevision(revision as i64)),
        ..Compare::default()
    }
}

/// What an answer makes of an operation.
pub fn outcome_of(operation: &Operation, answer: &Answer) -> Outcome {
    if !answer.is_success() {
        return failed(answer);
    }
    match decided(operation, answer) {
        Ok(decided) => Outcome::Decided(decided),
        Err(fault) => Outcome::Absurd(format!("{fault}: {}", answer.text())),
    }
}

/// An error as the gateway writes it.
#[derive(Deserialize)]
struct Failure {
    code: i32,
    message: String,
}

/// A client of etcd knows that nothing was done only where there was no leader to do it, or too much to do.
fn failed(answer: &Answer) -> Outcome {
    let absurd = |why: &str| Outcome::Absurd(format!("{why}: status {}, {}", answer.status, answer.text()));
    let failure: Failure = match serde_json::from_slice(&answer.body) {
        Ok(failure) => failure,
        Err(error) => return absurd(&error.to_string()),
    };
    let is = |error: Error| failure.message == error.text();
    if is(Error::NoLeader) || is(Error::RequestTooManyRequests) {
        return Outcome::Failed(failure.message);
    }
    match failure.code {
        code if code == Code::Unavailable as i32 || code == Code::DeadlineExceeded as i32 => {
            Outcome::Unknown(failure.message)
        }
        _ => absurd("none of our calls should be told so"),
    }
}

type Fault = String;

fn read<T: for<'de> Deserialize<'de>>(answer: &Answer) -> Result<T, Fault> {
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}

fn revision_of(header: Option<ResponseHeader>) -> Result<u64, Fault> {
    Ok(header.ok_or("no header")?.revision as u64)
}

/// etcd tells no place in the log: the revision stands for it.
fn decided(operation: &Operation, answer: &Answer) -> Result<Decided, Fault> {
    let at = |revision, seen| Ok(Decided { revision, index: revision, replayed: false, seen });
    match operation {
        Operation::Write(write) => {
            let told: TxnResponse = read(answer)?;
            let revision = revision_of(told.header)?;
            let [response] = <[ResponseOp; 1]>::try_from(told.responses).map_err(|_| "not one response")?;
            at(revision, seen_of_write(write, told.succeeded, response, revision)?)
        }
        Operation::Txn(asked) => {
            let told: TxnResponse = read(answer)?;
            let revision = revision_of(told.header)?;
            let steps = told.responses.into_iter().map(|response| step_of(response, revision));
            let steps = steps.collect::<Result<Vec<_>, _>>()?;
            if steps.len() != asked.branch(told.succeeded).len() {
                return Err("not a response for each step".into());
            }
            at(revision, Seen::Txn(TxnSeen { succeeded: told.succeeded, steps }))
        }
        _ => {
            let RangeResponse { header, kvs, more, .. } = read(answer)?;
            if more {
                return Err("there is more than was asked for".into());
            }
            let entries = kvs.into_iter().map(entry_of).collect::<Result<Vec<_>, _>>()?;
            let seen = match operation {
                Operation::List { .. } => Seen::Entries(entries),
                Operation::Find { at_least, .. } => {
                    Seen::Entries(entries.into_iter().filter(|entry| is_found(entry, *at_least)).collect())
                }
                _ => Seen::Entry(entries.into_iter().next()),
            };
            at(revision_of(header)?, seen)
        }
    }
}

fn seen_of_write(write: &Write, succeeded: bool, response: ResponseOp, revision: u64) -> Result<Seen, Fault> {
    let refused =
        |code: ErrorCode, current| Seen::Refused(Refused { code: quorate_client::api::code_name(code), current });
    if let Some(ResponseOpResponse::ResponseDeleteRange(told)) = &response.response
        && told.deleted == 0
    {
        return Ok(refused(ErrorCode::NotFound, None));
    }
    match (succeeded, step_of(response, revision)?) {
        (true, StepSeen::Written(written)) => Ok(Seen::Written(written)),
        (false, StepSeen::Entry(current)) => {
            let code = match (&write.change, &current) {
                (Change::Insert(_), _) => ErrorCode::AlreadyExists,
                (Change::Replace(_) | Change::Remove, None) => ErrorCode::NotFound,
                _ => ErrorCode::CasMismatch,
            };
            Ok(refused(code, current))
        }
        _ => Err("a response of the other branch".into()),
    }
}

fn step_of(response: ResponseOp, revision: u64) -> Result<StepSeen, Fault> {
    match response.response {
        Some(ResponseOpResponse::ResponseRange(told)) => {
            Ok(StepSeen::Entry(told.kvs.into_iter().next().map(entry_of).transpose()?))
        }
        Some(ResponseOpResponse::ResponsePut(told)) => {
            let before = told.prev_kv.unwrap_or_default();
            let create_revision = if before.version == 0 { revision } else { before.create_revision as u64 };
            Ok(StepSeen::Written(Written {
                cas: Some(revision),
                create_revision: Some(create_revision),
                version: Some(before.version as u64 + 1),
            }))
        }
        Some(ResponseOpResponse::ResponseDeleteRange(_)) => Ok(StepSeen::Written(Written::default())),
        _ => Err("a response of another kind".into()),
    }
}

fn entry_of(kv: KeyValue) -> Result<Entry, Fault> {
    let key = String::from_utf8(kv.key.to_vec()).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&kv.value).map_err(|error| error.to_string())?;
    let mod_revision = kv.mod_revision as u64;
    let create_revision = kv.create_revision as u64;
    Ok(Entry { key, value, cas: Some(mod_revision), create_revision, mod_revision, version: kv.version as u64 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(operation: &Operation, status: u16, body: &Value) -> Outcome {
        outcome_of(operation, &Answer { status, headers: Vec::new(), body: body.to_string().into_bytes() })
    }

    fn seen(outcome: Outcome) -> Seen {
        match outcome {
            Outcome::Decided(decided) => decided.seen,
            other => panic!("it is decided, not {other:?}"),
        }
    }

    #[test]
    fn a_comparison_that_does_not_hold_is_a_refusal() {
        let kv = json!({"key": "aw==", "value": "Nw==", "create_revision": "3", "mod_revision": "5", "version": "2"});
        let found = |kvs: Value| {
            let range = json!({"response_range": {"header": {"revision": "9"}, "kvs": kvs}});
            json!({"header": {"revision": "9"}, "responses": [range]})
        };
        let code = |write: Write, kvs: Value| match seen(told(&Operation::Write(write), 200, &found(kvs))) {
            Seen::Refused(refused) => (refused.code, refused.current.map(|entry| entry.mod_revision)),
            other => panic!("it is refused, not {other:?}"),
        };
        let put = |cas| Write::put("k", 1).cas(cas);
        assert_eq!(code(put(4), json!([kv])), ("cas_mismatch".into(), Some(5)));
        assert_eq!(code(put(4), json!([])), ("cas_mismatch".into(), None));
        assert_eq!(code(Write::insert("k", 1), json!([kv])), ("already_exists".into(), Some(5)));
        assert_eq!(code(Write::new("k", Change::Replace(json!(1))), json!([])), ("not_found".into(), None));
    }

    #[test]
    fn what_was_there_before_says_which_version_was_written() {
        let body = json!({"header": {"revision": "9"}, "succeeded": true, "responses": [
            {"response_put": {"prev_kv": {"key": "aw==", "create_revision": "3", "mod_revision": "5", "version": "2"}}},
        ]});
        let written = Written { cas: Some(9), create_revision: Some(3), version: Some(3) };
        assert_eq!(seen(told(&Operation::Write(Write::put("k", 1)), 200, &body)), Seen::Written(written));
    }

    #[test]
    fn only_what_certainly_was_not_done_counts_as_that() {
        let kind = |code: i32, text: &str| {
            let body = json!({"code": code, "message": text, "error": text});
            match told(&Operation::Write(Write::put("k", 1)), 503, &body) {
                Outcome::Failed(_) => "failed",
                Outcome::Unknown(_) => "unknown",
                Outcome::Absurd(_) => "absurd",
                Outcome::Decided(_) => "decided",
            }
        };
        assert_eq!(kind(14, "etcdserver: no leader"), "failed");
        assert_eq!(kind(14, "etcdserver: request timed out"), "unknown");
        assert_eq!(kind(14, "quorate: not ready"), "unknown");
        assert_eq!(kind(3, "etcdserver: key is not provided"), "absurd");
    }
}
