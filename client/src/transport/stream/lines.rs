//! The answers as they come: lines in pieces of any size.

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::endpoints::{ClusterId, LeaderHint};
use crate::transport::{ANSWER_BYTES_MAX, Answer};

/// The borrowed twin of [`crate::api::AnswerLine`]: of the answer only where it begins and ends is looked for.
#[derive(Deserialize)]
struct AnswerText<'a> {
    n: Option<u64>,
    status: u16,
    #[serde(with = "quorate_api::decimal")]
    term: u64,
    leader: Option<u64>,
    #[serde(borrow)]
    answer: &'a RawValue,
}

/// Puts lines together.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not come.
    partial: BytesMut,
    /// That of the node, as the head of the stream says.
    cluster: Option<ClusterId>,
}

impl Lines {
    /// None yet, of a node of this cluster.
    pub fn of(cluster: Option<ClusterId>) -> Self {
        Self { partial: BytesMut::new(), cluster }
    }

    /// Takes a piece; appends the answers that it completes, with the number of their calls. An error: this is no stream of
    /// answers, or one that answers none of our lines.
    pub fn feed(&mut self, mut piece: Bytes, answers: &mut Vec<(u64, Answer)>) -> Result<(), String> {
        while let Some(end) = memchr::memchr(b'\n', &piece) {
            let mut line = piece.split_to(end + 1);
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(&line);
                line = self.partial.split().freeze();
            }
            if !line.trim_ascii().is_empty() {
                let (n, mut answer) = parse(&line)?;
                answer.hint.cluster = self.cluster;
                answers.push((n, answer));
            }
        }
        if self.partial.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(format!("an answer is longer than {ANSWER_BYTES_MAX} bytes"));
        }
        self.partial.extend_from_slice(&piece);
        Ok(())
    }
}

/// Reads a line. The answer stays where it is, in the line's bytes.
fn parse(line: &Bytes) -> Result<(u64, Answer), String> {
    let text: AnswerText<'_> =
        serde_json::from_slice(line).map_err(|error| format!("a line is not an answer: {error}"))?;
    let status = StatusCode::from_u16(text.status).map_err(|_| format!("{} is no status", text.status))?;
    let body = line.slice_ref(text.answer.get().as_bytes());
    let Some(n) = text.n else {
        return Err(format!("the node does not understand the stream: {}", String::from_utf8_lossy(&body)));
    };
    let hint = LeaderHint { cluster: None, term: text.term, leader_id: text.leader };
    Ok((n, Answer { status, hint, body }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(pieces: &[&str]) -> Result<Vec<(u64, Answer)>, String> {
        let (mut lines, mut answers) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.feed(Bytes::copy_from_slice(piece.as_bytes()), &mut answers)?;
        }
        Ok(answers)
    }

    #[test]
    fn lines_come_in_pieces_of_any_size() {
        let text = "{\"n\":1,\"status\":200,\"term\":\"5\",\"leader\":null,\"answer\":{\"a\":\"\\n\"}}\r\n\n\
                    {\"leader\":2,\"answer\":[1.50],\"n\":7,\"term\":\"6\",\"status\":412}\n";
        for size in 1..=text.len() {
            let pieces: Vec<&str> =
                text.as_bytes().chunks(size).map(|piece| str::from_utf8(piece).expect("ASCII")).collect();
            let answers = feed(&pieces).expect("two answers");
            let seen: Vec<_> = answers
                .iter()
                .map(|(n, Answer { status, hint, body })| (*n, status.as_u16(), hint.term, hint.leader_id, &body[..]))
                .collect();
            assert_eq!(
                seen,
                [(1, 200, 5, None, br#"{"a":"\n"}"#.as_slice()), (7, 412, 6, Some(2), b"[1.50]")],
                "{size}"
            );
        }
    }

    #[test]
    fn what_answers_nobody_is_an_error() {
        let refused =
            feed(&["{\"n\":null,\"status\":413,\"term\":\"5\",\"leader\":1,\"answer\":{\"code\":\"too_large\"}}\n"]);
        assert!(refused.expect_err("names no call").contains("too_large"));
        for bad in ["<html>\n", "{}\n", "{\"n\":1,\"status\":9,\"term\":\"5\",\"leader\":1,\"answer\":{}}\n"] {
            assert!(feed(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_twin_reads_what_nodes_write() {
        let answer = serde_json::value::to_raw_value(&[1]).expect("has JSON");
        let line = crate::api::AnswerLine {
            n: Some(3),
            status: 200,
            term: 4,
            leader: Some(1),
            answer: crate::api::JsonText(answer),
        };
        let answers = feed(&[&serde_json::to_string(&line).expect("has JSON"), "\n"]).expect("an answer");
        assert_eq!((answers[0].0, &answers[0].1.body[..]), (3, b"[1]".as_slice()));
    }
}
