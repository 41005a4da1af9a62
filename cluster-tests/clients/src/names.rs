//! Keys that are no text, as files of the suite write them: `\xff` is a byte.
//!
//! Owns the way from there to names and to the fields of the API, and back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_client::api::Name;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Fields that hold a name.
const FIELDS: [&str; 2] = ["key", "prefix"];

/// A name as a file writes it.
#[derive(Debug, Clone, Default)]
pub struct Written(pub Name);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Name::from_shown(&String::deserialize(deserializer)?)))
    }
}

impl From<Written> for Name {
    fn from(Written(name): Written) -> Self {
        name
    }
}

impl From<&Written> for Name {
    fn from(Written(name): &Written) -> Self {
        name.clone()
    }
}

/// What a file writes as the API has it.
pub fn to_api(value: Value) -> Value {
    walk(value, &|field, value| match value.as_str() {
        Some(text) if FIELDS.contains(&field) => {
            let (field, text) = Name::from_shown(text).in_json(field);
            (field, Value::String(text))
        }
        _ => (field.to_owned(), value),
    })
}

/// An answer as a file writes it.
pub fn from_api(value: Value) -> Value {
    walk(value, &|field, value| {
        let named = field.strip_suffix("_base64").filter(|name| FIELDS.contains(name));
        match named.zip(value.as_str().and_then(|text| STANDARD.decode(text).ok())) {
            Some((field, bytes)) => (field.to_owned(), Name::from(bytes).to_string().into()),
            None => (field.to_owned(), value),
        }
    })
}

fn walk(value: Value, field: &impl Fn(&str, Value) -> (String, Value)) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| walk(item, field)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| field(&name, walk(value, field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}
