//! What arguments of several tools have in common: tokens, conditions, guards, waits.
//!
//! Owns their forms. Whether a condition makes sense is for the nodes to say.

use std::borrow::Cow;
use std::time::Duration;

use quorate_client::Cas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::refusal::Refusal;

/// Longest wait within one call. Programs of agents give up calls after a minute.
pub const WAIT_MAX: Duration = Duration::from_secs(50);

/// A number of 64 bits, such as a cas or a revision: digits in a string, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digits(pub u64);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quorate_api::decimal::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Digits {
    fn schema_name() -> Cow<'static, str> {
        "Digits".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"]})
    }
}

impl From<Digits> for Cas {
    fn from(digits: Digits) -> Self {
        Self::new(digits.0)
    }
}

/// Conditions, each as JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<Value>);

impl Conditions {
    /// The text of each.
    pub fn texts(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(Value::to_string)
    }
}

impl JsonSchema for Conditions {
    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "object"}})
    }
}

/// Any JSON, `null` as well.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Value);

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// Reads a value that may be `null`, where it is given.
pub fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// How long to wait: what was asked for, if that is not too long for one call.
pub fn wait(seconds: Option<f64>, default: Duration) -> Result<Duration, Refusal> {
    let Some(seconds) = seconds else { return Ok(default) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(wait) if wait <= WAIT_MAX => Ok(wait),
        _ => Err(Refusal::invalid(format!("wait_s is 0 to {}; call again to wait longer", WAIT_MAX.as_secs()))),
    }
}

/// A time in seconds within limits.
pub fn time(name: &str, seconds: f64, min: Duration, max: Duration) -> Result<Duration, Refusal> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if (min..=max).contains(&time) => Ok(time),
        _ => Err(Refusal::invalid(format!("{name} is {} to {}", min.as_secs_f64(), max.as_secs_f64()))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn tokens_are_read_from_strings_and_numbers() {
        for (given, digits) in [(json!("17"), 17), (json!(17), 17), (json!("18446744073709551615"), u64::MAX)] {
            assert_eq!(from_value::<Digits>(given).expect("digits"), Digits(digits));
        }
        for bad in [json!("x"), json!(-1), json!(1.5), json!(null), json!("")] {
            assert!(from_value::<Digits>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn waits_have_an_end() {
        assert_eq!(wait(None, Duration::ZERO).expect("the default"), Duration::ZERO);
        assert_eq!(wait(Some(0.5), Duration::ZERO).expect("a time"), Duration::from_millis(500));
        for bad in [-1.0, 51.0, f64::NAN, f64::INFINITY] {
            assert!(wait(Some(bad), Duration::ZERO).is_err(), "{bad}");
        }
    }
}
