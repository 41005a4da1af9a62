//! Users, roles and tokens: what is asked of the cluster, how its reply is shown, and every fault of input.

use std::time::Duration;

use quorate_api::{
    ErrorCode, Permission as PermissionView, RoleAnswer, RoleList, RoleRemoved, SelfAnswer, TokenCreated, TokenList,
    TokenRemoved, UserAnswer, UserList, UserRemoved,
};
use quorate_machine::access::{Grant, Permission};
use quorate_machine::types::{
    AccessOp, Action, Bounded, NewToken, Outcome, Rejection, RoleName, SecretHash, TokenId, UserName,
};
use quorate_node_core::token_text::TokenText;
use serde_json::json;

use crate::memory_node::WALL;
use crate::raw::{Response, Server, tells_all_or_the_first};

const JSON: (&str, &str) = ("Content-Type", "application/json");
/// Later than any clock shows, Unix milliseconds.
const FAR: u64 = 1 << 42;

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a name")
}

fn role(name: &str) -> RoleName {
    RoleName::new(name).expect("a name")
}

fn grant(permission: Permission, prefix: &str) -> Grant {
    Grant { permission, prefix: prefix.into() }
}

async fn send(server: &Server, method: &str, path: &str, body: serde_json::Value) -> Response {
    server.ask(method, path, &[JSON], body.to_string().as_bytes()).await
}

fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200 | 201), "{response:?}");
    assert_eq!(response.status == 201, response.header("location").is_some(), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn last_op(server: &Server) -> AccessOp {
    let command = server.backend.commands().pop().expect("a command came");
    let Action::Access(op) = command.action else { panic!("not about access: {:?}", command.action) };
    assert!(command.request_id.is_some(), "it can be tried again");
    op
}

#[tokio::test]
async fn faults_are_told_all_at_once_and_nothing_is_asked_of_the_cluster() {
    let server = Server::start().await;
    let many_roles = json!({"roles": (0..65).map(|n| n.to_string()).collect::<Vec<_>>()}).to_string();
    let many_grants = json!({"grants": vec![json!({"permission": "read", "prefix": ""}); 65]}).to_string();
    let long = json!({"grants": [{"permission": "read", "prefix": "p".repeat(4_097)}]}).to_string();
    let rows: [(&str, &str, &str, &[&str]); 19] = [
        ("PUT", "/v1/access/users/root", r#"{"roles":[]}"#, &["path:name"]),
        ("PUT", "/v1/access/users/", r#"{"roles":[]}"#, &["path:name"]),
        ("PUT", "/v1/access/users/%ff", r#"{"roles":[]}"#, &["path:name"]),
        ("PUT", "/v1/access/users/a", "{}", &["/roles"]),
        ("PUT", "/v1/access/users/a", "[]", &[""]),
        (
            "PUT",
            "/v1/access/users/a",
            r#"{"roles":["",7],"request_id":"ä","x":1}"#,
            &["/roles/0", "/roles/1", "/request_id", "/x"],
        ),
        ("PUT", "/v1/access/users/a", &many_roles, &["/roles"]),
        ("PUT", "/v1/access/users/a?dry_run", r#"{"roles":[]}"#, &["query:dry_run"]),
        ("GET", "/v1/access/users?limit=0&cursor=root&x", "", &["query:limit", "query:cursor", "query:x"]),
        ("PUT", "/v1/access/roles/r", "{}", &["/grants"]),
        (
            "PUT",
            "/v1/access/roles/r",
            r#"{"grants":[{"permission":"Write","prefix":1},{"prefix":""},{"permission":"read"},{"permission":"read","prefix":"","x":1},5]}"#,
            &[
                "/grants/0/permission",
                "/grants/0/prefix",
                "/grants/1/permission",
                "/grants/2/prefix",
                "/grants/3/x",
                "/grants/4",
            ],
        ),
        ("PUT", "/v1/access/roles/r", &many_grants, &["/grants"]),
        ("PUT", "/v1/access/roles/r", &long, &["/grants/0/prefix"]),
        ("POST", "/v1/access/tokens", "{}", &["/user"]),
        (
            "POST",
            "/v1/access/tokens",
            r#"{"user":"root","expires_in_ms":0,"note":1,"secret":"mine"}"#,
            &["/user", "/expires_in_ms", "/note", "/secret"],
        ),
        ("POST", "/v1/access/tokens", r#"{"user":"a","expires_in_ms":3153600000001}"#, &["/expires_in_ms"]),
        ("GET", "/v1/access/tokens?cursor=12", "", &["query:cursor"]),
        ("DELETE", "/v1/access/tokens/00C0FFEE00C0FFEE", "", &["path:id"]),
        ("GET", "/v1/access/self?x=1", "", &["query:x"]),
    ];
    for (method, path, body, pointers) in rows {
        let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
        let problem = server.ask(method, path, headers, body.as_bytes()).await.problem();
        assert_eq!(problem.status, 400, "{method} {path} {body}: {problem:?}");
        let found: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert!(
            tells_all_or_the_first(&found, pointers),
            "{pointers:?} or one of them: {found:?} of {method} {path} {body}"
        );
    }
    let note = json!({"user": "a", "note": "n".repeat(257)});
    assert_eq!(send(&server, "POST", "/v1/access/tokens", note).await.problem().errors[0].pointer, "/note");
    assert_eq!(server.get("/v1/access/token").await.problem().code, ErrorCode::NotFound);
    assert_eq!(server.get("/v1/access/tokens/00c0ffee00c0ffee").await.problem().code, ErrorCode::MethodNotAllowed);
    let put = server.ask("PUT", "/v1/access/users/a", &[], b"{}").await.problem();
    assert_eq!(put.code, ErrorCode::UnsupportedMediaType, "no other page can make users through a browser");
    assert_eq!(server.backend.commands(), []);
}

#[tokio::test]
async fn a_user_is_set_shown_and_removed() {
    let server = Server::start().await;
    let missing = send(&server, "PUT", "/v1/access/users/a", json!({"roles": ["nope"]})).await.problem();
    assert_eq!((missing.status, missing.code), (404, ErrorCode::NotFound));
    assert!(missing.detail.contains("no role `nope`"), "{missing:?}");

    let _: RoleAnswer = read(&send(&server, "PUT", "/v1/access/roles/r", json!({"grants": []})).await);
    let body = json!({"roles": ["r"], "request_id": "one"});
    let answer: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/team/a%20b", body.clone()).await);
    assert_eq!(last_op(&server), AccessOp::SetUser { name: user("team/a b"), roles: vec![role("r")] });
    assert_eq!((&*answer.user, &answer.roles[..], answer.set_revision), ("team/a b", &["r".to_owned()][..], 3));
    assert!(answer.revision.is_some() && answer.created.starts_with("2023-11-14T22:13:20"), "{answer:?}");
    let again: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/team/a%20b", body).await);
    assert!(again.replayed);

    let _: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/a", json!({"roles": []})).await);
    for _ in 0..3 {
        let _: TokenCreated = read(&send(&server, "POST", "/v1/access/tokens", json!({"user": "a"})).await);
    }
    let gone: UserRemoved = read(&server.ask("DELETE", "/v1/access/users/a", &[], b"").await);
    assert_eq!((last_op(&server), &*gone.user, gone.tokens), (AccessOp::RemoveUser(user("a")), "a", 3));
    assert_eq!(server.ask("DELETE", "/v1/access/users/a", &[], b"").await.problem().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_role_is_set_shown_and_stays_while_it_is_in_use() {
    let server = Server::start().await;
    let body = json!({"grants": [{"permission": "lock", "prefix": "jobs/ü"}, {"permission": "read", "prefix": ""}]});
    let answer: RoleAnswer = read(&send(&server, "PUT", "/v1/access/roles/jobs", body).await);
    let asked = vec![grant(Permission::Lock, "jobs/ü"), grant(Permission::Read, "")];
    assert_eq!(last_op(&server), AccessOp::SetRole { name: role("jobs"), grants: asked });
    let shown: Vec<_> = answer.grants.iter().map(|grant| (grant.permission, grant.prefix.to_string())).collect();
    assert_eq!(shown, [(PermissionView::Read, String::new()), (PermissionView::Lock, "jobs/ü".to_owned())]);
    let shown: RoleAnswer = read(&server.get("/v1/access/roles/jobs").await);
    assert_eq!((shown.grants, shown.set_revision), (answer.grants, 2));
    assert_eq!(server.get("/v1/access/roles/other").await.problem().code, ErrorCode::NotFound);

    let _: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/ann", json!({"roles": ["jobs"]})).await);
    let problem = server.ask("DELETE", "/v1/access/roles/jobs", &[], b"").await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::InUse));
    assert!(problem.detail.contains("`ann`"), "{problem:?}");
    let _: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/ann", json!({"roles": []})).await);
    let gone: RoleRemoved = read(&server.ask("DELETE", "/v1/access/roles/jobs", &[], b"").await);
    assert_eq!(gone.role, "jobs");
    assert_eq!(server.get("/v1/access/roles/jobs").await.problem().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    let server = Server::start().await;
    let missing = send(&server, "POST", "/v1/access/tokens", json!({"user": "app"})).await.problem();
    assert_eq!(missing.code, ErrorCode::NotFound);
    assert!(missing.detail.contains("no user `app`"), "{missing:?}");
    let _: UserAnswer = read(&send(&server, "PUT", "/v1/access/users/app", json!({"roles": []})).await);

    let body = json!({"user": "app", "expires_in_ms": 60_000, "note": "ci", "request_id": "t"});
    let answer: TokenCreated = read(&send(&server, "POST", "/v1/access/tokens", body).await);
    let AccessOp::AddToken(NewToken { id, user: whose, hash, expires_at, note }) = last_op(&server) else {
        panic!("not a token")
    };
    let token = TokenText::read(&answer.token.0).expect("a token");
    assert_eq!((token.id, token.hash(), id.to_string()), (id, hash, answer.id.clone()));
    assert_eq!((&*whose.to_string(), &*note, expires_at), ("app", "ci", Some(WALL + 60_000)));
    assert!(answer.expires.is_some());
    let asked = format!("{:?}", server.backend.commands());
    let secret = answer.token.0.splitn(3, '_').nth(2).expect("a secret").to_owned();
    assert!(!asked.contains(&secret) && !format!("{answer:?}").contains(&secret));

    let body = json!({"user": "app"});
    let made = send(&server, "POST", "/v1/access/tokens", body.clone()).await;
    let other: TokenCreated = read(&made);
    assert_eq!(made.header("location"), Some(&*format!("/v1/access/tokens/{}", other.id)));
    assert_ne!(other.token, answer.token);
    assert_eq!(other.expires, None);

    for (why, code, words) in [
        (Rejection::RequestIdReused, ErrorCode::RequestIdReused, "is kept nowhere"),
        (Rejection::TooMany { what: Bounded::UserTokens, limit: 256 }, ErrorCode::TooLarge, "at most 256 tokens"),
    ] {
        server.backend.come_to(Outcome::Rejected(why));
        let problem = send(&server, "POST", "/v1/access/tokens", body.clone()).await.problem();
        assert_eq!(problem.code, code);
        assert!(problem.detail.contains(words), "{problem:?}");
    }
    let path = format!("/v1/access/tokens/{}", answer.id);
    let gone: TokenRemoved = read(&server.ask("DELETE", &path, &[], b"").await);
    assert_eq!((last_op(&server), &gone.id), (AccessOp::RemoveToken(id), &answer.id));
}

#[tokio::test]
async fn lists_go_on_by_their_cursor_and_show_no_hash() {
    let server = Server::start().await;
    let set = |op| server.backend.act(Action::Access(op));
    for name in ["a", "b", "c"] {
        set(AccessOp::SetUser { name: user(name), roles: Vec::new() });
        set(AccessOp::SetRole { name: role(name), grants: Vec::new() });
    }
    for (id, of, expires_at) in [(1, "a", None), (2, "b", Some(WALL + 1)), (u64::MAX, "b", Some(FAR))] {
        let hash = SecretHash([9; 32]);
        set(AccessOp::AddToken(NewToken { id: TokenId(id), user: user(of), hash, expires_at, note: "ci".into() }));
    }
    server.backend.advance(Duration::from_millis(1));
    let first: UserList = read(&server.get("/v1/access/users?limit=2").await);
    let rest: UserList = read(&server.get("/v1/access/users?limit=2&cursor=b").await);
    assert_eq!((first.users.len(), first.cursor.as_deref()), (2, Some("b")));
    assert_eq!((rest.users.len(), rest.cursor, &*rest.users[0].user), (1, None, "c"));
    let roles: RoleList = read(&server.get("/v1/access/roles?cursor=a").await);
    assert_eq!(roles.roles.iter().map(|role| role.role.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let first: TokenList = read(&server.get("/v1/access/tokens?limit=1").await);
    assert_eq!(first.cursor.as_deref(), Some("0000000000000001"));
    let rest = server.get("/v1/access/tokens?cursor=0000000000000001").await;
    assert!(!rest.text().contains("hash") && !rest.text().contains("0909"), "{}", rest.text());
    let rest: TokenList = read(&rest);
    let ends: Vec<_> = rest.tokens.iter().map(|token| (token.expires.is_some(), token.expired)).collect();
    assert_eq!(ends, [(true, true), (true, false)]);
    let shown: UserAnswer = read(&server.get("/v1/access/users/a").await);
    assert_eq!(shown.user, "a");
    assert_eq!(server.get("/v1/access/users/z").await.problem().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_node_that_asks_nobody_lets_everybody_do_everything() {
    let server = Server::start().await;
    server.backend.act(Action::Access(AccessOp::SetUser { name: user("a"), roles: Vec::new() }));
    let answer: SelfAnswer = read(&server.get("/v1/access/self").await);
    assert_eq!(answer.user, None);
    assert_eq!(answer.grants.iter().map(|grant| grant.permission).collect::<Vec<_>>(), [PermissionView::Admin]);
    assert_eq!(answer.access_revision, 2);
}

#[tokio::test]
async fn a_command_that_was_authorised_by_other_rules_may_be_tried_again() {
    let server = Server::start().await;
    server.backend.reject_writes(Rejection::AccessChanged);
    let problem = server.put_json("/v1/kv/k", "1").await.problem();
    assert_eq!((problem.status, problem.code), (503, ErrorCode::NotReady));
}
