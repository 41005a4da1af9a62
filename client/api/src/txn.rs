//! Transactions: checks on any keys, and steps that take effect together or not at all.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::{at_most, given, objects_at_most};
use super::{Criterion, EntryView, Failed, JsonText, Op, OpKind};

/// Most steps and checks of one transaction, nested ones included.
pub const TXN_STEPS_MAX: usize = 1_024;
/// How many transactions may stand in each other, the outermost counted.
pub const TXN_DEPTH_MAX: usize = 4;

/// The body of `POST /v1/txn`. If all checks hold, the steps of `then` are taken, else those of `else`.
///
/// # Examples
///
/// ```
/// use quorate_api::TxnRequest;
///
/// // The body of `POST /v1/txn`: both are written, or none.
/// let request: TxnRequest = serde_json::from_str(
///     r#"{"if":[{"key":"a","exists":true}],"then":[{"op":"upsert","key":"b","value":1},{"op":"remove",
///         "key":"a"}]}"#,
/// )?;
/// assert_eq!((request.checks.len(), request.then.len(), request.otherwise.len()), (1, 2, 0));
/// # Ok::<(), serde_json::Error>(())
/// ```
// A node reads the steps as texts, one after the other, so that each can have faults of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct TxnRequest<S = TxnStep> {
    /// What must hold, all of it. Without any, it holds.
    #[serde(
        default,
        rename = "if",
        deserialize_with = "objects_at_most::<TXN_STEPS_MAX, _, _>",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(max_items = 1024)]
    pub checks: Vec<TxnCheck>,
    /// What to do then. Each step sees what those before it did; a key may be written once on any way through.
    #[serde(default, deserialize_with = "at_most::<TXN_STEPS_MAX, _, _>", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<TxnStep>, max_items = 1024)]
    pub then: Vec<S>,
    /// What to do otherwise.
    #[serde(
        default,
        rename = "else",
        deserialize_with = "at_most::<TXN_STEPS_MAX, _, _>",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(value_type = Vec<TxnStep>, max_items = 1024)]
    pub otherwise: Vec<S>,
    /// Say what would happen, write nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What must hold of one entry: at least one of `cas`, `exists` and `if`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct TxnCheck {
    /// Of which entry.
    pub key: Name,
    /// It has this token.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cas: Option<String>,
    /// It is there, or is not.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// All of these hold of it.
    #[serde(default, rename = "if", deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Criterion>>, nullable = false)]
    pub condition: Option<Vec<JsonText>>,
}

named!(TxnCheck, key);

/// One step.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TxnStep {
    /// An operation of any kind, without `request_id` and `dry_run`, which belong to the whole.
    Op(Box<Op>),
    /// A transaction in the transaction.
    Txn(TxnBlock),
}

/// A transaction in a transaction, nested at most 4 deep, such as `{"op": "txn", "then": [{"op": "get", "key": "a"}]}`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct TxnBlock<S = TxnStep> {
    /// That it is one.
    pub op: TxnTag,
    /// What must hold, all of it.
    #[serde(
        default,
        rename = "if",
        deserialize_with = "objects_at_most::<TXN_STEPS_MAX, _, _>",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub checks: Vec<TxnCheck>,
    /// What to do then.
    #[serde(default, deserialize_with = "at_most::<TXN_STEPS_MAX, _, _>", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<TxnStep>, no_recursion)]
    pub then: Vec<S>,
    /// What to do otherwise.
    #[serde(
        default,
        rename = "else",
        deserialize_with = "at_most::<TXN_STEPS_MAX, _, _>",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(value_type = Vec<TxnStep>, no_recursion)]
    pub otherwise: Vec<S>,
}

/// The `op` of a transaction in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TxnTag {
    /// The only one.
    Txn,
}

/// The answer of `POST /v1/txn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TxnAnswer {
    /// Whether the checks held.
    pub succeeded: bool,
    /// Of each step of the branch that was taken.
    pub results: Vec<TxnResult>,
    /// The first check that did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TxnFailed>,
    /// Revision of all its writes; without any, at which it was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which it took effect or was evaluated.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was written because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A check that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TxnFailed {
    /// JSON pointer into the request, such as `/if/0`.
    pub pointer: String,
    /// Of which entry.
    pub key: Name,
    /// What does not hold.
    pub detail: String,
    /// For criteria: which of them, and what is there instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// The entry as it was then, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<EntryView>,
}

named!(TxnFailed, key);

/// What came of one step.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TxnResult {
    /// It read.
    Read(TxnRead),
    /// It wrote.
    Written(TxnWritten),
    /// It was a transaction.
    Txn(TxnBlockResult),
}

/// What a step `get` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TxnRead {
    /// `get`
    pub op: OpKind,
    /// The key.
    pub key: Name,
    /// The entry; `null` where there is none.
    #[schema(required = true)]
    pub entry: Option<EntryView>,
}

named!(TxnRead, key);

/// What a step wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TxnWritten {
    /// What it did.
    pub op: OpKind,
    /// The key.
    pub key: Name,
    /// Revision of the transaction.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// The new token, after `lock` the key to the lock; absent once the entry is removed, and of a dry run, which makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cas: Option<super::Cas>,
    /// Revision that created the entry; absent once it is removed, and where a dry run would create it.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub create_revision: Option<u64>,
    /// Changes since creation; absent once the entry is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Milliseconds to live, for an entry that expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Milliseconds until the lock ends by itself, after `lock` and `extend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// The entry before, where `prev` was asked for and there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<EntryView>,
}

named!(TxnWritten, key);

/// What came of a transaction in the transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TxnBlockResult {
    /// That it is one.
    pub op: TxnTag,
    /// Whether its checks held.
    pub succeeded: bool,
    /// Of each step of the branch that was taken.
    #[schema(no_recursion)]
    pub results: Vec<TxnResult>,
    /// The first check that did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TxnFailed>,
}

/// What tells the kinds of steps and results apart. serde's own ways to do that would take the JSON text in them apart.
fn op_of(text: &RawValue) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Tagged {
        op: String,
    }
    serde_json::from_str::<Tagged>(text.get()).map(|tagged| tagged.op)
}

impl TxnStep {
    /// Whether the text of a step is that of a transaction.
    pub fn is_txn(text: &RawValue) -> bool {
        op_of(text).is_ok_and(|op| op == "txn")
    }
}

impl<'de> Deserialize<'de> for TxnStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let step = match Self::is_txn(&text) {
            true => serde_json::from_str(text.get()).map(Self::Txn),
            false => serde_json::from_str(text.get()).map(Self::Op),
        };
        step.map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for TxnResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let result = op_of(&text).and_then(|op| match op.as_str() {
            "txn" => serde_json::from_str(text.get()).map(Self::Txn),
            "get" => serde_json::from_str(text.get()).map(Self::Read),
            _ => serde_json::from_str(text.get()).map(Self::Written),
        });
        result.map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_results_of_every_kind_keep_their_text() {
        let request = r#"{"if":[{"key":"a","exists":true,"if":[{"field":"n","op":"gt","value":1.50}]}],"then":[{"op":"upsert","key":"a","value":1.50},{"op":"txn","then":[{"op":"get","key":"b"}],"else":[{"op":"remove","key":"b"}]}]}"#;
        let read: TxnRequest = serde_json::from_str(request).expect("a transaction");
        assert!(matches!(read.then[..], [TxnStep::Op(_), TxnStep::Txn(_)]));
        assert_eq!(serde_json::to_string(&read).expect("has JSON"), request);
        let entry = r#"{"key":"b","value":1.50,"content_type":"json","cas":"1","create_revision":"1","mod_revision":"1","version":1}"#;
        let answer = format!(
            r#"{{"succeeded":true,"results":[{{"op":"upsert","key":"a","revision":"7","cas":"7"}},{{"op":"get","key":"c","entry":null}},{{"op":"txn","succeeded":false,"results":[{{"op":"get","key":"b","entry":{entry}}}],"failed":[{{"pointer":"/then/2/if/0","key":"b","detail":"is there"}}]}}],"revision":"7","index":9}}"#
        );
        let read: TxnAnswer = serde_json::from_str(&answer).expect("an answer");
        assert_eq!(serde_json::to_string(&read).expect("has JSON"), answer);
    }

    #[test]
    fn a_step_with_a_field_that_no_step_has_is_refused() {
        for bad in [r#"{"op":"txn","key":"a"}"#, r#"{"op":"get","key":"a","colour":1}"#, r#"{"key":"a"}"#] {
            assert!(serde_json::from_str::<TxnStep>(bad).is_err(), "{bad}");
        }
    }
}
