//! What a node does not take on: full classes, accounts that took all they may, answers that nobody reads, requests that are too late.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use quorate_api::{Applied, ErrorCode, NodeCallersAnswer, NodeResourceKind, Problem};
use quorate_machine::document::TooDear;
use quorate_machine::types::{Action, ContentKind, Rejection, Value};
use quorate_node_core::gateway::admission::accounts::AccountLimits;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::http_2::{DATA, END_HEADERS, HEADERS, PREFACE, SETTINGS, frame};
use crate::raw::{JSON, PATIENCE, Raw, Response, Server, api_settings, pass, read, serve_settings, until};

const OCTETS: (&str, &str) = ("Content-Type", "application/octet-stream");

/// Somebody else than who asks from 127.0.0.1: an account of its own.
const OTHER: u8 = 2;

async fn server_with(change: impl FnOnce(&mut quorate_node_core::gateway::api::ApiSettings)) -> Server {
    let mut api = api_settings();
    change(&mut api);
    Server::start_with(api, serve_settings()).await
}

/// A request on a connection of its own that is not waited for.
async fn begin(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Raw {
    let mut raw = server.connect().await;
    raw.send_request(method, path, headers, body).await;
    raw
}

/// The number of a metric, all of its name and labels given.
pub async fn metric(server: &Server, name: &str) -> f64 {
    let metrics = server.get("/metrics").await.text();
    let found = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("{name} is missing in\n{metrics}"))
}

fn too_many(problem: &Problem, words: &str) {
    assert_eq!((problem.code, problem.applied), (ErrorCode::TooManyRequests, Applied::No));
    assert!(problem.detail.contains(words), "{}", problem.detail);
    assert!(problem.retry_after_ms.is_some_and(|millis| millis > 0), "{problem:?}");
}

#[tokio::test]
async fn a_full_class_refuses_its_own_requests_and_no_others() {
    let server = server_with(|api| (api.bounds.classes.point, api.bounds.classes.coordination) = (1, 1)).await;
    server.backend.hold("slow");
    let mut slow = begin(&server, "PUT", "/v1/kv/slow", &[JSON], b"1").await;
    until("the write did not come", async || server.backend.asked() == 1).await;
    let refused = server.put_json("/v1/kv/k", "1").await;
    too_many(&refused.problem(), "class `point` of this node is full: it takes 1 operations");
    assert_eq!(refused.header("retry-after"), Some("1"));
    for path in ["/v1/kv?prefix=a", "/v1/locks/l", "/livez", "/v1/cluster/status", "/v1/cluster/members"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    assert_eq!(metric(&server, "quorate_http_class_in_use{class=\"point\"}").await, 1.0);
    assert_eq!(metric(&server, "quorate_http_class_bound{class=\"point\"}").await, 1.0);
    assert_eq!(metric(&server, "quorate_http_class_refused_total{class=\"point\"}").await, 1.0);
    assert_eq!(metric(&server, "quorate_http_class_refused_total{class=\"scan\"}").await, 0.0);
    server.backend.release("slow");
    assert_eq!(slow.response(false).await.status, 201);
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
}

#[tokio::test]
async fn the_place_of_a_caller_that_left_is_free() {
    let server = server_with(|api| api.bounds.classes.point = 1).await;
    server.backend.hold("slow");
    let slow = begin(&server, "PUT", "/v1/kv/slow", &[JSON], b"1").await;
    until("the write did not come", async || server.backend.asked() == 1).await;
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status, 429);
    drop(slow);
    until("the place is not free", async || server.put_json("/v1/kv/k", "1").await.status / 100 == 2).await;
}

#[tokio::test]
async fn scans_cost_what_they_may_look_at() {
    // Room for a find and a little.
    let server = server_with(|api| api.bounds.classes.scan = 18).await;
    server.backend.hold_scans(true);
    let mut all = begin_from(&server, OTHER, "/v1/kv?prefix=a&count_only=true").await;
    until("the count did not come", async || server.backend.scans() == 1).await;
    let page = server.get("/v1/kv?prefix=a&limit=1000").await;
    too_many(&page.problem(), "class `scan` of this node is full: it takes scans of 18 units of cost");
    let mut small = begin(&server, "GET", "/v1/kv?prefix=a&limit=10", &[], b"").await;
    until("a small page did not come in", async || server.backend.scans() == 2).await;
    let find = server.ask("POST", "/v1/find", &[JSON], br#"{"prefix":"a","limit":1}"#).await;
    too_many(&find.problem(), "class `scan`");
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
    server.backend.hold_scans(false);
    assert_eq!((all.response(false).await.status, small.response(false).await.status), (200, 200));
    until("the class is not empty", async || metric(&server, "quorate_http_class_in_use{class=\"scan\"}").await == 0.0)
        .await;
}

/// Asks over etcd's gateway; gives the error, where it is one.
async fn ask_etcd(server: &Server, path: &str, body: &str) -> (u16, Option<String>) {
    let answer = server.ask("POST", path, &[JSON], body.as_bytes()).await;
    (answer.status, answer.json()["error"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn ranges_of_etcd_are_scans_and_single_keys_are_not() {
    const RANGE: &str = "/v3/kv/range";
    // Room for a count and a little.
    let server = server_with(|api| api.bounds.classes.scan = 18).await;
    server.backend.hold_scans(true);
    let count = r#"{"key":"YQ==","range_end":"Yg==","count_only":true}"#;
    let mut counting = send_from(&server, OTHER, "POST", RANGE, &[JSON], count.as_bytes()).await;
    until("the count did not come", async || server.backend.scans() == 1).await;
    assert_eq!(metric(&server, "quorate_http_class_in_use{class=\"scan\"}").await, 16.0);
    assert_eq!(metric(&server, "quorate_http_class_in_use{class=\"point\"}").await, 0.0);
    let too_many_requests = (429, Some("etcdserver: too many requests".to_owned()));
    for long in [count, r#"{"key":"YQ==","range_end":"Yg=="}"#] {
        assert_eq!(ask_etcd(&server, RANGE, long).await, too_many_requests, "{long}");
    }
    too_many(&server.get("/v1/kv?prefix=a&limit=1000").await.problem(), "class `scan`");
    let page = r#"{"key":"YQ==","range_end":"Yg==","limit":10}"#;
    let mut small = begin(&server, "POST", RANGE, &[JSON], page.as_bytes()).await;
    until("a small page did not come in", async || server.backend.scans() == 2).await;
    // So are two reads of the past in a transaction, of one key too, and what it has of ranges if it only reads.
    let reads = server.backend.readers().len();
    let past = r#"{"request_range":{"key":"YQ==","revision":"1"}}"#;
    let (twice, range) = (format!("{past},{past}"), r#"{"request_range":{"key":"YQ==","range_end":"Yg=="}}"#);
    for steps in [twice.as_str(), range] {
        let txn = format!(r#"{{"success":[{steps}]}}"#);
        assert_eq!(ask_etcd(&server, "/v3/kv/txn", &txn).await, too_many_requests, "{steps}");
    }
    assert_eq!(server.backend.readers().len(), reads);
    assert_eq!(ask_etcd(&server, RANGE, r#"{"key":"YQ=="}"#).await, (200, None));
    server.backend.hold_scans(false);
    assert_eq!((counting.response(false).await.status, small.response(false).await.status), (200, 200));
    until("the class is not empty", async || metric(&server, "quorate_http_class_in_use{class=\"scan\"}").await == 0.0)
        .await;
}

#[tokio::test]
async fn what_a_transaction_of_etcd_looks_back_at_has_one_bound_and_is_read_aside() {
    let server = Server::start().await;
    let seed =
        |key: &str, bytes: usize| server.backend.seed(key, Value { kind: ContentKind::Bytes, data: vec![b'x'; bytes] });
    let revision = seed("large", 1 << 20);
    let past = vec![json!({"request_range": {"key": BASE64.encode("large"), "revision": revision}}); 20];
    let too_large = (400, Some("etcdserver: request is too large".to_owned()));
    assert_eq!(ask_etcd(&server, "/v3/kv/txn", &json!({ "success": past }).to_string()).await, too_large);
    assert_eq!(server.backend.readers().len(), 16, "fifteen fit into the bound of a transaction");
    // A put holds the value that it keeps.
    let put = |n: usize| {
        let key = format!("kept/{n}");
        seed(&key, 1_536 * 1024);
        json!({"request_put": {"key": BASE64.encode(&key), "ignore_value": true}})
    };
    let puts: Vec<_> = (0..12).map(put).collect();
    assert_eq!(ask_etcd(&server, "/v3/kv/txn", &json!({ "failure": puts }).to_string()).await, too_large);
    let readers = server.backend.readers();
    assert_eq!(readers.len(), 16 + 11, "ten fit");
    // The thread of this test serves the requests: what is no scan is read there.
    let own = std::thread::current().id();
    assert!(readers.iter().all(|reader| *reader != own));
    assert_eq!(ask_etcd(&server, "/v3/kv/range", r#"{"key":"YQ=="}"#).await, (200, None));
    assert_eq!(server.backend.readers().last(), Some(&own));
    assert!(server.backend.commands().is_empty());
}

#[tokio::test]
async fn a_bulk_costs_as_many_operations_as_it_has_and_one_alone_always_fits() {
    let server = server_with(|api| api.bounds.classes.point = 10).await;
    let ops: Vec<_> = (0..20).map(|n| json!({"op": "upsert", "key": format!("k{n}"), "value": n})).collect();
    let bulk = json!({ "ops": ops }).to_string();
    let send = async || server.ask("POST", "/v1/bulk", &[JSON], bulk.as_bytes()).await;
    assert_eq!(send().await.status, 200);
    server.backend.hold("slow");
    let _slow = begin(&server, "PUT", "/v1/kv/slow", &[JSON], b"1").await;
    until("the write did not come", async || server.backend.asked() == 2).await;
    too_many(&send().await.problem(), "class `point`");
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
}

#[tokio::test]
async fn who_waits_takes_no_place_among_those_who_work() {
    let server = server_with(|api| (api.bounds.classes.point, api.bounds.classes.waiting) = (1, 1)).await;
    let wait = "/v1/kv/k?if_none_match=0&wait_ms=60000";
    let mut waiting = begin(&server, "GET", wait, &[], b"").await;
    until("nobody waits", async || metric(&server, "quorate_http_class_in_use{class=\"waiting\"}").await == 1.0).await;
    too_many(&server.get(wait).await.problem(), "class `waiting` of this node is full: 1 requests may wait");
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
    assert_eq!(waiting.response(false).await.status, 200, "woken by the write");
    until("it still waits", async || metric(&server, "quorate_http_class_in_use{class=\"waiting\"}").await == 0.0)
        .await;
}

#[tokio::test]
async fn who_hung_up_waits_no_more_whatever_came_behind_the_request() {
    let mut serve = serve_settings();
    // Connections are looked at four times in that.
    serve.header_timeout = Duration::from_secs(1);
    let server = Server::start_with(api_settings(), serve).await;
    let in_use = "quorate_http_class_in_use{class=\"waiting\"}";
    let mut waiting = begin(&server, "GET", "/v1/kv/k?if_none_match=0&wait_ms=60000", &[], b"").await;
    waiting.send_request("GET", "/livez", &[], b"").await;
    until("it does not wait", async || metric(&server, in_use).await == 1.0).await;
    drop(waiting);
    until("the node waits for who hung up", async || metric(&server, in_use).await == 0.0).await;
}

#[tokio::test]
async fn answers_that_nobody_takes_stop_further_ones_until_they_are_taken() {
    let (mut api, mut serve) = (api_settings(), serve_settings());
    // One reader may hold a quarter of it.
    api.bounds.answers_bytes_max = 32 * 1024 * 1024;
    serve.write_stall_timeout = 10 * PATIENCE;
    let server = Server::start_with(api, serve).await;
    // So many answers on one connection that the buffers of the system do not take them.
    const EACH: usize = 12;
    let value = vec![7u8; 1_536 * 1024];
    assert_eq!(server.ask("PUT", "/v1/kv/big", &[OCTETS], &value).await.status / 100, 2);
    let mut readers = Vec::new();
    let mut refused = server.get("/v1/kv?prefix=none").await;
    while refused.status != 429 {
        assert!(readers.len() < 40, "nothing bounds answers");
        let mut raw = server.connect().await;
        for _ in 0..EACH {
            raw.send_request("GET", "/v1/kv/big?raw", &[], b"").await;
        }
        readers.push(raw);
        tokio::time::sleep(Duration::from_millis(20)).await;
        refused = server.get("/v1/kv?prefix=none").await;
    }
    assert!(refused.problem().detail.contains("has not taken"), "{:?}", refused.problem());
    assert!(metric(&server, "quorate_http_answers_bytes").await > 1.5e6, "one answer at least waits for its reader");
    assert_eq!(server.get("/v1/kv/big?raw").await.status, 429, "a long answer of a point read");
    assert_eq!(server.get("/v1/kv/none").await.status, 404, "short answers go on");
    let bulk = json!({"ops": [{"op": "upsert", "key": "k", "value": "x".repeat(100_000), "prev": true}]}).to_string();
    let refused = server.ask("POST", "/v1/bulk", &[JSON], bulk.as_bytes()).await.problem();
    assert!(refused.applied == Applied::No && refused.detail.contains("has not taken"), "{refused:?}");
    let long = "x".repeat(100_000);
    assert_eq!(server.put_json("/v1/kv/k", &format!("\"{long}\"")).await.status / 100, 2, "it shows no value");
    let mut taken = 0;
    for reader in &mut readers {
        for _ in 0..EACH {
            let answer = reader.response(false).await;
            assert!(answer.body == value || answer.status == 429, "{}", answer.status);
            taken += usize::from(answer.status == 200);
        }
    }
    assert!(taken >= 6, "{taken} answers came");
    until("what was taken still counts", async || server.get("/v1/kv?prefix=none").await.status == 200).await;
    assert_eq!(metric(&server, "quorate_http_answers_bytes").await, 0.0);
}

#[tokio::test]
async fn who_waits_in_vain_for_room_for_values_is_told_of_that_and_others_go_on() {
    const MOST: usize = 128;
    let server = server_with(|api| api.bounds.classes.point = 1_000).await;
    server.backend.hold("slow");
    let mut at_work = Vec::new();
    for _ in 0..MOST {
        at_work.push(begin(&server, "PUT", "/v1/kv/slow?prev", &[JSON], b"1").await);
    }
    until("the writes did not come", async || server.backend.asked() == MOST).await;
    let late = server.ask("PUT", "/v1/kv/k?prev", &[JSON, ("Request-Timeout", "200")], b"1").await.problem();
    assert_eq!((late.code, late.applied), (ErrorCode::Timeout, Applied::No));
    assert!(late.detail.contains("room for 1 values of its answer"), "{}", late.detail);
    assert!(late.detail.contains("128 of one account, and 512 of all. Send fewer of them"), "{}", late.detail);
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2, "it asks for no value");
    server.backend.release("slow");
    for mut write in at_work {
        assert_eq!(write.response(false).await.status / 100, 2);
    }
    assert_eq!(server.put_json("/v1/kv/k?prev", "2").await.status / 100, 2);
}

#[tokio::test]
async fn a_listing_whose_deadline_passes_while_it_waits_is_never_begun() {
    const AT_WORK: usize = 8;
    let server = Server::start().await;
    server.backend.hold_scans(true);
    let mut at_work = Vec::new();
    for _ in 0..AT_WORK {
        at_work.push(begin(&server, "GET", "/v1/kv?prefix=a&limit=1", &[], b"").await);
    }
    until("the listings did not come", async || server.backend.scans() == AT_WORK).await;
    let began = Instant::now();
    let late = server.ask("GET", "/v1/kv?prefix=a", &[("Request-Timeout", "200")], b"").await.problem();
    assert_eq!((late.code, late.applied), (ErrorCode::Timeout, Applied::No));
    assert!(began.elapsed() >= Duration::from_millis(200));
    // A dry run and a long body have places of their own.
    let bulk = json!({"dry_run": true, "ops": [{"op": "get", "key": "k"}]}).to_string();
    assert_ne!(server.ask("POST", "/v1/bulk", &[JSON], bulk.as_bytes()).await.status, 504);
    server.backend.hold_scans(false);
    for mut listing in at_work {
        assert_eq!(listing.response(false).await.status, 200);
    }
    assert_eq!(server.backend.scans(), AT_WORK, "it was begun for nobody");
}

#[tokio::test]
async fn a_body_is_waited_for_no_longer_than_the_request_may_take() {
    let server = Server::start().await;
    let began = Instant::now();
    let headers = [JSON, ("Content-Length", "100"), ("Request-Timeout", "200")];
    let mut raw = begin(&server, "PUT", "/v1/kv/k", &headers, b"{\"a\"").await;
    let problem = raw.response(false).await.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::Timeout, Applied::No));
    assert!(problem.detail.starts_with("the deadline passed while the body came: 4 bytes"), "{}", problem.detail);
    assert!(began.elapsed() >= Duration::from_millis(200) && began.elapsed() < PATIENCE / 4);
    assert_eq!(raw.closed().await, b"");
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn an_account_has_its_operations_a_second_and_health_is_free() {
    const RATE: u64 = 8;
    let limits = AccountLimits { ops_per_second: RATE, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let began = Instant::now();
    let session = server.ask("POST", "/v1/sessions", &[JSON], b"{}").await.json()["session"].clone();
    let mut refused = None;
    for _ in 0..100 {
        let response = server.put_json("/v1/kv/k", "1").await;
        if response.status == 429 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("100 writes in a moment, and 8 a second are allowed");
    too_many(&refused.problem(), "one account may take 8 operations a second");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let done = server.backend.asked() as f64;
    let most = RATE as f64 * (1.0 + began.elapsed().as_secs_f64()) + 1.0;
    assert!((RATE as f64..=most).contains(&done), "{done} were done in {:?}", began.elapsed());
    for path in ["/livez", "/readyz", "/metrics", "/v1/cluster/status", "/v1/cluster/members"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    // What hangs on a session must not go for what its account owes; nor does that count as a refusal.
    let renew = format!("/v1/sessions/{}/renew", session.as_str().expect("its id"));
    assert_eq!(server.ask("POST", &renew, &[JSON], b"{}").await.status, 200);
    assert_eq!(metric(&server, "quorate_http_account_refused_total{limit=\"ops\"}").await, 1.0);
    assert_eq!(metric(&server, "quorate_http_accounts").await, 1.0);
    // A find costs 16 operations, and is paid for by who comes next.
    until("there is no room again", async || {
        server.ask("POST", "/v1/find", &[JSON], br#"{"prefix":"a"}"#).await.status == 200
    })
    .await;
    let problem = put_in_a_moment(&server).await.problem();
    assert!(problem.retry_after_ms.is_some_and(|millis| millis > 500), "{problem:?}");
    tokio::time::sleep(Duration::from_millis(problem.retry_after_ms.expect("a time"))).await;
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2, "there is room when it was said");
}

/// A write whose refusal is not kept back for longer than the write may take.
async fn put_in_a_moment(server: &Server) -> Response {
    server.ask("PUT", "/v1/kv/k", &[JSON, ("Request-Timeout", "200")], b"1").await
}

#[tokio::test]
async fn an_account_pays_for_what_is_refused_after_much_work() {
    let limits = AccountLimits { ops_per_second: 100, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let limit = quorate_machine::limits::COMMAND_STEPS_MAX;
    server.backend.reject_writes(Rejection::TooDear(TooDear { limit, actual: 2 * limit }));
    assert_eq!(server.put_json("/v1/kv/k", "1").await.problem().code, ErrorCode::TooDear);
    let problem = put_in_a_moment(&server).await.problem();
    too_many(&problem, "one account may take 100 operations a second");
    // A thousand operations, of which a second's worth was there.
    assert!(problem.retry_after_ms.is_some_and(|millis| (8_000..10_500).contains(&millis)), "{problem:?}");
    assert_eq!(server.backend.asked(), 1);
}

#[tokio::test]
async fn an_account_pays_for_what_took_much_work() {
    let limits = AccountLimits { ops_per_second: 100, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    server.backend.be_dear();
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
    let problem = put_in_a_moment(&server).await.problem();
    too_many(&problem, "one account may take 100 operations a second");
    // It costs 256 operations, and the account had saved up a second's worth.
    assert!(problem.retry_after_ms.is_some_and(|millis| (1_000..2_700).contains(&millis)), "{problem:?}");
}

#[tokio::test]
async fn a_refusal_is_kept_back_so_that_asking_again_at_once_brings_nothing() {
    let limits = AccountLimits { ops_per_second: 4, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    while server.put_json("/v1/kv/k", "1").await.status / 100 == 2 {}
    let began = Instant::now();
    let refused = (0..5).map(async |_| server.put_json("/v1/kv/k", "1").await.status);
    for status in refused {
        let status = status.await;
        assert!(status == 429 || status == 200, "{status}");
    }
    // Two of them waited for an operation, of which there are four in a second.
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_account_pays_for_the_bytes_of_requests_and_answers() {
    const EACH: usize = 15_000;
    const READS: usize = 2;
    let limits = AccountLimits { bytes_per_second: 20_000, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let began = Instant::now();
    assert_eq!(server.ask("PUT", "/v1/kv/k", &[OCTETS], &[1; EACH]).await.status / 100, 2);
    let mut refused = 0;
    for _ in 0..READS {
        until("there is no room again", async || {
            let answer = server.get("/v1/kv/k?raw").await;
            if answer.status == 429 {
                too_many(&answer.problem(), "one account may take 20000 bytes a second");
                refused += 1;
            }
            answer.status == 200
        })
        .await;
    }
    // What came before the last of them has to be paid, but for what is there in the beginning.
    let paid = (READS * EACH) as f64 / 20_000.0 - 1.0;
    assert!(began.elapsed().as_secs_f64() >= paid, "{:?}, {paid} s are owed", began.elapsed());
    assert_eq!(metric(&server, "quorate_http_account_refused_total{limit=\"bytes\"}").await, f64::from(refused));
}

#[tokio::test]
async fn an_account_pays_for_the_lines_of_its_streams() {
    let limits = AccountLimits { ops_per_second: 10, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let lines: String =
        (0..50).map(|n| json!({"n": n, "op": {"op": "upsert", "key": "k", "value": n}}).to_string() + "\n").collect();
    let answer = server.ask("POST", "/v1/ops", &[("Content-Type", "application/x-ndjson")], lines.as_bytes());
    let began = Instant::now();
    let text = answer.await;
    assert_eq!(text.status, 200);
    assert!(began.elapsed() < PATIENCE / 4);
    let done = server.backend.asked();
    let most = 12 + (began.elapsed().as_secs_f64() * 10.0) as usize;
    assert!((9..=most).contains(&done), "{done} lines were executed in {:?}", began.elapsed());
    until("refusals are not counted", async || {
        metric(&server, "quorate_http_account_refused_total{limit=\"ops\"}").await == (50 - done) as f64
    })
    .await;
}

#[tokio::test]
async fn an_account_has_so_many_watches() {
    let limits = AccountLimits { watches_max: 2, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let watch = "/v1/watch?prefix=a";
    let mut open = Vec::new();
    for path in [watch, "/v1/elections/e/observe"] {
        let mut raw = begin(&server, "GET", path, &[], b"").await;
        assert_eq!(raw.response(true).await.status, 200);
        open.push(raw);
    }
    let problem = server.get(watch).await.problem();
    assert_eq!(problem.code, ErrorCode::TooManyRequests);
    assert_eq!(problem.detail, "one account may have 2 watches on this node");
    open.pop();
    until("a watch that ended still counts", async || {
        begin(&server, "GET", watch, &[], b"").await.response(true).await.status == 200
    })
    .await;
}

/// A request from this address that is not waited for.
async fn begin_from(server: &Server, from: u8, path: &str) -> Raw {
    send_from(server, from, "GET", path, &[], b"").await
}

pub async fn send_from(
    server: &Server,
    from: u8,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Raw {
    let mut raw = server.connect_from(from).await;
    raw.send_request(method, path, headers, body).await;
    raw
}

#[tokio::test]
async fn what_is_on_its_way_takes_no_place_of_its_class_and_one_caller_has_a_quarter_once_half_is_taken() {
    const ARRIVING: &str = "quorate_http_resource_taken{resource=\"arriving\"}";
    let server = server_with(|api| (api.bounds.classes.point, api.bounds.classes.arriving) = (1, 8)).await;
    let (one, other) = (2, 3);
    let half = async |from: u8| {
        let headers = [JSON, ("Content-Length", "2")];
        send_from(&server, from, "PUT", "/v1/kv/half", &headers, b"1").await
    };
    // Half, as long as nobody else has any.
    let mut coming = vec![half(one).await, half(one).await, half(one).await, half(one).await];
    until("they are not on their way", async || metric(&server, ARRIVING).await == 4.0).await;
    assert_eq!(metric(&server, "quorate_http_class_in_use{class=\"point\"}").await, 0.0);
    let share = "half of the 8 requests whose bodies this node waits for at once are on their way";
    let refused = half(one).await.response(false).await;
    too_many(&refused.problem(), share);
    assert_eq!(refused.header("connection"), Some("close"));
    // A quarter, whatever the first one has.
    coming.extend([half(other).await, half(other).await]);
    until("two more are not on their way", async || metric(&server, ARRIVING).await == 6.0).await;
    too_many(&half(other).await.response(false).await.problem(), share);
    // A body that comes at once needs no such place, also from an address that has its share.
    for from in [one, other] {
        let mut whole = send_from(&server, from, "PUT", "/v1/kv/whole", &[JSON], b"1").await;
        assert_eq!(whole.response(false).await.status / 100, 2, "{from}");
    }
    for raw in &mut coming {
        raw.send(b"1").await;
        assert_eq!(raw.response(false).await.status / 100, 2, "what was let in goes on");
    }
    let gone = half(one).await;
    until("one more is not on its way", async || metric(&server, ARRIVING).await == 1.0).await;
    drop(gone);
    until("the place of who left is not free", async || metric(&server, ARRIVING).await == 0.0).await;
    let refusals = "quorate_http_resource_share_refused_total{resource=\"arriving\"}";
    assert_eq!(metric(&server, refusals).await, 2.0);
}

#[tokio::test]
async fn the_bodies_of_one_caller_leave_room_to_others_and_small_ones_need_none() {
    const EACH: usize = 2 * 1024 * 1024;
    const MOST: usize = 16;
    // A quarter of it is as much as the largest body takes. One caller alone has half.
    let server = server_with(|api| api.bounds.bodies_bytes_max = 2 * MOST * EACH).await;
    let (one, other) = (2, 3);
    let (length, almost) = (EACH.to_string(), vec![b' '; EACH - 1]);
    let half = async || {
        let headers = [JSON, ("Content-Length", length.as_str())];
        send_from(&server, one, "POST", "/v1/ops", &headers, &almost).await
    };
    let mut coming = Vec::new();
    for _ in 0..MOST {
        coming.push(half().await);
    }
    let taken = "quorate_http_resource_taken{resource=\"bodies\"}";
    until("they do not count", async || metric(&server, taken).await == (MOST * (EACH - 1)) as f64).await;
    let refused = half().await.response(false).await;
    too_many(&refused.problem(), "half of the memory for bodies on this node is taken");
    let mut small = send_from(&server, one, "PUT", "/v1/kv/small", &[JSON], b"1").await;
    assert_eq!(small.response(false).await.status / 100, 2);
    let mut large = send_from(&server, other, "PUT", "/v1/kv/large", &[OCTETS], &vec![7; 1_000_000]).await;
    assert_eq!(large.response(false).await.status / 100, 2);
    drop(coming);
    until("there is no room again", async || metric(&server, taken).await == 0.0).await;
}

#[tokio::test]
async fn a_message_of_a_stream_counts_while_it_comes_and_has_to_come_in_time() {
    const PATH: &[u8] = b"/etcdserverpb.Lease/LeaseKeepAlive";
    let server = server_with(|api| {
        (api.body_timeout, api.body_rate_min) = (Duration::from_secs(5), 1 << 20);
    })
    .await;
    // `:method: POST`, `:scheme: http`, `:authority`, `:path`, `content-type`, by their numbers in the static table of HPACK.
    let block = [
        &[0x83u8, 0x86, 0x01, 4][..],
        b"test",
        &[0x04, PATH.len() as u8],
        PATH,
        &[0x0f, 0x10, 16],
        b"application/grpc",
    ]
    .concat();
    let half = [&[0u8][..], &60_000u32.to_be_bytes(), &[7; 50_000]].concat();
    let data: Vec<u8> = half.chunks(16_384).flat_map(|chunk| frame(DATA, 0, 1, chunk)).collect();
    let heads = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, &block)].concat();
    let mut raw = server.connect().await;
    raw.send(&[heads, data].concat()).await;
    let taken = "quorate_http_resource_taken{resource=\"bodies\"}";
    let arriving = "quorate_http_resource_taken{resource=\"arriving\"}";
    until("it does not count", async || metric(&server, taken).await == half.len() as f64).await;
    until("it is not on its way", async || metric(&server, arriving).await == 1.0).await;
    // All of the time that it has, with a second for each megabyte that came.
    pass(Duration::from_millis(5_100)).await;
    until("it is waited for", async || metric(&server, taken).await == 0.0).await;
    until("it is on its way", async || metric(&server, arriving).await == 0.0).await;
}

/// Over gRPC, where a call may wait for others for as long as its client does.
#[tokio::test]
async fn a_message_that_does_not_come_is_not_waited_for_and_takes_no_place() {
    const GRPC: (&str, &str) = ("Content-Type", "application/grpc");
    let server = server_with(|api| {
        (api.bounds.classes.coordination, api.request_timeout) = (1, Duration::from_millis(500));
    })
    .await;
    let mut heads = Vec::new();
    for path in ["/v3lockpb.Lock/Lock", "/v3electionpb.Election/Campaign", "/etcdserverpb.Lease/LeaseGrant"] {
        heads.push(begin(&server, "POST", path, &[GRPC, ("Content-Length", "100")], b"\0").await);
    }
    assert_eq!(server.get("/v1/locks/l").await.status, 200);
    for mut head in heads {
        let answer = head.response(true).await;
        // `Unavailable`: it may be sent again.
        assert_eq!((answer.status, answer.header("grpc-status")), (200, Some("14")));
    }
}

#[tokio::test]
async fn one_caller_has_a_quarter_of_a_class_once_half_of_it_is_taken_and_others_have_theirs() {
    const REFUSED: &str = "quorate_http_resource_share_refused_total{resource=\"point\"}";
    let server = server_with(|api| api.bounds.classes.point = 16).await;
    server.backend.hold("slow");
    let put = async |from: u8| send_from(&server, from, "PUT", "/v1/kv/slow", &[JSON], b"1").await;
    let [one, other] = [OTHER, 3];
    let mut at_work = Vec::new();
    // Half as long as nobody else asks; then others get theirs, and the first one no more.
    for (from, count) in [(one, 8), (other, 2)] {
        for _ in 0..count {
            at_work.push(put(from).await);
        }
        until("the writes did not come", async || server.backend.asked() == at_work.len()).await;
        let refused = put(from).await.response(false).await.problem();
        too_many(&refused, "half of the class `point` of this node is taken");
    }
    assert_eq!((metric(&server, REFUSED).await, server.backend.asked()), (2.0, 10));
    assert_eq!(metric(&server, "quorate_http_class_in_use{class=\"point\"}").await, 10.0);
    // An account that has its share of one class has nothing of another by that.
    let mut listing = begin_from(&server, one, "/v1/kv?prefix=a&limit=1").await;
    assert_eq!(listing.response(false).await.status, 200);
    server.backend.release("slow");
    for mut write in at_work {
        assert_eq!(write.response(false).await.status / 100, 2);
    }
    server.backend.hold("slow");
    let mut again = put(one).await;
    until("its share is not free again", async || server.backend.asked() == 11).await;
    server.backend.release("slow");
    assert_eq!(again.response(false).await.status / 100, 2);
}

/// They are applied one at a time, and each may take long.
#[tokio::test]
async fn of_scans_in_the_log_one_caller_has_one_of_each_kind_before_those_of_others() {
    const CHANGE: &str = "/v1/delete_where";
    const IN_USE: &str = "quorate_http_class_in_use{class=\"scan\"}";
    let server = Server::start().await;
    server.backend.hold("first");
    let mut sent = Vec::new();
    for (host, path, prefix) in [
        (2, CHANGE, "first"),
        (2, CHANGE, "second"),
        (2, CHANGE, "third"),
        (3, CHANGE, "of-another"),
        (2, "/v1/claim", "claimed"),
    ] {
        let body = json!({"prefix": prefix, "where": []}).to_string();
        sent.push(send_from(&server, host, "POST", path, &[JSON], body.as_bytes()).await);
        // It waits once it has charged what it costs.
        let cost = 16.0 * sent.len() as f64;
        until("it does not come", async || metric(&server, IN_USE).await == cost).await;
    }
    server.backend.release("first");
    for mut raw in sent {
        assert_eq!(raw.response(false).await.status, 200);
    }
    let prefix_of = |action: Action| match action {
        Action::Where(op) => op.prefix,
        Action::Claim(op) => op.prefix,
        other => panic!("nobody asked for {other:?}"),
    };
    let prefixes: Vec<_> = server.backend.commands().into_iter().map(|command| prefix_of(command.action)).collect();
    let prefixes: Vec<_> = prefixes.iter().map(|prefix| str::from_utf8(prefix).expect("text")).collect();
    assert_eq!(prefixes, ["first", "of-another", "claimed", "second", "third"]);
}

/// It waits for a place among listings, and those may take long.
#[tokio::test]
async fn a_dry_run_of_a_scan_keeps_nobody_from_the_log_nor_waits_for_who_is_in_it() {
    const AT_WORK: usize = 8;
    const IN_USE: &str = "quorate_http_class_in_use{class=\"scan\"}";
    const PATHS: [&str; 2] = ["/v1/claim", "/v1/delete_where"];
    let server = Server::start().await;
    let send = async |host: u8, path: &str, body: serde_json::Value| {
        send_from(&server, host, "POST", path, &[JSON], body.to_string().as_bytes()).await
    };
    let dry_run = || json!({"prefix": "", "where": [], "dry_run": true});
    server.backend.hold_scans(true);
    let mut at_work = Vec::new();
    for _ in 0..AT_WORK {
        at_work.push(begin(&server, "GET", "/v1/kv?prefix=a&limit=1", &[], b"").await);
    }
    until("the listings did not come", async || server.backend.scans() == AT_WORK).await;
    let mut cost = metric(&server, IN_USE).await;
    for path in PATHS {
        at_work.push(send(2, path, dry_run()).await);
        cost += 16.0;
        until("the dry run does not come", async || metric(&server, IN_USE).await == cost).await;
        let mut raw = send(3, path, json!({"prefix": "", "where": []})).await;
        assert_eq!(raw.response(false).await.status, 200, "{path} beside a dry run that waits");
    }
    server.backend.hold_scans(false);
    for mut raw in at_work {
        assert_eq!(raw.response(false).await.status, 200);
    }

    server.backend.hold("first");
    let mut first = send(2, "/v1/delete_where", json!({"prefix": "first", "where": []})).await;
    until("the command did not come", async || server.backend.asked() == 3).await;
    for path in PATHS {
        assert_eq!(send(2, path, dry_run()).await.response(false).await.status, 200, "a dry run of {path}");
    }
    server.backend.release("first");
    assert_eq!(first.response(false).await.status, 200);
}

#[tokio::test]
async fn one_caller_alone_has_half_of_the_watches_and_a_quarter_once_others_have_some() {
    let server = server_with(|api| api.bounds.watches_max = 8).await;
    let [one, other, third] = [2, 3, 4];
    let paths = [WATCH, OBSERVE];
    let mut open = Vec::new();
    for (from, path) in [one, one, other, third].into_iter().flat_map(|from| paths.map(|path| (from, path))) {
        if from != one {
            let problem = begin_from(&server, one, path).await.response(false).await.problem();
            let share = "half of the 8 watches of this node are taken, and this caller has as many of them as one may have then, 2";
            assert_eq!((problem.code, &*problem.detail), (ErrorCode::TooManyRequests, share));
        }
        let mut raw = begin_from(&server, from, path).await;
        assert_eq!(raw.response(true).await.status, 200, "{path}");
        open.push(raw);
    }
    // It had four, and gets a second one again.
    drop(open.drain(..3));
    until("watches that ended still count", async || {
        begin_from(&server, one, paths[0]).await.response(true).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn the_last_streams_beyond_a_share_end_once_others_do_not_find_theirs() {
    const PATHS: [&str; 2] = ["/v1/watch?prefix=a&heartbeat_ms=500", "/v1/elections/e/observe?heartbeat_ms=500"];
    const TAKEN: &str = "quorate_http_resource_taken{resource=\"watches\"}";
    let server = server_with(|api| api.bounds.watches_max = 8).await;
    let open = async |host: u8, path: &str| {
        let mut raw = begin_from(&server, host, path).await;
        assert_eq!(raw.response(true).await.status, 200, "{path}");
        raw
    };
    let (mut of_first, mut of_others) = (Vec::new(), Vec::new());
    for path in PATHS.repeat(2) {
        of_first.push(open(2, path).await);
    }
    for host in [3, 4] {
        for path in PATHS {
            of_others.push(open(host, path).await);
        }
    }
    // Each stream looks when it has been silent for so long.
    pass(Duration::from_millis(500)).await;
    for mut ended in of_first.split_off(2) {
        let text = String::from_utf8(ended.until(b"0\r\n\r\n").await).expect("text");
        assert!(text.contains("event: end\ndata: {\"code\":\"too_many_requests\","), "{text}");
        assert!(text.contains("\"revision\":"), "it can go on elsewhere: {text}");
    }
    assert_eq!(metric(&server, TAKEN).await, 6.0);
    for path in PATHS {
        of_others.push(open(5, path).await);
    }
    // Each of them looks twice.
    for _ in 0..2 {
        pass(Duration::from_millis(500)).await;
    }
    assert_eq!(metric(&server, TAKEN).await, 8.0, "who has no more than a share keeps it");
    assert_eq!(metric(&server, "quorate_watch_ends_total{code=\"too_many_requests\"}").await, 1.0);
    assert_eq!(server.put_json("/v1/kv/a", "1").await.status / 100, 2);
    of_first[0].until(b"event: put").await;
}

#[tokio::test]
async fn an_observer_of_etcd_that_has_to_make_room_hears_that_there_is_too_much() {
    const EXHAUSTED: &[u8] = br#"{"error":{"error":"etcdserver: too many requests","code":8,"#;
    let server = server_with(|api| api.bounds.watches_max = 8).await;
    let observe = async || send_from(&server, 2, "POST", "/v3/election/observe", &[JSON], br#"{"name":"ZQ=="}"#).await;
    let mut open = Vec::new();
    let mut watch = async |host: u8| {
        let mut raw = begin_from(&server, host, WATCH).await;
        assert_eq!(raw.response(true).await.status, 200);
        open.push(raw);
    };
    for host in [2, 2, 2] {
        watch(host).await;
    }
    let mut last = observe().await;
    let taken = "quorate_http_resource_taken{resource=\"watches\"}";
    until("it does not observe", async || metric(&server, taken).await == 4.0).await;
    observe().await.until(EXHAUSTED).await;
    for host in [3, 3, 4, 4] {
        watch(host).await;
    }
    pass(Duration::from_millis(quorate_node_core::limits::WATCH_LOOK_MS)).await;
    last.until(EXHAUSTED).await;
}

#[tokio::test]
async fn one_caller_alone_has_half_of_the_places_of_those_who_wait_and_others_have_a_quarter() {
    let server = server_with(|api| api.bounds.classes.waiting = 8).await;
    let [one, other, third] = [2, 3, 4];
    let in_use = "quorate_http_class_in_use{class=\"waiting\"}";
    let mut waiting = Vec::new();
    for from in [one, one, one, one, other, other, third, third] {
        waiting.push(begin_from(&server, from, WAIT).await);
        until("it does not wait", async || metric(&server, in_use).await == waiting.len() as f64).await;
        let has_share = match waiting.len() {
            4 => Some(one),
            6 => Some(other),
            _ => None,
        };
        if let Some(from) = has_share {
            let refused = begin_from(&server, from, WAIT).await.response(false).await;
            too_many(&refused.problem(), "class `waiting`");
        }
    }
    assert_eq!(server.put_json("/v1/kv/k", "1").await.status / 100, 2);
    for mut raw in waiting {
        assert_eq!(raw.response(false).await.status, 200, "woken by the write");
    }
}

/// How a client leaves something that lasts.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    Closes,
    Resets,
    EndsSending,
    ClosesBehindAnother,
}

/// Leaves so; gives a connection that stays.
async fn leave(mut raw: Raw, how: Leaving) -> Option<Raw> {
    match how {
        Leaving::Closes => None,
        Leaving::Resets => {
            raw.reset();
            None
        }
        Leaving::EndsSending => {
            raw.end_sending().await;
            Some(raw)
        }
        Leaving::ClosesBehindAnother => {
            raw.send_request("GET", "/livez", &[], b"").await;
            None
        }
    }
}

const WATCH: &str = "/v1/watch?prefix=a";
const OBSERVE: &str = "/v1/elections/e/observe";
const WAIT: &str = "/v1/kv/k?if_none_match=0&wait_ms=60000";

/// A stream or a wait, the last byte of the address that it comes from, and its connection.
type Lasting = (&'static str, u8, Raw);

fn count(held: &[Lasting], is_it: impl Fn(&str, u8) -> bool) -> usize {
    held.iter().filter(|one| is_it(one.0, one.1)).count()
}

/// Tells whether these take places, and nothing else does. Asked on a connection that stays.
async fn is_all_that_is_taken(raw: &mut Raw, held: &[Lasting]) -> bool {
    let waits = count(held, |kind, _| kind == WAIT);
    let answer: NodeCallersAnswer = read(&raw.ask("GET", "/v1/node/callers", &[], b"").await);
    let taken = |kind: NodeResourceKind| {
        answer.resources.iter().find(|resource| resource.resource == kind).expect("each kind is there").taken
    };
    let both = [taken(NodeResourceKind::Waits), taken(NodeResourceKind::Watches)];
    both == [waits, held.len() - waits].map(|count| count as u64)
}

/// Tells whether these take places in the class of those who wait, and nothing else does. Only metrics tell of it, whose text takes a while.
async fn is_all_that_waits(server: &Server, held: &[Lasting]) -> bool {
    let waits = count(held, |kind, _| kind == WAIT);
    metric(server, "quorate_http_class_in_use{class=\"waiting\"}").await == waits as f64
}

/// Streams and waits of several callers, drawn from a seed: nobody gets more than the share of one once half of the places are taken, however
/// long others stay, and a place is free again however its client leaves.
#[tokio::test]
async fn what_lasts_is_shared_among_callers_and_given_back_however_they_leave() {
    const PLACES: usize = 8;
    const STEPS: usize = 360;
    // The class is looked at after so many.
    const STEPS_OF_CLASS: usize = 12;
    const OF_ONE: usize = PLACES / 4;
    const KINDS: [&str; 3] = [WATCH, OBSERVE, WAIT];
    const NOW: [Leaving; 3] = [Leaving::Closes, Leaving::Resets, Leaving::EndsSending];
    let server = server_with(|api| (api.bounds.watches_max, api.bounds.classes.waiting) = (PLACES, PLACES)).await;
    let mut dice = StdRng::seed_from_u64(49);
    let (mut held, mut stay) = (Vec::<Lasting>::new(), Vec::<Raw>::new());
    let mut told = server.connect().await;
    let mut met = BTreeMap::<(&str, String), usize>::new();
    for step in 0..STEPS {
        if !held.is_empty() && dice.random_range(0..10) < 3 {
            let (kind, _, raw) = held.swap_remove(dice.random_range(0..held.len()));
            let how = NOW[dice.random_range(0..NOW.len())];
            stay.extend(leave(raw, how).await);
            *met.entry((kind, format!("{how:?}"))).or_default() += 1;
        } else {
            let (kind, caller) = (KINDS[dice.random_range(0..KINDS.len())], dice.random_range(2..12_u8));
            let is_same = |other: &str| (other == WAIT) == (kind == WAIT);
            let own = count(&held, |other, by| by == caller && is_same(other));
            let of_all = count(&held, |other, _| is_same(other));
            let has_share = own >= OF_ONE && of_all >= PLACES / 2;
            let is_full = kind != OBSERVE && count(&held, |other, _| other == kind) >= PLACES;
            let is_beyond = |(_, by, _): &Lasting| count(&held, |other, of| of == *by && other != WAIT) > OF_ONE;
            // Not here: streams of those who have more than their share end once others do not find theirs.
            if kind != WAIT && of_all >= PLACES - OF_ONE && held.iter().any(is_beyond) {
                continue;
            }
            let mut raw = begin_from(&server, caller, kind).await;
            let what = if is_full || has_share {
                let refused = raw.response(false).await.problem();
                assert_eq!(refused.code, ErrorCode::TooManyRequests, "step {step}, {kind}: {refused:?}");
                if has_share { "share" } else { "full" }
            } else {
                if kind != WAIT {
                    assert_eq!(raw.response(true).await.status, 200, "step {step}, {kind}");
                }
                held.push((kind, caller, raw));
                "in"
            };
            *met.entry((kind, what.to_owned())).or_default() += 1;
        }
        until(&format!("step {step}: others are counted than those who are there"), async || {
            is_all_that_is_taken(&mut told, &held).await
                && (step % STEPS_OF_CLASS != 0 || is_all_that_waits(&server, &held).await)
        })
        .await;
    }
    println!("{met:?}");
    for kind in KINDS {
        for what in ["in", "share", "Closes", "Resets", "EndsSending"] {
            assert!(met.contains_key(&(kind, what.to_owned())), "{kind} never met {what}");
        }
    }
    assert!(met.contains_key(&(WAIT, "full".to_owned())), "the places were never all taken");
    let all = [Leaving::Closes, Leaving::Resets, Leaving::EndsSending, Leaving::ClosesBehindAnother];
    for (number, (.., raw)) in held.drain(..).enumerate() {
        stay.extend(leave(raw, all[number % all.len()]).await);
    }
    until("places of those who are gone are taken", async || {
        is_all_that_is_taken(&mut told, &[]).await && is_all_that_waits(&server, &[]).await
    })
    .await;
}

#[tokio::test]
async fn a_page_of_an_audit_trail_costs_as_much_as_a_find() {
    // A find and a little come to half of it, which one caller may have.
    let server = server_with(|api| api.bounds.classes.scan = 34).await;
    server.backend.hold_scans(true);
    let mut listing = begin(&server, "GET", "/v1/kv?prefix=a&limit=10", &[], b"").await;
    until("the listing did not come", async || server.backend.scans() == 1).await;
    let trail = "/v1/audit?key=k&limit=1";
    assert_eq!(server.get(trail).await.status, 200, "16 and 1 fit");
    let mut second = begin(&server, "GET", "/v1/kv?prefix=a&limit=10", &[], b"").await;
    until("the listing did not come", async || server.backend.scans() == 2).await;
    too_many(&server.get(trail).await.problem(), "half of the class `scan` of this node is taken");
    let find = server.ask("POST", "/v1/find", &[JSON], br#"{"prefix":"a","limit":1}"#).await;
    too_many(&find.problem(), "half of the class `scan` of this node is taken");
    server.backend.hold_scans(false);
    assert_eq!((listing.response(false).await.status, second.response(false).await.status), (200, 200));
    assert_eq!(server.get(trail).await.status, 200);
}

#[tokio::test]
async fn an_account_has_so_many_connections() {
    let limits = AccountLimits { connections_max: 2, ..AccountLimits::default() };
    let server = server_with(|api| api.bounds.accounts = limits).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut raw = begin(&server, "GET", "/livez", &[], b"").await;
        assert_eq!(raw.response(false).await.status, 200);
        open.push(raw);
    }
    let refused = server.connect().await.response(false).await;
    assert_eq!((refused.status, refused.header("connection")), (429, Some("close")));
    let told: Problem = serde_json::from_slice(&refused.body).expect("a problem document");
    assert_eq!(told.detail, "one account may have 2 connections on this node");
    open.pop();
    until("a connection that ended still counts", async || {
        let mut raw = begin(&server, "GET", "/livez", &[], b"").await;
        raw.try_response(false).await.is_some_and(|response| response.status == 200)
    })
    .await;
}
