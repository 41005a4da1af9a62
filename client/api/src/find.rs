//! Finds and counts: criteria, and the answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::given;
use super::{EntryView, JsonText};

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Operator {
    /// Is the same: numbers by value, objects in any order.
    Eq,
    /// Is not; also of a missing field.
    Neq,
    /// Number beside number, string beside string: comes before.
    Lt,
    /// Comes before or is equal.
    Lte,
    /// Comes behind.
    Gt,
    /// Comes behind or is equal.
    Gte,
    /// Is one of a list.
    In,
    /// Is none of a list; also of a missing field.
    Nin,
    /// From the first to the second of a list of two, both included.
    Between,
    /// Is there, `null` included. No value.
    Exists,
    /// Is missing. No value.
    Nexists,
    /// A string with this in it, or an array with this element.
    Contains,
    /// Not so; also of a missing field.
    Ncontains,
    /// A string that starts with this.
    Starts,
    /// A string that ends with this.
    Ends,
    /// A string of this pattern: `%` for any characters, `_` for one.
    Like,
}

impl Operator {
    /// All of them, as they are written.
    pub const NAMES: [(&'static str, Self); 16] = [
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("in", Self::In),
        ("nin", Self::Nin),
        ("between", Self::Between),
        ("exists", Self::Exists),
        ("nexists", Self::Nexists),
        ("contains", Self::Contains),
        ("ncontains", Self::Ncontains),
        ("starts", Self::Starts),
        ("ends", Self::Ends),
        ("like", Self::Like),
    ];

    /// The operator of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
    }

    /// Whether it is written without a value.
    pub fn takes_no_value(self) -> bool {
        matches!(self, Self::Exists | Self::Nexists)
    }
}

/// What must hold of an entry.
///
/// # Examples
///
/// ```
/// use quorate_api::{Criterion, Operator};
///
/// let enough = Criterion::new("total", Operator::Gte, 50);
/// let voucher = Criterion::exists("voucher", true);
/// let text = serde_json::to_string(&Criterion::any([enough, !voucher]))?;
/// assert_eq!(
///     text,
///     r#"{"any":[{"field":"total","op":"gte","value":50},{"not":{"field":"voucher","op":"exists"}}]}"#
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Criterion {
    /// A comparison of a field.
    Predicate(Predicate),
    /// At least one of these holds.
    Any {
        /// The alternatives.
        #[schema(no_recursion)]
        any: Vec<Criterion>,
    },
    /// Each of these holds.
    All {
        /// The parts.
        #[schema(no_recursion)]
        all: Vec<Criterion>,
    },
    /// This does not hold.
    Not {
        /// What does not.
        #[schema(no_recursion)]
        not: Box<Criterion>,
    },
}

/// A comparison of a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// Dotted path or JSON pointer into the document, or a `$` name of metadata: `$key`, `$cas`, `$version`, `$create_revision`,
    /// `$mod_revision`, `$exists`, `$locked`, `$expires_at`.
    pub field: String,
    /// How it is compared.
    pub op: Operator,
    /// With what; a list for `in`, `nin` and `between`; nothing for `exists` and `nexists`. `{"now":true}` is the wall clock.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
}

impl Criterion {
    /// A comparison with a value.
    pub fn new(field: impl Into<String>, op: Operator, value: impl Into<serde_json::Value>) -> Self {
        Self::Predicate(Predicate { field: field.into(), op, value: Some(value.into()) })
    }

    /// The field is there, or is not.
    pub fn exists(field: impl Into<String>, exists: bool) -> Self {
        let op = if exists { Operator::Exists } else { Operator::Nexists };
        Self::Predicate(Predicate { field: field.into(), op, value: None })
    }

    /// At least one of these.
    pub fn any(any: impl IntoIterator<Item = Self>) -> Self {
        Self::Any { any: any.into_iter().collect() }
    }

    /// All of these.
    pub fn all(all: impl IntoIterator<Item = Self>) -> Self {
        Self::All { all: all.into_iter().collect() }
    }
}

impl std::ops::Not for Criterion {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not { not: Box::new(self) }
    }
}

/// How fresh a read has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ReadConsistency {
    /// Sees every write that was acknowledged before.
    Linearizable,
    /// Whatever the asked node has.
    Local,
}

/// The body of `POST /v1/find`.
///
/// # Examples
///
/// ```
/// use quorate_api::FindRequest;
///
/// let request = FindRequest {
///     prefix: Some("orders/".into()),
///     order_by: Some(vec!["-total".into()]),
///     limit: Some(20),
///     ..Default::default()
/// };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"prefix":"orders/","order_by":["-total"],"limit":20}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct FindRequest {
    /// Only keys that begin with this; may be empty.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prefix: Option<Name>,
    /// What holds of the entries, all of it.
    #[serde(rename = "where", default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Criterion>>, nullable = false)]
    pub criteria: Option<Vec<JsonText>>,
    /// Paths of the fields that decide the order, `-` before those of which the greatest come first. At most 8. Without it, by
    /// key.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order_by: Option<Vec<String>>,
    /// Most entries in the page, 1 to 1000; 100 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, nullable = false)]
    pub limit: Option<u32>,
    /// Of the page before. `prefix`, `where` and `order_by` have to be as they were for that.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
    /// Paths of the fields that are shown of each document, at most 64; metadata always is. Of an array the elements named
    /// are shown, without gaps. Without it, the whole value.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fields: Option<Vec<String>>,
    /// Leave the values out.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub keys_only: Option<bool>,
    /// As it was at this revision.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub revision: Option<u64>,
    /// `linearizable` (default) or `local`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub consistency: Option<ReadConsistency>,
    /// Wait until this node has this revision, and read locally.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub min_revision: Option<u64>,
}

named!(FindRequest, prefix);

/// The body of `POST /v1/count`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct CountRequest {
    /// Only keys that begin with this; may be empty.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prefix: Option<Name>,
    /// What holds of the entries, all of it.
    #[serde(rename = "where", default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Criterion>>, nullable = false)]
    pub criteria: Option<Vec<JsonText>>,
    /// Of the part before. `prefix` and `where` have to be as they were for that.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
    /// As it was at this revision.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub revision: Option<u64>,
    /// `linearizable` (default) or `local`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub consistency: Option<ReadConsistency>,
    /// Wait until this node has this revision, and read locally.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::given, required = false)]
    pub min_revision: Option<u64>,
}

named!(CountRequest, prefix);

/// A page of what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FindAnswer {
    /// The entries, in order; each value as far as it was asked for. A page with a `cursor` may be empty.
    pub entries: Vec<EntryView>,
    /// Entries looked at for this page.
    pub examined: u64,
    /// Fields of the index that was used; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_used: Option<Vec<String>>,
    /// Give this back as `cursor`, with the rest of the body, for the next page. Absent once everything was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Revision at which all pages are evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which this page was evaluated.
    pub index: u64,
}

/// A count, or that of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct CountAnswer {
    /// How many were found, in this part.
    pub count: u64,
    /// Entries looked at for it.
    pub examined: u64,
    /// Fields of the index that was used; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_used: Option<Vec<String>>,
    /// Give this back as `cursor`, with the rest of the body, to count the next part. Absent once everything was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Revision at which all parts are evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which this part was evaluated.
    pub index: u64,
}
