//! Keys of entries.
//!
//! Owns their bounds; nothing else makes a key of bytes.

use std::fmt;

use bincode::{Decode, Encode};

use crate::limits;

/// A key: 1 to [`KEY_BYTES_MAX`](crate::limits::KEY_BYTES_MAX) arbitrary bytes, ordered bytewise.
///
/// Invariant: the length is within the bounds, because the only constructor checks it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode)]
pub struct Key(Vec<u8>);

/// Why some bytes are not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Zero bytes.
    #[error("a key has at least 1 byte")]
    Empty,
    /// Too many bytes; holds the actual length.
    #[error("a key has at most {max} bytes, this one has {0}", max = limits::KEY_BYTES_MAX)]
    TooLong(usize),
}

impl Key {
    /// Checks the bounds and takes the bytes as they are.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, KeyError> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(KeyError::Empty),
            length if length > limits::KEY_BYTES_MAX => Err(KeyError::TooLong(length)),
            _ => Ok(Self(bytes)),
        }
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The raw bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<Context> Decode<Context> for Key {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let bytes = Vec::<u8>::decode(decoder)?;
        Self::new(bytes).map_err(|error| bincode::error::DecodeError::OtherString(error.to_string()))
    }
}

bincode::impl_borrow_decode!(Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// Shows the key with everything but printable ASCII escaped, so that it is safe in a log line.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// The first key after all keys with this prefix; `None` where there is no such key.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_first_key_that_does_not_have_it() {
        assert_eq!(after_prefix(b""), None);
        assert_eq!(after_prefix(b"a/"), Some(b"a0".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
    }
}
