//! `quorate lock` and `quorate elect`: what the command is told, how it is ended, and the exit codes.

use std::process::Stdio;
use std::time::Duration;

use quorate_client::api::{Applied, ErrorCode};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::commands::run;
use crate::fake::{Act, Fake, nobody};

/// Starts `quorate` with a command that prints a line once it runs.
async fn started(fake: &Fake, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["--endpoints", &fake.address]).args(arguments).kill_on_drop(true);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let line = tokio::time::timeout(Duration::from_secs(10), lines.next_line()).await.expect("in time");
    assert_eq!(line.expect("can be read").as_deref(), Some("runs"));
    child
}

fn signal(child: &Child, number: &str) {
    let id = child.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args([number, &id]).status().expect("kill runs");
    assert!(sent.success());
}

/// Exit code and what it said on standard error.
async fn end(child: Child) -> (Option<i32>, String) {
    let output = tokio::time::timeout(Duration::from_secs(10), child.wait_with_output()).await.expect("in time");
    let output = output.expect("it ended");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn the_command_is_told_the_lock_and_its_exit_code_is_passed_on() {
    let fake = Fake::start().await;
    let told = "echo $QUORATE_LOCK $QUORATE_TOKEN $QUORATE_SESSION $QUORATE_ENDPOINTS; exit 7";
    let ran = run(&fake.address, &["lock", "l", "--slots", "2", "--ttl", "60s", "--", "sh", "-c", told]).await;
    assert_eq!((ran.code, ran.out), (7, format!("l 18 17 {}\n", fake.address)), "{}", ran.err);
    assert_eq!(ran.err, "", "the command has the word");
    assert_eq!(fake.seen_at("/acquire")[0].json()["slots"], 2);
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "the session was ended: {:?}", fake.seen());
    let killed = run(&fake.address, &["lock", "l", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.code, 137);
    let told = "echo $QUORATE_ELECTION $QUORATE_TERM $QUORATE_LOCK";
    let elect = run(&fake.address, &["elect", "e", "--value", "{\"at\":1}", "--", "sh", "-c", told]).await;
    assert_eq!((elect.code, elect.out.as_str()), (0, "e 18\n"), "{}", elect.err);
    assert_eq!(fake.seen_at("/campaign")[0].json()["value"], json!({"at": 1}));
}

#[tokio::test]
async fn a_write_takes_its_guard_from_the_innermost_command_around_it() {
    let fake = Fake::start().await;
    let quorate = env!("CARGO_BIN_EXE_quorate");
    let arguments = ["elect", "e", "--", quorate, "lock", "l", "--", quorate, "put", "k", "1", "--guarded"];
    let ran = run(&fake.address, &arguments).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let guard = fake.seen().into_iter().find_map(|seen| seen.op?.guard).expect("a guarded write");
    assert_eq!(guard, quorate_client::api::Guard::lock("l", 18));
    let by_hand = ["rm", "k", "--guard-election", "e", "--guard-token", "5"];
    assert_eq!(run(&fake.address, &by_hand).await.code, 0);
    fake.script([Act::problem(ErrorCode::GuardFailed, Applied::No)]);
    assert_eq!(run(&fake.address, &by_hand).await.code, 3);
}

#[tokio::test]
async fn a_lock_that_is_not_got_or_a_command_that_is_not_there_is_told_by_the_exit_code() {
    let fake = Fake::start().await;
    fake.always("/acquire", Act::problem(ErrorCode::Locked, Applied::No));
    let ran = run(&fake.address, &["lock", "l", "--wait", "0s", "--", "echo", "never"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "nothing is left behind");
    fake.always("/acquire", Act::Slow(Duration::ZERO));
    let ran = run(&fake.address, &["lock", "l", "--", "/no/such/program"]).await;
    assert!(ran.code == 127 && ran.err.contains("/no/such/program"), "{}", ran.err);
    let ran = run(&nobody().await, &["lock", "l", "--timeout", "200ms", "--", "echo", "never"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for (arguments, hint) in [
        (["lock", "l"].as_slice(), "CMD"),
        (&["lock", "l", "--ttl", "10", "--", "true"], "10s"),
        (&["lock", "l", "--shared", "--slots", "2", "--", "true"], "--slots"),
        (&["elect", "e", "--forever", "--wait", "1s", "--", "true"], "--wait"),
        (&["elect", "e", "--value", "hello", "--", "true"], "not JSON"),
        (&["put", "k", "1", "--guarded"], "quorate lock"),
        (&["put", "k", "1", "--guard-token", "1"], "--guard-lock"),
        (&["locks", "release", "l"], "--token"),
        (&["barrier", "wait", "b", "0"], "0"),
    ] {
        let ran = run(&fake.address, arguments).await;
        assert!(ran.code == 2 && ran.err.contains(hint), "{arguments:?}: {} {}", ran.code, ran.err);
    }
}

#[tokio::test]
async fn a_command_is_ended_when_the_lock_is_lost_and_killed_if_it_does_not_end() {
    let fake = Fake::start().await;
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let begin = ["lock", "l", "--ttl", "900ms", "--grace", "300ms", "--", "sh", "-c"];
    let obeys = started(&fake, &[&begin[..], &["echo runs; sleep 60"]].concat()).await;
    let (code, said) = end(obeys).await;
    assert!(
        code == Some(1) && said.contains("the lock `l` was lost: no renewal was confirmed in time"),
        "{code:?} {said}"
    );
    let clings = started(&fake, &[&begin[..], &["trap '' TERM; echo runs; while :; do sleep 1; done"]].concat()).await;
    let (code, said) = end(clings).await;
    assert!(code == Some(1) && said.contains("was lost"), "{code:?} {said}");
}

#[tokio::test]
async fn signals_reach_the_command_and_end_a_wait() {
    let fake = Fake::start().await;
    let script = "trap 'exit 9' TERM; trap 'exit 8' INT; echo runs; while :; do sleep 0.05; done";
    for (number, expected) in [("-TERM", 9), ("-INT", 8)] {
        let child = started(&fake, &["lock", "l", "--", "sh", "-c", script]).await;
        signal(&child, number);
        assert_eq!(end(child).await.0, Some(expected), "{number}");
    }
    let child = started(&fake, &["elect", "e", "--forever", "--", "sh", "-c", script]).await;
    signal(&child, "-TERM");
    assert_eq!(end(child).await.0, Some(9), "it does not stand again");
    let before = fake.seen_at("/acquire").len();
    fake.always("/acquire", Act::Slow(Duration::from_secs(60)));
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["--endpoints", &fake.address, "lock", "l", "--", "true"]).kill_on_drop(true);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    fake.asked("/acquire", before + 1).await;
    signal(&child, "-TERM");
    let (code, said) = end(child).await;
    assert!(code == Some(143) && said.contains("while waiting"), "{code:?} {said}");
}

#[tokio::test]
async fn who_leads_for_ever_stands_again_when_the_command_ends() {
    let fake = Fake::start().await;
    let child = started(&fake, &["elect", "e", "--forever", "--", "echo", "runs"]).await;
    let campaigns = fake.asked("/campaign", 2).await;
    assert!(campaigns.len() >= 2 && fake.seen_at("/v1/sessions").len() >= 2, "{:?}", fake.seen());
    drop(child);
}
