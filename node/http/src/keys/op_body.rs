//! What an operation becomes in the log: the body of `POST /v1/ops`, a line of a stream, an operation of a bulk, a step of a
//! transaction.
//!
//! Owns which fields each kind takes, and tells all that is wrong with them at once. How an operation is written is `quorate_api::Op`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::{JsonText, Op, OpKind, TtlRule};
use quorate_machine::document::Criteria;
use quorate_machine::limits::{LOCK_MS_DEFAULT, LOCK_MS_MAX, TTL_MS_MAX, VALUE_BYTES_MAX};
use quorate_machine::types::{Change, ContentKind, Expect, Expiry, Key, Step, Value, WriteOp};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits::WAIT_MS_MAX;

use crate::coordinate;
use crate::headers::{decimal, request_id_fault};
use crate::input::extract::Faults;
use crate::input::json::{self, JsonFault};
use crate::input::{criteria, json_body, key};
use crate::keys::kv;

/// A checked operation.
#[derive(Debug)]
pub struct ParsedOp {
    /// What kind it is of.
    pub kind: OpKind,
    /// The key.
    pub key: Key,
    /// What it does, apart from who asks and how.
    pub step: Step,
    /// Whether it asks for the entry as it was before.
    pub prev: bool,
    /// Whether it is only to be tried.
    pub dry_run: bool,
    /// How long it waits for a lock.
    pub wait: Option<Duration>,
    /// The caller's.
    pub request_id: Option<String>,
}

/// What an operation is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// A bulk, which only writes.
    Bulk,
    /// A transaction.
    Txn,
}

impl ParsedOp {
    /// Whether it may change something, and so needs a request id.
    pub fn writes(&self) -> bool {
        self.kind != OpKind::Get && !self.dry_run
    }

    /// Whether it is about a lock.
    pub fn is_of_lock(&self) -> bool {
        matches!(self.kind, OpKind::Lock | OpKind::GetAndLock | OpKind::Extend | OpKind::Unlock)
    }

    /// Whether it is answered with the entry as it leaves it.
    pub fn shows_entry(&self) -> bool {
        shows_entry(self.kind)
    }

    /// Reads an operation that stands alone. Its text need not be known to be strict JSON.
    pub fn read(text: &[u8]) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let parsed = Self::of(json_body::frame(text)?, &mut faults);
        faults.complete(parsed)
    }

    /// Reads an operation that is a part of something larger, likewise. `None` only where a fault was noted.
    pub fn read_part(text: &[u8], container: Container, faults: &mut Faults) -> Option<Self> {
        let mut op: Op = json_body::noted(json_body::frame_without(text, &ONLY_ALONE), "", faults)?;
        container.refuse(&op, faults);
        // Told of the part already: it is not to be told of its kind, too.
        (op.wait_ms, op.dry_run, op.request_id) = (None, false, None);
        Self::of(op, faults)
    }

    fn of(op: Op, faults: &mut Faults) -> Option<Self> {
        refuse_strangers(&op, faults);
        check_texts(&op, faults)?;
        let Op { op: kind, dry_run, .. } = op;
        if let Some(detail) = op.request_id.as_deref().and_then(request_id_fault) {
            faults.add("/request_id", detail);
        }
        // The value stays as it is, so the entry before has it.
        let (prev, request_id) = (op.prev || shows_entry(kind), op.request_id.clone());
        let wait =
            faults.within("/wait_ms", op.wait_ms, 0..=WAIT_MS_MAX).filter(|ms| *ms > 0).map(Duration::from_millis);
        if op.wait_ms.is_some() && dry_run {
            faults.add("/wait_ms", "what is only tried does not wait");
        }
        let key = key::read(op.key.as_bytes(), "/key", faults);
        let stored = key.clone();
        let step = match kind {
            OpKind::Get => stored.map(Step::Get),
            _ => write(op, prev, stored, faults).map(Step::Write),
        };
        Some(Self { kind, key: key?, step: step?, prev, dry_run, wait, request_id })
    }
}

/// The fields that an operation has only where it stands alone.
const ONLY_ALONE: [&str; 3] = ["wait_ms", "dry_run", "request_id"];

impl Container {
    /// Notes what does not go into a part: what only the whole can say.
    fn refuse(self, op: &Op, faults: &mut Faults) {
        let whole = match self {
            Self::Bulk => "bulk",
            Self::Txn => "transaction",
        };
        if self == Self::Bulk && op.op == OpKind::Get {
            faults.add("/op", "a bulk only writes; a transaction takes get, and POST /v1/find reads many entries");
        }
        for (given, pointer) in [(op.dry_run, "/dry_run"), (op.request_id.is_some(), "/request_id")] {
            if given {
                faults.add(pointer, format!("belongs to the {whole}, not to one operation in it"));
            }
        }
        if op.wait_ms.is_some() {
            faults
                .add("/wait_ms", format!("only an operation that stands alone waits for a lock, not one in a {whole}"));
        }
    }
}

/// The write that an operation stands for. `None` where there is no key, or a fault was noted.
fn write(op: Op, return_previous: bool, key: Option<Key>, faults: &mut Faults) -> Option<WriteOp> {
    let kind = op.op;
    // An insert was refused for having one, whatever it is.
    let token = op.cas.as_deref().filter(|_| kind != OpKind::Insert);
    let expect = token.map_or(Some(Expect::ANY), |text| cas(text, faults).map(Expect::cas));
    let expect = expect.map(|expect| match kind {
        OpKind::Insert => Expect::ABSENT,
        OpKind::Replace => expect.and_present(),
        _ => expect,
    });
    let condition = match &op.condition {
        Some(list) => criteria::criteria(list.0.get().as_bytes(), "/if", faults),
        None => Some(Criteria::default()),
    };
    let session = op.session.as_deref().map(|text| coordinate::session(text, "/session", faults));
    let guard = op.guard.as_ref().map(|guard| coordinate::guard(guard, faults));
    if matches!(kind, OpKind::Extend | OpKind::Unlock) && op.cas.is_none() {
        faults.add("/cas", "missing; the cas that lock answered with");
    }
    if matches!(kind, OpKind::Touch | OpKind::GetAndTouch) && op.ttl_ms.is_none() {
        faults.add("/ttl_ms", "missing; touch changes nothing else (0 for never)");
    }
    let writes_value = takes_value(kind);
    let usual = if writes_value { Expiry::Usual } else { Expiry::Keep };
    let usual = op.ttl.map_or(usual, |TtlRule::Keep| Expiry::Keep);
    let expiry = faults.within("/ttl_ms", op.ttl_ms, 0..=TTL_MS_MAX).map_or(usual, kv::expiry_of);
    let lock_ms = lock_time(op.lock_ms);
    let value = if writes_value { Some(value(op.value, op.value_base64, faults)?) } else { None };
    let change = match (kind, value) {
        (OpKind::Insert | OpKind::Upsert | OpKind::Replace, Some(value)) => Change::Put(value),
        (OpKind::Update, _) => patch(op.patch.as_ref(), faults)?,
        (OpKind::Remove, _) => Change::Remove,
        (OpKind::Touch | OpKind::GetAndTouch, _) => Change::Touch,
        (OpKind::Lock | OpKind::GetAndLock, _) => Change::Lock(lock_ms),
        (OpKind::Extend, _) => Change::Extend(lock_ms),
        (OpKind::Unlock, _) => Change::Unlock,
        (OpKind::Get | OpKind::Insert | OpKind::Upsert | OpKind::Replace, _) => return None,
    };
    // What is there and has a fault must not become an operation without it.
    let (session, guard) = (given(session)?, given(guard)?);
    Some(WriteOp { key: key?, expect: expect?, condition: condition?, change, expiry, return_previous, session, guard })
}

/// `None` where something was given and is faulty.
fn given<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(None) => None,
        Some(some) => Some(some),
        None => Some(None),
    }
}

/// Checks that what is kept as text is strict JSON: all else was read as its type. `None` where it is not.
fn check_texts(op: &Op, faults: &mut Faults) -> Option<()> {
    let texts = [("/value", &op.value), ("/patch", &op.patch), ("/if", &op.condition)];
    for (place, text) in texts.into_iter().filter_map(|(place, text)| Some((place, text.as_ref()?))) {
        if let Err(JsonFault { pointer, detail }) = json::check(text.0.get().as_bytes()) {
            faults.add(format!("{place}{pointer}"), detail);
            return None;
        }
    }
    Some(())
}

fn shows_entry(kind: OpKind) -> bool {
    matches!(kind, OpKind::GetAndTouch | OpKind::GetAndLock)
}

fn takes_value(kind: OpKind) -> bool {
    matches!(kind, OpKind::Insert | OpKind::Upsert | OpKind::Replace)
}

/// Notes every field that the kind of the operation does not take.
fn refuse_strangers(op: &Op, faults: &mut Faults) {
    use OpKind::{Extend, Get, GetAndLock, GetAndTouch, Insert, Lock, Remove, Replace, Touch, Unlock, Update, Upsert};
    let kind = op.op;
    let (is_get, writes_value) = (kind == Get, takes_value(kind));
    let takes_session = writes_value || matches!(kind, Update | Touch | GetAndTouch);
    let takes_ttl = !matches!(kind, Get | Remove | Lock | GetAndLock | Extend | Unlock);
    let keeps_ttl = matches!(kind, Upsert | Replace | Update);
    let locks = matches!(kind, Lock | GetAndLock);
    let takes_lock_time = locks || kind == Extend;
    let takes_cas = !matches!(kind, Get | Insert);
    let (why_cas, why_if) = match kind {
        Get => ("get reads what there is, whatever its cas", "get reads what there is, on no condition"),
        _ => ("insert makes an entry, and none has a cas before", "insert has one condition, that there is no entry"),
    };
    for (given, taken, pointer, why) in [
        (op.value.is_some(), writes_value, "/value", "only insert, upsert and replace take a value"),
        (op.value_base64.is_some(), writes_value, "/value_base64", "only insert, upsert and replace take a value"),
        (op.patch.is_some(), kind == Update, "/patch", "only update takes a patch"),
        (op.ttl_ms.is_some(), takes_ttl, "/ttl_ms", "get, remove and locks take no ttl_ms"),
        (op.ttl.is_some(), keeps_ttl, "/ttl", "only upsert, replace and update keep what there is"),
        (op.ttl.is_some() && op.ttl_ms.is_some(), false, "/ttl", "given beside ttl_ms; choose one"),
        (op.lock_ms.is_some(), takes_lock_time, "/lock_ms", "only lock, get_and_lock and extend take it"),
        (op.wait_ms.is_some(), locks, "/wait_ms", "only lock and get_and_lock take it"),
        (op.session.is_some(), takes_session, "/session", "only insert, upsert, replace, update and touch take it"),
        (op.guard.is_some(), !is_get, "/guard", "get changes nothing, so there is nothing to guard"),
        (op.cas.is_some(), takes_cas, "/cas", why_cas),
        (op.condition.is_some(), takes_cas, "/if", why_if),
        (op.prev, !is_get, "/prev", "get changes nothing, so there is no `before`"),
        (op.dry_run, !is_get, "/dry_run", "get changes nothing, so there is nothing to try"),
        (op.request_id.is_some(), !is_get, "/request_id", "get changes nothing, so it needs no request id"),
    ] {
        if given && !taken {
            faults.add(pointer, why);
        }
    }
}

fn value(json: Option<JsonText>, base64: Option<String>, faults: &mut Faults) -> Option<Value> {
    let (value, pointer) = match (json, base64) {
        (Some(json), None) => (Value { kind: ContentKind::Json, data: bytes_of(json) }, "/value"),
        (None, Some(text)) => {
            let Ok(data) = STANDARD.decode(text) else {
                faults.add("/value_base64", "not base64 (the standard alphabet, padded)");
                return None;
            };
            (Value { kind: ContentKind::Bytes, data }, "/value_base64")
        }
        (Some(_), Some(_)) => {
            faults.add("/value_base64", "given beside value; choose one");
            return None;
        }
        (None, None) => {
            faults.add("/value", "missing; give value (JSON) or value_base64 (bytes)");
            return None;
        }
    };
    fits(value.data.len(), pointer, faults).then_some(value)
}

/// The text, without a copy.
fn bytes_of(JsonText(text): JsonText) -> Vec<u8> {
    Box::<str>::from(text).into_boxed_bytes().into_vec()
}

fn patch(patch: Option<&JsonText>, faults: &mut Faults) -> Option<Change> {
    let Some(JsonText(patch)) = patch else {
        faults.add("/patch", "missing; a merge patch, a JSON Patch or a list of update operators");
        return None;
    };
    let text = patch.get().as_bytes();
    if !fits(text.len(), "/patch", faults) {
        return None;
    }
    criteria::patch(text, "/patch", faults).map(Change::Patch)
}

fn fits(actual: usize, pointer: &str, faults: &mut Faults) -> bool {
    let fits = actual <= VALUE_BYTES_MAX;
    if !fits {
        faults.add_too_large(pointer, "a value", VALUE_BYTES_MAX, actual);
    }
    fits
}

/// How long a lock holds that is asked for so long: 0 and more than the longest stand for the usual time.
pub fn lock_time(asked: Option<u64>) -> u64 {
    asked.filter(|ms| (1..=LOCK_MS_MAX).contains(ms)).unwrap_or(LOCK_MS_DEFAULT)
}

/// The token of a body; `None` where it is none, which is noted.
pub fn cas(text: &str, faults: &mut Faults) -> Option<u64> {
    let cas = decimal(text);
    if cas.is_none() {
        let detail =
            "must be the cas of an answer: a decimal number in a string; without the field there is no condition";
        faults.add("/cas", detail);
    }
    cas
}
