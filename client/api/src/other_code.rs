//! The text of an error code that this version does not know.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest text kept; codes are words.
const BYTES_MAX: usize = 47;

/// An error code of a newer server, as it came. Small enough to be copied; what is longer than any code is cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OtherCode {
    length: u8,
    bytes: [u8; BYTES_MAX],
}

impl OtherCode {
    fn new(text: &str) -> Self {
        let end = (0..=text.len().min(BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let text = &text[..end];
        let mut bytes = [0; BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self { length: u8::try_from(text.len()).expect("BYTES_MAX fits"), bytes }
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length.into()]).expect("it was cut between characters")
    }
}

impl fmt::Debug for OtherCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for OtherCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for OtherCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for OtherCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer).map(|text| Self::new(&text))
    }
}
