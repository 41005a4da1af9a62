//! A rolling upgrade under load, back again before the level is raised, and forward for good: judged by every rule over the whole
//! history.
//!
//! `QUORATE_OLD_NODE` names the program to upgrade from (`scripts/conformance upgrade` builds the one of the commit before). Without
//! it this build plays both: as it is, and as one that knows the level after its own, which only tests know.

use std::path::PathBuf;
use std::time::Duration;

use cluster_harness::drive::client::Manner;
use cluster_harness::drive::driver::{Plan, Staff};
use cluster_harness::drive::nemesis::Nemesis;
use cluster_harness::drive::scenarios::Pace;
use cluster_harness::seed::seeded;
use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use cluster_histories::Recorder;
use cluster_histories::record::Fault;
use cluster_histories::workload::Workload;
use cluster_histories::workload::accounts::Accounts;
use cluster_histories::workload::locks::Locks;
use cluster_histories::workload::registers::Registers;
use cluster_histories::workload::set::Set;
use cluster_histories::workload::tasks::Tasks;
use quorate_machine::level::NEXT;
use rand::rngs::StdRng;

const LEVEL_MAX: &str = "--feature-level-max";

/// What all nodes become, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The new program, which agrees to no more than the old one knows.
    Forward,
    /// The old program again: nothing that it could not read was written.
    Back,
    /// The new program, and the level is raised.
    ForGood,
}

/// Rolls the cluster through the steps, each once.
struct Roll {
    old: Option<PathBuf>,
    /// The highest level that the old program agrees to.
    level: u32,
    steps: Vec<Step>,
}

impl Roll {
    /// From its next start on a node is this.
    fn configure(&self, cluster: &mut Cluster, id: u64, step: Step) {
        cluster.set_next_build(id, step != Step::Back);
        match step {
            Step::Back => cluster.set_program(id, self.old.clone()),
            Step::Forward | Step::ForGood => cluster.set_program(id, None),
        }
        match step {
            Step::Forward => cluster.set_flag(id, LEVEL_MAX, self.level),
            Step::Back | Step::ForGood => cluster.unset_flags(id),
        }
    }
}

impl Nemesis for Roll {
    async fn rest(&mut self, _dice: &mut StdRng) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    async fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, _dice: &mut StdRng) -> Fault {
        let step = if self.steps.is_empty() { Step::ForGood } else { self.steps.remove(0) };
        let begin = recorder.now();
        for id in cluster.ids() {
            self.configure(cluster, id, step);
            cluster.stop(id).await;
            cluster.bring_up(id).await;
        }
        let levels = levels(cluster).await;
        if step != Step::ForGood {
            assert!(levels.iter().all(|level| *level <= self.level), "{step:?}: {levels:?}, nobody agreed to more");
        }
        println!("{step:?}: levels {levels:?}");
        Fault { kind: format!("Roll{step:?}"), node: 1, begin, end: recorder.now() }
    }
}

async fn levels(cluster: &Cluster) -> Vec<u32> {
    let mut levels = Vec::new();
    for id in cluster.ids() {
        levels.push(eventually("it says its level", PATIENCE, async || cluster.status(id).await).await.level);
    }
    levels
}

fn staff(workload: impl Workload + 'static, clients: usize, manner: Manner) -> Staff {
    Staff { workload: Box::new(workload), clients, manner }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_under_load_goes_forth_and_back_and_loses_nothing() {
    let old = std::env::var_os("QUORATE_OLD_NODE").map(PathBuf::from);
    assert!(old.iter().all(|path| path.is_file()), "QUORATE_OLD_NODE names {old:?}, which is no file");
    let settings = Settings::default().flag("--snapshot-every-entries", 300).flag("--keep-log-entries", 50);
    let mut cluster = Cluster::new(settings);
    // This build in both parts writes the same wherever it comes from: one way forward is enough.
    let forward_again = old.is_some().then_some(Step::Forward);
    let steps = [Step::Forward, Step::Back].into_iter().chain(forward_again).chain([Step::ForGood]).collect();
    let mut roll = Roll { old, level: 0, steps };
    for id in cluster.ids() {
        cluster.set_program(id, roll.old.clone());
    }
    cluster.start_all();
    cluster.wait_all_ready().await;
    // What it knows only the old program can say.
    roll.level = cluster.status(1).await.unwrap().level_known;
    eventually("the old cluster reaches its level", PATIENCE, async || {
        let status = cluster.status(1).await?;
        if status.level == roll.level { Ok(()) } else { Err(format!("level {}", status.level)) }
    })
    .await;
    Request::put("before", "1").send(cluster.client_address(1)).await.unwrap().expect_success();

    let Pace { before, after, grace, slack, think, .. } = Pace::short();
    let plan = Plan {
        name: "rolling-upgrade",
        staff: vec![
            staff(Registers { name: "registers" }, 3, Manner::Persistent),
            staff(Accounts, 2, Manner::Storming),
            staff(Set, 2, Manner::Persistent),
            staff(Locks, 2, Manner::Persistent),
            staff(Tasks, 2, Manner::Persistent),
        ],
        // An old program does not have all of today's routes.
        api_clients: if roll.old.is_some() { 0 } else { 2 },
        large_clients: 0,
        time_clients: 0,
        watches: vec![""],
        before,
        during: Duration::from_secs(1),
        after,
        grace: grace + Duration::from_secs(120),
        slack,
        requirements: vec![("put", 5)],
        faults_min: roll.steps.len() as u64,
        has_churn: false,
        think,
    };
    plan.run(&mut cluster, &mut roll, &mut seeded()).await.assert_sound();
    let raised = async || match levels(&cluster).await {
        levels if levels.iter().all(|level| *level == NEXT) => Ok(()),
        levels => Err(format!("{levels:?}")),
    };
    eventually("the level is raised once all agree", PATIENCE, raised).await;
    for id in cluster.ids() {
        let read = Request::get("/v1/kv/before").send(cluster.client_address(id)).await.unwrap();
        assert_eq!(read.status, 200, "node {id}: {}", read.text());
    }
    cluster.assert_agreement().await;
}
