//! Names of entries: bytes, which most often are a text.
//!
//! Owns how a name stands in JSON and how it is written for people. Never compares or shows two names alike: in JSON one that is no text
//! stands in a field of its own, `key_base64` for `key`, as values do.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Impossible, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The key of an entry, or what keys begin with: any bytes. Two names are equal exactly where their bytes are.
///
/// In JSON a name that is a text is a string, `"key"`; one that is no UTF-8 stands beside it in base64, `"key_base64"`. A request may
/// give either name in either form, but not both.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(Form);

/// Invariant: `Bytes` is not UTF-8, since the only constructors look. So names are equal where they have the same form.
#[derive(Clone, PartialEq, Eq)]
enum Form {
    Text(String),
    Bytes(Vec<u8>),
}

impl Name {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Text(text) => text.as_bytes(),
            Form::Bytes(bytes) => bytes,
        }
    }

    /// The text that it is, if it is UTF-8.
    pub fn text(&self) -> Option<&str> {
        match &self.0 {
            Form::Text(text) => Some(text),
            Form::Bytes(_) => None,
        }
    }

    /// Its bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        match self.0 {
            Form::Text(text) => text.into_bytes(),
            Form::Bytes(bytes) => bytes,
        }
    }

    /// Whether it has no bytes: no key, but what every key begins with.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// The name that is shown like this: [`Display`](fmt::Display) backwards. `\x` and two hexadecimal digits are a byte, all else is
    /// itself.
    pub fn from_shown(shown: &str) -> Self {
        let mut bytes = Vec::with_capacity(shown.len());
        let mut rest = shown;
        while let Some(at) = rest.find('\\') {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at..];
            let (byte, length) = escaped(rest).map_or((b'\\', 1), |byte| (byte, ESCAPE_BYTES));
            bytes.push(byte);
            rest = &rest[length..];
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes.into()
    }

    /// The field in which it stands in JSON, and its value there.
    pub fn in_json(&self, field: &str) -> (String, String) {
        match self.text() {
            Some(text) => (field.to_owned(), text.to_owned()),
            None => (format!("{field}_base64"), self.base64()),
        }
    }

    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.as_bytes())
    }
}

/// Bytes of `\xff`.
const ESCAPE_BYTES: usize = 4;

/// The byte that a text begins with in the form `\xff`.
fn escaped(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("\\x")?.get(..2)?;
    // A sign is no digit.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Whether a character leaves nothing to see by itself: control, width of zero, direction of what is around it.
fn is_unseen(character: char) -> bool {
    let ranges = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{feff}')
        || ranges.iter().any(|range| range.contains(&character))
}

/// For people, and such that no two names look alike: a byte that is no part of a character is `\xff`, and so is a backslash that would
/// be read as the start of one. Control characters, and others that nobody sees or that turn what is around them, are their bytes in the
/// same form. All else is itself.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Form::Text(text) = &self.0
            && !text.contains("\\x")
            && !text.contains(is_unseen)
        {
            return f.pad(text);
        }
        let mut shown = String::with_capacity(self.as_bytes().len() + ESCAPE_BYTES);
        for chunk in self.as_bytes().utf8_chunks() {
            let text = chunk.valid();
            for (at, character) in text.char_indices() {
                match escaped(&text[at..]) {
                    Some(_) => shown.push_str("\\x5c"),
                    None if is_unseen(character) => {
                        let bytes = &text.as_bytes()[at..at + character.len_utf8()];
                        bytes.iter().try_for_each(|byte| write!(shown, "\\x{byte:02x}"))?;
                    }
                    None => shown.push(character),
                }
            }
            for byte in chunk.invalid() {
                write!(shown, "\\x{byte:02x}")?;
            }
        }
        f.pad(&shown)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => fmt::Debug::fmt(text, f),
            Form::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self(Form::Text(String::new()))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// As the bytes alone do, which stand for it in maps.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(Form::Text(text))
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self(Form::Text(text)),
            Err(error) => Self(Form::Bytes(error.into_bytes())),
        }
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const LENGTH: usize> From<&[u8; LENGTH]> for Name {
    fn from(bytes: &[u8; LENGTH]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl From<Name> for Cow<'_, Name> {
    fn from(name: Name) -> Self {
        Cow::Owned(name)
    }
}

impl<'a> From<&'a Name> for Cow<'a, Name> {
    fn from(name: &'a Name) -> Self {
        Cow::Borrowed(name)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<String> for Name {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}

impl PartialEq<Name> for &str {
    fn eq(&self, other: &Name) -> bool {
        *other == **self
    }
}

impl PartialEq<Name> for String {
    fn eq(&self, other: &Name) -> bool {
        *other == **self
    }
}

/// A text. One that is none has to stand in a field of its own, which only the types that have such a field write.
impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text() {
            Some(text) => serializer.serialize_str(text),
            None => Err(S::Error::custom("a name that is no text has no place here")),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfName;
        impl Visitor<'_> for OfName {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Name, E> {
                Ok(text.into())
            }

            fn visit_string<E>(self, text: String) -> Result<Name, E> {
                Ok(text.into())
            }

            // Only of a field in base64, see below: JSON has no bytes.
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Name, E> {
                Ok(bytes.into())
            }
        }
        deserializer.deserialize_string(OfName)
    }
}

/// In descriptions of the API it is replaced by its two fields.
impl utoipa::PartialSchema for Name {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        String::schema()
    }
}

impl ToSchema for Name {}

/// The fields that hold a name, and those that hold it in base64.
const FIELDS: [(&str, &str); 3] = [("key", "key_base64"), ("prefix", "prefix_base64"), ("name", "name_base64")];

/// Implements both directions for a type that derives them with `#[serde(remote = "Self")]` and has a name in this field, which may be
/// an `Option`; or in one of these fields.
macro_rules! named {
    ($type:ident $(<$life:lifetime>)?, $($field:ident),+) => {
        impl $(<$life>)? serde::Serialize for $type $(<$life>)? {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let names = [$((stringify!($field), $crate::name::NameField::no_text(&self.$field))),+];
                match names.into_iter().find_map(|(field, name)| Some((field, name?))) {
                    None => Self::serialize(self, serializer),
                    Some((field, name)) => Self::serialize(self, $crate::name::Writer { serializer, field, name }),
                }
            }
        }
        named!(@de $type $(<$life>)?);
    };
    (@de $type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::name::Reader(deserializer))
            }
        }
    };
    (@de $type:ident<$life:lifetime>) => {
        impl<'de: $life, $life> serde::Deserialize<'de> for $type<$life> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::name::Reader(deserializer))
            }
        }
    };
}
pub(crate) use named;

/// What [`named`] takes as the field of a name.
pub(crate) trait NameField {
    /// The name, where it is there and is no text.
    fn no_text(&self) -> Option<&Name>;
}

impl NameField for Name {
    fn no_text(&self) -> Option<&Name> {
        self.text().is_none().then_some(self)
    }
}

impl NameField for Option<Name> {
    fn no_text(&self) -> Option<&Name> {
        self.as_ref().and_then(NameField::no_text)
    }
}

impl NameField for Cow<'_, Name> {
    fn no_text(&self) -> Option<&Name> {
        (**self).no_text()
    }
}

/// Reads an object in which names may stand in base64.
pub(crate) struct Reader<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Reader<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(OfObject(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, OfObject(visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

struct OfObject<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OfObject<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(NamedFields { fields, is_base64: false })
    }
}

/// The fields of an object, those in base64 under the name of the field that they stand for: so both together are a field given twice.
struct NamedFields<A> {
    fields: A,
    /// Whether the field that was named last is in base64.
    is_base64: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NamedFields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.fields.next_key_seed(FieldName { seed, is_base64: &mut self.is_base64 })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        if !self.is_base64 {
            return self.fields.next_value_seed(seed);
        }
        self.fields.next_value_seed(InBase64(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.fields.size_hint()
    }
}

/// A value in base64. What is wrong with it is found while the field is read, so that the place is told.
struct InBase64<V>(V);

impl<'de, V: DeserializeSeed<'de>> DeserializeSeed<'de> for InBase64<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, V: DeserializeSeed<'de>> Visitor<'de> for InBase64<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string in base64")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<V::Value, E> {
        let bytes = STANDARD.decode(text).map_err(|error| E::custom(format!("not base64: {error}")))?;
        self.0.deserialize(Decoded(&bytes, PhantomData))
    }
}

/// The bytes of a name, as a field takes them that has to be there, and as one does that need not.
struct Decoded<'b, E>(&'b [u8], PhantomData<E>);

impl<'de, E: serde::de::Error> Deserializer<'de> for Decoded<'_, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_bytes(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

struct FieldName<'f, K> {
    seed: K,
    is_base64: &'f mut bool,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for FieldName<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for FieldName<'_, K> {
    type Value = K::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, field: &str) -> Result<K::Value, E> {
        let named = FIELDS.iter().find(|(_, base64)| *base64 == field).map(|(field, _)| *field);
        *self.is_base64 = named.is_some();
        self.seed.deserialize(named.unwrap_or(field).into_deserializer())
    }
}

/// Writes an object with a name in base64: the field in which the name stands gets the other name.
pub(crate) struct Writer<'n, S> {
    pub(crate) serializer: S,
    pub(crate) field: &'static str,
    pub(crate) name: &'n Name,
}

/// What a derived type never asks for.
macro_rules! no_object {
    ($($method:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(fn $method(self, $(_: $argument),*) -> Result<$answer, S::Error> {
            Err(S::Error::custom("only an object has fields for a name"))
        })*
    };
}

impl<'n, S: Serializer> Serializer for Writer<'n, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Impossible<S::Ok, S::Error>;
    type SerializeMap = Impossible<S::Ok, S::Error>;
    type SerializeStruct = WrittenFields<'n, S::SerializeStruct>;
    type SerializeStructVariant = Impossible<S::Ok, S::Error>;

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        let fields = self.serializer.serialize_struct(name, length)?;
        Ok(WrittenFields { fields, field: self.field, name: self.name })
    }

    no_object! {
        serialize_bool(bool) -> S::Ok;
        serialize_i8(i8) -> S::Ok;
        serialize_i16(i16) -> S::Ok;
        serialize_i32(i32) -> S::Ok;
        serialize_i64(i64) -> S::Ok;
        serialize_u8(u8) -> S::Ok;
        serialize_u16(u16) -> S::Ok;
        serialize_u32(u32) -> S::Ok;
        serialize_u64(u64) -> S::Ok;
        serialize_f32(f32) -> S::Ok;
        serialize_f64(f64) -> S::Ok;
        serialize_char(char) -> S::Ok;
        serialize_str(&str) -> S::Ok;
        serialize_bytes(&[u8]) -> S::Ok;
        serialize_none() -> S::Ok;
        serialize_unit() -> S::Ok;
        serialize_unit_struct(&'static str) -> S::Ok;
        serialize_unit_variant(&'static str, u32, &'static str) -> S::Ok;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_some<T: ?Sized + Serialize>(self, _: &T) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("only an object has fields for a name"))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, _: &T) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("only an object has fields for a name"))
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("only an object has fields for a name"))
    }
}

pub(crate) struct WrittenFields<'n, S> {
    fields: S,
    field: &'static str,
    name: &'n Name,
}

impl<S: SerializeStruct> SerializeStruct for WrittenFields<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, field: &'static str, value: &T) -> Result<(), S::Error> {
        match FIELDS.iter().find(|(known, _)| *known == self.field && *known == field) {
            Some((_, base64)) => self.fields.serialize_field(base64, &self.name.base64()),
            None => self.fields.serialize_field(field, value),
        }
    }

    fn skip_field(&mut self, field: &'static str) -> Result<(), S::Error> {
        self.fields.skip_field(field)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AccessCheckAnswer, ExportLine, FindRequest, Op, OpKind, Problem, QuotaAnswer, QuotaExceeded, QuotaRemoved,
        WatchEvent,
    };

    /// Short words of bytes, in order: parts of characters, escapes and what looks like them.
    fn names() -> Vec<Vec<u8>> {
        let parts: [&[u8]; 9] = [b"", b"a", b"\\", b"\\x", b"\\xff", b"ff", b"\xff", b"\xc3", "\u{fffd}".as_bytes()];
        let mut names = Vec::new();
        for a in parts {
            for b in parts {
                names.extend(parts.map(|c| [a, b, c].concat()));
            }
        }
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn no_two_names_are_shown_alike_and_each_is_read_back() {
        let mut shown = std::collections::HashSet::new();
        for bytes in names() {
            let name = Name::from(bytes.clone());
            assert_eq!(name.as_bytes(), bytes);
            assert_eq!(Name::from_shown(&name.to_string()), name, "{name}");
            assert!(shown.insert(name.to_string()), "{name} is shown twice");
        }
        for (bytes, expected) in
            [(&b"a/\xfe"[..], r"a/\xfe"), (br"\xfe", r"\x5cxfe"), (br"\x", r"\x"), (b"a\\b", "a\\b")]
        {
            assert_eq!(Name::from(bytes).to_string(), expected);
        }
    }

    #[test]
    fn names_stand_in_the_order_of_their_bytes_and_so_do_they_in_maps() {
        let all: Vec<Name> = names().into_iter().map(Name::from).collect();
        assert!(all.is_sorted());
        let map: std::collections::BTreeMap<Name, usize> =
            all.iter().cloned().enumerate().map(|(at, name)| (name, at)).collect();
        assert!(all.iter().enumerate().all(|(at, name)| map.get(name.as_bytes()) == Some(&at)));
    }

    #[test]
    fn a_name_that_is_no_text_stands_in_a_field_of_its_own() {
        for text in [
            r#"{"op":"get","key":"a","prev":true}"#,
            r#"{"op":"get","key_base64":"bGwv/w==","prev":true}"#,
            r#"{"op":"upsert","key_base64":"/w==","value":{"n":1.50}}"#,
        ] {
            let op: Op = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&op).expect("JSON"), text);
        }
        // Of a text either form is taken, and one is written.
        let op: Op = serde_json::from_str(r#"{"op":"get","key_base64":"YQ=="}"#).expect("an operation");
        assert_eq!((op.op, &op.key), (OpKind::Get, &Name::from("a")));
        assert_eq!(serde_json::to_string(&op).expect("JSON"), r#"{"op":"get","key":"a"}"#);
        for (text, words) in [
            (r#"{"op":"get","key":"a","key_base64":"YQ=="}"#, "duplicate field `key`"),
            (r#"{"op":"get","key_base64":"?"}"#, "not base64"),
            (r#"{"op":"get","key_base64":1}"#, "expected a string"),
            (r#"{"op":"get"}"#, "missing field `key`"),
            (r#"{"op":"get","key":"a","value_base32":1}"#, "unknown field"),
        ] {
            let error = serde_json::from_str::<Op>(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for text in [r#"{"prefix":"a"}"#, r#"{"prefix_base64":"/w=="}"#, "{}"] {
            let request: FindRequest = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&request).expect("JSON"), text);
        }
        // A name that need not be there, in an answer and within a refusal.
        fn as_written<T: serde::de::DeserializeOwned + Serialize>(text: &str) {
            let read: T = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        }
        as_written::<QuotaAnswer>(r#"{"prefix_base64":"/w==","bounds":{"entries":1}}"#);
        as_written::<QuotaRemoved>(r#"{"prefix_base64":"/w==","revision":"22","index":34}"#);
        as_written::<QuotaExceeded>(r#"{"prefix_base64":"/w==","counts":"entries","bound":1,"used":1}"#);
        for field in ["name", "prefix"] {
            let start = format!(r#"{{"user":"app","permission":"write","{field}_base64":"/w==","#);
            as_written::<AccessCheckAnswer>(&format!(r#"{start}"allowed":true,"access_revision":"18"}}"#));
        }
        let refusal = r#"{"type":"/errors/quota_exceeded","title":"Beyond a quota","status":507,"detail":"full","code":"quota_exceeded","applied":"no","retry":"never","request_id":"r","quota":{"prefix_base64":"/w==","counts":"entries","bound":1,"used":1}}"#;
        let problem: Problem = serde_json::from_str(refusal).expect(refusal);
        assert_eq!(problem.quota.and_then(|quota| quota.prefix), Some(Name::from(b"\xff")));
        let line: ExportLine<'_> = serde_json::from_str(r#"{"key_base64":"/w==","value":[1]}"#).expect("a line");
        assert_eq!(line.text(), r#"{"key_base64":"/w==","value":[1]}"#);
        // What a newer server says more is passed over beside a name, too.
        let event = r#"{"type":"put","revision":"4","index":0,"key_base64":"/w==","entry":{"key_base64":"/w==","value":1.0,"content_type":"json","cas":"4","create_revision":"4","mod_revision":"4","version":1}}"#;
        let read: WatchEvent = serde_json::from_str(&event.replace("\"index\"", "\"new\":[],\"index\"")).expect(event);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), event);
    }
}
