//! Paths to fields of a document, and the names of metadata.
//!
//! Owns how a path is written and what it leads to. Two notations, told apart by the first character:
//!
//! - dotted: `a.b.0.c`. `\.` is a dot inside of a name and `\\` a backslash; any other backslash is a fault. Names are
//!   not empty.
//! - JSON pointer (RFC 6901): `/a/b/0/c`, with `~1` for a slash and `~0` for a tilde. The one to use for names that are
//!   empty or start with `$` or `/`.
//!
//! A name that starts with `$` is one of the [`MetaField`]s. In an array a name is an index: decimal, without leading
//! zeros; in an object it is always a member's name, `0` too.

use std::borrow::Cow;
use std::fmt;

use bincode::{Decode, Encode};

use super::json::Json;
use super::steps::Steps;
use crate::limits;

/// Names from the root of a document to a value in it. None: the whole document.
///
/// Invariant: within the bounds of [`limits::PATH_BYTES_MAX`] and [`limits::JSON_DEPTH_MAX`], because every constructor
/// checks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct Path {
    names: Vec<String>,
}

/// What a condition is about.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Field {
    /// A value in the document.
    Document(Path),
    /// A fact about the entry.
    Meta(MetaField),
}

/// Facts about an entry that conditions can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum MetaField {
    /// `$key`: the key, a string.
    Key,
    /// `$cas`: the token as answers show it: a string of digits, `null` while the entry is locked.
    Cas,
    /// `$version`: writes since creation, a number.
    Version,
    /// `$create_revision`: a number.
    CreateRevision,
    /// `$mod_revision`: a number.
    ModRevision,
    /// `$exists`: a boolean, never missing.
    Exists,
    /// `$locked`: a boolean, never missing.
    Locked,
    /// `$expires_at`: when it expires if the clock goes on without a stop, a string in RFC 3339; missing where it does not.
    ExpiresAt,
}

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing at all, where a field has to be named.
    #[error("a field path has at least one name")]
    Empty,
    /// Two dots in a row, or one at an end.
    #[error("the name at place {0} is empty; a JSON pointer can name such a field")]
    EmptyName(usize),
    /// A backslash that is not followed by a dot or a backslash.
    #[error("byte {0}: a backslash stands before a dot or another backslash only")]
    BadEscape(usize),
    /// A JSON pointer that does not start with a slash.
    #[error("a JSON pointer is empty or starts with `/`")]
    NoSlash,
    /// A tilde that is not followed by 0 or 1.
    #[error("byte {0}: `~` in a JSON pointer is followed by 0 or 1")]
    BadTilde(usize),
    /// A `$` name that means nothing.
    #[error("there is no such metadata; known are {}", MetaField::NAMES.map(|(name, _)| name).join(" "))]
    UnknownMetadata,
    /// Metadata where only a field of the document can stand.
    #[error("metadata cannot stand here; write /$name for a field whose name starts with `$`")]
    NotInDocument,
    /// Too many bytes; holds how many.
    #[error("a path has at most {max} bytes as a JSON pointer, this one has {0}", max = limits::PATH_BYTES_MAX)]
    TooLong(usize),
    /// More names than a document has levels; holds how many.
    #[error("a path has at most {max} names, as a document has levels; this one has {0}", max = limits::JSON_DEPTH_MAX)]
    TooDeep(usize),
}

impl Path {
    /// Reads either notation; at least one name.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        match text.bytes().next() {
            None => Err(PathError::Empty),
            Some(b'/') => Self::parse_pointer(text),
            Some(b'$') => Err(PathError::NotInDocument),
            Some(_) => Self::parse_dotted(text),
        }
    }

    /// Reads a JSON pointer; the empty one is the whole document.
    pub fn parse_pointer(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Ok(Self { names: Vec::new() });
        }
        let rest = text.strip_prefix('/').ok_or(PathError::NoSlash)?;
        if let Some((at, _)) =
            text.match_indices('~').find(|(at, _)| !matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')))
        {
            return Err(PathError::BadTilde(at));
        }
        Self::checked(rest.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect())
    }

    fn parse_dotted(text: &str) -> Result<Self, PathError> {
        let mut names = vec![String::new()];
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            let last = names.last_mut().expect("starts with one");
            match character {
                '.' if last.is_empty() => return Err(PathError::EmptyName(names.len() - 1)),
                '.' => names.push(String::new()),
                '\\' => match characters.next() {
                    Some((_, escaped @ ('.' | '\\'))) => last.push(escaped),
                    _ => return Err(PathError::BadEscape(at)),
                },
                _ => last.push(character),
            }
        }
        match names.last() {
            Some(last) if last.is_empty() => Err(PathError::EmptyName(names.len() - 1)),
            _ => Self::checked(names),
        }
    }

    fn checked(names: Vec<String>) -> Result<Self, PathError> {
        if names.len() > limits::JSON_DEPTH_MAX {
            return Err(PathError::TooDeep(names.len()));
        }
        match names.iter().map(|name| 1 + escape(name).len()).sum() {
            length if length > limits::PATH_BYTES_MAX => Err(PathError::TooLong(length)),
            _ => Ok(Self { names }),
        }
    }

    /// The names, outermost first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether `other` lies inside of what this names.
    pub fn is_above(&self, other: &Self) -> bool {
        self.names.len() < other.names.len() && other.names.starts_with(&self.names)
    }

    /// The value it leads to; `None` where a member or element is missing on the way, or there is a scalar.
    pub fn find<'j, 'a>(&self, root: &'j Json<'a>) -> Option<&'j Json<'a>> {
        self.find_within(root, &Steps::unbounded())
    }

    /// The same, with a step for each member that is looked at; `None` also beyond the bound.
    pub(crate) fn find_within<'j, 'a>(&self, root: &'j Json<'a>, steps: &Steps) -> Option<&'j Json<'a>> {
        self.names.iter().try_fold(root, |value, name| match value {
            Json::Object(object) => {
                if steps.take(object.len()) {
                    object.get(name)
                } else {
                    None
                }
            }
            Json::Array(items) => items.get(array_index(name)?),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        })
    }
}

/// Finds what each of these paths leads to, in their order: the same as [`Path::find`]. Each object on the way is gone through once, however many
/// of them lead into it. Finds nothing more beyond the bound.
pub(crate) fn find_each<'j, 'a>(paths: &[&Path], root: &'j Json<'a>, steps: &Steps) -> Vec<Option<&'j Json<'a>>> {
    // Most indexes have one field, and are alone.
    if let [path] = paths {
        return vec![path.find_within(root, steps)];
    }
    let mut found = vec![None; paths.len()];
    let mut ways: Vec<Way<'_>> = paths.iter().enumerate().map(|(at, path)| (path.names(), at)).collect();
    ways.sort_unstable();
    follow(&ways, 0, root, steps, &mut found);
    found
}

/// The names of a path, and its place among those that are looked for.
type Way<'p> = (&'p [String], usize);

/// Follows ways that are in order and lead to `value` by their first `depth` names.
fn follow<'j, 'a>(
    ways: &[Way<'_>],
    depth: usize,
    value: &'j Json<'a>,
    steps: &Steps,
    found: &mut [Option<&'j Json<'a>>],
) {
    let (ended, going) = ways.split_at(ways.partition_point(|(names, _)| names.len() == depth));
    for (_, at) in ended {
        found[*at] = Some(value);
    }
    let groups: Vec<&[Way<'_>]> = going.chunk_by(|(one, _), (other, _)| one[depth] == other[depth]).collect();
    match value {
        Json::Object(object) if !groups.is_empty() && steps.take_looks(object.len(), groups.len()) => {
            let mut members = vec![None; groups.len()];
            for (name, member) in object.iter() {
                if let Ok(at) = groups.binary_search_by(|group| group[0].0[depth].as_str().cmp(name)) {
                    members[at] = Some(member);
                }
            }
            for (group, member) in groups.into_iter().zip(members) {
                if let Some(member) = member {
                    follow(group, depth + 1, member, steps, found);
                }
            }
        }
        Json::Array(items) => {
            for group in groups {
                if let Some(item) = array_index(&group[0].0[depth]).and_then(|at| items.get(at)) {
                    follow(group, depth + 1, item, steps, found);
                }
            }
        }
        Json::Object(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// As JSON pointer, whichever way it was written.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.iter().try_for_each(|name| write!(f, "/{}", escape(name)))
    }
}

impl<Context> Decode<Context> for Path {
    fn decode<D: bincode::de::Decoder<Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let names = Vec::<String>::decode(decoder)?;
        Self::checked(names).map_err(|error| bincode::error::DecodeError::OtherString(error.to_string()))
    }
}

bincode::impl_borrow_decode!(Path);

impl Field {
    /// Reads a field of either kind.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.starts_with('$') {
            let known = MetaField::NAMES.iter().find(|(name, _)| *name == text);
            return known.map(|(_, field)| Self::Meta(*field)).ok_or(PathError::UnknownMetadata);
        }
        Path::parse(text).map(Self::Document)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(path) => path.fmt(f),
            Self::Meta(field) => f.write_str(field.name()),
        }
    }
}

impl MetaField {
    const NAMES: [(&'static str, Self); 8] = [
        ("$key", Self::Key),
        ("$cas", Self::Cas),
        ("$version", Self::Version),
        ("$create_revision", Self::CreateRevision),
        ("$mod_revision", Self::ModRevision),
        ("$exists", Self::Exists),
        ("$locked", Self::Locked),
        ("$expires_at", Self::ExpiresAt),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, field)| *field == self);
        named.map(|(name, _)| *name).expect("the table has all of them")
    }
}

/// A name as an index of an array.
pub(crate) fn array_index(name: &str) -> Option<usize> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    // 32 bits, so that no build understands more than another.
    is_plain.then(|| name.parse::<u32>().ok())?.map(|index| index as usize)
}

/// A name as a segment of a JSON pointer.
pub(crate) fn escape(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_paths_lead_where_each_of_them_does() {
        let texts = ["a", "a.b", "b.1.c", "/", "a.b.c", "c", "b.1", "b.01", "b.7", "a", "d.e", "b", "0"];
        let paths: Vec<_> = texts.into_iter().map(|text| Path::parse(text).expect(text)).collect();
        for document in [
            r#"{"a":{"x":0,"b":{"c":1}},"b":[0,{"c":2}],"d":3}"#,
            r#"{"b":{"1":{"c":1},"01":2},"0":3,"":4,"c":null}"#,
            r#"[1,{"a":2}]"#,
            "7",
        ] {
            let document = Json::parse(document.as_bytes()).expect(document);
            let expected: Vec<_> = paths.iter().map(|path| path.find(&document)).collect();
            let paths: Vec<_> = paths.iter().collect();
            assert_eq!(find_each(&paths, &document, &Steps::unbounded()), expected, "{document:?}");
        }
        assert!(find_each(&[], &Json::Null, &Steps::unbounded()).is_empty());
    }

    #[test]
    fn an_object_is_gone_through_once_for_many_paths() {
        let document = Json::parse(br#"{"a":{"x":1,"y":2},"b":3,"c":4}"#).expect("JSON");
        let taken = |texts: &[&str]| {
            let paths: Vec<_> = texts.iter().map(|text| Path::parse(text).expect(text)).collect();
            let steps = Steps::unbounded();
            find_each(&paths.iter().collect::<Vec<_>>(), &document, &steps);
            steps.taken()
        };
        assert_eq!(taken(&["a"]), 3);
        assert_eq!(taken(&["a.x", "a.z"]), 3 + 2 * 2);
        // A member is looked for among two names, and among four.
        assert_eq!((taken(&["a", "b"]), taken(&["a", "b", "c", "d"])), (3 * 2, 3 * 4));
    }
}
