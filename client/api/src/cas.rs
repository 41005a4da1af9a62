//! The compare-and-swap token of an entry.
//!
//! Owns its form: a decimal number in text, since JavaScript has no numbers of 64 bits.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The token of an entry: another after each change and each lock. Two tokens are the same or they are not; they have no order.
///
/// # Examples
///
/// ```
/// use quorate_api::Cas;
///
/// // As it stands in an answer, and as it goes back.
/// let cas: Cas = serde_json::from_str(r#""17""#)?;
/// assert_eq!(format!("If-Match: \"{cas}\""), r#"If-Match: "17""#);
/// // From where a program has kept it.
/// let kept: Cas = "17".parse()?;
/// assert_eq!(kept, cas);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cas(u64);

/// A text that is no [`Cas`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cas is a decimal number, not `{}`", .0.escape_default())]
pub struct CasError(String);

impl Cas {
    /// The token with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number: to be kept somewhere, not to be compared.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Cas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cas {
    type Err = CasError;

    fn from_str(text: &str) -> Result<Self, CasError> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number).map(Self).ok_or_else(|| CasError(text.to_owned()))
    }
}

impl Serialize for Cas {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Cas;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cas: a decimal number in a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cas, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cas_is_a_number_in_text() {
        let cas: Cas = "18446744073709551615".parse().expect("a cas");
        assert_eq!(cas, Cas::new(u64::MAX));
        assert_eq!(serde_json::to_string(&cas).expect("has JSON"), "\"18446744073709551615\"");
        assert_eq!(serde_json::from_str::<Cas>("\"7\"").expect("a cas").to_string(), "7");
        assert!(serde_json::from_str::<Cas>("7").is_err(), "a number loses digits elsewhere");
        for bad in ["", "x", "4 2", "\"42\"", "-1", "+1", "18446744073709551616"] {
            assert!(bad.parse::<Cas>().is_err(), "{bad:?}");
        }
    }
}
