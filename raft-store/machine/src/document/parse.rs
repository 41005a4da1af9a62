//! JSON text to a tree.
//!
//! Owns the grammar (RFC 8259). Strict: no deeper than [`JSON_DEPTH_MAX`], numbers finite, strings without half surrogate
//! pairs. What is stored is read with less: the API takes no number that is not finite, and apply asks no command for that. serde_json would read
//! about the same texts, but turns numbers into doubles on the way, and not always into the nearest.

use std::borrow::Cow;

use super::json::{Json, Object};
use super::number::Number;
use crate::limits::JSON_DEPTH_MAX;

/// Why a text is not JSON, with the byte at which it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Bytes that are no text.
    #[error("byte {0}: not UTF-8")]
    NotUtf8(usize),
    /// Something other than the grammar allows here.
    #[error("byte {at}: expected {expected}")]
    Expected {
        /// Where.
        at: usize,
        /// What would have been right.
        expected: &'static str,
    },
    /// Arrays and objects in too many levels.
    #[error("byte {0}: nested deeper than {JSON_DEPTH_MAX} levels")]
    TooDeep(usize),
    /// A number beyond the greatest double.
    #[error("byte {0}: number out of range")]
    NumberOutOfRange(usize),
}

/// What becomes of a number beyond the greatest double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    /// The text is refused.
    Refused,
    /// It is read as the furthest number of its sign.
    Furthest,
}

impl<'a> Json<'a> {
    /// Reads a text; strict, and no deeper than [`crate::limits::JSON_DEPTH_MAX`].
    pub fn parse(text: &'a [u8]) -> Result<Self, JsonError> {
        parse(text, Beyond::Refused)
    }

    /// Reads what is stored: the same, but a number beyond the greatest double is the furthest of its sign, so that nothing that is
    /// stored stops who reads it.
    pub fn parse_stored(text: &'a [u8]) -> Result<Self, JsonError> {
        parse(text, Beyond::Furthest)
    }
}

/// Parses a whole text.
pub(super) fn parse(text: &[u8], beyond: Beyond) -> Result<Json<'_>, JsonError> {
    let text = std::str::from_utf8(text).map_err(|error| JsonError::NotUtf8(error.valid_up_to()))?;
    let mut cursor = Cursor { text, bytes: text.as_bytes(), at: 0, beyond };
    cursor.skip_blanks();
    let value = cursor.value(0)?;
    cursor.skip_blanks();
    match cursor.peek() {
        None => Ok(value),
        Some(_) => Err(cursor.expected("the end of the text")),
    }
}

/// How many bytes stand in a string as they are, up to the next that may not. Most strings are short: their bytes are looked at one by one.
/// Then by blocks, which the compiler turns into vector instructions: long strings are most of the bytes of most documents.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    const SHORT: usize = 24;
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let mut first = 0;
    while first < SHORT {
        match bytes.get(first) {
            Some(byte) if !is_special(byte) => first += 1,
            _ => return first,
        }
    }
    let bytes = &bytes[first..];
    let blocks = bytes.chunks_exact(32);
    let plain_blocks =
        blocks.take_while(|block| !block.iter().fold(false, |found, byte| found | is_special(byte))).count();
    let rest = &bytes[32 * plain_blocks..];
    first + 32 * plain_blocks + rest.iter().position(is_special).unwrap_or(rest.len())
}

struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    beyond: Beyond,
}

impl<'a> Cursor<'a> {
    /// A value inside of `depth` containers, which starts here.
    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        match self.peek() {
            Some(b'{' | b'[') if depth == JSON_DEPTH_MAX => Err(JsonError::TooDeep(self.at)),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(Json::Object(Object { members }));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in quotes"));
            }
            let name = self.string()?;
            self.skip_blanks();
            if !self.take(b':') {
                return Err(self.expected("`:`"));
            }
            self.skip_blanks();
            members.push((name, self.value(depth)?));
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(Json::Object(Object { members }));
            }
            self.comma("`,` or `}`")?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            // The longest lists there are have nothing else, and nothing between: that is quick.
            let item = match self.digits_only() {
                Some(number) => Json::Number(number),
                None => self.value(depth)?,
            };
            items.push(item);
            if self.take(b',') {
                self.skip_blanks();
                continue;
            }
            self.skip_blanks();
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            self.comma("`,` or `]`")?;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let start = self.at;
        self.at += 1;
        self.skip_plain();
        if self.take(b'"') {
            return Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1]));
        }
        loop {
            match self.peek() {
                Some(b'"') => break self.at += 1,
                Some(b'\\') => self.at += 2,
                _ => return Err(self.expected("`\"`, or the character escaped")),
            }
            self.skip_plain();
        }
        // Ends behind a quote, which is a character of its own.
        let decoded = serde_json::from_str(&self.text[start..self.at]);
        decoded.map(Cow::Owned).map_err(|_| JsonError::Expected { at: start, expected: "a string with proper escapes" })
    }

    fn skip_plain(&mut self) {
        self.at += self.bytes.get(self.at..).map_or(0, plain_bytes);
    }

    /// A short number of digits alone, if one starts here: most are. Any other is left where it was, to [`Self::number`].
    fn digits_only(&mut self) -> Option<Number<'a>> {
        /// Far from the greatest double.
        const SHORT: usize = 18;
        let (start, bytes) = (self.at, self.bytes);
        let mut end = start;
        while end - start <= SHORT && bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        let has_more = matches!(bytes.get(end), Some(b'.' | b'e' | b'E'));
        // A leading zero stands alone.
        let is_number = end > start && (bytes[start] != b'0' || end == start + 1);
        if has_more || !is_number || end - start > SHORT {
            return None;
        }
        self.at = end;
        Some(Number::from_digits(&self.text[start..end]))
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        if let Some(number) = self.digits_only() {
            return Ok(Json::Number(number));
        }
        let start = self.at;
        self.take(b'-');
        // A leading zero stands alone.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        match (Number::from_checked(&self.text[start..self.at]), self.beyond) {
            (Some(number), _) => Ok(Json::Number(number)),
            (None, Beyond::Furthest) => Ok(Json::Number(Number::furthest(self.bytes[start] == b'-'))),
            (None, Beyond::Refused) => Err(JsonError::NumberOutOfRange(start)),
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected(word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn comma(&mut self, expected: &'static str) -> Result<(), JsonError> {
        if !self.take(b',') {
            return Err(self.expected(expected));
        }
        self.skip_blanks();
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError::Expected { at: self.at.min(self.bytes.len()), expected }
    }
}
