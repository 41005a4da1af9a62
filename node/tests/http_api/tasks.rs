//! Timed tasks: what is asked of the cluster, how its reply is shown, every fault of input, and waiting for what is due.

use std::time::{Duration, Instant};

use quorate_api::{
    Applied, ErrorCode, QueueList, QueueStats, TaskAnswer, TaskCancel, TaskClaim, TaskClaimAnswer, TaskComplete,
    TaskExtend, TaskFail, TaskList, TaskRequeue, TaskScheduled, TaskSpec, TaskState as Shown, TaskView, TasksRequeued,
    TasksScheduled,
};
use quorate_machine::keyspace::task::TaskRow;
use quorate_machine::query::TaskFilter;
use quorate_machine::types::{
    Action, AfterFailure, ClaimedTask, ContentKind, NewTask, Outcome, Recurrence, Rejection, Requeue, RetryPlan,
    ScheduledTask, Start, TaskHead, TaskId, TaskReply, TaskState, TaskSummary, TaskVerb, TasksClaimed, Value,
};
use serde_json::json;

use crate::fake::WALL;
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

fn summary(text: &str, state: TaskState) -> TaskSummary {
    TaskSummary { id: id(text), state: Some(state), due: WALL, attempts: 1, max_attempts: 20 }
}

fn come_to(server: &Server, done: TaskReply) {
    server.backend.come_to(Outcome::Task(Box::new(done)));
}

fn scheduled(count: usize) -> TaskReply {
    let task =
        |n| ScheduledTask { task: summary(&format!("t{n}"), TaskState::Scheduled), created: true, replaced: false };
    TaskReply::Scheduled((0..count).map(task).collect())
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

fn claimed(count: usize) -> TaskReply {
    let task = |n| ClaimedTask {
        id: id(&format!("t{n}")),
        attempt: 1,
        max_attempts: 20,
        due: WALL,
        planned: WALL,
        lease_left_ms: 30_000,
        last_error: None,
        payload: Some(Value { kind: ContentKind::Json, data: b"{\"n\":1.50}".to_vec() }),
    };
    TaskReply::Claimed(TasksClaimed { tasks: (0..count).map(task).collect(), wall: WALL, ..TasksClaimed::default() })
}

fn row(state: TaskState) -> TaskRow {
    let head = TaskHead {
        state,
        due: WALL,
        number: 1,
        planned: WALL,
        attempts: 1,
        retry: RetryPlan::default(),
        recurrence: Some(Recurrence::Every(5_000)),
        last_error: Some("no".into()),
        keep_ms: 0,
        created: WALL,
        revision: 1,
        runs: 3,
    };
    TaskRow { head, payload: Value { kind: ContentKind::Bytes, data: b"\xff\0".to_vec() } }
}

#[tokio::test]
async fn a_schedule_says_all_that_was_asked_for() {
    let server = Server::start().await;
    come_to(&server, scheduled(1));
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
        come_to(&server, scheduled(1));
        let _: TaskScheduled = read(&post(&server, "/v1/tasks/q", body.clone()).await);
        let [task] = &last_tasks(&server)[..] else { panic!("one task") };
        assert_eq!((task.start, task.keep_ms), (start, 900_000), "{body}");
        assert_eq!(task.payload.data, b"null");
    }
    come_to(&server, scheduled(2));
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
    let there = |state| ScheduledTask { task: summary("t", state), created: false, replaced: false };
    let claimed = || TaskState::Claimed { token: 7, until: 1, worker: "w".into(), session: None };
    for state in [TaskState::Scheduled, claimed(), TaskState::Done { until: 1 }] {
        come_to(&server, TaskReply::Scheduled(vec![there(state)]));
        assert!(!read::<TaskScheduled>(&post(&server, "/v1/tasks/q", json!({"id": "t"})).await).created);
        assert!(matches!(last_verb(&server).1, TaskVerb::ScheduleOne(_)), "it may be refused");
    }
    for (state, why) in [
        (TaskState::Dead { at: WALL }, "is dead: requeue it"),
        (claimed(), "is worked on"),
        (TaskState::Done { until: 1 }, "was completed"),
    ] {
        server.backend.come_to(Outcome::Rejected(Rejection::TaskInUse(Box::new(summary("t", state)))));
        let problem = post(&server, "/v1/tasks/q", json!({"id": "t"})).await.problem();
        assert_eq!((problem.status, problem.code), (409, ErrorCode::AlreadyExists), "{problem:?}");
        assert_eq!(problem.applied, Applied::No);
        assert!(problem.detail.contains(why) && problem.revision.is_some(), "{problem:?}");
    }
    // Each of a list says for itself what came of it.
    come_to(&server, TaskReply::Scheduled(vec![there(TaskState::Dead { at: WALL })]));
    let answer: TasksScheduled = read(&post(&server, "/v1/tasks/q", json!({"tasks": [{"id": "t"}]})).await);
    assert_eq!((answer.created, answer.tasks[0].state), (0, Shown::Dead));
    assert!(matches!(last_verb(&server).1, TaskVerb::Schedule(_)), "nothing of it is refused");
}

#[tokio::test]
async fn verbs_ask_for_what_they_say() {
    let server = Server::start().await;
    let ticket = json!({"id": "t", "token": 7});
    come_to(
        &server,
        TaskReply::Changed(summary("t", TaskState::Claimed { token: 7, until: 1, worker: "w".into(), session: None })),
    );
    let body = json!({"id": "t", "token": "7", "lease_ms": 5_000});
    let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/extend", body).await);
    assert_eq!((answer.state, answer.lease_ms, answer.execute_at), (Shown::Claimed, Some(5_000), None));
    let TaskVerb::Extend { ticket: asked, lease_ms } = last_verb(&server).1 else { panic!("not an extension") };
    assert_eq!((asked.token, lease_ms), (7, 5_000));

    come_to(&server, TaskReply::Changed(TaskSummary { state: None, ..summary("t", TaskState::Scheduled) }));
    let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/complete", ticket.clone()).await);
    assert_eq!(answer.state, Shown::Gone);
    for (more, expected) in [
        (json!({}), AfterFailure::Retry),
        (json!({"retry_in_ms": 9}), AfterFailure::RetryIn(9)),
        (json!({"dead": true}), AfterFailure::Die),
        (json!({"release": true, "dead": false}), AfterFailure::GiveBack),
    ] {
        come_to(&server, TaskReply::Changed(summary("t", TaskState::Scheduled)));
        let mut body = json!({"id": "t", "token": 7, "error": "ä".repeat(4_000)});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let answer: TaskAnswer = read(&post(&server, "/v1/tasks/q/fail", body).await);
        assert!(answer.execute_at.is_some());
        let TaskVerb::Fail { error, then, .. } = last_verb(&server).1 else { panic!("not a failure") };
        assert_eq!((then, error.len()), (expected, 4_096));
    }
    come_to(&server, TaskReply::Requeued { count: 3, more: true });
    let answer: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!({})).await);
    assert_eq!((answer.count, answer.more), (3, true));
    assert_eq!(last_verb(&server).1, TaskVerb::Requeue(Requeue::Oldest(100)));
    come_to(&server, TaskReply::Changed(summary("t", TaskState::Scheduled)));
    let answer: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!({"id": "t"})).await);
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
    server.backend.come_to(Outcome::Rejected(Rejection::NotHolder));
    let problem = post(&server, "/v1/tasks/q/complete", ticket).await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::NotLockHolder));
    server.backend.come_to(Outcome::Rejected(Rejection::NotFound));
    let problem = post(&server, "/v1/tasks/q/cancel", json!({"id": "t"})).await.problem();
    assert_eq!(&*problem.detail, "the queue `q` has no task with this id");
}

#[tokio::test]
async fn a_claim_waits_until_something_is_due_and_is_one_request_all_the_while() {
    let server = Server::start().await;
    come_to(&server, claimed(1));
    let answer: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!({"limit": 2, "worker": "w"})).await);
    assert_eq!((answer.count, answer.tasks[0].token, answer.waited_ms), (1, answer.revision, 0));
    assert_eq!(answer.tasks[0].payload.as_ref().expect("a payload").0.get(), r#"{"n":1.50}"#);

    come_to(&server, claimed(0));
    let began = Instant::now();
    let answer: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!({"wait_ms": 50})).await);
    assert!(answer.count == 0 && began.elapsed() >= Duration::from_millis(50));

    come_to(&server, claimed(0));
    let body = json!({"wait_ms": 20_000, "request_id": "long"});
    let asked = server.backend.commands().len();
    let (answer, ()) = tokio::join!(post(&server, "/v1/tasks/q/claim", body), async {
        server.until_asked(asked + 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        come_to(&server, claimed(1));
    });
    let answer: TaskClaimAnswer = read(&answer);
    assert!(answer.count == 1 && (50..10_000).contains(&answer.waited_ms), "{answer:?}");
    let commands = server.backend.commands();
    let tries: Vec<_> = commands.iter().rev().take(2).collect();
    assert!(tries.iter().all(|command| command.request_id.as_ref().is_some_and(|id| id.0 == "long")), "{tries:?}");
    assert_eq!(tries[0].fingerprint(), tries[1].fingerprint(), "a retry is the same command");
}

#[tokio::test]
async fn tasks_and_queues_are_shown() {
    let server = Server::start().await;
    server.backend.add_task(
        "q",
        "a/b",
        row(TaskState::Claimed { token: 9, until: 70_000, worker: "w".into(), session: None }),
    );
    server.backend.add_task("q", "c", row(TaskState::Dead { at: WALL + 1 }));
    server.backend.add_task("r", "d", row(TaskState::Done { until: 70_000 }));
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

    let page: TaskList = read(&server.get("/v1/tasks/q?state=dead&limit=1").await);
    assert_eq!(page.tasks.len(), 1);
    let cursor = page.cursor.expect("there is one more");
    let _: TaskList = read(&server.get(&format!("/v1/tasks/q?state=all&cursor={cursor}")).await);
    let queries = server.backend.task_queries();
    assert_eq!((queries[0].filter, queries[0].limit, &queries[0].after), (TaskFilter::Dead, 1, &None));
    assert_eq!((queries[1].filter, queries[1].after.as_deref()), (TaskFilter::All, Some(&b"behind the first"[..])));
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
    assert_eq!((stats.scheduled, stats.next_at.is_some()), (2, true));
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
    come_to(&server, scheduled(1));
    let _: TaskScheduled = read(&post(&server, "/v1/tasks/q", json!(spec)).await);
    let rid = || Some("r".to_owned());
    let (t, token) = ("t".to_owned(), 7);
    let claim = TaskClaim {
        limit: Some(1),
        lease_ms: Some(1_000),
        worker: Some("w".into()),
        session: Some("3".into()),
        wait_ms: Some(0),
        request_id: Some("c".into()),
    };
    come_to(&server, claimed(1));
    let _: TaskClaimAnswer = read(&post(&server, "/v1/tasks/q/claim", json!(claim)).await);
    let bodies = [
        ("extend", json!(TaskExtend { id: t.clone(), token, lease_ms: Some(1_000), request_id: rid() })),
        ("complete", json!(TaskComplete { id: t.clone(), token, request_id: Some("r2".into()) })),
        (
            "fail",
            json!(TaskFail {
                id: t.clone(),
                token,
                error: Some("e".into()),
                dead: true,
                request_id: Some("r3".into()),
                ..TaskFail::default()
            }),
        ),
        ("cancel", json!(TaskCancel { id: t.clone(), request_id: Some("r4".into()) })),
    ];
    for (verb, body) in bodies {
        come_to(&server, TaskReply::Changed(summary("t", TaskState::Scheduled)));
        let _: TaskAnswer = read(&post(&server, &format!("/v1/tasks/q/{verb}"), body).await);
    }
    come_to(&server, TaskReply::Requeued { count: 0, more: false });
    let requeue = TaskRequeue { id: None, limit: Some(1), request_id: Some("r5".into()) };
    let _: TasksRequeued = read(&post(&server, "/v1/tasks/q/requeue", json!(requeue)).await);
}
