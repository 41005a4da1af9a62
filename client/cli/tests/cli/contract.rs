//! What programs may rely on: one form of failures and of lists, whatever the command.
//!
//! Owns no list of commands: those that there are, and an example of each, are what the helps say.

use std::path::Path;
use std::process::{Output, Stdio};

use futures::StreamExt;
use quorate_client::api::{Applied, ErrorCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::PATIENCE;
use crate::commands::run;
use crate::fake::{Act, Fake, nobody};

/// Commands that go on while no node answers, or ask none.
const WITHOUT_A_NODE: [&str; 11] = [
    "task work",
    "top",
    "shell",
    "mcp",
    "completions",
    "man",
    "context list",
    "context show",
    "context use",
    "context set",
    "context delete",
];

/// A command that can be run, and an example of it.
#[derive(Debug)]
struct Leaf {
    path: String,
    example: String,
}

/// The names below a heading of a help that lists commands.
fn listed(help: &str) -> Vec<String> {
    let is_end = |line: &str| ["Arguments:", "Options:", "Global options:"].contains(&line);
    let below = help.lines().skip_while(|line| !line.ends_with("ommands:")).take_while(|line| !is_end(line));
    let names = below
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().filter(|_| !line.starts_with("   ")));
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// How wide a help is at most.
const WIDTH: usize = 120;

/// The first example of a command in its help, which may be longer than a line there.
fn example(path: &str, help: &str) -> Option<String> {
    let begin = format!("  quorate {path}");
    let mut lines = help.lines().skip_while(|line| !line.starts_with(&begin) || line.contains("--forever"));
    let mut last = lines.next()?;
    let mut example = last.trim().to_owned();
    for line in lines {
        // What would have fitted stands on a line of its own.
        let is_rest = line.split_whitespace().next().is_some_and(|word| length(last) + 1 + length(word) > WIDTH);
        if !is_rest {
            break;
        }
        example = format!("{example} {}", line.trim());
        last = line;
    }
    Some(example)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// All commands, by asking for the helps.
async fn leaves() -> Vec<Leaf> {
    let (mut open, mut leaves) = (vec![String::new()], Vec::new());
    while let Some(path) = open.pop() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(path.split_whitespace()).arg("-h").env("COLUMNS", WIDTH.to_string()).kill_on_drop(true);
        let help = command.output().await.expect("the binary runs").stdout;
        let help = String::from_utf8(help).expect("UTF-8");
        let below = listed(&help);
        // `lock` is a command itself, too: `lock run` is the same.
        open.extend(below.iter().map(|name| format!("{path} {name}").trim().to_owned()));
        if below.is_empty() {
            let example = example(&path, &help).unwrap_or_else(|| panic!("no example of `{path}`: {help}"));
            leaves.push(Leaf { path, example });
        }
    }
    assert!(leaves.len() > 80, "{leaves:?}");
    leaves
}

/// Runs a line of a shell that finds `quorate`, without input.
async fn typed(line: &str, home: &Path, endpoints: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().expect("a directory").display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", path).env("XDG_CONFIG_HOME", home).current_dir(home).stdin(Stdio::null());
    command.env("QUORATE_ENDPOINTS", endpoints).env("QUORATE_OUTPUT", "json").env("QUORATE_TIMEOUT", "100ms");
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
    output.unwrap_or_else(|_| panic!("`{line}` does not end")).expect("a shell runs")
}

/// What is wrong with a failure.
fn fault(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Some("it does not fail".into());
    }
    let document: Value = match serde_json::from_str(said.lines().last().unwrap_or_default()) {
        Ok(document) => document,
        Err(error) => return Some(format!("{error}: {said}")),
    };
    let texts = ["type", "title", "detail", "code", "applied", "retry"];
    let missing: Vec<_> = texts.into_iter().filter(|name| !document[name].is_string()).collect();
    (!missing.is_empty() || !document["status"].is_u64()).then(|| format!("without {missing:?}: {document}"))
}

#[tokio::test]
async fn every_failure_is_the_same_kind_of_document() {
    let (home, down) = (tempfile::tempdir().expect("a directory"), nobody());
    let (directory, down, leaves) = (home.path(), down.as_str(), leaves().await);
    let tried = leaves.iter().filter(|leaf| !WITHOUT_A_NODE.contains(&leaf.path.as_str()));
    let faults = futures::stream::iter(tried).map(|leaf| async move {
        // Only the first command of a line is tried.
        let line = leaf.example.split(['|', '&', '>']).next().expect("split gives at least one part");
        // Nobody waits for so long here.
        let line = [" 5m", " 1m", " 30s", " 10s"].iter().fold(line.to_owned(), |line, time| line.replace(time, " 1s"));
        // The form is that of this test.
        let mut words: Vec<&str> = line.split(' ').collect();
        if let Some(at) = words.iter().position(|word| *word == "-o") {
            words.drain(at..at + 2);
        }
        let line = words.join(" ");
        let output = typed(&line, directory, down).await;
        Some(format!("{}: {}", leaf.example, fault(&output)?))
    });
    let faults: Vec<_> = faults.buffer_unordered(8).filter_map(|fault| async move { fault }).collect().await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_failure_has_a_code_whoever_failed() {
    let fake = Fake::start().await;
    let home = tempfile::tempdir().expect("a directory");
    for (line, code, status, exit) in [
        ("quorate get nope", "not_found", 404, 3),
        ("quorate insert a", "invalid_argument", 400, 2),
        ("quorate put a hello", "invalid_argument", 400, 2),
        ("quorate get -c none a", "invalid_argument", 400, 2),
    ] {
        fake.script([Act::problem(ErrorCode::NotFound, Applied::No)]);
        let output = typed(line, home.path(), &fake.address).await;
        assert_eq!(fault(&output), None, "{line}");
        let document: Value = serde_json::from_slice(&output.stderr).expect("JSON");
        assert_eq!(
            (&document["code"], &document["status"], &document["applied"]),
            (&json!(code), &json!(status), &json!("no")),
            "{line}"
        );
        assert_eq!(output.status.code(), Some(exit), "{line}: {document}");
    }
    let output = typed("quorate get a", home.path(), &nobody()).await;
    let document: Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!((&document["code"], &document["retry"]), (&json!("timeout"), &json!("same_request_id")), "{document}");
    // A context asks for a form too.
    let output = typed(
        "env -u QUORATE_OUTPUT quorate context set c -o json && env -u QUORATE_OUTPUT quorate -c c put a @none",
        home.path(),
        &fake.address,
    )
    .await;
    assert_eq!(fault(&output), None, "{output:?}");
}

#[tokio::test]
async fn an_empty_list_is_an_object_with_an_empty_list() {
    /// Command, and the field of its list; those of clusters and their members are never empty.
    const LISTS: [(&str, &str); 11] = [
        ("list", "entries"),
        ("lock list", "locks"),
        ("election list", "elections"),
        ("session list", "sessions"),
        ("collection list", "collections"),
        ("task list", "queues"),
        ("user list", "users"),
        ("role list", "roles"),
        ("token list", "tokens"),
        ("quota list", "quotas"),
        ("context list", "contexts"),
    ];
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    for leaf in leaves().await.iter().filter(|leaf| leaf.path.ends_with("list") && leaf.path != "member list") {
        let list = LISTS.iter().find(|(path, _)| *path == leaf.path);
        let field = list.unwrap_or_else(|| panic!("which list does `{}` show?", leaf.path)).1;
        let page = json!({field: [], "count": 0, "revision": "7", "index": 9});
        let page = || Act::Answer(200, page.to_string());
        if leaf.path == "quota list" {
            let usual = json!({"bounds": {}, "revision": "7", "index": 9});
            fake.script([Act::Answer(200, usual.to_string()), page(), page()]);
        } else if leaf.path != "context list" {
            fake.script([page()]);
        }
        let output = typed(&format!("quorate {}", leaf.path), home.path(), &fake.address).await;
        assert!(output.status.success(), "{}: {output:?}", leaf.path);
        let lines = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(!lines.is_empty(), "{}", leaf.path);
        for (number, line) in lines.lines().enumerate() {
            let answer: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", leaf.path));
            // The quota of every user is always there.
            let expected = if leaf.path == "quota list" && number == 0 { json!([{"bounds": {}}]) } else { json!([]) };
            assert_eq!(answer[field], expected, "{}: {line}", leaf.path);
        }
    }
}

#[tokio::test]
async fn a_value_stands_alone_in_a_pipe_and_in_one_line_of_a_list() {
    let fake = Fake::start().await;
    // As `quorate edit` leaves it.
    let stored = "{\n  \"n\": 1\n}";
    let mut entry = crate::fake::entry("k", &json!(null), "7");
    entry["value"] = serde_json::from_str(stored).expect("JSON");
    let text = entry.to_string().replace("{\"n\":1}", stored);
    let page = format!("{{\"entries\":[{text}],\"count\":1,\"revision\":\"7\",\"index\":9}}");
    fake.script([Act::Answer(200, text), Act::Answer(200, page)]);
    assert_eq!(run(&fake.address, &["get", "k"]).await.out, format!("{stored}\n"), "as it is stored");
    assert_eq!(run(&fake.address, &["list"]).await.out, "k  {\"n\":1}  cas 7\n");
}

#[tokio::test]
async fn a_usage_is_the_same_whatever_the_environment_says() {
    let plain =
        typed("env -u QUORATE_ENDPOINTS -u QUORATE_OUTPUT -u QUORATE_TIMEOUT quorate get", Path::new("/"), "").await;
    let with = typed("env -u QUORATE_OUTPUT quorate get", Path::new("/"), "127.0.0.1:1").await;
    let said = String::from_utf8_lossy(&with.stderr);
    assert_eq!(said, String::from_utf8_lossy(&plain.stderr));
    assert!(said.contains("Usage: quorate get [OPTIONS] <KEY>") || said.contains("Usage: quorate get <KEY>"), "{said}");
}
