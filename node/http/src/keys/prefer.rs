//! `Prefer` (RFC 7240): how much of a write its answer shows.
//!
//! Owns `return=minimal` and `return=representation`. A preference is a request: one that is not known, not well formed or
//! cannot be granted is passed over, never refused. `Preference-Applied` says which one was granted.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};
use quorate_machine::query::{PastRead, ReadPosition};
use quorate_machine::types::{Entry, Key};
use quorate_node_core::backend::{Consistency, SharedNode};
use quorate_node_core::limits;

use crate::context::RequestContext;
use crate::headers;
use crate::output::completed::{Completed, Decided};
use crate::output::response::Answer;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// What the caller of a write would like to be answered.
#[derive(Debug)]
pub enum Preferred {
    /// No body.
    Minimal,
    /// The entry of this key as it is after the write.
    Representation(Key),
}

impl Preferred {
    /// The preference of a request that writes `key`. `asks_more`: it also asks for what only the usual answer can say.
    pub fn of(head: &Parts, key: &Key, asks_more: bool) -> Option<Self> {
        if asks_more {
            return None;
        }
        match wanted(head)?.as_str() {
            "minimal" => Some(Self::Minimal),
            "representation" => Some(Self::Representation(key.clone())),
            _ => None,
        }
    }

    fn applied(&self) -> HeaderValue {
        match self {
            Self::Minimal => HeaderValue::from_static("return=minimal"),
            Self::Representation(_) => HeaderValue::from_static("return=representation"),
        }
    }
}

/// Whether the caller wants to see no more than it must.
pub fn wants_minimal(head: &Parts) -> bool {
    wanted(head).as_deref() == Some("minimal")
}

/// Says that [`wants_minimal`] was granted.
pub fn say_minimal(answer: &mut Answer) {
    answer.headers_mut().insert(PREFERENCE_APPLIED, Preferred::Minimal.applied());
}

/// The first `return` counts, whatever follows.
fn wanted(head: &Parts) -> Option<String> {
    head.headers.get_all(&PREFER).iter().find_map(|line| return_value(line.to_str().ok()?))
}

/// Answers as preferred where that is possible, else as usual.
pub async fn answer(context: &RequestContext, done: Completed, preferred: Option<Preferred>) -> Answer {
    let (Some(preferred), Some(decided)) = (preferred, done.decided) else { return done.into_response() };
    let mut response = match &preferred {
        Preferred::Minimal => without_body(done, &decided),
        Preferred::Representation(key) => match written(&context.api.node, key, &decided, context.deadline).await {
            Some((entry, at)) => done.showing(key, &entry, at).into_response(),
            None => return done.into_response(),
        },
    };
    let fields = response.headers_mut();
    fields.insert(PREFERENCE_APPLIED, preferred.applied());
    if decided.replayed {
        fields.insert(headers::REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn without_body(done: Completed, decided: &Decided) -> Answer {
    let mut response = done.into_response();
    // That it was made is said by the status.
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    *response.body_mut() = Body::default();
    let fields = response.headers_mut();
    fields.remove(header::CONTENT_TYPE);
    fields.insert(headers::INDEX, decided.index.into());
    response
}

/// The entry exactly as the write left it. Every write has a revision of its own, so a read at that revision can see no
/// later one. `None`: it was removed, it is compacted (a retry long after), or this node has not come so far in time.
/// The write took effect whatever becomes of this, so nothing here is an error.
async fn written(
    backend: &SharedNode,
    key: &Key,
    decided: &Decided,
    deadline: Instant,
) -> Option<(Entry, ReadPosition)> {
    let meta = decided.meta?;
    let patience = Instant::now() + Duration::from_millis(limits::REPRESENTATION_WAIT_MS);
    backend.read_barrier(Consistency::AtLeast(decided.revision), deadline.min(patience)).await.ok()?;
    let read = match backend.get_at(key, decided.revision) {
        Ok(PastRead::Found(read)) => read,
        Ok(PastRead::Compacted(_) | PastRead::Future(_)) => return None,
        Err(fault) => {
            tracing::warn!(%fault, "an entry that was just written could not be read");
            return None;
        }
    };
    let entry = read.entry.filter(|entry| entry.meta.mod_revision == meta.mod_revision)?;
    let at = ReadPosition { index: decided.index, revision: decided.revision, clock: decided.clock, ..read.at };
    Some((Entry { meta, value: entry.value }, at))
}

/// The value of the first `return` in a line of preferences.
fn return_value(line: &str) -> Option<String> {
    pieces(line, ',').find_map(|preference| {
        // What follows a semicolon are parameters; `return` has none that are defined.
        let (name, value) = pieces(preference, ';').next()?.split_once('=')?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        name.trim().eq_ignore_ascii_case("return").then(|| bare.to_owned())
    })
}

/// Splits where the separator stands outside of quotes.
fn pieces(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        let separates = character == separator && !quoted;
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            _ => {}
        }
        separates
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::tests::head;

    #[test]
    fn the_first_return_counts_and_what_makes_no_sense_is_passed_over() {
        let key = Key::new("k").expect("a key");
        let shape = |lines: &[&str]| {
            let headers: Vec<_> = lines.iter().map(|line| ("prefer", *line)).collect();
            match Preferred::of(&head(&headers), &key, false) {
                None => "usual",
                Some(Preferred::Minimal) => "minimal",
                Some(Preferred::Representation(_)) => "representation",
            }
        };
        for (lines, expected) in [
            (vec![], "usual"),
            (vec!["return=minimal"], "minimal"),
            (vec!["respond-async, Return = \"representation\"; foo=1"], "representation"),
            (vec!["wait=10", "return=representation"], "representation"),
            (vec!["return=minimal", "return=representation"], "minimal"),
            (vec!["return=none, return=minimal"], "usual"),
            (vec!["foo=\"a, return=minimal\""], "usual"),
            (vec!["foo=\"a\\\", return=minimal\", return=representation"], "representation"),
            (vec!["foo; return=minimal"], "usual"),
            (vec!["return", "return=", "=minimal", ";,;=\""], "usual"),
        ] {
            assert_eq!(shape(&lines), expected, "{lines:?}");
        }
        assert!(Preferred::of(&head(&[("prefer", "return=minimal")]), &key, true).is_none());
    }
}
