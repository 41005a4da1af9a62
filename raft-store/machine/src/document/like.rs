//! `like` patterns: `%` stands for any text, `_` for one character, `\` takes the next character as it is.
//!
//! Owns the match, in time linear in text and pattern. A pattern is split at its `%`; each stretch is searched behind
//! the one before, and the first place found is as good as any, so nothing is ever tried again. Plain text the standard
//! library searches in linear time; a stretch with a `_` is short enough to be tried at each place. A name that is no text is
//! matched, too: each byte of it that belongs to no character is one for `_` and `%`, and is no character of a pattern.

use std::borrow::Cow;

use super::name::{self, Name};
use crate::limits;

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LikeError {
    /// A backslash with nothing, or neither of `%`, `_`, `\`, behind it.
    #[error("byte {0}: a backslash in a pattern stands before `%`, `_` or another backslash only")]
    BadEscape(usize),
    /// A stretch with `_` has too many characters.
    #[error("two `%` with a `_` between them are at most {max} characters apart, not {0}", max = limits::LIKE_STRETCH_MAX)]
    TooLong(usize),
}

/// What lies between two `%`.
enum Stretch<'p> {
    Plain(Cow<'p, str>),
    /// `None` is `_`.
    Holes(Vec<Option<char>>),
}

/// Checks a pattern.
pub(super) fn check(pattern: &str) -> Result<(), LikeError> {
    let mut characters = pattern.char_indices();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && !matches!(characters.next(), Some((_, '%' | '_' | '\\'))) {
            return Err(LikeError::BadEscape(at));
        }
    }
    stretches(pattern).try_for_each(|text| match read_stretch(text) {
        Stretch::Holes(holes) if holes.len() > limits::LIKE_STRETCH_MAX => Err(LikeError::TooLong(holes.len())),
        Stretch::Holes(_) | Stretch::Plain(_) => Ok(()),
    })
}

/// Whether all of `text` matches. A pattern that [`check`] refuses may match nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_all(pattern, text)
}

/// Whether all of a name matches, as [`matches()`] says of one that is a text.
pub(super) fn matches_name(pattern: &str, name: &[u8]) -> bool {
    match std::str::from_utf8(name) {
        Ok(text) => matches_all(pattern, text),
        Err(_) => matches_all(pattern, Name(name)),
    }
}

fn matches_all(pattern: &str, text: impl Text) -> bool {
    let mut stretches = stretches(pattern).map(read_stretch);
    let first = stretches.next().expect("splitting gives at least one");
    let Some(mut rest) = first.strip_from(text) else { return false };
    let Some(mut last) = stretches.next() else { return rest.is_empty() };
    for next in stretches {
        let Some(behind) = last.skip_past(rest) else { return false };
        rest = behind;
        last = next;
    }
    last.is_end_of(rest)
}

/// What a pattern is held against.
trait Text: Copy {
    fn is_empty(self) -> bool;
    fn strip_prefix(self, plain: &str) -> Option<Self>;
    fn ends_with(self, plain: &str) -> bool;
    /// What is left behind the first place of this.
    fn behind(self, plain: &str) -> Option<Self>;
    /// Takes the first character off; `None` is a byte that belongs to none.
    fn take_first(&mut self) -> Option<Option<char>>;
    /// [`Self::take_first`] from the end.
    fn take_last(&mut self) -> Option<Option<char>>;
}

impl Text for &str {
    fn is_empty(self) -> bool {
        str::is_empty(self)
    }

    fn strip_prefix(self, plain: &str) -> Option<Self> {
        str::strip_prefix(self, plain)
    }

    fn ends_with(self, plain: &str) -> bool {
        str::ends_with(self, plain)
    }

    fn behind(self, plain: &str) -> Option<Self> {
        self.find(plain).map(|at| &self[at + plain.len()..])
    }

    fn take_first(&mut self) -> Option<Option<char>> {
        let mut characters = self.chars();
        let first = characters.next()?;
        *self = characters.as_str();
        Some(Some(first))
    }

    fn take_last(&mut self) -> Option<Option<char>> {
        let mut characters = self.chars();
        let last = characters.next_back()?;
        *self = characters.as_str();
        Some(Some(last))
    }
}

impl Text for Name<'_> {
    fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn strip_prefix(self, plain: &str) -> Option<Self> {
        self.0.strip_prefix(plain.as_bytes()).map(Name)
    }

    fn ends_with(self, plain: &str) -> bool {
        self.0.ends_with(plain.as_bytes())
    }

    // A character begins with a byte that is within none, so whatever is found begins where one does.
    fn behind(self, plain: &str) -> Option<Self> {
        name::find(self.0, plain.as_bytes()).map(|at| Name(&self.0[at + plain.len()..]))
    }

    fn take_first(&mut self) -> Option<Option<char>> {
        let (first, bytes) = self.first()?;
        self.0 = &self.0[bytes..];
        Some(first)
    }

    fn take_last(&mut self) -> Option<Option<char>> {
        let (last, bytes) = self.last()?;
        self.0 = &self.0[..self.0.len() - bytes];
        Some(last)
    }
}

/// The pattern split at every `%` that is not escaped.
fn stretches(pattern: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    pattern.split(move |character| {
        let splits = character == '%' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        splits
    })
}

fn read_stretch(text: &str) -> Stretch<'_> {
    if !text.contains(['\\', '_']) {
        return Stretch::Plain(Cow::Borrowed(text));
    }
    let mut holes = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        holes.push(match character {
            '_' => None,
            '\\' => Some(characters.next().unwrap_or('\\')),
            plain => Some(plain),
        });
    }
    match holes.iter().copied().collect() {
        Some(plain) => Stretch::Plain(Cow::Owned(plain)),
        None => Stretch::Holes(holes),
    }
}

impl Stretch<'_> {
    /// What is left of the text behind this, which it starts with.
    fn strip_from<T: Text>(&self, mut text: T) -> Option<T> {
        match self {
            Self::Plain(plain) => text.strip_prefix(plain),
            Self::Holes(holes) => {
                let fits = holes.iter().all(|hole| text.take_first().is_some_and(|found| accepts(*hole, found)));
                fits.then_some(text)
            }
        }
    }

    /// Whether the text ends with this.
    fn is_end_of(&self, mut text: impl Text) -> bool {
        match self {
            Self::Plain(plain) => text.ends_with(plain),
            Self::Holes(holes) => {
                holes.iter().rev().all(|hole| text.take_last().is_some_and(|found| accepts(*hole, found)))
            }
        }
    }

    /// What is left of the text behind the first place of this in it.
    fn skip_past<T: Text>(&self, mut text: T) -> Option<T> {
        match self {
            Self::Plain(plain) => text.behind(plain),
            Self::Holes(holes) => {
                let accepting = Accepting::of(holes)?;
                let complete = 1_u64 << (holes.len() - 1);
                // Bit n: the last n + 1 characters match the first n + 1 of the stretch.
                let mut matched = 0_u64;
                while let Some(found) = text.take_first() {
                    matched = (matched << 1 | 1) & accepting.places(found);
                    if matched & complete != 0 {
                        return Some(text);
                    }
                }
                None
            }
        }
    }
}

/// At which places of a stretch a character may stand, as bits.
struct Accepting {
    /// The places of `_`.
    any: u64,
    /// Those of other characters, sorted.
    plain: Vec<(char, u64)>,
}

impl Accepting {
    /// `None` for nothing, and for more places than there are bits, which [`check`] refuses.
    fn of(holes: &[Option<char>]) -> Option<Self> {
        if holes.is_empty() || holes.len() > limits::LIKE_STRETCH_MAX {
            return None;
        }
        let mut accepting = Self { any: 0, plain: Vec::new() };
        for (place, hole) in holes.iter().enumerate() {
            let bit = 1_u64 << place;
            let Some(plain) = *hole else {
                accepting.any |= bit;
                continue;
            };
            match accepting.plain.binary_search_by_key(&plain, |(known, _)| *known) {
                Ok(at) => accepting.plain[at].1 |= bit,
                Err(at) => accepting.plain.insert(at, (plain, bit)),
            }
        }
        Some(accepting)
    }

    fn places(&self, found: Option<char>) -> u64 {
        let Some(found) = found else { return self.any };
        let plain = self.plain.binary_search_by_key(&found, |(known, _)| *known);
        self.any | plain.map_or(0, |at| self.plain[at].1)
    }
}

fn accepts(hole: Option<char>, found: Option<char>) -> bool {
    hole.is_none() || hole == found
}

const _: () = assert!(limits::LIKE_STRETCH_MAX <= 64);
