//! Tokens, which are drawn. Transcripts show users and roles.

use std::time::Duration;

use quorate_api::{ErrorCode, TokenCreated, TokenList, TokenRemoved, UserAnswer, UserRemoved};
use quorate_machine::types::{AccessOp, Action, Bounded, NewToken, Outcome, Rejection, SecretHash, TokenId, UserName};
use quorate_node_core::token_text::TokenText;
use serde_json::json;

use crate::memory_node::WALL;
use crate::raw::{Server, post, read};

/// Later than any clock shows, Unix milliseconds.
const FAR: u64 = 1 << 42;

fn user(name: &str) -> UserName {
    UserName::new(name).expect("a name")
}

fn last_op(server: &Server) -> AccessOp {
    let command = server.backend.commands().pop().expect("a command came");
    let Action::Access(op) = command.action else { panic!("not about access: {:?}", command.action) };
    assert!(command.request_id.is_some(), "it can be tried again");
    op
}

#[tokio::test]
async fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    let server = Server::start().await;
    let missing = post(&server, "/v1/access/tokens", json!({"user": "app"})).await.problem();
    assert_eq!(missing.code, ErrorCode::NotFound);
    assert!(missing.detail.contains("no user `app`"), "{missing:?}");
    let _: UserAnswer = read(&server.put_json("/v1/access/users/app", r#"{"roles":[]}"#).await);

    let body = json!({"user": "app", "expires_in_ms": 60_000, "note": "ci", "request_id": "t"});
    let answer: TokenCreated = read(&post(&server, "/v1/access/tokens", body).await);
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
    let made = post(&server, "/v1/access/tokens", body.clone()).await;
    let other: TokenCreated = read(&made);
    assert_eq!(made.header("location"), Some(&*format!("/v1/access/tokens/{}", other.id)));
    assert_ne!(other.token, answer.token);
    assert_eq!(other.expires, None);

    for (why, code, words) in [
        (Rejection::RequestIdReused, ErrorCode::RequestIdReused, "is kept nowhere"),
        (Rejection::TooMany { what: Bounded::UserTokens, limit: 256 }, ErrorCode::TooLarge, "at most 256 tokens"),
    ] {
        server.backend.come_to(Outcome::Rejected(why));
        let problem = post(&server, "/v1/access/tokens", body.clone()).await.problem();
        assert_eq!(problem.code, code);
        assert!(problem.detail.contains(words), "{problem:?}");
    }
    let path = format!("/v1/access/tokens/{}", answer.id);
    let gone: TokenRemoved = read(&server.ask("DELETE", &path, &[], b"").await);
    assert_eq!((last_op(&server), &gone.id), (AccessOp::RemoveToken(id), &answer.id));
    let gone: UserRemoved = read(&server.ask("DELETE", "/v1/access/users/app", &[], b"").await);
    assert_eq!(gone.tokens, 1, "the other token goes with its user");
}

#[tokio::test]
async fn a_list_of_tokens_goes_on_by_its_cursor_and_shows_no_hash() {
    let server = Server::start().await;
    let set = |op| server.backend.act(Action::Access(op));
    for name in ["a", "b"] {
        set(AccessOp::SetUser { name: user(name), roles: Vec::new() });
    }
    for (id, of, expires_at) in [(1, "a", None), (2, "b", Some(WALL + 1)), (u64::MAX, "b", Some(FAR))] {
        let hash = SecretHash([9; 32]);
        set(AccessOp::AddToken(NewToken { id: TokenId(id), user: user(of), hash, expires_at, note: "ci".into() }));
    }
    server.backend.advance(Duration::from_millis(1));
    let first: TokenList = read(&server.get("/v1/access/tokens?limit=1").await);
    assert_eq!(first.cursor.as_deref(), Some("0000000000000001"));
    let rest = server.get("/v1/access/tokens?cursor=0000000000000001").await;
    assert!(!rest.text().contains("hash") && !rest.text().contains("0909"), "{}", rest.text());
    let rest: TokenList = read(&rest);
    let ends: Vec<_> = rest.tokens.iter().map(|token| (token.expires.is_some(), token.expired)).collect();
    assert_eq!(ends, [(true, true), (true, false)]);
}

#[tokio::test]
async fn a_command_that_was_authorised_by_other_rules_may_be_tried_again() {
    let server = Server::start().await;
    server.backend.reject_writes(Rejection::AccessChanged);
    let problem = server.put_json("/v1/kv/k", "1").await.problem();
    assert_eq!((problem.status, problem.code), (503, ErrorCode::NotReady));
}
