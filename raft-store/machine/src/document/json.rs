//! A JSON value in memory.
//!
//! Owns the tree: members in the order they were written, numbers and strings borrowed from the text where they can
//! be. What a patch does not touch is written back as it was but for insignificant whitespace and needless escapes;
//! `serde_json::Value` keeps neither order nor numbers, unless features change it for the whole workspace.

use std::borrow::Cow;

use bincode::{Decode, Encode};

use super::number::Number;

/// A JSON value. `==` compares as written, member order and spelling of numbers included; what is the same to a user
/// is [`super::order::same`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`: a value, and different from a missing field.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number<'a>),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// The members of an object, in the order written.
///
/// No name occurs twice in what came through the API. Should one, the last member of that name counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object<'a> {
    pub(super) members: Vec<(Cow<'a, str>, Json<'a>)>,
}

impl<'a> Json<'a> {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// Levels of arrays and objects: 0 for a scalar, 1 for `[]`.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(items) => 1 + items.iter().map(Json::depth).max().unwrap_or(0),
            Self::Object(object) => 1 + object.members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => 0,
        }
    }

    /// Borrows all texts of the tree.
    pub fn borrowed(&self) -> Json<'_> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(number) => Json::Number(number.borrowed()),
            Self::String(text) => Json::String(Cow::Borrowed(text)),
            Self::Array(items) => Json::Array(items.iter().map(Json::borrowed).collect()),
            Self::Object(object) => {
                let members = object.members.iter().map(|(name, value)| (Cow::Borrowed(&**name), value.borrowed()));
                Json::Object(Object { members: members.collect() })
            }
        }
    }

    /// Copies all texts of the tree.
    pub fn into_owned(self) -> Json<'static> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(number) => Json::Number(number.into_owned()),
            Self::String(text) => Json::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Self::Object(object) => {
                let members =
                    object.members.into_iter().map(|(name, value)| (name.into_owned().into(), value.into_owned()));
                Json::Object(Object { members: members.collect() })
            }
        }
    }
}

impl<'a> Object<'a> {
    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.members.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// The value of a member, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        self.members.iter_mut().rev().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// Gives a member a value: in its place where there is one, else at the end.
    pub fn set(&mut self, name: &'a str, value: Json<'a>) {
        match self.get_mut(name) {
            Some(place) => *place = value,
            None => self.members.push((Cow::Borrowed(name), value)),
        }
    }

    /// Takes a member out; the order of the others stays.
    pub fn remove(&mut self, name: &str) -> Option<Json<'a>> {
        let at = self.members.iter().rposition(|(found, _)| found == name)?;
        let (_, removed) = self.members.remove(at);
        // Only a text that did not come through the API has more of them; then they were hidden, and are gone too.
        self.members.retain(|(found, _)| found != name);
        Some(removed)
    }

    /// Names with their places among the members, sorted. Of several members of one name only the last counts.
    pub(super) fn by_name(&self) -> Vec<(&str, usize)> {
        let mut names: Vec<_> = self.iter().enumerate().map(|(at, (name, _))| (name, at)).collect();
        names.sort_unstable();
        names.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 = later.1;
            }
            is_same
        });
        names
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'a> FromIterator<(Cow<'a, str>, Json<'a>)> for Object<'a> {
    /// Members of these names, none of which may occur twice.
    fn from_iter<T: IntoIterator<Item = (Cow<'a, str>, Json<'a>)>>(members: T) -> Self {
        Self { members: members.into_iter().collect() }
    }
}

/// As text: short, and the parser's checks hold for what is decoded too, its depth above all.
impl Encode for Json<'_> {
    fn encode<E: bincode::enc::Encoder>(&self, encoder: &mut E) -> Result<(), bincode::error::EncodeError> {
        self.to_text().encode(encoder)
    }
}

impl<Context> Decode<Context> for Json<'static> {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let text = String::decode(decoder)?;
        let parsed = Json::parse(text.as_bytes()).map(Json::into_owned);
        parsed.map_err(|error| bincode::error::DecodeError::OtherString(error.to_string()))
    }
}

bincode::impl_borrow_decode!(Json<'static>);
