//! Entries as they leave a cluster and come back: a line of JSON for each.
//!
//! Owns the line that exports and backups are written in and that an import reads, and which entries have none. Never in a request
//! or an answer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::EntryView;
use super::name::{Name, named};
use super::strict::given;

/// A line of an export: an entry without what another cluster would decide anew. Exactly one of `value` and `value_base64` is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ExportLine<'a> {
    /// The key.
    pub key: Cow<'a, Name>,
    /// The value, where it is JSON, as it is stored.
    #[serde(borrow, default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a RawValue>,
    /// The value in base64, where it is bytes.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<Cow<'a, str>>,
    /// Milliseconds left to live, for an entry that expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

named!(ExportLine<'a>, key);

/// Why an entry has no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum NoExportLine {
    /// It ends with its session, which the line cannot name.
    #[error("it belongs to a session")]
    OfSession,
    /// It has expired: a page of a past revision shows it as it was.
    #[error("it has expired")]
    Expired,
    /// It was asked for without its value.
    #[error("it came without its value")]
    NoValue,
}

impl<'a> ExportLine<'a> {
    /// The line of an entry.
    pub fn of(entry: &'a EntryView) -> Result<Self, NoExportLine> {
        let EntryView { key, value, value_base64, ttl_ms, session, .. } = entry;
        if session.is_some() {
            return Err(NoExportLine::OfSession);
        }
        if *ttl_ms == Some(0) {
            return Err(NoExportLine::Expired);
        }
        if value.is_none() && value_base64.is_none() {
            return Err(NoExportLine::NoValue);
        }
        let value = value.as_ref().map(|json| &*json.0);
        Ok(Self {
            key: Cow::Borrowed(key),
            value,
            value_base64: value_base64.as_deref().map(Cow::from),
            ttl_ms: *ttl_ms,
        })
    }

    /// Its text, without the line break.
    pub fn text(&self) -> String {
        let text = serde_json::to_string(self).expect("texts, a number and JSON have JSON");
        // Line breaks between the parts of a document, as it was stored; within its texts there are none.
        text.replace(['\n', '\r'], " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> EntryView {
        let rest = r#""content_type":"json","cas":"5","create_revision":"3","mod_revision":"4","version":2"#;
        serde_json::from_str(&format!("{{{json},{rest}}}")).expect("an entry")
    }

    #[test]
    fn a_line_is_read_as_what_was_written() {
        for (shown, expected) in [
            (r#""key":"a","value":null"#, r#"{"key":"a","value":null}"#),
            ("\"key\":\"\\n\",\"value\":{\"n\":\n1.50}", r#"{"key":"\n","value":{"n": 1.50}}"#),
            (r#""key":"b","value_base64":"AP8=","ttl_ms":5"#, r#"{"key":"b","value_base64":"AP8=","ttl_ms":5}"#),
        ] {
            let entry = entry(shown);
            let text = ExportLine::of(&entry).expect("it has a line").text();
            assert_eq!(text, expected);
            let read: ExportLine<'_> = serde_json::from_str(&text).expect("a line");
            assert_eq!(read.text(), text);
        }
        assert!(serde_json::from_str::<ExportLine<'_>>(r#"{"key":"a","value":1,"cas":"5"}"#).is_err());
    }

    #[test]
    fn what_would_come_back_as_something_else_has_no_line() {
        for (shown, why) in [
            (r#""key":"a","value":1,"session":"17""#, NoExportLine::OfSession),
            (r#""key":"a","value":1,"ttl_ms":0"#, NoExportLine::Expired),
            (r#""key":"a""#, NoExportLine::NoValue),
        ] {
            assert_eq!(ExportLine::of(&entry(shown)).expect_err("none"), why);
        }
    }
}
