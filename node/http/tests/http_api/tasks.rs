//! Timed tasks: waiting for what is due, and words that are too long. Transcripts show the rest.

use std::time::{Duration, Instant};

use quorate_api::{ErrorCode, TaskAnswer, TaskClaimAnswer, TaskScheduled, TaskState, TaskView};
use quorate_machine::types::Command;
use serde_json::json;

use crate::raw::{JSON, Server, post, read};

/// Puts a task into the queue `q` that is due.
async fn schedule(server: &Server, id: &str) {
    let made: TaskScheduled = read(&post(server, "/v1/tasks/q", json!({"id": id})).await);
    assert!(made.created, "{made:?}");
}

/// Claims the first task of the queue `q` that is due; gives its id and its token.
async fn claim(server: &Server) -> (String, u64) {
    let claimed: TaskClaimAnswer = read(&post(server, "/v1/tasks/q/claim", json!({"worker": "w", "limit": 1})).await);
    let [task] = &claimed.tasks[..] else { panic!("{claimed:?}") };
    (task.id.clone(), task.token)
}

#[tokio::test]
async fn a_claim_waits_until_something_is_due_and_is_one_request_all_the_while() {
    let server = Server::start().await;
    let made = server.ask("POST", "/v1/tasks/q", &[JSON], br#"{"payload":{"n":1.50}}"#).await;
    assert_eq!(made.status, 201);
    let answer: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!({"limit": 2, "worker": "w"})).await);
    assert_eq!((answer.count, answer.tasks[0].token, answer.waited_ms), (1, answer.revision, 0));
    assert_eq!(answer.tasks[0].payload.as_ref().expect("a payload").0.get(), r#"{"n":1.50}"#);

    let began = Instant::now();
    let answer: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!({"wait_ms": 50})).await);
    assert!(answer.count == 0 && began.elapsed() >= Duration::from_millis(50));

    let body = json!({"wait_ms": 20_000, "request_id": "long"});
    let asked = server.backend.asked();
    let (answer, ()) = tokio::join!(post(&server, "/v1/tasks/q/claim", body), async {
        server.until_asked(asked + 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        schedule(&server, "late").await;
    });
    let answer: TaskClaimAnswer = read(&answer);
    assert!(answer.count == 1 && (50..10_000).contains(&answer.waited_ms), "{answer:?}");
    let commands = server.backend.commands();
    let is_try = |command: &&Command| command.request_id.as_ref().is_some_and(|id| id.0 == "long");
    let tries: Vec<_> = commands.iter().filter(is_try).collect();
    assert_eq!(tries.len(), 2, "{commands:?}");
    assert_eq!(tries[0].fingerprint(), tries[1].fingerprint(), "a retry is the same command");
}

#[tokio::test]
async fn a_task_is_given_out_when_its_time_has_come() {
    let server = Server::start().await;
    let body = json!({"id": "t", "delay_ms": 5_000, "max_attempts": 2});
    assert_eq!(post(&server, "/v1/tasks/q", body).await.status, 201);
    let early: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!({})).await);
    assert!(early.count == 0 && early.next_at.is_some(), "{early:?}");
    let asked = server.backend.asked();
    let (answer, ()) =
        tokio::join!(post(&server, "/v1/tasks/q/claim", json!({"wait_ms": 20_000, "lease_ms": 1_000})), async {
            server.until_asked(asked + 1).await;
            server.backend.advance(Duration::from_millis(4_999));
            server.backend.advance(Duration::from_millis(1));
        });
    let answer: TaskClaimAnswer = read(&answer);
    assert_eq!((answer.count, answer.tasks[0].attempt), (1, 1));
    // The holder does not report an outcome.
    server.backend.advance(Duration::from_millis(1_000));
    let late = json!({"id": "t", "token": answer.tasks[0].token});
    assert_eq!(post(&server, "/v1/tasks/q/complete", late).await.problem().code, ErrorCode::NotLockHolder);
    let view: TaskView = read(&server.get("/v1/tasks/q/task/t").await);
    assert_eq!((view.state, view.worker), (TaskState::Scheduled, None));
}

#[tokio::test]
async fn the_words_of_a_failure_are_kept_as_far_as_there_is_room() {
    let server = Server::start().await;
    schedule(&server, "t").await;
    let (id, token) = claim(&server).await;
    let body = json!({"id": id, "token": token, "error": "ä".repeat(4_000)});
    let _: TaskAnswer = read(&post(&server, "/v1/tasks/q/fail", body).await);
    let view: TaskView = read(&server.get("/v1/tasks/q/task/t").await);
    assert_eq!(view.last_error.map(|error| error.len()), Some(4_096));
}
