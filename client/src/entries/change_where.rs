//! Changes of everything that criteria find: `patch_where` (`update_where` over HTTP) and `delete_where`.
//!
//! Owns how a change goes on over its parts, each a write of its own under an id made of the first one's.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, Stream};

use crate::api::{Criterion, Guard, Name, Operator, WhereAnswer, WhereRequest};
use crate::call::criteria::Criteria;
use crate::call::error::Error;
use crate::call::op::patch_text;
use crate::call::operation::{NO_TTL, milliseconds};
use crate::call::request::{Call, RequestId};
use crate::call::value::Value;
use crate::client::Client;

/// A change of all that match: awaited it is one part, which looks at a bounded number of entries; [`ChangeWhere::parts`] goes
/// on to the end. Carries a request id from the beginning, so its retries are safe.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::pin::pin;
///
/// use futures::TryStreamExt;
/// use quorate_client::api::{Criterion, Operator};
/// use quorate_client::Value;
/// use serde_json::json;
///
/// let late = json!([{"op": "set", "path": "status", "value": "late"}]);
/// let change = client
///     .patch_where("orders/", Value::json(&late)?)
///     .filter("due", Operator::Lt, json!({"now": true}))
///     .only_if(Criterion::new("status", Operator::Neq, "paid"))
///     .limit(500);
/// let mut parts = pin!(change.parts());
/// while let Some(part) = parts.try_next().await? {
///     println!("{} changed, {} skipped", part.applied, part.skipped);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct ChangeWhere<'a> {
    client: &'a Client,
    patch: Option<Value>,
    request: WhereRequest,
    criteria: Criteria,
    condition: Criteria,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl Client {
    /// Changes parts of every document whose key begins with `prefix`, as [`Client::patch`] does. Without filters, of all of
    /// them.
    pub fn patch_where(&self, prefix: impl Into<Name>, patch: Value) -> ChangeWhere<'_> {
        ChangeWhere { patch: Some(patch), ..self.delete_where(prefix) }
    }

    /// Deletes every entry whose key begins with `prefix`. Without filters, all of them.
    pub fn delete_where(&self, prefix: impl Into<Name>) -> ChangeWhere<'_> {
        ChangeWhere {
            client: self,
            patch: None,
            request: WhereRequest { prefix: prefix.into(), ..WhereRequest::default() },
            criteria: Criteria::default(),
            condition: Criteria::default(),
            request_id: RequestId::random(),
            timeout: None,
        }
    }
}

impl<'a> ChangeWhere<'a> {
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

    /// What must hold of an entry that matched; where it does not, the entry is skipped, counted and shown.
    pub fn only_if(mut self, criterion: Criterion) -> Self {
        self.condition.add(&criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn only_if_json(mut self, criterion: &str) -> Self {
        self.condition.add_json(criterion);
        self
    }

    /// Time to live from the moment the change applies, in milliseconds rounded up; zero fails, see [`crate::Op::ttl`]. For
    /// [`Client::patch_where`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.request.ttl_ms = Some(milliseconds(ttl));
        self
    }

    /// Most entries that one part changes, up to 1000, which it is without this.
    pub fn limit(mut self, limit: u32) -> Self {
        self.request.limit = Some(limit);
        self
    }

    /// Goes on where the part that ended with this cursor stopped.
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.request.cursor = Some(cursor.into());
        self
    }

    /// Only while this token holds its lock or leads its election; else nothing is changed, and it fails with `guard_failed`.
    pub fn guarded_by(mut self, guard: impl Into<Guard>) -> Self {
        self.request.guard = Some(guard.into());
        self
    }

    /// Say what would happen, write nothing.
    pub fn dry_run(mut self) -> Self {
        self.request.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat a change whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// The id under which it is repeated, all parts of it.
    pub fn id(&self) -> &RequestId {
        &self.request_id
    }

    /// Deadline of each part instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// All parts, made one by one as the stream is read. The first has the id of this change, the others that and their
    /// number; so the whole can be repeated, under [`ChangeWhere::id`]: an error names only the id of its part. Ends after the
    /// first error.
    pub fn parts(self) -> impl Stream<Item = Result<WhereAnswer, Error>> + use<'a> {
        stream::try_unfold(Some((self, 0u64)), |at| async move {
            let Some((mut change, number)) = at else { return Ok(None) };
            // Before anything is sent: an id that has no room for the number of a part ends nothing half-way.
            change.id_of(u32::MAX.into())?;
            let part = change.fetch(number).await?;
            let next = part.cursor.clone().map(|cursor| {
                change.request.cursor = Some(cursor);
                (change, number + 1)
            });
            Ok(Some((part, next)))
        })
    }

    async fn fetch(&self, number: u64) -> Result<WhereAnswer, Error> {
        self.client.fetch(self.call(number)?).await
    }

    fn id_of(&self, number: u64) -> Result<RequestId, Error> {
        match number {
            0 => Ok(self.request_id.clone()),
            _ => format!("{}-{number}", self.request_id).parse(),
        }
    }

    fn call(&self, number: u64) -> Result<Call, Error> {
        if self.request.ttl_ms == Some(0) {
            return Err(Error::Invalid(NO_TTL.to_owned()));
        }
        let id = self.id_of(number)?;
        let request = WhereRequest {
            criteria: self.criteria.list()?,
            condition: self.condition.checked()?.map(<[_]>::to_vec),
            patch: self.patch.as_ref().map(patch_text).transpose()?,
            ..self.request.clone()
        };
        let route = if self.patch.is_some() { "/v1/update_where" } else { "/v1/delete_where" };
        let mut call = Call::write(route, &request, id)?;
        call.timeout = self.timeout;
        Ok(call)
    }
}

impl<'a> IntoFuture for ChangeWhere<'a> {
    type Output = Result<WhereAnswer, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.fetch(0).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_came_to_nothing_is_not_for_ever() {
        let client = Client::new("127.0.0.1:1").expect("valid");
        let call = |ttl| client.patch_where("a/", Value::json_text("{}")).ttl(ttl).call(0);
        let why = call(Duration::ZERO).map(|_| ()).expect_err("zero is no time to live").to_string();
        assert!(why.contains("time to live of zero"), "{why}");
        let body = call(Duration::from_nanos(1)).expect("little time is some").body;
        assert!(String::from_utf8_lossy(&body).contains(r#""ttl_ms":1"#), "{body:?}");
    }
}
