//! `quorate task work`: when a command is done, and how a stop goes on.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::PATIENCE;
use crate::commands::command;
use crate::fake::{Act, Fake};
use crate::held::{below, clinging, signal, state, until};

/// A node with one task, and a worker that runs a script for it.
async fn working(script: &str, options: &[&str]) -> (Fake, Child) {
    let fake = Fake::start().await;
    let task = json!({"id": "t1", "token": 5, "attempt": 1, "max_attempts": 3, "execute_at": "2026-01-01T00:00:00Z",
        "planned_at": "2026-01-01T00:00:00Z", "lease_ms": 60_000, "payload": {"n": 1}});
    let claimed = json!({"tasks": [task], "count": 1, "waited_ms": 0, "revision": 5, "index": 6});
    fake.script([Act::Answer(200, claimed.to_string())]);
    let done = json!({"id": "t1", "state": "done", "attempts": 1, "max_attempts": 3, "revision": 6, "index": 7});
    for end in ["/complete", "/fail", "/extend"] {
        fake.always(end, Act::Answer(200, done.to_string()));
    }
    let usual = if options.contains(&"--for") { &[][..] } else { &["--for", "60s"][..] };
    let arguments = [&["task", "work", "q"][..], usual, options, &["--", "sh", "-c", script]].concat();
    let mut command = command(&fake.address, &arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (fake, command.spawn().expect("it runs"))
}

async fn runs(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time");
    assert_eq!(line.expect("can be read").as_deref(), Some("runs"));
}

#[tokio::test]
async fn a_command_is_done_when_it_ends_whatever_it_leaves_running() {
    let (fake, child) = working("sleep 40 & echo $! >&2; exit 0", &[]).await;
    fake.asked("/complete", 1).await;
    drop(child);
    let (fake, _child) = working("sleep 40 & echo no such address >&2; exit 1", &[]).await;
    let failed = fake.asked("/fail", 1).await;
    let error = failed[0].json()["error"].as_str().expect("a reason").to_owned();
    assert_eq!(error, "exit status: 1: no such address");
}

/// A logger that ended fails no task: what the command says is passed on to nobody, and kept for the failure all the same.
#[tokio::test]
async fn a_worker_whose_standard_error_is_lost_works_on() {
    let (fake, mut child) = working("read line; echo one >&2; sleep 0.1; echo two >&2; exit 0", &[]).await;
    drop(child.stderr.take());
    fake.asked("/complete", 1).await;
    let (fake, mut child) = working("read line; echo no such address >&2; sleep 0.1; exit 1", &[]).await;
    drop(child.stderr.take());
    let failed = fake.asked("/fail", 1).await;
    assert_eq!(failed[0].json()["error"], json!("exit status: 1: no such address"));
}

/// Else the next worker would begin while the command of a claim that was lost is being ended.
#[tokio::test]
async fn a_claim_outlasts_the_grace_of_its_command() {
    let (fake, _child) = working("exit 0", &["--grace", "3s"]).await;
    assert_eq!(fake.asked("/claim", 1).await[0].json()["lease_ms"], json!(63_250));
}

/// Nobody extends its claim then, and somebody else gets the task.
#[tokio::test]
async fn a_command_ends_where_its_worker_stands_still() {
    let home = tempfile::tempdir().expect("a directory");
    let (_fake, mut child) = working(&clinging(home.path()), &["--for", "2s", "--grace", "100ms"]).await;
    runs(&mut child).await;
    let below = below(home.path());
    // Longer than its guardian waits for a word.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(state(&below).is_some(), "it works while we are there");
    signal(&child, "-STOP");
    until("what the command started is gone", || state(&below).is_none()).await;
    signal(&child, "-KILL");
}

#[tokio::test]
async fn a_second_signal_ends_what_runs_and_gives_its_task_back() {
    let script = "trap 'exit 1' TERM; echo runs; while :; do sleep 0.02; done";
    for options in [["--stop-within", "60s"], ["--stop-within", "50ms"]] {
        let (fake, mut child) = working(script, &options).await;
        runs(&mut child).await;
        signal(&child, "-INT");
        if options[1] == "60s" {
            signal(&child, "-TERM");
        }
        let back = fake.asked("/fail", 1).await;
        assert_eq!(back[0].json()["release"], json!(true), "{:?}", back[0]);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("in time");
        let said = String::from_utf8(output.expect("ended").stdout).expect("UTF-8");
        assert_eq!(said, "completed 0, failed 0, lost 0, given back 1\n");
    }
}
