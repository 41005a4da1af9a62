//! Changes of one entry by an editor or a command, what it was before, and commands for events.

use std::process::{Output, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_client::api::{Applied, ErrorCode, Problem, TtlRule};
use serde_json::{Value, json};

use crate::commands::{command, run};
use crate::fake::{Act, Fake, entry};

fn answer(entry: &Value) -> Act {
    Act::Answer(200, entry.to_string())
}

/// A refusal that shows the entry as it is.
fn changed(entry: &Value) -> Act {
    let mut problem = Problem::new(ErrorCode::CasMismatch, Applied::No, "the cas is another");
    problem.current = Some(serde_json::from_value(entry.clone()).expect("an entry"));
    Act::refuse(problem)
}

/// Runs `quorate edit k` with a script as the editor, which finds the file as `$1`.
async fn edit(fake: &Fake, home: &std::path::Path, editor: &str) -> Output {
    let script = home.join("editor");
    std::fs::write(&script, editor).expect("written");
    let mut edit = command(&fake.address, &["edit", "k"]);
    edit.env("TMPDIR", home).env_remove("VISUAL").env("EDITOR", format!("sh {}", script.display()));
    edit.stdin(Stdio::null()).output().await.expect("the binary runs")
}

fn drafts(home: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(home).expect("is there").map(|file| file.expect("is there"));
    let names = files.filter(|file| file.file_name().to_string_lossy().starts_with("quorate-"));
    names.map(|file| std::fs::read_to_string(file.path()).expect("text")).collect()
}

#[tokio::test]
async fn an_edit_is_saved_on_the_cas_that_was_read() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let mut lasting = entry("k", &json!({"n": 1}), "7");
    (lasting["ttl_ms"], lasting["session"]) = (json!(5_000), json!("17"));
    fake.script([answer(&lasting)]);
    let output = edit(&fake, home.path(), "sed -i 's/1/2.50/' \"$1\"").await;
    assert!(output.status.success(), "{output:?}");
    let op = fake.seen()[1].op.clone().expect("a write");
    assert_eq!((op.cas.as_deref(), op.session.as_deref()), (Some("7"), Some("17")));
    assert_eq!((op.ttl, op.ttl_ms), (Some(TtlRule::Keep), None), "no time is given back: {op:?}");
    assert_eq!(op.value.expect("a value").0.get().split_whitespace().collect::<String>(), "{\"n\":2.50}");
    assert!(drafts(home.path()).is_empty());
    let output = edit(&fake, home.path(), "true").await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "unchanged: k\n");
    assert!(drafts(home.path()).is_empty() && fake.seen().len() == 3);
}

/// Only what this command wrote above a value is taken away again.
#[tokio::test]
async fn lines_of_a_value_that_begin_like_notes_stay() {
    for (before, after) in [
        ("#!/bin/sh\n# greets\necho hi\n", "#!/bin/sh\n# greets\necho ho\n"),
        ("# hi, and nothing else\n", "# ho, and nothing else\n"),
    ] {
        let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
        let mut script = entry("k", &Value::Null, "7");
        let fields = script.as_object_mut().expect("an object");
        fields.remove("value");
        fields.insert("value_base64".into(), json!(STANDARD.encode(before)));
        fields.insert("content_type".into(), json!("bytes"));
        fake.script([answer(&script)]);
        let output = edit(&fake, home.path(), "sed -i 's/hi/ho/' \"$1\"").await;
        assert!(output.status.success(), "{output:?}");
        let op = fake.seen()[1].op.clone().expect("a write");
        assert_eq!(op.value_base64, Some(STANDARD.encode(after)));
    }
}

#[tokio::test]
async fn an_edit_that_lost_shows_both_changes_and_keeps_the_text_until_it_is_saved() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let script = [
        answer(&entry("k", &json!({"a": 1, "b": 1, "c": 1}), "7")),
        changed(&entry("k", &json!({"a": 1, "b": 3, "c": 3}), "9")),
    ];
    fake.script(script.clone());
    // First a and c are changed; then the notes are taken away.
    let editor = "grep -q '^#' \"$1\" && { cp \"$1\" \"$TMPDIR/seen\"; exec sed -i '/^#/d' \"$1\"; }; sed -i 's/\"a\": 1/\"a\": 2/; s/\"c\": 1/\"c\": 2/' \"$1\"";
    let output = edit(&fake, home.path(), editor).await;
    assert!(output.status.success(), "{output:?}");
    let seen = std::fs::read_to_string(home.path().join("seen")).expect("was shown");
    for note in ["# -   \"b\": 1,", "# +   \"b\": 3,", "# Both changed c; yours stands below."] {
        assert!(seen.contains(note), "{note}: {seen}");
    }
    let op = fake.seen()[2].op.clone().expect("a write");
    let value: Value = serde_json::from_str(op.value.expect("a value").0.get()).expect("JSON");
    assert_eq!((op.cas.as_deref(), value), (Some("9"), json!({"a": 2, "b": 3, "c": 2})));

    // Left as it is then: given up, and nothing is lost.
    fake.script(script);
    let editor = "grep -q '^#' \"$1\" || sed -i 's/\"a\": 1/\"a\": 2/' \"$1\"";
    let before = fake.seen().len();
    let output = edit(&fake, home.path(), editor).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("your text is in "), "{said}");
    assert_eq!(fake.seen().len(), before + 2, "it was not written");
    fake.script([answer(&entry("k", &json!({"a": 1}), "7"))]);
    let output = edit(&fake, home.path(), "echo '{\"a\"' > \"$1\"").await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("not JSON") && said.contains("your text is in "),
        "{said}"
    );
    assert!(drafts(home.path()).contains(&"{\"a\"\n".to_owned()), "{:?}", drafts(home.path()));
}

#[tokio::test]
async fn an_update_runs_its_command_again_on_what_is_there_now_and_not_for_ever() {
    let fake = Fake::start().await;
    fake.script([answer(&entry("k", &json!(1), "7")), changed(&entry("k", &json!(5), "9"))]);
    let add = ["update", "k", "--tries", "2", "--", "sh", "-c", "read n; echo $((n + 1))"];
    let ran = run(&fake.address, &add).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent: Vec<_> = fake.seen().into_iter().filter_map(|seen| seen.op).collect();
    let written: Vec<_> = sent.iter().filter_map(|op| Some((op.cas.as_deref()?, op.value.as_ref()?.0.get()))).collect();
    assert_eq!(written, [("7", "2"), ("9", "6")]);
    let now = entry("k", &json!(5), "9");
    fake.script([answer(&entry("k", &json!(1), "7")), changed(&now), changed(&now)]);
    let ran = run(&fake.address, &add).await;
    assert!(ran.code == 3 && ran.err.contains("somebody else was faster 2 times"), "{} {}", ran.code, ran.err);
    let before = fake.seen().len();
    for (script, code, said) in
        [("exit 9", 9, "exit code 9"), ("true", 2, "printed nothing"), ("echo hello", 2, "not JSON")]
    {
        fake.script([answer(&entry("k", &json!(1), "7"))]);
        let ran = run(&fake.address, &["update", "k", "--", "sh", "-c", script]).await;
        assert!(ran.code == code && ran.err.contains(said), "{script}: {} {}", ran.code, ran.err);
    }
    fake.script([answer(&entry("k", &json!(1), "7"))]);
    assert_eq!(run(&fake.address, &["update", "k", "--", "cat"]).await.out, "unchanged: k\n");
    assert_eq!(fake.seen().len(), before + 4, "nothing was written");
}

#[tokio::test]
async fn the_past_of_an_entry_is_shown_compared_and_brought_back() {
    let fake = Fake::start().await;
    let line = |revision: u64, effect: &str| json!({"revision": revision, "index": revision, "time": "2026-01-01T00:00:00Z", "op": "upsert", "effect": effect, "principal": "ann"});
    let audit = json!({"key": "k", "lines": [line(3, "changed"), line(4, "refused"), line(5, "removed"), line(7, "changed")], "oldest_revision": 1, "revision": 9, "index": 9});
    fake.script([Act::Answer(200, audit.to_string())]);
    // Versions are read in any order.
    fake.always("/k?revision=3", answer(&entry("k", &json!({"n": 1}), "3")));
    fake.always("/k?revision=7", answer(&entry("k", &json!({"n": 2}), "7")));
    let ran = run(&fake.address, &["history", "k"]).await;
    let expected = "revision 3  2026-01-01T00:00:00Z  ann  upsert  {\"n\":1}\n\
                    revision 5  2026-01-01T00:00:00Z  ann  upsert  (deleted)\n\
                    revision 7  2026-01-01T00:00:00Z  ann  upsert  {\"n\":2}\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, expected), "{}", ran.err);

    fake.script([
        answer(&entry("k", &json!({"n": 2, "m": 0}), "7")),
        answer(&entry("k", &json!({"n": 1, "m": 0}), "3")),
    ]);
    let ran = run(&fake.address, &["diff", "k"]).await;
    let expected = "k  revision 7 to revision 7\n  {\n-   \"n\": 1,\n+   \"n\": 2,\n    \"m\": 0\n  }\n";
    // A map of serde_json sorts its fields.
    let sorted =
        expected.replace("-   \"n\": 1,\n+   \"n\": 2,\n    \"m\": 0\n", "    \"m\": 0,\n-   \"n\": 1\n+   \"n\": 2\n");
    assert_eq!((ran.code, ran.out), (0, sorted), "{}", ran.err);

    fake.script([answer(&entry("k", &json!({"n": 2}), "7"))]);
    let ran = run(&fake.address, &["revert", "k", "--to", "3"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let op = fake.seen().pop().and_then(|seen| seen.op).expect("a write");
    assert_eq!((op.cas.as_deref(), op.value.expect("a value").0.get()), (Some("7"), "{\"n\":1}"));
    fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
    let ran = run(&fake.address, &["revert", "k", "--to", "2"]).await;
    assert!(ran.code == 3 && ran.err.contains("was not there at revision 2"), "{}", ran.err);
}

#[tokio::test]
async fn a_watch_that_breaks_among_the_initial_entries_runs_no_command_twice() {
    let fake = Fake::start().await;
    let initial = |key: &str, revision: u64| {
        let entry = entry(key, &json!(revision), "9");
        let data =
            json!({"type": "put", "revision": revision.to_string(), "key": key, "entry": entry, "initial": true});
        format!("event: put\ndata: {data}\n\n")
    };
    // Behind the break b is another, and c is new.
    let begin = Act::Answer(200, initial("a", 3) + &initial("b", 4));
    fake.script([begin, Act::Silence(initial("a", 3) + &initial("b", 5) + &initial("c", 6))]);
    let told = "echo $QUORATE_EVENT_KEY $QUORATE_EVENT_REVISION";
    let ran = run(&fake.address, &["watch", "--prefix", "", "--initial", "-n", "4", "--", "sh", "-c", told]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "a 3\nb 4\nb 5\nc 6\n"), "{}", ran.err);
}

#[tokio::test]
async fn a_watch_runs_a_command_for_each_event() {
    let fake = Fake::start().await;
    let event = |revision: u64| {
        let data = json!({"type": "put", "revision": revision, "index": 0, "key": "k", "entry": entry("k", &json!(revision), "9")});
        format!("event: put\ndata: {data}\nid: {revision}.0\n\n")
    };
    let events = || Act::Silence(event(8) + &event(9));
    fake.script([events()]);
    let told = "read line; echo \"$QUORATE_EVENT $QUORATE_EVENT_KEY $QUORATE_EVENT_REVISION $QUORATE_EVENT_CAS $line\" | cut -c1-38";
    let ran = run(&fake.address, &["watch", "k", "-n", "2", "--", "sh", "-c", told]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.out,
        "put k 8 9 {\"type\":\"put\",\"revision\":\"8\"\n\
         put k 9 9 {\"type\":\"put\",\"revision\":\"9\"\n"
    );
    fake.script([events(), events()]);
    let ran = run(&fake.address, &["watch", "k", "-n", "2", "--", "sh", "-c", "echo ran; exit 7"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (7, "ran\n"), "{}", ran.err);
    let ran =
        run(&fake.address, &["watch", "k", "-n", "2", "--keep-going", "--", "sh", "-c", "echo ran; exit 7"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "ran\nran\n"), "{}", ran.err);
}
