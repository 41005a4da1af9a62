//! Entries, single operations and listings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::{given, given_object};

/// Longest time for which an entry is locked, milliseconds. Who asks for more gets 15000: `lock_ms` of the answer says so.
pub const LOCK_MS_MAX: u64 = 30_000;

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ContentType {
    /// JSON: shown as it is in `value`.
    Json,
    /// Bytes: shown in base64 in `value_base64`.
    Bytes,
}

/// An entry as answers show it.
///
/// # Examples
///
/// ```
/// use quorate_api::EntryView;
///
/// // As `GET /v1/kv/orders/o42` answers.
/// let entry: EntryView = serde_json::from_str(
///     r#"{"key":"orders/o42","value":{"status":"new"},"content_type":"json","cas":"17",
///         "create_revision":"17","mod_revision":"17","version":1,"revision":"20","index":31}"#,
/// )?;
/// assert_eq!((entry.mod_revision, entry.revision), (17, Some(20)));
/// assert_eq!(entry.json::<serde_json::Value>()?["status"], "new");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct EntryView {
    /// The key.
    pub key: Name,
    /// The value, where it is JSON and was asked for.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<JsonText>,
    /// The value in base64, where it is bytes and was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
    /// How the value is stored.
    pub content_type: ContentType,
    /// The compare-and-swap token: an opaque decimal string. Null while the entry is locked, but in the answers to who locked it,
    /// which show the key to the lock.
    #[schema(required = true, value_type = Option<String>)]
    pub cas: Option<super::Cas>,
    /// Revision that created the entry.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub create_revision: u64,
    /// Revision of its last change.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub mod_revision: u64,
    /// Changes since creation, from 1.
    pub version: u64,
    /// Milliseconds left to live, for an entry that expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whether somebody holds a lock on the entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// Milliseconds left until the lock ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// The session that the entry goes with: it is removed when that ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Bytes of the value as it is stored, where a listing was asked for `sizes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_bytes: Option<u64>,
    /// Revision at which a read of this entry was evaluated. Absent where the entry is part of another answer.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub revision: Option<u64>,
    /// Log index at which a read of this entry was evaluated. Absent where the entry is part of another answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// After `get_and_touch` and `get_and_lock`: whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// After `get_and_touch` and `get_and_lock`: whether nothing was written because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

named!(EntryView, key);

impl EntryView {
    /// An entry with what every one has: without its value, and with nothing of what only some entries or answers have.
    pub fn new(
        key: Name,
        content_type: ContentType,
        cas: Option<super::Cas>,
        create_revision: u64,
        mod_revision: u64,
        version: u64,
    ) -> Self {
        Self {
            key,
            value: None,
            value_base64: None,
            content_type,
            cas,
            create_revision,
            mod_revision,
            version,
            ttl_ms: None,
            locked: false,
            lock_ms: None,
            session: None,
            value_bytes: None,
            revision: None,
            index: None,
            replayed: false,
            dry_run: false,
        }
    }

    /// The value as `T`. Fails where it is bytes and no JSON; one that was not asked for is read as `null`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        if self.value_base64.is_some() {
            return Err(ValueError::Bytes { key: self.key.clone() });
        }
        let text = self.value.as_ref().map_or("null", |value| value.0.get());
        serde_json::from_str(text).map_err(|source| ValueError::Type { key: self.key.clone(), source })
    }

    /// The value's bytes: the text of JSON, else the bytes as they were written. `None` where the value was not asked for.
    pub fn bytes(&self) -> Result<Option<Vec<u8>>, ValueError> {
        if let Some(json) = &self.value {
            return Ok(Some(json.0.get().as_bytes().to_vec()));
        }
        let Some(text) = &self.value_base64 else { return Ok(None) };
        let decoded = STANDARD.decode(text);
        decoded.map(Some).map_err(|source| ValueError::Base64 { key: self.key.clone(), source })
    }
}

/// A value is not what it was to be read as.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ValueError {
    /// It is no JSON.
    #[error("the value of `{key}` is bytes, not JSON")]
    Bytes {
        /// Of the entry.
        key: Name,
    },
    /// It is JSON of another type.
    #[error("the value of `{key}` is of another type: {source}")]
    Type {
        /// Of the entry.
        key: Name,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// A node sent bytes that are not base64.
    #[error("the value of `{key}` is not valid base64: {source}")]
    Base64 {
        /// Of the entry.
        key: Name,
        /// What does not fit.
        source: base64::DecodeError,
    },
}

/// JSON text carried through unparsed, so that numbers and formatting survive as they were stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(pub Box<RawValue>);

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// The answer to a write.
///
/// # Examples
///
/// ```
/// use quorate_api::{Cas, WriteAnswer};
///
/// // As `PUT /v1/kv/orders/o42` answers.
/// let answer: WriteAnswer = serde_json::from_str(
///     r#"{"key":"orders/o42","revision":"17","index":28,"cas":"17","create_revision":"17","version":1}"#,
/// )?;
/// assert_eq!(answer.cas, Some(Cas::new(17)));
/// assert!(!answer.replayed && !answer.dry_run);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WriteAnswer {
    /// The key.
    pub key: Name,
    /// Revision at which the write took effect; for a dry run, at which it was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which the write took effect; for a dry run, at which it was evaluated.
    pub index: u64,
    /// The new token, after `lock` and `extend` the key to the lock; absent once the entry is removed, and of a dry run, which makes none.
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
    /// Milliseconds until the lock ends by itself, after `lock` and `extend`: the time that was given, which is less than was
    /// asked for where that is more than a lock may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// The entry before the write, where `prev` was asked for and there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<EntryView>,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether nothing was written because a dry run was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

named!(WriteAnswer, key);

/// The kinds of a single operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum OpKind {
    /// Read the entry.
    Get,
    /// Create; fails with `already_exists`.
    Insert,
    /// Create or overwrite.
    Upsert,
    /// Overwrite; fails with `not_found`.
    Replace,
    /// Change parts of an existing document.
    Update,
    /// Delete; fails with `not_found`.
    Remove,
    /// Change only the time to live: `ttl_ms`, 0 for never.
    Touch,
    /// Read the entry and change its time to live: answers as `get` does, with the new time.
    GetAndTouch,
    /// Lock for `lock_ms`; the `cas` of the answer is the key. Fails with `locked`. Any write with the key ends the lock.
    Lock,
    /// Read the entry and lock it, in one step: answers as `get` does, with the key to the lock as `cas`.
    GetAndLock,
    /// Let a lock hold for `lock_ms` from now; takes the key as `cas`.
    Extend,
    /// End a lock; takes the key as `cas`.
    Unlock,
}

/// What becomes of the time to live of an entry that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TtlRule {
    /// It stays as it is.
    Keep,
}

/// A single operation: the body of `POST /v1/ops`.
///
/// # Examples
///
/// ```
/// use quorate_api::{Op, OpKind};
///
/// // The body of `POST /v1/ops`.
/// let op: Op = serde_json::from_str(
///     r#"{"op":"update","key":"orders/o1","patch":{"status":"paid"},"if":[{"field":"status","op":"eq",
///         "value":"new"}]}"#,
/// )?;
/// assert_eq!((op.op, op.key.text(), op.prev), (OpKind::Update, Some("orders/o1"), false));
/// // A field that no operation has is a fault.
/// assert!(serde_json::from_str::<Op>(r#"{"op":"get","key":"a","colour":1}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Op {
    /// What to do.
    pub op: OpKind,
    /// With which key.
    pub key: Name,
    /// New value as JSON (insert, upsert, replace).
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<JsonText>,
    /// New value as bytes in base64 (insert, upsert, replace).
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
    /// What to change (update): a merge patch (an object), a JSON Patch or a list of update operators: `{"op":"inc","path":
    /// "stock","value":-1}`, likewise `set`, `unset`, `append`, `max`, `min`, `now`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub patch: Option<JsonText>,
    /// Apply only while the entry has this token (all but get and insert).
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cas: Option<String>,
    /// Apply only while all of these hold (all but get and insert): a list of `{"field","op","value"}`, of `{"any":[…]}`,
    /// `{"all":[…]}` and `{"not":…}`. Fields are dotted paths or JSON pointers, or metadata such as `$version`.
    #[serde(default, rename = "if", deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub condition: Option<JsonText>,
    /// Milliseconds to live from the moment the write applies; 0 for never. Without it insert, upsert and replace
    /// make an entry that never expires, and update leaves the expiry as it is.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// `keep`: the entry expires when it would have without this write, and never where there is none (upsert, replace, update). Not
    /// beside `ttl_ms`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ttl: Option<TtlRule>,
    /// How long the lock holds (lock, get_and_lock, extend): at most 30000. 15000 without it, with 0 and with more; `lock_ms` of
    /// the answer is the time that was given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    /// While somebody else holds the lock, wait so many milliseconds for it, up to 60000, first come first served (lock,
    /// get_and_lock; not in a bulk, a transaction or a stream). Then the answer is `locked`, as at once without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60000)]
    pub wait_ms: Option<u64>,
    /// The id of the session that the entry goes with from now on: it is removed when that ends (insert, upsert, replace,
    /// update, touch). Without it insert, upsert and replace make an entry that goes with none, the others leave that as it is.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Apply only while this token holds its lock or leads its election (all but get).
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guard: Option<super::Guard>,
    /// Answer with the entry as it was before the write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prev: bool,
    /// Say what would happen, write nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

named!(Op, key);

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ListAnswer {
    /// The entries in key order (or reversed). Without values when `keys_only`, empty when `count_only`.
    pub entries: Vec<EntryView>,
    /// Entries in this page, or with `count_only` in the whole range.
    pub count: u64,
    /// Give this back as `cursor` for the next page. Absent on the last page. Pinned to `revision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Revision at which the whole listing is evaluated, all pages of it.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which this page was evaluated.
    pub index: u64,
}

/// The outcome of a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum RequestState {
    /// It took effect.
    Applied,
    /// It was decided and had no effect, see `code`.
    Rejected,
}

/// The answer of `GET /v1/requests/{id}`. An id that is not known is 404: never applied, no longer kept (it is for 15 minutes at least), or
/// still on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct RequestAnswer {
    /// The id asked for.
    pub request_id: String,
    /// What became of it.
    pub state: RequestState,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<super::ErrorCode>,
    /// Revision at which it took effect or was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub decided_revision: u64,
    /// Log index at which it took effect or was evaluated.
    pub decided_index: u64,
    /// The token that the write gave its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cas: Option<super::Cas>,
    /// Revision at which this answer was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which this answer was evaluated.
    pub index: u64,
}
