//! One operation as it is described: what is done to which key, and under which conditions.
//!
//! Owns the constructors and refinements that single writes, bulks and transactions share, and what of them goes together.
//! Sends nothing: [`crate::Write`] sends one, [`crate::Bulk`] many, [`crate::Txn`] some together.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::api::{Cas, Criterion, Guard, Name, OpKind, TtlRule};
use crate::call::criteria::Criteria;
use crate::call::error::Error;
use crate::call::op::{OpText, checked_json};
use crate::call::value::Value;

/// Why a time to live of zero is not sent: nodes take it for none at all.
pub(crate) const NO_TTL: &str =
    "a time to live of zero would be for ever: leave it out, or touch the entry with zero to let it never expire";

/// An operation, for [`crate::Bulk`] and [`crate::Txn`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::{Criterion, Operator};
/// use quorate_client::Op;
/// use serde_json::json;
///
/// // The same description goes into a bulk and into a transaction.
/// let pay = Op::patch_json("orders/o1", &json!({"status": "paid"})).only_if(Criterion::new("status", Operator::Eq, "new"));
/// client.bulk().push(pay.clone()).push(Op::remove("carts/c1")).await?;
/// client.txn().when("orders/o1").exists().then(pay).then(Op::remove("carts/c1")).await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until it is part of a bulk or a transaction"]
#[derive(Debug, Clone)]
pub struct Op {
    kind: OpKind,
    key: Name,
    /// The value, or what an update changes.
    value: Option<Value>,
    cas: Option<Cas>,
    criteria: Criteria,
    ttl: Option<Ttl>,
    lock_time: Option<Duration>,
    wait: Option<Duration>,
    session: Option<String>,
    guard: Option<Guard>,
    prev: bool,
    wrong: Option<String>,
}

impl Op {
    fn new(kind: OpKind, key: impl Into<Name>) -> Self {
        Self {
            kind,
            key: key.into(),
            value: None,
            cas: None,
            criteria: Criteria::default(),
            ttl: None,
            lock_time: None,
            wait: None,
            session: None,
            guard: None,
            prev: false,
            wrong: None,
        }
    }

    fn with(kind: OpKind, key: impl Into<Name>, value: Value) -> Self {
        Self { value: Some(value), ..Self::new(kind, key) }
    }

    /// A value that has no JSON form is told when the operation is sent.
    fn with_json<T: Serialize + ?Sized>(kind: OpKind, key: impl Into<Name>, value: &T) -> Self {
        match Value::json(value) {
            Ok(value) => Self::with(kind, key, value),
            Err(error) => Self::new(kind, key).wrong(error.to_string()),
        }
    }

    /// Reads an entry. For transactions only.
    pub fn get(key: impl Into<Name>) -> Self {
        Self::new(OpKind::Get, key)
    }

    /// Creates or overwrites. With [`Op::cas`], [`Op::if_absent`] or [`Op::if_present`] only then.
    pub fn put(key: impl Into<Name>, value: Value) -> Self {
        Self::with(OpKind::Upsert, key, value)
    }

    /// Creates; a bulk skips it where there is an entry, a transaction is refused.
    pub fn insert(key: impl Into<Name>, value: Value) -> Self {
        Self::with(OpKind::Insert, key, value)
    }

    /// Overwrites; fails with `not_found`.
    pub fn replace(key: impl Into<Name>, value: Value) -> Self {
        Self::with(OpKind::Replace, key, value)
    }

    /// Changes parts of a document, as [`crate::Client::patch`] does.
    pub fn patch(key: impl Into<Name>, patch: Value) -> Self {
        Self::with(OpKind::Update, key, patch)
    }

    /// [`Op::put`] of anything that has a JSON form.
    pub fn put_json<T: Serialize + ?Sized>(key: impl Into<Name>, value: &T) -> Self {
        Self::with_json(OpKind::Upsert, key, value)
    }

    /// [`Op::insert`] of anything that has a JSON form.
    pub fn insert_json<T: Serialize + ?Sized>(key: impl Into<Name>, value: &T) -> Self {
        Self::with_json(OpKind::Insert, key, value)
    }

    /// [`Op::patch`] with anything that has a JSON form.
    pub fn patch_json<T: Serialize + ?Sized>(key: impl Into<Name>, patch: &T) -> Self {
        Self::with_json(OpKind::Update, key, patch)
    }

    /// Deletes; fails with `not_found`.
    pub fn remove(key: impl Into<Name>) -> Self {
        Self::new(OpKind::Remove, key)
    }

    /// Sets the time to live from now, changes nothing else; zero for ever. Fails with `not_found`.
    pub fn touch(key: impl Into<Name>, ttl: Duration) -> Self {
        Self::new(OpKind::Touch, key).ttl(ttl)
    }

    /// Locks an entry for `time`, as [`crate::Client::lock_entry`] does.
    pub fn lock_entry(key: impl Into<Name>, time: Duration) -> Self {
        Self { lock_time: Some(time), ..Self::new(OpKind::Lock, key) }
    }

    /// Lets a lock hold for `time` from now; `cas` is its key.
    pub fn extend_entry_lock(key: impl Into<Name>, cas: Cas, time: Duration) -> Self {
        Self { lock_time: Some(time), ..Self::new(OpKind::Extend, key) }.cas(cas)
    }

    /// Ends a lock; `cas` is its key.
    pub fn unlock_entry(key: impl Into<Name>, cas: Cas) -> Self {
        Self::new(OpKind::Unlock, key).cas(cas)
    }

    /// Reads an entry and sets its time to live in one step. Public as [`crate::Client::get_and_touch`]: in a bulk or a
    /// transaction it would be a touch with [`Op::prev`].
    pub(crate) fn get_and_touch(key: impl Into<Name>, ttl: Duration) -> Self {
        Self::new(OpKind::GetAndTouch, key).ttl(ttl)
    }

    /// Reads an entry and locks it in one step. Public as [`crate::Client::get_and_lock_entry`]: in a bulk or a transaction it would be a
    /// lock with [`Op::prev`].
    pub(crate) fn get_and_lock_entry(key: impl Into<Name>, time: Duration) -> Self {
        Self { lock_time: Some(time), ..Self::new(OpKind::GetAndLock, key) }
    }

    /// Waits so long for the lock. Public as [`crate::Write::wait`]: only an operation that stands alone waits.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        if !matches!(self.kind, OpKind::Lock | OpKind::GetAndLock) {
            self.wrong = Some("only a lock can be waited for".to_owned());
        }
        self.wait = Some(wait);
        self
    }

    /// How long it waits for a lock.
    pub(crate) fn waits(&self) -> Duration {
        self.wait.unwrap_or_default()
    }

    /// Only while the entry has this token.
    pub fn cas(mut self, cas: Cas) -> Self {
        if self.is_put() {
            self.kind = OpKind::Replace;
        }
        self.cas = Some(cas);
        self
    }

    /// Only if there is no entry. For [`Op::put`].
    pub fn if_absent(mut self) -> Self {
        if self.is_put() {
            self.kind = OpKind::Insert;
        } else {
            self.wrong = Some("only a put can ask for an entry that is not there".to_owned());
        }
        self.cas = None;
        self
    }

    /// Only if there is an entry.
    pub fn if_present(mut self) -> Self {
        // The others need an entry anyway.
        if self.is_put() {
            self.kind = OpKind::Replace;
        }
        self.cas = None;
        self
    }

    /// Only while this holds of the entry; several must all hold. Not for an insert, which has its own condition.
    pub fn only_if(mut self, criterion: Criterion) -> Self {
        self.criteria.add(&criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn only_if_json(mut self, criterion: &str) -> Self {
        self.criteria.add_json(criterion);
        self
    }

    /// Time to live from the moment the write applies, in milliseconds rounded up. Without it a put makes an entry that never expires; zero
    /// fails, since a time that was left and came to nothing must not become for ever. Only [`Op::touch`] takes zero for that.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        if ttl.is_zero() && !matches!(self.kind, OpKind::Touch | OpKind::GetAndTouch) {
            return self.wrong(NO_TTL.to_owned());
        }
        self.ttl = Some(Ttl::For(ttl));
        self
    }

    /// The entry expires when it would have without this write: of puts, replacements and patches. What changes an entry that it has read
    /// keeps the time that it has, and gives it no more.
    pub fn keep_ttl(mut self) -> Self {
        self.ttl = Some(Ttl::Keep);
        self
    }

    /// The entry goes with this session from now on: it is removed when that ends. A [`crate::Session`] or its id.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Only while this token holds its lock or leads its election; fails with `guard_failed`. Take a [`crate::LockGuard`], a
    /// [`crate::Leadership`], or a [`Guard`] made of the token that another process was given.
    pub fn guarded_by(mut self, guard: impl Into<Guard>) -> Self {
        self.guard = Some(guard.into());
        self
    }

    /// Answer with the entry as it was before.
    pub fn prev(mut self) -> Self {
        self.prev = true;
        self
    }

    /// Fails with this instead of being sent.
    pub(crate) fn wrong(mut self, why: String) -> Self {
        self.wrong.get_or_insert(why);
        self
    }

    /// What it is.
    pub(crate) fn kind(&self) -> OpKind {
        self.kind
    }

    fn is_put(&self) -> bool {
        matches!(self.kind, OpKind::Upsert | OpKind::Insert | OpKind::Replace)
    }

    /// The operation as nodes read it. Alone it says whether it is a dry run, and under which id it goes.
    pub(crate) fn text(&self, dry_run: bool, request_id: Option<&str>) -> Result<Bytes, Error> {
        if let Some(wrong) = &self.wrong {
            return Err(Error::Invalid(wrong.clone()));
        }
        let condition = self.condition()?;
        let mut op = OpText::new(self.kind, &self.key)?;
        op.condition = condition.as_deref();
        match &self.value {
            Some(patch) if self.kind == OpKind::Update => op.patch = Some(checked_json(&patch.data)?),
            Some(value) if value.is_json => op.value = Some(checked_json(&value.data)?),
            Some(value) => op.value_base64 = Some(STANDARD.encode(&value.data)),
            None => {}
        }
        op.cas = self.cas;
        match self.ttl {
            Some(Ttl::For(ttl)) => op.ttl_ms = Some(milliseconds(ttl)),
            Some(Ttl::Keep) => op.ttl = Some(TtlRule::Keep),
            None => {}
        }
        (op.lock_ms, op.wait_ms) = (self.lock_time.map(milliseconds), self.wait.map(milliseconds));
        (op.session, op.guard) = (self.session.as_deref(), self.guard.as_ref());
        (op.prev, op.dry_run, op.request_id) = (self.prev, dry_run, request_id);
        let length = op.value_base64.as_ref().map_or(0, String::len);
        op.write(length.max(self.value.as_ref().map_or(0, |value| value.data.len())))
    }

    fn condition(&self) -> Result<Option<Box<RawValue>>, Error> {
        let Some(list) = self.criteria.checked()? else { return Ok(None) };
        let text = to_raw_value(list);
        text.map(Some).map_err(|source| Error::Decode { what: "the condition has no JSON form".into(), source })
    }
}

/// The time to live that a write asks for.
#[derive(Debug, Clone, Copy)]
enum Ttl {
    For(Duration),
    Keep,
}

/// A time in the API's milliseconds, rounded up: 0 means that an entry never expires, and little time must not become that.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
