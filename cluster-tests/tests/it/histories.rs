//! Workloads on clusters that are hurt, recorded whole and judged by every rule.

use std::time::Duration;

use cluster_tests::seed::seeded;
use cluster_tests::workload::Workload;
use cluster_tests::workload::accounts::Accounts;
use cluster_tests::workload::client::Manner;
use cluster_tests::workload::driver::{Plan, Staff};
use cluster_tests::workload::fleeting::Fleeting;
use cluster_tests::workload::locks::Locks;
use cluster_tests::workload::nemesis::ProcessFault::{self, *};
use cluster_tests::workload::nemesis::ProcessFaults;
use cluster_tests::workload::network_faults::NetworkFault::{self, *};
use cluster_tests::workload::network_faults::NetworkFaults;
use cluster_tests::workload::registers::Registers;
use cluster_tests::workload::set::Set;
use cluster_tests::workload::tasks::Tasks;
use cluster_tests::{Cluster, Settings};

fn staff(workload: impl Workload + 'static, clients: usize, manner: Manner) -> Staff {
    Staff { workload: Box::new(workload), clients, manner }
}

/// A plan of about twenty seconds.
fn plan(name: &'static str, staff: Vec<Staff>, watches: Vec<&'static str>, demands: Vec<(&'static str, u64)>) -> Plan {
    let [before, during, after] = [2, 12, 3].map(Duration::from_secs);
    Plan { name, staff, watches, before, during, after, demands, faults_min: 3 }
}

async fn run(plan: Plan, choices: &[ProcessFault]) {
    let mut dice = seeded();
    let mut cluster = Cluster::start().await;
    let mut nemesis = ProcessFaults { choices: choices.to_vec(), rest_ms: 300..1_500 };
    plan.run(&mut cluster, &mut nemesis, &mut dice).await.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registers_are_linearizable_while_leaders_are_killed_and_paused() {
    let staff = vec![
        staff(Registers { name: "registers" }, 5, Manner::Persistent),
        staff(Registers { name: "pinned" }, 3, Manner::Pinned),
    ];
    let demands = vec![("get", 10), ("put", 5), ("cas", 3), ("bulk", 3), ("list", 3)];
    run(plan("registers", staff, vec!["", "registers/one/"], demands), &[KillLeader, PauseLeader, KillFollower]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_keep_the_sum_of_accounts_while_nodes_are_killed_and_paused() {
    let staff = vec![
        staff(Accounts, 4, Manner::Persistent),
        staff(Accounts, 2, Manner::Pinned),
        staff(Set, 3, Manner::Persistent),
    ];
    let demands = vec![("txn", 10), ("list", 5), ("find", 2), ("insert", 5)];
    run(plan("accounts", staff, vec!["accounts/", "", "set/"], demands), &[KillLeader, PauseLeader, KillAll]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_and_sessions_hold_what_they_promise_while_leaders_are_paused_and_killed() {
    let staff = vec![staff(Locks, 8, Manner::Persistent), staff(Fleeting, 4, Manner::Persistent)];
    let demands = vec![("acquire", 5), ("renew", 3), ("put", 3)];
    run(plan("locks", staff, vec!["locks/"], demands), &[PauseLeader, PauseLeader, KillLeader, HandOver]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_show_everything_once_while_nodes_go_and_come_back() {
    let staff = vec![
        staff(Registers { name: "registers" }, 4, Manner::Persistent),
        staff(Accounts, 2, Manner::Persistent),
        staff(Fleeting, 2, Manner::Persistent),
    ];
    let demands = vec![("put", 3), ("txn", 3)];
    let watches = vec!["", "", "", "accounts/", "registers/many/", "fleeting/"];
    run(plan("watches", staff, watches, demands), &[KillLeader, KillFollower, PauseFollower, HandOver]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_retries_is_carried_out_once_while_leaders_are_killed_and_paused() {
    let staff = vec![
        staff(Registers { name: "storm" }, 4, Manner::Storming),
        staff(Accounts, 2, Manner::Storming),
        staff(Locks, 2, Manner::Storming),
        staff(Tasks, 2, Manner::Storming),
    ];
    let demands = vec![("put", 3), ("bulk", 3), ("txn", 3)];
    run(plan("storm", staff, vec![""], demands), &[KillLeader, PauseLeader]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_done_once_and_in_time_while_leaders_are_killed_and_paused() {
    let staff = vec![staff(Tasks, 6, Manner::Persistent)];
    let demands = vec![("schedule", 5), ("claim", 5), ("complete", 5)];
    run(plan("tasks", staff, Vec::new(), demands), &[KillLeader, PauseLeader, KillFollower]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_stale_behind_partitions_one_way_cuts_and_slow_links() {
    let staff = vec![
        staff(Registers { name: "registers" }, 4, Manner::Persistent),
        staff(Registers { name: "pinned" }, 2, Manner::Pinned),
        staff(Accounts, 2, Manner::Persistent),
        staff(Set, 2, Manner::Persistent),
    ];
    let demands = vec![("get", 5), ("put", 3), ("txn", 3)];
    let choices = vec![IsolateLeader, IsolateFollower, Bridge, OneWay, LeaderUnheard, Slow];
    run_over_network(plan("partitions", staff, vec!["", "accounts/"], demands), choices).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_retries_over_broken_links_is_carried_out_once_and_locks_hold() {
    let staff = vec![
        staff(Registers { name: "storm" }, 3, Manner::Storming),
        staff(Locks, 5, Manner::Persistent),
        staff(Tasks, 3, Manner::Persistent),
    ];
    let demands = vec![("put", 3), ("acquire", 3), ("claim", 3)];
    let choices = vec![AnswersLost, ClientsCut, Resets, SlowNode, IsolateLeader];
    run_over_network(plan("links", staff, vec![""], demands), choices).await;
}

async fn run_over_network(plan: Plan, choices: Vec<NetworkFault>) {
    let mut dice = seeded();
    let mut cluster = Cluster::start_with(Settings::default().proxied()).await;
    let mut nemesis = NetworkFaults { choices, rest_ms: 200..1_000, lasts_ms: 300..2_500 };
    plan.run(&mut cluster, &mut nemesis, &mut dice).await.assert_sound();
}
