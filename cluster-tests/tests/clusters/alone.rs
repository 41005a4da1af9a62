//! Tests that have the machine for themselves. Tests begin in the order of their names, and these are neighbours there: all others wait for them
//! once, not for each.
//!
//! Owns the list. The body of each stands in the file of its subject. Tests of `abuse` need no line here: their names come first.

/// Makes a test of each of these functions, by its name.
macro_rules! tests {
    ($($subject:ident::$name:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            crate::$subject::$name().await;
        }
    )+};
}

tests! {
    catch_up::a_node_that_missed_purged_entries_comes_back_by_snapshot_while_writes_go_on,
    collections::an_index_over_10000_documents_is_built_while_writes_go_on,
    failover::a_killed_leader_is_replaced_within_a_second,
    failover::a_leader_that_is_stopped_hands_over_without_a_pause,
    failover::a_leader_whose_process_ends_is_replaced_once_its_lease_is_over,
    generated::honest_clients_go_on_under_every_shape_of_every_request_and_all_is_given_back,
    histories::an_archive_of_very_many_pieces_costs_no_leader_and_makes_nobody_wait,
    roll::a_rolling_restart_under_load_fails_no_write,
    tasks::a_waiting_worker_gets_a_task_when_it_is_due_and_never_before,
}
