//! Numbers of 64 bits that are handed back or compared: revisions, tokens, terms, places in queues.
//!
//! Owns how they stand in JSON: written as a string of digits, since a number of JavaScript ends at 2^53; read from such a string
//! and from a number. What is only counted or measured is a number.
//!
//! A field has it by `#[serde(with = "quorate_api::decimal")]`, and one that may be left out by [`optional`].

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use utoipa::openapi::schema::{OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat};

/// Writes a field.
pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// Reads a field.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Number)
}

struct Number;

impl Visitor<'_> for Number {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let is_plain = text == "0" || !text.starts_with(['0', '+']);
        let number = if is_plain { text.parse().ok() } else { None };
        number.ok_or_else(|| E::custom("expected a whole number"))
    }
}

/// A field that may be left out, and is never `null`.
pub mod optional {
    use serde::{Deserializer, Serializer};

    /// Writes a field that is there.
    pub fn serialize<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => serializer.collect_str(number),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a field that is there.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}

/// What stands in an answer.
pub(crate) fn shown() -> RefOr<Schema> {
    text().into()
}

/// What a request may say.
pub(crate) fn given() -> RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0));
    OneOfBuilder::new().item(text()).item(number).into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .pattern(Some("^(0|[1-9][0-9]{0,19})$"))
        .examples(["43"])
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Token {
        #[serde(with = "super")]
        token: u64,
        #[serde(default, with = "super::optional", skip_serializing_if = "Option::is_none")]
        place: Option<u64>,
    }

    #[test]
    fn a_number_of_64_bits_is_written_as_a_string_and_read_from_both() {
        let greatest = Token { token: u64::MAX, place: Some(0) };
        let text = r#"{"token":"18446744073709551615","place":"0"}"#;
        assert_eq!(serde_json::to_string(&greatest).expect("has JSON"), text);
        for text in [text, r#"{"token":18446744073709551615,"place":0}"#] {
            assert_eq!(serde_json::from_str::<Token>(text).expect("a token"), greatest);
        }
        assert_eq!(serde_json::from_str::<Token>(r#"{"token":7}"#).expect("a token"), Token { token: 7, place: None });
    }

    #[test]
    fn what_is_no_plain_whole_number_is_refused() {
        for bad in ["-1", "1.0", "\"01\"", "\"+1\"", "\"\"", "\"1 \"", "null", "\"18446744073709551616\"", "[1]"] {
            let text = format!("{{\"token\":{bad}}}");
            assert!(serde_json::from_str::<Token>(&text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Token>(r#"{"token":"1","place":null}"#).is_err());
    }
}
