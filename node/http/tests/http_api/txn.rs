//! `POST /v1/txn`: what is no command, and an end that few transactions come to. Transcripts show the rest.

use quorate_api::ErrorCode;
use quorate_machine::types::{Outcome, Rejection, StepRejected};
use quorate_node_core::backend::Consistency;

use crate::raw::{JSON, Server};

const ID: (&str, &str) = ("Idempotency-Key", "t-1");

#[tokio::test]
async fn what_cannot_write_is_a_read_and_what_is_only_tried_is_too() {
    let server = Server::start().await;
    let reads = br#"{"if":[{"key":"a","exists":false}],"then":[{"op":"get","key":"a"}]}"#;
    let answer = server.ask("POST", "/v1/txn", &[JSON, ID], reads).await.json();
    assert_eq!(
        (&answer["results"][0]["entry"], &answer["dry_run"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(server.backend.commands(), []);
    server.put_json("/v1/kv/a", "{}").await;
    for (path, body) in [
        ("/v1/txn?dry_run", &br#"{"then":[{"op":"remove","key":"a"}]}"#[..]),
        ("/v1/txn", br#"{"then":[{"op":"remove","key":"a"}],"dry_run":true}"#),
    ] {
        assert_eq!(server.ask("POST", path, &[JSON, ID], body).await.json()["dry_run"], true);
    }
    assert_eq!(server.backend.asked(), 1, "that was the entry");
    assert_eq!(server.backend.barriers(), [Consistency::Linearizable; 3]);
}

#[tokio::test]
async fn what_is_too_much_as_a_whole_is_the_fault_of_no_step() {
    let server = Server::start().await;
    let why = Rejection::TooMuch { limit: 16 };
    server.backend.come_to(Outcome::TxnRejected(Box::new(StepRejected { pointer: String::new(), key: None, why })));
    let problem = server.ask("POST", "/v1/txn", &[JSON], br#"{"then":[{"op":"remove","key":"a"}]}"#).await.problem();
    assert_eq!(problem.code, ErrorCode::TooLarge);
    assert!(problem.detail.contains("more than the 16 bytes"), "{}", problem.detail);
}
