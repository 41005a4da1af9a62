//! Accounts that took more than their share of the processors: their requests that wait until they have paid, the places that those hold meanwhile,
//! and the requests that never wait.
//!
//! The share of an account is fixed here, and a test says how much it took. A debt lasts a second at most: a test stands at the front of a line of the
//! account, and those behind it wait until it has seen something, however long that takes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quorate_api::{AcquireAnswer, Applied, BulkAnswer, ErrorCode, Retry};
use quorate_machine::types::{ContentKind, Value};
use quorate_node_core::connection::door::Door;
use quorate_node_core::gateway::admission::accounts::Account;
use quorate_node_core::gateway::admission::paced::READ_WAIT_MAX;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::admission::turns::{Begun, Lanes, Turn};
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::limits;
use quorate_node_port::{ServeSettings, serve};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bulk::{ID, LINES, inserts};
use crate::coordination::session;
use crate::limits::{metric, send_from};
use crate::raw::{JSON, Raw, Server, api_settings, post, read, serve_settings, until};

/// The one that owes, at 127.0.0.2.
const GREEDY: u8 = 2;
/// Others ask from 127.0.0.1.
const OTHER: u8 = 1;

/// The time of ten processors, for each account: only what a test spends makes anybody owe.
const SHARE: Duration = Duration::from_millis(100);

/// Longer than any test waits for an answer.
const LONG: (&str, &str) = ("Request-Timeout", "60000");

const LISTING: &str = "/v1/kv?prefix=a";
const CLAIM: &str = "/v1/claim";
const JOBS: &[u8] = br#"{"prefix":"jobs/"}"#;

fn account(last: u8) -> Account {
    Account::Neighbour(IpAddr::from([127, 0, 0, last]).into())
}

/// A server on which an account may owe.
struct Late {
    server: Server,
    /// The turns of the account at [`GREEDY`], and its share of the processors.
    lanes: Arc<Lanes>,
}

impl Late {
    async fn start() -> Self {
        Self::start_with(api_settings()).await
    }

    async fn start_with(api: ApiSettings) -> Self {
        let server = Server::start_with(api, serve_settings()).await;
        let turns = &server.api.admission.turns;
        turns.pace.fix(Some(SHARE));
        let lanes = turns.lanes(account(GREEDY));
        Self { server, lanes }
    }

    /// A request of the account that is not waited for.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Raw {
        send_from(&self.server, GREEDY, method, path, headers, body).await
    }

    /// Has the account owe for as long as one may, a second.
    fn owe(&self) {
        self.lanes.share.spend(100 * SHARE);
    }

    /// The front of the line of its requests that wait until it has paid.
    async fn front(&self) -> OwnedSemaphorePermit {
        taken(&self.lanes.share.first_request).await
    }

    fn held_up(&self) -> usize {
        self.server.api.admission.turns.pace.held_up.load(Ordering::Relaxed)
    }

    /// Waits until `count` connections, requests and reads are held up. The account owes all the while.
    async fn until_held_up(&self, count: usize) {
        until("not enough is held up", async || {
            self.owe();
            self.held_up() >= count
        })
        .await;
    }

    /// Waits until `count` requests wait for a turn of this kind.
    async fn until_waiting(&self, class: &str, count: usize) {
        let name = format!("quorate_http_turns_waiting{{class=\"{class}\"}}");
        until("not enough wait for a turn", async || metric(&self.server, &name).await == count as f64).await;
    }

    async fn until_asked(&self, commands: usize) {
        until("the command does not come", async || self.server.backend.asked() == commands).await;
    }
}

async fn taken(place: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(place).acquire_owned().await.expect("it is never closed")
}

fn now(begun: Begun) -> Turn {
    match begun {
        Begun::Now(Some(turn)) => turn,
        other => panic!("it has to wait: {other:?}"),
    }
}

/// Each leaves its own line in front of the log before it waits for its turn again, or those that have the turns would wait for it there.
#[tokio::test]
async fn claims_of_whoever_owes_are_answered_beside_a_scan_of_another_account() {
    const CLAIMS: usize = 40;
    let mut api = api_settings();
    (api.bounds.classes.scan, api.bounds.classes.waiting) = (limits::SCAN_COST_MAX, 4 * CLAIMS);
    let late = Late::start_with(api).await;
    let server = &late.server;
    server.backend.hold_scans(true);
    let mut listing = send_from(server, OTHER, "GET", LISTING, &[LONG], b"").await;
    until("the listing does not come", async || server.backend.scans() == 1).await;
    let in_log = server.api.admission.log_scans.acquire().await.expect("it is never closed");
    let mut claims = Vec::new();
    for _ in 0..CLAIMS {
        claims.push(late.send("POST", CLAIM, &[JSON, LONG], JOBS).await);
    }
    // The listing has one turn, and claims have the others. One claim waits for the log, the others wait behind it.
    late.until_waiting("scan", CLAIMS + 1 - limits::SCAN_TURNS).await;
    let front = late.front().await;
    late.owe();
    drop(in_log);
    late.until_held_up(1).await;
    drop(front);
    for mut claim in claims {
        assert_eq!(claim.response(false).await.status, 200);
    }
    server.backend.hold_scans(false);
    assert_eq!(listing.response(false).await.status, 200);
}

#[tokio::test]
async fn a_scan_gives_its_place_back_once_for_what_others_of_its_account_took() {
    let late = Late::start().await;
    let server = &late.server;
    let scans = &server.api.admission.scans;
    let _others = scans.acquire_many(limits::SCANS_MAX as u32 - 1).await.expect("it is never closed");
    let place = scans.acquire().await.expect("it is never closed");
    // Each waits for the place from then on.
    let mut own = late.send("GET", LISTING, &[LONG], b"").await;
    until("the first listing does not come", async || server.backend.barriers().len() == 1).await;
    let mut other = send_from(server, OTHER, "GET", LISTING, &[LONG], b"").await;
    until("the second listing does not come", async || server.backend.barriers().len() == 2).await;
    let front = late.front().await;
    late.owe();
    drop(place);
    late.until_held_up(1).await;
    assert_eq!(other.response(false).await.status, 200, "it came later, and goes first");

    let place = scans.acquire().await.expect("it is never closed");
    drop(front);
    until("the account does not pay", async || late.held_up() == 0).await;
    let _front = late.front().await;
    late.owe();
    drop(place);
    assert_eq!(own.response(false).await.status, 200, "it keeps the place, however much was taken since");
}

#[tokio::test]
async fn a_bulk_of_whoever_owes_waits_between_its_parts_and_holds_nothing_meanwhile() {
    const WRITES: usize = 2_500;
    let late = Late::start().await;
    let server = &late.server;
    server.backend.hold("k/0");
    let mut bulk = late.send("POST", "/v1/bulk", &[LINES, LONG], inserts(WRITES).as_bytes()).await;
    late.until_asked(1).await;
    let answers = server.api.admission.answers.share(account(GREEDY));
    let has_room = || answers.try_values(limits::ASKED_VALUES_OF_ACCOUNT_MAX).is_some();
    assert!(!has_room(), "each write may be refused with the entry as it is");
    let front = late.front().await;
    late.owe();
    server.backend.release("k/0");
    late.until_held_up(1).await;
    assert!(has_room());

    // It has given its turns back. Others take all turns, most of them in the name of its own account.
    let other = server.api.admission.turns.lanes(account(OTHER));
    let of_other = (now(other.begin(RequestClass::Point)), now(other.begin_large()));
    let points: Vec<_> = (1..limits::POINT_TURNS).map(|_| now(late.lanes.begin(RequestClass::Point))).collect();
    let large: Vec<_> = (1..limits::LARGE_TURNS).map(|_| now(late.lanes.begin_large())).collect();
    drop(front);
    late.until_waiting("point", 1).await;
    drop(points);
    late.until_waiting("large", 1).await;
    assert_eq!(server.backend.asked(), 1, "its account has its share at work");

    // It keeps both turns once it goes on.
    server.backend.hold("k/1024");
    drop(large);
    late.until_asked(2).await;
    let points: Vec<_> = (2..limits::POINT_TURNS).map(|_| now(late.lanes.begin(RequestClass::Point))).collect();
    let large: Vec<_> = (2..limits::LARGE_TURNS).map(|_| now(late.lanes.begin_large())).collect();
    assert!(matches!(late.lanes.begin(RequestClass::Point), Begun::Later(_)));
    assert!(matches!(late.lanes.begin_large(), Begun::Later(_)));
    drop((points, large, of_other));
    server.backend.release("k/1024");
    let answer: BulkAnswer = read(&bulk.response(false).await);
    assert_eq!((answer.applied, server.backend.asked()), (WRITES as u64, 3));
}

#[tokio::test]
async fn a_bulk_whose_deadline_ends_while_its_account_owes_tells_what_was_decided() {
    const WRITES: usize = 1_030;
    let late = Late::start().await;
    let server = &late.server;
    server.backend.hold("k/0");
    let lines = inserts(WRITES);
    let soon = ("Request-Timeout", "1000");
    let mut bulk = late.send("POST", "/v1/bulk", &[LINES, ID, soon], lines.as_bytes()).await;
    late.until_asked(1).await;
    let front = late.front().await;
    late.owe();
    server.backend.release("k/0");
    let problem = bulk.response(false).await.problem();
    assert_eq!(
        (problem.code, problem.applied, problem.retry),
        (ErrorCode::Timeout, Applied::Unknown, Retry::SameRequestId)
    );
    assert!(problem.detail.contains("more than its share of this node"), "{}", problem.detail);
    assert!(problem.detail.contains("1024 of the 1030 operations"), "{}", problem.detail);
    assert_eq!(server.backend.asked(), 1);
    drop(front);
    let answer: BulkAnswer = read(&server.ask("POST", "/v1/bulk", &[LINES, ID], lines.as_bytes()).await);
    assert_eq!((answer.applied, answer.replayed), (WRITES as u64, false), "the second part was decided only now");
}

fn seed_long_text(server: &Server, key: &str) {
    // Two of them are more than one read gives.
    let text = format!("\"{}\"", "x".repeat(40_000));
    server.backend.seed(key, Value { kind: ContentKind::Json, data: text.into() });
}

#[tokio::test]
async fn watches_read_on_one_by_one_though_their_account_always_owes() {
    const WATCHES: usize = limits::WATCH_READS_MAX;
    let late = Late::start().await;
    let server = &late.server;
    ["a/1", "a/2"].into_iter().for_each(|key| seed_long_text(server, key));
    server.backend.hold_scans(true);
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push(late.send("GET", "/v1/watch?prefix=a/&initial=true", &[], b"").await);
    }
    until("the first reads do not come", async || server.backend.scans() == WATCHES).await;
    let front = taken(&late.lanes.share.first_read).await;
    late.owe();
    server.backend.hold_scans(false);
    late.until_held_up(WATCHES).await;
    assert_eq!(server.backend.scans(), WATCHES, "each has read once");
    let begun = Instant::now();
    drop(front);
    until("they do not read on", async || {
        late.owe();
        server.backend.scans() == 2 * WATCHES
    })
    .await;
    let took = begun.elapsed();
    assert!(took >= READ_WAIT_MAX * WATCHES as u32, "they came together, after {took:?}");
    for mut watch in watches {
        watch.until(b"event: synced").await;
    }
}

#[tokio::test]
async fn a_read_of_a_watch_is_charged_to_its_account() {
    const TAKES: Duration = Duration::from_millis(300);
    let late = Late::start().await;
    let server = &late.server;
    seed_long_text(server, "a/1");
    // The process does here what it does only once.
    assert_eq!(server.get(LISTING).await.status, 200);
    server.backend.have_scans_take(TAKES);
    // Half a processor: 300 ms come back in 600, and the steps of a connection in next to nothing.
    server.api.admission.turns.pace.fix(Some(SHARE / 20));
    let mut watch = late.send("GET", "/v1/watch?prefix=a/&initial=true", &[], b"").await;
    watch.until(b"event: synced").await;
    assert!(late.lanes.share.owes(Instant::now() + TAKES / 6), "the read took {TAKES:?}");
}

#[tokio::test]
async fn what_keeps_sessions_alive_and_sets_others_free_waits_for_nothing_that_its_account_owes() {
    let late = Late::start().await;
    let server = &late.server;
    let id = session(server, 1_000_000).await;
    let lock: AcquireAnswer = read(&post(server, "/v1/locks/l/acquire", json!({"session": id})).await);
    let release = json!({"token": lock.token.expect("it holds it").to_string()}).to_string();
    let front = late.front().await;
    late.owe();
    let mut write = late.send("PUT", "/v1/kv/k", &[JSON, LONG], b"1").await;
    late.until_held_up(1).await;
    let renew = format!("/v1/sessions/{id}/renew");
    type Asked<'r> = (&'r str, &'r [(&'r str, &'r str)], &'r str);
    let requests: [Asked<'_>; 2] = [(&renew, &[], ""), ("/v1/locks/l/release", &[JSON], &release)];
    for (path, headers, body) in requests {
        late.owe();
        let answer = late.send("POST", path, headers, body.as_bytes()).await.response(false).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(late.held_up(), 1, "the write waits");
    drop(front);
    assert_eq!(write.response(false).await.status, 201);
}

/// Serves the same node at a port for administration, too.
async fn admin_port(server: &Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let settings = ServeSettings { door: Door::Admin, ..serve_settings() };
    tokio::spawn(serve(listener, None, Arc::clone(&server.api), settings, server.stop.clone()));
    address
}

#[tokio::test]
async fn what_operators_ask_at_their_port_waits_for_nothing_that_their_account_owes() {
    const COMPACTION: (&str, &str, &[u8]) = ("POST", "/v3/kv/compaction", br#"{"revision":"1"}"#);
    let (method, path, body) = COMPACTION;
    let late = Late::start().await;
    let admin = admin_port(&late.server).await;
    let front = late.front().await;
    late.owe();
    let mut waits = late.send(method, path, &[JSON, LONG], body).await;
    late.until_held_up(1).await;
    late.owe();
    let answer = Raw::connect_from(GREEDY, admin).await.ask(method, path, &[JSON], body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(late.held_up(), 1, "at the port of clients it waits");
    drop(front);
    assert_eq!(waits.response(false).await.status, 200);
}

#[tokio::test]
async fn a_claim_that_is_known_to_be_dear_takes_no_place_of_searches_in_the_log() {
    let server = Server::start().await;
    let free = || server.api.admission.log_scans.available_permits();
    let until_asked = async |commands: usize| {
        until("the claim does not come", async || server.backend.asked() == commands).await;
    };
    server.backend.hold("jobs/");
    let mut plain = send_from(&server, GREEDY, "POST", CLAIM, &[JSON, LONG], JOBS).await;
    until_asked(1).await;
    assert_eq!(free(), limits::LOG_SCANS_MAX - 1);
    server.backend.be_dear();
    let mut dear = send_from(&server, OTHER, "POST", CLAIM, &[JSON, LONG], JOBS).await;
    until_asked(2).await;
    server.backend.release("jobs/");
    for claim in [&mut plain, &mut dear] {
        assert_eq!(claim.response(false).await.status, 200);
    }
    server.backend.hold("jobs/");
    let mut dear = send_from(&server, OTHER, "POST", CLAIM, &[JSON, LONG], JOBS).await;
    until_asked(3).await;
    assert_eq!(free(), limits::LOG_SCANS_MAX);
    server.backend.release("jobs/");
    assert_eq!(dear.response(false).await.status, 200);
}
