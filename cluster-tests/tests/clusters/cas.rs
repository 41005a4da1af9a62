//! Compare and swap between nodes.

use cluster_harness::{Answer, Cluster, Connection, PATIENCE, Request, eventually};
use quorate_client::Cas;
use quorate_client::api::{Applied, EntryView, ErrorCode, WriteAnswer};

const ROUNDS: u64 = 60;
/// Clients that reached the leader through a follower once lost all their tries beside so many.
const UPDATERS: u64 = 8;
const UPDATES_EACH: u64 = 40;

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

/// Fault: the leader is killed, beside those who update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_writers_of_one_entry_each_sees_its_own_write_and_none_loses_an_update() {
    let mut cluster = Cluster::start().await;
    a_writer_that_prefers_the_entry_is_shown_its_own_write_and_never_a_later_one(&cluster).await;
    updates_of_one_entry_are_done_once_each_and_none_loses_every_race(&mut cluster).await;
    cluster.assert_agreement().await;
}

/// Writers at other nodes have overtaken it by the time at which its node answers.
async fn a_writer_that_prefers_the_entry_is_shown_its_own_write_and_never_a_later_one(cluster: &Cluster) {
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
}

/// Each client knows two of the nodes, so some reach the leader by way of a follower, beside rivals that are nearer.
async fn updates_of_one_entry_are_done_once_each_and_none_loses_every_race(cluster: &mut Cluster) {
    const KEY: &str = "counter";
    let mut updaters = tokio::task::JoinSet::new();
    for number in 0..UPDATERS {
        let client = cluster.client_without(Some(1 + number % 3));
        updaters.spawn(async move {
            for _ in 0..UPDATES_EACH {
                let updated = client.update(KEY, |now: Option<u64>| Some(now.unwrap_or(0) + 1)).await;
                updated.unwrap_or_else(|error| panic!("client {number} gave up: {error}"));
            }
        });
    }
    let client = cluster.client_without(None);
    let until = async |goal: u64| {
        eventually(&format!("{goal} updates"), 4 * PATIENCE, async || {
            let entry = client.get_json::<u64>(KEY).await.map_err(|error| error.to_string())?;
            let count = entry.map_or(0, |entry| entry.content);
            if count >= goal { Ok(()) } else { Err(format!("{count} of them")) }
        })
        .await;
    };
    let all = UPDATERS * UPDATES_EACH;
    until(all / 3).await;
    let leader = cluster.leader().await;
    cluster.kill(leader).await;
    until(all / 2).await;
    cluster.bring_up(leader).await;
    while let Some(done) = updaters.join_next().await {
        done.expect("each has made all of its updates");
    }
    let entry = client.get_json::<u64>(KEY).await.expect("an answer").expect("it is there");
    assert_eq!(entry.content, all, "each update is counted once");
}
