//! Names of collections and sequences.
//!
//! Owns what a name may be, and which collections a key may belong to.

use bincode::Encode;

use crate::limits::{COLLECTION_NAME_BYTES_MAX, COLLECTION_SEGMENTS_MAX, SEQUENCE_NAME_BYTES_MAX};

/// The name of a collection: 1 to [`COLLECTION_NAME_BYTES_MAX`] bytes in at most [`COLLECTION_SEGMENTS_MAX`] segments
/// between slashes, none of them empty.
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct CollectionName(String);

/// The name of a sequence: 1 to [`SEQUENCE_NAME_BYTES_MAX`] bytes of text.
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct SequenceName(String);

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing.
    #[error("a name has at least 1 byte")]
    Empty,
    /// Too many bytes.
    #[error("a name has at most {max} bytes, this one has {actual}")]
    TooLong {
        /// Most.
        max: usize,
        /// Found.
        actual: usize,
    },
    /// A slash at an end, or two in a row.
    #[error("the segments of a name, between slashes, are not empty")]
    EmptySegment,
    /// Too many segments; holds how many.
    #[error("a name has at most {COLLECTION_SEGMENTS_MAX} segments, this one has {0}")]
    TooManySegments(usize),
    /// The user that there always is.
    #[error("`root` is the user that there always is; choose another name")]
    Reserved,
}

impl CollectionName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = checked_name(name.into(), COLLECTION_NAME_BYTES_MAX)?;
        if name.split('/').any(str::is_empty) {
            return Err(NameError::EmptySegment);
        }
        match name.split('/').count() {
            count if count > COLLECTION_SEGMENTS_MAX => Err(NameError::TooManySegments(count)),
            _ => Ok(Self(name)),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SequenceName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        checked_name(name.into(), SEQUENCE_NAME_BYTES_MAX).map(Self)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn checked_name(name: String, max: usize) -> Result<String, NameError> {
    match name.len() {
        0 => Err(NameError::Empty),
        actual if actual > max => Err(NameError::TooLong { max, actual }),
        _ => Ok(name),
    }
}

/// The names of collections that a key would belong to if they were declared, the longest first: it belongs to the first
/// one that is. A key is in a collection if it is the name, a slash and anything.
pub fn candidates(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = &key[..key.len().min(COLLECTION_NAME_BYTES_MAX + 1)];
    let mut ends = [0; COLLECTION_SEGMENTS_MAX];
    let (mut count, mut start) = (0, 0);
    for end in (0..head.len()).filter(|at| head[*at] == b'/') {
        // An empty segment is in no name, and neither is one too many.
        if end == start || count == ends.len() {
            break;
        }
        ends[count] = end;
        (count, start) = (count + 1, end + 1);
    }
    (0..count).rev().map(move |at| &key[..ends[at]])
}

macro_rules! name_traits {
    ($name:ident) => {
        impl<Context> bincode::Decode<Context> for $name {
            fn decode<D: bincode::de::Decoder<Context = Context>>(
                decoder: &mut D,
            ) -> Result<Self, bincode::error::DecodeError> {
                let name = String::decode(decoder)?;
                Self::new(name).map_err(|error| bincode::error::DecodeError::OtherString(error.to_string()))
            }
        }

        bincode::impl_borrow_decode!($name);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub(crate) use name_traits;

name_traits!(CollectionName);
name_traits!(SequenceName);
