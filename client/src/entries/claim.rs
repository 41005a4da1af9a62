//! Claims: entries found and locked in one step, and what to do with each.
//!
//! Owns that whatever is done to a claimed entry carries the key to its lock.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::api::{Cas, ClaimAnswer, ClaimRequest, Criterion, EntryView, Guard, Name, Operator};
use crate::call::criteria::Criteria;
use crate::call::error::Error;
use crate::call::op::patch_text;
use crate::call::operation::{Op, milliseconds};
use crate::call::request::{Call, RequestId};
use crate::call::value::Value;
use crate::client::Client;
use crate::entries::kv::Write;

/// A claim to be awaited. Carries a request id from the beginning: a retry gives the same entries.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::api::Operator;
/// use quorate_client::Value;
///
/// // The most urgent letter that is not sent, marked in the same step.
/// let claims = client
///     .claim("letters/")
///     .filter("sent", Operator::Eq, false)
///     .order_by("-priority")
///     .patch(Value::json_text(r#"{"by":"worker 3"}"#))
///     .lock_time(Duration::from_secs(20))
///     .await?;
/// if let Some(letter) = claims.first() {
///     println!("{}", letter.key());
///     letter.complete().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    client: &'a Client,
    request: ClaimRequest,
    criteria: Criteria,
    patch: Option<Value>,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl Client {
    /// Finds entries whose keys begin with `prefix` and that nobody has locked, and locks them: one, for 15 s, if nothing else
    /// is said. No two claims get the same entry while its lock holds.
    pub fn claim(&self, prefix: impl Into<Name>) -> Claim<'_> {
        Claim {
            client: self,
            request: ClaimRequest { prefix: prefix.into(), ..ClaimRequest::default() },
            criteria: Criteria::default(),
            patch: None,
            request_id: RequestId::random(),
            timeout: None,
        }
    }
}

impl Claim<'_> {
    /// Only where this field compares so, on top of all other filters.
    pub fn filter(self, field: impl Into<String>, op: Operator, value: impl Into<serde_json::Value>) -> Self {
        self.matching(Criterion::new(field, op, value))
    }

    /// Only where this holds, on top of all other filters.
    pub fn matching(mut self, criterion: Criterion) -> Self {
        self.criteria.add(&criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn matching_json(mut self, criterion: &str) -> Self {
        self.criteria.add_json(criterion);
        self
    }

    /// First those that come first by this field, after those named before; `-` before the path for the greatest first.
    /// Without it, by key.
    pub fn order_by(mut self, field: impl Into<String>) -> Self {
        self.request.order_by.get_or_insert_default().push(field.into());
        self
    }

    /// Most entries to claim, up to 100.
    pub fn limit(mut self, limit: u32) -> Self {
        self.request.limit = Some(limit);
        self
    }

    /// How long the locks hold, at most 30 s (15 s for zero or more); `lock_ms` of each entry is the time that was given.
    pub fn lock_time(mut self, time: Duration) -> Self {
        self.request.lock_ms = Some(milliseconds(time));
        self
    }

    /// Changes each entry in the same step, as [`Client::patch`] does.
    pub fn patch(mut self, patch: Value) -> Self {
        self.patch = Some(patch);
        self
    }

    /// Only while this token holds its lock or leads its election; else nothing is claimed, and it fails with `guard_failed`.
    pub fn guarded_by(mut self, guard: impl Into<Guard>) -> Self {
        self.request.guard = Some(guard.into());
        self
    }

    /// Say what would be claimed, lock and change nothing.
    pub fn dry_run(mut self) -> Self {
        self.request.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat a claim whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn call(self) -> Result<Call, Error> {
        let request = ClaimRequest {
            criteria: self.criteria.checked()?.map(<[_]>::to_vec),
            patch: self.patch.as_ref().map(patch_text).transpose()?,
            ..self.request
        };
        let mut call = Call::write("/v1/claim", &request, self.request_id)?;
        call.timeout = self.timeout;
        Ok(call)
    }
}

impl<'a> IntoFuture for Claim<'a> {
    type Output = Result<Claims, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let client = self.client;
            let answer = client.fetch(self.call()?).await?;
            Ok(Claims { client: client.clone(), answer })
        })
    }
}

/// What was claimed, in order; none where there was nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claims {
    client: Client,
    /// The answer as the node gave it.
    pub answer: ClaimAnswer,
}

impl Claims {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.answer.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.answer.entries.is_empty()
    }

    /// The first of them, where there is one: for a claim of one.
    pub fn first(self) -> Option<Claimed> {
        self.into_iter().next()
    }
}

impl IntoIterator for Claims {
    type Item = Claimed;
    type IntoIter = std::vec::IntoIter<Claimed>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { client, answer } = self;
        let claimed = answer.entries.into_iter().map(|entry| Claimed { client: client.clone(), entry });
        claimed.collect::<Vec<_>>().into_iter()
    }
}

/// An entry that is locked for us. What ends the lock is refused with `cas_mismatch`, `locked` or `not_lock_holder` once
/// it has ended by itself.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// #[derive(serde::Deserialize)]
/// struct Letter {
///     to: String,
/// }
/// for claimed in client.claim("letters/").limit(10).await? {
///     match claimed.json::<Letter>() {
///         Ok(letter) => println!("to {}", letter.to),
///         // For others, who can read it.
///         Err(_) => drop(claimed.release().await?),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claimed {
    client: Client,
    /// The entry as it was claimed; its `cas` is the key to the lock.
    pub entry: EntryView,
}

impl Claimed {
    /// Which entry.
    pub fn key(&self) -> &Name {
        &self.entry.key
    }

    /// Its value as `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(self.entry.json()?)
    }

    /// An operation that carries the key to the lock. A dry run brings none, and what is done without is refused before it is sent.
    fn keyed(&self, op: impl FnOnce(Cas) -> Op) -> Write<'_> {
        let op = self.entry.cas.map(op).unwrap_or_else(|| {
            let why = format!("`{}` is not locked for us: it was claimed in a dry run", self.key());
            Op::remove(self.key()).wrong(why)
        });
        Write::new(&self.client, op)
    }

    /// Removes it: it is done with.
    pub fn complete(&self) -> Write<'_> {
        self.keyed(|cas| Op::remove(self.key()).cas(cas))
    }

    /// Gives it back as it is, for others to claim.
    pub fn release(&self) -> Write<'_> {
        self.keyed(|cas| Op::unlock_entry(self.key(), cas))
    }

    /// Lets the lock hold for `time` from now.
    pub fn extend(&self, time: Duration) -> Write<'_> {
        self.keyed(|cas| Op::extend_entry_lock(self.key(), cas, time))
    }

    /// Overwrites it, which ends the lock.
    pub fn replace(&self, value: Value) -> Write<'_> {
        self.keyed(|cas| Op::put(self.key(), value).cas(cas))
    }

    /// Changes parts of it, which ends the lock.
    pub fn patch(&self, patch: Value) -> Write<'_> {
        self.keyed(|cas| Op::patch(self.key(), patch).cas(cas))
    }
}
