//! Authentication and permissions: who is let in, and to what.

use std::sync::Arc;
use std::time::Duration;

use quorate_api::{Applied, ErrorCode, NodeCaller, NodeCallerKind, NodeCallersAnswer, NodeResourceKind, Retry};
use quorate_machine::access::{Grant, Permission};
use quorate_machine::types::{
    AccessOp, Action, ContentKind, NewToken, Outcome, RoleName, SessionOp, SessionReply, UserName, Value, WallMillis,
};
use quorate_node_core::backend::AppError;
use quorate_node_core::gateway::api::ApiSettings;
use quorate_node_core::gateway::auth::audit::AuditFile;
use quorate_node_core::gateway::auth::authenticator::AuthSettings;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::root::RootToken;
use quorate_node_core::token_text::TokenText;
use quorate_node_http::all_routes;
use quorate_node_port::ServeSettings;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::raw::{JSON, Raw, Response, Server, api_settings, pass, serve_settings, until};

const ROOT: &str = "0123456789abcdef0123456789abcdef";

/// A server that asks who asks, with a user `app` who has `orders/`, and `nobody` who has nothing.
struct Guarded {
    server: Server,
    dir: TempDir,
    app: String,
    nobody: String,
    /// A session of `app`.
    own: String,
    /// A session of somebody else.
    foreign: String,
}

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a name")
}

fn role(name: &str) -> RoleName {
    RoleName::new(name).expect("a name")
}

/// A token of a user with this text.
fn token_of(name: &str, token: &TokenText, expires_at: Option<WallMillis>) -> AccessOp {
    let (id, user, hash) = (token.id, user(name), token.hash());
    AccessOp::AddToken(NewToken { id, user, hash, expires_at, note: String::new() })
}

impl Guarded {
    async fn start() -> Self {
        Self::start_with(serve_settings()).await
    }

    async fn start_with(serve: ServeSettings) -> Self {
        Self::start_as(api_settings(), serve).await
    }

    async fn start_as(api: ApiSettings, serve: ServeSettings) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("root");
        write_root(&file, &format!("{ROOT}\n"));
        let root = Some(RootToken::open(&file).expect("a token"));
        let audit = Some(AuditFile::open(&dir.path().join("audit")).expect("a file"));
        let auth = AuthSettings::Guarded { root, jwt: None };
        let server = Server::start_with(ApiSettings { auth, audit, ..api }, serve).await;
        let text = String::new;
        let mut guarded = Self { server, dir, app: text(), nobody: text(), own: text(), foreign: text() };
        guarded.app = guarded.user("app", &[Permission::Write, Permission::Lock]);
        guarded.nobody = guarded.user("nobody", &[]);
        (guarded.own, guarded.foreign) = (guarded.session("app"), guarded.session("other"));
        guarded
    }

    /// Changes users, roles and tokens, as if asked elsewhere.
    fn set(&self, op: AccessOp) {
        let reply = self.server.backend.act(Action::Access(op));
        assert!(matches!(reply.outcome, Outcome::Access(_)), "{reply:?}");
    }

    /// Gives a role these permissions, each on names with this prefix.
    fn grant(&self, name: &str, permissions: &[Permission], prefix: &str) {
        let grant = |permission: &Permission| Grant { permission: *permission, prefix: prefix.into() };
        self.set(AccessOp::SetRole { name: role(name), grants: permissions.iter().map(grant).collect() });
    }

    /// Takes all roles from a user.
    fn take_roles(&self, name: &str) {
        self.set(AccessOp::SetUser { name: user(name), roles: Vec::new() });
    }

    /// A user with these permissions on `orders/`; gives a token.
    fn user(&self, name: &str, permissions: &[Permission]) -> String {
        let token = TokenText::make();
        self.grant(name, permissions, "orders/");
        self.set(AccessOp::SetUser { name: user(name), roles: vec![role(name)] });
        self.set(token_of(name, &token, None));
        token.reveal()
    }

    /// A session of a principal.
    fn session(&self, principal: &str) -> String {
        let op = SessionOp::Create { ttl_ms: 3_000, owner: String::new(), labels: Vec::new() };
        match self.server.backend.act_as(principal, Action::Session(op)).outcome {
            Outcome::Session(SessionReply::Created { id, .. }) => id.to_string(),
            other => panic!("no session: {other:?}"),
        }
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> Response {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![JSON];
        if !token.is_empty() {
            headers.push(("Authorization", bearer.as_str()));
        }
        let headers = if body.is_empty() { &headers[1..] } else { &headers[..] };
        self.server.ask(method, path, headers, body.as_bytes()).await
    }
}

/// Requests of a route, as `judged.txt` has them.
fn requests(template: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut lines = include_str!("judged.txt").lines();
    assert!(lines.any(|line| line == template), "no requests of {template:?} are there");
    let request = |line: &'static str| {
        let (method, rest) = line.split_once(' ').expect("METHOD PATH BODY");
        let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
        (method, path, body)
    };
    lines.map_while(|line| line.strip_prefix("  ")).map(request).collect()
}

/// What everybody may ask for who has any right, and what only those may who read everything.
fn unnamed_requests() -> [(&'static str, &'static str, &'static str, bool); 8] {
    [
        ("POST", "/v1/sessions", "{}", true),
        ("GET", "/v1/requests/some", "", true),
        ("GET", "/v1/sessions", "", false),
        ("GET", "/v1/collections", "", false),
        ("GET", "/v1/locks", "", false),
        ("GET", "/v1/elections", "", false),
        ("GET", "/v1/tasks", "", false),
        ("PUT", "/v1/collections/orders", "{}", false),
    ]
}

fn filled(text: &str, prefix: &str, session: &str) -> String {
    text.replace('P', prefix)
        .replace('Q', &prefix.replace('/', "%2F"))
        .replace("\"S\"", &format!("\"{session}\""))
        .replace("/S", &format!("/{session}"))
        .replace("%2FUT", "PUT")
}

/// All of its steps are judged before any of it is read, and what is read holds the memory of the node.
#[tokio::test]
async fn nothing_is_read_for_a_transaction_of_etcd_of_which_a_part_is_not_allowed() {
    let guarded = Guarded::start().await;
    let backend = &guarded.server.backend;
    let value = Value { kind: ContentKind::Bytes, data: vec![b'x'; 1_536 * 1024] };
    let revision = backend.seed("orders/large", value);
    let past = |key: &str, end: &str| {
        format!(r#"{{"request_range":{{"key":"{key}","range_end":"{end}","revision":"{revision}"}}}}"#)
    };
    // From `orders/` to `orders0`, and from `a` to `b`.
    let (own, foreign) = (past("b3JkZXJzLw==", "b3JkZXJzMA=="), past("YQ==", "Yg=="));
    let (own, foreign) = (own.as_str(), foreign.as_str());
    let ask = async |token: &str, steps: &[&str]| {
        let body = format!(r#"{{"success":[{}]}}"#, steps.join(","));
        let answer = guarded.ask(token, "POST", "/v3/kv/txn", &body).await;
        (answer.status, answer.json()["error"].as_str().map(str::to_owned))
    };
    let denied = (403, Some("etcdserver: permission denied".to_owned()));
    assert_eq!(ask(&guarded.nobody, &[own; 12]).await, denied);
    assert_eq!(ask(&guarded.app, &[own, own, foreign]).await, denied);
    assert_eq!(backend.readers().len(), 0);
    // Who has the right is refused for what it comes to.
    let too_large = (400, Some("etcdserver: request is too large".to_owned()));
    assert_eq!(ask(&guarded.app, &[own; 12]).await, too_large);
    assert_eq!(backend.readers().len(), 11, "ten fit into the bound of a transaction");
}

/// Each request of a data route, as who has nothing, as a stranger, on foreign names, and on one's own.
#[tokio::test]
async fn every_data_route_is_judged() {
    let guarded = Guarded::start().await;
    guarded.server.backend.fail_writes(AppError::NoLeader);
    for route in all_routes().iter().filter(|route| route.is_data()) {
        for (method, path, body) in requests(route.template()) {
            let what = format!("{method} {path} {body}");
            let ask = async |token: &str, prefix: &str, session: &str| {
                guarded.ask(token, method, &filled(path, prefix, session), &filled(body, prefix, session)).await.status
            };
            assert_eq!(ask(&guarded.nobody, "orders/", &guarded.foreign).await, 403, "nobody: {what}");
            let is_of_session = path.contains("/S") || path.ends_with("/renew");
            if !is_of_session {
                assert_eq!(ask(&guarded.app, "other/", &guarded.own).await, 403, "on foreign names: {what}");
            }
            if body.contains("\"S\"") || is_of_session {
                assert_eq!(ask(&guarded.app, "orders/", &guarded.foreign).await, 403, "with a foreign session: {what}");
            }
            assert_eq!(guarded.server.backend.commands(), [], "refused is not proposed: {what}");
            let own = ask(&guarded.app, "orders/", &guarded.own).await;
            assert!(!matches!(own, 400 | 401 | 403 | 405), "{own} on own names: {what}");
            guarded.server.backend.forget_commands();
        }
    }
    for (method, path, body, with_any_right) in unnamed_requests() {
        assert_eq!(guarded.ask(&guarded.nobody, method, path, body).await.status, 403, "nobody: {method} {path}");
        let status = guarded.ask(&guarded.app, method, path, body).await.status;
        assert_eq!(status != 403, with_any_right, "{status}: {method} {path}");
        let status = guarded.ask(ROOT, method, path, body).await.status;
        assert!(!matches!(status, 401 | 403), "{status} for root: {method} {path}");
    }
}

#[tokio::test]
async fn strangers_get_in_nowhere_but_where_nothing_is_told() {
    // Each from an address of its own would not be possible here, so few enough that none is slowed down.
    let guarded = Guarded::start().await;
    for path in ["/livez", "/readyz", "/version", "/openapi.json", "/errors/unauthenticated"] {
        assert_eq!(guarded.ask("", "GET", path, "").await.status, 200, "{path}");
    }
    for path in ["/metrics", "/v1/cluster/status", "/v1/cluster/digest"] {
        assert_eq!(guarded.ask(&guarded.nobody, "GET", path, "").await.status, 200, "{path}");
    }
    for (method, path, body) in [
        ("GET", "/v1/cluster/members", ""),
        ("POST", "/v1/cluster/members", r#"{"id":4,"addr":"127.0.0.1:1"}"#),
        ("DELETE", "/v1/cluster/members/3", ""),
        ("POST", "/v1/cluster/leader", "{}"),
        ("GET", "/v1/cluster/backup", ""),
    ] {
        assert_eq!(guarded.ask(&guarded.app, method, path, body).await.status, 403, "{method} {path}");
    }
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/cluster/members", "").await.status, 200);
    for path in ["/metrics", "/v1/cluster/status", "/v1/cluster/members", "/v1/kv/orders/k", "/v1/watch?prefix="] {
        let refused = guarded.ask("", "GET", path, "").await;
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        let problem = refused.problem();
        assert_eq!(
            (problem.code, problem.applied, problem.retry),
            (ErrorCode::Unauthenticated, Applied::No, Retry::Never)
        );
    }
}

/// Nothing of theirs is waited for, nor kept meanwhile.
#[tokio::test]
async fn strangers_are_refused_before_their_message_comes() {
    let guarded = Guarded::start().await;
    for (path, kind, status, grpc_status) in [
        ("/v3lockpb.Lock/Lock", "application/grpc", 200, Some("3")),
        ("/etcdserverpb.KV/Put", "application/grpc", 200, Some("3")),
        ("/etcdserverpb.Lease/LeaseKeepAlive", "application/grpc", 200, Some("3")),
        ("/v3/kv/put", "application/json", 400, None),
        ("/v1/ops", "application/json", 401, None),
    ] {
        let mut raw = guarded.server.connect().await;
        let began = std::time::Instant::now();
        raw.send_request("POST", path, &[("Content-Type", kind), ("Content-Length", "100")], b"").await;
        let answer = raw.response(true).await;
        assert_eq!((answer.status, answer.header("grpc-status")), (status, grpc_status), "{path}");
        let (took, timeout) = (began.elapsed(), api_settings().request_timeout);
        assert!(took < timeout / 2, "{path}: {took:?}, and a message may take {timeout:?}");
    }
    let metrics = guarded.ask(&guarded.nobody, "GET", "/metrics", "").await.text();
    assert!(metrics.contains("quorate_http_resource_taken{resource=\"arriving\"} 0.0\n"), "{metrics}");
}

/// They may have nothing, under any name: the node neither waits for their bodies nor keeps any part of them.
#[tokio::test]
async fn who_has_no_right_at_all_is_refused_before_the_message_comes() {
    let guarded = Guarded::start().await;
    let (nobody, app) = (format!("Bearer {}", guarded.nobody), format!("Bearer {}", guarded.app));
    let mut asked: Vec<_> = [
        ("POST", "/etcdserverpb.KV/Txn", "application/grpc", 200, Some("7")),
        ("POST", "/etcdserverpb.Watch/Watch", "application/grpc", 200, Some("7")),
        ("POST", "/v3lockpb.Lock/Lock", "application/grpc", 200, Some("7")),
        ("POST", "/v3/kv/txn", "application/json", 403, None),
        ("POST", "/v3/kv/range", "application/json", 403, None),
    ]
    .map(|(method, path, kind, status, grpc_status)| (method, path.to_owned(), kind, status, grpc_status))
    .into();
    for route in all_routes() {
        for operation in route.operations() {
            if operation.takes_body() && operation.policy.guard == Guard::Judged {
                let path = route.template().replace(['{', '}'], "");
                asked.push((operation.method.as_str(), path, "application/json", 403, None));
            }
        }
    }
    assert!(asked.len() > 20, "{asked:?}");
    for (method, path, kind, status, grpc_status) in &asked {
        let headers = [("Content-Type", *kind), ("Content-Length", "100"), ("Authorization", nobody.as_str())];
        let mut raw = guarded.server.connect().await;
        raw.send_request(method, path, &headers, b"").await;
        let answer = raw.response(true).await;
        assert_eq!((answer.status, answer.header("grpc-status")), (*status, *grpc_status), "{method} {path}");
    }
    // Any right is enough to be heard.
    let mut raw = guarded.server.connect().await;
    raw.send_request("POST", "/v1/bulk", &[JSON, ("Content-Length", "2"), ("Authorization", &app)], b"{").await;
    raw.send(b"]").await;
    assert_eq!(raw.response(false).await.status, 400);
}

/// The answers to a hundred requests where nobody leads. Once half of them are there, the clock of the server goes on by as long as the others
/// may wait for a leader: no request takes half of the time that it may take.
async fn answered_in_time<T: 'static>(mut asked: JoinSet<T>) -> Vec<T> {
    const PASSED: Duration = Duration::from_millis(2_100);
    let (began, half, mut answers) = (std::time::Instant::now(), asked.len() / 2, Vec::new());
    while let Some(answer) = asked.join_next().await {
        answers.push(answer.expect("it ends"));
        if answers.len() == half {
            pass(PASSED).await;
        }
    }
    let (took, timeout) = (began.elapsed() + PASSED, api_settings().request_timeout);
    assert!(took < timeout / 2, "they waited for {took:?}, requests may take {timeout:?}");
    answers
}

/// Their requests are no more than questions whether a node is behind.
#[tokio::test]
async fn who_has_no_right_at_all_waits_in_small_numbers_where_nobody_leads() {
    let guarded = Arc::new(Guarded::start().await);
    guarded.server.backend.lose_leader();
    let mut asked = JoinSet::new();
    for _ in 0..100 {
        let guarded = Arc::clone(&guarded);
        asked.spawn(async move { guarded.ask(&guarded.nobody, "PUT", "/v1/kv/orders/k", "1").await.status });
    }
    let answers = answered_in_time(asked).await;
    assert!(answers.contains(&429), "beyond so many nobody waits: {answers:?}");
    assert!(answers.iter().all(|status| [429, 503, 504].contains(status)), "{answers:?}");
}

/// A node that is behind may not know the first right of one of them yet.
#[tokio::test]
async fn who_has_no_right_at_all_leaves_room_to_others_that_a_node_knows_no_right_of() {
    let guarded = Arc::new(Guarded::start().await);
    let newcomer = guarded.user("newcomer", &[]);
    guarded.server.backend.lose_leader();
    let mut asked = JoinSet::new();
    for _ in 0..100 {
        let guarded = Arc::clone(&guarded);
        asked.spawn(async move { guarded.ask(&guarded.nobody, "PUT", "/v1/kv/orders/k", "1").await.status });
    }
    let first = asked.join_next().await.expect("a hundred").expect("it ends");
    assert_eq!(first, 429, "those who have a place wait");
    let bearer = format!("Bearer {newcomer}");
    let headers = [JSON, ("Authorization", bearer.as_str()), ("Request-Timeout", "200")];
    let other = guarded.server.ask("PUT", "/v1/kv/orders/k", &headers, b"1").await.status;
    assert!([503, 504].contains(&other), "{other}: it waited for a leader");
}

/// A right counts by the head too where a node has not heard of it yet: it asks before it says no.
#[tokio::test]
async fn a_first_right_counts_before_this_node_knows_of_it() {
    let guarded = Guarded::start().await;
    let backend = &guarded.server.backend;
    let put = async || guarded.ask(&guarded.nobody, "PUT", "/v1/kv/orders/k", "1").await.status;
    assert_eq!(put().await, 403);
    let grant = Grant { permission: Permission::Write, prefix: b"orders/".to_vec() };
    backend.hear_of(Action::Access(AccessOp::SetRole { name: role("nobody"), grants: vec![grant] }));
    let asked = backend.barriers().len();
    assert_eq!(put().await, 201);
    assert_eq!(put().await, 200);
    assert_eq!(backend.barriers().len(), asked + 1, "once it is known, nobody is asked");
}

/// They may end without rights what they began with some.
#[tokio::test]
async fn a_session_is_its_owners_whatever_rights_they_have_left() {
    let guarded = Guarded::start().await;
    guarded.take_roles("app");
    // Nothing that is let in comes further than to the log.
    guarded.server.backend.fail_writes(AppError::NoLeader);
    for (method, path, body) in [
        ("POST", "/v1/sessions/S/renew", ""),
        ("POST", "/v1/sessions/renew", r#"{"sessions":["S"]}"#),
        ("DELETE", "/v1/sessions/S", ""),
    ] {
        let ask = async |session: &str| {
            let (path, body) = (filled(path, "", session), filled(body, "", session));
            guarded.ask(&guarded.app, method, &path, &body).await.status
        };
        assert_eq!(ask(&guarded.foreign).await, 403, "somebody else's: {method} {path}");
        let own = ask(&guarded.own).await;
        assert!(!matches!(own, 400 | 401 | 403 | 405), "{own}: {method} {path}");
    }
    assert_eq!(guarded.ask(&guarded.app, "POST", "/v1/sessions", "{}").await.status, 403);
}

/// Room for values is there for who may have them.
#[tokio::test]
async fn who_may_not_have_a_value_waits_for_no_room_for_it() {
    const MOST: usize = 128;
    let mut api = api_settings();
    api.bounds.classes.point = 1_000;
    let guarded = Guarded::start_as(api, serve_settings()).await;
    let (backend, bearer) = (&guarded.server.backend, format!("Bearer {}", guarded.app));
    backend.hold("orders/slow");
    let mut at_work = Vec::new();
    for _ in 0..MOST {
        let mut raw = guarded.server.connect().await;
        raw.send_request("PUT", "/v1/kv/orders/slow?prev", &[JSON, ("Authorization", &bearer)], b"1").await;
        at_work.push(raw);
    }
    until("the writes did not come", async || backend.asked() >= MOST).await;
    for (method, path, body) in [
        ("PUT", "/v1/kv/other/k?prev", "1"),
        ("POST", "/v1/ops", r#"{"op":"upsert","key":"other/k","value":1,"prev":true}"#),
        ("POST", "/v1/txn", r#"{"then":[{"op":"get","key":"other/k"},{"op":"remove","key":"orders/k"}]}"#),
        // `other/k` and `1`.
        ("POST", "/v3/kv/put", r#"{"key":"b3RoZXIvaw==","value":"MQ==","prev_kv":true}"#),
    ] {
        let answer = guarded.ask(&guarded.app, method, path, body).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    }
    backend.release("orders/slow");
    for mut write in at_work {
        assert_eq!(write.response(false).await.status / 100, 2);
    }
}

/// A request for a token has a body, too, and strangers have many addresses.
#[tokio::test]
async fn strangers_have_one_share_together_of_what_is_on_its_way() {
    let mut api = api_settings();
    // They have half, as long as nobody else has any.
    api.bounds.classes.arriving = 4;
    let guarded = Guarded::start_as(api, serve_settings()).await;
    let begin = async |last: u8| {
        let mut raw = guarded.server.connect_from(last).await;
        raw.send_request("POST", "/v3/auth/authenticate", &[JSON, ("Content-Length", "100")], b"{").await;
        raw
    };
    let until_arriving = async |count: usize| {
        let line = format!("quorate_http_resource_taken{{resource=\"arriving\"}} {count}.0\n");
        until(&line, async || guarded.ask(&guarded.nobody, "GET", "/metrics", "").await.text().contains(&line)).await;
    };
    let _coming = [begin(2).await, begin(3).await];
    until_arriving(2).await;
    assert_eq!(begin(4).await.response(false).await.status, 429);
    let mut known = guarded.server.connect().await;
    let bearer = format!("Bearer {}", guarded.app);
    let headers = [JSON, ("Authorization", bearer.as_str()), ("Content-Length", "2")];
    known.send_request("PUT", "/v1/kv/orders/k", &headers, b"1").await;
    until_arriving(3).await;
    known.send(b"1").await;
    assert_eq!(known.response(false).await.status / 100, 2);
}

#[tokio::test]
async fn operators_alone_are_told_who_holds_what() {
    const CALLERS: &str = "/v1/node/callers";
    const WATCH: &str = "/v1/watch?prefix=orders/";
    let mut api = api_settings();
    (api.bounds.classes.arriving, api.bounds.watches_max) = (8, 2);
    let guarded = Guarded::start_as(api, serve_settings()).await;
    for (token, status) in [("", 401), (guarded.app.as_str(), 403), (ROOT, 200)] {
        assert_eq!(guarded.ask(token, "GET", CALLERS, "").await.status, status);
    }
    let told = async |kind: NodeResourceKind| {
        let text = guarded.ask(ROOT, "GET", CALLERS, "").await.text();
        let answer: NodeCallersAnswer = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((answer.node_id, answer.resources.len()), (1, 12), "{text}");
        answer.resources.into_iter().find(|resource| resource.resource == kind).expect("each kind is there")
    };
    let caller = |kind, name: Option<&str>, held| NodeCaller { kind, name: name.map(str::to_owned), held };

    let _watch = open(&guarded, "GET", WATCH, &[]).await;
    assert_eq!(guarded.ask(&guarded.app, "GET", WATCH, "").await.status, 429, "half of two");
    let watches = told(NodeResourceKind::Watches).await;
    assert_eq!((watches.bound, watches.share, watches.taken), (2, 1, 1));
    assert_eq!((watches.refused, watches.share_refused), (0, 1));
    assert_eq!(watches.callers, [caller(NodeCallerKind::User, Some("app"), 1)]);

    let mut coming = Vec::new();
    for _ in 0..2 {
        let mut raw = guarded.server.connect().await;
        raw.send_request("POST", "/v3/auth/authenticate", &[JSON, ("Content-Length", "100")], b"{").await;
        coming.push(raw);
    }
    until("they do not arrive", async || told(NodeResourceKind::Arriving).await.taken == 2).await;
    let arriving = told(NodeResourceKind::Arriving).await;
    assert_eq!((arriving.bound, arriving.share), (8, 2));
    assert_eq!(arriving.callers, [caller(NodeCallerKind::Strangers, None, 2)]);

    // The watch, the two that arrive, and the one that asks.
    let connections = told(NodeResourceKind::Connections).await;
    assert_eq!(connections.bound, serve_settings().connections_max as u64);
    assert!(connections.taken >= 4, "{connections:?}");
    assert_eq!(connections.callers, [caller(NodeCallerKind::Address, Some("127.0.0.1"), connections.taken)]);
    assert_eq!((connections.held_up, connections.late), (None, None), "nothing of it waits for the processors");

    let processors = told(NodeResourceKind::Processors).await;
    assert_eq!((processors.bound, processors.share, processors.refused), (1_000, 1_000, 0), "a second");
    assert!(processors.held_up.is_some() && processors.late.is_some(), "{processors:?}");
}

#[tokio::test]
async fn a_refusal_names_what_is_missing_and_nothing_that_is_there() {
    let guarded = Guarded::start().await;
    let secret = Value { kind: ContentKind::Json, data: b"\"hidden\"".to_vec() };
    guarded.server.backend.seed("other/k", secret);
    let refused = guarded.ask(&guarded.app, "PUT", "/v1/kv/other/k?prev", "1").await;
    let problem = refused.problem();
    assert_eq!((problem.status, problem.code, problem.applied), (403, ErrorCode::PermissionDenied, Applied::No));
    assert_eq!(problem.detail, "`app` has no permission for this: it needs write on `other/k`");
    assert!(!refused.text().contains("hidden"), "{}", refused.text());
}

#[tokio::test]
async fn a_token_is_good_until_it_is_removed_or_over() {
    let guarded = Guarded::start().await;
    let put = async |token: &str| guarded.ask(token, "PUT", "/v1/kv/orders/k", "1").await.status;
    assert_eq!(put(&guarded.app).await, 201);
    let principals: Vec<_> = guarded.server.backend.commands().into_iter().map(|command| command.principal).collect();
    assert_eq!(principals, ["app"]);

    let (over, other) = (TokenText::make(), TokenText::make());
    let AccessOp::AddToken(another) = token_of("app", &TokenText::make(), None) else { panic!("it adds a token") };
    guarded.set(AccessOp::AddToken(NewToken { id: other.id, ..another }));
    guarded.set(token_of("app", &over, Some(1)));
    assert_eq!(put(&over.reveal()).await, 401, "its time is over");
    assert_eq!(put(&other.reveal()).await, 401, "the id is right and the secret is not");
    assert_eq!(put(&TokenText::make().reveal()).await, 401);
    assert_eq!(put("qt_0123").await, 401);
    assert_eq!(put(&format!("{ROOT}x")).await, 401);
    assert_eq!(put(ROOT).await, 200);
    let command = guarded.server.backend.commands().pop().expect("a command");
    assert_eq!((command.principal.as_str(), command.access_revision), ("root", None));

    assert_eq!(put(&guarded.app).await, 200);
    let id = TokenText::read(&guarded.app).expect("a token").id;
    guarded.set(AccessOp::RemoveToken(id));
    assert_eq!(put(&guarded.app).await, 401, "it was removed");
}

#[tokio::test]
async fn who_guesses_is_slowed_down_and_nobody_beside_them() {
    let guarded = Guarded::start().await;
    for failure in 0..10 {
        let refused = guarded.ask("0000000000000000000000000000000000", "GET", "/v1/kv/orders/k", "").await;
        assert_eq!(refused.status, 401, "{failure}");
    }
    for token in ["", "wrong", &TokenText::make().reveal()] {
        let refused = guarded.ask(token, "GET", "/v1/kv/orders/k", "").await;
        assert_eq!(refused.status, 429, "{token}");
        let wait: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert_eq!(guarded.ask(&guarded.app, "PUT", "/v1/kv/orders/k", "1").await.status / 100, 2);
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/kv/orders/k", "").await.status, 200);
    assert_eq!(guarded.ask("", "GET", "/livez", "").await.status, 200);
}

#[tokio::test]
async fn what_nobody_knows_costs_the_leader_nothing_once_an_address_guesses() {
    let guarded = Guarded::start().await;
    for _ in 0..20 {
        guarded.ask(&TokenText::make().reveal(), "GET", "/v1/kv/orders/k", "").await;
    }
    let asked = guarded.server.backend.barriers().len();
    assert_eq!(asked, 10, "as often as it may fail");
    // Who brings something good is never slowed down by it.
    assert_eq!(guarded.ask(&guarded.app, "PUT", "/v1/kv/orders/k", "1").await.status / 100, 2);
}

#[tokio::test]
async fn strangers_take_no_place_for_long_where_nobody_leads() {
    let guarded = Arc::new(Guarded::start().await);
    guarded.server.backend.lose_leader();
    let mut asked = JoinSet::new();
    for _ in 0..100 {
        let guarded = Arc::clone(&guarded);
        asked.spawn(async move {
            let refused = guarded.ask(&TokenText::make().reveal(), "GET", "/v1/kv/orders/k", "").await;
            (refused.status, refused.header("retry-after").is_some())
        });
    }
    let mut answers = std::collections::BTreeMap::new();
    for answer in answered_in_time(asked).await {
        *answers.entry(answer).or_insert(0) += 1;
    }
    assert!(answers.get(&(429, true)).is_some_and(|refused| *refused > 0), "beyond so many nobody waits: {answers:?}");
    assert_eq!(answers.values().sum::<i32>(), 100);
    assert!(answers.keys().all(|(status, _)| [429, 503, 504].contains(status)), "{answers:?}");
}

#[tokio::test]
async fn a_connection_of_somebody_stays_and_those_of_strangers_make_room() {
    let guarded = Guarded::start_with(ServeSettings { connections_max: 8, ..serve_settings() }).await;
    let bearer = format!("Bearer {}", guarded.app);
    let known = [("Authorization", bearer.as_str())];
    let mut first = guarded.server.connect().await;
    assert_eq!(first.ask("GET", "/v1/kv/orders/k", &known, b"").await.status, 404);
    let mut crowd = Vec::new();
    for stranger in 0..40 {
        let mut raw = guarded.server.connect_from(2 + stranger % 2).await;
        // A request that needs no token shows nothing of its caller.
        assert_eq!(raw.ask("GET", "/livez", &[], b"").await.status, 200);
        crowd.push(raw);
    }
    let mut others = Vec::new();
    for _ in 0..6 {
        let mut other = guarded.server.connect_from(4).await;
        assert_eq!(other.ask("GET", "/v1/kv/orders/k", &known, b"").await.status, 404);
        others.push(other);
    }
    others.push(first);
    for mut open in others {
        assert_eq!(open.ask("GET", "/v1/kv/orders/k", &known, b"").await.status, 404);
    }
}

#[tokio::test]
async fn a_command_is_judged_again_where_the_rules_changed_on_its_way() {
    let guarded = Arc::new(Guarded::start().await);
    let backend = &guarded.server.backend;
    let put = |key: &'static str| {
        let guarded = Arc::clone(&guarded);
        tokio::spawn(async move { guarded.ask(&guarded.app, "PUT", &format!("/v1/kv/orders/{key}"), "1").await.status })
    };
    let reach = async |count: usize| until("no command came", async || backend.asked() >= count).await;
    // A change that leaves the right: it goes again, under the same id.
    backend.hold("orders/a");
    let first = put("a");
    reach(1).await;
    guarded.user("third", &[]);
    backend.release("orders/a");
    assert_eq!(first.await.expect("answered"), 201);
    let commands = backend.commands();
    assert_eq!(commands.len(), 2);
    assert_eq!(commands[0].request_id, commands[1].request_id);
    assert!(commands[0].access_revision < commands[1].access_revision, "{commands:?}");
    // One that takes it.
    backend.hold("orders/b");
    let second = put("b");
    reach(3).await;
    guarded.take_roles("app");
    backend.release("orders/b");
    assert_eq!(second.await.expect("answered"), 403);
    assert_eq!(backend.asked(), 3, "it was not proposed again");
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/kv/orders/b", "").await.status, 404);
}

async fn open(guarded: &Guarded, method: &str, path: &str, headers: &[(&str, &str)]) -> Raw {
    let bearer = format!("Bearer {}", guarded.app);
    let headers = [headers, &[("Authorization", bearer.as_str())]].concat();
    let mut raw = guarded.server.connect().await;
    let head = raw.ask(method, path, &headers, b"").await;
    assert_eq!(head.status, 200, "{head:?}");
    raw
}

fn take_token(guarded: &Guarded) {
    let id = TokenText::read(&guarded.app).expect("a token").id;
    guarded.set(AccessOp::RemoveToken(id));
}

#[tokio::test]
async fn a_watch_ends_before_it_tells_what_may_not_be_told() {
    let guarded = Guarded::start().await;
    let value = || Value { kind: ContentKind::Json, data: b"\"hidden\"".to_vec() };
    for loses_user in [false, true] {
        let mut watch = open(&guarded, "GET", "/v1/watch?prefix=orders/", &[]).await;
        let mut shown = Vec::new();
        guarded.server.backend.seed("orders/a", Value { kind: ContentKind::Json, data: b"1".to_vec() });
        while !String::from_utf8_lossy(&shown).contains("event: put") {
            shown.extend(watch.chunk().await);
        }
        match loses_user {
            false => guarded.grant("app", &[], "orders/"),
            true => take_token(&guarded),
        }
        guarded.server.backend.seed("orders/b", value());
        let mut rest = Vec::new();
        loop {
            let chunk = watch.chunk().await;
            if chunk.is_empty() {
                break;
            }
            rest.extend(chunk);
        }
        let rest = String::from_utf8(rest).expect("text");
        let code = if loses_user { "\"code\":\"unauthenticated\"" } else { "\"code\":\"permission_denied\"" };
        assert!(rest.contains("event: end") && rest.contains(code), "{rest}");
        assert!(!rest.contains("hidden"), "{rest}");
        // With the right back, for the second round.
        guarded.grant("app", &[Permission::Read], "orders/");
    }
}

#[tokio::test]
async fn a_backup_ends_where_the_right_to_it_is_taken_away() {
    const PIECES: usize = 2_000;
    let guarded = Guarded::start().await;
    // Much more than all buffers on the way hold.
    guarded.server.backend.set_backup_pieces(PIECES);
    let bearer = format!("Bearer {}", guarded.app);
    let asks = [("GET", "/v1/cluster/backup", ""), ("POST", "/v3/maintenance/snapshot", "{}")];
    for (method, path, body) in asks {
        guarded.grant("app", &[Permission::Backup], "");
        let mut raw = guarded.server.connect().await;
        let headers = [JSON, ("Authorization", bearer.as_str())];
        let headers = if body.is_empty() { &headers[1..] } else { &headers[..] };
        raw.send_request(method, path, headers, body.as_bytes()).await;
        let head = raw.response(true).await;
        assert_eq!(head.status, 200, "{path}: {head:?}");
        assert!(!raw.chunk().await.is_empty(), "{path}");
        guarded.grant("app", &[Permission::Monitor], "");
        let (mut bytes, mut last) = (0, Vec::new());
        while let Some(chunk) = raw.try_chunk().await.filter(|chunk| !chunk.is_empty()) {
            bytes += chunk.len();
            last = chunk;
        }
        assert!(bytes < PIECES * 64 * 1024 / 2, "{path}: {bytes} bytes came");
        let last = String::from_utf8_lossy(&last).into_owned();
        assert!(method == "GET" || last.contains("etcdserver: permission denied"), "{path}: {last}");
    }
}

#[tokio::test]
async fn each_step_of_a_compaction_says_who_asked_and_by_which_rules() {
    let guarded = Guarded::start().await;
    let backend = &guarded.server.backend;
    let revision = backend.seed("orders/a", Value { kind: ContentKind::Json, data: b"1".to_vec() });
    guarded.grant("app", &[Permission::Admin], "");
    let steps = [true, true, false];
    for more in steps {
        backend.come_to(Outcome::Maintained { removed: 1, more });
    }
    let body = format!(r#"{{"revision":"{revision}"}}"#);
    let answer = guarded.ask(&guarded.app, "POST", "/v3/kv/compaction", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let commands = backend.commands();
    assert_eq!(commands.len(), steps.len());
    for command in commands {
        assert_eq!(command.principal, "app");
        assert!(command.access_revision.is_some() && command.request_id.is_none(), "{command:?}");
    }
}

#[tokio::test]
async fn an_operation_stream_is_judged_by_its_lines_and_ends_with_its_token() {
    let guarded = Guarded::start().await;
    let stream = [("Content-Type", "application/x-ndjson"), ("Transfer-Encoding", "chunked")];
    let mut raw = open(&guarded, "POST", "/v1/ops", &stream).await;
    let send = async |raw: &mut Raw, line: &str| {
        raw.send(format!("{:x}\r\n{line}\n\r\n", line.len() + 1).as_bytes()).await;
        String::from_utf8(raw.chunk().await).expect("text")
    };
    let put = |n: u32, key: &str| format!(r#"{{"n":{n},"op":{{"op":"upsert","key":"{key}","value":1}}}}"#);
    assert!(send(&mut raw, &put(1, "orders/k")).await.contains(r#""n":1,"status":201"#));
    let refused = send(&mut raw, &put(2, "other/k")).await;
    assert!(refused.contains(r#""n":2,"status":403"#), "{refused}");
    assert!(send(&mut raw, &put(3, "orders/k")).await.contains(r#""n":3,"status":200"#));
    take_token(&guarded);
    let refused = send(&mut raw, &put(4, "orders/k")).await;
    assert!(refused.contains(r#""n":4,"status":401"#), "{refused}");
    assert_eq!(raw.chunk().await, b"", "the stream ended");
    assert_eq!(guarded.server.backend.asked(), 2);
}

#[tokio::test]
async fn the_fate_of_a_request_is_its_owners() {
    let guarded = Guarded::start().await;
    let id = ("Idempotency-Key", "mine");
    let bearer = format!("Bearer {}", guarded.app);
    let headers = [JSON, id, ("Authorization", bearer.as_str())];
    assert_eq!(guarded.server.ask("PUT", "/v1/kv/orders/k", &headers, b"1").await.status / 100, 2);
    let other = guarded.user("other", &[Permission::Write]);
    assert_eq!(guarded.ask(&guarded.app, "GET", "/v1/requests/mine", "").await.status, 200);
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/requests/mine", "").await.status, 200);
    assert_eq!(guarded.ask(&other, "GET", "/v1/requests/mine", "").await.status, 404);
    assert_eq!(guarded.ask(&other, "GET", "/v1/requests/mine?principal=app", "").await.status, 403);
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/requests/mine?principal=app", "").await.status, 200);
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/requests/mine?principal=other", "").await.status, 404);

    // Two may use the same id, and who administers everything says whose is meant.
    let bearer = format!("Bearer {other}");
    let headers = [JSON, id, ("Authorization", bearer.as_str())];
    let written = guarded.server.ask("PUT", "/v1/kv/orders/other", &headers, b"2").await;
    assert!(written.status / 100 == 2 && written.json().get("replayed").is_none(), "{}", written.text());
    let told = async |token: &str, query: &str| {
        let answer = guarded.ask(token, "GET", &format!("/v1/requests/mine{query}"), "").await;
        answer.json()["cas"].clone()
    };
    let cas = written.json()["cas"].clone();
    assert!(cas.is_string(), "{}", written.text());
    assert_eq!(told(&other, "").await, cas);
    assert_eq!(told(ROOT, "?principal=other").await, cas);
    assert_ne!(told(&guarded.app, "").await, cas);
    let several = guarded.ask(ROOT, "GET", "/v1/requests/mine", "").await.problem();
    assert_eq!((several.status, several.errors[0].pointer.as_str()), (400, "query:principal"));
    assert!(several.detail.contains("app") && several.detail.contains("other"), "{}", several.detail);
}

#[tokio::test]
async fn the_audit_log_tells_of_commands_and_refusals_and_no_secrets() {
    let guarded = Guarded::start().await;
    let written = guarded.ask(&guarded.app, "PUT", "/v1/kv/orders/k", r#""hidden""#).await;
    let revision: u64 = written.header("quorate-revision").and_then(|text| text.parse().ok()).expect("a revision");
    assert_eq!(written.status, 201);
    assert_eq!(guarded.ask(&guarded.app, "GET", "/v1/kv/orders/k", "").await.status, 200);
    assert_eq!(guarded.ask(&guarded.app, "DELETE", "/v1/kv/other/k", "").await.status, 403);
    assert_eq!(guarded.ask("not-a-token", "DELETE", "/v1/kv/other/k", "").await.status, 401);
    assert_eq!(guarded.ask(ROOT, "GET", "/v1/cluster/members", "").await.status, 200);
    let file = guarded.dir.path().join("audit");
    let text = || std::fs::read_to_string(&file).expect("there");
    until("lines are missing", async || text().lines().count() >= 4).await;
    let lines = text();
    for secret in ["hidden", guarded.app.as_str(), ROOT, "not-a-token"] {
        assert!(!lines.contains(secret), "{lines}");
    }
    let events: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let shown: Vec<_> = events
        .iter()
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
            (text("principal"), text("route"), text("outcome"), event["status"].as_u64(), event["names"].to_string())
        })
        .collect();
    let line = |principal: &str, route: &str, outcome: &str, status, names: &str| {
        (principal.to_owned(), route.to_owned(), outcome.to_owned(), status, names.to_owned())
    };
    assert_eq!(
        shown,
        [
            line("app", "/v1/kv/{key}", "applied", None, r#"["Write orders/k"]"#),
            line("app", "/v1/kv/{key}", "refused", Some(403), "null"),
            line("-", "/v1/kv/{key}", "refused", Some(401), "null"),
            line("root", "/v1/cluster/members", "done", Some(200), "null"),
        ]
    );
    assert!(events.iter().all(|event| event["at"].is_string() && event["request_id"].is_string()));
    assert_eq!(events[0]["revision"], revision, "{lines}");
}

#[tokio::test]
async fn who_hangs_up_does_not_escape_the_audit_log() {
    let guarded = Guarded::start().await;
    let (backend, bearer) = (&guarded.server.backend, format!("Bearer {}", guarded.app));
    backend.hold("orders/k");
    let mut raw = guarded.server.connect().await;
    raw.send_request("PUT", "/v1/kv/orders/k", &[JSON, ("Authorization", &bearer)], b"1").await;
    until("no command came", async || !backend.commands().is_empty()).await;
    drop(raw);
    let file = guarded.dir.path().join("audit");
    let text = || std::fs::read_to_string(&file).expect("there");
    until("no line came", async || text().ends_with('\n')).await;
    let text = text();
    let line = text.lines().next().expect("a line");
    let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!((&event["principal"], &event["outcome"]), (&"app".into(), &"unknown".into()), "{line}");
    assert_eq!(event["names"], serde_json::json!(["Write orders/k"]));
}

#[tokio::test]
async fn the_trail_of_a_key_tells_who_did_what() {
    let guarded = Guarded::start().await;
    let headers = [JSON, ("Idempotency-Key", "mine"), ("Authorization", &format!("Bearer {}", guarded.app))];
    assert_eq!(guarded.server.ask("PUT", "/v1/kv/orders/k", &headers, b"1").await.status / 100, 2);
    let stale = [JSON, ("If-Match", "\"1\""), headers[2]];
    assert_eq!(guarded.server.ask("PUT", "/v1/kv/orders/k", &stale, b"2").await.status, 412);
    let trail = guarded.ask(&guarded.app, "GET", "/v1/audit?key=orders/k", "").await;
    assert_eq!(trail.status, 200, "{}", trail.text());
    let line = &trail.json()["lines"][0];
    assert_eq!((&line["principal"], &line["request_id"]), (&"app".into(), &"mine".into()));
    assert_eq!((&line["op"], &line["effect"]), (&"upsert".into(), &"changed".into()));
    let refused = &trail.json()["lines"][1];
    assert_eq!(
        (&refused["op"], &refused["effect"], &refused["refusal"]),
        (&"replace".into(), &"refused".into(), &"cas_mismatch".into())
    );
}

/// The file of a root token, which a node takes only where others cannot read it.
fn write_root(file: &std::path::Path, token: &str) {
    std::fs::write(file, token).expect("written");
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
}

/// Has the clock of the server go on beyond its next look at the file, which it takes every two seconds.
async fn look_at_the_file() {
    pass(Duration::from_millis(2_500)).await;
}

/// The root token is exchanged with its file.
#[tokio::test]
async fn the_root_token_is_what_stands_in_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("root");
    write_root(&file, ROOT);
    let root = RootToken::open(&file).expect("a token");
    let follower = tokio::spawn(Arc::clone(&root).follow());
    let settings = ApiSettings { auth: AuthSettings::Guarded { root: Some(root), jwt: None }, ..api_settings() };
    let server = Server::start_with(settings, serve_settings()).await;
    let ask = async |token: &str| {
        server.ask("GET", "/v1/cluster/status", &[("Authorization", &format!("Bearer {token}"))], b"").await.status
    };
    assert_eq!(ask(ROOT).await, 200);
    // What is no token leaves the one there was. Another length, so that the change is seen whatever the clock of the disk.
    std::fs::write(&file, "short").expect("written");
    look_at_the_file().await;
    assert_eq!(ask(ROOT).await, 200);
    let next = "fedcba9876543210fedcba98765432100";
    std::fs::write(&file, next).expect("written");
    look_at_the_file().await;
    assert_ne!(ask(ROOT).await, 200, "the file was read again");
    assert_eq!(ask(next).await, 200);
    follower.abort();
}
