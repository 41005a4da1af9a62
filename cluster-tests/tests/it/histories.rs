//! Workloads on clusters that are hurt, recorded whole and judged by every rule.

use cluster_tests::seed::seeded;
use cluster_tests::workload::scenarios::{Pace, named};

async fn run(name: &str) {
    let scenario = named(name).expect("a scenario of this name");
    scenario.run(3, Pace::SHORT, &mut seeded()).await.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registers_are_linearizable_while_leaders_are_killed_and_paused() {
    run("registers").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_keep_the_sum_of_accounts_while_nodes_are_killed_and_paused() {
    run("accounts").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_and_sessions_hold_what_they_promise_while_leaders_are_paused_and_killed() {
    run("locks").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_show_everything_once_while_nodes_go_and_come_back() {
    run("watches").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_retries_is_carried_out_once_while_leaders_are_killed_and_paused() {
    run("storm").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_done_once_and_in_time_while_leaders_are_killed_and_paused() {
    run("tasks").await;
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
async fn every_promise_holds_while_processes_and_links_are_hurt() {
    run("everything").await;
}
