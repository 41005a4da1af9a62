//! Operations on single entries.
//!
//! Owns the public shape of reads and writes: each method returns a description of the operation, to be refined and then
//! awaited. Turns it into a [`Call`]; sends nothing itself.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::header::IF_NONE_MATCH;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{Cas, Criterion, EntryView, Guard, ListAnswer, Name, OpKind, WriteAnswer};
use crate::call::endpoints::Preference;
use crate::call::error::{Error, is_missing};
use crate::call::op::OpText;
use crate::call::operation::{Op, milliseconds};
use crate::call::request::{Call, Intent, RequestId, etag, key_path, push_name, push_query};
use crate::call::subject::is_often_changed;
use crate::call::value::Value;
use crate::client::{Client, decode};

/// An entry whose value was decoded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Document<T> {
    /// The value.
    pub content: T,
    /// The rest: cas, revisions, time to live.
    pub entry: EntryView,
}

/// What came of waiting for a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The entry is as it was known.
    None,
    /// The entry as it is now.
    Entry(Box<EntryView>),
    /// The entry is gone.
    Gone,
}

impl Client {
    /// Reads an entry; `None` if there is none.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let now = client.get("orders/o1").await?;
    /// let nearby = client.get("orders/o1").local().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, key: impl Into<Name>) -> Get<'_> {
        Get { client: self, key: key.into(), revision: None, freshness: Freshness::Linearizable, timeout: None }
    }

    /// Reads an entry and decodes its value.
    pub async fn get_json<T: DeserializeOwned>(&self, key: impl Into<Name>) -> Result<Option<Document<T>>, Error> {
        match self.get(key).await? {
            Some(entry) => Ok(Some(Document { content: entry.json()?, entry })),
            None => Ok(None),
        }
    }

    /// Whether there is an entry, without its value being sent, unless proxies like to change the key (`a//b`).
    pub async fn exists(&self, key: impl Into<Name>) -> Result<bool, Error> {
        let key = key.into();
        if is_often_changed(&key) {
            // The answer to HEAD names no key.
            return Ok(self.get(key).await?.is_some());
        }
        let call = Call::new(Method::HEAD, key_path(&key)?, Intent::Read, self.read_preference())?;
        Ok(self.send(&call).await?.status != StatusCode::NOT_FOUND)
    }

    /// Waits at most `wait` (up to a minute) for the entry to differ from what is known of it: its cas, or `None` for `no
    /// such entry`.
    pub async fn wait_for_change(
        &self,
        key: impl Into<Name>,
        known: Option<Cas>,
        wait: Duration,
    ) -> Result<Change, Error> {
        let key = key.into();
        let mut target = key_path(&key)?;
        push_query(&mut target, "wait_ms", milliseconds(wait));
        let mut call = self.read_call(target)?;
        call.condition = Some((IF_NONE_MATCH, etag(known.unwrap_or(NO_ENTRY))));
        call.hold = wait;
        let started = Instant::now();
        let unnamed = match self.send(&call).await {
            Err(error) if is_missing(&error) => Change::Gone,
            Err(error) => return Err(error),
            Ok(reply) if reply.status == StatusCode::NOT_MODIFIED => Change::None,
            Ok(reply) => {
                let entry = decode(&call, &reply.address, reply.status, &reply.body)?;
                return Ok(Change::Entry(Box::new(entry)));
            }
        };
        if is_often_changed(&key) {
            // Neither answer names a key to compare: a proxy may have asked for another.
            return self.look_for_change(&key, known, started, wait).await;
        }
        Ok(unnamed)
    }

    /// Compares the entry with what is known of it. Looks again while they are the same and there is time.
    async fn look_for_change(
        &self,
        key: &Name,
        known: Option<Cas>,
        started: Instant,
        wait: Duration,
    ) -> Result<Change, Error> {
        loop {
            match self.get(key).await? {
                Some(entry) if entry.cas.is_none() || entry.cas != known => return Ok(Change::Entry(Box::new(entry))),
                None if known.is_some() => return Ok(Change::Gone),
                _same => {}
            }
            let left = wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(Change::None);
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }

    /// Creates or overwrites. With [`Write::cas`], [`Write::if_absent`] or [`Write::if_present`] only then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use quorate_client::Value;
    /// # use std::time::Duration;
    /// # async fn example(client: &quorate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// client.put("greeting", Value::json("hello")?).ttl(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, key: impl Into<Name>, value: Value) -> Write<'_> {
        Write::new(self, Op::put(key, value))
    }

    /// Creates; fails with `already_exists`.
    pub fn insert(&self, key: impl Into<Name>, value: Value) -> Write<'_> {
        Write::new(self, Op::insert(key, value))
    }

    /// Overwrites; fails with `not_found`.
    pub fn replace(&self, key: impl Into<Name>, value: Value) -> Write<'_> {
        Write::new(self, Op::replace(key, value))
    }

    /// Overwrites exactly the version with this token; fails with `cas_mismatch`, which carries the entry as it is.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::ErrorCode;
    /// use quorate_client::{Error, Value};
    ///
    /// let order = client.get("orders/o1").await?.expect("there is one");
    /// let cas = order.cas.expect("nobody has locked it");
    /// match client.cas("orders/o1", cas, Value::json("paid")?).await {
    ///     // Somebody was faster; the answer brings the order as it is now.
    ///     Err(Error::Rejected(problem)) if problem.code == ErrorCode::CasMismatch => println!("{:?}", problem.current),
    ///     other => println!("the new token is {:?}", other?.cas),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn cas(&self, key: impl Into<Name>, cas: Cas, value: Value) -> Write<'_> {
        self.put(key, value).cas(cas)
    }

    /// Changes parts of a document; fails with `not_found`. The patch is a merge patch (RFC 7396, an object), a JSON Patch
    /// (RFC 6902) or a list of update operators such as `{"op": "inc", "path": "stock", "value": -1}`.
    pub fn patch(&self, key: impl Into<Name>, patch: Value) -> Write<'_> {
        Write::new(self, Op::patch(key, patch))
    }

    /// [`Client::put`] of anything that has a JSON form.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Order {
    ///     status: String,
    /// }
    /// let written = client.put_json("orders/o42", &Order { status: "new".into() }).await?;
    /// let order = client.get_json::<Order>("orders/o42").await?.expect("it was written");
    /// assert_eq!((order.content.status.as_str(), order.entry.cas), ("new", written.cas));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_json<T: Serialize + ?Sized>(&self, key: impl Into<Name>, value: &T) -> Write<'_> {
        Write::new(self, Op::put_json(key, value))
    }

    /// [`Client::insert`] of anything that has a JSON form.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::api::ErrorCode;
    /// use serde_json::json;
    ///
    /// // Whoever is first has the name.
    /// match client.insert_json("names/ann", &json!({"user": 7})).await {
    ///     Err(error) if error.code() == Some(ErrorCode::AlreadyExists) => println!("taken"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_json<T: Serialize + ?Sized>(&self, key: impl Into<Name>, value: &T) -> Write<'_> {
        Write::new(self, Op::insert_json(key, value))
    }

    /// [`Client::cas`] with anything that has a JSON form.
    pub fn cas_json<T: Serialize + ?Sized>(&self, key: impl Into<Name>, cas: Cas, value: &T) -> Write<'_> {
        self.put_json(key, value).cas(cas)
    }

    /// [`Client::patch`] with anything that has a JSON form.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use serde_json::json;
    ///
    /// // A merge patch: `note` goes, the rest of the order stays.
    /// client.patch_json("orders/o1", &json!({"status": "paid", "note": null})).await?;
    /// // Operators: nobody has to know how many there are.
    /// client.patch_json("stock/plums", &json!([{"op": "inc", "path": "left", "value": -1}])).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch_json<T: Serialize + ?Sized>(&self, key: impl Into<Name>, patch: &T) -> Write<'_> {
        Write::new(self, Op::patch_json(key, patch))
    }

    /// Deletes; fails with `not_found`.
    pub fn remove(&self, key: impl Into<Name>) -> Write<'_> {
        Write::new(self, Op::remove(key))
    }

    /// Locks an entry, which is a part of it and nothing else than [`Client::lock`]: for `time`, at most 30 s (15 s for zero or more),
    /// only writes with the `cas` of the answer are applied, and the first of them ends the lock. `lock_ms` of the answer is the time
    /// that was given. With [`Write::prev`] the answer has the entry. Fails with `locked` while somebody else holds it, at once or after
    /// [`Write::wait`], and with `not_found`.
    pub fn lock_entry(&self, key: impl Into<Name>, time: Duration) -> Write<'_> {
        Write::new(self, Op::lock_entry(key, time))
    }

    /// Lets the lock of an entry hold for `time` from now; `cas` is what [`Client::lock_entry`] answered. Fails with `locked` if that is not the
    /// key, and with `not_lock_holder` if the lock has ended.
    pub fn extend_entry_lock(&self, key: impl Into<Name>, cas: Cas, time: Duration) -> Write<'_> {
        Write::new(self, Op::extend_entry_lock(key, cas, time))
    }

    /// Ends such a lock without writing; fails as [`Client::extend_entry_lock`] does.
    pub fn unlock_entry(&self, key: impl Into<Name>, cas: Cas) -> Write<'_> {
        Write::new(self, Op::unlock_entry(key, cas))
    }

    /// Reads an entry and sets its time to live in one step; zero for ever. Fails with `not_found`.
    pub fn get_and_touch(&self, key: impl Into<Name>, ttl: Duration) -> Write<'_, EntryView> {
        Write::new(self, Op::get_and_touch(key, ttl))
    }

    /// Reads an entry and locks it in one step, as [`Client::lock_entry`] does: `cas` of the entry is the key to the lock, `lock_ms` the
    /// time that was given. Fails with `locked` while somebody else holds it, and with `not_found`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// use serde_json::json;
    ///
    /// let order = client.get_and_lock_entry("orders/o1", Duration::from_secs(20)).await?;
    /// let mut content: serde_json::Value = order.json()?;
    /// content["status"] = json!("paid");
    /// // The write with the key ends the lock.
    /// client.cas_json("orders/o1", order.cas.expect("the key of the lock"), &content).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_and_lock_entry(&self, key: impl Into<Name>, time: Duration) -> Write<'_, EntryView> {
        Write::new(self, Op::get_and_lock_entry(key, time))
    }

    /// Sets the time to live from now, changes nothing else; zero for ever. Fails with `not_found`.
    pub fn touch(&self, key: impl Into<Name>, ttl: Duration) -> Write<'_> {
        Write::new(self, Op::touch(key, ttl))
    }
}

/// What no entry ever has.
const NO_ENTRY: Cas = Cas::new(0);
/// Pause between two looks at an entry whose path leads elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy)]
enum Freshness {
    Linearizable,
    Local,
    AtLeast(u64),
}

/// A read to be awaited.
#[must_use = "does nothing until awaited"]
#[derive(Debug)]
pub struct Get<'a> {
    client: &'a Client,
    key: Name,
    revision: Option<u64>,
    freshness: Freshness,
    timeout: Option<Duration>,
}

impl Get<'_> {
    /// The entry as it was at this revision.
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Whatever the asked node has: fast, maybe stale.
    pub fn local(mut self) -> Self {
        self.freshness = Freshness::Local;
        self
    }

    /// At least as fresh as this revision, from the asked node.
    pub fn min_revision(mut self, revision: u64) -> Self {
        self.freshness = Freshness::AtLeast(revision);
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn call(&self) -> Result<Call, Error> {
        let mut call = match (self.revision, self.freshness) {
            (None, Freshness::Linearizable) => {
                let op = OpText::new(OpKind::Get, &self.key)?.write(0)?;
                Call::op(op, Intent::Read, self.client.read_preference())
            }
            _ => self.route_call()?,
        };
        call.timeout = self.timeout;
        Ok(call)
    }

    /// Whether it is asked for as the only one of a range, whose bounds stand in the query: proxies would change the key in a path.
    fn is_range(&self) -> bool {
        let is_op = self.revision.is_none() && matches!(self.freshness, Freshness::Linearizable);
        !is_op && is_often_changed(&self.key)
    }

    /// What no operation can say.
    fn route_call(&self) -> Result<Call, Error> {
        // No key is none, in either form.
        let path = key_path(&self.key)?;
        let mut target = if self.is_range() { only(&self.key) } else { path };
        if let Some(revision) = self.revision {
            push_query(&mut target, "revision", revision);
        }
        match self.freshness {
            Freshness::Linearizable => {}
            Freshness::Local => push_query(&mut target, "consistency", "local"),
            Freshness::AtLeast(revision) => push_query(&mut target, "min_revision", revision),
        }
        let preference = match self.freshness {
            Freshness::Linearizable => self.client.read_preference(),
            Freshness::Local | Freshness::AtLeast(_) => Preference::Any,
        };
        Call::new(Method::GET, target, Intent::Read, preference)
    }
}

impl<'a> IntoFuture for Get<'a> {
    type Output = Result<Option<EntryView>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let call = self.call()?;
            if self.is_range() {
                return self.client.fetch(call).await.map(only_entry);
            }
            self.client.fetch_if_there(call).await
        })
    }
}

/// The range that has no other key than this.
fn only(key: &Name) -> String {
    let mut target = String::from("/v1/kv");
    push_name(&mut target, "start", key);
    push_name(&mut target, "end", &Name::from([key.as_bytes(), b"\0".as_slice()].concat()));
    target
}

/// The entry of such a range, shown as in an answer that is about it alone.
fn only_entry(page: ListAnswer) -> Option<EntryView> {
    let mut entry = page.entries.into_iter().next()?;
    (entry.revision, entry.index) = (Some(page.revision), Some(page.index));
    Some(entry)
}

/// A write to be awaited. Carries a request id from the beginning, so its retries are safe.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::api::{Criterion, Operator};
/// use serde_json::json;
///
/// let is_new = Criterion::new("status", Operator::Eq, "new");
/// let paid = client
///     .patch_json("orders/o1", &json!({"status": "paid"}))
///     .only_if(is_new)
///     .ttl(Duration::from_secs(86_400))
///     .prev()
///     .await?;
/// println!("it was {:?} before", paid.prev);
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug)]
pub struct Write<'a, A = WriteAnswer> {
    client: &'a Client,
    op: Op,
    dry_run: bool,
    request_id: RequestId,
    timeout: Option<Duration>,
    answer: PhantomData<fn() -> A>,
}

impl<'a, A> Write<'a, A> {
    pub(crate) fn new(client: &'a Client, op: Op) -> Self {
        let (request_id, answer) = (RequestId::random(), PhantomData);
        Self { client, op, dry_run: false, request_id, timeout: None, answer }
    }

    /// Only while the entry has this token.
    pub fn cas(mut self, cas: Cas) -> Self {
        self.op = self.op.cas(cas);
        self
    }

    /// While somebody else holds the lock, waits so long for it, up to a minute, first come first served; then fails with `locked`. For
    /// [`Client::lock_entry`] and [`Client::get_and_lock_entry`]. Drop the future, and nobody waits any more. The wait comes on top of the
    /// deadline.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.op = self.op.wait(wait);
        self
    }

    /// Only if there is no entry. For [`Client::put`].
    pub fn if_absent(mut self) -> Self {
        self.op = self.op.if_absent();
        self
    }

    /// Only if there is an entry.
    pub fn if_present(mut self) -> Self {
        self.op = self.op.if_present();
        self
    }

    /// Only while this holds of the entry; several must all hold. Fails with `condition_not_met`, which says what does not
    /// hold and carries the entry as it is. Not for an insert, which has its own condition.
    pub fn only_if(mut self, criterion: Criterion) -> Self {
        self.op = self.op.only_if(criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn only_if_json(mut self, criterion: &str) -> Self {
        self.op = self.op.only_if_json(criterion);
        self
    }

    /// Time to live from the moment the write applies, in milliseconds rounded up. Without it a put makes an entry that never expires; zero
    /// fails, since a time that was left and came to nothing must not become for ever. Only [`Client::touch`] takes zero for that.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.op = self.op.ttl(ttl);
        self
    }

    /// The entry expires when it would have without this write: of puts, replacements and patches.
    pub fn keep_ttl(mut self) -> Self {
        self.op = self.op.keep_ttl();
        self
    }

    /// The entry goes with this session from now on: it is removed when that ends. A [`crate::Session`] or its id.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.op = self.op.session(session);
        self
    }

    /// Only while this token holds its lock or leads its election; fails with `guard_failed`. Take a [`crate::LockGuard`], a
    /// [`crate::Leadership`], or a [`Guard`] made of the token that another process was given.
    pub fn guarded_by(mut self, guard: impl Into<Guard>) -> Self {
        self.op = self.op.guarded_by(guard);
        self
    }

    /// Answer with the entry as it was before.
    pub fn prev(mut self) -> Self {
        self.op = self.op.prev();
        self
    }

    /// Say what would happen, write nothing.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat a write whose outcome stayed unknown.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::RequestId;
    ///
    /// let id: RequestId = "o62-create".parse()?;
    /// let first = client.insert_json("orders/o62", "new").request_id(id.clone()).await?;
    /// // The same again, perhaps by a process that was started anew: applied once, answered twice.
    /// let again = client.insert_json("orders/o62", "new").request_id(id).await?;
    /// assert!(again.replayed && again.cas == first.cas);
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn into_call(self) -> Result<Call, Error> {
        let op = self.op.text(self.dry_run, Some(self.request_id.as_str()))?;
        let mut call = Call::op(op, Intent::Write(self.request_id), Preference::Leader);
        (call.timeout, call.hold) = (self.timeout, self.op.waits());
        // As a line it would keep back others that share the connection.
        call.is_line &= call.hold.is_zero();
        Ok(call)
    }
}

impl<'a, A: DeserializeOwned + 'a> IntoFuture for Write<'a, A> {
    type Output = Result<A, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.client;
        client.ask(self.into_call())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::api::Operator;

    fn client() -> Client {
        Client::new("127.0.0.1:1").expect("valid")
    }

    fn wire<A>(write: Write<'_, A>) -> String {
        let call = write.request_id("id".parse().expect("an id")).into_call().expect("valid");
        String::from_utf8(call.body.to_vec()).expect("UTF-8")
    }

    #[test]
    fn a_write_says_on_the_wire_what_was_asked_for() {
        let client = client();
        let write =
            client.put("a b", Value::bytes("x")).cas(Cas::new(7)).ttl(Duration::from_millis(1_500)).prev().dry_run();
        let text = r#"{"op":"replace","key":"a b","value_base64":"eA==","cas":"7","ttl_ms":1500,"prev":true,"dry_run":true,"request_id":"id"}"#;
        assert_eq!(wire(write), text);
        let value = || Value::json_text("1.50");
        for (write, text) in [
            (client.put("k", value()), r#"{"op":"upsert","key":"k","value":1.50,"request_id":"id"}"#),
            (client.insert("k", value()), r#"{"op":"insert","key":"k","value":1.50,"request_id":"id"}"#),
            (client.replace("k", value()), r#"{"op":"replace","key":"k","value":1.50,"request_id":"id"}"#),
            (
                client.put("k", value()).session("3").guarded_by(Guard::lock("l", 9)),
                r#"{"op":"upsert","key":"k","value":1.50,"session":"3","guard":{"lock":"l","token":"9"},"request_id":"id"}"#,
            ),
            (
                client.patch("k", Value::json_text("{}")).cas(Cas::new(7)),
                r#"{"op":"update","key":"k","patch":{},"cas":"7","request_id":"id"}"#,
            ),
            (
                client.remove("k").only_if(Criterion::new("n", Operator::Eq, 1)).only_if(Criterion::exists("m", true)),
                r#"{"op":"remove","key":"k","if":[{"field":"n","op":"eq","value":1},{"field":"m","op":"exists"}],"request_id":"id"}"#,
            ),
            (
                client.lock_entry("k", Duration::from_secs(2)).prev(),
                r#"{"op":"lock","key":"k","lock_ms":2000,"prev":true,"request_id":"id"}"#,
            ),
            (client.unlock_entry("k", Cas::new(7)), r#"{"op":"unlock","key":"k","cas":"7","request_id":"id"}"#),
            (client.remove("k").if_present(), r#"{"op":"remove","key":"k","request_id":"id"}"#),
            (
                client.put("k", value()).if_absent().cas(Cas::new(7)),
                r#"{"op":"replace","key":"k","value":1.50,"cas":"7","request_id":"id"}"#,
            ),
            (client.insert("k", value()).if_present(), r#"{"op":"replace","key":"k","value":1.50,"request_id":"id"}"#),
            (client.touch("k", Duration::ZERO), r#"{"op":"touch","key":"k","ttl_ms":0,"request_id":"id"}"#),
            // Little time is not none, which would be for ever.
            (client.touch("k", Duration::from_nanos(1)), r#"{"op":"touch","key":"k","ttl_ms":1,"request_id":"id"}"#),
        ] {
            assert_eq!(wire(write), text);
        }
        let text = r#"{"op":"get_and_touch","key":"k","ttl_ms":5,"request_id":"id"}"#;
        assert_eq!(wire(client.get_and_touch("k", Duration::from_millis(5))), text);
        let text = r#"{"op":"get_and_lock","key":"k","lock_ms":5,"request_id":"id"}"#;
        assert_eq!(wire(client.get_and_lock_entry("k", Duration::from_millis(5))), text);
        let waiting = client.lock_entry("k", Duration::from_millis(5)).wait(Duration::from_secs(2));
        let call = waiting.into_call().expect("valid");
        assert_eq!((call.hold, call.is_line), (Duration::from_secs(2), false));
        assert!(String::from_utf8_lossy(&call.body).contains(r#""lock_ms":5,"wait_ms":2000,"#), "{:?}", call.body);
    }

    #[test]
    fn a_write_that_makes_no_sense_is_not_sent() {
        let client = client();
        for write in [
            client.put("", Value::json_text("1")),
            client.put("k", Value::json_text("1,\"cas\":\"7\"")),
            client.patch("k", Value::bytes("x")),
            client.remove("k").if_absent(),
            client.remove("k").wait(Duration::from_secs(1)),
            client.remove("k").only_if_json("{} {}"),
        ] {
            assert!(matches!(write.into_call(), Err(Error::Invalid(_) | Error::Decode { .. })));
        }
    }

    #[test]
    fn a_time_that_came_to_nothing_is_not_for_ever() {
        let (client, value) = (client(), || Value::json_text("1"));
        let none = Instant::now().saturating_duration_since(Instant::now() + Duration::from_secs(1));
        for write in [
            client.put("k", value()).ttl(none),
            client.insert("k", value()).ttl(none),
            client.replace("k", value()).cas(Cas::new(7)).ttl(none),
            client.patch("k", Value::json_text("{}")).ttl(none),
            client.put("k", value()).ttl(none).ttl(Duration::from_secs(1)),
        ] {
            let why = write.into_call().map(|_| ()).expect_err("zero is no time to live").to_string();
            assert!(why.contains("time to live of zero"), "{why}");
        }
        assert!(Op::put("k", value()).ttl(none).text(false, None).is_err());
        // A touch says nothing else, so its zero is meant.
        assert!(Op::touch("k", none).text(false, None).is_ok());
    }

    #[test]
    fn what_operations_cannot_say_is_read_by_its_route() {
        let client = client();
        let target = |get: Get<'_>| get.call().expect("valid").target.to_string();
        assert_eq!(target(client.get("a b")), "/v1/ops");
        assert_eq!(target(client.get("a b").revision(7).local()), "/v1/kv/a%20b?revision=7&consistency=local");
        assert_eq!(target(client.get("k").min_revision(9)), "/v1/kv/k?min_revision=9");
        // Proxies would change the path of these.
        let range = "/v1/kv?start=a//b&end=a//b%00&revision=7&consistency=local";
        assert_eq!(target(client.get("a//b").revision(7).local()), range);
        assert_eq!(target(client.get("a//b")), "/v1/ops");
        assert!(client.get("").local().call().is_err(), "no key is no range");
    }

    #[test]
    fn every_write_has_a_fresh_id_or_the_given_one() {
        let client = client();
        let id = |write: Write<'_>| write.into_call().expect("valid").request_id().expect("a write has an id").clone();
        assert_ne!(id(client.remove("k")), id(client.remove("k")));
        let own: RequestId = "order-1".parse().expect("valid");
        assert_eq!(id(client.touch("k", Duration::ZERO).request_id(own.clone())), own);
    }

    #[test]
    fn values_come_back_as_json_or_bytes() {
        let text = r#"{"key":"k","value":{"a":1.50},"content_type":"json","cas":"1","create_revision":"1","mod_revision":"1","version":1}"#;
        let entry: EntryView = serde_json::from_str(text).expect("valid");
        assert_eq!(entry.bytes().expect("has bytes").as_deref(), Some(br#"{"a":1.50}"#.as_slice()));
        assert!(entry.json::<Vec<u8>>().is_err());
        let bytes = EntryView { value: None, value_base64: Some("AP8=".into()), ..entry };
        assert_eq!(bytes.bytes().expect("has bytes").as_deref(), Some([0, 255].as_slice()));
    }
}
