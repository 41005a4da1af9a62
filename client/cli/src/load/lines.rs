//! The input of a load: lines of JSON, as operations in chunks.
//!
//! Owns what a line means, and where chunks end: at a number of lines or bytes from where they begin, so that a load which goes
//! on at the end of one makes the same chunks again.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_client::api::{ExportLine, Name};
use quorate_client::{Op, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Mode;
use crate::fail::Failed;

/// A chunk ends before the line that would make it longer. The log takes a bulk in smaller parts anyway; what is longer is
/// only more to hold and to send again.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;
/// Longest line. Nodes take less; what is longer is probably no NDJSON.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much of the input lies before something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Position {
    /// Bytes.
    pub offset: u64,
    /// Lines.
    pub line: u64,
    /// Mark of the first line; another input has another one.
    #[serde(default)]
    pub first: Option<Mark>,
    /// The last of them.
    #[serde(default)]
    pub last: Option<Mark>,
}

/// Length and checksum of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Bytes, its break included.
    pub bytes: u64,
    /// CRC-32 of them.
    pub crc: u32,
}

impl Mark {
    /// The mark of this line.
    pub fn of(line: &[u8]) -> Self {
        let mut crc = flate2::Crc::new();
        crc.update(line);
        Self { bytes: line.len() as u64, crc: crc.sum() }
    }
}

/// The path of the field that holds the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField {
    /// As it was typed.
    pub text: String,
    names: Vec<String>,
}

/// Reads `--key-field`: dotted, or a JSON pointer.
pub fn key_field(text: &str) -> Result<KeyField, String> {
    let names: Vec<_> = match text.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect(),
        None => text.split('.').map(str::to_owned).collect(),
    };
    if names.iter().any(String::is_empty) {
        return Err("expected a path like `id` or `customer.id`".into());
    }
    Ok(KeyField { text: text.to_owned(), names })
}

/// A line that became an operation.
#[derive(Debug)]
pub struct Line {
    /// From 1.
    pub number: u64,
    /// The whole key.
    pub key: Name,
    /// What is to be done.
    pub op: Op,
}

/// A line that failed.
#[derive(Debug)]
pub struct Fault {
    /// From 1.
    pub line: u64,
    /// Its key, where it has one.
    pub key: Option<Name>,
    /// What nodes call it, where one did.
    pub code: Option<String>,
    /// Why.
    pub detail: String,
}

/// Lines that are sent together.
#[derive(Debug)]
pub struct Chunk {
    /// Before its first line.
    pub start: Position,
    /// Behind its last line.
    pub end: Position,
    /// Whether it ends there only because the input does: an input that grew would make another chunk.
    pub is_short: bool,
    /// The good ones.
    pub lines: Vec<Line>,
    /// The others.
    pub faults: Vec<Fault>,
}

/// Reads chunks.
pub struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    at: Position,
    /// Was read, and belongs to the next chunk.
    held: Option<Vec<u8>>,
    /// Where chunks end in any case: where the input once did.
    ends: BTreeSet<u64>,
    /// The line before has no break yet: what was read of it was whole, and may get its break now.
    is_within_line: bool,
    /// Whether what follows the last break and is no whole line is left for later, instead of being a fault.
    leaves_rest: bool,
    /// So many bytes were left.
    left: u64,
    prefix: Name,
    key_field: Option<KeyField>,
    mode: Mode,
    lines_max: usize,
}

impl Lines {
    /// Of an input that begins at `at`.
    pub fn new(
        input: Box<dyn Read + Send>,
        at: Position,
        prefix: Name,
        key_field: Option<KeyField>,
        mode: Mode,
        lines_max: usize,
    ) -> Self {
        let input = BufReader::with_capacity(256 * 1024, input);
        Self {
            input,
            at,
            held: None,
            ends: BTreeSet::new(),
            is_within_line: false,
            leaves_rest: false,
            left: 0,
            prefix,
            key_field,
            mode,
            lines_max,
        }
    }

    /// For an input that may grow: chunks end at these places too, as they did when it ended there, and a last line that is not
    /// whole is left. `is_within_line`: it goes on behind a line that had no break.
    pub fn growing(mut self, ends: BTreeSet<u64>, is_within_line: bool) -> Self {
        (self.ends, self.is_within_line, self.leaves_rest) = (ends, is_within_line, true);
        self
    }

    /// Bytes at the end of the input that are no whole line yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next chunk; `None` at the end.
    pub fn chunk(&mut self) -> Result<Option<Chunk>, Failed> {
        if self.left > 0 {
            return Ok(None);
        }
        let start = self.at;
        let mut chunk = Chunk { start, end: start, is_short: false, lines: Vec::new(), faults: Vec::new() };
        let mut count = 0;
        while count < self.lines_max && !(count > 0 && self.ends.contains(&self.at.offset)) {
            let Some(text) = self.next_line()? else {
                chunk.is_short = true;
                break;
            };
            if std::mem::take(&mut self.is_within_line) && text.trim_ascii().is_empty() {
                // The break of the line before, which was counted.
                self.at.offset += text.len() as u64;
                continue;
            }
            if self.leaves_rest && !text.ends_with(b"\n") && !is_whole(&text) {
                (self.left, chunk.is_short) = (text.len() as u64, true);
                break;
            }
            let length = self.at.offset - start.offset + text.len() as u64;
            if count > 0 && length > CHUNK_BYTES_MAX as u64 {
                self.held = Some(text);
                break;
            }
            self.at.offset += text.len() as u64;
            self.at.line += 1;
            let mark = Mark::of(&text);
            self.at.last = Some(mark);
            if self.at.line == 1 {
                self.at.first = Some(mark);
            }
            count += 1;
            self.take(&text, &mut chunk);
        }
        chunk.end = self.at;
        Ok((count > 0).then_some(chunk))
    }

    /// With its line break, where it has one.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        let mut text = Vec::new();
        let read = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut text);
        let number = self.at.line + 1;
        match read {
            Ok(0) => Ok(None),
            Ok(read) if read > LINE_BYTES_MAX => {
                Err(Failed::other(format!("line {number} is longer than {LINE_BYTES_MAX} bytes; is this NDJSON?")))
            }
            Ok(_) => Ok(Some(text)),
            Err(error) => Err(Failed::other(format!("cannot read line {number}: {error}"))),
        }
    }

    fn take(&self, text: &[u8], chunk: &mut Chunk) {
        let number = self.at.line;
        let text = text.trim_ascii();
        if text.is_empty() {
            return;
        }
        let line = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned()).and_then(|text| self.line(text));
        match line {
            Ok((key, op)) => chunk.lines.push(Line { number, key, op }),
            Err(detail) => chunk.faults.push(Fault { line: number, key: None, code: None, detail }),
        }
    }

    fn line(&self, text: &str) -> Result<(Name, Op), String> {
        let (key, value, ttl_ms) = match &self.key_field {
            Some(field) => (Name::from(key_in(text, field)?), Value::json_text(text.to_owned()), None),
            None => entry(text)?,
        };
        let key = Name::from([self.prefix.as_bytes(), key.as_bytes()].concat());
        if key.is_empty() {
            return Err("the key is empty".into());
        }
        let op = match self.mode {
            Mode::Insert => Op::insert(&key, value),
            Mode::Upsert => Op::put(&key, value),
        };
        let op = match ttl_ms {
            Some(ttl_ms) => op.ttl(Duration::from_millis(ttl_ms)),
            None => op,
        };
        Ok((key, op))
    }
}

/// Whether a line without a break at its end is all there: the beginning of an object is no object.
fn is_whole(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// A line without `--key-field`.
fn entry(text: &str) -> Result<(Name, Value, Option<u64>), String> {
    let ExportLine { key, value, value_base64, ttl_ms } =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    if ttl_ms == Some(0) {
        // For a node it would mean for ever.
        return Err("`ttl_ms` is 0: it has expired; leave it out for an entry that never does".into());
    }
    let value = match (value, value_base64) {
        (Some(value), None) => Value::json_text(value.get().to_owned()),
        (None, Some(base64)) => {
            let bytes = STANDARD.decode(base64.as_bytes());
            Value::bytes(bytes.map_err(|error| format!("`value_base64` is not base64: {error}"))?)
        }
        _ => return Err("expected one of `value` and `value_base64`".into()),
    };
    Ok((key.into_owned(), value, ttl_ms))
}

/// The key out of a document.
fn key_in(text: &str, field: &KeyField) -> Result<String, String> {
    let document: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut at = document;
    for name in &field.names {
        let fields: HashMap<String, &RawValue> =
            serde_json::from_str(at.get()).map_err(|_| format!("there is no field `{}`", field.text))?;
        at = fields.get(name).ok_or_else(|| format!("there is no field `{}`", field.text))?;
    }
    match serde_json::from_str(at.get()) {
        Ok(serde_json::Value::String(key)) => Ok(key),
        Ok(serde_json::Value::Number(key)) if key.is_u64() || key.is_i64() => Ok(key.to_string()),
        _ => Err(format!("the field `{}` is neither a string nor a whole number", field.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, at: Position, key_field: Option<KeyField>, lines_max: usize) -> Lines {
        let rest = text.as_bytes()[at.offset as usize..].to_vec();
        Lines::new(Box::new(std::io::Cursor::new(rest)), at, "p/".into(), key_field, Mode::Insert, lines_max)
    }

    fn chunks(mut lines: Lines) -> Vec<Chunk> {
        std::iter::from_fn(|| lines.chunk().expect("can be read")).collect()
    }

    #[test]
    fn chunks_from_the_end_of_one_are_the_same_again() {
        let long = "x".repeat(CHUNK_BYTES_MAX / 3);
        let text: String = (0..20).map(|n| format!("{{\"key\":\"k{n}\",\"value\":\"{long}\"}}\n\n")).collect();
        let places = |at: Position| {
            let chunks = chunks(lines(&text, at, None, 7));
            chunks.iter().map(|chunk| (chunk.start, chunk.end, chunk.lines.len())).collect::<Vec<_>>()
        };
        let all = places(Position::default());
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(all.iter().map(|(_, _, lines)| lines).sum::<usize>(), 20);
        let end = all.last().expect("there are some").1;
        assert_eq!((end.offset, end.line), (text.len() as u64, 40));
        for (start, end, _) in &all {
            assert!(end.offset - start.offset <= CHUNK_BYTES_MAX as u64, "{start:?} {end:?}");
        }
        for at in 0..all.len() {
            assert_eq!(places(all[at].0), all[at..], "from chunk {at}");
        }
    }

    #[test]
    fn a_line_has_key_and_value_and_anything_else_is_a_fault() {
        let text = concat!(
            "{\"key\":\"a\",\"value\":null}\n",
            "{\"key\":\"\\u0062\",\"value_base64\":\"AP8=\",\"ttl_ms\":5}\r\n",
            "{\"key\":\"c\"}\n",
            "{\"key\":\"d\",\"value\":1,\"colour\":2}\n",
            "hello\n",
            "{\"key\":\"e\",\"value\":1.50}\n",
            "{\"key_base64\":\"/g==\",\"value\":1}\n{\"key_base64\":\"/w==\",\"value\":2}"
        );
        let [chunk] = &chunks(lines(text, Position::default(), None, 100))[..] else { panic!("one chunk") };
        let keys: Vec<_> = chunk.lines.iter().map(|line| (line.number, line.key.to_string())).collect();
        let expected = [(1, "p/a"), (2, "p/b"), (6, "p/e"), (7, r"p/\xfe"), (8, r"p/\xff")];
        assert_eq!(keys, expected.map(|(number, key)| (number, key.to_owned())));
        assert_eq!(chunk.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [3, 4, 5]);
        assert!(chunk.faults[1].detail.contains("colour"), "{}", chunk.faults[1].detail);
    }

    #[test]
    fn the_key_of_a_document_is_where_the_path_says() {
        let text = "{\"who\":{\"a.b\":\"x\",\"id\":7}}\n{\"who\":{\"id\":1.5}}\n{\"who\":7}\n";
        let keys = |path: &str| -> Vec<_> {
            let chunks = chunks(lines(text, Position::default(), Some(key_field(path).expect("a path")), 100));
            chunks.into_iter().flat_map(|chunk| chunk.lines).map(|line| (line.number, line.key)).collect()
        };
        assert_eq!(keys("who.id"), [(1, "p/7".into())]);
        assert_eq!(keys("/who/a.b"), [(1, "p/x".into())]);
        assert_eq!(keys("who"), [(3, "p/7".into())]);
        assert!(key_field("a..b").is_err() && key_field("").is_err());
    }

    #[test]
    fn a_line_without_end_is_not_held_in_memory() {
        let endless = std::io::repeat(b'x');
        let mut lines = Lines::new(Box::new(endless), Position::default(), Name::default(), None, Mode::Insert, 10);
        assert!(lines.chunk().expect_err("too long").to_string().contains("line 1 is longer"));
    }
}
