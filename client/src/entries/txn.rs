//! Transactions: checks on any keys, and steps that take effect together or not at all.
//!
//! Owns how a transaction is put together, and its bounds. One in another is described by the same type, without a client.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::api::{Cas, Criterion, Name, TXN_DEPTH_MAX, TXN_STEPS_MAX, TxnAnswer, TxnCheck};
use crate::call::criteria::Criteria;
use crate::call::error::Error;
use crate::call::operation::Op;
use crate::call::request::{Call, RequestId};
use crate::client::Client;

/// A transaction: from [`Client::txn`], to be awaited, or from [`Txn::new`], as a step of another.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::{Criterion, Operator};
/// use quorate_client::Op;
/// use serde_json::json;
///
/// // From one account to the other, if there is enough on the first.
/// let amount = |by: i64| json!([{"op": "inc", "path": "balance", "value": by}]);
/// let paid = client
///     .txn()
///     .when("accounts/ann")
///     .matches(Criterion::new("balance", Operator::Gte, 40))
///     .then(Op::patch_json("accounts/ann", &amount(-40)))
///     .then(Op::patch_json("accounts/ben", &amount(40)))
///     .otherwise(Op::get("accounts/ann"))
///     .await?;
/// println!("{}", if paid.succeeded { "paid" } else { "not enough" });
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until awaited"]
#[derive(Debug)]
pub struct Txn<C = ()> {
    client: C,
    body: Body,
    /// Checks and steps, those of nested transactions included.
    steps: usize,
    /// How many transactions are in one another here, this one not counted.
    depth: usize,
    wrong: Option<Error>,
    request_id: RequestId,
    timeout: Option<Duration>,
}

/// Fields as in [`crate::api::TxnRequest`], which a test holds it to; what is in the lists is for the nodes to read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default, rename = "if", skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    then: Vec<Box<RawValue>>,
    #[serde(default, rename = "else", skip_serializing_if = "Vec::is_empty")]
    otherwise: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// A step of a transaction: an [`Op`], or a [`Txn`] of its own.
#[derive(Debug)]
pub struct Step {
    text: Result<Box<RawValue>, Error>,
    steps: usize,
    depth: usize,
}

/// What is to be checked of an entry; each method says so and gives the transaction back.
#[must_use = "checks nothing until it is said what"]
#[derive(Debug)]
pub struct When<C> {
    txn: Txn<C>,
    key: Name,
}

impl Client {
    /// Steps on any keys that take effect together or not at all. If all checks hold, those of [`Txn::then`] are taken, else
    /// those of [`Txn::otherwise`].
    pub fn txn(&self) -> Txn<&Client> {
        Txn::of(self)
    }

    /// Takes a transaction as JSON text, as `POST /v1/txn` does, such as
    /// `{"if": [{"key": "a", "exists": true}], "then": [{"op": "remove", "key": "a"}]}`.
    pub fn txn_json(&self, text: &str) -> Txn<&Client> {
        let mut txn = self.txn();
        match serde_json::from_str::<Body>(text) {
            Ok(body) => {
                txn.steps = body.checks.len() + body.then.len() + body.otherwise.len();
                match body.request_id.as_deref().map(str::parse) {
                    Some(Ok(id)) => txn.request_id = id,
                    Some(Err(error)) => txn.wrong = Some(error),
                    None => {}
                }
                txn.body = body;
            }
            Err(error) => txn.wrong = Some(Error::Invalid(format!("not a transaction: {error}"))),
        }
        txn
    }
}

impl Txn {
    /// A transaction to be a step of another.
    pub fn new() -> Self {
        Self::of(())
    }
}

impl Default for Txn {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Txn<C> {
    fn of(client: C) -> Self {
        let request_id = RequestId::random();
        Self { client, body: Body::default(), steps: 0, depth: 0, wrong: None, request_id, timeout: None }
    }

    /// Checks something of this entry, beside all other checks.
    pub fn when(self, key: impl Into<Name>) -> When<C> {
        When { txn: self, key: key.into() }
    }

    /// What to do if all checks hold. A step sees what those before it did; a key may be written once.
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        if let Some(text) = self.count(step.into()) {
            self.body.then.push(text);
        }
        self
    }

    /// What to do if one of them does not.
    pub fn otherwise(mut self, step: impl Into<Step>) -> Self {
        if let Some(text) = self.count(step.into()) {
            self.body.otherwise.push(text);
        }
        self
    }

    fn count(&mut self, step: Step) -> Option<Box<RawValue>> {
        self.steps += step.steps;
        self.depth = self.depth.max(step.depth);
        match step.text {
            Ok(text) => Some(text),
            Err(error) => {
                self.wrong.get_or_insert(error);
                None
            }
        }
    }
}

impl<C> When<C> {
    /// It has this token.
    pub fn cas(self, cas: Cas) -> Txn<C> {
        self.check(|check| check.cas = Some(cas.to_string()))
    }

    /// It is there.
    pub fn exists(self) -> Txn<C> {
        self.check(|check| check.exists = Some(true))
    }

    /// There is none.
    pub fn absent(self) -> Txn<C> {
        self.check(|check| check.exists = Some(false))
    }

    /// This holds of it.
    pub fn matches(self, criterion: Criterion) -> Txn<C> {
        self.criteria([criterion])
    }

    /// All of these hold of it.
    pub fn criteria(self, criteria: impl IntoIterator<Item = Criterion>) -> Txn<C> {
        let mut list = Criteria::default();
        criteria.into_iter().for_each(|criterion| list.add(&criterion));
        match list.list() {
            Ok(list) => self.check(|check| check.condition = Some(list)),
            Err(error) => self.refuse(error),
        }
    }

    fn check(mut self, what: impl FnOnce(&mut TxnCheck)) -> Txn<C> {
        let mut check = TxnCheck { key: std::mem::take(&mut self.key), ..TxnCheck::default() };
        what(&mut check);
        if check.key.is_empty() {
            return self.refuse(Error::Invalid("a key has at least one character".into()));
        }
        match to_raw_value(&check) {
            Ok(text) => self.txn.body.checks.push(text),
            Err(source) => return self.refuse(Error::Decode { what: "a check has no JSON form".into(), source }),
        }
        self.txn.steps += 1;
        self.txn
    }

    fn refuse(mut self, error: Error) -> Txn<C> {
        self.txn.wrong.get_or_insert(error);
        self.txn
    }
}

impl From<Op> for Step {
    fn from(op: Op) -> Self {
        // JSON is UTF-8; serde_json says so if ever it is not.
        let text = op.text(false, None).and_then(|text| {
            serde_json::from_slice(&text)
                .map_err(|source| Error::Decode { what: "the operation has no JSON form".into(), source })
        });
        Self { text, steps: 1, depth: 0 }
    }
}

impl From<Txn> for Step {
    fn from(txn: Txn) -> Self {
        #[derive(Serialize)]
        struct Tagged<'a> {
            op: &'static str,
            #[serde(flatten)]
            body: &'a Body,
        }
        let text = match txn.wrong {
            Some(error) => Err(error),
            None => to_raw_value(&Tagged { op: "txn", body: &txn.body })
                .map_err(|source| Error::Decode { what: "the transaction has no JSON form".into(), source }),
        };
        Self { text, steps: txn.steps + 1, depth: txn.depth + 1 }
    }
}

impl Txn<&Client> {
    /// Say what would happen, write nothing.
    pub fn dry_run(mut self) -> Self {
        self.body.dry_run = true;
        self
    }

    /// An id of one's own instead of a random one: to repeat a transaction whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn into_call(mut self) -> Result<Call, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.steps > TXN_STEPS_MAX {
            let steps = self.steps;
            return Err(Error::Invalid(format!(
                "a transaction has at most {TXN_STEPS_MAX} checks and steps, not {steps}"
            )));
        }
        if self.depth > TXN_DEPTH_MAX {
            let depth = self.depth;
            return Err(Error::Invalid(format!("transactions are nested at most {TXN_DEPTH_MAX} deep, not {depth}")));
        }
        // The id goes in a header.
        self.body.request_id = None;
        let mut call = Call::write("/v1/txn", &self.body, self.request_id)?;
        call.timeout = self.timeout;
        Ok(call)
    }
}

impl<'a> IntoFuture for Txn<&'a Client> {
    type Output = Result<TxnAnswer, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.client;
        client.ask(self.into_call())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Operator, TxnRequest};
    use crate::call::value::Value;

    fn client() -> Client {
        Client::new("127.0.0.1:1").expect("valid")
    }

    #[test]
    fn a_transaction_says_on_the_wire_what_was_asked_for() {
        let client = client();
        let inner = Txn::new().when("c").absent().then(Op::put("c", Value::json_text("1.50"))).otherwise(Op::get("c"));
        let txn = client
            .txn()
            .when("a")
            .cas(Cas::new(7))
            .when("a")
            .matches(Criterion::new("n", Operator::Gt, 1))
            .when("b")
            .exists();
        let txn = txn.then(Op::remove("a").cas(Cas::new(7))).then(inner).otherwise(Op::get("a")).dry_run();
        let call = txn.into_call().expect("valid");
        let text = concat!(
            r#"{"if":[{"key":"a","cas":"7"},{"key":"a","if":[{"field":"n","op":"gt","value":1}]},{"key":"b","exists":true}],"#,
            r#""then":[{"op":"remove","key":"a","cas":"7"},{"op":"txn","if":[{"key":"c","exists":false}],"#,
            r#""then":[{"op":"upsert","key":"c","value":1.50}],"else":[{"op":"get","key":"c"}]}],"#,
            r#""else":[{"op":"get","key":"a"}],"dry_run":true}"#
        );
        assert_eq!(call.body, text);
        let read: TxnRequest = serde_json::from_str(text).expect("what nodes read");
        assert_eq!(serde_json::to_string(&read).expect("has JSON"), text);
    }

    #[test]
    fn a_transaction_in_json_goes_as_it_is_but_for_its_id() {
        let client = client();
        let txn = client.txn_json(r#"{"then":[{"op":"get","key":"a","new":1.50}],"request_id":"t-1"}"#);
        let call = txn.into_call().expect("valid");
        assert_eq!(call.body, r#"{"then":[{"op":"get","key":"a","new":1.50}]}"#);
        assert_eq!(call.request_id().expect("a write has one").as_str(), "t-1");
    }

    #[test]
    fn a_transaction_that_makes_no_sense_is_not_sent() {
        let client = client();
        let nested = |depth: usize| (0..depth).fold(Txn::new().then(Op::get("k")), |txn, _| Txn::new().then(txn));
        let many = |count: usize| (0..count).fold(client.txn(), |txn, _| txn.then(Op::get("k")));
        assert!(many(TXN_STEPS_MAX).into_call().is_ok());
        assert!(client.txn().then(nested(TXN_DEPTH_MAX - 1)).into_call().is_ok());
        for (txn, hint) in [
            (many(TXN_STEPS_MAX + 1), "at most 1024"),
            (client.txn().then(nested(TXN_DEPTH_MAX)), "at most 4 deep"),
            (client.txn().when("").exists(), "a key"),
            (client.txn().otherwise(Txn::new().then(Op::remove("").cas(Cas::new(1)))), "a key"),
            (client.txn_json(r#"{"them":[]}"#), "them"),
            (client.txn_json(r#"{"request_id":"a b"}"#), "request id"),
        ] {
            let error = txn.into_call().expect_err("makes no sense").to_string();
            assert!(error.contains(hint), "{hint}: {error}");
        }
    }
}
