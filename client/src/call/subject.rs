//! The name that an answer has to be about, where the path of the call gives one.
//!
//! Owns the check: a proxy that cleans paths asks for `a/b` where `a//b` was meant, and an answer about the one says nothing about the other.
//! No proxy changes the body of a call.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::api::Name;

/// An answer that names something else than was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Strayed {
    /// The name in the path of the call.
    pub asked: String,
    /// The name in the answer.
    pub named: String,
}

impl fmt::Display for Strayed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, named } = self;
        write!(out, "the answer is about `{named}`, not `{asked}`: a proxy may have changed the path")
    }
}

/// The field in which answers name what a target is about, and that name. `None` where the path names no single thing.
fn subject_of(target: &str) -> Option<(&'static str, Cow<'_, str>)> {
    let path = target.split('?').next()?;
    let (kind, rest) = path.strip_prefix("/v1/")?.split_once('/')?;
    let segment = rest.split('/').next()?;
    let (field, escaped) = match kind {
        // One segment; verbs and ids may follow.
        "locks" => ("lock", segment),
        "elections" => ("election", segment),
        "sessions" => ("session", segment),
        "barriers" => ("barrier", segment),
        "latches" => ("latch", segment),
        "tasks" => rest.split_once("/task/").map_or(("queue", segment), |(_, id)| ("id", id)),
        // These have slashes of their own.
        "kv" => ("key", rest),
        "access" => match rest.split_once('/')? {
            ("users", name) => ("user", name),
            ("roles", name) => ("role", name),
            ("tokens", id) => ("id", id),
            _ => return None,
        },
        "quotas" => match rest.split_once('/')? {
            ("principals", name) => ("principal", name),
            ("prefixes", prefix) => ("prefix", prefix),
            _ => return None,
        },
        "collections" | "sequences" => ("name", rest),
        "requests" => ("request_id", rest),
        _ => return None,
    };
    // A key that is no text is named by its bytes, in another field.
    Some((field, percent_decode_str(escaped).decode_utf8().ok()?))
}

/// Both names, where an answer to a call of this target is about something else.
pub(crate) fn strayed(target: &str, body: &[u8]) -> Option<Strayed> {
    let (field, asked) = subject_of(target)?;
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let named: String = serde_json::from_str(fields.get(field)?.get()).ok()?;
    (named != asked).then(|| Strayed { asked: asked.into_owned(), named })
}

/// Whether proxies like to change a path with this name, escaped or not: one with empty segments, `.` or `..`, or slashes at an end.
pub(crate) fn is_often_changed(name: &Name) -> bool {
    name.as_bytes().split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_about_what_the_path_names() {
        for (target, field) in [
            ("/v1/locks/a%2F..%2Fb/acquire", "lock"),
            ("/v1/locks/a%2F..%2Fb", "lock"),
            ("/v1/elections/a%2F..%2Fb/observe?heartbeat_ms=5000", "election"),
            ("/v1/sessions/a%2F..%2Fb/renew", "session"),
            ("/v1/barriers/a%2F..%2Fb/enter", "barrier"),
            ("/v1/latches/a%2F..%2Fb/count_down", "latch"),
            ("/v1/tasks/a%2F..%2Fb/stats", "queue"),
            ("/v1/tasks/q/task/a/../b", "id"),
            ("/v1/access/users/a/../b", "user"),
            ("/v1/access/roles/a/../b", "role"),
            ("/v1/access/tokens/a/../b", "id"),
            ("/v1/quotas/principals/a/../b", "principal"),
            ("/v1/quotas/prefixes/a/../b", "prefix"),
            ("/v1/kv/a/../b?consistency=local", "key"),
            ("/v1/collections/a/../b", "name"),
            ("/v1/sequences/a/../b", "name"),
            ("/v1/requests/a%2F%2E%2E%2Fb", "request_id"),
        ] {
            let answer = |named: &str| format!(r#"{{"{field}":"{named}","revision":"7"}}"#);
            let found = strayed(target, answer("b").as_bytes()).unwrap_or_else(|| panic!("{target}"));
            assert_eq!((&*found.asked, &*found.named), ("a/../b", "b"), "{target}");
            for said in [answer("a/../b"), r#"{"revision":"7"}"#.into(), format!(r#"{{"{field}":null}}"#)] {
                assert_eq!(strayed(target, said.as_bytes()), None, "{target}: {said}");
            }
        }
        // Lists, what is named in the body, and keys that are no text.
        for target in
            ["/v1/locks", "/v1/ops", "/v1/sessions/renew", "/v1/kv?prefix=a//b", "/v1/kv/%FF", "/v1/cluster/status"]
        {
            assert_eq!(strayed(target, br#"{"sessions":[],"lock":"b"}"#), None, "{target}");
        }
    }

    #[test]
    fn keys_that_proxies_change_are_known() {
        for key in ["a//b", "a/./b", "a/../b", "..", ".", "/a", "a/", "/"] {
            assert!(is_often_changed(&key.into()), "{key}");
        }
        for key in ["a", "a/b", "a..b/.c", "...", "a/b.c"] {
            assert!(!is_often_changed(&key.into()), "{key}");
        }
    }
}
