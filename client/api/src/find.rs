//! Finds and counts: criteria, and the answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::name::{Name, named};
use super::strict::given;
use super::{EntryView, JsonText};

/// How a field is compared.
///
/// # Examples
///
/// ```
/// use quorate_api::Operator;
///
/// assert_eq!(Operator::parse("gte"), Some(Operator::Gte));
/// assert_eq!(serde_json::to_string(&Operator::Nexists)?, r#""nexists""#);
/// // For the help of a program that takes them.
/// assert_eq!(Operator::NAMES[0], ("eq", Operator::Eq));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::Operator;
    ///
    /// let written = Operator::NAMES.into_iter().find(|(_, operator)| *operator == Operator::Gte);
    /// assert_eq!(written.map(|(name, _)| name), Some("gte"));
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::Operator;
    ///
    /// assert_eq!(Operator::parse("starts"), Some(Operator::Starts));
    /// assert_eq!(Operator::parse("="), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
    }

    /// Whether it is written without a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::Operator;
    ///
    /// assert!(Operator::Exists.takes_no_value());
    /// assert!(!Operator::Eq.takes_no_value());
    /// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::{Operator, Predicate};
///
/// let predicate: Predicate = serde_json::from_str(r#"{"field":"$version","op":"gt","value":1}"#)?;
/// assert_eq!((predicate.field.as_str(), predicate.op), ("$version", Operator::Gt));
/// // `exists` takes none.
/// let exists: Predicate = serde_json::from_str(r#"{"field":"owner","op":"exists"}"#)?;
/// assert_eq!(exists.value, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::{Criterion, Operator};
    /// use serde_json::json;
    ///
    /// let is_new = Criterion::new("status", Operator::In, json!(["new", "open"]));
    /// assert_eq!(serde_json::to_string(&is_new)?, r#"{"field":"status","op":"in","value":["new","open"]}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(field: impl Into<String>, op: Operator, value: impl Into<serde_json::Value>) -> Self {
        Self::Predicate(Predicate { field: field.into(), op, value: Some(value.into()) })
    }

    /// The field is there, or is not.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::Criterion;
    ///
    /// assert_eq!(serde_json::to_string(&Criterion::exists("owner", false))?, r#"{"field":"owner","op":"nexists"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn exists(field: impl Into<String>, exists: bool) -> Self {
        let op = if exists { Operator::Exists } else { Operator::Nexists };
        Self::Predicate(Predicate { field: field.into(), op, value: None })
    }

    /// At least one of these.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::Criterion;
    ///
    /// let any = Criterion::any([Criterion::exists("a", true), Criterion::exists("b", true)]);
    /// assert!(serde_json::to_string(&any)?.starts_with(r#"{"any":["#));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn any(any: impl IntoIterator<Item = Self>) -> Self {
        Self::Any { any: any.into_iter().collect() }
    }

    /// All of these.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::{Criterion, Operator};
    ///
    /// // Within an `any`: a list by itself is one already.
    /// let all = Criterion::all([Criterion::exists("a", true), Criterion::new("a", Operator::Lt, 5)]);
    /// let any = Criterion::any([all, Criterion::exists("b", true)]);
    /// assert!(serde_json::to_string(&any)?.contains(r#"{"all":["#));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::ReadConsistency;
///
/// assert_eq!(serde_json::to_string(&ReadConsistency::Local)?, r#""local""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
#[serde(remote = "Self")]
#[serde(deny_unknown_fields)]
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
///
/// # Examples
///
/// ```
/// use quorate_api::CountRequest;
///
/// let request = CountRequest { prefix: Some("orders/".into()), ..Default::default() };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"prefix":"orders/"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[serde(deny_unknown_fields)]
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
///
/// # Examples
///
/// ```
/// use quorate_api::FindAnswer;
///
/// let page: FindAnswer = serde_json::from_str(
///     r#"{"entries":[{"key":"orders/o1","value":{"total":70},"content_type":"json","cas":"17",
///         "create_revision":"17","mod_revision":"17","version":1}],"examined":12,"index_used":["total"],
///         "revision":"20","index":31}"#,
/// )?;
/// assert_eq!((page.entries.len(), page.examined), (1, 12));
/// assert_eq!(page.cursor, None, "everything was looked at");
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::CountAnswer;
///
/// let answer: CountAnswer = serde_json::from_str(r#"{"count":3,"examined":12,"revision":"20","index":31}"#)?;
/// assert_eq!((answer.count, answer.index_used), (3, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
