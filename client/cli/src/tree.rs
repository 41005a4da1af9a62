//! JSON as a tree that keeps the order of fields, and numbers as they are written.
//!
//! Owns nothing else: what becomes of it is `yaml`'s and `table`'s.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A string.
    Text(String),
    /// A number, `true`, `false` or `null`, as it is written.
    Word(String),
    /// An array.
    List(Vec<Node>),
    /// An object.
    Fields(Vec<(String, Node)>),
}

impl Node {
    /// Of anything that has JSON.
    pub fn of<T: Serialize>(value: &T) -> serde_json::Result<Self> {
        Self::parse(&serde_json::value::to_raw_value(value)?)
    }

    fn parse(raw: &RawValue) -> serde_json::Result<Self> {
        let text = raw.get();
        Ok(match text.trim_start().as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = serde_json::from_str(text)?;
                let fields = pairs.into_iter().map(|(name, value)| Ok((name, Self::parse(&value)?)));
                Self::Fields(fields.collect::<serde_json::Result<_>>()?)
            }
            Some(b'[') => {
                let list: Vec<&RawValue> = serde_json::from_str(text)?;
                Self::List(list.into_iter().map(Self::parse).collect::<serde_json::Result<_>>()?)
            }
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            _ => Self::Word(text.trim().to_owned()),
        })
    }

    /// In one line: a string without its quotes, anything else as JSON.
    pub fn line(&self) -> String {
        match self {
            Self::Text(text) if !text.contains(char::is_control) => text.clone(),
            other => other.json(),
        }
    }

    /// As JSON in one line.
    pub fn json(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Text(text) => quoted(text),
            Self::Word(word) => word.clone(),
            Self::List(list) => format!("[{}]", list.iter().map(Self::json).collect::<Vec<_>>().join(",")),
            Self::Fields(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.json()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// The fields of an object in their order.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Pairs;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_numbers_stay_as_they_are_written() {
        let text = r#"{"z":1.50,"a":[18446744073709551616,"x\ny",null],"m":{}}"#;
        let raw = RawValue::from_string(text.to_owned()).expect("JSON");
        let node = Node::of(&raw).expect("JSON");
        assert_eq!(node.line(), text);
        assert_eq!(Node::Text("two words".into()).line(), "two words");
    }
}
