//! Names of locks, elections, barriers and latches.

use bincode::Encode;

use crate::limits;
use crate::rules::{NameError, checked_name, name_traits};

/// The name of a lock, an election, a barrier or a latch: 1 to [`COORDINATION_NAME_BYTES_MAX`](crate::limits::COORDINATION_NAME_BYTES_MAX) bytes of text.
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        checked_name(name.into(), limits::COORDINATION_NAME_BYTES_MAX).map(Self)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

name_traits!(Name);
