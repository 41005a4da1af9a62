//! Compare and swap between nodes.

use cluster_harness::{Answer, Cluster, Connection, Request};
use quorate_client::Cas;
use quorate_client::api::{Applied, EntryView, ErrorCode, WriteAnswer};

const ROUNDS: u64 = 60;

/// Both ask different nodes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_with_the_same_token_one_wins_and_the_other_gets_the_winner() {
    let mut cluster = Cluster::start().await;
    let ids = cluster.ids();
    let mut connections = Vec::new();
    for id in &ids {
        connections.push(Connection::open(cluster.client_address(*id)).await.unwrap());
    }
    let first = connections[0].exchange(&Request::put("race", "0")).await.unwrap().expect_success();
    let mut cas = first.json::<WriteAnswer>().cas.expect("a put gives a token");
    for round in 0..ROUNDS {
        // Each pair of nodes in turn.
        let count = ids.len();
        let one = (round % count as u64) as usize;
        let [left, right] = connections.get_disjoint_mut([one, (one + 1) % count]).expect("two different nodes");
        let replace = |value: u64| Request::put("race", value.to_string()).header("If-Match", format!("\"{cas}\""));
        let (left_value, right_value) = (2 * round, 2 * round + 1);
        let (left_request, right_request) = (replace(left_value), replace(right_value));
        let (left, right) = tokio::join!(left.exchange(&left_request), right.exchange(&right_request));
        let (left, right) = (left.unwrap(), right.unwrap());
        let (winner, value, loser) = match (left.is_success(), right.is_success()) {
            (true, false) => (left, left_value, right),
            (false, true) => (right, right_value, left),
            _ => panic!("round {round}: exactly one must win, got {} and {}", left.text(), right.text()),
        };
        cas = winner.json::<WriteAnswer>().cas.expect("a put gives a token");
        assert_lost_to(&loser, cas, value);
    }
    cluster.assert_agreement().await;
}

/// The loser must learn enough to go on without another read.
fn assert_lost_to(loser: &Answer, cas: Cas, value: u64) {
    let problem = loser.problem();
    assert_eq!((problem.code, problem.applied), (ErrorCode::CasMismatch, Applied::No), "{}", loser.text());
    let current = problem.current.expect("the current entry");
    assert_eq!(current.cas, Some(cas), "the token of the winner");
    assert_eq!(current.value.expect("JSON").0.get(), value.to_string(), "the value of the winner");
}

/// Writers at other nodes have overtaken it by the time at which its node answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_prefers_the_entry_is_shown_its_own_write_and_never_a_later_one() {
    let mut cluster = Cluster::start().await;
    let mut writers = Vec::new();
    for id in cluster.ids() {
        let mut connection = Connection::open(cluster.client_address(id)).await.unwrap();
        writers.push(tokio::spawn(async move {
            for round in 0..ROUNDS {
                let value = format!("\"{id}/{round}\"");
                let put = Request::put("contended", value.clone()).header("Prefer", "return=representation");
                let answer = connection.exchange(&put).await.unwrap().expect_success();
                assert_eq!(answer.header("preference-applied"), Some("return=representation"), "node {id}");
                let shown: EntryView = answer.json();
                assert_eq!((shown.value.expect("JSON").0.get(), shown.cas), (&*value, shown.revision.map(Cas::new)));
            }
        }));
    }
    for writer in writers {
        writer.await.expect("every write was shown as it was");
    }
    cluster.assert_agreement().await;
}
