//! Timed tasks: what is asked of the cluster, how its reply is shown, every fault of input, and waiting for what is due.

use std::time::{Duration, Instant};

use quorate_api::{
    Applied, ErrorCode, QueueList, QueueStats, TaskAnswer, TaskCancel, TaskClaim, TaskClaimAnswer, TaskComplete,
    TaskExtend, TaskFail, TaskList, TaskRequeue, TaskScheduled, TaskSpec, TaskState as Shown, TaskView, TasksRequeued,
    TasksScheduled,
};
use quorate_machine::types::{
    Action, AfterFailure, ContentKind, NewTask, Recurrence, Requeue, RetryPlan, Start, TaskId, TaskVerb, Value,
};
use serde_json::json;

use crate::raw::{Response, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn post(server: &Server, route: &str, body: serde_json::Value) -> Response {
    server.ask("POST", route, &[JSON], body.to_string().as_bytes()).await
}

fn read<T: serde::de::DeserializeOwned>(response: &Response) -> T {
    assert!(matches!(response.status, 200 | 201), "{response:?}");
    assert_eq!(response.status == 201, response.header("location").is_some(), "{response:?}");
    response.carries_the_common_headers();
    serde_json::from_slice(&response.body).unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

fn id(text: &str) -> TaskId {
    TaskId::new(text).expect("an id")
}

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

/// Claims a task and lets it die; gives its id.
async fn kill(server: &Server) -> String {
    let (id, token) = claim(server).await;
    let body = json!({"id": id, "token": token, "dead": true});
    let done: TaskAnswer = read(&post(server, "/v1/tasks/q/fail", body).await);
    assert_eq!(done.state, Shown::Dead);
    id
}

fn last_verb(server: &Server) -> (String, TaskVerb) {
    match server.backend.commands().pop().expect("a command came").action {
        Action::Task(op) => (op.queue.to_string(), op.verb),
        other => panic!("not about tasks: {other:?}"),
    }
}

fn last_tasks(server: &Server) -> Vec<NewTask> {
    match last_verb(server).1 {
        TaskVerb::Schedule(tasks) => tasks,
        TaskVerb::ScheduleOne(task) => vec![task],
        other => panic!("not a schedule: {other:?}"),
    }
}

#[tokio::test]
async fn a_schedule_says_all_that_was_asked_for() {
    let server = Server::start().await;
    let body = json!({"id": "a/b", "payload": {"n": 1}, "execute_at": "2026-11-21T08:00:00.0001Z", "every_ms": 5_000,
        "max_attempts": 7, "backoff": {"initial_ms": 10, "max_ms": 100, "factor": 1.5}, "keep_ms": 0, "replace": true});
    let answer: TaskScheduled = read(&post(&server, "/v1/tasks/mail%2Fout", body).await);
    assert!(answer.created && answer.revision.is_some() && answer.execute_at.is_some(), "{answer:?}");
    assert_eq!(last_verb(&server).0, "mail/out");
    let [task] = &last_tasks(&server)[..] else { panic!("one task") };
    let retry = RetryPlan { max_attempts: 7, initial_ms: 10, max_ms: 100, factor_milli: 1_500 };
    // A part of a millisecond counts as a whole one: not early.
    let start = Start::At(1_795_248_000_001);
    let expected = NewTask {
        id: Some(id("a/b")),
        payload: Value { kind: ContentKind::Json, data: b"{\"n\":1}".to_vec() },
        start,
        recurrence: Some(Recurrence::Every(5_000)),
        retry,
        keep_ms: 0,
        replace: true,
    };
    assert_eq!(*task, expected);

    for (body, start) in [
        (json!({}), Start::In(0)),
        (json!({"delay_ms": 7}), Start::In(7)),
        (json!({"execute_at": 1_795_248_000_001_u64}), Start::At(1_795_248_000_001)),
        (json!({"every_ms": 700}), Start::In(700)),
        (json!({"every_ms": 700, "delay_ms": 0}), Start::In(0)),
        (json!({"cron": "* * * * *", "zone": "Europe/Berlin"}), Start::Planned),
    ] {
        let _: TaskScheduled = read(&post(&server, "/v1/tasks/q", body.clone()).await);
        let [task] = &last_tasks(&server)[..] else { panic!("one task") };
        assert_eq!((task.start, task.keep_ms), (start, 900_000), "{body}");
        assert_eq!(task.payload.data, b"null");
    }
    let list = json!({"tasks": [{"payload_base64": "/wA="}, {"id": "x"}], "request_id": "r"});
    let answer: TasksScheduled = read(&post(&server, "/v1/tasks/q", list).await);
    assert_eq!((answer.tasks.len(), answer.created), (2, 2));
    assert_eq!(last_tasks(&server)[0].payload, Value { kind: ContentKind::Bytes, data: b"\xff\0".to_vec() });
    assert_eq!(server.backend.commands().pop().expect("a command").request_id.expect("an id").0, "r");
}

#[tokio::test]
async fn every_fault_of_a_schedule_is_told() {
    let server = Server::start().await;
    for (body, pointers) in [
        (json!([]), &[""][..]),
        (json!({"colour": 1}), &["/colour"]),
        (json!({"id": "~x"}), &["/id"]),
        (json!({"id": ""}), &["/id"]),
        (json!({"id": 7, "payload": 1, "payload_base64": "x"}), &["/id"]),
        (json!({"id": "", "payload": 1, "payload_base64": "x"}), &["/id", "/payload_base64"]),
        (json!({"payload_base64": "?"}), &["/payload_base64"]),
        (json!({"execute_at": "tomorrow", "delay_ms": -1}), &["/delay_ms"]),
        (json!({"execute_at": "tomorrow", "delay_ms": 1}), &["/execute_at", "/delay_ms"]),
        (json!({"execute_at": "1969-12-31T23:59:59Z"}), &["/execute_at"]),
        (json!({"execute_at": "1795248000001"}), &["/execute_at"]),
        (json!({"execute_at": 253_402_300_800_000_u64}), &["/execute_at"]),
        (json!({"execute_at": -1}), &["/execute_at"]),
        (json!({"every_ms": 99}), &["/every_ms"]),
        (json!({"zone": "UTC"}), &["/zone"]),
        (json!({"cron": "* * * * *", "every_ms": 1_000, "delay_ms": 1}), &["/delay_ms", "/every_ms"]),
        (json!({"cron": "0 0 31 2 *"}), &["/cron"]),
        (json!({"cron": "* * *"}), &["/cron"]),
        (json!({"cron": "* * * * *", "zone": "Nowhere"}), &["/zone"]),
        (json!({"max_attempts": 0}), &["/max_attempts"]),
        (json!({"backoff": {"factor": 0.5, "initial_ms": "1"}}), &["/backoff/initial_ms"]),
        (json!({"backoff": {"factor": 0.5, "x": 1}}), &["/backoff/x"]),
        (json!({"backoff": [1, 2]}), &["/backoff"]),
        (json!({"backoff": {"factor": 0.5, "initial_ms": u64::MAX}}), &["/backoff/initial_ms", "/backoff/factor"]),
        (json!({"keep_ms": 604_800_001_u64}), &["/keep_ms"]),
        (json!({"keep_ms": 604_800_001_u64, "replace": 1}), &["/replace"]),
        (json!({"tasks": []}), &["/tasks"]),
        (json!({"tasks": 1}), &["/tasks"]),
        (json!({"tasks": [{}, {"id": ""}, {"request_id": "r"}]}), &["/tasks/1/id", "/tasks/2/request_id"]),
    ] {
        let problem = post(&server, "/v1/tasks/q", body.clone()).await.problem();
        let found: Vec<_> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(found, pointers, "{body}: {problem:?}");
    }
    assert!(server.backend.commands().is_empty(), "nothing was changed");
    let problem = post(&server, &format!("/v1/tasks/{}", "x".repeat(257)), json!({})).await.problem();
    assert_eq!(problem.errors[0].pointer, "path:queue");
    assert_eq!(post(&server, "/v1/tasks/q/unknown", json!({})).await.problem().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_task_that_is_not_scheduled_is_told_apart_from_one_that_was_scheduled_before() {
    let server = Server::start().await;
    let again = async |replace: bool| {
        let response = post(&server, "/v1/tasks/q", json!({"id": "t", "replace": replace})).await;
        assert!(matches!(last_verb(&server).1, TaskVerb::ScheduleOne(_)), "it may be refused");
        response
    };
    let refused = |response: Response, why: &str| {
        let problem = response.problem();
        assert_eq!((problem.status, problem.code), (409, ErrorCode::AlreadyExists), "{problem:?}");
        assert_eq!(problem.applied, Applied::No);
        assert!(problem.detail.contains(why) && problem.revision.is_some(), "{problem:?}");
    };
    schedule(&server, "t").await;
    assert!(!read::<TaskScheduled>(&again(false).await).created);
    let (id, token) = claim(&server).await;
    assert!(!read::<TaskScheduled>(&again(false).await).created);
    refused(again(true).await, "is worked on");
    let done: TaskAnswer = read(&post(&server, "/v1/tasks/q/complete", json!({"id": id, "token": token})).await);
    assert_eq!(done.state, Shown::Done);
    assert!(!read::<TaskScheduled>(&again(false).await).created);
    refused(again(true).await, "was completed");

    schedule(&server, "dead").await;
    kill(&server).await;
    refused(post(&server, "/v1/tasks/q", json!({"id": "dead"})).await, "is dead: requeue it");
    // Each of a list says for itself what came of it.
    let answer: TasksScheduled = read(&post(&server, "/v1/tasks/q", json!({"tasks": [{"id": "dead"}]})).await);
    assert_eq!((answer.created, answer.tasks[0].state), (0, Shown::Dead));
    assert!(matches!(last_verb(&server).1, TaskVerb::Schedule(_)), "nothing of it is refused");
}

#[tokio::test]
async fn verbs_ask_for_what_they_say() {
    let server = Server::start().await;
    let _: TaskScheduled = read(&post(&server, "/v1/tasks/q", json!({"id": "t", "keep_ms": 0})).await);
    let (_, token) = claim(&server).await;
    let body = json!({"id": "t", "token": token.to_string(), "lease_ms": 5_000});
    let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/extend", body).await);
    assert_eq!((answer.state, answer.lease_ms, answer.execute_at), (Shown::Claimed, Some(5_000), None));
    let TaskVerb::Extend { ticket: asked, lease_ms } = last_verb(&server).1 else { panic!("not an extension") };
    assert_eq!((asked.token, lease_ms), (token, 5_000));

    let ticket = json!({"id": "t", "token": token});
    let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/complete", ticket.clone()).await);
    assert_eq!(answer.state, Shown::Gone);
    for (id, more, expected, state) in [
        ("a", json!({}), AfterFailure::Retry, Shown::Scheduled),
        ("b", json!({"retry_in_ms": 9}), AfterFailure::RetryIn(9), Shown::Scheduled),
        ("c", json!({"dead": true}), AfterFailure::Die, Shown::Dead),
        ("d", json!({"release": true, "dead": false}), AfterFailure::GiveBack, Shown::Scheduled),
    ] {
        schedule(&server, id).await;
        let (claimed, token) = claim(&server).await;
        assert_eq!(claimed, id);
        let mut body = json!({"id": id, "token": token, "error": "ä".repeat(4_000)});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/fail", body).await);
        assert_eq!((answer.state, answer.execute_at.is_some()), (state, state == Shown::Scheduled), "{answer:?}");
        let TaskVerb::Fail { error, then, .. } = last_verb(&server).1 else { panic!("not a failure") };
        assert_eq!((then, error.len()), (expected, 4_096));
    }
    // Tasks that were given back are due again.
    assert_eq!(kill(&server).await, "d");
    let answer: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!({"limit": 1})).await);
    assert_eq!((answer.count, answer.more), (1, true));
    let answer: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!({})).await);
    assert_eq!((answer.count, answer.more), (1, false));
    assert_eq!(last_verb(&server).1, TaskVerb::Requeue(Requeue::Oldest(100)));
    let dead = kill(&server).await;
    let answer: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!({"id": dead})).await);
    assert_eq!(answer.count, 1);

    for (verb, body, pointer) in [
        ("extend", json!({"id": "t", "token": 7, "lease_ms": 999}), "/lease_ms"),
        ("complete", json!({"id": "t"}), "/token"),
        ("complete", json!({"token": 7}), "/id"),
        ("fail", json!({"id": "t", "token": 7, "dead": true, "release": true}), ""),
        ("cancel", json!({}), "/id"),
        ("requeue", json!({"id": "t", "limit": 1}), "/limit"),
        ("requeue", json!({"limit": 1_001}), "/limit"),
        ("claim", json!({"limit": 101}), "/limit"),
        ("claim", json!({"wait_ms": 60_001}), "/wait_ms"),
        ("claim", json!({"worker": "x".repeat(257)}), "/worker"),
    ] {
        let problem = post(&server, &format!("/v1/tasks/q/{verb}"), body.clone()).await.problem();
        assert_eq!(problem.errors[0].pointer, pointer, "{verb} {body}: {problem:?}");
    }
    let problem = post(&server, "/v1/tasks/q/complete", ticket).await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::NotLockHolder));
    let problem = post(&server, "/v1/tasks/q/cancel", json!({"id": "t"})).await.problem();
    assert_eq!(&*problem.detail, "the queue `q` has no task `t`");
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
    let is_try =
        |command: &&quorate_machine::types::Command| command.request_id.as_ref().is_some_and(|id| id.0 == "long");
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
    assert_eq!((view.state, view.worker), (Shown::Scheduled, None));
}

#[tokio::test]
async fn tasks_and_queues_are_shown() {
    let server = Server::start().await;
    let body = json!({"id": "a/b", "payload_base64": "/wA=", "every_ms": 5_000, "delay_ms": 0});
    assert_eq!(post(&server, "/v1/tasks/q", body).await.status, 201);
    claim(&server).await;
    for id in ["c", "e"] {
        schedule(&server, id).await;
        assert_eq!(kill(&server).await, id);
    }
    assert_eq!(post(&server, "/v1/tasks/q", json!({"id": "f", "delay_ms": 1_000})).await.status, 201);
    assert_eq!(post(&server, "/v1/tasks/r", json!({"id": "d"})).await.status, 201);
    let claimed: TaskClaimAnswer = read(&post(&server, "/v1/tasks/r/claim", json!({})).await);
    let ticket = json!({"id": "d", "token": claimed.tasks[0].token});
    assert_eq!(post(&server, "/v1/tasks/r/complete", ticket).await.status, 200);

    let view: TaskView = read(&server.get("/v1/tasks/q/task/a%2Fb").await);
    assert_eq!(
        (&*view.id, view.state, view.worker.as_deref(), view.every_ms),
        ("a/b", Shown::Claimed, Some("w"), Some(5_000))
    );
    assert!(view.lease_ms.is_some() && view.payload_base64.as_deref() == Some("/wA="), "{view:?}");
    assert!(!server.get("/v1/tasks/q/task/a%2Fb").await.text().contains("token"), "the token is its holder's");
    let view: TaskView = read(&server.get("/v1/tasks/r/task/d").await);
    assert!(view.kept_ms.is_some() && view.payload_base64.is_none(), "{view:?}");
    assert_eq!(server.get("/v1/tasks/q/task/none").await.problem().code, ErrorCode::NotFound);
    assert_eq!(server.get("/v1/tasks/q/task/").await.problem().errors[0].pointer, "path:id");

    let ids = |pages: &[&TaskList]| {
        let mut ids: Vec<_> = pages.iter().flat_map(|page| page.tasks.iter().map(|task| task.id.clone())).collect();
        ids.sort_unstable();
        ids
    };
    let page: TaskList = read(&server.get("/v1/tasks/q?state=dead&limit=1").await);
    let cursor = page.cursor.as_ref().expect("there is one more");
    let rest: TaskList = read(&server.get(&format!("/v1/tasks/q?state=dead&cursor={cursor}")).await);
    assert_eq!((page.tasks.len(), rest.tasks.len(), &rest.cursor), (1, 1, &None));
    assert_eq!(ids(&[&page, &rest]), ["c", "e"]);
    let all: TaskList = read(&server.get("/v1/tasks/q?state=all").await);
    assert_eq!(ids(&[&all]), ["a/b", "c", "e", "f"]);
    for (query, pointer) in
        [("state=x", "query:state"), ("limit=0", "query:limit"), ("cursor=x", "query:cursor"), ("x", "query:x")]
    {
        assert_eq!(server.get(&format!("/v1/tasks/q?{query}")).await.problem().errors[0].pointer, pointer);
    }
    let queues: QueueList = read(&server.get("/v1/tasks?limit=1").await);
    assert_eq!((&*queues.queues[0].queue, queues.cursor.as_deref()), ("q", Some("q")));
    let queues: QueueList = read(&server.get("/v1/tasks?cursor=q").await);
    assert_eq!((queues.queues.len(), &*queues.queues[0].queue), (1, "r"));
    let stats: QueueStats = read(&server.get("/v1/tasks/q/stats").await);
    assert_eq!((stats.scheduled, stats.next_at.is_some()), (1, true));
}

#[tokio::test]
async fn all_fields_of_the_wire_types_are_understood() {
    let server = Server::start().await;
    let spec = TaskSpec {
        id: Some("x".into()),
        delay_ms: Some(1),
        every_ms: Some(100),
        max_attempts: Some(1),
        backoff: serde_json::from_str("{}").ok(),
        keep_ms: Some(1),
        replace: true,
        request_id: Some("s".into()),
        ..TaskSpec::default()
    };
    let _: TaskScheduled = read(&post(&server, "/v1/tasks/q", json!(spec)).await);
    let session = post(&server, "/v1/sessions", json!({})).await.json()["session"].as_str().map(str::to_owned);
    server.backend.advance(Duration::from_millis(1));
    let claimed = TaskClaim {
        limit: Some(1),
        lease_ms: Some(1_000),
        worker: Some("w".into()),
        session,
        wait_ms: Some(0),
        request_id: Some("c".into()),
    };
    let answer: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!(claimed)).await);
    assert_eq!(answer.count, 1);
    let ticket = async |id: &str| {
        schedule(&server, id).await;
        claim(&server).await
    };
    let rid = |text: &str| Some(text.to_owned());
    let (id, token) = ticket("a").await;
    let extend = TaskExtend { id, token, lease_ms: Some(1_000), request_id: rid("r") };
    let _: TaskAnswer = read(&post(&server, "/v1/tasks/q/extend", json!(extend)).await);
    let (id, token) = ticket("b").await;
    let complete = TaskComplete { id, token, request_id: rid("r2") };
    let _: TaskAnswer = read(&post(&server, "/v1/tasks/q/complete", json!(complete)).await);
    let (id, token) = ticket("c").await;
    let fail =
        TaskFail { id, token, error: Some("e".into()), dead: true, request_id: rid("r3"), ..TaskFail::default() };
    let _: TaskAnswer = read(&post(&server, "/v1/tasks/q/fail", json!(fail)).await);
    let cancel = TaskCancel { id: "a".into(), request_id: rid("r4") };
    let _: TaskAnswer = read(&post(&server, "/v1/tasks/q/cancel", json!(cancel)).await);
    let requeue = TaskRequeue { id: None, limit: Some(1), request_id: rid("r5") };
    let requeued: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!(requeue)).await);
    assert_eq!(requeued.count, 1);
}
