//! Watches: server-sent events of the changes of some keys.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use quorate_api::{
    Cas, DeleteCause, ErrorCode, WatchEnd, WatchEndCode, WatchEvent, WatchEventKind, WatchProgress, WatchReset,
};
use quorate_machine::document::Criteria;
use quorate_machine::types::{Change, ContentKind, Expect, Expiry, Key, Value, WriteOp};
use quorate_node_core::backend::AppError;
use tokio::net::TcpStream;

use crate::raw::{PATIENCE, Raw, Response, Server, api_settings, serve_settings};

/// One event as it came.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    name: String,
    id: Option<String>,
    data: String,
}

impl Message {
    fn event(&self) -> WatchEvent {
        let event: WatchEvent = serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(serde_json::to_string(&event).expect("JSON"), self.data, "not as the wire type writes it");
        let name = if event.kind == WatchEventKind::Put { "put" } else { "delete" };
        assert_eq!(self.name, name);
        event
    }

    fn progress(&self) -> u64 {
        let progress: WatchProgress =
            serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(self.id, Some(progress.revision.to_string()));
        progress.revision
    }

    fn reset(&self) -> WatchReset {
        assert_eq!(self.name, "reset");
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn end(&self) -> WatchEnd {
        assert_eq!((self.name.as_str(), &self.id), ("end", &None));
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// What an `EventSource` sends.
const BROWSER: (&str, &str) = ("Accept", "text/event-stream");

/// The end of a stream that has ended when it began, and after how long to come again.
fn ended(answer: &Response) -> (WatchEnd, u64) {
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")), "{}", answer.text());
    let text = answer.text();
    let (retry, end) =
        text.strip_prefix("retry: ").and_then(|rest| rest.split_once("\n\n")).expect("when to come again");
    let data = end.strip_prefix("event: end\ndata: ").and_then(|data| data.strip_suffix("\n\n")).expect("one event");
    (serde_json::from_str(data).expect("an end"), retry.parse().expect("milliseconds"))
}

/// A watch over HTTP/1.1.
struct Events {
    raw: Raw,
    head: Response,
    text: String,
    comments: usize,
}

impl Events {
    async fn open(server: &Server, query: &str, headers: &[(&str, &str)]) -> Self {
        let mut raw = server.connect().await;
        let head = raw.ask("GET", &format!("/v1/watch?{query}"), headers, b"").await;
        assert_eq!(head.status, 200, "{}", head.text());
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!((head.header("cache-control"), head.header("x-accel-buffering")), (Some("no-store"), Some("no")));
        let mut events = Self { raw, head, text: String::new(), comments: 0 };
        events.fill().await;
        let retry = events.text.strip_prefix("retry: 1000\n\n").expect("when to come again is said first").to_owned();
        events.text = retry;
        events
    }

    /// The next event, comments left out; `None` at the clean end.
    async fn try_next(&mut self) -> Option<Message> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let text: String = self.text.drain(..at + 2).collect();
                let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                match field("event: ") {
                    None => {
                        assert_eq!(text, ":\n\n");
                        self.comments += 1;
                    }
                    Some(name) => {
                        return Some(Message { name, id: field("id: "), data: field("data: ").expect("data") });
                    }
                }
                continue;
            }
            if !self.fill().await {
                assert_eq!(self.text, "", "half an event at the end");
                return None;
            }
        }
    }

    /// Takes a piece; whether there was one.
    async fn fill(&mut self) -> bool {
        let chunk = self.raw.chunk().await;
        self.text += std::str::from_utf8(&chunk).expect("text");
        !chunk.is_empty()
    }

    async fn next(&mut self) -> Message {
        self.try_next().await.expect("the stream ended")
    }

    /// The next events: key, revision and id of each.
    async fn take(&mut self, count: usize) -> Vec<(String, u64, Option<String>)> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let message = self.next().await;
            let event = message.event();
            taken.push((event.key.to_string(), event.revision, message.id));
        }
        taken
    }
}

fn told(key: &str, revision: u64, id: Option<&str>) -> (String, u64, Option<String>) {
    (key.into(), revision, id.map(str::to_owned))
}

fn json(text: &str) -> Value {
    Value { kind: ContentKind::Json, data: text.into() }
}

fn op(key: &str, change: Change) -> WriteOp {
    WriteOp {
        key: Key::new(key).expect("a key"),
        expect: Expect::ANY,
        condition: Criteria::default(),
        change,
        expiry: Expiry::Never,
        return_previous: false,
        session: None,
        guard: None,
    }
}

fn upsert(key: &str, text: &str) -> WriteOp {
    op(key, Change::Put(json(text)))
}

#[tokio::test]
async fn changes_of_the_keys_come_with_ids_and_no_others_do() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "prefix=a/", &[]).await;
    events.head.carries_the_common_headers();
    server.backend.seed("a/1", json("{\"n\":\n 1}"));
    server.backend.seed("b/1", json("1"));
    let first = events.next().await;
    let event = first.event();
    assert_eq!(
        (first.id.as_deref(), event.revision, event.index, event.key.text()),
        (Some("2.0"), 2, Some(0), Some("a/1"))
    );
    let entry = event.entry.expect("it is there");
    assert_eq!((entry.value.expect("JSON").0.get(), entry.cas, entry.version), ("{\"n\":  1}", Some(Cas::new(2)), 1));
    assert_eq!((event.prev, event.cause, event.initial), (None, None, false));
    server.backend.together(&[op("a/1", Change::Remove)]);
    let gone = events.next().await;
    let event = gone.event();
    assert_eq!(
        (gone.id.as_deref(), event.kind, event.cause),
        (Some("4.0"), WatchEventKind::Delete, Some(DeleteCause::Removed))
    );
    assert_eq!((event.entry, event.prev), (None, None));
}

#[tokio::test]
async fn only_the_last_event_of_a_revision_has_an_id_whatever_is_left_out() {
    let server = Server::start().await;
    let all = [upsert("a/1", "1"), upsert("b/1", "{\"n\":1}"), upsert("a/2", "{\"n\":2}"), upsert("b/2", "4")];
    for (query, expected) in [
        ("prefix=", vec![("a/1", None), ("b/1", None), ("a/2", None), ("b/2", Some("2.3"))]),
        ("prefix=a/", vec![("a/1", None), ("a/2", Some("2.2"))]),
        ("prefix=a/1", vec![("a/1", Some("2.0"))]),
        ("start=a/2&end=b/2", vec![("b/1", None), ("a/2", Some("2.2"))]),
        ("prefix=&where=%5B%7B%22field%22:%22n%22,%22op%22:%22lt%22,%22value%22:2%7D%5D", vec![("b/1", Some("2.1"))]),
    ] {
        let server = Server::start().await;
        let mut live = Events::open(&server, query, &[]).await;
        server.backend.together(&all);
        server.backend.seed("a/1", json("{\"n\":0}"));
        server.backend.seed("b/1", json("{\"n\":0}"));
        let mut later = Events::open(&server, &format!("{query}&from=2"), &[]).await;
        for events in [&mut live, &mut later] {
            let expected: Vec<_> = expected.iter().map(|(key, id)| told(key, 2, *id)).collect();
            assert_eq!(events.take(expected.len()).await, expected, "{query}");
        }
    }
    drop(server);
}

#[tokio::test]
async fn a_watch_goes_on_where_it_is_told_to() {
    let server = Server::start().await;
    server.backend.together(&[upsert("a", "1"), upsert("b", "1"), upsert("c", "1")]);
    server.backend.seed("a", json("2"));
    let (b, c, a) = (told("b", 2, None), told("c", 2, Some("2.2")), told("a", 3, Some("3.0")));
    for (query, id, expected) in [
        ("prefix=&from=3", None, vec![&a]),
        ("prefix=", Some("2"), vec![&a]),
        ("prefix=", Some("2.2"), vec![&a]),
        ("prefix=", Some("2.0"), vec![&b, &c, &a]),
        // The URL is that of the first try; the id says what came since.
        ("prefix=&from=2", Some("2.1"), vec![&c, &a]),
        ("prefix=&initial=true", Some("2.1"), vec![&c, &a]),
    ] {
        let headers: Vec<_> = id.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        let mut events = Events::open(&server, query, &headers).await;
        let expected: Vec<_> = expected.into_iter().cloned().collect();
        assert_eq!(events.take(expected.len()).await, expected, "{query} {id:?}");
    }
    for query in ["prefix=&from=0", "prefix=&from=1", "prefix=&from=2"] {
        assert_eq!(Events::open(&server, query, &[]).await.take(1).await, [told("a", 2, None)], "{query}");
    }
    // What comes next may be waited for, what comes after that does not exist.
    let mut events = Events::open(&server, "key=a&from=4", &[]).await;
    server.backend.seed("a", json("3"));
    assert_eq!(events.take(1).await, [told("a", 4, Some("4.0"))]);
}

#[tokio::test]
async fn what_cannot_be_gone_on_from_is_refused_before_anything_is_sent() {
    let server = Server::start().await;
    for _ in 0..5 {
        server.backend.seed("a", json("1"));
    }
    server.backend.compact_to(4);
    for (query, id) in
        [("prefix=&from=4", None), ("prefix=", Some("3.0")), ("prefix=", Some("3")), ("prefix=", Some("4.0"))]
    {
        let headers: Vec<_> = id.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        let problem = server.ask("GET", &format!("/v1/watch?{query}"), &headers, b"").await.problem();
        assert_eq!((problem.code, problem.oldest_revision), (ErrorCode::Compacted, Some(4)), "{query} {id:?}");
    }
    Events::open(&server, "prefix=&from=5", &[]).await.take(2).await;
    for (query, id, pointer) in
        [("prefix=&from=8", None, "query:from"), ("prefix=", Some("7.0"), "header:Last-Event-ID")]
    {
        let headers: Vec<_> = id.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        let problem = server.ask("GET", &format!("/v1/watch?{query}"), &headers, b"").await.problem();
        assert_eq!((problem.code, problem.errors[0].pointer.as_str()), (ErrorCode::InvalidArgument, pointer));
    }
}

#[tokio::test]
async fn a_reader_of_events_alone_begins_anew_where_it_cannot_go_on() {
    let server = Server::start().await;
    for _ in 0..5 {
        server.backend.seed("a", json("1"));
    }
    server.backend.compact_to(4);
    let at = |id| [BROWSER, ("Last-Event-ID", id)];
    for (id, code) in [("3.0", ErrorCode::Compacted), ("70.0", ErrorCode::InvalidArgument)] {
        let mut anew = Events::open(&server, "prefix=&initial=true", &at(id)).await;
        let message = anew.next().await;
        let reset = message.reset();
        assert_eq!((message.id, reset.revision, reset.code), (None, 6, Some(code)), "{id}");
        assert!(reset.detail.is_some_and(|detail| detail.contains(id.trim_end_matches(".0"))), "{id}");
        assert!(anew.next().await.event().initial);
        let synced = anew.next().await;
        assert_eq!((synced.name.as_str(), synced.progress()), ("synced", 6));
    }
    // Without the entries as little is missing as can be.
    let mut on = Events::open(&server, "prefix=", &at("3")).await;
    let message = on.next().await;
    let reset = message.reset();
    assert_eq!((message.id.as_deref(), reset.revision, reset.code), (Some("4"), 4, Some(ErrorCode::Compacted)));
    assert_eq!(on.take(2).await, [told("a", 5, Some("5.0")), told("a", 6, Some("6.0"))]);
    // All is news to a reader that was in another cluster.
    let mut elsewhere = Events::open(&server, "prefix=", &at("70")).await;
    let message = elsewhere.next().await;
    assert_eq!((message.reset().revision, message.id.as_deref()), (4, Some("4")));
    assert_eq!(elsewhere.take(2).await, [told("a", 5, Some("5.0")), told("a", 6, Some("6.0"))]);

    // A first begin, and one whose begin broke off, empty what there is; one without entries says where it is.
    let reset = Events::open(&server, "prefix=&initial=true", &[BROWSER]).await.next().await.reset();
    assert_eq!((reset.revision, reset.code, reset.detail), (6, None, None));
    let first = Events::open(&server, "prefix=", &[BROWSER]).await.next().await;
    assert_eq!((first.name.as_str(), first.progress()), ("progress", 6));
    assert_eq!(Events::open(&server, "prefix=", &at("5.0")).await.take(1).await, [told("a", 6, Some("6.0"))]);

    // What does not pass is a status, and all is where anything else is taken too.
    for (query, headers, status) in [
        ("prefix=&from=3", vec![BROWSER], 410),
        ("prefix=&from=80", vec![BROWSER], 400),
        ("prefix=&colour=red", vec![BROWSER], 400),
        ("prefix=", vec![("Accept", "text/event-stream, */*;q=0.1"), ("Last-Event-ID", "3.0")], 410),
        ("prefix=", vec![("Last-Event-ID", "70.0")], 400),
    ] {
        let problem = server.ask("GET", &format!("/v1/watch?{query}"), &headers, b"").await.problem();
        assert_eq!(problem.status, status, "{query} {headers:?}");
    }
}

async fn server_of_one_watch() -> Server {
    let mut api = api_settings();
    api.bounds.watches_max = 1;
    Server::start_with(api, serve_settings()).await
}

#[tokio::test]
async fn a_reader_of_events_alone_is_told_in_the_stream_what_passes() {
    let server = server_of_one_watch().await;
    let paths = ["/v1/watch?prefix=", "/v1/elections/e/observe"];
    server.backend.lose_leader();
    for path in paths {
        let (end, retry) = ended(&server.ask("GET", path, &[BROWSER, ("Request-Timeout", "50")], b"").await);
        assert_eq!((end.code, retry), (WatchEndCode::Timeout, 1_000), "{path}");
        let problem = server.ask("GET", path, &[("Request-Timeout", "50")], b"").await.problem();
        assert_eq!((problem.status, problem.code), (504, ErrorCode::Timeout), "{path}");
    }
    let server = server_of_one_watch().await;
    for (error, code) in [
        (AppError::NoLeader, WatchEndCode::NoLeader),
        (AppError::NotReady("it starts".into()), WatchEndCode::NotReady),
        (AppError::Quarantined("it differs".into()), WatchEndCode::Quarantined),
        (AppError::Overloaded, WatchEndCode::TooManyRequests),
    ] {
        server.backend.fail_reads(Some(error));
        for path in paths {
            let answer = server.ask("GET", path, &[BROWSER, ("Last-Event-ID", "1")], b"").await;
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let (end, _) = ended(&answer);
            assert_eq!((end.code, end.revision), (code, None), "{path}");
        }
    }
    server.backend.fail_reads(None);
    let _only = Events::open(&server, "prefix=", &[]).await;
    let (end, retry) = ended(&server.ask("GET", paths[0], &[BROWSER], b"").await);
    assert!(end.code == WatchEndCode::TooManyRequests && retry >= 1_000, "{end:?}, again after {retry} ms");
    assert_eq!(server.get(paths[0]).await.problem().status, 429);
}

#[tokio::test]
async fn the_head_of_a_watch_is_its_headers_and_no_stream() {
    let server = Server::start().await;
    let head = server.ask("HEAD", "/v1/watch?prefix=", &[], b"").await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}

#[tokio::test]
async fn initial_entries_come_first_then_synced_then_what_changes() {
    let server = Server::start().await;
    for n in 0..30 {
        server.backend.seed(&format!("a/{n:02}"), json(&format!("{{\"n\":{n}}}")));
    }
    server.backend.seed("b", json("1"));
    let large = json(&format!("\"{}\"", "x".repeat(100_000)));
    server.backend.seed("a/05", large);
    let mut events = Events::open(&server, "prefix=a/&initial=true&keys_only=true", &[]).await;
    for n in 0..30 {
        let message = events.next().await;
        let event = message.event();
        let entry = event.entry.expect("it is there");
        assert_eq!(
            (message.id, event.key.to_string(), event.initial, event.index),
            (None, format!("a/{n:02}"), true, None)
        );
        assert_eq!((event.revision, entry.value, entry.version), (33, None, if n == 5 { 2 } else { 1 }));
    }
    let synced = events.next().await;
    assert_eq!((synced.name.as_str(), synced.progress()), ("synced", 33));
    server.backend.seed("a/00", json("1"));
    assert_eq!(events.take(1).await, [told("a/00", 34, Some("34.0"))]);
    let mut none = Events::open(&server, "prefix=x&initial=true", &[]).await;
    assert_eq!(none.next().await.name, "synced");
    let query = "prefix=a/&initial=true&where=%5B%7B%22field%22:%22n%22,%22op%22:%22gt%22,%22value%22:27%7D%5D";
    let mut some = Events::open(&server, query, &[]).await;
    assert_eq!(some.take(2).await, [told("a/28", 34, None), told("a/29", 34, None)]);
    assert_eq!(some.next().await.name, "synced");
}

#[tokio::test]
async fn a_watch_shows_what_it_is_asked_to() {
    let server = Server::start().await;
    let mut puts = Events::open(&server, "prefix=&events=put&prev=true", &[]).await;
    let mut deletes = Events::open(&server, "prefix=&events=delete&prev=true", &[]).await;
    let query =
        "prefix=&keys_only=true&prev=true&where=%5B%7B%22field%22:%22n%22,%22op%22:%22eq%22,%22value%22:2%7D%5D";
    let mut twos = Events::open(&server, query, &[]).await;
    server.backend.seed("a", json("{\"n\":1}"));
    server.backend.seed("a", json("{\"n\":2}"));
    server.backend.together(&[op("a", Change::Remove)]);
    server.backend.seed("b", json("{\"n\":1}"));
    server.backend.together(&[op("b", Change::Remove)]);
    let shown = |event: &WatchEvent| {
        let value = |entry: &Option<quorate_api::EntryView>| {
            entry.as_ref().map(|entry| entry.value.as_ref().map_or("none".to_owned(), |value| value.0.get().to_owned()))
        };
        (event.revision, value(&event.entry), value(&event.prev))
    };
    let some = |text: &str| Some(text.to_owned());
    for expected in
        [(2, some("{\"n\":1}"), None), (3, some("{\"n\":2}"), some("{\"n\":1}")), (5, some("{\"n\":1}"), None)]
    {
        assert_eq!(shown(&puts.next().await.event()), expected);
    }
    for expected in [(4, None, some("{\"n\":2}")), (6, None, some("{\"n\":1}"))] {
        assert_eq!(shown(&deletes.next().await.event()), expected);
    }
    // After a write, before a removal.
    for expected in [(3, some("none"), some("none")), (4, None, some("none"))] {
        assert_eq!(shown(&twos.next().await.event()), expected);
    }
}

#[tokio::test]
async fn a_silent_watch_says_how_far_it_is() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "prefix=a/&heartbeat_ms=500", &[]).await;
    server.backend.seed("b", json("1"));
    let message = events.next().await;
    assert_eq!((message.name.as_str(), message.progress()), ("progress", 2));
    server.backend.seed("b", json("2"));
    assert_eq!(events.next().await.progress(), 3);
    server.backend.seed("a/", json("1"));
    assert_eq!(events.take(1).await, [told("a/", 4, Some("4.0"))]);
    assert_eq!(events.next().await.progress(), 4);
}

/// An id there would be one before what was sent already.
#[tokio::test]
async fn a_watch_that_is_silent_in_the_midst_of_a_revision_only_shows_that_it_lives() {
    let server = Server::start().await;
    server.backend.seed("z", json("1"));
    // No two of them are read at once.
    let long = format!("\"{}\"", "x".repeat(40_000));
    server.backend.together(&[upsert("a", &long), upsert("b", &long), upsert("c", &long)]);
    server.backend.hang_after_pages(Some(1));
    let mut events = Events::open(&server, "prefix=&from=2&heartbeat_ms=500", &[]).await;
    assert_eq!(events.take(1).await, [told("z", 2, Some("2.0"))]);
    while !events.text.contains("\n\n") {
        assert!(events.fill().await, "the stream ended");
    }
    server.backend.hang_after_pages(None);
    assert_eq!(events.take(3).await, [told("a", 3, None), told("b", 3, None), told("c", 3, Some("3.2"))]);
    assert!(events.comments > 0);
}

#[tokio::test]
async fn a_watch_is_ended_with_a_reason() {
    let server = Server::start().await;
    server.backend.seed("a", json("1"));
    let mut events = Events::open(&server, "prefix=&heartbeat_ms=500", &[]).await;
    server.backend.hear_nothing_for(20_000);
    let end = loop {
        let message = events.next().await;
        if message.name == "end" {
            break message.end();
        }
    };
    assert_eq!((end.code, end.revision, end.oldest_revision), (WatchEndCode::NoLeader, Some(2), None));
    assert_eq!(events.try_next().await, None);
    server.backend.hear_nothing_for(0);
    let mut events = Events::open(&server, "prefix=&from=2", &[]).await;
    events.take(1).await;
    server.stop.cancel();
    let end = events.next().await.end();
    assert_eq!((end.code, end.revision), (WatchEndCode::Stopping, Some(2)));
    assert_eq!(events.try_next().await, None);
    tokio::time::timeout(Duration::from_secs(3), server.task)
        .await
        .expect("watches keep no node from stopping")
        .unwrap();
}

#[tokio::test]
async fn an_entry_that_is_too_dear_to_judge_ends_a_watch_which_goes_on_behind_it() {
    let server = Server::start().await;
    let terms = [r#"{"field":"a","op":"ncontains","value":7}"#; 8].join(",");
    let mut given = format!("[{terms}]");
    for (character, encoded) in [("[", "%5B"), ("]", "%5D"), ("{", "%7B"), ("}", "%7D"), ("\"", "%22")] {
        given = given.replace(character, encoded);
    }
    let query = format!("prefix=&where={given}");
    let mut live = Events::open(&server, &query, &[]).await;
    server.backend.seed("small", json(r#"{"a":[1]}"#));
    server.backend.seed("long", json(&format!(r#"{{"a":[{}]}}"#, vec!["0"; 700_000].join(","))));
    server.backend.seed("small", json(r#"{"a":[2]}"#));
    let mut after = Events::open(&server, &format!("{query}&from=2"), &[]).await;
    for events in [&mut live, &mut after] {
        assert_eq!(events.take(1).await, [told("small", 2, Some("2.0"))]);
        let end = events.next().await.end();
        assert_eq!((end.code, end.revision), (WatchEndCode::TooDear, Some(2)));
        assert!(end.detail.starts_with("at revision 3: ") && end.detail.contains("long"), "{}", end.detail);
        assert_eq!(events.try_next().await, None);
    }
    // The entries that there are come in order of their keys.
    let mut initial = Events::open(&server, &format!("{query}&initial=true"), &[]).await;
    let end = initial.next().await.end();
    assert_eq!((end.code, end.revision), (WatchEndCode::TooDear, None));
    let mut behind = Events::open(&server, &format!("{query}&from=4"), &[]).await;
    assert_eq!(behind.take(1).await, [told("small", 4, Some("4.0"))]);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("\nquorate_watch_ends_total{code=\"too_dear\"} 3\n"), "{metrics}");
}

#[tokio::test]
async fn who_does_not_read_until_it_is_compacted_is_told_so_and_nothing_is_left_out_before() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "prefix=", &[]).await;
    server.backend.seed("a", json("1"));
    events.take(1).await;
    // More than sockets and the ring hold.
    let large = format!("\"{}\"", "x".repeat(300_000));
    for _ in 0..100 {
        server.backend.seed("a", json(&large));
    }
    // From here on the node has sent as much as the sockets take.
    events.take(1).await;
    server.backend.compact_to(102);
    let mut expected = 4;
    let end = loop {
        let message = events.next().await;
        if message.name == "end" {
            break message.end();
        }
        assert_eq!(message.event().revision, expected);
        expected += 1;
    };
    assert!(expected < 102, "all of it was in some buffer");
    assert_eq!(
        (end.code, end.oldest_revision, end.revision),
        (WatchEndCode::SlowConsumer, Some(102), Some(expected - 1))
    );
    assert_eq!(events.try_next().await, None);
}

#[tokio::test]
async fn who_falls_behind_catches_up_from_disk() {
    let server = Server::start().await;
    let mut events = Events::open(&server, "prefix=&keys_only=true", &[]).await;
    // More than the ring holds, before the node gets to look at the first of them.
    let last = 4_001;
    for _ in 2..=last {
        server.backend.seed("a", json("1"));
    }
    for revision in 2..=last {
        assert_eq!(events.take(1).await, [told("a", revision, Some(&format!("{revision}.0")))]);
    }
    server.backend.seed("a", json("1"));
    assert_eq!(events.take(1).await, [told("a", last + 1, Some(&format!("{}.0", last + 1)))]);
    let metrics = server.get("/metrics").await.text();
    let count = |source: &str| {
        let name = format!("quorate_watch_events_total{{source=\"{source}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).expect("it is counted")
    };
    assert_eq!(count("disk") + count("memory"), last);
    assert!(count("disk") > 0 && count("memory") > 0, "{} from disk", count("disk"));
}

#[tokio::test]
async fn watches_are_no_requests_in_flight_and_outlive_idle_connections() {
    let (mut api, mut serve) = (api_settings(), serve_settings());
    api.bounds.classes.point = 1;
    serve.idle_timeout = Duration::from_millis(200);
    let server = Server::start_with(api, serve).await;
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(Events::open(&server, "prefix=a&heartbeat_ms=500", &[]).await);
    }
    for events in &mut watches {
        assert_eq!(events.next().await.progress(), 1);
    }
    assert_eq!(server.put_json("/v1/kv/a", "1").await.status / 100, 2);
    for events in &mut watches {
        assert_eq!(events.take(1).await, [told("a", 2, Some("2.0"))]);
    }
}

#[tokio::test]
async fn watches_work_over_http2() {
    let server = Server::start().await;
    let stream = TcpStream::connect(server.addr).await.expect("the server listens");
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2 by prior knowledge");
    tokio::spawn(connection);
    let mut bodies = Vec::new();
    for prefix in ["a", "b"] {
        let request = http::Request::get(format!("http://t/v1/watch?prefix={prefix}"));
        let response = sender.send_request(request.body(Empty::<bytes::Bytes>::new()).expect("a request")).await;
        let response = response.expect("the head comes before the first event");
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        let first = tokio::time::timeout(PATIENCE, body.frame()).await.expect("in time").expect("a frame");
        assert_eq!(first.expect("no error").into_data().expect("no trailers"), "retry: 1000\n\n");
        bodies.push(body);
    }
    server.backend.seed("b", json("1"));
    server.backend.seed("a", json("1"));
    for (body, id) in bodies.iter_mut().zip(["id: 3.0\n", "id: 2.0\n"]) {
        let frame =
            tokio::time::timeout(PATIENCE, body.frame()).await.expect("in time").expect("a frame").expect("no error");
        let data = frame.into_data().expect("no trailers");
        assert!(String::from_utf8_lossy(&data).contains(id), "{data:?}");
    }
    server.stop.cancel();
    for body in &mut bodies {
        let frame =
            tokio::time::timeout(PATIENCE, body.frame()).await.expect("in time").expect("a frame").expect("no error");
        assert!(String::from_utf8_lossy(&frame.into_data().expect("no trailers")).contains("\"stopping\""));
        assert!(tokio::time::timeout(PATIENCE, body.frame()).await.expect("in time").is_none());
    }
}
