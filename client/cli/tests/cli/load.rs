//! `quorate load`: what is sent in which pieces, what is told of lines that fail, and that a load started again repeats
//! exactly what it has to.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use quorate_client::api::{Applied, BulkRequest, ErrorCode, InputFault, Problem};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::commands::{Ran, command, run};
use crate::fake::{Act, Fake, Seen};

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Loads `text` with these options, from a file that is written for it.
    async fn load(&self, fake: &Fake, text: &str, options: &[&str]) -> Ran {
        let input = self.path("input");
        std::fs::write(&input, text).expect("can be written");
        run(&fake.address, &[&["load", input.to_str().expect("UTF-8")], options].concat()).await
    }
}

fn entries(count: usize) -> String {
    (0..count).map(|n| format!("{{\"key\":\"k{n}\",\"value\":{{\"n\":{n}}}}}\n")).collect()
}

fn keys(seen: &Seen) -> Vec<String> {
    let bulk: BulkRequest = serde_json::from_str(&seen.body).expect("a bulk");
    bulk.ops.into_iter().map(|op| op.key.to_string()).collect()
}

fn ids(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(|seen| seen.id.clone().expect("a write has an id")).collect()
}

/// A refusal that no further try would change.
fn full() -> Act {
    Act::problem(ErrorCode::QuotaExceeded, Applied::No)
}

#[tokio::test]
async fn every_line_is_sent_once_in_pieces_under_ids_of_their_own() {
    let (fake, home) = (Fake::start().await, Home::new());
    let ran = home.load(&fake, &entries(5_000), &["--prefix", "p/", "--chunk", "600", "--parallel", "3"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("loaded 5000 lines: applied 5000, skipped 0, failed 0 in "), "{}", ran.out);
    assert_eq!(ran.err, "", "no bar where there is no terminal");
    let seen = fake.seen();
    let sent: Vec<_> = seen.iter().flat_map(keys).collect();
    assert_eq!((seen.len(), sent.len()), (9, 5_000));
    let expected: BTreeSet<_> = (0..5_000).map(|n| format!("p/k{n}")).collect();
    assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(ids(&seen).into_iter().collect::<BTreeSet<_>>().len(), 9);
    assert!(seen.iter().all(|seen| seen.header("prefer") == Some("return=minimal")));
}

#[tokio::test]
async fn documents_come_from_standard_input_with_the_key_in_them() {
    let fake = Fake::start().await;
    let mut load = command(&fake.address, &["load", "-", "--key-field", "who.id", "--op", "upsert"]);
    load.args(["--output", "json", "--request-id", "nightly"]);
    let mut child = load.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"{\"who\":{\"id\":7},\"n\":1.50}\n\n{\"who\":{\"id\":\"b\"}}").await.expect("is read");
    drop(input);
    let output = child.wait_with_output().await.expect("it ends");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&summary["load"], &summary["lines"], &summary["applied"]), (&json!("nightly"), &json!(3), &json!(2)));
    let seen = fake.seen();
    assert_eq!(ids(&seen), ["nightly-0-45"]);
    let ops = r#"{"ops":[{"op":"upsert","key":"7","value":{"who":{"id":7},"n":1.50}},{"op":"upsert","key":"b","value":{"who":{"id":"b"}}}]}"#;
    assert_eq!(seen[0].body, ops);
}

#[tokio::test]
async fn keys_that_are_no_text_are_loaded_as_they_were_exported() {
    let (fake, home) = (Fake::start().await, Home::new());
    let text = "{\"key_base64\":\"/g==\",\"value\":1}\n{\"key_base64\":\"/w==\",\"value\":2}\n{\"key\":\"\u{FFFD}\",\"value\":3}\n";
    let ran = home.load(&fake, text, &["--prefix", r"p/\xfd"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(keys(&fake.seen()[0]), [r"p/\xfd\xfe", r"p/\xfd\xff", "p/\\xfd\u{FFFD}"]);
    let body = &fake.seen()[0].body;
    assert!(body.contains(r#"{"op":"insert","key_base64":"cC/9/g==","value":1}"#), "{body}");
}

#[tokio::test]
async fn lines_that_fail_are_told_with_their_number_and_the_others_are_loaded() {
    let (fake, home) = (Fake::start().await, Home::new());
    let item = json!({"n": 1, "key": "k2", "outcome": "failed", "revision": "5", "status": 423, "code": "locked", "detail": "is locked"});
    let answer = json!({"applied": 2, "skipped": 1, "failed": 1, "results": [item], "revision": "5", "index": 6});
    fake.script([Act::Answer(200, answer.to_string())]);
    let text = entries(4).replace("{\"key\":\"k1\"", "{\"kee\":\"k1\"") + "{\"key\":\"k4\",\"value\":4}\n";
    let ran = home.load(&fake, &text, &[]).await;
    assert_eq!(ran.code, 3);
    assert!(ran.out.starts_with("loaded 5 lines: applied 2, skipped 1, failed 2 in "), "{}", ran.out);
    for expected in ["line 2: unknown field `kee`", "line 3: `k2`: is locked\n", "error: 2 of 5 lines failed"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[tokio::test]
async fn lines_for_which_a_whole_bulk_is_refused_are_left_out_of_it() {
    let (fake, home) = (Fake::start().await, Home::new());
    let mut refusal = Problem::new(ErrorCode::InvalidArgument, Applied::No, "the key is too long");
    refusal.errors = vec![InputFault { pointer: "/ops/1/key".into(), detail: "too long".into() }];
    fake.script([Act::refuse(refusal)]);
    let ran = home.load(&fake, &entries(3), &["--request-id", "l"]).await;
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("line 2: `k1`: too long"), "{}", ran.err);
    let seen = fake.seen();
    assert_eq!(
        (keys(&seen[1]), ids(&seen)),
        (vec!["k0".into(), "k2".into()], vec!["l-0-87".into(), "l-0-87-1".into()])
    );
    fake.script([Act::problem(ErrorCode::InvalidArgument, Applied::No)]);
    let ran = home.load(&fake, &entries(3), &[]).await;
    assert_eq!((ran.code, fake.seen().len()), (1, 3), "a refusal that names no line ends the load: {}", ran.err);
}

#[tokio::test]
async fn a_load_that_is_started_again_goes_on_under_the_same_ids() {
    let (fake, home) = (Fake::start().await, Home::new());
    let state = home.path("state");
    let options = ["--resume", state.to_str().expect("UTF-8"), "--chunk", "2", "--parallel", "1"];
    let text = entries(8);
    fake.script([Act::Slow(std::time::Duration::ZERO), full()]);
    let ran = home.load(&fake, &text, &options).await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    for expected in ["everything up to line 2 is done (applied 2, skipped 0, failed 0)", "the same command goes on"] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    let first = fake.seen();
    let ran = home.load(&fake, &text, &options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("loaded 8 lines: applied 8, "), "the first part counts too: {}", ran.out);
    let again = &fake.seen()[first.len()..];
    assert_eq!(again.len(), 3);
    assert_eq!((&again[0].id, &again[0].body), (&first[1].id, &first[1].body), "what was open is sent as it was");
    assert_eq!(again.iter().flat_map(keys).collect::<Vec<_>>(), ["k2", "k3", "k4", "k5", "k6", "k7"]);
    let ran = home.load(&fake, &text, &options).await;
    assert!(ran.code == 0 && ran.out.starts_with("loaded 8 lines: applied 8, "), "{} {}", ran.out, ran.err);
    assert_eq!(fake.seen().len(), first.len() + 3, "what is complete is not sent again");
}

#[tokio::test]
async fn chunks_that_overtook_a_failed_one_are_sent_again_under_their_ids() {
    let (fake, home) = (Fake::start().await, Home::new());
    let state = home.path("state");
    let options = ["--resume", state.to_str().expect("UTF-8"), "--chunk", "1", "--parallel", "3"];
    // The first chunk fails; the two beside it are acknowledged, and yet stand behind a gap.
    fake.script([full()]);
    let ran = home.load(&fake, &entries(3), &options).await;
    assert!(ran.code == 1 && ran.err.contains("up to line 0 is done (applied 0"), "{}", ran.err);
    let first = fake.seen();
    let ran = home.load(&fake, &entries(3), &options).await;
    assert!(ran.code == 0 && ran.out.starts_with("loaded 3 lines: applied 3, "), "{} {}", ran.out, ran.err);
    let known: BTreeSet<_> =
        fake.seen()[first.len()..].iter().map(|seen| (seen.id.clone(), seen.body.clone())).collect();
    assert_eq!(known.len(), 3);
    for seen in first {
        assert!(known.contains(&(seen.id.clone(), seen.body.clone())), "{seen:?}");
    }
}

#[tokio::test]
async fn a_state_file_goes_on_with_its_own_load_only() {
    let (fake, home) = (Fake::start().await, Home::new());
    let state = home.path("state");
    let resume = state.to_str().expect("UTF-8");
    let ran = home.load(&fake, &entries(3), &["--resume", resume, "--chunk", "2"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = fake.seen().len();
    for (options, hint) in [
        (["--chunk", "3"].as_slice(), "--chunk 2"),
        (&["--chunk", "2", "--prefix", "p/"], "--prefix ''"),
        (&["--chunk", "2", "--request-id", "other"], "leave --request-id out"),
    ] {
        let ran = home.load(&fake, &entries(3), &[&["--resume", resume], options].concat()).await;
        assert!(ran.code == 2 && ran.err.contains(hint), "{hint}: {}", ran.err);
    }
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&state).expect("is there")).expect("JSON");
    let shorter = kept.to_string().replace("\"complete\":true", "\"complete\":false");
    std::fs::write(&state, shorter).expect("can be written");
    let ran = home.load(&fake, "{}\n", &["--resume", resume, "--chunk", "2"]).await;
    assert!(ran.code == 2 && ran.err.contains("another input"), "{}", ran.err);
    std::fs::write(&state, "{}").expect("can be written");
    let ran = home.load(&fake, &entries(3), &["--resume", resume, "--chunk", "2"]).await;
    assert!(ran.code == 2 && ran.err.contains("not the state of a load"), "{}", ran.err);
    assert_eq!(fake.seen().len(), sent);
}

#[tokio::test]
async fn another_input_is_refused_whatever_its_length() {
    let (fake, home) = (Fake::start().await, Home::new());
    let state = home.path("state");
    let options = ["--resume", state.to_str().expect("UTF-8"), "--chunk", "2", "--op", "upsert"];
    let ran = home.load(&fake, &entries(6), &options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = fake.seen().len();
    for (other, line) in [
        (entries(6).replace("\"k0\"", "\"j0\""), "its first line"),
        (entries(6).replace("\"k5\"", "\"j5\""), "its line 6"),
        (entries(9).replace("\"k5\"", "\"j5\""), "its line 6"),
    ] {
        let ran = home.load(&fake, &other, &options).await;
        assert!(ran.code == 2 && ran.err.contains("another input") && ran.err.contains(line), "{line}: {}", ran.err);
    }
    assert_eq!(fake.seen().len(), sent);
    let ran = home.load(&fake, &entries(7), &options).await;
    assert!(ran.code == 0 && ran.out.starts_with("loaded 7 lines"), "{ran:?}");

    // What was under way is sent again, and nodes no longer know it.
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&state).expect("is there")).expect("JSON");
    for (age, is_warned) in [(16 * 60, true), (60, false)] {
        let mut old = kept.clone();
        (old["complete"], old["saved"]) = (json!(false), json!(old["saved"].as_u64().expect("a time") - age));
        std::fs::write(&state, old.to_string()).expect("can be written");
        let ran = home.load(&fake, &entries(7), &options).await;
        assert_eq!((ran.code, ran.err.contains("more than 15 minutes")), (0, is_warned), "{}", ran.err);
    }
}

#[tokio::test]
async fn an_input_that_grows_is_loaded_once_and_whole() {
    let (fake, home) = (Fake::start().await, Home::new());
    let state = home.path("state");
    let options = ["--resume", state.to_str().expect("UTF-8"), "--chunk", "4", "--parallel", "2"];
    let text = entries(8);
    let half = text.len() / 8 * 2 + 10;
    // What is there: two lines and a part of the third. The outcome of the first chunk stays unknown.
    fake.script(vec![Act::problem(ErrorCode::Timeout, Applied::Unknown); 50]);
    let ran = home.load(&fake, &text[..half], &[&options[..], &["--timeout", "300ms"]].concat()).await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    let first = fake.seen()[0].clone();
    assert_eq!(keys(&first), ["k0", "k1"]);
    let (fake, before) = (Fake::start().await, fake);
    drop(before);
    let ran = home.load(&fake, text.trim_end(), &options).await;
    assert!(ran.code == 0 && ran.out.starts_with("loaded 8 lines: applied 8, "), "{} {}", ran.out, ran.err);
    let again = fake.seen().into_iter().find(|seen| seen.id == first.id).expect("the same id again");
    assert_eq!(again.body, first.body, "under an id nothing else is sent");
    let sent: BTreeSet<_> = fake.seen().iter().flat_map(keys).collect();
    assert_eq!(sent, (0..8).map(|n| format!("k{n}")).collect());
    // The last line had no break; it gets one, and a further line begins.
    let more = format!("{text}{{\"key\":\"k8\",\"value\":8}}\n{{\"key\":\"k9\"");
    let ran = home.load(&fake, &more, &options).await;
    assert!(ran.code == 0 && ran.out.starts_with("loaded 9 lines: applied 9, "), "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("the last 11 bytes are no whole line"), "{}", ran.err);
    assert_eq!(keys(fake.seen().last().expect("was sent")), ["k8"]);
}
