//! A tree to JSON text, without insignificant whitespace.
//!
//! Owns the canonical form: one spelling for each string, numbers in the text they have, members in their order. It is
//! part of the replicated state, so it depends on no library's taste.

use bincode::{Decode, Encode};

use super::json::Json;
use super::parse::plain_bytes;
use crate::limits;

/// A value shown in a refusal: its text, cut where it is long.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Excerpt {
    /// At most [`limits::EXCERPT_BYTES_MAX`] bytes. JSON, where it is whole.
    pub text: String,
    /// Whether this is all of it.
    pub is_whole: bool,
}

/// Where text goes.
trait Sink {
    fn put(&mut self, text: &[u8]);

    /// Whether the rest may be left out.
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }
}

/// Only counts.
struct Count(usize);

impl Sink for Count {
    fn put(&mut self, text: &[u8]) {
        self.0 += text.len();
    }
}

/// Keeps the start, and one byte more as a sign that there was a rest.
struct Start(Vec<u8>);

impl Sink for Start {
    fn put(&mut self, text: &[u8]) {
        let room = limits::EXCERPT_BYTES_MAX + 1 - self.0.len();
        self.0.extend_from_slice(&text[..text.len().min(room)]);
    }

    fn is_full(&self) -> bool {
        self.0.len() > limits::EXCERPT_BYTES_MAX
    }
}

impl Json<'_> {
    /// Appends the text.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_value(self, out);
    }

    /// The text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).expect("made of strings and ASCII")
    }

    /// Bytes of the text, without making it.
    pub fn text_bytes(&self) -> usize {
        let mut count = Count(0);
        write_value(self, &mut count);
        count.0
    }

    /// The text, or the start of it.
    pub fn excerpt(&self) -> Excerpt {
        let mut start = Start(Vec::new());
        write_value(self, &mut start);
        let is_whole = !start.is_full();
        let bytes = &start.0[..start.0.len().min(limits::EXCERPT_BYTES_MAX)];
        let end = match std::str::from_utf8(bytes) {
            Ok(text) => text.len(),
            // Cut inside of a character.
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(bytes[..end].to_vec()).expect("it ends with a whole character");
        Excerpt { text, is_whole }
    }
}

fn write_value(value: &Json<'_>, out: &mut impl Sink) {
    match value {
        Json::Null => out.put(b"null"),
        Json::Bool(true) => out.put(b"true"),
        Json::Bool(false) => out.put(b"false"),
        Json::Number(number) => out.put(number.as_str().as_bytes()),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            let mut separator: &[u8] = b"[";
            for item in items {
                if out.is_full() {
                    return;
                }
                out.put(separator);
                separator = b",";
                write_value(item, out);
            }
            out.put(if items.is_empty() { b"[]" } else { b"]" });
        }
        Json::Object(object) => {
            let mut separator: &[u8] = b"{";
            for (name, value) in object.iter() {
                if out.is_full() {
                    return;
                }
                out.put(separator);
                separator = b",";
                write_string(name, out);
                out.put(b":");
                write_value(value, out);
            }
            out.put(if object.is_empty() { b"{}" } else { b"}" });
        }
    }
}

/// Escapes what has to be, and nothing else.
fn write_string(text: &str, out: &mut impl Sink) {
    out.put(b"\"");
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_bytes(rest));
        out.put(plain);
        let Some((&byte, behind)) = special.split_first() else { break };
        write_escape(byte, out);
        rest = behind;
    }
    out.put(b"\"");
}

fn write_escape(byte: u8, out: &mut impl Sink) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'\n' => out.put(b"\\n"),
        b'\r' => out.put(b"\\r"),
        b'\t' => out.put(b"\\t"),
        0x08 => out.put(b"\\b"),
        0x0C => out.put(b"\\f"),
        0x00..0x20 => out.put(&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        _ => out.put(&[b'\\', byte]),
    }
}
