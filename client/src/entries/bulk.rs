//! Bulks: many operations in one request, each applied on its own.
//!
//! Owns what a request takes at most. Each operation is written into the body as it comes, so a bulk is in memory once.

use std::future::IntoFuture;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderValue;

use crate::api::{self, BULK_OPS_MAX, BulkAnswer, OpKind};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::operation::Op;
use crate::call::request::{Call, Intent, RequestId};
use crate::client::Client;

const START: &[u8] = b"{\"ops\":[";

/// A bulk to be awaited. Carries a request id from the beginning, so its retries are safe, also of one that was applied in
/// part: that goes on where it stopped.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::{Op, Value};
///
/// let orders = (1..=3).map(|n| Op::insert(format!("orders/o{n}"), Value::json_text(r#"{"status":"new"}"#)));
/// let done = client.bulk().extend(orders).push(Op::remove("orders/old")).failures_only().await?;
/// for failed in done.results {
///     println!("{}: {:?}", failed.key, failed.detail);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug)]
pub struct Bulk<'a> {
    client: &'a Client,
    body: Vec<u8>,
    len: usize,
    wrong: Option<Error>,
    failures_only: bool,
    dry_run: bool,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl Client {
    /// Many operations in one request, at most 10,000: each is applied or refused on its own, in order. An insert that finds
    /// its key is skipped, and so is an operation whose condition does not hold.
    pub fn bulk(&self) -> Bulk<'_> {
        Bulk {
            client: self,
            body: START.to_vec(),
            len: 0,
            wrong: None,
            failures_only: false,
            dry_run: false,
            request_id: RequestId::random(),
            timeout: None,
        }
    }
}

impl<'a> Bulk<'a> {
    /// One more operation: any but [`Op::get`].
    pub fn push(mut self, op: Op) -> Self {
        let text = match op.kind() {
            OpKind::Get => Err(Error::Invalid("a bulk only writes".into())),
            _ => op.text(false, None),
        };
        self.add(text.as_deref());
        self
    }

    /// Takes an operation as JSON text, as `POST /v1/ops` does, such as `{"op": "remove", "key": "a"}`.
    pub fn push_json(mut self, op: &str) -> Self {
        // Text that is not whole would become part of what is around it.
        let checked = serde_json::from_str::<api::Op>(op);
        let checked = checked.map_err(|source| Error::Decode { what: "not an operation".into(), source });
        self.add(checked.map(|_| op.as_bytes()).as_ref().copied());
        self
    }

    /// One more operation for each of these.
    pub fn extend(self, ops: impl IntoIterator<Item = Op>) -> Self {
        ops.into_iter().fold(self, Self::push)
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none, which is refused.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Answer with the items that failed only, and the counts.
    pub fn failures_only(mut self) -> Self {
        self.failures_only = true;
        self
    }

    /// Say what would happen, write nothing.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat a bulk whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Keeps the first fault, to be told when the bulk is sent.
    fn add(&mut self, text: Result<&[u8], &Error>) {
        match text {
            Ok(text) => {
                if self.len > 0 {
                    self.body.push(b',');
                }
                self.body.extend_from_slice(text);
            }
            Err(error) if self.wrong.is_none() => {
                self.wrong = Some(Error::Invalid(format!("operation {}: {error}", self.len)));
            }
            Err(_) => {}
        }
        self.len += 1;
    }

    fn into_call(mut self) -> Result<Call, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if !(1..=BULK_OPS_MAX).contains(&self.len) {
            return Err(Error::Invalid(format!("a bulk has 1 to {BULK_OPS_MAX} operations, not {}", self.len)));
        }
        self.body.extend_from_slice(if self.dry_run { b"],\"dry_run\":true}" } else { b"]}" });
        let intent = Intent::Write(self.request_id);
        let mut call = Call::post("/v1/bulk", Bytes::from(self.body), intent, Preference::Leader);
        call.prefer = self.failures_only.then(|| HeaderValue::from_static("return=minimal"));
        call.timeout = self.timeout;
        Ok(call)
    }
}

impl<'a> IntoFuture for Bulk<'a> {
    type Output = Result<BulkAnswer, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.client;
        client.ask(self.into_call())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{BulkRequest, Cas};
    use crate::call::value::Value;

    fn client() -> Client {
        Client::new("127.0.0.1:1").expect("valid")
    }

    #[test]
    fn a_bulk_says_on_the_wire_what_was_asked_for() {
        let client = client();
        let bulk = client.bulk().push(Op::insert("a", Value::json_text("1.50")));
        let bulk = bulk
            .push_json(r#"{"op":"touch","key":"b","ttl_ms":5}"#)
            .extend([Op::remove("c").cas(Cas::new(7))])
            .dry_run();
        let call = bulk.failures_only().into_call().expect("valid");
        let text = r#"{"ops":[{"op":"insert","key":"a","value":1.50},{"op":"touch","key":"b","ttl_ms":5},{"op":"remove","key":"c","cas":"7"}],"dry_run":true}"#;
        assert_eq!(call.body, text);
        assert_eq!(call.prefer.expect("is there"), "return=minimal");
        let read: BulkRequest = serde_json::from_str(text).expect("what nodes read");
        assert_eq!((read.ops.len(), read.dry_run), (3, true));
    }

    #[test]
    fn a_bulk_that_makes_no_sense_is_not_sent() {
        let client = client();
        let many = (0..=BULK_OPS_MAX).map(|_| Op::remove("k"));
        let at_most = (0..BULK_OPS_MAX).map(|_| Op::remove("k"));
        assert!(client.bulk().extend(at_most).into_call().is_ok());
        for (bulk, hint) in [
            (client.bulk(), "not 0"),
            (client.bulk().extend(many), "not 10001"),
            (client.bulk().push(Op::remove("k")).push(Op::get("k")), "operation 1: a bulk only writes"),
            (client.bulk().push(Op::remove("")), "operation 0: a key"),
            (client.bulk().push_json(r#"{"op":"remove","key":"a"},{"op":"remove","key":"b"}"#), "operation 0"),
        ] {
            let error = bulk.into_call().expect_err("makes no sense").to_string();
            assert!(error.contains(hint), "{hint}: {error}");
        }
    }
}
