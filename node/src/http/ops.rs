//! `POST /v1/ops`: one operation in JSON. A stream of them is `stream`'s.
//!
//! Owns the reading of an `Op` with a pointer to every fault, and which fields each kind takes. The names are those of
//! `quorate_client::api::Op`, which a test holds this file to.

use std::borrow::Cow;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Incoming;
use quorate_client::api::{AnswerLine, Op, OpKind, OpLine, Problem};
use quorate_store::document::Criteria;
use quorate_store::limits::{KEY_BYTES_MAX, LOCK_MS_DEFAULT, LOCK_MS_MAX, TTL_MS_MAX, VALUE_BYTES_MAX};
use quorate_store::types::{Change, ContentKind, Expect, Expiry, Value, WriteOp};
use serde_json::value::RawValue;

use super::ask::Ask;
use super::done::Done;
use super::error::Failure;
use super::extract::{Faults, Query};
use super::headers::{BodyKind, body_kind, decimal, request_id_fault};
use super::json::JsonFault;
use super::key::{self, NamedKey};
use super::openapi::{Common, Conditional, OpAnswer};
use super::prefer::{self, Preferred};
use super::{Backend, Outcome, body, criteria, headers, json, kv, read, stream, write};

/// Executes one operation, or a stream of them.
///
/// `get` answers with the entry, everything else with what was written.
///
/// As `application/x-ndjson` the body is a stream: each line is an operation with a number `n` of the caller's choice, and is
/// answered by a line with that `n`, the status and the body that the operation alone would have been answered with. Answers
/// come as operations are done, in any order; a bad line is answered and the stream goes on. At most 1024 operations are
/// under way; then no more is read. The answer ends when the request has ended and everything is answered, when nothing was
/// asked for as long as a connection may be idle, and when the node stops. A line break in a value is answered as a blank.
#[utoipa::path(post, path = "/v1/ops", tag = "entries", operation_id = "op",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; the same as `request_id` in the body. Not with a stream."),
        ("Prefer" = Option<String>, Header, description = "As with PUT; for one operation that writes, not for a stream.", example = "return=representation"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds; for the lines of a stream that name none."),
    ),
    request_body(content(
        (Op = "application/json", example = json!({"op": "update", "key": "orders/o42", "patch": {"status": "paid"}, "cas": "17", "request_id": "order-42-pay"})),
        (OpLine = "application/x-ndjson", example = json!({"n": 1, "timeout_ms": 2000, "op": {"op": "get", "key": "orders/o42"}})),
    )),
    responses(
        (status = 200, description = "Done. A stream is always answered with 200: each line has its own status.", content(
            (OpAnswer = "application/json", example = json!({"key": "orders/o42", "revision": 21, "index": 33, "cas": "21", "create_revision": 17, "version": 2})),
            (AnswerLine = "application/x-ndjson", example = json!({"n": 1, "status": 200, "term": 3, "leader": 1, "answer": {"key": "orders/o42", "value": {"status": "paid"}, "content_type": "json", "cas": "21", "create_revision": 17, "mod_revision": 21, "version": 2, "revision": 21, "index": 34}})),
        )),
        (status = 204, description = "Done, with `Prefer: return=minimal`."),
        (status = 404, description = "`not_found`", body = Problem, content_type = "application/problem+json"),
        Conditional, Common,
    ))]
pub async fn post<B: Backend>(ask: &mut Ask<'_, B>, body: Incoming) -> Outcome {
    Query::parse(ask.head.uri.query()).finish("none")?;
    if headers::says_stream(ask.head) {
        return stream::open(ask, body).await;
    }
    let kind = body_kind(ask.head, "application/json")?;
    if matches!(kind, BodyKind::Bytes | BodyKind::MergePatch | BodyKind::JsonPatch) {
        return Err(headers::unsupported("an operation is JSON; send `Content-Type: application/json`"));
    }
    let body = body::collect(ask, body, usize::MAX).await?;
    let mut wish = OpWish::read(kv::json_of(kind, &body)?)?;
    ask.take_request_id(wish.request_id.take())?;
    // What lock answers with is the key, which the entry does not show.
    let preferred = Preferred::of(ask.head, &wish.key, wish.prev || wish.dry_run || wish.is_of_lock());
    let done = perform(&ask.api.backend, wish, &ask.request_id, ask.deadline).await?;
    Ok(prefer::answer(ask, done, preferred).await)
}

/// Executes a checked operation.
pub async fn perform<B: Backend>(
    backend: &B,
    wish: OpWish<'_>,
    request_id: &str,
    deadline: Instant,
) -> Result<Done, Failure> {
    let OpWish { key, action, prev, dry_run, .. } = wish;
    match action {
        OpAction::Get => read::perform(backend, &key, deadline).await,
        OpAction::Write { expect, condition, change, expiry } => {
            let op = WriteOp { key: key.key, expect, condition, change, expiry, return_previous: prev };
            write::perform(backend, &key.text, op, dry_run, request_id, deadline).await
        }
    }
}

/// A checked operation.
pub struct OpWish<'a> {
    key: NamedKey<'a>,
    action: OpAction,
    prev: bool,
    dry_run: bool,
    /// The caller's.
    pub request_id: Option<String>,
}

enum OpAction {
    Get,
    Write { expect: Expect, condition: Criteria, change: Change, expiry: Expiry },
}

/// The fields as they stand in the body, each of the right type, not yet held against the kind.
#[derive(Default)]
struct Fields<'a> {
    op: Option<OpKind>,
    key: Option<Cow<'a, str>>,
    value: Option<&'a RawValue>,
    value_base64: Option<Cow<'a, str>>,
    patch: Option<&'a RawValue>,
    cas: Option<u64>,
    condition: Option<&'a RawValue>,
    ttl_ms: Option<u64>,
    lock_ms: Option<u64>,
    prev: Option<bool>,
    dry_run: Option<bool>,
    request_id: Option<Cow<'a, str>>,
}

const FIELDS: &str = "op, key, value, value_base64, patch, cas, if, ttl_ms, lock_ms, prev, dry_run, request_id";

impl<'a> OpWish<'a> {
    /// Whether it may change something, and so needs a request id.
    pub fn writes(&self) -> bool {
        !matches!(self.action, OpAction::Get) && !self.dry_run
    }

    /// Whether it is about a lock.
    fn is_of_lock(&self) -> bool {
        matches!(&self.action, OpAction::Write { change, .. } if change.is_of_lock())
    }

    /// The same, without the text that it was read from.
    pub fn into_owned(self) -> OpWish<'static> {
        let Self { key, action, prev, dry_run, request_id } = self;
        OpWish { key: key.into_owned(), action, prev, dry_run, request_id }
    }

    /// Reads a body that is known to be strict JSON. Reports every fault, not only the first.
    pub fn read(text: &'a [u8]) -> Result<Self, Failure> {
        let fields =
            json::fields(text).map_err(|JsonFault { .. }| Failure::invalid("", "an operation is a JSON object"))?;
        let mut faults = Faults::default();
        let fields = Fields::read(fields, &mut faults);
        let kind = fields.op;
        if kind.is_none() && !faults.has("/op") {
            faults.add("/op", "missing; one of get, insert, upsert, replace, update, remove, touch, get_and_touch, lock, extend, unlock");
        }
        let key = fields.named_key(&mut faults)?;
        let action = kind.map(|kind| fields.action(kind, &mut faults)).transpose()?;
        let is_read = kind == Some(OpKind::GetAndTouch);
        let (prev, dry_run) = (is_read || fields.prev.unwrap_or(false), fields.dry_run.unwrap_or(false));
        let request_id = fields.request_id.map(Cow::into_owned);
        faults.check()?;
        match (key, action.flatten()) {
            (Some(key), Some(action)) => Ok(Self { key, action, prev, dry_run, request_id }),
            _ => Err(Failure::invalid("", "the operation is not complete")),
        }
    }
}

impl<'a> Fields<'a> {
    fn read(list: Vec<(Cow<'a, str>, &'a RawValue)>, faults: &mut Faults) -> Self {
        let mut fields = Self::default();
        for (name, raw) in list {
            fields.set(&name, raw, faults);
        }
        fields
    }

    fn set(&mut self, name: &str, raw: &'a RawValue, faults: &mut Faults) {
        match name {
            "op" => {
                self.op = typed(
                    raw,
                    "/op",
                    "one of get, insert, upsert, replace, update, remove, touch, get_and_touch, lock, extend, unlock",
                    faults,
                )
            }
            "key" => self.key = text(raw, "/key", faults),
            "value" => self.value = Some(raw),
            "value_base64" => self.value_base64 = text(raw, "/value_base64", faults),
            "patch" => self.patch = Some(raw),
            "cas" => self.cas = cas(raw, faults),
            "if" => self.condition = Some(raw),
            "ttl_ms" => self.ttl_ms = ttl(raw, faults),
            "lock_ms" => self.lock_ms = typed(raw, "/lock_ms", "a whole number of milliseconds", faults),
            "prev" => self.prev = typed(raw, "/prev", "true or false", faults),
            "dry_run" => self.dry_run = typed(raw, "/dry_run", "true or false", faults),
            "request_id" => self.request_id = request_id(raw, faults),
            other => faults.add_unknown(json::pointer(other), format!("no such field; there are: {FIELDS}")),
        }
    }

    fn named_key(&self, faults: &mut Faults) -> Result<Option<NamedKey<'a>>, Failure> {
        match &self.key {
            Some(key) if key.is_empty() => faults.add("/key", "a key has at least 1 byte, this one is empty"),
            Some(key) if key.len() > KEY_BYTES_MAX && !faults.is_empty() => {
                faults.add("/key", format!("a key may have at most {KEY_BYTES_MAX} bytes, it has {}", key.len()));
            }
            // Being too large has a code of its own, so it is told alone.
            Some(key) => return key::named(key.clone(), "/key").map(Some),
            None if faults.has("/key") => {}
            None => faults.add("/key", "missing; the key of the entry"),
        }
        Ok(None)
    }

    /// What the operation does. Every field that its kind does not take is a fault.
    fn action(&self, kind: OpKind, faults: &mut Faults) -> Result<Option<OpAction>, Failure> {
        self.refuse_strangers(kind, faults);
        let expect = self.cas.map_or(Expect::Any, Expect::Cas);
        let (change, usual) = match kind {
            OpKind::Get => return Ok(Some(OpAction::Get)),
            OpKind::Insert => (self.value(faults)?.map(Change::Insert), Expiry::Usual),
            OpKind::Upsert => (self.value(faults)?.map(Change::Upsert), Expiry::Usual),
            OpKind::Replace => (self.value(faults)?.map(Change::Replace), Expiry::Usual),
            OpKind::Update => (self.patch(faults)?, Expiry::Keep),
            OpKind::Remove => (Some(Change::Remove), Expiry::Keep),
            OpKind::Touch | OpKind::GetAndTouch => (Some(Change::Touch), Expiry::Keep),
            OpKind::Lock => (Some(Change::Lock(self.lock_time())), Expiry::Keep),
            OpKind::Extend => (Some(Change::Extend(self.lock_time())), Expiry::Keep),
            OpKind::Unlock => (Some(Change::Unlock), Expiry::Keep),
        };
        let takes_key = matches!(kind, OpKind::Extend | OpKind::Unlock);
        if takes_key && self.cas.is_none() && !faults.has("/cas") {
            faults.add("/cas", "missing; the cas that lock answered with");
        }
        if matches!(kind, OpKind::Touch | OpKind::GetAndTouch) && self.ttl_ms.is_none() && !faults.has("/ttl_ms") {
            faults.add("/ttl_ms", "missing; touch changes nothing else (0 for never)");
        }
        let expiry = self.ttl_ms.map_or(usual, kv::expiry_of);
        let condition = match self.condition {
            Some(list) => criteria::criteria(list.get().as_bytes(), "/if", faults),
            None => Some(Criteria::default()),
        };
        Ok(change.zip(condition).map(|(change, condition)| OpAction::Write { expect, condition, change, expiry }))
    }

    fn refuse_strangers(&self, kind: OpKind, faults: &mut Faults) {
        let writes_value = matches!(kind, OpKind::Insert | OpKind::Upsert | OpKind::Replace);
        let is_get = kind == OpKind::Get;
        let mut refuse = |given: bool, taken: bool, pointer: &str, why: &str| {
            if given && !taken {
                faults.add(pointer, why);
            }
        };
        refuse(self.value.is_some(), writes_value, "/value", "only insert, upsert and replace take a value");
        let base64 = self.value_base64.is_some();
        refuse(base64, writes_value, "/value_base64", "only insert, upsert and replace take a value");
        refuse(self.patch.is_some(), kind == OpKind::Update, "/patch", "only update takes a patch");
        let is_of_lock = matches!(kind, OpKind::Lock | OpKind::Extend | OpKind::Unlock);
        let takes_ttl = !is_get && kind != OpKind::Remove && !is_of_lock;
        refuse(self.ttl_ms.is_some(), takes_ttl, "/ttl_ms", "get, remove and locks take no ttl_ms");
        let takes_time = matches!(kind, OpKind::Lock | OpKind::Extend);
        refuse(self.lock_ms.is_some(), takes_time, "/lock_ms", "only lock and extend take it");
        let takes_cas = !is_get && kind != OpKind::Insert;
        refuse(self.cas.is_some(), takes_cas, "/cas", "an entry that does not exist has no cas; get needs none");
        refuse(
            self.condition.is_some(),
            takes_cas,
            "/if",
            "insert has one condition, that there is no entry; get needs none",
        );
        refuse(self.prev == Some(true), !is_get, "/prev", "get changes nothing, so there is no `before`");
        refuse(self.dry_run == Some(true), !is_get, "/dry_run", "get changes nothing, so there is nothing to try");
        refuse(self.request_id.is_some(), !is_get, "/request_id", "get changes nothing, so it needs no request id");
    }

    fn lock_time(&self) -> u64 {
        lock_time(self.lock_ms)
    }

    fn value(&self, faults: &mut Faults) -> Result<Option<Value>, Failure> {
        let (value, pointer) = match (self.value, &self.value_base64) {
            (Some(json), None) => (Value { kind: ContentKind::Json, data: json.get().as_bytes().to_vec() }, "/value"),
            (None, Some(text)) => {
                let Ok(data) = STANDARD.decode(text.as_bytes()) else {
                    faults.add("/value_base64", "not base64 (the standard alphabet, padded)");
                    return Ok(None);
                };
                (Value { kind: ContentKind::Bytes, data }, "/value_base64")
            }
            (Some(_), Some(_)) => {
                faults.add("/value_base64", "given beside value; choose one");
                return Ok(None);
            }
            (None, None) if faults.has("/value_base64") => return Ok(None),
            (None, None) => {
                faults.add("/value", "missing; give value (JSON) or value_base64 (bytes)");
                return Ok(None);
            }
        };
        check_length(value.data.len(), pointer)?;
        Ok(Some(value))
    }

    fn patch(&self, faults: &mut Faults) -> Result<Option<Change>, Failure> {
        let Some(patch) = self.patch else {
            faults.add("/patch", "missing; a merge patch, a JSON Patch or a list of update operators");
            return Ok(None);
        };
        let text = patch.get().as_bytes();
        check_length(text.len(), "/patch")?;
        Ok(criteria::patch(text, "/patch", faults).map(Change::Patch))
    }
}

fn check_length(actual: usize, pointer: &str) -> Result<(), Failure> {
    if actual <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::too_large(pointer, "a value", VALUE_BYTES_MAX as u64, Some(actual as u64)))
}

/// How long a lock holds that is asked for so long: 0 and more than the longest stand for the usual time.
pub fn lock_time(asked: Option<u64>) -> u64 {
    asked.filter(|ms| (1..=LOCK_MS_MAX).contains(ms)).unwrap_or(LOCK_MS_DEFAULT)
}

/// A field of this type; notes a fault where it is of another.
pub fn typed<'a, T: serde::Deserialize<'a>>(
    raw: &'a RawValue,
    pointer: &str,
    wanted: &str,
    faults: &mut Faults,
) -> Option<T> {
    let value = serde_json::from_str(raw.get()).ok();
    if value.is_none() {
        faults.add(pointer, format!("must be {wanted}"));
    }
    value
}

/// The same of a string.
pub fn text<'a>(raw: &'a RawValue, pointer: &str, faults: &mut Faults) -> Option<Cow<'a, str>> {
    let text = json::text(raw);
    if text.is_none() {
        faults.add(pointer, "must be a string");
    }
    text
}

/// `null` is refused too: a caller that copies a missing cas must not overwrite without a condition.
fn cas(raw: &RawValue, faults: &mut Faults) -> Option<u64> {
    let cas = json::text(raw).and_then(|text| decimal(&text));
    if cas.is_none() {
        faults.add(
            "/cas",
            "must be the cas of an answer: a decimal number in a string; without the field there is no condition",
        );
    }
    cas
}

/// A time to live.
pub fn ttl(raw: &RawValue, faults: &mut Faults) -> Option<u64> {
    let ttl = decimal(raw.get()).filter(|ttl| *ttl <= TTL_MS_MAX);
    if ttl.is_none() {
        faults.add("/ttl_ms", format!("must be a whole number of milliseconds from 0 to {TTL_MS_MAX}"));
    }
    ttl
}

/// A request id.
pub fn request_id<'a>(raw: &'a RawValue, faults: &mut Faults) -> Option<Cow<'a, str>> {
    let id = text(raw, "/request_id", faults)?;
    match request_id_fault(&id) {
        None => Some(id),
        Some(detail) => {
            faults.add("/request_id", detail);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_client::api::JsonText;

    use super::*;

    #[test]
    fn the_fields_are_those_of_the_wire_type() {
        let raw = || Some(JsonText(RawValue::from_string("{}".into()).expect("JSON")));
        let full = Op {
            op: OpKind::Get,
            key: "k".into(),
            value: raw(),
            value_base64: Some(String::new()),
            patch: raw(),
            cas: Some("1".into()),
            condition: raw(),
            ttl_ms: Some(1),
            lock_ms: Some(1),
            prev: true,
            dry_run: true,
            request_id: Some("r".into()),
        };
        let text = serde_json::to_vec(&full).expect("JSON");
        let names: Vec<_> = json::fields(&text).expect("an object").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.join(", "), FIELDS);
    }

    #[test]
    fn null_is_a_value_and_not_a_missing_one() {
        let wish = OpWish::read(br#"{"op":"upsert","key":"k","value":null}"#).expect("null can be stored");
        let OpAction::Write { change: Change::Upsert(value), .. } = wish.action else { panic!("not an upsert") };
        assert_eq!(value.data, b"null");
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let body = br#"{"op":"insert","cas":12,"ttl_ms":-1,"patch":{},"key":"","prev":1,"color":"red"}"#;
        let failure = format!("{:?}", OpWish::read(body).err().expect("seven faults"));
        for field in ["cas", "ttl_ms", "patch", "key", "prev", "color", "value"] {
            assert!(failure.contains(&format!("\"/{field}\"")), "{field} is missing in {failure}");
        }
    }
}
