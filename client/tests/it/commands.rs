//! The built `quorate`: output, messages, exit codes.

use std::process::Output;

use quorate_client::api::{Applied, ErrorCode, OpKind, Problem};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fake::{Act, Fake, entry, nobody};

/// Runs `quorate` against these endpoints.
pub async fn quorate(endpoints: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["--endpoints", endpoints]).args(arguments).kill_on_drop(true);
    command.output().await.expect("the binary runs")
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

async fn run(endpoints: &str, arguments: &[&str]) -> Ran {
    let output = quorate(endpoints, arguments).await;
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code().expect("an exit code"), out: text(output.stdout), err: text(output.stderr) }
}

#[tokio::test]
async fn values_are_written_and_read() {
    let fake = Fake::start().await;
    let put = run(&fake.address, &["put", "k", r#"{"n": 1}"#, "--ttl", "1m30s", "--if-cas", "7"]).await;
    assert_eq!((put.code, put.out.as_str()), (0, "written: k  cas 8, version 2, revision 8\n"), "{}", put.err);
    let op = fake.seen()[0].op.clone().expect("an operation");
    assert_eq!((op.op, op.ttl_ms, op.cas.as_deref()), (OpKind::Replace, Some(90_000), Some("7")));
    assert_eq!(op.value.expect("is there").0.get(), r#"{"n": 1}"#);
    assert_eq!(fake.streams(), 0, "a single operation goes by itself");
    let get = run(&fake.address, &["get", "k"]).await;
    assert!(get.out.starts_with("{\"n\":1}\n  cas 7, version 2"), "{}", get.out);
    let raw = run(&fake.address, &["get", "k", "--raw"]).await;
    assert_eq!(raw.out, "{\"n\":1}");
}

#[tokio::test]
async fn json_output_is_the_json_of_the_api() {
    let fake = Fake::start().await;
    let get = run(&fake.address, &["get", "k", "--output", "json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&get.out).expect("JSON"), entry("k", &json!({"n": 1}), "7"));
    fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
    let rm = run(&fake.address, &["rm", "k", "--output", "json"]).await;
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
        (ErrorCode::ConditionNotMet, &["rm", "k"]),
    ] {
        fake.script([Act::problem(code, Applied::No)]);
        assert_eq!(run(&fake.address, arguments).await.code, 3, "{code:?} {arguments:?}");
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_exit_code_2_and_nothing_is_sent() {
    let fake = Fake::start().await;
    let ran = run(&fake.address, &["find", "--where", "status = pending"]).await;
    assert!(ran.code == 2 && ran.err.contains("`=` is no operator; there are: eq neq"), "{}", ran.err);
    for (arguments, hint) in [
        (["put", "k", "hello"].as_slice(), "--string"),
        (&["put", "k", "@/no/such/file"], "/no/such/file"),
        (&["put", "k", "1", "--ttl", "10"], "10s"),
        (&["put", "k", "1", "--if-cas", "7", "--if-absent"], "--if-absent"),
        (&["cas", "k", "seven", "1"], "decimal"),
        (&["get", ""], "key"),
        (&["bench", "--mix", "put=0"], "shares"),
        (&["--request-id", "a b", "rm", "k"], "printable"),
        (&["fly"], "fly"),
    ] {
        let ran = run(&fake.address, arguments).await;
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(hint), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(run("localhost", &["get", "k"]).await.code, 2);
    assert!(fake.seen().is_empty(), "{:?}", fake.seen());
}

#[tokio::test]
async fn no_node_is_exit_code_1_and_not_applied() {
    let ran = run(&nobody().await, &["put", "k", "1", "--timeout", "100ms"]).await;
    assert_eq!(ran.code, 1);
    for expected in ["cannot connect", "applied: no", "quorate status"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[tokio::test]
async fn an_unknown_fate_says_how_to_learn_it() {
    let fake = Fake::start().await;
    fake.script(vec![Act::problem(ErrorCode::Timeout, Applied::Unknown); 100]);
    let ran = run(&fake.address, &["rm", "k", "--request-id", "order-1", "--timeout", "100ms"]).await;
    assert_eq!(ran.code, 1);
    for expected in ["applied: unknown", "quorate request order-1", "--request-id order-1"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    assert_eq!(fake.seen()[0].id.as_deref(), Some("order-1"));
}

#[tokio::test]
async fn status_shows_every_endpoint_also_those_that_are_down() {
    let (fake, down) = (Fake::start_as(2).await, nobody().await);
    fake.name_leader(4, 2);
    let both = format!("{},{down}", fake.address);
    let status = run(&both, &["status"]).await;
    assert_eq!(status.code, 0, "{}", status.err);
    for expected in ["cluster c0ffee", "01234567@9", "no answer", &down] {
        assert!(status.out.contains(expected), "{expected}: {}", status.out);
    }
    assert_eq!(run(&down, &["status"]).await.code, 1);
    assert_eq!(run(&fake.address, &["wait-ready"]).await.code, 0);
    assert_eq!(run(&both, &["wait-ready", "--timeout", "100ms"]).await.code, 1);
    assert_eq!(run(&both, &["wait-ready", "--any"]).await.code, 0);
}

#[tokio::test]
async fn listings_show_keys_values_or_a_count() {
    let fake = Fake::start().await;
    assert_eq!(run(&fake.address, &["ls", "a/"]).await.out, "k  1  cas 7\n");
    assert_eq!(run(&fake.address, &["ls", "a/", "--keys", "--all"]).await.out, "k\n");
    assert_eq!(run(&fake.address, &["ls", "--count"]).await.out, "1\n");
    let targets: Vec<_> = fake.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets[1], "/v1/kv?prefix=a/&limit=1000&keys_only=true");
    assert_eq!(targets[2], "/v1/kv?prefix=&count_only=true");
}

#[tokio::test]
async fn finds_are_asked_for_as_the_api_takes_them() {
    let fake = Fake::start().await;
    let page = |key: &str, cursor: Option<&str>| {
        let (items, complete) = ([entry(key, &json!({"n": 1}), "7")], cursor.is_none());
        let mut page =
            json!({"items": items, "examined": 3, "index_used": null, "complete": complete, "revision": 5, "index": 6});
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
        let mut part = json!({"count": count, "examined": 10, "index_used": null, "complete": cursor.is_none(), "revision": 5, "index": 6});
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
    let ran = run(&fake.address, &["transfer-leader", "3"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "node 3 leads\n"), "{}", ran.err);
    assert_eq!(fake.seen()[0].body, r#"{"to":3}"#);
}

#[tokio::test]
async fn there_are_completions_and_help() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run("", &["completions", shell]).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("wait-ready"), "{shell}");
    }
    let help = run("", &["--help"]).await;
    assert!(help.out.contains("condition not met"), "{}", help.out);
}
