//! Elections: whoever observes one sees each change once and in order, whichever node it asks and whichever dies.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cluster_harness::{Cluster, PATIENCE, Request, eventually};
use quorate_client::api::{
    CampaignAnswer, CampaignState, ElectionAnswer, ErrorCode, LeaderEvent, ProclaimAnswer, ResignAnswer, VacantEvent,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const ROUNDS: usize = 6;

/// A change: revision, and the term and value of the leader, if there is one.
type Change = (u64, Option<(u64, String)>);

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}

/// Reads one stream until it breaks off. Notes each change, and where to go on.
async fn follow(to: SocketAddr, last_id: &Mutex<Option<u64>>, seen: &Mutex<Vec<Change>>) -> io::Result<()> {
    let mut stream = TcpStream::connect(to).await?;
    let resume = held(last_id).map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let head = format!("GET /v1/elections/e/observe?heartbeat_ms=500 HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let mut event = String::new();
    let mut id = None;
    // Three heartbeats of silence, and the node is not there any more.
    let silence = Duration::from_millis(1_500);
    while let Some(line) = tokio::time::timeout(silence, lines.next_line()).await?? {
        if let Some(name) = line.strip_prefix("event: ") {
            event = name.to_owned();
        } else if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.parse().expect("an id is a revision"));
        } else if let Some(data) = line.strip_prefix("data: ") {
            match &*event {
                "leader" => {
                    let leader: LeaderEvent = serde_json::from_str(data).expect("a leader");
                    let value = leader.value.map(|value| value.0.get().to_owned()).unwrap_or_default();
                    held(seen).push((leader.revision, Some((leader.term, value))));
                }
                "vacant" => {
                    let vacant: VacantEvent = serde_json::from_str(data).expect("a vacancy");
                    held(seen).push((vacant.revision, None));
                }
                "progress" => {}
                _ => return Ok(()),
            }
            if id.is_some() {
                *held(last_id) = id;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_see_every_change_in_order_over_the_death_of_nodes() {
    let mut cluster = Cluster::start().await;
    let mut caller = cluster.caller(1);
    let mut observers = Vec::new();
    for first in 0..3usize {
        let nodes: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id)).collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                let last_id = Mutex::new(None);
                for at in first.. {
                    // Whatever ended it, it goes on elsewhere.
                    let _ended = follow(nodes[at % nodes.len()], &last_id, &seen).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        observers.push((seen, task));
    }
    eventually("all observe", PATIENCE, async || {
        let waiting = observers.iter().filter(|(seen, _)| held(seen).is_empty()).count();
        if waiting == 0 { Ok(()) } else { Err(format!("{waiting} have not begun")) }
    })
    .await;
    let start: Vec<Change> = observers.iter().map(|(seen, _)| held(seen)[0].clone()).collect();
    assert!(start.iter().all(|(_, leader)| leader.is_none()), "nobody leads: {start:?}");

    let mut expected: Vec<Change> = Vec::new();
    for round in 0..ROUNDS {
        let session = caller.session(120_000, &format!("leader{round}")).await;
        let body = json!({"session": session, "value": round, "wait_ms": 60_000, "request_id": format!("c{round}")});
        let won: CampaignAnswer = caller.post("/v1/elections/e/campaign", &body).await.expect_success().json();
        let term = won.term.expect("leads");
        expected.push((term, Some((term, round.to_string()))));
        let victim = if round % 2 == 1 { Some(cluster.leader().await) } else { None };
        if let Some(id) = victim {
            cluster.kill(id).await;
        }
        for said in ["\"a\"", "{\"b\":1}"] {
            let value: serde_json::Value = serde_json::from_str(said).expect("JSON");
            let body = json!({"term": term, "value": value, "request_id": format!("p{round}{said}")});
            let told: ProclaimAnswer = caller.post("/v1/elections/e/proclaim", &body).await.expect_success().json();
            expected.push((told.revision, Some((term, said.to_owned()))));
        }
        if let Some(id) = victim {
            cluster.bring_up(id).await;
        }
        let body = json!({"term": term, "request_id": format!("r{round}")});
        let given: ResignAnswer = caller.post("/v1/elections/e/resign", &body).await.expect_success().json();
        assert!(given.resigned);
        expected.push((given.revision, None));
    }
    for (n, (seen, task)) in observers.into_iter().enumerate() {
        eventually(&format!("observer {n} has seen everything"), PATIENCE, async || {
            let count = held(&seen).len();
            if count > expected.len() { Ok(()) } else { Err(format!("{count} of {}", expected.len() + 1)) }
        })
        .await;
        task.abort();
        assert_eq!(held(&seen)[1..], expected[..], "observer {n}");
    }
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_candidate_leads_when_the_session_of_the_leader_ends() {
    let mut cluster = Cluster::start().await;
    let (mut one, mut two) = (cluster.caller(1), cluster.caller(2));
    let first = one.session(4_000, "first").await;
    let second = two.session(120_000, "second").await;
    let won: CampaignAnswer = one
        .post("/v1/elections/e/campaign", &json!({"session": first, "value": {"at": 1}}))
        .await
        .expect_success()
        .json();
    let term = won.term.expect("leads");
    let again = one.post("/v1/elections/e/campaign", &json!({"session": first, "value": {"at": 2}})).await;
    let again: CampaignAnswer = again.expect_success().json();
    assert_eq!(
        (again.state, again.term),
        (CampaignState::Leader, Some(term)),
        "another value is proclaimed, not campaigned with"
    );
    let leader = cluster.leader().await;
    let standing = tokio::spawn(async move {
        loop {
            let body = json!({"session": second, "value": "me", "wait_ms": 60_000, "poll_ms": 4_000});
            let answer: CampaignAnswer = two.post("/v1/elections/e/campaign", &body).await.expect_success().json();
            if answer.state == CampaignState::Leader {
                return answer.term.expect("leads");
            }
        }
    });
    // The death of the cluster's leader ends no term early; that the session is not renewed does.
    cluster.kill(leader).await;
    cluster.bring_up(leader).await;
    let next = tokio::time::timeout(PATIENCE, standing).await.expect("in time").expect("it leads");
    assert!(next > term);
    let shown: ElectionAnswer = one.insist(&Request::get("/v1/elections/e")).await.expect_success().json();
    let leads = shown.leader.expect("a leader");
    assert_eq!((leads.term, &*leads.owner), (next, "second"));
    let late = json!({"term": term, "value": 0});
    assert_eq!(one.post("/v1/elections/e/proclaim", &late).await.problem().code, ErrorCode::NotLockHolder);
    let guarded = |term: u64| Request::new("PUT", format!("/v1/kv/k?guard_election=e&guard_token={term}")).json("1");
    assert_eq!(one.insist(&guarded(term)).await.problem().code, ErrorCode::GuardFailed);
    one.insist(&guarded(next)).await.expect_success();
    cluster.assert_agreement().await;
}
