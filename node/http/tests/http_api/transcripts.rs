//! Golden transcripts: what a client sends, and what it is answered, to the letter.
//!
//! `transcripts/*.txt` are requests, each with `---`, its exact answer, and a blank line. One file goes to one fresh node, from top to
//! bottom. Input lines:
//!
//! ```text
//! @CLOCK                    moves the cluster clock, which begins at 1000, and the wall clock by as much
//! count_rows                Count, until all is counted
//! indexes                   Indexes, until all are built
//! compact REVISION          Compact, until all is compacted
//! METHOD PATH               the request, with a line for each header, a blank line and the body; JSON without a Content-Type
//! ```
//!
//! The answer is its status, its headers but those of `LEFT_OUT`, a blank line, and the body, with long parts of it on a line
//! each. A fresh value that the node gives has a name, in answers and in later requests: `<session 1>` is the first session of the file.
//! `QUORATE_BLESS=1` writes the actual answers into the transcripts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use quorate_machine::types::Maintenance;

use crate::memory_node::CLOCK;
use crate::raw::{Response, Server};

const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"];
const STEPS: [&str; 3] = ["count_rows", "indexes", "compact"];

/// Headers that each answer has alike, or that tell the time or the length.
const LEFT_OUT: [&str; 9] = [
    "cache-control",
    "connection",
    "content-length",
    "date",
    "quorate-cluster",
    "quorate-leader",
    "quorate-term",
    "vary",
    "x-request-id",
];

/// Fields of answers whose values get names, and the kind of each.
const NAMED: [(&str, &str); 7] = [
    ("session", "session"),
    ("token", "token"),
    ("term", "term"),
    ("cursor", "cursor"),
    ("cas", "key"),
    ("request_id", "request"),
    ("waited_ms", "time"),
];

/// A number longer than this was drawn: the key to a lock, where others are revisions.
const DRAWN: usize = 12;

/// Longer JSON has a line for each of its parts.
const LINE: usize = 120;

#[tokio::test]
async fn every_transcript_gives_its_exact_answers() {
    each_page("transcripts", run).await;
}

/// Holds each page of a directory beside these tests against what a run of it comes to.
pub async fn each_page(directory: &str, run: impl AsyncFn(&str) -> String) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http_api").join(directory);
    let files = fs::read_dir(directory).expect("a directory").map(|file| file.expect("a file").path());
    let mut pages: Vec<_> = files.collect();
    pages.sort();
    assert!(!pages.is_empty());
    let mut differences = Vec::new();
    for path in pages {
        let expected = fs::read_to_string(&path).expect("text");
        let actual = run(&expected).await;
        if std::env::var_os("QUORATE_BLESS").is_some() {
            fs::write(&path, actual).expect("written");
        } else if expected != actual {
            differences.push(difference(&path.display().to_string(), &expected, &actual));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The first difference, with a few lines around it.
fn difference(path: &str, expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<_>, Vec<_>) = (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(expected, actual)| expected == actual).count();
    let mut shown = format!("{path}:{}\n", same + 1);
    let parts =
        [("  ", &expected[same.saturating_sub(8)..same]), ("- ", after(&expected, same)), ("+ ", after(&actual, same))];
    for (mark, lines) in parts {
        lines.iter().for_each(|line| writeln!(shown, "{mark}{line}").expect("memory"));
    }
    shown
}

fn after<'a, 'b>(lines: &'a [&'b str], same: usize) -> &'a [&'b str] {
    &lines[same..lines.len().min(same + 8)]
}

/// The transcript with the answers as they are.
async fn run(transcript: &str) -> String {
    let server = Server::start().await;
    let (mut names, mut clock) = (Names::default(), CLOCK);
    let mut out = String::new();
    for input in inputs(transcript) {
        let input = input.trim_end();
        let lines: Vec<_> = input.lines().collect();
        let request = lines.iter().position(|line| METHODS.contains(&word(line))).unwrap_or(lines.len());
        let (steps, request) = lines.split_at(request);
        steps.iter().filter(|line| !line.starts_with('#')).for_each(|line| take_step(&server, &mut clock, line));
        writeln!(out, "{input}").expect("memory");
        if !request.is_empty() {
            let request = names.fill(&request.join("\n"));
            let answer = ask(&server, &request).await;
            writeln!(out, "---\n{}", shown(&answer, &request, &mut names)).expect("memory");
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The inputs of a transcript: each part begins behind a blank line, with a comment, a step of the node or a request line.
fn inputs(transcript: &str) -> Vec<String> {
    let mut inputs: Vec<String> = Vec::new();
    let (mut is_answer, mut before) = (false, "");
    for line in transcript.lines() {
        let begins = line.starts_with(['#', '@']) || STEPS.contains(&word(line)) || METHODS.contains(&word(line));
        if begins && before.is_empty() {
            inputs.push(String::new());
            is_answer = false;
        }
        is_answer |= line == "---";
        if !is_answer && let Some(input) = inputs.last_mut() {
            writeln!(input, "{line}").expect("memory");
        }
        before = line;
    }
    inputs
}

fn word(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

fn take_step(server: &Server, clock: &mut u64, line: &str) {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("count_rows", _) => server.backend.maintain(Maintenance::Count),
        ("indexes", _) => server.backend.maintain(Maintenance::Indexes { rows_max: 1_000 }),
        ("compact", revision) => server.backend.compact_to(revision.parse().expect("a revision")),
        (moved, _) => {
            let to = moved.strip_prefix('@').and_then(|to| to.parse().ok());
            let to: u64 = to.unwrap_or_else(|| panic!("no step of a node: {line}"));
            server.backend.advance(Duration::from_millis(to - *clock));
            *clock = to;
        }
    }
}

async fn ask(server: &Server, request: &str) -> Response {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).expect("METHOD PATH");
    let mut headers = Vec::new();
    for line in lines {
        headers.push(line.split_once(": ").unwrap_or_else(|| panic!("NAME: VALUE, not {line:?}")));
    }
    if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("Content-Type", "application/json"));
    }
    let answer = server.ask(method, path, &headers, body.as_bytes()).await;
    answer.carries_the_common_headers();
    answer
}

/// An answer to this request as it stands in a transcript.
fn shown(answer: &Response, request: &str, names: &mut Names) -> String {
    let body = names.name_fields(answer.text().trim_end(), request);
    let is_json = answer.header("content-type").is_some_and(|kind| kind.contains("json"));
    let lines: Vec<_> = body.lines().map(|line| if is_json { laid_out(line, 0) } else { line.to_owned() }).collect();
    let shown = answer.headers.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
    let mut headers: Vec<_> = shown.map(|(name, value)| format!("{name}: {}\n", names.name_drawn(value))).collect();
    headers.sort();
    let status = StatusCode::from_u16(answer.status).expect("a status");
    let text = format!("{status}\n{}\n{}", headers.concat(), lines.join("\n"));
    text.trim_end().to_owned()
}

/// This JSON, but what is longer than a line has one for each of its parts.
fn laid_out(json: &str, depth: usize) -> String {
    let is_short = json.len() + 2 * depth <= LINE;
    if is_short || !json.starts_with(['{', '[']) {
        return json.to_owned();
    }
    let (open, inner, close) = (&json[..1], &json[1..json.len() - 1], &json[json.len() - 1..]);
    let line = |part: &str| {
        let value = if open == "{" { part.find("\":").map_or(0, |at| at + 2) } else { 0 };
        let (name, value) = part.split_at(value);
        format!("{}{name}{}", "  ".repeat(depth + 1), laid_out(value, depth + 1))
    };
    let lines: Vec<_> = parts(inner).into_iter().map(line).collect();
    format!("{open}\n{}\n{}{close}", lines.join(",\n"), "  ".repeat(depth))
}

/// Splits at each comma that stands in no text and in no brackets.
fn parts(json: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for (at, letter) in json.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&json[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&json[from..]);
    parts
}

/// Names of what the node gave, in the order in which it came: `<session 1>` and its value.
#[derive(Default)]
struct Names(Vec<(String, String)>);

impl Names {
    /// The request with values in place of names.
    fn fill(&self, request: &str) -> String {
        let filled = self.0.iter().fold(request.to_owned(), |text, (name, value)| text.replace(name, value));
        let is_left = NAMED.iter().any(|(_, kind)| filled.contains(&format!("<{kind} ")));
        assert!(!is_left, "no answer gave what this names: {filled}");
        filled
    }

    /// The body of an answer to this request, with names in place of values.
    fn name_fields(&mut self, body: &str, request: &str) -> String {
        let name = |text: String, (field, kind): &(&str, &str)| self.name_field(&text, field, kind, request);
        let named = NAMED.iter().fold(body.to_owned(), name);
        self.name_drawn(&named)
    }

    fn name_field(&mut self, body: &str, field: &str, kind: &str, request: &str) -> String {
        let mark = format!("\"{field}\":");
        let mut parts = body.split(&mark);
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let quotes = usize::from(part.starts_with('"'));
            let (quote, rest) = part.split_at(quotes);
            let is_end = |letter: char| if quotes == 1 { letter == '"' } else { !letter.is_ascii_alphanumeric() };
            let (value, rest) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
            named += &format!("{mark}{quote}{}{rest}", self.name(kind, value, request));
        }
        named
    }

    /// The name of a value, or the value where it needs none.
    fn name(&mut self, kind: &str, value: &str, request: &str) -> String {
        let is_usual = match kind {
            "time" => return "<time>".to_owned(),
            "request" if !request.contains(value) => return "<request>".to_owned(),
            "request" => true,
            "key" => value.len() <= DRAWN,
            _ => ["", "null", "false", "true"].contains(&value),
        };
        if is_usual {
            return value.to_owned();
        }
        let kind = format!("<{kind} ");
        let of_kind: Vec<_> = self.0.iter().filter(|(name, _)| name.starts_with(&kind)).collect();
        if let Some((name, _)) = of_kind.iter().find(|(_, known)| known == value) {
            return name.clone();
        }
        let name = format!("{kind}{}>", of_kind.len() + 1);
        self.0.push((name.clone(), value.to_owned()));
        name
    }

    /// Names long random values wherever they stand: nothing else looks like them.
    fn name_drawn(&self, text: &str) -> String {
        let drawn = self.0.iter().filter(|(_, value)| value.len() > DRAWN);
        drawn.fold(text.to_owned(), |text, (name, value)| text.replace(value, name))
    }
}
