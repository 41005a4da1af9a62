//! How entries, events and payloads look in an answer.
//!
//! Owns how much of them an agent gets: its context is small. What does not fit is cut, and the answer says how to read the rest.

use quorate_client::api::{EntryView, TaskClaimed, TaskView, WatchEvent, WatchEventKind};
use serde_json::{Map, Value, json};

/// Of a value that is cut, so much is shown where there is room.
const START_BYTES: usize = 256;

/// How what was cut of an entry is read.
const REST_OF_ENTRY: &str = "entry_get with this key and offset 0 reads all of it, in parts";
/// How what was cut of a task is read.
const REST_OF_TASK: &str = "task_list with this queue and id, and offset 0, reads all of it, in parts";

/// The bytes of values that an answer still has room for.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    /// No value takes more.
    each: usize,
}

impl Budget {
    /// One value may take all of it.
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, each: bytes }
    }

    /// For several values: none takes more than a quarter.
    pub fn shared(bytes: usize) -> Self {
        Self { left: bytes, each: bytes / 4 }
    }

    /// An entry, without what an agent has no use for.
    pub fn entry(&mut self, entry: &EntryView) -> Map<String, Value> {
        let mut shown = Map::new();
        shown.insert("key".into(), entry.key.to_string().into());
        self.put_value(&mut shown, entry);
        shown.insert("cas".into(), entry.cas.map(|cas| cas.to_string()).into());
        shown.insert("version".into(), entry.version.into());
        shown.insert("mod_revision".into(), entry.mod_revision.to_string().into());
        if entry.locked {
            shown.insert("locked".into(), true.into());
        }
        for (name, milliseconds) in [("expires_in_s", entry.ttl_ms), ("claim_left_s", entry.lock_ms)] {
            if let Some(milliseconds) = milliseconds {
                shown.insert(name.into(), seconds(milliseconds));
            }
        }
        if let Some(session) = &entry.session {
            shown.insert("session".into(), session.as_str().into());
        }
        shown
    }

    fn put_value(&mut self, shown: &mut Map<String, Value>, entry: &EntryView) {
        match text(entry) {
            Some(Text::Json(text)) => self.put_json(shown, "value", text, Some(REST_OF_ENTRY)),
            Some(Text::Plain(text)) => self.put_text(shown, "value_text", &text, Some(REST_OF_ENTRY)),
            Some(Text::Base64(text)) => self.put_text(shown, "value_base64", text, Some(REST_OF_ENTRY)),
            None => {}
        }
    }

    /// JSON, or its beginning and how to read the rest.
    pub fn put_json(&mut self, shown: &mut Map<String, Value>, name: &str, text: &str, rest: Option<&str>) {
        match serde_json::from_str(text) {
            Ok(value) if self.takes(text) => drop(shown.insert(name.into(), value)),
            _ => self.put_start(shown, name, text, rest),
        }
    }

    fn put_text(&mut self, shown: &mut Map<String, Value>, name: &str, text: &str, rest: Option<&str>) {
        match self.takes(text) {
            true => drop(shown.insert(name.into(), text.into())),
            false => self.put_start(shown, name, text, rest),
        }
    }

    fn takes(&mut self, text: &str) -> bool {
        let fits = text.len() <= self.left.min(self.each);
        if fits {
            self.left -= text.len();
        }
        fits
    }

    fn put_start(&mut self, shown: &mut Map<String, Value>, name: &str, text: &str, rest: Option<&str>) {
        let start = &text[..boundary(text, START_BYTES.min(self.left).min(self.each))];
        self.left -= start.len();
        shown.insert(format!("{name}_start"), start.into());
        shown.insert(format!("{name}_bytes"), text.len().into());
        if let Some(rest) = rest {
            shown.insert(format!("{name}_rest"), rest.into());
        }
    }

    /// An event of a watch.
    pub fn event(&mut self, event: &WatchEvent) -> Value {
        let mut shown = Map::new();
        let kind = match event.kind {
            WatchEventKind::Put => "put",
            WatchEventKind::Delete => "delete",
        };
        shown.insert("type".into(), kind.into());
        shown.insert("revision".into(), event.revision.to_string().into());
        match &event.entry {
            Some(entry) => drop(shown.insert("entry".into(), self.entry(entry).into())),
            None => drop(shown.insert("key".into(), event.key.to_string().into())),
        }
        if let Some(cause) = event.cause {
            shown.insert("cause".into(), json!(cause));
        }
        Value::Object(shown)
    }

    /// A task that was claimed.
    pub fn claimed_task(&mut self, task: &TaskClaimed) -> Value {
        let mut shown = Map::new();
        shown.insert("id".into(), task.id.as_str().into());
        self.put_payload(&mut shown, task.payload.as_ref().map(|json| json.0.get()), task.payload_base64.as_deref());
        shown.insert("token".into(), task.token.to_string().into());
        shown.insert("attempt".into(), task.attempt.into());
        shown.insert("max_attempts".into(), task.max_attempts.into());
        shown.insert("planned_at".into(), task.planned_at.as_str().into());
        shown.insert("lease_s".into(), seconds(task.lease_ms));
        put_given(&mut shown, "last_error", task.last_error.as_deref());
        Value::Object(shown)
    }

    /// A task as a list shows it.
    pub fn task(&mut self, task: &TaskView) -> Value {
        let mut shown = Map::new();
        shown.insert("id".into(), task.id.as_str().into());
        shown.insert("state".into(), json!(task.state));
        self.put_payload(&mut shown, task.payload.as_ref().map(|json| json.0.get()), task.payload_base64.as_deref());
        shown.insert("attempts".into(), task.attempts.into());
        shown.insert("max_attempts".into(), task.max_attempts.into());
        put_given(&mut shown, "execute_at", task.execute_at.as_deref());
        put_given(&mut shown, "worker", task.worker.as_deref());
        put_given(&mut shown, "last_error", task.last_error.as_deref());
        put_given(&mut shown, "cron", task.cron.as_deref());
        for (name, milliseconds) in [("claim_left_s", task.lease_ms), ("every_s", task.every_ms)] {
            if let Some(milliseconds) = milliseconds {
                shown.insert(name.into(), seconds(milliseconds));
            }
        }
        Value::Object(shown)
    }

    fn put_payload(&mut self, shown: &mut Map<String, Value>, json: Option<&str>, base64: Option<&str>) {
        match (json, base64) {
            (Some(json), _) => self.put_json(shown, "payload", json, Some(REST_OF_TASK)),
            (None, Some(text)) => self.put_text(shown, "payload_base64", text, Some(REST_OF_TASK)),
            (None, None) => {}
        }
    }
}

fn put_given(shown: &mut Map<String, Value>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        shown.insert(name.into(), text.into());
    }
}

/// Seconds, with what is left of one.
pub fn seconds(milliseconds: u64) -> Value {
    match milliseconds % 1_000 {
        0 => (milliseconds / 1_000).into(),
        _ => (milliseconds as f64 / 1_000.0).into(),
    }
}

/// The text of a value.
enum Text<'a> {
    Json(&'a str),
    /// Of bytes that are text.
    Plain(String),
    Base64(&'a str),
}

fn text(entry: &EntryView) -> Option<Text<'_>> {
    if let Some(json) = &entry.value {
        return Some(Text::Json(json.0.get()));
    }
    let base64 = entry.value_base64.as_deref()?;
    let plain = entry.bytes().ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    Some(plain.map_or(Text::Base64(base64), Text::Plain))
}

/// The end of the last whole character within so many bytes.
fn boundary(text: &str, bytes: usize) -> usize {
    (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A part of an entry's value, for who reads a long one piece by piece.
pub fn entry_part(entry: &EntryView, offset: usize, bytes: usize) -> Map<String, Value> {
    let mut shown = match text(entry) {
        Some(Text::Json(text) | Text::Base64(text)) => part(text, offset, bytes),
        Some(Text::Plain(text)) => part(&text, offset, bytes),
        None => Map::new(),
    };
    shown.insert("key".into(), entry.key.to_string().into());
    shown.insert("cas".into(), entry.cas.map(|cas| cas.to_string()).into());
    shown.insert("mod_revision".into(), entry.mod_revision.to_string().into());
    shown
}

/// A part of a task's payload.
pub fn payload_part(task: &TaskView, offset: usize, bytes: usize) -> Map<String, Value> {
    let json = task.payload.as_ref().map(|json| json.0.get());
    let mut shown = part(json.or(task.payload_base64.as_deref()).unwrap_or(""), offset, bytes);
    shown.insert("id".into(), task.id.as_str().into());
    shown
}

fn part(text: &str, offset: usize, bytes: usize) -> Map<String, Value> {
    let begin = boundary(text, offset);
    // At least one character, or nobody would ever get on.
    let first = text[begin..].chars().next().map_or(0, char::len_utf8);
    let end = boundary(text, begin.saturating_add(bytes.max(first)));
    let mut shown = Map::new();
    shown.insert("part".into(), text[begin..end].into());
    shown.insert("offset".into(), begin.into());
    shown.insert("bytes".into(), text.len().into());
    if end < text.len() {
        shown.insert("next_offset".into(), end.into());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &str) -> EntryView {
        let text = format!(
            r#"{{"key":"k",{value},"content_type":"json","cas":"9","create_revision":"1","mod_revision":"9","version":2}}"#
        );
        serde_json::from_str(&text).expect("an entry")
    }

    #[test]
    fn what_does_not_fit_is_cut_and_says_how_long_it_is() {
        let long = entry(&format!(r#""value":"{}""#, "\u{e4}".repeat(500)));
        let shown = Budget::new(100).entry(&long);
        assert_eq!(shown.get("value"), None);
        assert_eq!((&shown["value_bytes"], &shown["value_rest"]), (&json!(1_002), &json!(REST_OF_ENTRY)));
        let start = shown["value_start"].as_str().expect("a text");
        assert!(start.len() <= 100 && start.starts_with("\"\u{e4}"), "{start}");
        assert_eq!(Budget::new(2_000).entry(&long)["value"], "\u{e4}".repeat(500));
    }

    #[test]
    fn several_values_share_what_there_is() {
        let (mut budget, long) = (Budget::shared(800), entry(&format!(r#""value":"{}""#, "a".repeat(150))));
        let whole = (0..10).filter(|_| budget.entry(&long).get("value").is_some()).count();
        assert_eq!(whole, 5, "800 bytes hold five values of 152");
        assert!(budget.left < 152);
    }

    #[test]
    fn a_long_value_is_read_in_parts() {
        let long = entry(&format!(r#""value":"{}""#, "\u{e4}b".repeat(50)));
        let (mut whole, mut offset) = (String::new(), 0);
        loop {
            let part = entry_part(&long, offset, 7);
            whole.push_str(part["part"].as_str().expect("a text"));
            match part.get("next_offset").and_then(Value::as_u64) {
                Some(next) => offset = usize::try_from(next).expect("small"),
                None => break,
            }
        }
        assert_eq!(whole, format!("\"{}\"", "\u{e4}b".repeat(50)));
        assert_eq!(entry_part(&long, 1, 1)["part"], "\u{e4}", "a character is never divided");
    }

    #[test]
    fn bytes_that_are_text_are_shown_as_text() {
        assert_eq!(Budget::new(100).entry(&entry(r#""value_base64":"aGFsbG8=""#))["value_text"], "hallo");
        assert_eq!(Budget::new(100).entry(&entry(r#""value_base64":"AP8=""#))["value_base64"], "AP8=");
    }
}
