//! How messages and enumerations are written down: as in the protocol's definition.
//!
//! Owns what follows from the kind of a field: its type, and its form over gRPC and in JSON.

/// Defines messages, each with its fields: number, name and kind. In brackets stands what else the JSON of a
/// field is called, or is called instead.
macro_rules! messages {
    (@ $message:ident [$($known:tt)*]) => {
        #[derive(Clone, PartialEq, prost::Message, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $message { $($known)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: bytes $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(bytes = "bytes", tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::base64", skip_serializing_if = "crate::json::is_default")]
            pub $field: bytes::Bytes,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: int64 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(int64, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::integer", skip_serializing_if = "crate::json::is_default")]
            pub $field: i64,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: uint64 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(uint64, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::integer", skip_serializing_if = "crate::json::is_default")]
            pub $field: u64,
        ] $($rest)* }
    };
    // 32 bits are written as a number, and read as either.
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: uint32 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(uint32, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::integer::deserialize",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: u32,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: bool $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(bool, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::nullable",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: bool,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: string $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(string, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::nullable",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: String,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: enumeration $of:tt $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(enumeration = $of, tag = $number)]
            #[serde($($($json)*,)? with = $of, skip_serializing_if = "crate::json::is_default")]
            pub $field: i32,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: optional $of:ident $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(message, optional, tag = $number)]
            #[serde($($($json)*,)? skip_serializing_if = "Option::is_none")]
            pub $field: Option<$of>,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: repeated string $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(string, repeated, tag = $number)]
            #[serde($($($json)*,)? deserialize_with = "crate::json::nullable", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<String>,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: repeated bytes $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(bytes = "bytes", repeated, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::base64_list", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<bytes::Bytes>,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: repeated enumeration $of:tt $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(enumeration = $of, repeated, tag = $number)]
            #[serde($($($json)*,)? with = $of, skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<i32>,
        ] $($rest)* }
    };
    (@ $message:ident [$($known:tt)*] $number:tt $field:ident: repeated $of:ident $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message [$($known)*
            #[prost(message, repeated, tag = $number)]
            #[serde($($($json)*,)? deserialize_with = "crate::json::nullable", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<$of>,
        ] $($rest)* }
    };
    ($($message:ident { $($fields:tt)* })*) => {
        $($crate::define::messages! { @ $message [] $($fields)* })*
    };
}
pub(crate) use messages;

/// Defines an enumeration: its values, each with its number and its name in JSON.
macro_rules! enumeration {
    ($type:ident { $($value:ident = $number:tt $name:tt),* $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
        #[repr(i32)]
        pub enum $type { $($value = $number),* }

        impl $crate::json::Named for $type {
            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$value, $name)),*];
        }

        // What serde calls for a field of it.
        impl $type {
            fn serialize<V, S>(values: &V, serializer: S) -> Result<S::Ok, S::Error>
            where
                V: $crate::json::Values,
                S: serde::Serializer,
            {
                values.write::<Self, S>(serializer)
            }

            fn deserialize<'de, V, D>(deserializer: D) -> Result<V, D::Error>
            where
                V: $crate::json::Values,
                D: serde::Deserializer<'de>,
            {
                V::read::<Self, D>(deserializer)
            }
        }
    };
}
pub(crate) use enumeration;

/// Defines a message that is one of several others, each with its number, its names in JSON and its variant. What is read stands in fields of
/// its own first: a flattened enumeration would pass over all that is wrong with it.
macro_rules! one_of {
    ($message:ident { $field:ident: $union:ident = $path:tt $numbers:tt {
        $($number:tt $name:ident $other:tt $variant:ident($of:ident),)*
    } }) => {
        #[derive(Clone, PartialEq, prost::Message, serde::Serialize)]
        pub struct $message {
            #[prost(oneof = $path, tags = $numbers)]
            #[serde(flatten)]
            pub $field: Option<$union>,
        }

        #[derive(Clone, PartialEq, prost::Oneof, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $union {
            $(#[prost(message, tag = $number)] $variant($of),)*
        }

        impl<'de> serde::Deserialize<'de> for $message {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Default, serde::Deserialize)]
                #[serde(default)]
                struct Read {
                    $(#[serde(alias = $other)] $name: Option<$of>,)*
                }
                let read = <Read as serde::Deserialize>::deserialize(deserializer)?;
                let $field = $crate::json::one_of([$(read.$name.map($union::$variant)),*]);
                Ok(Self { $field: $field.map_err(<D::Error as serde::de::Error>::custom)? })
            }
        }
    };
}
pub(crate) use one_of;
