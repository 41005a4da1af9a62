//! How messages and enumerations are written down: as in the protocol's definition.
//!
//! Owns what follows from the kind of a field: its type, its form over gRPC and in JSON, and whether it may come any number of times.

/// Defines messages, each with its fields: number, name and kind. In brackets stands what else a field is called in JSON, or is called there
/// instead; behind the name of a message, what etcd answers where it has too much.
macro_rules! messages {
    (@ $message:ident [$($too_much:ident)?] [$($known:tt)*] [$($within:tt)*]) => {
        #[derive(Clone, PartialEq, prost::Message, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $message { $($known)* }

        impl $crate::measure::Measured for $message {
            fn fields() -> $crate::measure::Fields {
                const FIELDS: $crate::measure::Fields = &[$($within)*];
                FIELDS
            }

            fn too_much() -> Option<$crate::Error> {
                let told: &[$crate::Error] = &[$($crate::Error::$too_much)?];
                told.first().copied()
            }
        }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: bytes $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(bytes = "bytes", tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::base64", skip_serializing_if = "crate::json::is_default")]
            pub $field: bytes::Bytes,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: int64 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(int64, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::integer", skip_serializing_if = "crate::json::is_default")]
            pub $field: i64,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: uint64 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(uint64, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::integer", skip_serializing_if = "crate::json::is_default")]
            pub $field: u64,
        ] [$($within)*] $($rest)* }
    };
    // 32 bits are written as a number, and read as either.
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: uint32 $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(uint32, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::integer::deserialize",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: u32,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: bool $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(bool, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::nullable",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: bool,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: string $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(string, tag = $number)]
            #[serde(
                $($($json)*,)?
                deserialize_with = "crate::json::nullable",
                skip_serializing_if = "crate::json::is_default"
            )]
            pub $field: String,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: enumeration $of:tt $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(enumeration = $of, tag = $number)]
            #[serde($($($json)*,)? with = $of, skip_serializing_if = "crate::json::is_default")]
            pub $field: i32,
        ] [$($within)*] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: optional $of:ident $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(message, optional, tag = $number)]
            #[serde($($($json)*,)? skip_serializing_if = "Option::is_none")]
            pub $field: Option<$of>,
        ] [$($within)* ($number, $crate::measure::Field::One(<$of as $crate::measure::Measured>::fields)),] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: repeated string $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(string, repeated, tag = $number)]
            #[serde($($($json)*,)? deserialize_with = "crate::json::nullable", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<String>,
        ] [$($within)* ($number, $crate::measure::Field::Texts),] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: repeated bytes $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(bytes = "bytes", repeated, tag = $number)]
            #[serde($($($json)*,)? with = "crate::json::base64_list", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<bytes::Bytes>,
        ] [$($within)* ($number, $crate::measure::Field::Texts),] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: repeated enumeration $of:tt $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(enumeration = $of, repeated, tag = $number)]
            #[serde($($($json)*,)? with = $of, skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<i32>,
        ] [$($within)* ($number, $crate::measure::Field::Numbers),] $($rest)* }
    };
    (@ $message:ident $too_much:tt [$($known:tt)*] [$($within:tt)*] $number:tt $field:ident: repeated $of:ident $([$($json:tt)*])?, $($rest:tt)*) => {
        $crate::define::messages! { @ $message $too_much [$($known)*
            #[prost(message, repeated, tag = $number)]
            #[serde($($($json)*,)? deserialize_with = "crate::json::nullable", skip_serializing_if = "Vec::is_empty")]
            pub $field: Vec<$of>,
        ] [$($within)* ($number, $crate::measure::Field::Messages(<$of as $crate::measure::Measured>::fields)),] $($rest)* }
    };
    ($($message:ident $(($too_much:ident))? { $($fields:tt)* })*) => {
        $($crate::define::messages! { @ $message [$($too_much)?] [] [] $($fields)* })*
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

        // For serde, which calls these for a field of this type.
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

/// Defines a message that is one of several others, each with its number, its names in JSON and its variant. JSON is read into
/// fields of its own first: a flattened enumeration would pass over all that is wrong with it.
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

        impl $crate::measure::Measured for $message {
            fn fields() -> $crate::measure::Fields {
                const FIELDS: $crate::measure::Fields =
                    &[$(($number, $crate::measure::Field::One(<$of as $crate::measure::Measured>::fields))),*];
                FIELDS
            }
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
