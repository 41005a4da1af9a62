//! Workloads on clusters that are hurt, recorded whole and judged by every rule.
//!
//! Together they meet each workload and each fault once; the soak has more time for them.

use cluster_harness::drive::scenarios::{Pace, named};
use cluster_harness::seed::seeded;

async fn run(name: &str) {
    let scenario = named(name).expect("a scenario of this name");
    scenario.run(3, Pace::short(), &mut seeded()).await.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_is_linearizable_while_nodes_are_killed_and_paused() {
    run("processes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_sessions_and_tasks_hold_what_they_promise_while_leaders_are_paused_and_killed() {
    run("coordination").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_etcd_find_the_same_order_as_those_of_http() {
    run("etcd").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_stale_behind_partitions_one_way_cuts_and_slow_links() {
    run("partitions").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_retries_over_broken_links_is_carried_out_once_and_locks_hold() {
    run("links").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_disks_that_are_slow_fail_or_run_full() {
    run("disks").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_and_sessions_hold_while_wall_clocks_jump_and_leaders_change() {
    run("clocks").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_come_when_they_are_due_while_one_wall_clock_is_wrong() {
    run("wrong-clock").await;
}

pub async fn an_archive_of_very_many_pieces_costs_no_leader_and_makes_nobody_wait() {
    run("aged").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_nodes_come_go_and_start_from_snapshots() {
    run("churn").await;
}
