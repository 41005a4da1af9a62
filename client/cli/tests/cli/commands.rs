//! The built `quorate`: output, messages, exit codes.

use std::process::{Output, Stdio};

use quorate_client::api::{Applied, ErrorCode, OpKind, Problem};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fake::{Act, CLUSTER, Fake, entry, nobody};

/// `quorate` against these endpoints, which ends with its test.
pub fn command(endpoints: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["--endpoints", endpoints]).args(arguments).kill_on_drop(true);
    command
}

/// Runs `quorate`, gives its output as it is.
pub async fn quorate(endpoints: &str, arguments: &[&str]) -> Output {
    command(endpoints, arguments).output().await.expect("the binary runs")
}

/// What a run of `quorate` left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs `quorate` against these endpoints.
pub async fn run(endpoints: &str, arguments: &[&str]) -> Ran {
    let output = quorate(endpoints, arguments).await;
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code().expect("an exit code"), out: text(output.stdout), err: text(output.stderr) }
}

/// A logger that ended must not end a worker, nor anything else.
#[tokio::test]
async fn nobody_has_to_listen_to_what_is_said_beside_the_output() {
    let down = nobody();
    let mut get = command(&down, &["--timeout", "200ms", "get", "k"]);
    get.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut started = get.spawn().expect("the binary runs");
    drop(started.stderr.take());
    let ended = started.wait().await.expect("it ends");
    let heard = run(&down, &["--timeout", "200ms", "get", "k"]).await;
    assert!(!heard.err.is_empty(), "{heard:?}");
    assert_eq!(ended.code(), Some(heard.code));
}

#[tokio::test]
async fn values_are_written_and_read() {
    let fake = Fake::start().await;
    let put = run(&fake.address, &["put", "k", r#"{"n": 1}"#, "--ttl", "1m30s", "--cas", "7"]).await;
    assert_eq!((put.code, put.out.as_str()), (0, "written: k  cas 8, version 2, revision 8\n"), "{}", put.err);
    let op = fake.seen()[0].op.clone().expect("an operation");
    assert_eq!((op.op, op.ttl_ms, op.cas.as_deref()), (OpKind::Replace, Some(90_000), Some("7")));
    assert_eq!(op.value.expect("is there").0.get(), r#"{"n": 1}"#);
    assert_eq!(fake.streams(), 0, "a single operation goes by itself");
    let get = run(&fake.address, &["get", "k"]).await;
    assert_eq!(get.out, "{\"n\":1}\n", "what is known of it is for terminals");
    let raw = run(&fake.address, &["get", "k", "--raw"]).await;
    assert_eq!(raw.out, "{\"n\":1}");
}

#[tokio::test]
async fn json_output_is_the_json_of_the_api() {
    let fake = Fake::start().await;
    let get = run(&fake.address, &["get", "k", "--output", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&get.out).expect("JSON"), entry("k", &json!({"n": 1}), "7"));
    fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
    let rm = run(&fake.address, &["delete", "k", "--output", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&rm.err).expect("JSON")["code"], "not_found");
    assert_eq!((rm.code, rm.out.as_str()), (3, ""));
}

#[tokio::test]
async fn an_unmet_condition_is_exit_code_3_and_shows_the_entry() {
    let fake = Fake::start().await;
    let mut problem = Problem::new(ErrorCode::CasMismatch, Applied::No, "the cas is 9, not 7");
    problem.current = Some(serde_json::from_value(entry("k", &json!(5), "9")).expect("an entry"));
    fake.script([Act::refuse(problem)]);
    let cas = run(&fake.address, &["cas", "k", "7", "4"]).await;
    assert_eq!(cas.code, 3);
    for expected in ["the cas is 9, not 7", "current: 5  cas 9", "applied: no"] {
        assert!(cas.err.contains(expected), "{expected}: {}", cas.err);
    }
    for (code, arguments) in [
        (ErrorCode::AlreadyExists, ["insert", "k", "1"].as_slice()),
        (ErrorCode::NotFound, &["get", "k"]),
        (ErrorCode::NotFound, &["request", "id-1"]),
        (ErrorCode::ConditionNotMet, &["delete", "k"]),
    ] {
        fake.script([Act::problem(code, Applied::No)]);
        assert_eq!(run(&fake.address, arguments).await.code, 3, "{code:?} {arguments:?}");
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_exit_code_2_and_nothing_is_sent() {
    let fake = Fake::start().await;
    let ran = run(&fake.address, &["find", "--where", "status ~ pending"]).await;
    assert!(ran.code == 2 && ran.err.contains("`~` is no operator; there are: eq neq"), "{}", ran.err);
    for (arguments, hint) in [
        (["put", "k", "hello"].as_slice(), "--string"),
        (&["put", "k", "@/no/such/file"], "/no/such/file"),
        (&["put", "k", "1", "--ttl", "10"], "10s"),
        (&["put", "k", "1", "--cas", "7", "--if-absent"], "--if-absent"),
        (&["cas", "k", "seven", "1"], "decimal"),
        (&["get", ""], "key"),
        (&["bench", "--mix", "put=0"], "shares"),
        (&["--request-id", "a b", "delete", "k"], "printable"),
        (&["fly"], "fly"),
    ] {
        let ran = run(&fake.address, arguments).await;
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(hint), "{arguments:?}: {}", ran.err);
    }
    // A variable that nobody set is not the local cluster.
    for endpoints in ["localhost", "", " , "] {
        assert_eq!(run(endpoints, &["get", "k"]).await.code, 2, "{endpoints:?}");
    }
    assert!(fake.seen().is_empty(), "{:?}", fake.seen());
}

#[tokio::test]
async fn what_only_a_node_can_see_is_told_by_the_name_of_the_argument() {
    let fake = Fake::start().await;
    for (arguments, said, told) in [
        (
            &["get", "k", "--revision", "999"][..],
            "query:revision: revision 999 does not exist yet",
            "error: --revision: revision",
        ),
        (&["session", "show", "x"], "path:session: must be a number", "error: session: must be"),
        (&["task", "schedule", "q", "1", "--cron", "x"], "/cron: no pattern", "error: --cron: no pattern"),
        (&["put", "k", "{}"], "/value/a: wants a number", "error: /value/a: wants"),
    ] {
        let mut problem = Problem::new(ErrorCode::InvalidArgument, Applied::No, said);
        let (pointer, detail) = said.split_once(": ").expect("two parts");
        problem.errors = vec![quorate_client::api::InputFault { pointer: pointer.into(), detail: detail.into() }];
        fake.script([Act::refuse(problem)]);
        let ran = run(&fake.address, arguments).await;
        assert!(ran.code == 2 && ran.err.starts_with(told), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test]
async fn no_node_is_exit_code_1_and_not_applied() {
    let ran = run(&nobody(), &["put", "k", "1", "--timeout", "1s"]).await;
    assert_eq!(ran.code, 1);
    for expected in ["cannot connect", "applied: no", "quorate status"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[tokio::test]
async fn an_unknown_fate_says_how_to_learn_it() {
    let fake = Fake::start().await;
    fake.script(vec![Act::problem(ErrorCode::Timeout, Applied::Unknown); 100]);
    let ran = run(&fake.address, &["delete", "k", "--request-id", "order-1", "--timeout", "1s"]).await;
    assert_eq!(ran.code, 1);
    for expected in ["applied: unknown", "quorate request order-1", "--request-id order-1"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    assert_eq!(fake.seen()[0].id.as_deref(), Some("order-1"));
}

#[tokio::test]
async fn status_shows_every_endpoint_also_those_that_are_down() {
    let (fake, down) = (Fake::start_as(2).await, nobody());
    fake.name_leader(4, 2);
    let both = format!("{},{down}", fake.address);
    let status = run(&both, &["status"]).await;
    assert_eq!(status.code, 0, "{}", status.err);
    for expected in [&format!("cluster {CLUSTER}"), "leader 2", "no answer", &down] {
        assert!(status.out.contains(expected), "{expected}: {}", status.out);
    }
    assert_eq!(run(&down, &["status"]).await.code, 1);
    assert_eq!(run(&fake.address, &["wait-ready"]).await.code, 0);
    assert_eq!(run(&both, &["wait-ready", "--timeout", "100ms"]).await.code, 1);
    assert_eq!(run(&both, &["wait-ready", "--any"]).await.code, 0);
}

#[tokio::test]
async fn a_node_that_answers_at_all_lives() {
    let (fake, down) = (Fake::start().await, nobody());
    let both = format!("{},{down}", fake.address);
    // Ready it is not, and who asks is not known to it.
    fake.always("/status", Act::problem(ErrorCode::Unauthenticated, Applied::No));
    assert_eq!(run(&fake.address, &["wait-ready", "--timeout", "100ms"]).await.code, 1);
    let live = run(&fake.address, &["wait-ready", "--live", "--timeout", "100ms"]).await;
    assert_eq!((live.code, live.out.trim()), (0, "live: 1 of 1 nodes"), "{}", live.err);
    assert_eq!(run(&both, &["wait-ready", "--live", "--timeout", "100ms"]).await.code, 1);
    assert_eq!(run(&both, &["wait-ready", "--live", "--any", "--timeout", "100ms"]).await.code, 0);
}

#[tokio::test]
async fn listings_show_keys_values_or_a_count() {
    let fake = Fake::start().await;
    assert_eq!(run(&fake.address, &["list", "a/"]).await.out, "k  1  cas 7\n");
    assert_eq!(run(&fake.address, &["list", "a/", "--keys", "--all"]).await.out, "k\n");
    assert_eq!(run(&fake.address, &["list", "--count"]).await.out, "1\n");
    let entry = json!({"key": "k", "content_type": "json", "cas": "7", "create_revision": "7", "mod_revision": "7", "version": 1,
        "value_bytes": 12});
    let sized = json!({"entries": [entry], "count": 1, "revision": "7", "index": 9});
    fake.script([Act::Answer(200, sized.to_string())]);
    assert_eq!(run(&fake.address, &["list", "--keys", "--sizes"]).await.out, "k  12 bytes\n");
    let targets: Vec<_> = fake.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets[1], "/v1/kv?prefix=a/&limit=1000&keys_only=true");
    assert_eq!(targets[2], "/v1/kv?prefix=&count_only=true");
    assert_eq!(targets[3], "/v1/kv?prefix=&keys_only=true&sizes=true");
}

#[tokio::test]
async fn a_session_is_kept_alive_until_it_has_ended() {
    let fake = Fake::start().await;
    let renewed =
        json!({"session": "17", "ttl_ms": 30, "expires_in_ms": 30, "renew_in_ms": 1, "revision": "7", "index": 9});
    let renewed = Act::Answer(200, renewed.to_string());
    fake.script([renewed.clone(), renewed, Act::problem(ErrorCode::SessionExpired, Applied::No)]);
    let ran = run(&fake.address, &["session", "keep-alive", "17"]).await;
    let line = "renewed: session 17  ends in 30ms\n";
    assert_eq!((ran.code, ran.out), (3, line.repeat(2)), "{}", ran.err);
    assert_eq!(fake.seen().len(), 3);
}

#[tokio::test]
async fn json_stands_for_itself_where_a_file_is_asked_for() {
    let fake = Fake::start().await;
    let op = r#"{"op":"remove","key":"k"}"#;
    let (_home, path) = file("bulk", op);
    for given in [op.to_owned(), path.clone(), format!("@{path}")] {
        let ran = run(&fake.address, &["bulk", &given]).await;
        assert_eq!(ran.code, 0, "{given}: {}", ran.err);
        assert_eq!(fake.seen().pop().expect("was sent").json()["ops"][0]["op"], "remove", "{given}");
    }
}

#[tokio::test]
async fn habits_of_other_programs_are_met() {
    let fake = Fake::start().await;
    for (habit, ours) in [
        (&["set", "k", "1"][..], &["put", "k", "1"][..]),
        (&["del", "k"], &["delete", "k"]),
        (&["list", "--prefix", "a/"], &["list", "a/"]),
        (&["list", "a/", "--prefix", "--keys"], &["list", "a/", "--keys"]),
        (&["list", "--json"], &["list", "-o", "json"]),
        (&["delete", "k", "--if", "status = paid"], &["delete", "k", "--if", "status eq paid"]),
    ] {
        let ran = [run(&fake.address, habit).await, run(&fake.address, ours).await];
        assert_eq!((ran[0].code, &ran[0].out), (0, &ran[1].out), "{habit:?}: {ran:?}");
        let seen = fake.seen();
        let [.., first, second] = seen.as_slice() else { panic!("{habit:?}: {seen:?}") };
        let sent = |seen: &crate::fake::Seen| {
            let mut body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
            if let Some(fields) = body.as_object_mut() {
                fields.remove("request_id");
            }
            (seen.target.clone(), body)
        };
        assert_eq!(sent(first), sent(second), "{habit:?}");
    }
    let event = "event: put\ndata: {\"type\":\"put\",\"key\":\"a/\",\"revision\":\"8\"}\nid: 8.0\n\n";
    for (word, is_told) in [("a/", true), ("a", false)] {
        fake.script([Act::Answer(200, event.to_owned())]);
        let ran = run(&fake.address, &["watch", word, "--count", "1"]).await;
        assert_eq!(ran.err.contains("--prefix a/"), is_told, "{ran:?}");
    }
}

#[tokio::test]
async fn finds_are_asked_for_as_the_api_takes_them() {
    let fake = Fake::start().await;
    let page = |key: &str, cursor: Option<&str>| {
        let entries = [entry(key, &json!({"n": 1}), "7")];
        let mut page = json!({"entries": entries, "examined": 3, "index_used": null, "revision": "5", "index": 6});
        if let Some(cursor) = cursor {
            page["cursor"] = json!(cursor);
        }
        Act::Answer(200, page.to_string())
    };
    fake.script([page("a", Some("c1")), page("b", None)]);
    let arguments = [
        "find",
        "o/",
        "--where",
        "status eq pending",
        "--where",
        r#"[{"field":"n","op":"exists"}]"#,
        "--order-by=-n,m",
    ];
    let ran = run(&fake.address, &[&arguments[..], &["--fields", "n", "--all"]].concat()).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "a  {\"n\":1}  cas 7\nb  {\"n\":1}  cas 7\n"), "{}", ran.err);
    let bodies: Vec<Value> = fake.seen().iter().map(|seen| serde_json::from_str(&seen.body).expect("JSON")).collect();
    let mut expected = json!({
        "prefix": "o/", "order_by": ["-n", "m"], "limit": 1000, "fields": ["n"],
        "where": [{"field": "status", "op": "eq", "value": "pending"}, {"field": "n", "op": "exists"}],
    });
    assert_eq!(bodies[0], expected);
    expected["cursor"] = json!("c1");
    assert_eq!(bodies[1], expected, "the next page repeats the query");

    fake.script([page("a", Some("c1"))]);
    let ran = run(&fake.address, &["find", "--keys"]).await;
    assert_eq!(ran.out, "a\n");
    assert!(ran.err.contains("--all shows everything"), "{}", ran.err);
}

#[tokio::test]
async fn a_count_is_the_sum_of_its_parts() {
    let fake = Fake::start().await;
    let part = |count: u64, cursor: Option<&str>| {
        let mut part = json!({"count": count, "examined": 10, "index_used": null, "revision": "5", "index": 6});
        if let Some(cursor) = cursor {
            part["cursor"] = json!(cursor);
        }
        Act::Answer(200, part.to_string())
    };
    for arguments in [["count", "o/", "--where", "n gt 5"].as_slice(), &["find", "o/", "--where", "n gt 5", "--count"]]
    {
        fake.script([part(3, Some("c1")), part(4, None)]);
        let ran = run(&fake.address, arguments).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, "7\n"), "{}", ran.err);
        let last = fake.seen().pop().expect("asked");
        assert_eq!((last.target.as_str(), last.body.contains("c1")), ("/v1/count", true));
    }
}

#[tokio::test]
async fn leadership_is_handed_over() {
    let fake = Fake::start().await;
    fake.script([Act::Answer(200, r#"{"leader_id":3}"#.into())]);
    let ran = run(&fake.address, &["leader", "transfer", "3"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "node 3 leads\n"), "{}", ran.err);
    assert_eq!(fake.seen()[0].body, r#"{"to":3}"#);
}

#[tokio::test]
async fn the_members_are_listed_with_what_they_can_lose() {
    let fake = Fake::start().await;
    let member = |id: u64, role: &str, healthy: bool| json!({"id": id, "role": role, "leader": id == 1, "healthy": healthy, "peer_addr": "p:1", "client_addr": "c:1"});
    let members = [member(1, "voter", true), member(2, "voter", false), member(4, "learner", true)];
    let answer =
        json!({"leader_id": 1, "changing": true, "needed": 2, "prospect": "one failure from loss", "members": members});
    fake.script([Act::Answer(200, answer.to_string()), Act::Answer(200, answer.to_string())]);
    let ran = run(&fake.address, &["member", "list"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<_> = ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines[1..4],
        ["1 leader yes - never c:1 p:1", "2 voter no - never c:1 p:1", "4 learner yes - never c:1 p:1"]
    );
    assert_eq!(lines[4..], ["a change of the voters is under way", "one failure from loss"]);
    let ran = run(&fake.address, &["member", "list", "--output", "json"]).await;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.out).expect("JSON"), answer);
}

#[tokio::test]
async fn members_are_changed_and_what_it_comes_to_is_said() {
    let fake = Fake::start().await;
    let done = |changed, dry_run| {
        let done = json!({"changed": changed, "dry_run": dry_run, "explanation": ["why"], "voters": [1, 2, 4], "learners": [3]});
        Act::Answer(200, done.to_string())
    };
    /// Method, the rest of the target, body.
    type Sent = (&'static str, &'static str, &'static str);
    let rows: [(&[&str], Act, Sent, &str); 5] = [
        (
            &["member", "add", "4", "h:1", "--promote"],
            done(true, false),
            ("POST", "?dry_run=false&force=false", r#"{"id":4,"peer_addr":"h:1","promote":true}"#),
            "done:",
        ),
        (
            &["member", "promote", "4"],
            done(false, false),
            ("POST", "/4/promote?dry_run=false&force=false", "{}"),
            "nothing to do:",
        ),
        (
            &["member", "demote", "3", "--force"],
            done(true, false),
            ("POST", "/3/demote?dry_run=false&force=true", "{}"),
            "done:",
        ),
        (
            &["member", "remove", "3", "--dry-run"],
            done(false, true),
            ("DELETE", "/3?dry_run=true&force=false", ""),
            "dry run, nothing done:",
        ),
        (
            &["member", "replace", "3", "4"],
            done(true, false),
            ("POST", "/3/replace?dry_run=false&force=false", r#"{"with":4}"#),
            "done:",
        ),
    ];
    for (arguments, answer, (method, target, body), begin) in rows {
        fake.script([answer]);
        let ran = run(&fake.address, arguments).await;
        let out = format!("{begin}\n  why\n  voters: 1, 2, 4\n  learners: 3\n");
        assert_eq!((ran.code, ran.out), (0, out), "{arguments:?}: {}", ran.err);
        let seen = fake.seen().pop().expect("asked");
        let target = format!("/v1/cluster/members{target}");
        assert_eq!((seen.method.as_str(), seen.target, seen.body.as_str()), (method, target, body));
    }
}

/// Writes a file for a command to read.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().join(name);
    std::fs::write(&path, text).expect("can be written");
    (home, path.to_str().expect("UTF-8").to_owned())
}

#[tokio::test]
async fn a_bulk_shows_what_did_not_take_effect() {
    let fake = Fake::start().await;
    let (_home, path) =
        file("ops", "{\"op\":\"insert\",\"key\":\"a\",\"value\":1.50}\n{\"op\":\"remove\",\"key\":\"b\"}\n");
    let whole = run(&fake.address, &["bulk", &path]).await;
    assert_eq!((whole.code, whole.out.as_str()), (0, "applied 2, skipped 0, failed 0  revision 8\n"), "{}", whole.err);
    let ops = json!([{"op": "insert", "key": "a", "value": 1.5}, {"op": "remove", "key": "b"}]);
    assert_eq!(fake.seen()[0].json(), json!({"ops": ops}));
    let failed = json!({"n": 1, "key": "b", "outcome": "failed", "revision": "8", "status": 404, "code": "not_found", "detail": "none"});
    let skipped = json!({"n": 0, "key": "a", "outcome": "skipped", "revision": "8", "status": 409, "code": "already_exists", "detail": "is there"});
    let answer = json!({"applied": 0, "skipped": 1, "failed": 1, "results": [skipped, failed], "revision": "8", "index": 9, "dry_run": true});
    fake.script([Act::Answer(200, answer.to_string())]);
    let partly = run(&fake.address, &["bulk", &path, "--dry-run", "--request-id", "b-1"]).await;
    let text = "0: a  skipped: is there\n1: b  failed: none\ndry run, nothing done: applied 0, skipped 1, failed 1  revision 8\n";
    assert_eq!((partly.code, partly.out.as_str()), (3, text), "{}", partly.err);
    let seen = fake.seen().pop().expect("asked");
    assert_eq!((seen.id.as_deref(), &seen.json()["dry_run"]), (Some("b-1"), &json!(true)));
}

#[tokio::test]
async fn a_transaction_shows_its_branch_and_fails_only_where_nothing_was_to_be_done() {
    let fake = Fake::start().await;
    let (_home, path) =
        file("txn", "{\"if\": [{\"key\":\"k\",\"exists\":true}],\n \"then\": [{\"op\":\"remove\",\"key\":\"k\"}]}");
    let check = json!({"pointer": "/if/0", "key": "k", "detail": "there is none"});
    let missed = |results: Value| {
        let answer = json!({"succeeded": false, "results": results, "failed": [check], "revision": "7", "index": 9});
        Act::Answer(200, answer.to_string())
    };
    let results = json!([{"op": "remove", "key": "k", "revision": "8"}, {"op": "get", "key": "b", "entry": null},
        {"op": "txn", "succeeded": true, "results": [{"op": "lock", "key": "c", "revision": "8", "cas": "8", "lock_ms": 15000}]}]);
    let held = json!({"succeeded": true, "results": results, "revision": "8", "index": 9}).to_string();
    fake.script([Act::Answer(200, held), missed(json!([])), missed(json!([{"op": "get", "key": "b", "entry": null}]))]);
    let ran = run(&fake.address, &["txn", &path]).await;
    let text = "the checks hold  revision 8\n  remove: k\n  get: b  (nothing)\n  txn: the checks hold\n    lock: c  cas 8, locked for 15.0s\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, text), "{}", ran.err);
    assert_eq!(fake.seen()[0].json()["then"], json!([{"op": "remove", "key": "k"}]));
    let ran = run(&fake.address, &["txn", &path]).await;
    assert_eq!((ran.code, ran.out.lines().nth(1)), (3, Some("  /if/0: k  there is none")), "{}", ran.err);
    assert_eq!(run(&fake.address, &["txn", &path]).await.code, 0, "there was an else");
    let (_home, path) = file("txn", "{\"them\":[]}");
    let ran = run(&fake.address, &["txn", &path]).await;
    assert!(ran.code == 2 && ran.err.contains("them"), "{}", ran.err);
}

#[tokio::test]
async fn changes_by_criteria_go_on_to_the_end_and_sum_up() {
    let fake = Fake::start().await;
    let part = |matched: u64, failed: u64, cursor: Option<&str>| {
        let item = json!({"n": 0, "key": "o/1", "outcome": "failed", "revision": "5", "status": 423, "code": "locked", "detail": "is locked"});
        let results = if failed > 0 { vec![item] } else { vec![] };
        let mut part = json!({"matched": matched, "applied": matched - failed, "skipped": 0, "failed": failed,
            "examined": 10_000, "results": results, "revision": "5", "index": 6});
        if let Some(cursor) = cursor {
            part["cursor"] = json!(cursor);
        }
        Act::Answer(200, part.to_string())
    };
    fake.script([part(3, 1, Some("c1")), part(4, 0, None), part(3, 0, Some("c1"))]);
    let update =
        ["update-where", "o/", r#"{"a":1.50}"#, "--where", "n gt 1", "--if", "m exists", "--all", "--request-id", "u"];
    let ran = run(&fake.address, &update).await;
    let text = "0: o/1  failed: is locked\nmatched 7, changed 6, skipped 0, failed 1  revision 5\n";
    assert_eq!((ran.code, ran.out.as_str()), (3, text), "{}", ran.err);
    let seen = fake.seen();
    let mut expected = json!({"prefix": "o/", "where": [{"field": "n", "op": "gt", "value": 1}], "if": [{"field": "m", "op": "exists"}], "patch": {"a": 1.5}});
    assert_eq!((seen[0].target.as_str(), seen[0].json()), ("/v1/update_where", expected.clone()));
    expected["cursor"] = json!("c1");
    assert_eq!(seen[1].json(), expected, "the next part repeats the question");
    assert_eq!((seen[0].id.as_deref(), seen[1].id.as_deref()), (Some("u"), Some("u-1")));
    let ran = run(&fake.address, &["delete-where", "o/", "--limit", "3", "--dry-run"]).await;
    assert!(ran.code == 0 && ran.err.contains("--all goes on"), "{}", ran.err);
    assert_eq!(fake.seen()[2].json(), json!({"prefix": "o/", "where": [], "limit": 3, "dry_run": true}));
    let retried = json!({"matched": 3, "applied": 2, "skipped": 0, "failed": 1, "examined": 3, "results": [], "left_out": true,
        "replayed": true, "revision": "5", "index": 6});
    fake.script([Act::Answer(200, retried.to_string())]);
    let ran = run(&fake.address, &["delete-where", "o/", "--request-id", "u"]).await;
    assert!(ran.code == 3 && ran.err.contains("is not kept for a retry"), "{}", ran.err);
    assert_eq!(run(&fake.address, &["delete-where"]).await.code, 2, "never everything by mistake");
    let asked = fake.seen().len();
    for unset in [&["delete-where", ""][..], &["delete-where", "", "--all"], &["update-where", "", "{}"]] {
        let ran = run(&fake.address, unset).await;
        assert!(ran.code == 2 && ran.err.contains("--everything"), "{unset:?}: {ran:?}");
    }
    for ttl in ["0s", "-1s", "-5"] {
        for write in [&["put", "k", "1", "--ttl", ttl][..], &["update-where", "o/", "{}", "--ttl", ttl]] {
            let ran = run(&fake.address, write).await;
            assert!(ran.code == 2 && ran.err.contains("--ttl"), "{write:?}: {ran:?}");
        }
    }
    assert_eq!(fake.seen().len(), asked, "nothing was sent");
}

#[tokio::test]
async fn a_claim_shows_the_keys_to_its_locks_and_nothing_is_exit_code_3() {
    let fake = Fake::start().await;
    let mut job = entry("jobs/j1", &json!({"n": 1}), "17");
    (job["locked"], job["lock_ms"]) = (json!(true), json!(20_000));
    let claimed = |entries: Value| {
        let count = entries.as_array().expect("a list").len();
        let answer =
            json!({"entries": entries, "count": count, "examined": 3, "more": false, "revision": "17", "index": 20});
        Act::Answer(200, answer.to_string())
    };
    fake.script([claimed(json!([job])), claimed(json!([]))]);
    let arguments = [
        "claim",
        "jobs/",
        "--where",
        "n lt 5",
        "--order-by=-n,m",
        "--limit",
        "2",
        "--for",
        "20s",
        "--patch",
        r#"{"by":"me"}"#,
    ];
    let ran = run(&fake.address, &arguments).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "jobs/j1  {\"n\":1}  cas 17, locked for 20.0s\n"), "{}", ran.err);
    let criteria = json!([{"field": "n", "op": "lt", "value": 5}]);
    let expected = json!({"prefix": "jobs/", "where": criteria, "order_by": ["-n", "m"], "limit": 2, "lock_ms": 20_000, "patch": {"by": "me"}});
    assert_eq!(fake.seen()[0].json(), expected);
    let ran = run(&fake.address, &["claim", "jobs/"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    let passed = json!({"entries": [], "count": 0, "left_out": true, "examined": 3, "more": false, "replayed": true,
        "revision": "17", "index": 20});
    fake.script([Act::Answer(200, passed.to_string())]);
    let ran = run(&fake.address, &["claim", "jobs/"]).await;
    assert!(ran.code == 3 && ran.err.contains("the patch does not fit what was found"), "{}", ran.err);
}

#[tokio::test]
async fn collections_and_sequences_are_set_and_shown() {
    let fake = Fake::start().await;
    let index = json!({"fields": ["a", "b"], "unique": true, "state": "building"});
    let rules = json!({"required": ["a"], "indexes": [{"fields": ["a", "b"], "unique": true}]});
    let mut collection = json!({"name": "o", "rules": rules, "cas": "5", "create_revision": "5", "mod_revision": "5", "version": 1, "indexes": [index]});
    let list = json!({"collections": [collection], "revision": "5", "index": 6}).to_string();
    (collection["revision"], collection["index"]) = (json!("5"), json!(6));
    let one = Act::Answer(200, collection.to_string());
    fake.script([
        one.clone(),
        one.clone(),
        Act::Answer(200, list),
        Act::problem(ErrorCode::NotFound, Applied::No),
        Act::Answer(200, json!({"name": "o", "revision": "7", "index": 8}).to_string()),
    ]);
    let ran = run(&fake.address, &["collection", "set", "o", &rules.to_string(), "--cas", "4"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "set: o  cas 5, version 1\n"), "{}", ran.err);
    let ran = run(&fake.address, &["collection", "show", "o"]).await;
    assert!(ran.out.ends_with("  index a+b unique building\n"), "{}", ran.out);
    assert_eq!(run(&fake.address, &["collection", "list"]).await.out, "o  cas 5  index a+b unique building\n");
    assert_eq!(run(&fake.address, &["collection", "show", "none"]).await.code, 3);
    assert_eq!(run(&fake.address, &["collection", "delete", "o"]).await.out, "rules deleted: o  revision 7\n");
    let ran = run(&fake.address, &["collection", "set", "o", r#"{"indices":[]}"#]).await;
    assert!(ran.code == 2 && ran.err.contains("indices"), "{}", ran.err);
    let foreign = r#"{"fields":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"long"}}}"#;
    fake.script([one.clone()]);
    let ran = run(&fake.address, &["collection", "set", "o", foreign]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = fake.seen().pop().expect("was sent").json();
    assert_eq!(sent["fields"], json!({"a": {"type": "varchar"}, "b": {"type": "long"}, "c": {"type": "long"}}));
    let ran = run(&fake.address, &["collection", "set", "o", r#"{"fields":{"a":{"type":"moon"}}}"#]).await;
    assert!(ran.code == 2 && ran.err.contains("moon") && ran.err.contains("varchar"), "{}", ran.err);
    let next = |first: u64, last: u64| {
        Act::Answer(200, json!({"name": "s", "first": first, "last": last, "revision": "5", "index": 6}).to_string())
    };
    let value = json!({"name": "s", "value": 9, "revision": "5", "index": 6}).to_string();
    fake.script([next(7, 7), next(8, 9), Act::Answer(200, value)]);
    assert_eq!(run(&fake.address, &["sequence", "next", "s"]).await.out, "7\n");
    assert_eq!(run(&fake.address, &["sequence", "next", "s", "2"]).await.out, "8 9\n");
    assert_eq!(run(&fake.address, &["sequence", "show", "s"]).await.out, "9\n");
    let seen = fake.seen();
    assert_eq!((seen[0].header("if-match"), seen[0].json()), (Some("\"4\""), rules));
    assert_eq!(seen[7].json(), json!({"count": 2}));
}

#[tokio::test]
async fn there_are_completions_and_help_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run("", &["completions", shell]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("QUORATE_COMPLETE"), "{shell}: {}", ran.out);
    }
    let help = run("", &["--help"]).await;
    assert!(help.out.contains("condition not met"), "{}", help.out);
    let home = tempfile::tempdir().expect("a temporary directory");
    let pages = home.path().join("man1");
    let ran = run("", &["man", pages.to_str().expect("UTF-8")]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(pages.join("quorate-lock-run.1")).expect("a page");
    assert!(page.contains("quorate lock nightly"), "{page}");
}

/// What the fish shell would offer behind these words.
async fn completed(endpoints: &str, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["--", "quorate"]).args(words).env("QUORATE_COMPLETE", "fish").env("QUORATE_ENDPOINTS", endpoints);
    let output = command.kill_on_drop(true).output().await.expect("the binary runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[tokio::test]
async fn keys_and_names_are_completed_by_asking_the_cluster() {
    let fake = Fake::start().await;
    assert!(completed(&fake.address, &["lo"]).await.lines().any(|line| line.starts_with("lock")));
    let keys = completed(&fake.address, &["get", ""]).await;
    assert!(keys.lines().any(|line| line.starts_with('k')), "{keys}");
    assert_eq!(fake.seen()[0].target, "/v1/kv?prefix=&limit=200&keys_only=true&consistency=local");
    let mut no_text = entry("", &json!(1), "7");
    no_text.as_object_mut().expect("an object").remove("key");
    no_text["key_base64"] = "YS//".into();
    let page = json!({"entries": [no_text], "count": 1, "revision": 5, "index": 6});
    fake.script([Act::Answer(200, page.to_string())]);
    assert_eq!(completed(&fake.address, &["get", "a"]).await.lines().next(), Some(r"a/\xff"), "as it is taken");
    let page = json!({"locks": [{"lock": "nightly", "slots": 1, "holder_count": 1, "waiter_count": 0}], "revision": 5, "index": 6});
    fake.script([Act::Answer(200, page.to_string())]);
    assert_eq!(completed(&fake.address, &["lock", "show", "ni"]).await.lines().next(), Some("nightly"));
    assert_eq!(completed(&nobody(), &["lock", "show", "ni"]).await, "", "nobody answers, and nothing is said");
}

#[tokio::test]
async fn a_lock_that_ends_before_the_time_asked_for_is_told() {
    let fake = Fake::start().await;
    let locked = r#"{"key":"k","revision":8,"index":10,"cas":"81","create_revision":7,"version":2,"lock_ms":15000}"#;
    fake.script([Act::Answer(200, locked.into()), Act::Answer(200, locked.into())]);
    let ran = run(&fake.address, &["entry", "lock", "k", "--for", "1m"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "locked: k  cas 81, version 2, revision 8, locked for 15.0s\n"));
    for expected in ["asked for 1m0s", "for 30.0s at most", "locked for 15.0s"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    let ran = run(&fake.address, &["entry", "extend", "k", "81", "--for", "15s"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[tokio::test]
async fn get_and_lock_shows_the_entry_and_the_key() {
    let fake = Fake::start().await;
    let mut locked = entry("k", &json!({"n": 1}), "81");
    (locked["locked"], locked["lock_ms"]) = (json!(true), json!(20_000));
    fake.script([Act::Answer(200, locked.to_string())]);
    let ran = run(&fake.address, &["entry", "get-and-lock", "k", "--for", "20s"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("{\"n\":1}\n  cas 81, ") && ran.out.contains("locked for 20.0s"), "{}", ran.out);
    let op = fake.seen()[0].op.clone().expect("an operation");
    assert_eq!((op.op, op.lock_ms), (OpKind::GetAndLock, Some(20_000)));
}

#[tokio::test]
async fn answers_come_as_yaml_and_in_columns_too() {
    let fake = Fake::start().await;
    let yaml = run(&fake.address, &["get", "k", "-o", "yaml"]).await;
    assert!(yaml.out.starts_with("---\nkey: k\nvalue:\n  \"n\": 1\ncontent_type: json\ncas: \"7\"\n"), "{}", yaml.out);
    let table = run(&fake.address, &["list", "-o", "table"]).await;
    assert_eq!(
        table.out,
        "KEY  VALUE  CONTENT_TYPE  CAS  CREATE_REVISION  MOD_REVISION  VERSION\nk    1      json          7    1                7             2\n"
    );
    let mut delete = command(&fake.address, &["delete", "k"]);
    let output = delete.env("QUORATE_OUTPUT", "yaml").output().await.expect("the binary runs");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("---\nkey: k\nrevision: \"8\"\n"), "{output:?}");
    fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
    let refused = run(&fake.address, &["delete", "k", "-o", "yaml"]).await;
    assert!(refused.code == 3 && refused.err.contains("\ncode: not_found\n"), "{}", refused.err);
}

#[tokio::test]
async fn everything_that_takes_a_guard_takes_it_from_around_it() {
    let fake = Fake::start().await;
    let claimed = json!({"entries": [], "count": 0, "examined": 3, "more": false, "revision": 17, "index": 20});
    fake.always("/claim", Act::Answer(200, claimed.to_string()));
    let changed = json!({"matched": 0, "applied": 0, "skipped": 0, "failed": 0, "examined": 0, "results": [], "revision": 5, "index": 6});
    fake.always("_where", Act::Answer(200, changed.to_string()));
    for arguments in [
        &["put", "k", "1"][..],
        &["patch", "k", "{}"],
        &["delete", "k"],
        &["touch", "k", "--ttl", "1s"],
        &["entry", "lock", "k"],
        &["entry", "get-and-lock", "k"],
        &["entry", "extend", "k", "7"],
        &["entry", "unlock", "k", "7"],
        &["claim", "j/"],
        &["update-where", "j/", "{}"],
        &["delete-where", "j/"],
    ] {
        let mut guarded = command(&fake.address, &[arguments, &["--guarded"]].concat());
        guarded.env("QUORATE_LOCK", "l").env("QUORATE_FENCING_TOKEN", "18").output().await.expect("the binary runs");
        let sent = fake.seen().pop().expect("was sent");
        assert_eq!(sent.json()["guard"], json!({"lock": "l", "token": "18"}), "{arguments:?}: {}", sent.body);
    }
}
