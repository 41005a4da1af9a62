//! The rule of one field.
//!
//! Owns the types that fields can have and what may stand beside which. What they do to values is in [`super::convert`].

use bincode::{Decode, Encode};

use super::name::SequenceName;
use crate::document::Json;

/// The type of a field. Null is of every type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub enum FieldKind {
    /// Whatever it is.
    #[default]
    Any,
    /// `true` or `false`.
    Boolean,
    /// A whole number of 64 bits, signed or not.
    Long,
    /// A number.
    Double,
    /// A string.
    Varchar,
    /// A time: RFC 3339 in UTC with milliseconds. These strings sort as the times do.
    Datetime,
    /// An object.
    Object,
    /// An array.
    Array,
}

/// What is asked of one field. [`super::Rules::new`] checks that its parts fit each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct FieldRule {
    /// Its type; what is given is converted to it where nothing is lost.
    pub kind: FieldKind,
    /// Most bytes, of a varchar.
    pub max: Option<u64>,
    /// What it is where a document lacks it.
    pub default: Option<Json<'static>>,
    /// Gives it the next number at each write that does not set it; beside `long` and `any`.
    pub sequence: Option<SequenceName>,
    /// Gives it the time of each write that does not set it; beside `datetime`, and `long` in Unix milliseconds.
    pub auto_update: bool,
}

impl FieldKind {
    /// As they are written.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("any", Self::Any),
        ("boolean", Self::Boolean),
        ("long", Self::Long),
        ("double", Self::Double),
        ("varchar", Self::Varchar),
        ("datetime", Self::Datetime),
        ("object", Self::Object),
        ("array", Self::Array),
    ];

    /// The type of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, kind)| *kind == self);
        named.map(|(name, _)| *name).expect("the table has all of them")
    }

    /// Whether a value of it has no parts.
    pub fn is_scalar(self) -> bool {
        !matches!(self, Self::Any | Self::Object | Self::Array)
    }
}

impl FieldRule {
    /// Whether it has a value of its own for each write that brings none.
    pub fn is_automatic(&self) -> bool {
        self.sequence.is_some() || self.auto_update
    }
}
