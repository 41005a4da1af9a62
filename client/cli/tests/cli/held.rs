//! `quorate lock` and `quorate elect`: what the command is told, how it is ended, and the exit codes.

use std::process::Stdio;
use std::time::Duration;

use quorate_client::api::{Applied, ErrorCode, Problem};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::PATIENCE;
use crate::commands::{command, run};
use crate::fake::{Act, Fake, nobody};

/// Starts `quorate` with a command that prints a line once it runs.
async fn started(fake: &Fake, arguments: &[&str]) -> Child {
    let mut child = spawned(command(&fake.address, arguments).stdout(Stdio::piped()));
    let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time");
    assert_eq!(line.expect("can be read").as_deref(), Some("runs"));
    child
}

/// Runs it without input, and listens to what it says.
fn spawned(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs")
}

pub fn signal(child: &Child, number: &str) {
    let id = child.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args([number, &id]).status().expect("kill runs");
    assert!(sent.success());
}

/// Exit code and what it said on standard error.
async fn end(child: Child) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("in time");
    let output = output.expect("it ended");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn the_command_is_told_the_lock_and_its_exit_code_is_passed_on() {
    let fake = Fake::start().await;
    let told = "echo $QUORATE_LOCK $QUORATE_FENCING_TOKEN $QUORATE_SESSION $QUORATE_ENDPOINTS; exit 7";
    let ran = run(&fake.address, &["lock", "run", "l", "--slots", "2", "--ttl", "60s", "--", "sh", "-c", told]).await;
    assert_eq!((ran.code, ran.out), (7, format!("l 18 17 {}\n", fake.address)), "{}", ran.err);
    assert_eq!(ran.err, "", "the command has the word");
    assert_eq!(fake.seen_at("/acquire")[0].json()["slots"], 2);
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "the session was ended: {:?}", fake.seen());
    let killed = run(&fake.address, &["lock", "l", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.code, 137);
    // A loss is known a second before a session of ten is over, and the command has five from then on.
    assert_eq!(
        fake.seen_at("/acquire")[1].json()["delay_ms"],
        4_250,
        "nobody gets it while the command may be at work"
    );
    let told = "echo $QUORATE_ELECTION $QUORATE_TERM $QUORATE_LOCK";
    let elect = run(&fake.address, &["elect", "e", "--value", "{\"at\":1}", "--", "sh", "-c", told]).await;
    assert_eq!((elect.code, elect.out.as_str()), (0, "e 18\n"), "{}", elect.err);
    assert_eq!(fake.seen_at("/campaign")[0].json()["value"], json!({"at": 1}));
    assert_eq!(fake.seen_at("/campaign")[0].json()["delay_ms"], 4_250);
    let own = ["lock", "l", "--ttl", "2s", "--delay", "1s", "--", "true"];
    assert_eq!(run(&fake.address, &own).await.code, 0);
    assert_eq!(fake.seen_at("/acquire")[2].json()["delay_ms"], 1_000);
}

#[tokio::test]
async fn a_write_takes_its_guard_from_the_innermost_command_around_it() {
    let fake = Fake::start().await;
    let quorate = env!("CARGO_BIN_EXE_quorate");
    let arguments =
        ["election", "run", "e", "--", quorate, "lock", "run", "l", "--", quorate, "put", "k", "1", "--guarded"];
    let ran = run(&fake.address, &arguments).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let guard = fake.seen().into_iter().find_map(|seen| seen.op?.guard).expect("a guarded write");
    assert_eq!(guard, quorate_client::api::Guard::lock("l", 18));
    let by_hand = ["delete", "k", "--guard-election", "e", "--guard-token", "5"];
    assert_eq!(run(&fake.address, &by_hand).await.code, 0);
    fake.script([Act::problem(ErrorCode::GuardFailed, Applied::No)]);
    assert_eq!(run(&fake.address, &by_hand).await.code, 3);
}

#[tokio::test]
async fn a_lock_that_is_not_got_or_a_command_that_is_not_there_is_told_by_the_exit_code() {
    let fake = Fake::start().await;
    fake.always("/acquire", Act::problem(ErrorCode::Locked, Applied::No));
    let ran = run(&fake.address, &["lock", "l", "--wait", "0s", "--max-waiters", "2", "--", "echo", "never"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    assert_eq!(fake.seen_at("/acquire")[0].json()["max_waiters"], 2);
    assert_eq!(fake.seen_at("/sessions/17").len(), 1, "nothing is left behind");
    fake.always("/acquire", Act::Slow(Duration::ZERO));
    let ran = run(&fake.address, &["lock", "run", "l", "--", "/no/such/program"]).await;
    assert!(ran.code == 127 && ran.err.contains("/no/such/program"), "{}", ran.err);
    let ran = run(&nobody(), &["lock", "run", "l", "--timeout", "200ms", "--", "echo", "never"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for (arguments, hint) in [
        (["lock", "run", "l"].as_slice(), "CMD"),
        (&["lock", "run", "l", "--ttl", "10", "--", "true"], "10s"),
        (&["lock", "run", "l", "--shared", "--slots", "2", "--", "true"], "--slots"),
        (&["election", "run", "e", "--forever", "--wait", "1s", "--", "true"], "--wait"),
        (&["election", "run", "e", "--value", "hello", "--", "true"], "not JSON"),
        (&["put", "k", "1", "--guarded"], "quorate lock"),
        (&["put", "k", "1", "--guard-token", "1"], "--guard-lock"),
        (&["lock", "release", "l"], "--token"),
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
    let begin = ["lock", "run", "l", "--ttl", "900ms", "--grace", "300ms", "--", "sh", "-c"];
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
        let child = started(&fake, &["lock", "run", "l", "--", "sh", "-c", script]).await;
        signal(&child, number);
        assert_eq!(end(child).await.0, Some(expected), "{number}");
    }
    let child = started(&fake, &["election", "run", "e", "--forever", "--", "sh", "-c", script]).await;
    signal(&child, "-TERM");
    assert_eq!(end(child).await.0, Some(9), "it does not stand again");
    let before = fake.seen_at("/acquire").len();
    fake.always("/acquire", Act::Slow(Duration::from_secs(60)));
    let child = spawned(&mut command(&fake.address, &["lock", "run", "l", "--", "true"]));
    fake.asked("/acquire", before + 1).await;
    signal(&child, "-TERM");
    let (code, said) = end(child).await;
    assert!(code == Some(143) && said.contains("while waiting"), "{code:?} {said}");
}

#[tokio::test]
async fn who_waits_is_told_for_whom_and_who_is_refused_by_whom() {
    let fake = Fake::start().await;
    let lock = |owner: &str, token: u64| {
        let holder = json!({"session": "5191", "owner": owner, "token": token.to_string(), "mode": "exclusive", "age_ms": 240_000});
        let waiter = |session: &str| json!({"session": session, "owner": "", "place": "7", "mode": "exclusive", "age_ms": 5, "wait_left_ms": 5});
        let lock = json!({"lock": "l", "slots": 1, "mode": "exclusive", "holders": [holder], "queue": [waiter("4"), waiter("17")],
            "holder_count": 1, "waiter_count": 2, "delay_left_ms": 0, "revision": "7", "index": 9});
        Act::Answer(200, lock.to_string())
    };
    fake.always("/v1/locks/l", lock("bob", 3));
    fake.always("/acquire", Act::Slow(Duration::from_secs(60)));
    let mut child = spawned(&mut command(&fake.address, &["lock", "run", "l", "--", "true"]));
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut said =
        async || tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("can be read");
    let first = said().await;
    assert_eq!(first.as_deref(), Some("waiting for `l`, held by session 5191 (bob) for 4m0s, 1 ahead"));
    fake.always("/v1/locks/l", lock("eve", 4));
    let next = said().await;
    assert_eq!(next.as_deref(), Some("waiting for `l`, held by session 5191 (eve) for 4m0s, 1 ahead"));
    signal(&child, "-TERM");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(143));

    fake.always("/acquire", Act::problem(ErrorCode::Locked, Applied::No));
    let ran = run(&fake.address, &["lock", "l", "--wait", "0s", "--", "true"]).await;
    let expected = "error: `l` is held by session 5191 (eve) for 4m0s; 2 are waiting\n";
    assert!(ran.code == 3 && ran.err.starts_with(expected), "{}", ran.err);

    let mut long = Problem::new(ErrorCode::Locked, Applied::No, "as many wait as may");
    (long.holders, long.waiters) = (Some(1), Some(2));
    fake.always("/acquire", Act::refuse(long));
    for (most, said) in [("2", "; --max-waiters is 2"), ("3", "")] {
        let ran = run(&fake.address, &["lock", "l", "--max-waiters", most, "--", "true"]).await;
        let expected = format!("error: `l` is held by session 5191 (eve) for 4m0s; 2 are waiting{said}\n");
        assert!(ran.code == 3 && ran.err.starts_with(&expected), "{}", ran.err);
    }
}

#[tokio::test]
async fn every_other_wait_is_told_too() {
    let stats = json!({"queue": "mail", "scheduled": 1, "claimed": 0, "dead": 0, "unplanned": 0, "done": 0, "completed_total": 0,
        "failed_total": 0, "died_total": 0, "cancelled_total": 0, "next_at": "2026-11-21T08:00:00.000Z", "revision": "7", "index": 9});
    let waits: [(&[&str], &str); 4] = [
        (&["get", "k", "--wait", "60s", "--cas", "7"], "waiting for `k` to change"),
        (&["entry", "lock", "k", "--wait", "60s"], "waiting for `k`, which somebody else has locked"),
        (&["entry", "get-and-lock", "k", "--wait", "60s"], "waiting for `k`, which somebody else has locked"),
        (
            &["task", "claim", "mail", "--wait", "60s"],
            "waiting for a task of `mail`, the next is due at 2026-11-21T08:00:00.000Z",
        ),
    ];
    for (arguments, expected) in waits {
        let fake = Fake::start().await;
        fake.always("/stats", Act::Answer(200, stats.to_string()));
        fake.script([Act::Slow(Duration::from_secs(60))]);
        let mut child = spawned(&mut command(&fake.address, arguments));
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let said = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("can be read");
        assert_eq!(said.as_deref(), Some(expected), "{arguments:?}");
    }
}

#[tokio::test]
async fn who_waits_for_nodes_is_told_for_which() {
    let down = nobody();
    for (arguments, what) in [(&["wait-ready"][..], "be ready"), (&["wait-ready", "--live"], "answer")] {
        let ran = run(&down, &[arguments, &["--timeout", "3s"]].concat()).await;
        let expected = format!("waiting for {down} to {what}\n");
        assert!(ran.code == 1 && ran.err.starts_with(&expected), "{expected} {}", ran.err);
    }
}

#[tokio::test]
async fn it_is_told_that_no_node_answers() {
    let ran = run(&nobody(), &["get", "k", "--timeout", "3s"]).await;
    let (first, rest) = ran.err.split_once('\n').expect("lines");
    assert!(first.starts_with("no node answers yet (127.0.0.1:") && first.ends_with("tried for 3.0s"), "{first}");
    assert!(ran.code == 1 && rest.starts_with("error: "), "{rest}");
}

#[tokio::test]
async fn who_leads_for_ever_stands_again_when_the_command_ends() {
    let fake = Fake::start().await;
    let child = started(&fake, &["election", "run", "e", "--forever", "--", "echo", "runs"]).await;
    let campaigns = fake.asked("/campaign", 2).await;
    assert!(campaigns.len() >= 2 && fake.seen_at("/v1/sessions").len() >= 2, "{:?}", fake.seen());
    drop(child);
}

#[tokio::test]
async fn a_command_reaches_the_same_cluster_as_the_same_user() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    std::fs::write(home.path().join("token"), "s3cret").expect("written");
    let mut command = command(&fake.address, &["--token-file", "token", "lock", "run", "l", "--", "sh", "-c"]);
    // It goes elsewhere, and another secret than its own stands in the environment.
    command.arg(format!("cd / && {} put k 1 --guarded", env!("CARGO_BIN_EXE_quorate")));
    command.env("QUORATE_TOKEN", "another").current_dir(home.path()).stdin(Stdio::null());
    let output = command.output().await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let put = fake.seen_at("/v1/ops").pop().expect("a write");
    assert_eq!(put.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(put.op.expect("an operation").guard, Some(quorate_client::api::Guard::lock("l", 18)));
}

/// The state letter of a process; `None` once it is gone.
pub fn state(id: &str) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    text.rsplit(')').next()?.trim_start().chars().next().filter(|state| !matches!(state, 'Z' | 'X'))
}

pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let look = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// A script that leaves the ids of what it starts in files, and does not end by TERM.
pub fn clinging(home: &std::path::Path) -> String {
    let path = home.display();
    format!(
        "sh -c 'trap \"\" TERM; echo $$ >{path}/below.new; mv {path}/below.new {path}/below; while :; do sleep 0.02; done' & \
             until [ -e {path}/below ]; do sleep 0.01; done; echo runs; wait"
    )
}

pub fn below(home: &std::path::Path) -> String {
    std::fs::read_to_string(home.join("below")).expect("it was written").trim().to_owned()
}

#[tokio::test]
async fn all_that_a_command_started_ends_with_the_lock_and_with_us() {
    let fake = Fake::start().await;
    for killed in [false, true] {
        let home = tempfile::tempdir().expect("a directory");
        fake.always("/renew", Act::Slow(if killed { Duration::ZERO } else { Duration::from_secs(60) }));
        let script = clinging(home.path());
        let ttl = if killed { "60s" } else { "900ms" };
        let arguments = ["lock", "run", "l", "--ttl", ttl, "--grace", "100ms", "--", "sh", "-c", &script];
        let child = started(&fake, &arguments).await;
        let below = below(home.path());
        assert!(state(&below).is_some());
        if killed {
            signal(&child, "-KILL");
        }
        until("what the command started is gone", || state(&below).is_none()).await;
        drop(child);
    }
}

#[tokio::test]
async fn the_work_ends_where_we_are_stopped_and_nobody_renews() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let script = clinging(home.path());
    let arguments = ["lock", "run", "l", "--ttl", "900ms", "--grace", "100ms", "--", "sh", "-c", &script];
    let child = started(&fake, &arguments).await;
    let (below, us) = (below(home.path()), child.id().expect("it runs").to_string());
    // Longer than the guardian would wait for a word.
    fake.asked("/renew", 4).await;
    assert!(state(&below).is_some(), "it works while we are there");
    signal(&child, "-STOP");
    until("what the command started is gone", || state(&below).is_none()).await;
    assert_eq!(state(&us), Some('T'), "we had no part in it");
    signal(&child, "-KILL");
}

/// A second TERM means "at once" to many programs.
#[tokio::test]
async fn a_command_that_has_its_grace_is_asked_to_end_once() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let asked = home.path().join("asked");
    let script = format!("trap 'echo asked >>{}' TERM; echo runs; while :; do sleep 0.02; done", asked.display());
    // A grace that is longer than the silence after which its guardian ends it.
    let arguments = ["lock", "run", "l", "--ttl", "700ms", "--grace", "2s", "--", "sh", "-c", &script];
    let (code, said) = end(started(&fake, &arguments).await).await;
    assert!(code == Some(1) && said.contains("was lost"), "{code:?} {said}");
    assert_eq!(std::fs::read_to_string(asked).expect("it was asked"), "asked\n");
}

#[tokio::test]
async fn who_stops_takes_the_work_along_and_goes_on_with_it_only_while_the_lock_holds() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let script = clinging(home.path());
    let arguments = ["lock", "run", "l", "--ttl", "60s", "--", "sh", "-c", &script];
    let child = started(&fake, &arguments).await;
    let (below, us) = (below(home.path()), child.id().expect("it runs").to_string());
    signal(&child, "-TSTP");
    until("both are stopped", || state(&below) == Some('T') && state(&us) == Some('T')).await;
    signal(&child, "-CONT");
    until("both go on", || ![state(&below), state(&us)].contains(&Some('T'))).await;
    signal(&child, "-KILL");
    until("it is gone", || state(&below).is_none()).await;

    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let mark = home.path().join("went-on");
    let script = format!(
        "trap 'exit 4' TERM; echo runs; while :; do sleep 0.01; [ -e {0}/armed ] && touch {1}; done",
        home.path().display(),
        mark.display()
    );
    let child = started(&fake, &["lock", "run", "l", "--ttl", "2s", "--", "sh", "-c", &script]).await;
    let us = child.id().expect("it runs").to_string();
    signal(&child, "-TSTP");
    until("it is stopped", || state(&us) == Some('T')).await;
    std::fs::write(home.path().join("armed"), "").expect("written");
    // Longer than the lock holds by itself.
    tokio::time::sleep(Duration::from_millis(2_300)).await;
    signal(&child, "-CONT");
    let (code, said) = end(child).await;
    assert!(code == Some(1) && said.contains("was lost"), "{code:?} {said}");
    assert!(!mark.exists(), "it did not work on for a moment");
}

#[tokio::test]
async fn who_leads_for_ever_ends_when_told_so_while_the_command_is_being_ended() {
    let fake = Fake::start().await;
    fake.always("/renew", Act::Slow(Duration::from_secs(60)));
    let home = tempfile::tempdir().expect("a directory");
    let ending = home.path().join("ending");
    let script = format!("trap 'touch {}' TERM; echo runs; while :; do sleep 0.02; done", ending.display());
    let arguments = ["election", "run", "e", "--forever", "--ttl", "700ms", "--grace", "1s", "--", "sh", "-c", &script];
    let child = started(&fake, &arguments).await;
    until("it was told to end", || ending.exists()).await;
    signal(&child, "-TERM");
    let (code, said) = end(child).await;
    assert!(code == Some(1) && said.contains("was lost"), "{code:?} {said}");
    assert_eq!(fake.seen_at("/campaign").len(), 1, "it does not stand again");
}

/// Both ends of a new pseudo terminal.
fn terminal() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut main, mut other) = (0, 0);
    // SAFETY: openpty writes both numbers, of descriptors that are ours from then on.
    unsafe {
        assert_eq!(libc::openpty(&mut main, &mut other, std::ptr::null_mut(), std::ptr::null(), std::ptr::null()), 0);
        (std::fs::File::from_raw_fd(main), std::fs::File::from_raw_fd(other))
    }
}

#[tokio::test]
async fn at_a_terminal_the_command_gets_what_is_typed_and_ends_as_a_whole() {
    let fake = Fake::start().await;
    for typed in ["\u{3}", ""] {
        let home = tempfile::tempdir().expect("a directory");
        if typed.is_empty() {
            fake.always("/renew", Act::Slow(Duration::from_secs(60)));
        }
        let (mut main, other) = terminal();
        let script = format!("read line; echo \"$line\" >{}/read; {}", home.path().display(), clinging(home.path()));
        let arguments = ["lock", "run", "l", "--ttl", "900ms", "--grace", "100ms", "--", "sh", "-c", &script];
        let mut command = command(&fake.address, &arguments);
        command.stdin(other).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: setsid and ioctl are plain system calls; standard input is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("it runs");
        std::io::Write::write_all(&mut main, b"hello\n").expect("is read");
        until("the command runs", || home.path().join("below").exists()).await;
        assert_eq!(std::fs::read_to_string(home.path().join("read")).expect("is there"), "hello\n");
        std::io::Write::write_all(&mut main, typed.as_bytes()).expect("is read");
        let (below, us) = (below(home.path()), child.id().expect("it runs").to_string());
        until("it has ended", || state(&us).is_none()).await;
        if typed.is_empty() {
            assert_eq!(state(&below), None, "all of it is gone");
            let (code, said) = end(child).await;
            assert!(code == Some(1) && said.contains("was lost"), "{code:?} {said}");
        } else {
            // What a command leaves running when it ends is its own.
            let killed = std::process::Command::new("kill").args(["-KILL", &below]).status().expect("kill runs");
            assert!(killed.success());
            assert_eq!(end(child).await.0, Some(130));
        }
    }
}
