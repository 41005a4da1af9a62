//! Moments as requests name them: the time of day, in either of two forms. Answers have RFC 3339 alone.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// A moment in a request: RFC 3339 in a string, or Unix time in milliseconds as a whole number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Moment {
    /// RFC 3339, such as `2026-11-21T08:00:00Z`.
    Text(String),
    /// Milliseconds since 1970 in UTC.
    UnixMs(u64),
}

impl From<&str> for Moment {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Moment {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Moment {
    fn from(unix_ms: u64) -> Self {
        Self::UnixMs(unix_ms)
    }
}

/// A moment before 1970 is 1970: no request takes an earlier one.
impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

// By hand, so that a fault says what is expected.
impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in RFC 3339, or Unix time in milliseconds as a whole number")
            }

            fn visit_u64<E>(self, unix_ms: u64) -> Result<Moment, E> {
                Ok(Moment::UnixMs(unix_ms))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Moment, E> {
                Ok(Moment::from(text))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_string_or_a_whole_number_and_nothing_else() {
        for text in ["\"2026-11-21T08:00:00Z\"", "1795248000000", "0"] {
            let moment: Moment = serde_json::from_str(text).expect("a moment");
            assert_eq!(serde_json::to_string(&moment).expect("JSON"), text);
        }
        for text in ["-1", "1.5", "1e3", "null", "true", "[]", "{\"now\":true}"] {
            assert!(
                serde_json::from_str::<Moment>(text).is_err_and(|error| error.to_string().contains("RFC 3339")),
                "{text}"
            );
        }
        assert_eq!(Moment::from(UNIX_EPOCH + std::time::Duration::from_millis(1_500)), Moment::UnixMs(1_500));
    }
}
