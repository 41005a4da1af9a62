//! What answers have in common: the revision and log index that they are of, and where a list goes on.
//!
//! Owns these fields, each once: type, JSON and words. They stand among the others in JSON, and here too. A type around each answer would
//! have both read from one object, which serde does by values in memory: those hold neither JSON as it was written nor names in base64.

/// Defines answers, as `pub struct Name: rest { … }`. The last fields are those of the rest.
macro_rules! answers {
    ($($(#[$($attribute:tt)*])* pub struct $name:ident: $rest:ident { $($fields:tt)* })*) => {
        $($crate::answers::answers!(@$rest [$(#[$($attribute)*])*] $name [$($fields)*]);)*
    };
    (@decided $attributes:tt $name:ident [$($fields:tt)*]) => {
        $crate::answers::answers!(@struct $attributes $name [
            $($fields)*
            /// Revision at which this was decided or read.
            #[serde(with = "crate::decimal")]
            #[schema(schema_with = crate::decimal::shown)]
            pub revision: u64,
            /// Log index at which this was decided or read.
            pub index: u64,
            /// Whether this is the kept answer of an earlier try with the same request id.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub replayed: bool,
        ]);
    };
    (@decided_unless_listed $attributes:tt $name:ident [$($fields:tt)*]) => {
        $crate::answers::answers!(@struct $attributes $name [
            $($fields)*
            /// Revision at which this was decided or read. Absent where it is part of a list.
            #[serde(default, with = "crate::decimal::optional", skip_serializing_if = "Option::is_none")]
            #[schema(schema_with = crate::decimal::shown, required = false)]
            pub revision: Option<u64>,
            /// Log index at which this was decided or read. Absent where it is part of a list.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub index: Option<u64>,
            /// Whether this is the kept answer of an earlier try with the same request id.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub replayed: bool,
        ]);
    };
    (@at $attributes:tt $name:ident [$($fields:tt)*]) => {
        $crate::answers::answers!(@struct $attributes $name [
            $($fields)*
            /// Revision at which this was decided or read.
            #[serde(with = "crate::decimal")]
            #[schema(schema_with = crate::decimal::shown)]
            pub revision: u64,
            /// Log index at which this was decided or read.
            pub index: u64,
        ]);
    };
    (@at_unless_listed $attributes:tt $name:ident [$($fields:tt)*]) => {
        $crate::answers::answers!(@struct $attributes $name [
            $($fields)*
            /// Revision at which this was read. Absent where it is part of a list.
            #[serde(default, with = "crate::decimal::optional", skip_serializing_if = "Option::is_none")]
            #[schema(schema_with = crate::decimal::shown, required = false)]
            pub revision: Option<u64>,
            /// Log index at which this was read. Absent where it is part of a list.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub index: Option<u64>,
        ]);
    };
    (@page $attributes:tt $name:ident [$($fields:tt)*]) => {
        $crate::answers::answers!(@struct $attributes $name [
            $($fields)*
            /// Give this back as `cursor` to go on. Absent once all were shown.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cursor: Option<String>,
            /// Revision at which the list was evaluated.
            #[serde(with = "crate::decimal")]
            #[schema(schema_with = crate::decimal::shown)]
            pub revision: u64,
            /// Log index at which the list was evaluated.
            pub index: u64,
        ]);
    };
    (@struct [$($attributes:tt)*] $name:ident [$($fields:tt)*]) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
        $($attributes)*
        pub struct $name {
            $($fields)*
        }
    };
}
pub(crate) use answers;
