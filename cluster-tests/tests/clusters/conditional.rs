//! Conditional requests as RFC 9110, section 13, has them: method by state of the entry by header, through every node.
//!
//! Reads pass conditions over where there is no entry (13.2.1: without them the answer would be 404 too). Writes do not: whoever says
//! `If-Match` relies on the entry, and is told that the condition failed.

use std::net::SocketAddr;

use cluster_tests::{Answer, Cluster, Request};
use quorate_client::api::{Applied, ErrorCode, WriteAnswer};

/// What is at the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Present,
    /// As present, and somebody holds a lock on it.
    Locked,
}

/// Statuses of a row.
struct Row {
    /// `CAS` stands for the tag of the entry, `OLD` for that of the version before; both without quotes.
    lines: &'static [(&'static str, &'static str)],
    /// Of GET and HEAD, by state.
    reads: [u16; 3],
    /// Of PUT, where there is no entry.
    put_absent: u16,
    /// Of PATCH and DELETE there.
    change_absent: u16,
    /// Of all three where there is one, and where it is locked.
    write: [u16; 2],
}

const IS: &str = "If-Match";
const NO: &str = "If-None-Match";

const fn row(
    lines: &'static [(&'static str, &'static str)],
    reads: [u16; 3],
    [put_absent, change_absent]: [u16; 2],
    write: [u16; 2],
) -> Row {
    Row { lines, reads, put_absent, change_absent, write }
}

const ROWS: [Row; 27] = [
    row(&[], [404, 200, 200], [201, 404], [200, 412]),
    // 13.1.1: strong comparison; false where there is nothing.
    row(&[(IS, "*")], [404, 200, 200], [412, 412], [200, 412]),
    row(&[(IS, "\"CAS\"")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "\"OLD\"")], [404, 412, 412], [412, 412], [412, 412]),
    row(&[(IS, "\"OLD\", \"CAS\"")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "\"OLD\" ,, \"CAS\",")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "\"OLD\""), (IS, "\"CAS\"")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "W/\"CAS\"")], [404, 412, 412], [412, 412], [412, 412]),
    row(&[(IS, "W/\"CAS\", \"CAS\"")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "\"CAS-gzip\"")], [404, 412, 412], [412, 412], [412, 412]),
    row(&[(IS, "\"an,unknown\\one\"")], [404, 412, 412], [412, 412], [412, 412]),
    row(&[(IS, "\"\"")], [404, 412, 412], [412, 412], [412, 412]),
    // 13.1.2: weak comparison; true where there is nothing.
    row(&[(NO, "*")], [404, 304, 304], [201, 404], [412, 412]),
    row(&[(NO, "\"CAS\"")], [404, 304, 200], [201, 404], [412, 412]),
    row(&[(NO, "W/\"CAS\"")], [404, 304, 200], [201, 404], [412, 412]),
    row(&[(NO, "\"OLD\"")], [404, 200, 200], [201, 404], [200, 412]),
    row(&[(NO, "\"OLD\", W/\"CAS\"")], [404, 304, 200], [201, 404], [412, 412]),
    row(&[(NO, "\"OLD\""), (NO, "\"CAS\"")], [404, 304, 200], [201, 404], [412, 412]),
    row(&[(NO, "\"CAS-gzip\", \"unknown\"")], [404, 200, 200], [201, 404], [200, 412]),
    // 13.2.2: If-Match first, then If-None-Match.
    row(&[(IS, "\"CAS\""), (NO, "\"OLD\"")], [404, 200, 412], [412, 412], [200, 412]),
    row(&[(IS, "\"CAS\""), (NO, "\"CAS\"")], [404, 304, 412], [412, 412], [412, 412]),
    row(&[(NO, "\"CAS\""), (IS, "\"OLD\"")], [404, 412, 412], [412, 412], [412, 412]),
    row(&[(IS, "*"), (NO, "\"CAS\"")], [404, 304, 200], [412, 412], [412, 412]),
    row(&[(IS, "*"), (NO, "*")], [404, 304, 304], [412, 412], [412, 412]),
    // What breaks the grammar is no condition.
    row(&[(IS, "CAS")], [400, 400, 400], [400, 400], [400, 400]),
    row(&[(NO, "*, \"CAS\"")], [400, 400, 400], [400, 400], [400, 400]),
    row(&[(NO, "\"CAS")], [400, 400, 400], [400, 400], [400, 400]),
];

const KEY: &str = "docs/one two";
const PATH: &str = "/v1/kv/docs/one%20two";

/// The tags of the entry: the current one, and the one before.
struct Tags {
    cas: String,
    old: String,
}

/// Brings the key into this state.
async fn bring(to: SocketAddr, state: State) -> Tags {
    let tags = |cas: &str, old: &str| Tags { cas: cas.to_owned(), old: old.to_owned() };
    let send = async |request: Request| request.send(to).await.expect("the node answers");
    if send(Request::get(PATH)).await.status == 200 {
        let gone = send(Request::new("DELETE", PATH)).await;
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    if state == State::Absent {
        return tags("4", "3");
    }
    let first: WriteAnswer = send(Request::new("PUT", PATH).json("{\"n\":1}")).await.expect_success().json();
    let second: WriteAnswer = send(Request::new("PUT", PATH).json("{\"n\":2}")).await.expect_success().json();
    let (old, cas) = (first.cas.expect("a put gives a token"), second.cas.expect("a put gives a token"));
    tags(&cas.to_string(), &old.to_string())
}

/// Locks the entry; gives the key.
async fn lock(to: SocketAddr) -> String {
    let body = format!(r#"{{"op":"lock","key":"{KEY}","lock_ms":30000}}"#);
    let locked: WriteAnswer = Request::post("/v1/ops", body).send(to).await.unwrap().expect_success().json();
    locked.cas.expect("the key").to_string()
}

async fn unlock(to: SocketAddr, key: &str) {
    let body = format!(r#"{{"op":"unlock","key":"{KEY}","cas":"{key}"}}"#);
    Request::post("/v1/ops", body).send(to).await.unwrap().expect_success();
}

fn request(method: &'static str, row: &Row, tags: &Tags) -> Request {
    let mut request = Request::new(method, PATH);
    if matches!(method, "PUT" | "PATCH") {
        request = request.json("{\"n\":3}");
    }
    for (name, value) in row.lines {
        request = request.header(name, value.replace("CAS", &tags.cas).replace("OLD", &tags.old));
    }
    request
}

/// What holds of an answer whatever the row.
fn judge(answer: &Answer, method: &str, state: State, what: &str) {
    let problem = || answer.problem();
    match (answer.status, method) {
        (200 | 201 | 304, "GET" | "HEAD" | "PUT" | "PATCH") => {
            assert_eq!(answer.header("etag").is_some(), state != State::Locked, "{what}");
        }
        (412, "GET" | "PUT" | "PATCH" | "DELETE") => {
            let problem = problem();
            assert_eq!((problem.status, problem.applied), (412, Applied::No), "{what}");
            let (is_absent, codes) = (state == State::Absent, [ErrorCode::NotFound, ErrorCode::AlreadyExists]);
            assert_eq!(problem.code == codes[0], is_absent, "{what}: {}", problem.detail);
            assert!(problem.code != codes[1] || !is_absent, "{what}: {}", problem.detail);
            assert_eq!(problem.current.is_none(), is_absent, "{what}");
        }
        _ => {}
    }
    assert_eq!(answer.header("location"), (answer.status == 201).then_some(PATH), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_judges_conditions_as_the_standard_says() {
    let mut cluster = Cluster::start().await;
    let mut asked = 0;
    let nodes = cluster.ids().len();
    for (place, id) in cluster.ids().into_iter().enumerate() {
        let to = cluster.client_address(id);
        // What one node wrote, another judges.
        let other = cluster.client_address(id % cluster.ids().len() as u64 + 1);
        for (number, state) in [State::Absent, State::Present, State::Locked].into_iter().enumerate() {
            let tags = bring(other, state).await;
            let key = if state == State::Locked { Some(lock(other).await) } else { None };
            for row in &ROWS {
                for method in ["GET", "HEAD"] {
                    let what = format!("{method} {state:?} {:?} through node {id}", row.lines);
                    let answer = request(method, row, &tags).send(to).await.unwrap();
                    assert_eq!(answer.status, row.reads[number], "{what}: {}", answer.text());
                    judge(&answer, method, state, &what);
                    asked += 1;
                }
            }
            if let Some(key) = key {
                unlock(other, &key).await;
            }
            for (line, row) in ROWS.iter().enumerate() {
                for (turn, method) in ["PUT", "PATCH", "DELETE"].into_iter().enumerate() {
                    // Each row goes to every node, by another method each: it takes six requests to bring an entry into its state.
                    if (line + turn + number) % nodes != place {
                        continue;
                    }
                    let wanted = match (state, method) {
                        (State::Absent, "PUT") => row.put_absent,
                        (State::Absent, _) => row.change_absent,
                        (State::Present, _) => row.write[0],
                        (State::Locked, _) => row.write[1],
                    };
                    let tags = bring(other, state).await;
                    let key = if state == State::Locked { Some(lock(other).await) } else { None };
                    let what = format!("{method} {state:?} {:?} through node {id}", row.lines);
                    let answer = request(method, row, &tags).send(to).await.unwrap();
                    assert_eq!(answer.status, wanted, "{what}: {}", answer.text());
                    judge(&answer, method, state, &what);
                    assert_took_effect(to, &answer, method, state, &what).await;
                    if let Some(key) = key {
                        unlock(other, &key).await;
                    }
                    asked += 1;
                }
            }
        }
    }
    println!("{asked} requests");
    cluster.assert_agreement().await;
}

/// Refused is not applied, and done is.
async fn assert_took_effect(to: SocketAddr, answer: &Answer, method: &str, state: State, what: &str) {
    let read = Request::get(format!("{PATH}?raw")).send(to).await.unwrap();
    let there = (read.status, read.text());
    let before = if state == State::Absent { None } else { Some("{\"n\":2}") };
    match (answer.is_success(), method, before) {
        (true, "DELETE", _) | (false, _, None) => assert_eq!(there.0, 404, "{what}"),
        (true, ..) => assert_eq!(there, (200, "{\"n\":3}".to_owned()), "{what}"),
        (false, _, Some(before)) => assert_eq!(there, (200, before.to_owned()), "{what}"),
    }
}

/// A query, whether there is an entry, and the status by method.
type Typed = (&'static str, bool, [u16; 3]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_in_a_query_are_judged_in_the_step_of_the_write() {
    let mut cluster = Cluster::start().await;
    let rows: [Typed; 9] = [
        ("if=n%20eq%202", true, [200, 200, 200]),
        ("if=n+gte+2&if=n+lt+3&if=owner+nexists", true, [200, 200, 200]),
        ("if=n%20eq%201", true, [412, 412, 412]),
        ("if=n+gte+2&if=n+lt+2", true, [412, 412, 412]),
        ("if=%7B%22any%22:%5B%7B%22field%22:%22n%22,%22op%22:%22eq%22,%22value%22:2%7D%5D%7D", true, [200, 200, 200]),
        ("if=$version+eq+2", true, [200, 200, 200]),
        ("if=n+eq+1", false, [412, 404, 404]),
        ("if=$exists+eq+false", false, [201, 404, 404]),
        ("if=n+is+1", true, [400, 400, 400]),
    ];
    for id in cluster.ids() {
        let to = cluster.client_address(id);
        for (query, there, statuses) in rows {
            for (method, status) in ["PUT", "PATCH", "DELETE"].into_iter().zip(statuses) {
                bring(to, if there { State::Present } else { State::Absent }).await;
                let mut request = Request::new(method, format!("{PATH}?{query}"));
                if method != "DELETE" {
                    request = request.json("{\"n\":3}");
                }
                let answer = request.send(to).await.unwrap();
                assert_eq!(answer.status, status, "{method} {query} through node {id}: {}", answer.text());
                if status == 412 {
                    assert_eq!(answer.problem().code, ErrorCode::ConditionNotMet, "{method} {query}");
                }
            }
        }
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_new_is_answered_with_its_path() {
    let mut cluster = Cluster::start().await;
    let ids = cluster.ids();
    for (number, (method, path, body, again)) in [
        ("PUT", "/v1/kv/a/b%20c", "1", 200),
        ("PUT", "/v1/collections/orders", "{}", 200),
        ("PUT", "/v1/access/roles/r", r#"{"grants":[]}"#, 200),
        ("PUT", "/v1/access/users/u", r#"{"roles":["r"]}"#, 200),
        ("PUT", "/v1/latches/l%2Fl", r#"{"count":2}"#, 200),
        ("POST", "/v1/ops", r#"{"op":"upsert","key":"x y","value":1}"#, 200),
        ("POST", "/v1/tasks/q%2Fq", r#"{"id":"t 1","delay_ms":60000}"#, 200),
        ("POST", "/v1/sessions", r#"{"ttl_ms":60000}"#, 201),
        ("POST", "/v1/access/tokens", r#"{"user":"u"}"#, 201),
    ]
    .into_iter()
    .enumerate()
    {
        // Through one node, then through another.
        let at = |offset: usize| cluster.client_address(ids[(number + offset) % ids.len()]);
        let request = Request::new(method, path).json(body);
        let created = request.send(at(0)).await.unwrap();
        assert_eq!(created.status, 201, "{method} {path}: {}", created.text());
        let location = created.header("location").expect("where it is").to_owned();
        if method == "PUT" {
            assert_eq!(location, path);
        }
        let seen = Request::get(location.as_str()).send(at(1)).await.unwrap();
        // A token is listed and removed, and not shown by itself.
        assert_eq!(seen.status, if path.ends_with("/tokens") { 405 } else { 200 }, "{location}: {}", seen.text());
        let second = request.send(at(2)).await.unwrap();
        assert_eq!(second.status, again, "{method} {path} again: {}", second.text());
        assert_eq!(second.header("location").is_some(), again == 201, "{method} {path}");
    }
    let minimal =
        Request::put("minimal", "1").header("Prefer", "return=minimal").send(at_first(&cluster)).await.unwrap();
    assert_eq!((minimal.status, minimal.header("location"), minimal.body.len()), (201, Some("/v1/kv/minimal"), 0));
    let tried = Request::new("PUT", "/v1/kv/tried?dry_run").json("1").send(at_first(&cluster)).await.unwrap();
    assert_eq!((tried.status, tried.header("location")), (200, None), "nothing was made");
    cluster.assert_agreement().await;
}

fn at_first(cluster: &Cluster) -> SocketAddr {
    cluster.client_address(1)
}
