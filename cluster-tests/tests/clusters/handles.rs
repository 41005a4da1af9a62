//! The Rust handles and the commands of coordination on nodes that stop, die and come back.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cluster_harness::{Cluster, eventually};
use quorate_client::api::ErrorCode;
use quorate_client::{Client, Error, Leads, LockGuard, Loss, Session, SessionState, Value};
use tokio::process::{Child, Command};

use crate::backups::endpoints;
use crate::guide::built;

/// Long enough for anything that is to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

fn client_of(cluster: &Cluster, id: u64) -> Client {
    Client::builder()
        .endpoints(cluster.client_address(id).to_string())
        .discover_members(false)
        .build()
        .expect("an endpoint")
}

/// Takes a lock, and asks who held it before what it knows once that is done.
async fn taken(session: Session, name: &'static str, before: Session) -> (LockGuard, Option<Loss>) {
    let guard = session.lock(name).acquire().await.expect("granted in the end");
    (guard, before.loss())
}

/// Faults: the node that the holder knows stands still, and is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_knows_that_its_lock_is_lost_before_the_cluster_gives_it_to_the_next() {
    // Each state of it lasts so long that a slow machine sees it.
    const BRIEF: Duration = Duration::from_secs(4);
    let mut cluster = Cluster::start().await;
    for how in ["stopped", "killed"] {
        let follower = cluster.follower().await;
        let (cut_off, well) = (client_of(&cluster, follower), cluster.client_without(Some(follower)));
        let holder = cut_off.session().ttl(BRIEF).await.expect("a session");
        let held = holder.lock("shop").acquire().await.expect("granted");
        let token = held.token().expect("certain");
        let next = well.session().ttl(BRIEF).await.expect("a session");
        let taking = tokio::spawn(taken(next, "shop", holder.clone()));
        eventually("one waits", PATIENCE, async || {
            let waiting = well.lock("shop").get().await.expect("an answer").waiter_count;
            if waiting == 1 { Ok(()) } else { Err(format!("{waiting} do")) }
        })
        .await;

        if how == "stopped" {
            cluster.pause(follower)
        } else {
            cluster.kill(follower).await
        }
        assert_eq!(holder.changed(SessionState::Ok).await, SessionState::Suspect, "{how}");
        assert!(matches!(held.token(), Err(Error::Session { loss: None, .. })), "a suspect token is not handed out");
        assert_eq!(held.lost().await, Loss::NotRenewed);
        let (taken, known) = taking.await.expect("the task ends");
        assert_eq!(known, Some(Loss::NotRenewed), "{how}: what the holder knew when the next one had it");

        if how == "stopped" {
            cluster.resume(follower)
        } else {
            cluster.bring_up(follower).await
        }
        cluster.wait_all_ready().await;
        assert!(taken.token().expect("certain") > token);
        let late = cut_off.put("till", Value::json_text("1")).guarded_by(&held).await.expect_err("its lock is gone");
        assert_eq!(late.code(), Some(ErrorCode::GuardFailed), "{late}");
        cut_off.put("till", Value::json_text("2")).guarded_by(&taken).await.expect("whose the lock is");
        taken.release().await.expect("released");
    }
    cluster.assert_agreement().await;
}

/// Fault: each node is killed. Each observer knows two of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_see_every_leader_in_order_whichever_nodes_die() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    let mut observers = Vec::new();
    for id in cluster.ids() {
        let mut observation =
            cluster.client_without(Some(id)).election("seen").observe().await.expect("an observation");
        assert!(matches!(observation.next().await.expect("the present state"), Leads::Nobody(_)));
        observers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let leads = observation.next().await.expect("goes on over breaks");
                let (revision, leader) = (leads.revision(), leads.leader());
                let says = leader.map(|leader| (leader.term, leader.value.map(|value| value.0.get().to_owned())));
                let is_last = matches!(&says, Some((_, Some(text))) if text == "\"last\"");
                seen.push((revision, says));
                if is_last {
                    return seen;
                }
            }
        }));
    }
    let session = client.session().ttl(Duration::from_secs(30)).await.expect("a session");
    let mut expected = Vec::new();
    for id in cluster.ids() {
        for _ in 0..2 {
            let leadership = session.elect("seen").value(Value::json_text("1")).campaign().await.expect("elected");
            let term = leadership.term().expect("certain");
            let said = leadership.proclaim(Value::json_text("2")).await.expect("we lead");
            expected
                .extend([(term, Some((term, Some("1".to_owned())))), (said.revision, Some((term, Some("2".into()))))]);
            leadership.resign().await.expect("we led");
        }
        cluster.kill(id).await;
        cluster.leader().await;
        cluster.bring_up(id).await;
    }
    let last = session.elect("seen").value(Value::json("last").expect("has JSON")).campaign().await.expect("elected");
    let term = last.term().expect("certain");
    expected.push((term, Some((term, Some("\"last\"".to_owned())))));
    for observer in observers {
        let seen = tokio::time::timeout(PATIENCE, observer).await.expect("in time").expect("the task ends");
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "{seen:?}");
        let (vacant, led): (Vec<_>, Vec<_>) = seen.into_iter().partition(|(_, leader)| leader.is_none());
        assert_eq!(led, expected);
        assert_eq!(vacant.len(), 6, "after each resignation nobody leads: {vacant:?}");
    }
    cluster.assert_agreement().await;
}

/// `quorate` against these endpoints, with its output kept.
fn quorate(endpoints: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(built("quorate"));
    command.args(["--endpoints", endpoints]).args(arguments).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a command wrote into a file, once it did.
async fn written(path: &Path) -> String {
    eventually(&format!("{} is written", path.display()), PATIENCE, async || match std::fs::read_to_string(path) {
        Ok(text) if text.ends_with('\n') => Ok(text.trim().to_owned()),
        other => Err(format!("{other:?}")),
    })
    .await
}

fn runs(process: &str) -> bool {
    // A zombie has ended; nobody has looked yet.
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Fault: the node that the holder knows stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_under_a_lock_is_ended_before_the_next_one_begins() {
    let mut cluster = Cluster::start().await;
    let home = tempfile::tempdir().expect("a temporary directory");
    let (file, follower) = (home.path().join("pid"), cluster.follower().await);
    let script = format!("echo $$ > {}; while :; do sleep 0.05; done", file.display());
    let arguments = ["lock", "run", "batch", "--ttl", "2s", "--", "sh", "-c", &script];
    let cut_off = cluster.client_address(follower).to_string();
    let holder = quorate(&cut_off, &arguments).spawn().expect("it runs");
    let process = written(&file).await;
    assert!(runs(&process));
    cluster.pause(follower);
    let well = cluster.client_without(Some(follower)).endpoints().collect::<Vec<_>>().join(",");
    let next =
        quorate(&well, &["lock", "run", "batch", "--", "sh", "-c", &format!("kill -0 {process} && exit 50; exit 60")]);
    let next = next_output(next).await;
    assert_eq!(next.0, Some(60), "the command of the first one is gone: {next:?}");
    let first = holder.wait_with_output().await.expect("it ended");
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(first.status.code() == Some(1) && said.contains("the lock `batch` was lost"), "{said}");
    cluster.resume(follower);
    cluster.wait_all_ready().await;
    cluster.assert_agreement().await;
}

/// Exit code, and what it said.
async fn next_output(mut command: Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("in time").expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Fault: the process that leads is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_of_three_processes_is_led_by_another_once_its_leader_is_killed() {
    let mut cluster = Cluster::start().await;
    let client = cluster.client_without(None);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut processes: Vec<(Child, _)> = Vec::new();
    for number in 0..3_u32 {
        let file = home.path().join(number.to_string());
        let script = format!("echo $$ > {}; while :; do sleep 0.05; done", file.display());
        let value = number.to_string();
        let arguments = ["election", "run", "service", "--value", &value, "--ttl", "1s", "--", "sh", "-c", &script];
        processes.push((quorate(&endpoints(&cluster), &arguments).spawn().expect("it runs"), file));
    }
    let mut term = 0;
    for round in 0..2 {
        let leader = eventually("a newer leader", PATIENCE, async || {
            let leader = client.election("service").leader().await.map_err(|error| error.to_string())?;
            leader.filter(|leader| leader.term > term).ok_or_else(|| "none".to_owned())
        });
        let leader = leader.await;
        term = leader.term;
        let number: usize = leader.value.expect("each says its number").0.get().parse().expect("a number");
        let (process, file) = &mut processes[number];
        let command = written(file).await;
        process.kill().await.expect("it runs");
        let killed = Instant::now();
        let gone = async || if runs(&command) { Err("it runs".to_owned()) } else { Ok(()) };
        eventually("the command dies with its leader", PATIENCE, gone).await;
        println!("round {round}: the command of the killed leader was gone after {:?}", killed.elapsed());
    }
    cluster.assert_agreement().await;
}
