//! Rules of collections: what holds for every document below a name, by whichever route it comes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JsonText;
use super::answers::answers;
use super::decimal;
use super::strict::given;

/// The rules of a collection: the body of `PUT /v1/collections/{name}`. It replaces all rules that there were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionRules {
    /// Rules of fields, by dotted path or JSON pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, FieldRule>,
    /// Paths of fields that must be there and not be null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Indexes over fields. One that is new is built in the background, one that is not named any more is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexRule>,
    /// Milliseconds to live of what is written without a time to live of its own.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3153600000000_u64, nullable = false)]
    pub ttl_ms: Option<u64>,
    /// Whether a write needs a token or a condition. Inserts, replacements, locks and touches do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub precondition_required: bool,
}

/// The type of a field. A value of another type is converted where that loses nothing, else the write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum FieldType {
    /// Anything.
    Any,
    /// `true` or `false`; also from `"true"` and `"false"`.
    Boolean,
    /// An integer of 64 bits; also from another number without a fraction, and from a decimal string.
    Long,
    /// A number; also from a decimal string.
    Double,
    /// A string; also from a number or boolean.
    Varchar,
    /// A moment, kept as RFC 3339 in UTC with milliseconds; also from another offset, from Unix milliseconds, and from fourteen digits in
    /// a string, such as `20260418153012`, in UTC.
    Datetime,
    /// An object.
    Object,
    /// An array.
    Array,
}

/// The rules of one field, such as `{"type": "varchar", "max": 254}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldRule {
    /// Its type; `any` without it.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<FieldType>,
    /// Most bytes of a `varchar`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1572864, nullable = false)]
    pub max: Option<u64>,
    /// What it is where a write leaves it out.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub default: Option<JsonText>,
    /// The name of a sequence: each write that does not change the field gives it the next number.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sequence: Option<String>,
    /// Whether each write that does not change the field sets it to the wall clock (`datetime` or `long`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_update: bool,
}

/// An index: the paths of its fields, alone, `["status", "due"]`, or with what else is asked of it,
/// `{"fields": ["email"], "unique": true}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum IndexRule {
    /// Over these fields, in this order.
    Fields(Vec<String>),
    /// With its options.
    Full(FullIndexRule),
}

/// An index in its long form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FullIndexRule {
    /// Over these fields, in this order.
    pub fields: Vec<String>,
    /// Whether no two documents may have the same values in them. Documents that lack one, or have null there, are free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
}

/// How far an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum IndexState {
    /// It is being built; finds do without it as yet.
    Building,
    /// Finds use it.
    Ready,
    /// It could not be built; `detail` says why.
    Failed,
}

/// An index as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct IndexView {
    /// Over these fields, in this order.
    pub fields: Vec<String>,
    /// Whether no two documents may have the same values in them.
    pub unique: bool,
    /// How far it is.
    pub state: IndexState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

answers! {
    /// A collection: the answer of `PUT` and `GET` of `/v1/collections/{name}`.
    pub struct CollectionAnswer: decided_unless_listed {
        /// Its name: keys that begin with it and a slash are in it, unless a longer name fits too.
        pub name: String,
        /// Its rules.
        pub rules: CollectionRules,
        /// The compare-and-swap token of the rules.
        #[schema(value_type = String)]
        pub cas: super::Cas,
        /// Revision that created it.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub create_revision: u64,
        /// Revision at which its rules were last set.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub mod_revision: u64,
        /// How often they were set.
        pub version: u64,
        /// Its indexes.
        pub indexes: Vec<IndexView>,
    }

    /// The answer of `GET /v1/collections`.
    pub struct CollectionList: page {
        /// Collections, by name.
        pub collections: Vec<CollectionAnswer>,
    }

    /// The answer of `DELETE /v1/collections/{name}`.
    #[derive(Eq)]
    pub struct CollectionRemoved: decided {
        /// Its name.
        pub name: String,
    }
}

impl IndexRule {
    /// An index in the order of these fields.
    pub fn ordered<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Self {
        Self::Fields(fields.into_iter().map(Into::into).collect())
    }

    /// An index that lets no two documents have the same values in these fields.
    pub fn unique<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Self {
        Self::Full(FullIndexRule { fields: fields.into_iter().map(Into::into).collect(), unique: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        let text = r#"{"fields":{"n":{"type":"long","sequence":"numbers"},"note":{"default":null},"status":{"type":"varchar","max":20,"default":"new"},"updated":{"type":"datetime","auto_update":true}},"required":["status"],"indexes":[["due","n"],{"fields":["email"],"unique":true}],"ttl_ms":5,"precondition_required":true}"#;
        let rules: CollectionRules = serde_json::from_str(text).expect("rules");
        assert_eq!(serde_json::to_string(&rules).expect("has JSON"), text);
        assert_eq!(rules.indexes, [IndexRule::ordered(["due", "n"]), IndexRule::unique(["email"])]);
        for bad in [r#"{"indices":[]}"#, r#"{"fields":{"a":{"typ":"long"}}}"#, r#"{"fields":{"a":{"type":"int"}}}"#] {
            assert!(serde_json::from_str::<CollectionRules>(bad).is_err(), "{bad}");
        }
    }
}
