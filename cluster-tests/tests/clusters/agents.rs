//! Coding agents that share a cluster by `quorate mcp`: the tutorial as it stands, and what it promises after a crash.
//!
//! Owns what the blocks of the tutorial mean: `ann` and `ben` are calls of the agent of that name, `text` is what they get.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, eventually};
use quorate_client::api::{ErrorCode, Guard};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::backups::endpoints;
use crate::guide::{Block, blocks, built, compare};

pub const TUTORIAL: &str = include_str!("../../../docs/tutorial-agents.md");
const FILE: &str = "docs/tutorial-agents.md";

async fn agent(cluster: &Cluster, name: &str) -> Agent {
    Agent::start(&built("quorate"), &endpoints(cluster), &["--name", name, "--ttl", "3s"]).await
}

/// What the tutorial runs on.
struct Stage {
    endpoints: String,
    agents: BTreeMap<&'static str, Agent>,
    /// What each was told last.
    told: BTreeMap<&'static str, Told>,
}

#[derive(Default)]
struct Told {
    cas: String,
    token: String,
}

impl Stage {
    /// Both agents, as the first block of the tutorial configures one of them.
    async fn of(cluster: &Cluster, blocks: &[Block]) -> Self {
        let block = blocks.iter().find(|block| block.language == "json").expect("a configuration");
        let configured: Value = serde_json::from_str(&block.text.join("\n")).expect("JSON");
        let server = &configured["mcpServers"]["quorate"];
        assert_eq!((&server["command"], &server["args"][0]), (&json!("quorate"), &json!("mcp")), "{}", block.place());
        let arguments: Vec<_> = server["args"].as_array().expect("a list").iter().skip(1).collect();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_str().expect("a text")).collect();
        let (mut agents, mut told) = (BTreeMap::new(), BTreeMap::new());
        for name in ["ann", "ben"] {
            let own: Vec<_> = arguments.iter().map(|word| if *word == "ann" { name } else { word }).collect();
            agents.insert(name, Agent::start(&built("quorate"), &endpoints(cluster), &own).await);
            told.insert(name, Told::default());
        }
        Self { endpoints: endpoints(cluster), agents, told }
    }

    /// What the calls of a block give, a line each.
    async fn call(&mut self, block: &Block) -> Vec<String> {
        let agent = self.agents.get_mut(block.language).expect("an agent");
        let told = self.told.get_mut(block.language).expect("an agent");
        let mut lines = Vec::new();
        for line in &block.text {
            let (tool, arguments) = line.split_once(' ').expect("a tool and its arguments");
            let arguments = serde_json::from_str(&arguments.replace("$cas", &told.cas)).expect("JSON");
            let answer = agent.call(tool, arguments).await.unwrap_or_else(|refusal| refusal);
            let text = |value: &Value| value.as_str().map(str::to_owned);
            told.cas = text(&answer["cas"]).or_else(|| text(&answer["current"]["cas"])).unwrap_or(told.cas.clone());
            told.token = text(&answer["token"]).unwrap_or(told.token.clone());
            lines.push(answer.to_string());
        }
        lines
    }

    /// What a block of the shell prints, and its exit code.
    async fn run(&self, block: &Block) -> (Vec<String>, String) {
        let mut command = Command::new("bash");
        let programs = built("quorate");
        let programs = programs.parent().expect("a program is in a directory").display();
        let path = std::env::var("PATH").expect("there is a PATH");
        command.args(["-c", &format!("exec 2>&1\n{}", block.text.join("\n"))]);
        command.env("PATH", format!("{programs}:{path}")).env("QUORATE_ENDPOINTS", &self.endpoints);
        for (name, agent) in &self.agents {
            command.env(name.to_uppercase(), agent.process_id().to_string());
            command.env(format!("{}_TOKEN", name.to_uppercase()), &self.told[name].token);
        }
        let done = tokio::task::spawn_blocking(move || command.output()).await.expect("the task ends");
        let done = done.expect("bash runs");
        let printed = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect();
        (printed, done.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string()))
    }
}

/// Agents know three nodes, as in the tutorial.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_of_the_tutorial_gets_what_it_shows() {
    let mut cluster = Cluster::start().await;
    let blocks = blocks(FILE, TUTORIAL);
    let mut stage = Stage::of(&cluster, &blocks).await;
    let mut faults = Vec::new();
    for (block, next) in blocks.iter().zip(blocks.iter().skip(1).map(Some).chain([None])) {
        let (printed, code) = match block.language {
            "ann" | "ben" => (stage.call(block).await, "0".to_owned()),
            "sh" => stage.run(block).await,
            _ => continue,
        };
        let shown = next.filter(|next| next.language == "text");
        let printed: Vec<_> = printed.iter().map(String::as_str).collect();
        faults.extend(compare(block, shown, &printed, &code));
    }
    assert!(faults.is_empty(), "{} examples do not do what they show:\n{}", faults.len(), faults.join("\n"));
    let ben = stage.agents.remove("ben").expect("he is there");
    assert!(ben.leave().await.success());
    let left = cluster.client_without(None).lock("repo/file:src/log.rs").get().await.expect("an answer");
    assert!(left.holders.is_empty(), "what an agent holds goes with it at once: {left:?}");
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_lock_gets_it_when_its_holder_is_done_and_when_it_is_killed() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    client.put_json("work/1", &json!({"status": "open"})).await.expect("written");
    let (mut ann, mut ben) = (agent(&cluster, "ann").await, agent(&cluster, "ben").await);
    let lock = json!({"name": "file:src/main.rs"});
    let first = token(&ann.done("lock_acquire", lock.clone()).await);
    let refusal = ben.refused("locked", "lock_acquire", lock.clone()).await;
    assert_eq!(refusal["holders"][0]["owner"], "ann", "{refusal}");
    let waiting = json!({"name": "file:src/main.rs", "wait_s": 30});
    let waiter = tokio::spawn(async move {
        let held = ben.done("lock_acquire", waiting).await;
        (ben, held)
    });
    eventually("the other one waits", PATIENCE, async || {
        let lock = client.lock("file:src/main.rs").get().await.map_err(|error| error.to_string())?;
        if lock.waiter_count == 1 { Ok(()) } else { Err(format!("{lock:?}")) }
    })
    .await;
    ann.done("lock_release", lock.clone()).await;
    let (mut ben, held) = waiter.await.expect("the task ends");
    let second = token(&held);
    assert!(second > first, "{first} {second}");
    ben.done("lock_release", lock.clone()).await;

    // Now it dies in the middle of its work.
    let third = token(&ann.done("lock_acquire", lock.clone()).await);
    assert_eq!(ann.done("claim_next", json!({"prefix": "work/"})).await["claimed"]["key"], "work/1");
    let guarded = json!({"key": "state", "value": "by ann", "guard_lock": "file:src/main.rs"});
    ann.done("entry_put", guarded).await;
    // Longer than a lock of an entry holds without the server: it is kept.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(ben.done("claim_next", json!({"prefix": "work/"})).await["claimed"], Value::Null);
    ann.kill().await;
    ben.refused("locked", "lock_acquire", lock.clone()).await;
    let taken = ben.done("lock_acquire", json!({"name": "file:src/main.rs", "wait_s": 30})).await;
    assert!(token(&taken) > third, "{taken} {third}");
    let claimed = ben.done("claim_next", json!({"prefix": "work/", "wait_s": 30})).await;
    assert_eq!(claimed["claimed"]["key"], "work/1", "{claimed}");
    // What the dead one had sent comes late, under its token: once by the other's server, once as the bare request.
    let late =
        json!({"key": "state", "value": "late", "guard_lock": "file:src/main.rs", "guard_token": third.to_string()});
    ben.refused("guard_failed", "entry_put", late).await;
    let late = client.put_json("state", "late").guarded_by(Guard::lock("file:src/main.rs", third)).await;
    assert_eq!(late.expect_err("refused").code(), Some(ErrorCode::GuardFailed));
    let state = client.get_json::<String>("state").await.expect("an answer").expect("it is there");
    assert_eq!(state.content, "by ann");
    ben.done("claim_complete", json!({"key": "work/1", "value": {"status": "done"}})).await;
    assert!(ben.leave().await.success());
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaderships_tasks_and_entries_of_an_agent_go_with_it_and_others_see_it() {
    let mut cluster = Cluster::start().await;
    let (mut ann, mut ben) = (agent(&cluster, "ann").await, agent(&cluster, "ben").await);
    let began = ann.done("entry_list", json!({"prefix": "agents/"})).await;
    ann.done("entry_put", json!({"key": "agents/ann", "value": {"at": "src"}, "while_connected": true})).await;
    ann.done("entry_patch", json!({"key": "agents/ann", "patch": {"at": "docs"}})).await;
    let history = ben.done("entry_history", json!({"key": "agents/ann"})).await;
    assert_eq!(history["versions"][1]["entry"]["value"], json!({"at": "docs"}), "{history}");
    let led = ann.done("election_campaign", json!({"name": "merge", "value": "branch main"})).await;
    assert_eq!(led["leader"], true);
    let refusal = ben.refused("locked", "election_campaign", json!({"name": "merge"})).await;
    assert_eq!((&refusal["leader"]["owner"], &refusal["leader"]["value"]), (&json!("ann"), &json!("branch main")));
    ann.done("entry_put", json!({"key": "main", "value": 1, "guard_election": "merge"})).await;
    let task = json!({"queue": "checks", "payload": {"run": "tests"}, "id": "nightly"});
    assert_eq!(ann.done("task_schedule", task.clone()).await["created"], true);
    assert_eq!(ben.done("task_schedule", task).await["created"], false, "it is one task");
    let claimed = ann.done("task_claim", json!({"queue": "checks", "wait_s": 10})).await["task"].take();
    assert_eq!((&claimed["payload"], &claimed["attempt"]), (&json!({"run": "tests"}), &json!(1)));
    assert_eq!(ben.done("task_claim", json!({"queue": "checks"})).await["task"], Value::Null);
    ann.done("task_extend", json!({"queue": "checks", "id": "nightly", "lease_s": 3_600})).await;
    let holds = ann.done("session_show", json!({})).await;
    assert_eq!(
        (&holds["tasks"][0]["id"], &holds["entries_while_connected"]),
        (&json!("nightly"), &json!(["agents/ann"]))
    );

    ann.kill().await;
    // From before all of it: each change once and in order, to the end of what she left.
    let (mut from, mut seen) = (revision(&began["revision"]) + 1, Vec::new());
    while seen.last().is_none_or(|event: &Value| event["type"] != "delete") {
        let mut told =
            ben.done("watch_wait", json!({"prefix": "agents/", "from": from.to_string(), "wait_s": 10})).await;
        from = revision(&told["from"]);
        seen.append(told["events"].as_array_mut().expect("a list"));
    }
    let values: Vec<_> = seen.iter().map(|event| event["entry"]["value"]["at"].clone()).collect();
    assert_eq!(values, [json!("src"), json!("docs"), Value::Null]);
    assert_eq!(seen[2]["cause"], "session_ended", "{seen:?}");
    let led = ben.done("election_campaign", json!({"name": "merge", "wait_s": 30})).await;
    let late = json!({"key": "main", "value": 2, "guard_election": "merge", "guard_token": led["term"]});
    ben.done("entry_put", late).await;
    let again = ben.done("task_claim", json!({"queue": "checks", "wait_s": 30})).await["task"].take();
    assert_eq!(
        (&again["id"], &again["attempt"]),
        (&json!("nightly"), &json!(2)),
        "not an hour later: it went with her"
    );
    let late = json!({"queue": "checks", "id": "nightly", "token": claimed["token"]});
    ben.refused("not_lock_holder", "task_complete", late).await;
    ben.done("task_complete", json!({"queue": "checks", "id": "nightly"})).await;
    let tasks = ben.done("task_list", json!({"queue": "checks", "state": "done"})).await;
    assert_eq!(tasks["tasks"][0]["id"], "nightly", "{tasks}");
    assert!(ben.leave().await.success());
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_operator_takes_from_an_agent_is_told_before_it_gets_it_anew() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    let mut ann = agent(&cluster, "ann").await;
    let (lock, election) = (json!({"name": "books"}), json!({"name": "merge"}));
    let first = token(&ann.done("lock_acquire", lock.clone()).await);
    let again = ann.done("lock_acquire", lock.clone()).await;
    assert_eq!((token(&again), &again["already_held"]), (first, &json!(true)));
    client.lock("books").release(first).await.expect("released");
    ann.refused("guard_failed", "entry_put", json!({"key": "a", "value": 1, "guard_lock": "books"})).await;
    ann.refused("lock_lost", "lock_acquire", lock.clone()).await;
    assert!(token(&ann.done("lock_acquire", lock).await) > first);
    let term = revision(&ann.done("election_campaign", election.clone()).await["term"]);
    client.election("merge").resign(term).await.expect("resigned");
    ann.refused("leadership_lost", "election_campaign", election.clone()).await;
    assert!(revision(&ann.done("election_campaign", election).await["term"]) > term);
    assert!(ann.leave().await.success());
    cluster.assert_agreement().await;
}

fn revision(digits: &Value) -> u64 {
    digits.as_str().and_then(|digits| digits.parse().ok()).expect("a revision")
}

fn token(held: &Value) -> u64 {
    held["token"].as_str().and_then(|token| token.parse().ok()).expect("a fencing token")
}
