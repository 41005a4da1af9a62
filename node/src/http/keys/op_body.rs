//! An operation in JSON, read with a pointer to every fault: the body of `POST /v1/ops`, a line of a stream, an operation of
//! a bulk, a step of a transaction.
//!
//! Owns which fields each kind takes. The names are those of `quorate_api::Op`, which a test holds this file to.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::OpKind;
use quorate_store::document::Criteria;
use quorate_store::limits::{LOCK_MS_DEFAULT, LOCK_MS_MAX, TTL_MS_MAX, VALUE_BYTES_MAX};
use quorate_store::types::{Change, ContentKind, Expect, Expiry, Guard, SessionId, Step, Value, WriteOp};
use serde_json::value::RawValue;

use crate::gateway::failure::Failure;
use crate::http::coordination::coordinate;
use crate::http::input::extract::Faults;
use crate::http::input::headers::{decimal, request_id_fault};
use crate::http::input::json::JsonFault;
use crate::http::input::json_body;
use crate::http::input::key::{self, NamedKey};
use crate::http::input::{criteria, json};
use crate::http::keys::kv;

/// A checked operation.
pub struct ParsedOp<'a> {
    /// What kind it is of.
    pub kind: OpKind,
    /// The key, as the caller wrote it.
    pub key: NamedKey<'a>,
    action: OpAction,
    /// Whether it asks for the entry as it was before.
    pub prev: bool,
    /// Whether it is only to be tried.
    pub dry_run: bool,
    /// The caller's.
    pub request_id: Option<String>,
}

enum OpAction {
    Get,
    Write {
        expect: Expect,
        condition: Criteria,
        change: Change,
        expiry: Expiry,
        session: Option<SessionId>,
        guard: Option<Box<Guard>>,
    },
}

/// Where an operation stands: not everything goes everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// By itself.
    Alone,
    /// In a bulk, which only writes.
    InBulk,
    /// In a transaction.
    InTxn,
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
    session: Option<SessionId>,
    guard: Option<&'a RawValue>,
    prev: Option<bool>,
    dry_run: Option<bool>,
    request_id: Option<Cow<'a, str>>,
}

const KINDS: &str = "one of get, insert, upsert, replace, update, remove, touch, get_and_touch, lock, extend, unlock";

const FIELDS: &str =
    "op, key, value, value_base64, patch, cas, if, ttl_ms, lock_ms, session, guard, prev, dry_run, request_id";

impl<'a> ParsedOp<'a> {
    /// Whether it may change something, and so needs a request id.
    pub fn writes(&self) -> bool {
        !matches!(self.action, OpAction::Get) && !self.dry_run
    }

    /// Whether it is about a lock.
    pub fn is_of_lock(&self) -> bool {
        matches!(&self.action, OpAction::Write { change, .. } if change.is_of_lock())
    }

    /// Copies it, so that it outlives the text that it was read from.
    pub fn into_owned(self) -> ParsedOp<'static> {
        let Self { kind, key, action, prev, dry_run, request_id } = self;
        ParsedOp { kind, key: key.into_owned(), action, prev, dry_run, request_id }
    }

    /// What it does, apart from who asks and how.
    pub fn into_step(self) -> Step {
        let key = self.key.key;
        match self.action {
            OpAction::Get => Step::Get(key),
            OpAction::Write { expect, condition, change, expiry, session, guard } => {
                let return_previous = self.prev;
                Step::Write(WriteOp { key, expect, condition, change, expiry, return_previous, session, guard })
            }
        }
    }

    /// Reads a body that is known to be strict JSON. Reports every fault, not only the first.
    pub fn read(text: &'a [u8]) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let parsed = Self::read_within(text, Standing::Alone, &mut faults);
        faults.check()?;
        parsed.ok_or_else(|| Failure::invalid("", "the operation is not complete"))
    }

    /// Reads a part of a body that was not checked to be strict JSON.
    pub fn read_part(text: &'a [u8], standing: Standing, faults: &mut Faults) -> Option<Self> {
        match json::check(text) {
            Ok(()) => Self::read_within(text, standing, faults),
            Err(JsonFault { pointer, detail }) => {
                faults.add(pointer, detail);
                None
            }
        }
    }

    /// `None` only where a fault was noted.
    fn read_within(text: &'a [u8], standing: Standing, faults: &mut Faults) -> Option<Self> {
        let Ok(fields) = json::fields(text) else {
            faults.add("", "an operation is a JSON object");
            return None;
        };
        let fields = Fields::read(fields, faults);
        if fields.op.is_none() && !faults.has("/op") {
            faults.add("/op", format!("missing; {KINDS}"));
        }
        fields.refuse_standing(standing, faults);
        let key = fields.named_key(faults);
        let kind = fields.op?;
        let action = fields.action(kind, faults);
        let prev = kind == OpKind::GetAndTouch || fields.prev.unwrap_or(false);
        let (dry_run, request_id) = (fields.dry_run.unwrap_or(false), fields.request_id.map(Cow::into_owned));
        Some(Self { kind, key: key?, action: action?, prev, dry_run, request_id })
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
            "op" => self.op = typed(raw, "/op", KINDS, faults),
            "key" => self.key = text(raw, "/key", faults),
            "value" => self.value = Some(raw),
            "value_base64" => self.value_base64 = text(raw, "/value_base64", faults),
            "patch" => self.patch = Some(raw),
            "cas" => self.cas = cas(raw, faults),
            "if" => self.condition = Some(raw),
            "ttl_ms" => self.ttl_ms = ttl(raw, faults),
            "lock_ms" => self.lock_ms = typed(raw, "/lock_ms", "a whole number of milliseconds", faults),
            "session" => {
                self.session =
                    text(raw, "/session", faults).and_then(|text| coordinate::session(&text, "/session", faults));
            }
            "guard" => self.guard = Some(raw),
            "prev" => self.prev = typed(raw, "/prev", "true or false", faults),
            "dry_run" => self.dry_run = typed(raw, "/dry_run", "true or false", faults),
            "request_id" => self.request_id = request_id(raw, faults),
            other => faults.add_unknown(json::pointer(other), format!("no such field; there are: {FIELDS}")),
        }
    }

    fn named_key(&self, faults: &mut Faults) -> Option<NamedKey<'a>> {
        match &self.key {
            Some(key) => return key::read(key.clone(), "/key", faults),
            None if faults.has("/key") => {}
            None => faults.add("/key", "missing; the key of the entry"),
        }
        None
    }

    /// What only the whole of a larger request can say, and what does not go there.
    fn refuse_standing(&self, standing: Standing, faults: &mut Faults) {
        let whole = match standing {
            Standing::Alone => return,
            Standing::InBulk => "bulk",
            Standing::InTxn => "transaction",
        };
        if standing == Standing::InBulk && self.op == Some(OpKind::Get) {
            faults.add("/op", "a bulk only writes; a transaction takes get, and POST /v1/find reads many entries");
        }
        for (given, pointer) in [(self.dry_run.is_some(), "/dry_run"), (self.request_id.is_some(), "/request_id")] {
            if given {
                faults.add(pointer, format!("belongs to the {whole}, not to one operation in it"));
            }
        }
    }

    /// What the operation does. Every field that its kind does not take is a fault.
    fn action(&self, kind: OpKind, faults: &mut Faults) -> Option<OpAction> {
        self.refuse_strangers(kind, faults);
        let expect = self.cas.map_or(Expect::Any, Expect::Cas);
        let (change, usual) = match kind {
            OpKind::Get => return Some(OpAction::Get),
            OpKind::Insert => (self.value(faults).map(Change::Insert), Expiry::Usual),
            OpKind::Upsert => (self.value(faults).map(Change::Upsert), Expiry::Usual),
            OpKind::Replace => (self.value(faults).map(Change::Replace), Expiry::Usual),
            OpKind::Update => (self.patch(faults), Expiry::Keep),
            OpKind::Remove => (Some(Change::Remove), Expiry::Keep),
            OpKind::Touch | OpKind::GetAndTouch => (Some(Change::Touch), Expiry::Keep),
            OpKind::Lock => (Some(Change::Lock(lock_time(self.lock_ms))), Expiry::Keep),
            OpKind::Extend => (Some(Change::Extend(lock_time(self.lock_ms))), Expiry::Keep),
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
        let guard = self.guard.filter(|_| kind != OpKind::Get);
        let guard = guard.map(|raw| coordinate::guard(&json_body::part(raw, "/guard", faults)?, faults));
        if guard == Some(None) {
            return None;
        }
        let (session, guard) = (self.session, guard.flatten());
        let (change, condition) = change.zip(condition)?;
        Some(OpAction::Write { expect, condition, change, expiry, session, guard })
    }

    fn refuse_strangers(&self, kind: OpKind, faults: &mut Faults) {
        let writes_value = matches!(kind, OpKind::Insert | OpKind::Upsert | OpKind::Replace);
        let is_get = kind == OpKind::Get;
        let mut refuse = |given: bool, taken: bool, pointer: &str, why: &str| {
            if given && !taken && !faults.has(pointer) {
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
        let takes_session = writes_value || matches!(kind, OpKind::Update | OpKind::Touch | OpKind::GetAndTouch);
        let why = "only insert, upsert, replace, update and touch take it";
        refuse(self.session.is_some(), takes_session, "/session", why);
        refuse(self.guard.is_some(), !is_get, "/guard", "get changes nothing, so there is nothing to guard");
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

    fn value(&self, faults: &mut Faults) -> Option<Value> {
        let (value, pointer) = match (self.value, &self.value_base64) {
            (Some(json), None) => (Value { kind: ContentKind::Json, data: json.get().as_bytes().to_vec() }, "/value"),
            (None, Some(text)) => {
                let Ok(data) = STANDARD.decode(text.as_bytes()) else {
                    faults.add("/value_base64", "not base64 (the standard alphabet, padded)");
                    return None;
                };
                (Value { kind: ContentKind::Bytes, data }, "/value_base64")
            }
            (Some(_), Some(_)) => {
                faults.add("/value_base64", "given beside value; choose one");
                return None;
            }
            (None, None) if faults.has("/value_base64") => return None,
            (None, None) => {
                faults.add("/value", "missing; give value (JSON) or value_base64 (bytes)");
                return None;
            }
        };
        fits(value.data.len(), pointer, faults).then_some(value)
    }

    fn patch(&self, faults: &mut Faults) -> Option<Change> {
        let Some(patch) = self.patch else {
            faults.add("/patch", "missing; a merge patch, a JSON Patch or a list of update operators");
            return None;
        };
        let text = patch.get().as_bytes();
        if !fits(text.len(), "/patch", faults) {
            return None;
        }
        criteria::patch(text, "/patch", faults).map(Change::Patch)
    }
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

/// Reads a string.
pub fn text<'a>(raw: &'a RawValue, pointer: &str, faults: &mut Faults) -> Option<Cow<'a, str>> {
    let text = json::text(raw);
    if text.is_none() {
        faults.add(pointer, "must be a string");
    }
    text
}

/// `null` is refused too: a caller that copies a missing cas must not overwrite without a condition.
pub fn cas(raw: &RawValue, faults: &mut Faults) -> Option<u64> {
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

/// The caller's request id.
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
    use quorate_api::{Guard, JsonText, Op};

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
            session: Some("1".into()),
            guard: Some(Guard::lock("l", 1)),
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
        let parsed = ParsedOp::read(br#"{"op":"upsert","key":"k","value":null}"#).expect("null can be stored");
        let OpAction::Write { change: Change::Upsert(value), .. } = parsed.action else { panic!("not an upsert") };
        assert_eq!(value.data, b"null");
    }

    #[test]
    fn what_belongs_to_the_whole_is_refused_in_a_part() {
        let text = br#"{"op":"get","key":"k","dry_run":false,"request_id":"r"}"#;
        for (standing, places) in [
            (Standing::InBulk, vec!["/ops/7/op", "/ops/7/dry_run", "/ops/7/request_id"]),
            (Standing::InTxn, vec!["/ops/7/dry_run", "/ops/7/request_id"]),
        ] {
            let mut faults = Faults::default();
            let before = faults.enter(format_args!("/ops/{}", 7));
            ParsedOp::read_part(text, standing, &mut faults);
            faults.leave(before);
            for place in places {
                assert!(faults.has(place), "{place} is missing in {faults:?}");
            }
        }
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let body = br#"{"op":"insert","cas":12,"ttl_ms":-1,"patch":{},"key":"","prev":1,"color":"red"}"#;
        let failure = format!("{:?}", ParsedOp::read(body).err().expect("seven faults"));
        for field in ["cas", "ttl_ms", "patch", "key", "prev", "color", "value"] {
            assert!(failure.contains(&format!("\"/{field}\"")), "{field} is missing in {failure}");
        }
    }
}
