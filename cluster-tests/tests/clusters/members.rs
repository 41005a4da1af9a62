//! Members that come and go while clients write.

use std::time::Instant;

use cluster_harness::cluster::PATIENCE;
use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Connection, Request, Settings, eventually};
use quorate_client::Client;
use quorate_client::api::{MemberRole, MembersAnswer, MembersChanged};
use quorate_node::EXIT_REMOVED;

/// How often a leader is killed in the middle of a change.
const ROUNDS: usize = 2;
/// As many at most until one of them was killed there.
const ROUNDS_MAX: usize = 30;

fn client(cluster: &Cluster) -> Client {
    cluster.client_without(None)
}

async fn members(cluster: &Cluster) -> Result<MembersAnswer, String> {
    client(cluster).members().list().await.map_err(|error| error.to_string())
}

fn voters(answer: &MembersAnswer) -> Vec<u64> {
    answer.members.iter().filter(|member| member.role == MemberRole::Voter).map(|member| member.id).collect()
}

/// Waits until these vote and no change is under way.
pub async fn wait_for_voters(cluster: &Cluster, wanted: &[u64]) {
    eventually(&format!("{wanted:?} vote"), PATIENCE, async || {
        let answer = members(cluster).await?;
        let is_so = !answer.changing && voters(&answer) == wanted;
        if is_so { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

/// Waits until the leader has noticed that a node is gone.
async fn wait_missed(cluster: &Cluster, id: u64) {
    eventually(&format!("the leader misses node {id}"), PATIENCE, async || {
        let answer = members(cluster).await?;
        let missed = answer.members.iter().any(|member| member.id == id && !member.healthy);
        if missed { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

/// A removed node ends by itself and says why.
async fn assert_ends_removed(cluster: &mut Cluster, id: u64) {
    let (end, log) = cluster.wait_end(id, PATIENCE).await;
    assert_eq!(end.code(), Some(EXIT_REMOVED), "node {id} ended otherwise:\n{log}");
    assert!(log.contains(&format!("node {id} was removed from its cluster")), "no reason in:\n{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_voter_is_replaced_by_a_standby() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, 2, "replace");
    cluster.add_standby(4);
    cluster.bring_up(4).await;
    let dead = cluster.follower().await;
    cluster.kill(dead).await;
    load.wait_for_more(20).await;
    assert_eq!(voters(&members(&cluster).await.unwrap()), [1, 2, 3], "a standby has no vote");

    let dry = client(&cluster).members().replace(dead, 4).dry_run(true).await.expect("it can be done");
    assert!(dry.dry_run && !dry.changed && dry.voters.contains(&4), "{dry:?}");
    assert_eq!(voters(&members(&cluster).await.unwrap()), [1, 2, 3], "nothing was done");
    let done = client(&cluster).members().replace(dead, 4).await.expect("it can be done");
    assert!(done.voters.contains(&4) && done.learners.is_empty(), "{done:?}");
    let again = client(&cluster).members().replace(dead, 4).await.expect("it is so");
    assert!(!again.changed, "{again:?}");
    let left: Vec<u64> = (1..=4).filter(|id| *id != dead).collect();
    wait_for_voters(&cluster, &left).await;
    load.wait_for_more(50).await;

    // Its disk says that it votes; the others say that it does not.
    cluster.start_node(dead);
    assert_ends_removed(&mut cluster, dead).await;
    cluster.start_node(dead);
    assert_ends_removed(&mut cluster, dead).await;
    wait_for_voters(&cluster, &left).await;
    let report = load.finish().await;
    cluster.assert_agreement().await;
    assert_durable(&cluster, 4, &report.history).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_gets_no_vote_beside_a_dead_one_but_can_take_its_place() {
    let mut cluster = Cluster::start().await;
    let dead = cluster.follower().await;
    cluster.kill(dead).await;
    wait_missed(&cluster, dead).await;
    cluster.add_node(4);
    cluster.bring_up(4).await;
    eventually("the leader says why node 4 has no vote", PATIENCE, async || {
        let log: String = cluster.live().into_iter().map(|id| cluster.log_text(id)).collect();
        let is_said = log.contains("gets no vote yet") && log.contains(&format!("replace or remove node {dead} first"));
        if is_said { Ok(()) } else { Err("not yet".into()) }
    })
    .await;
    assert_eq!(voters(&members(&cluster).await.unwrap()), [1, 2, 3]);
    let done = client(&cluster).members().replace(dead, 4).await.expect("it is there and caught up");
    assert!(done.voters.contains(&4), "{done:?}");
    let left: Vec<u64> = (1..=4).filter(|id| *id != dead).collect();
    wait_for_voters(&cluster, &left).await;
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_list_that_grew_old_keeps_no_member_from_starting() {
    let mut cluster = Cluster::start().await;
    // A leader that is removed hands over first.
    cluster.hand_leadership_to(1).await;
    client(&cluster).members().remove(1).force(true).await.expect("two are left");
    assert_ends_removed(&mut cluster, 1).await;
    // Another machine gets the address of the one that went.
    cluster.add_node(4);
    let address = cluster.peer_address(1);
    cluster.set_flag(4, "--peer-listen", address);
    cluster.set_flag(4, "--peer-advertise", address);
    cluster.set_flag(4, "--join", format!("2={},3={}", cluster.peer_address(2), cluster.peer_address(3)));
    cluster.bring_up(4).await;
    wait_for_voters(&cluster, &[2, 3, 4]).await;
    cluster.stop(2).await;
    // Who came in the place of a founder is no stranger.
    cluster.bring_up(2).await;
    cluster.wait_all_ready().await;
    wait_for_voters(&cluster, &[2, 3, 4]).await;
    cluster.assert_agreement().await;
}

/// What a node says of a change that it refuses.
async fn refusal(cluster: &Cluster, through: u64, request: Request) -> String {
    let answer = request.send(cluster.client_address(through)).await.expect("an answer");
    assert_eq!(answer.status, 409, "{}", answer.text());
    let problem = answer.problem();
    assert_eq!(serde_json::to_value(problem.code).unwrap(), "change_refused");
    problem.detail
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_harm_the_cluster_is_refused_with_the_reason() {
    let mut cluster = Cluster::start().await;
    let foreign = Cluster::start_with(Settings::with_ids([9])).await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);

    let alone = refusal(&foreign, 9, Request::new("DELETE", "/v1/cluster/members/9?force")).await;
    assert!(alone.contains("last voter"), "{alone}");
    let unwise = refusal(&cluster, follower, Request::new("DELETE", "/v1/cluster/members/2")).await;
    assert!(unwise.contains("one failure from loss"), "{unwise}");
    let unknown = refusal(&cluster, follower, Request::post("/v1/cluster/members/7/promote", "")).await;
    assert!(unknown.contains("node 7 is no member"), "{unknown}");
    let add = format!("{{\"id\":9,\"peer_addr\":\"{}\"}}", foreign.peer_address(9));
    let other = refusal(&cluster, leader, Request::post("/v1/cluster/members", add)).await;
    let known = foreign.status(9).await.unwrap().cluster_id;
    assert!(other.contains(&known), "{other}");
    let nobody = cluster_harness::ports::free_addresses(1);
    let add = format!("{{\"id\":8,\"peer_addr\":\"{}\"}}", nobody[0]);
    let absent = refusal(&cluster, leader, Request::post("/v1/cluster/members", add)).await;
    assert!(absent.contains("start it first"), "{absent}");

    // With one of three dead, the second must not go, forced or not, and even if nobody has noticed yet.
    let others: Vec<u64> = cluster.live_but(leader);
    cluster.kill(others[0]).await;
    let wanted = format!("/v1/cluster/members/{}?force", others[1]);
    let fatal = refusal(&cluster, leader, Request::new("DELETE", &wanted)).await;
    assert!(fatal.contains("quorum would be lost"), "{fatal}");
    let gone =
        refusal(&cluster, leader, Request::post(format!("/v1/cluster/members/{}/replace", others[0]), "{\"with\":7}"))
            .await;
    assert!(gone.contains("node 7 is no member"), "{gone}");
    wait_for_voters(&cluster, &[1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_waits_is_taken_in_by_name_and_gives_its_vote_back() {
    let mut cluster = Cluster::start().await;
    // It knows nobody of the cluster, so it waits to be asked.
    cluster.add_node(4);
    let nobody = cluster_harness::ports::free_addresses(1);
    cluster.set_flag(4, "--join", format!("1={}", nobody[0]));
    cluster.start_node(4);
    let address = cluster.peer_address(4).to_string();
    // As an operator has it who did not hear of node 4 yet.
    let client = cluster.client_without(Some(4));
    let done = eventually("node 4 is taken in", PATIENCE, async || {
        client.members().add(4, &address, true).await.map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(done.voters, [1, 2, 3, 4]);
    cluster.wait_ready(4).await;
    let again = client.members().add(4, &address, true).await.expect("it is so");
    assert_eq!((again.changed, again.voters), (false, vec![1, 2, 3, 4]));
    let demoted = client.members().demote(4).await.expect("three are left");
    assert_eq!((demoted.voters, demoted.learners), (vec![1, 2, 3], vec![4]));
    wait_for_voters(&cluster, &[1, 2, 3]).await;
    let promoted = client.members().promote(4).await.expect("it has caught up");
    assert_eq!(promoted.voters, [1, 2, 3, 4]);
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_handed_over_by_any_node() {
    let cluster = Cluster::start().await;
    for to in [1, 2, 3, 1] {
        let through = if to == 3 { 1 } else { to + 1 };
        let ask = Request::post("/v1/cluster/leader", format!("{{\"to\":{to}}}"));
        // Who was elected a moment ago may not have heard of all the others yet, and says to ask again.
        let answer = eventually("the leadership is handed over", PATIENCE, async || {
            let answer = ask.send(cluster.client_address(through)).await.expect("an answer");
            if answer.status == 503 { Err(answer.text()) } else { Ok(answer) }
        });
        let answer: serde_json::Value = answer.await.expect_success().json();
        assert_eq!(answer["leader_id"], to);
        assert_eq!(cluster.leader().await, to);
    }
    let stranger = refusal(&cluster, 2, Request::post("/v1/cluster/leader", "{\"to\":9}")).await;
    assert!(stranger.contains("node 9 has no vote"), "{stranger}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_voter_is_replaced_without_an_operator_where_that_is_wanted() {
    let mut cluster = Cluster::start_with(Settings::default().flag("--replace-dead-after-ms", 3_000)).await;
    let load = Load::start(&cluster, 2, "autopilot");
    cluster.add_standby(4);
    cluster.bring_up(4).await;
    let dead = cluster.leader().await;
    cluster.kill(dead).await;
    let left: Vec<u64> = (1..=4).filter(|id| *id != dead).collect();
    wait_for_voters(&cluster, &left).await;
    eventually("the leader says what it did and why", PATIENCE, async || {
        let logs: String = cluster.live().into_iter().map(|id| cluster.log_text(id)).collect();
        let is_said = logs.contains("replaced a dead voter") && logs.contains("was not heard of for");
        if is_said { Ok(()) } else { Err(logs) }
    })
    .await;
    load.wait_for_more(50).await;
    let report = load.finish().await;
    cluster.start_node(dead);
    assert_ends_removed(&mut cluster, dead).await;
    cluster.assert_agreement().await;
    assert_durable(&cluster, 4, &report.history).await;
}

/// Gives node 4 a vote, in the next round takes it.
async fn swing(client: Client, round: usize) -> Result<MembersChanged, quorate_client::Error> {
    if round.is_multiple_of(2) { client.members().promote(4).await } else { client.members().demote(4).await }
}

/// How often the nodes that are up said that they finish what another one began.
fn finished(cluster: &Cluster, by: &[u64]) -> usize {
    by.iter().map(|id| cluster.log_text(*id).matches("finishing a change of the members").count()).sum()
}

/// Looks again and again until the leader is in the middle of a change; false where it is over before that was seen.
async fn is_seen_changing(cluster: &Cluster, leader: u64, wanted: &[u64]) -> bool {
    let mut connection = Connection::open(cluster.client_address(leader)).await.expect("the leader takes connections");
    let look = Request::get("/v1/cluster/members");
    let until = Instant::now() + PATIENCE;
    // Without a pause: the middle of a change lasts for two syncs.
    while Instant::now() < until {
        let answer = connection.exchange(&look).await.expect("the leader answers");
        let answer: MembersAnswer = answer.expect_success().json();
        if answer.changing || voters(&answer) == wanted {
            return answer.changing;
        }
    }
    panic!("no change begins within {PATIENCE:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_its_leader_did_not_live_to_finish_is_finished() {
    let mut cluster = Cluster::start().await;
    cluster.add_standby(4);
    cluster.bring_up(4).await;
    let (mut seen, mut by_survivors, mut round) = (0, 0, 0);
    // On a machine that is busy with other things the middle of a change is missed often.
    while round < ROUNDS || (seen == 0 && round < ROUNDS_MAX) {
        let leader = cluster.leader().await;
        let survivors = cluster.live_but(leader);
        let before = finished(&cluster, &survivors);
        let wanted: Vec<u64> = if round.is_multiple_of(2) { (1..=4).collect() } else { (1..=3).collect() };
        let first = tokio::spawn(swing(client(&cluster), round));
        seen += usize::from(is_seen_changing(&cluster, leader, &wanted).await);
        cluster.kill(leader).await;
        // Nobody asks again: whoever leads now ends what was begun, or nothing was.
        first.abort();
        eventually("no change is under way", PATIENCE, async || {
            let answer = members(&cluster).await?;
            if answer.changing { Err(format!("{answer:?}")) } else { Ok(()) }
        })
        .await;
        by_survivors += finished(&cluster, &survivors) - before;
        cluster.bring_up(leader).await;
        let done = eventually("asked again, it is done", PATIENCE, async || {
            swing(client(&cluster), round).await.map_err(|error| error.to_string())
        })
        .await;
        assert_eq!(done.voters, wanted, "round {round}");
        round += 1;
    }
    println!(
        "{seen} of {round} leaders were killed in the middle of a change; a survivor finished {by_survivors} of them"
    );
    assert!(seen > 0, "no leader was killed in time");
    cluster.assert_agreement().await;
}
