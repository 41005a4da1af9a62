//! `Accept` (RFC 9110, 12.5.1): which of two forms of an entry a reader would rather have, and whether a reader of events takes anything else.
//!
//! Owns qualities, and how a type, a range of types and `*/*` go before each other. Never refuses: a reader who would have neither
//! form, or says something else than a list of types, gets the usual one.

use http::header;
use http::request::Parts;
use quorate_api::WATCH_CONTENT_TYPE;

const JSON: &str = "application/json";
const BYTES: &str = "application/octet-stream";

/// Whether the caller would rather have the bare value than the envelope in JSON.
pub fn wants_bytes(head: &Parts) -> bool {
    let (mut json, mut bytes) = (Wanted::default(), Wanted::default());
    for (place, (range, quality)) in ranges(head).enumerate() {
        json.hear(JSON, range, quality, place);
        bytes.hear(BYTES, range, quality, place);
    }
    bytes.quality > json.quality || (bytes.quality == json.quality && bytes.is_named_before(&json))
}

/// Whether the caller takes events and nothing else, also no problem document. A browser's `EventSource` does, for which any status but 200 is
/// the end for ever.
pub fn takes_events_alone(head: &Parts) -> bool {
    let mut taken = ranges(head).filter(|(_, quality)| *quality > 0).map(|(range, _)| range).peekable();
    taken.peek().is_some() && taken.all(|range| range.eq_ignore_ascii_case(WATCH_CONTENT_TYPE))
}

/// Types and ranges of types, and their qualities in thousandths.
fn ranges(head: &Parts) -> impl Iterator<Item = (&str, u16)> {
    let lines = head.headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(quality)
}

/// How much one form is wanted, by the most specific range that takes it in.
#[derive(Default)]
struct Wanted {
    /// 0 for a range of nothing, 1 for `*/*`, 2 for `type/*`, 3 for the type.
    specific: u8,
    /// In thousandths.
    quality: u16,
    place: usize,
}

impl Wanted {
    fn hear(&mut self, form: &str, range: &str, quality: u16, place: usize) {
        let specific = match range {
            "*/*" => 1,
            _ if range.eq_ignore_ascii_case("application/*") => 2,
            _ if range.eq_ignore_ascii_case(form) => 3,
            _ => return,
        };
        if specific > self.specific {
            *self = Self { specific, quality, place };
        }
    }

    /// Both are wanted as much: what is named, and named first, is.
    fn is_named_before(&self, other: &Self) -> bool {
        let is_named = self.specific == 3 && self.quality > 0;
        is_named && (other.specific < 3 || self.place < other.place)
    }
}

/// A range of types and its quality in thousandths; `None` where it is no quality.
fn quality(range: &str) -> Option<(&str, u16)> {
    let mut parts = range.split(';');
    let name = parts.next()?.trim();
    let weight = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let Some((_, weight)) = weight else { return Some((name, 1_000)) };
    let weight = weight.trim();
    let (whole, rest) = weight.split_once('.').unwrap_or((weight, ""));
    if rest.len() > 3 || !rest.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let rest: u16 = format!("{rest:0<3}").parse().ok()?;
    match (whole, rest) {
        ("0", rest) => Some((name, rest)),
        ("1", 0) => Some((name, 1_000)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::tests::head;

    #[test]
    fn the_greater_quality_decides_and_the_more_specific_range_says_it() {
        for (lines, expected) in [
            (vec![], false),
            (vec!["*/*"], false),
            (vec!["application/*"], false),
            (vec!["text/html"], false),
            (vec!["application/octet-stream"], true),
            (vec!["Application/Octet-Stream; q=0.1"], true),
            (vec!["application/octet-stream;q=0"], false),
            (vec!["application/octet-stream, application/json"], true),
            (vec!["application/json, application/octet-stream"], false),
            (vec!["application/json;q=0.9, application/octet-stream"], true),
            (vec!["application/json", "application/octet-stream;q=0.999"], false),
            (vec!["application/octet-stream", "*/*;q=0.8"], true),
            (vec!["application/octet-stream;q=0.5, */*"], false),
            (vec!["*/*, application/octet-stream"], true),
            (vec!["text/html, application/*;q=0.2, application/json;q=0.1"], true),
            (vec!["application/json;q=0, */*"], true),
            (vec!["application/octet-stream;q=1.5"], false),
            (vec!["application/octet-stream;q=0.1234", ",;=", ""], false),
        ] {
            let headers: Vec<_> = lines.iter().map(|line| ("accept", *line)).collect();
            assert_eq!(wants_bytes(&head(&headers)), expected, "{lines:?}");
        }
    }

    #[test]
    fn who_names_anything_beside_events_takes_problem_documents() {
        for (lines, expected) in [
            (vec![], false),
            (vec!["*/*"], false),
            (vec!["text/event-stream"], true),
            (vec!["Text/Event-Stream;q=0.5"], true),
            (vec!["text/event-stream", "text/event-stream, */*;q=0"], true),
            (vec!["text/event-stream, application/problem+json"], false),
            (vec!["text/event-stream", "*/*;q=0.1"], false),
            (vec!["text/event-stream;q=0"], false),
            (vec!["text/*"], false),
        ] {
            let headers: Vec<_> = lines.iter().map(|line| ("accept", *line)).collect();
            assert_eq!(takes_events_alone(&head(&headers)), expected, "{lines:?}");
        }
    }
}
